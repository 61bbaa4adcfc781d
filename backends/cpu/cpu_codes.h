/*
 * cpu_codes.h - scores from int8 codes of queries and keys alike: as
 * cpu_attend.h, which they go to, with a whole sum of products exact.
 *
 * Declared as q_round = int8_row and dequant = scale_after (docs/spec.md,
 * section 4).
 */
#ifndef MLA_CPU_CODES_H
#define MLA_CPU_CODES_H

#include "cache_layout.h"
#include "cpu_internal.h"

/* What one thread works in, beside an mla_cpu_tile. */
typedef struct mla_cpu_codes {
  int64_t pairs;    /* of codes in a key, the last filled up with 0 */
  int64_t ld;       /* of keys, in codes */
  float times;      /* the softmax scale */
  int16_t *q;       /* [panels][pairs][LANES][2] */
  float *q_scale;   /* [panels][LANES] */
  int16_t *keys;    /* [BLOCK][ld] */
  float *key_scale; /* [BLOCK] */
} mla_cpu_codes;

void mla_cpu_codes_take(mla_cpu_arena *arena, mla_cpu_codes *codes, int panels,
                        int64_t width);

/* A row's queries from `width` numbers. */
void mla_cpu_codes_query(mla_cpu_codes *codes, const mla_cpu_table *table,
                         int panel, int lane, const float *line, int64_t width);

/* Key j of the block from its entry, and a value, times its scale. */
void mla_cpu_codes_key(mla_cpu_codes *codes, const mla_cpu_table *table,
                       const mla_cache_layout *layout, const void *entry,
                       int64_t j);
void mla_cpu_codes_value(const mla_cpu_table *table,
                         const mla_cache_layout *layout, const void *entry,
                         int64_t width, float *to);

/* scores[n][LANES] of keys from `first` on with one panel; half: its first
   eight lanes. */
void mla_cpu_codes_scores(const mla_cpu_codes *codes,
                          const mla_cpu_table *table, int panel, int half,
                          int64_t first, int64_t n, float *scores);

#endif
