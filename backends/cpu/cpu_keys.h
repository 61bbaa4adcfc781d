/*
 * cpu_keys.h - index keys of a paged cache, widened to f32.
 */
#ifndef MLA_CPU_KEYS_H
#define MLA_CPU_KEYS_H

#include "cpu_table.h"
#include "mla/backend.h"

typedef struct mla_cpu_keys {
  const mla_tensor *cache, *table;
  mla_cpu_load_fn *load; /* NULL: codes with a scale behind a block's keys */
  int type;
  int64_t width;
  float value[256]; /* of each code */
} mla_cpu_keys;

/* head_dim of the problem is filled in. */
mla_cpu_keys mla_cpu_keys_of(const mla_cpu_table *table,
                             const mla_problem *problem,
                             const mla_tensor *cache,
                             const mla_tensor *block_table);

/* to[i * ld] = the key at position first + i of a request, i < n. Codes give
   f32(code * scale), which is not rounded further. */
void mla_cpu_keys_load(const mla_cpu_keys *keys, int64_t request, int64_t first,
                       int64_t n, float *to, int64_t ld);

#endif
