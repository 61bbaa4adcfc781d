#include "cpu_codes.h"

#include <string.h>

#define LANES MLA_CPU_LANES
#define LARGEST 127.0f
#define STEP 256 /* codes on their way, an even number */

int mla_cpu_decode_by_codes(const mla_cpu_context *c) {
  const mla_problem *p = &c->problem;
  return c->table.codes && p->op == MLA_OP_DECODE &&
         p->cache_format == MLA_CACHE_INT8_TOKEN && !(p->flags & MLA_SPARSE);
}

void mla_cpu_codes_take(mla_cpu_arena *arena, mla_cpu_codes *x, int panels,
                        int64_t width) {
  enum { line = 32 }; /* codes in 64 bytes; an odd number of them a key */
  int64_t lines = mla_cpu_ceil(width, line) | 1;
  x->pairs = mla_cpu_ceil(width, 2);
  x->ld = lines * line;
  x->q = mla_cpu_take(arena, (uint64_t)panels * LANES,
                      2 * (uint64_t)x->pairs * sizeof(int16_t));
  x->q_scale = mla_cpu_take(arena, (uint64_t)panels * LANES, sizeof(float));
  x->keys = mla_cpu_take(arena, MLA_CPU_BLOCK, (uint64_t)x->ld * 2);
  x->key_scale = mla_cpu_take(arena, MLA_CPU_BLOCK, sizeof(float));
}

/* ---------------------------------------------------------------- queries */

/* As a writer of int8 entries has them. Decode asks again for every task: where
   few threads share one request, that is sixteen times. */
void mla_cpu_codes_query(mla_cpu_codes *x, const mla_cpu_table *table,
                         int panel, int lane, const float *line,
                         int64_t width) {
  float scale;
  int16_t *q = x->q + panel * x->pairs * 2 * LANES + 2 * lane;
  table->amax(&scale, line, MLA_CPU_F32, width, width);
  scale /= LARGEST;
  if (scale < 0x1p-126f) scale = 0x1p-126f;
  for (int64_t i = 0; i < width; i += STEP) {
    signed char code[STEP + 1];
    int64_t here = mla_cpu_min(STEP, width - i);
    table->encode[MLA_CPU_I8](code, line + i, MLA_CPU_F32, here, here, &scale,
                              NULL);
    code[here] = 0; /* what fills up the last pair */
    for (int64_t k = 0; k < here; k += 2, q += 2 * LANES) {
      q[0] = code[k];
      q[1] = code[k + 1];
    }
  }
  x->q_scale[panel * LANES + lane] = scale;
}

/* ------------------------------------------------------------------- keys */

static float scale_of_entry(const mla_cache_layout *layout, const void *entry) {
  float scale;
  memcpy(&scale, (const unsigned char *)entry + layout->scale_at, sizeof scale);
  return scale;
}

void mla_cpu_codes_key(mla_cpu_codes *x, const mla_cpu_table *table,
                       const mla_cache_layout *layout, const void *entry,
                       int64_t j) {
  int16_t *key = x->keys + j * x->ld;
  float scale = scale_of_entry(layout, entry);
  table->widen_codes(key, entry, layout->width);
  if (layout->width % 2) key[layout->width] = 0;
  /* Times an infinite scale some products are infinite and some NaN (0 times
     it); their sum, which is formed before the scale, would not be. */
  x->key_scale[j] = scale * 0.0f == 0.0f ? scale : scale * 0.0f;
}

void mla_cpu_codes_value(const mla_cpu_table *table,
                         const mla_cache_layout *layout, const void *entry,
                         int64_t width, float *to) {
  table->decode[MLA_CPU_I8](to, entry, width, scale_of_entry(layout, entry));
}

void mla_cpu_codes_scores(const mla_cpu_codes *x, const mla_cpu_table *table,
                          int panel, int half, int64_t first, int64_t n,
                          float *scores) {
  mla_cpu_codes_fn *codes = half ? table->codes_half : table->codes;
  codes(n, x->pairs, x->keys + first * x->ld, x->ld, x->key_scale + first,
        x->q + panel * x->pairs * 2 * LANES, x->q_scale + panel * LANES,
        x->times, scores + first * LANES);
}
