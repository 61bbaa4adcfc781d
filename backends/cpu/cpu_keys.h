/*
 * cpu_keys.h - index keys of a paged cache, widened to f32.
 */
#ifndef MLA_CPU_KEYS_H
#define MLA_CPU_KEYS_H

#include "cpu_entry.h"

typedef struct mla_cpu_keys {
  const mla_tensor *cache, *table;
  mla_cpu_load_fn *load; /* of plain keys; NULL: codes */
  int type;
  int64_t width;
  mla_cpu_entries entries; /* codes, which are not rounded further */
} mla_cpu_keys;

/* Of the cache and block table of a call. */
mla_cpu_keys mla_cpu_keys_of(const mla_cpu_context *context,
                             const mla_args *args);

/* to[i * ld] = the key at position first + i of a request, i < n. */
void mla_cpu_keys_load(const mla_cpu_keys *keys, int64_t request, int64_t first,
                       int64_t n, float *to, int64_t ld);

#endif
