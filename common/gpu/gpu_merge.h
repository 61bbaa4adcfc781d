/*
 * gpu_merge.h - partial results joined by log-sum-exp, one wave a row.
 *
 * Used for the splits of gpu_attend.h and as the operation "merge". Parts
 * whose lse is infinite, of either sign, mean nothing and are never read.
 */
#ifndef MLA_GPU_MERGE_H
#define MLA_GPU_MERGE_H

#include "gpu_num.h"

typedef struct mla_merge_args {
  const void *parts; /* (s, t, h, d) at s*p_part + t*p_token + h*p_head + d */
  int64_t p_part, p_token, p_head;
  int parts_dtype;
  const float *lses; /* (s, t, h) */
  int64_t l_part, l_token, l_head;
  void *out;
  int64_t o_token, o_head;
  int out_dtype;
  float *lse; /* NULL: not wanted */
  int64_t lse_token, lse_head;
  const float *sink; /* NULL: none */
  int64_t sink_step;
  const int32_t *start; /* tokens from start[requests] on are left alone */
  int64_t start_step;
  int requests, token0;
  int count, heads, dv;
  int in_base2, out_base2;
} mla_merge_args;

#define MLA_LN2 0.69314718055994531f
#define MLA_LOG2E 1.4426950408889634f

MLA_DEV int mla_is_infinite(float v) {
  return (__float_as_uint(v) & 0x7fffffffu) == 0x7f800000u;
}

/* The lse of part s of a row, natural. */
MLA_DEV float mla_part_lse(const mla_merge_args &a, int s, int t, int h) {
  float v = a.lses[s * a.l_part + t * a.l_token + h * a.l_head];
  return a.in_base2 ? v * MLA_LN2 : v;
}

/* Largest finite lse; NaN wins. -inf: no part lives. */
MLA_DEV float mla_live_max(const mla_merge_args &a, int t, int h) {
  float top = MLA_NEG_INF, nan = 0.0f;
  for (int s = MLA_LANE; s < a.count; s += MLA_WAVE) {
    const float v = mla_part_lse(a, s, t, h);
    if (mla_is_infinite(v)) continue;
    if (v != v) nan = 1.0f;
    top = fmaxf(top, v);
  }
  top = mla_wave_max(top);
  return mla_wave_max(nan) > 0.0f ? __uint_as_float(0x7fc00000u) : top;
}

/* What part s weighs; below 0: it means nothing. */
MLA_DEV float mla_part_weight(const mla_merge_args &a, int s, int t, int h,
                              float top) {
  const float v = s < a.count ? mla_part_lse(a, s, t, h) : MLA_NEG_INF;
  return mla_is_infinite(v) ? -1.0f : expf(v - top);
}

/* Columns that a lane adds up at once: so many loads on their way. */
enum { MLA_MERGE_COLUMNS = 8 };

/* The weighted sum of columns from d0 on; a lane's weight is that of a part,
   asked for again only every MLA_WAVE of them. */
MLA_DEV void mla_merge_columns(const mla_merge_args &a, int t, int h, float top,
                               int d0, float *sum) {
  for (int c = 0; c < MLA_MERGE_COLUMNS; c++) sum[c] = 0;
  for (int s0 = 0; s0 < a.count; s0 += MLA_WAVE) {
    const float own = mla_part_weight(a, s0 + MLA_LANE, t, h, top);
    const int n = a.count - s0 < MLA_WAVE ? a.count - s0 : MLA_WAVE;
    for (int j = 0; j < n; j++) {
      const float weight = MLA_SHFL(own, j);
      if (weight < 0.0f) continue;
      const int64_t at = (s0 + j) * a.p_part + t * a.p_token + h * a.p_head;
      for (int c = 0; c < MLA_MERGE_COLUMNS; c++) {
        const int d = d0 + c * MLA_WAVE + MLA_LANE;
        if (d < a.dv)
          sum[c] += weight * mla_load_any(a.parts, a.parts_dtype, at + d);
      }
    }
  }
}

/* Grid: x token, y head; one wave a block. */
MLA_KERNEL mla_merge_rows(mla_merge_args a) {
  const int t = (int)blockIdx.x, h = (int)blockIdx.y, token = a.token0 + t;
  if (a.start && token >= a.start[a.requests * a.start_step]) return;
  const float top = mla_live_max(a, t, h);
  const int empty = top == MLA_NEG_INF;
  float total = 0;
  for (int s = MLA_LANE; s < a.count; s += MLA_WAVE) {
    const float weight = mla_part_weight(a, s, t, h, top);
    total += weight < 0.0f ? 0.0f : weight; /* NaN stays one */
  }
  total = mla_wave_sum(total);
  const float lse = empty ? MLA_NEG_INF : top + logf(total);
  float keep = empty ? 0.0f : 1.0f / total;
  if (a.sink && !empty)
    keep *= 1.0f / (1.0f + expf(a.sink[h * a.sink_step] - lse));
  for (int d0 = 0; d0 < a.dv; d0 += MLA_MERGE_COLUMNS * MLA_WAVE) {
    float sum[MLA_MERGE_COLUMNS];
    mla_merge_columns(a, t, h, top, d0, sum);
    for (int c = 0; c < MLA_MERGE_COLUMNS; c++) {
      const int d = d0 + c * MLA_WAVE + MLA_LANE;
      if (d < a.dv)
        mla_store_any(a.out, a.out_dtype, token * a.o_token + h * a.o_head + d,
                      empty ? 0.0f : sum[c] * keep);
    }
  }
  if (a.lse && MLA_LANE == 0)
    a.lse[token * a.lse_token + h * a.lse_head] =
        a.out_base2 ? lse * MLA_LOG2E : lse;
}

#endif
