/* What tiles of bf16 are filled with, at the compiler's baseline. */
#include <string.h>

#include "cpu_softmax.h"
#include "half.h"

mla_cpu_tile_queries_fn mla_tile_queries_bf16_portable;
mla_cpu_tile_values_fn mla_tile_values_bf16_portable;
mla_cpu_tile_softmax_fn mla_tile_softmax_bf16_portable;
mla_cpu_tile_narrow_fn mla_tile_narrow_bf16_portable;
mla_cpu_tile_pairs_fn mla_tile_pairs_bf16_portable;
mla_cpu_tile_finite_fn mla_tile_finite_bf16_portable;
mla_cpu_tile_join_fn mla_tile_join_f32_portable;
mla_cpu_tile_blend_fn mla_tile_blend_f32_portable;
mla_cpu_tile_scale_fn mla_tile_scale_f32_portable;
mla_cpu_tile_line_fn mla_tile_line_f32_portable;

#define LANES MLA_CPU_LANES
#define DEPTH MLA_CPU_TILE_DEPTH

static int64_t up(int64_t n) {
  return (n + DEPTH - 1) / DEPTH * DEPTH;
}

void mla_tile_queries_bf16_portable(uint16_t *queries,
                                    const uint16_t *const *rows, int64_t k) {
  for (int64_t p = 0; p < up(k); p++)
    for (int x = 0; x < LANES; x++)
      queries[(p / 2 * LANES + x) * 2 + p % 2] = p < k ? rows[x][p] : 0;
}

void mla_tile_values_bf16_portable(uint16_t *values,
                                   const mla_cpu_tile_rows *rows, int64_t n,
                                   int64_t first) {
  for (int64_t j = 0; j < up(n); j++)
    for (int64_t c = 0; c < 32; c++) {
      int64_t at = MLA_CPU_TILE_COLUMN(c);
      uint16_t *tile = values + (j / DEPTH * 2 + at / 16) * LANES * DEPTH;
      const mla_cpu_tile_rows *r = &rows[j / 16];
      tile[(j % DEPTH / 2 * 16 + at % 16) * 2 + j % 2] =
          j < n ? r->at[j % 16 * r->ld + first + c] : 0;
    }
}

void mla_tile_softmax_bf16_portable(int64_t n, const float *s, float scale,
                                    const int32_t *visible, float *m, float *l,
                                    float *beta, uint16_t *weights) {
  float scaled[MLA_CPU_TILE_BLOCK * LANES];
  for (int64_t i = 0; i < n * LANES; i++) scaled[i] = scale * s[i];
  mla_cpu_softmax(n, scaled, visible, m, l, beta);
  for (int64_t j = 0; j < up(n); j++)
    for (int x = 0; x < LANES; x++)
      weights[(j / DEPTH * LANES + x) * DEPTH + j % DEPTH] =
          j < n ? mla_f32_to_bf16(scaled[j * LANES + x]) : 0;
}

void mla_tile_join_f32_portable(float *m, float *l, const float *m2,
                                const float *l2, float *a, float *b) {
  mla_cpu_join(m, l, m2, l2, a, b);
}

void mla_tile_blend_f32_portable(int64_t tiles, int64_t parts,
                                 const float *const *acc, const float *a,
                                 const float *b, int64_t ahead, float *sum) {
  (void)ahead;
  for (int64_t i = 0; i < tiles * LANES * 16; i++) {
    int64_t x = i / 16 % LANES;
    float s = acc[0][i];
    for (int64_t k = 1; k < parts; k++)
      s = a[k * LANES + x] * s + b[k * LANES + x] * acc[k][i];
    sum[i] = s;
  }
}

void mla_tile_scale_f32_portable(int64_t tiles, float *acc,
                                 const float *times) {
  for (int64_t i = 0; i < tiles * LANES * 16; i++)
    acc[i] *= times[i / 16 % LANES];
}

void mla_tile_line_f32_portable(float *line, const float *acc, int64_t lane,
                                int64_t n, float times) {
  for (int64_t c = 0; c < n; c++) {
    int64_t at = MLA_CPU_TILE_COLUMN(c);
    line[c] = times * acc[(at / 16 * LANES + lane) * 16 + at % 16];
  }
}

void mla_tile_narrow_bf16_portable(uint16_t *rows, int64_t ld, const float *c,
                                   int64_t n) {
  for (int64_t i = 0; i < n * LANES; i++)
    rows[i / LANES * ld + i % LANES] = mla_f32_to_bf16(c[i]);
}

void mla_tile_pairs_bf16_portable(uint16_t *values, const float *c, int64_t n) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t x = 0; x < LANES; x++) {
      uint16_t *tile = values + j / DEPTH * 2 * LANES * DEPTH;
      tile[(j % DEPTH / 2 * LANES + x) * 2 + j % 2] =
          mla_f32_to_bf16(c[j * LANES + x]);
    }
}

int mla_tile_finite_bf16_portable(const uint16_t *x, int64_t n) {
  unsigned found = 0;
  for (int64_t i = 0; i < n; i++) found |= (x[i] & 0x7F80u) == 0x7F80u;
  return !found;
}
