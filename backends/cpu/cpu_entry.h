/*
 * cpu_entry.h - cache entries with scales, in f32.
 *
 * Readers give round(f32(code * scale)) to the compute type; writers leave the
 * bytes of docs/spec.md 2.3.
 */
#ifndef MLA_CPU_ENTRY_H
#define MLA_CPU_ENTRY_H

#include "cache_rows.h"
#include "cpu_internal.h"

typedef struct mla_cpu_entries {
  const mla_cpu_table *table;
  const mla_tensor *cache;
  mla_cache_layout layout;
  int code;    /* mla_cpu_code */
  float scale; /* of the whole cache */
  int compute; /* mla_cpu_type that dequantised values are rounded to */
} mla_cpu_entries;

/* Of the cache in a slot; layout.quantised is 0 for a plain one. */
mla_cpu_entries mla_cpu_entries_of(const mla_cpu_context *context,
                                   const mla_args *args, int slot, int compute);

/* Values first .. first + count - 1 of the entry of a block at an offset. */
void mla_cpu_entry_load(const mla_cpu_entries *entries, int64_t block,
                        int64_t offset, int64_t kv_head, int64_t first,
                        int64_t count, float *to);

/* What an entry is written from: latents, then the rotary part, which may have
   no width. */
typedef struct mla_cpu_values {
  int type; /* mla_cpu_type */
  int64_t width[2];
  const void *at[2];
  const void *next[2]; /* those of an entry to come, or NULL: a hint */
} mla_cpu_values;

/* far: past the caches, to be settled (cpu_kernels.h). */
void mla_cpu_entry_store(const mla_cpu_entries *entries, int64_t block,
                         int64_t offset, int pow2, int far,
                         const mla_cpu_values *values);

/* Why attention cannot read such a cache with this q_dtype; NULL: it can. */
const char *mla_cpu_refuse_entries(const mla_problem *problem);

#endif
