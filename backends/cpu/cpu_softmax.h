/*
 * cpu_softmax.h - online softmax over a block of scores, soft cap, and folding
 * two parts into one.
 *
 * Lanes never meet, so every loop over them vectorises: a level's file includes
 * this once and compiles it with the level's flags.
 */
#ifndef MLA_CPU_SOFTMAX_H
#define MLA_CPU_SOFTMAX_H

#include "cpu_exp.h"
#include "cpu_kernels.h"

#define LANES MLA_CPU_LANES

static inline void hide(int64_t n, float *s, const int32_t *visible) {
  const float nothing = mla_f32_of_bits(0xFF800000u);
  for (int64_t j = 0; j < n; j++)
    for (int x = 0; x < LANES; x++) {
      float *at = s + j * LANES + x;
      *at = j < visible[x] ? *at : nothing;
    }
}

/* Replaces the old maximum by the new; shift is what to subtract from scores:
   the maximum, or 0 in a lane that has seen nothing (-inf - -inf is NaN). */
static inline void raise_maximum(int64_t n, const float *s, float *m,
                                 float *beta, float *shift) {
  const float nothing = mla_f32_of_bits(0xFF800000u);
  float top[LANES];
  for (int x = 0; x < LANES; x++) top[x] = m[x];
  for (int64_t j = 0; j < n; j++)
    for (int x = 0; x < LANES; x++) {
      float v = s[j * LANES + x];
      top[x] = v > top[x] ? v : top[x];
    }
  for (int x = 0; x < LANES; x++) {
    shift[x] = top[x] == nothing ? 0.0f : top[x];
    beta[x] = mla_cpu_expf(m[x] - shift[x]);
    m[x] = top[x];
  }
}

static inline void mla_cpu_softmax(int64_t n, float *s, const int32_t *visible,
                                   float *m, float *l, float *beta) {
  float shift[LANES], sum[LANES] = {0};
  if (visible) hide(n, s, visible);
  raise_maximum(n, s, m, beta, shift);
  for (int64_t j = 0; j < n; j++)
    for (int x = 0; x < LANES; x++) {
      float p = mla_cpu_expf(s[j * LANES + x] - shift[x]);
      s[j * LANES + x] = p;
      sum[x] += p;
    }
  for (int x = 0; x < LANES; x++) l[x] = beta[x] * l[x] + sum[x];
}

static inline void mla_cpu_softcap(int64_t n, float *s, float cap) {
  for (int64_t i = 0; i < n * LANES; i++)
    s[i] = cap * mla_cpu_tanhf(s[i] / cap);
}

/* m and l of two parts become those of both; a, b: what the accumulators of
   each must be multiplied by. */
static inline void mla_cpu_join(float *m, float *l, const float *m2,
                                const float *l2, float *a, float *b) {
  const float nothing = mla_f32_of_bits(0xFF800000u);
  for (int x = 0; x < LANES; x++) {
    float top = m2[x] > m[x] ? m2[x] : m[x];
    float shift = top == nothing ? 0.0f : top;
    a[x] = mla_cpu_expf(m[x] - shift);
    b[x] = mla_cpu_expf(m2[x] - shift);
    l[x] = a[x] * l[x] + b[x] * l2[x];
    m[x] = top;
  }
}

static inline void mla_cpu_fold(int64_t n, float *m, float *l, float *acc,
                                const float *m2, const float *l2,
                                const float *acc2) {
  float a[LANES], b[LANES];
  mla_cpu_join(m, l, m2, l2, a, b);
  for (int64_t i = 0; i < n; i++)
    for (int x = 0; x < LANES; x++) {
      int64_t at = i * LANES + x;
      acc[at] = a[x] * acc[at] + b[x] * acc2[at];
    }
}

static inline void mla_cpu_scale(int64_t n, float *x, const float *times) {
  for (int64_t i = 0; i < n; i++, x += LANES)
    for (int lane = 0; lane < LANES; lane++) x[lane] *= times[lane];
}

#undef LANES
#endif
