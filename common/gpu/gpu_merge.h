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
  float top = MLA_NEG_INF;
  for (int s = 0; s < a.count; s++) {
    float v = mla_part_lse(a, s, t, h);
    if (!mla_is_infinite(v) && !(v <= top)) top = v;
  }
  return top;
}

/* Grid: x token, y head; one wave a block. */
MLA_KERNEL mla_merge_rows(mla_merge_args a) {
  const int t = (int)blockIdx.x, h = (int)blockIdx.y, token = a.token0 + t;
  if (a.start && token >= a.start[a.requests * a.start_step]) return;
  const float top = mla_live_max(a, t, h);
  const int empty = top == MLA_NEG_INF;
  float total = 0;
  for (int s = 0; s < a.count; s++) {
    float v = mla_part_lse(a, s, t, h);
    if (!mla_is_infinite(v)) total += expf(v - top);
  }
  float lse = empty ? MLA_NEG_INF : top + logf(total);
  float keep = empty ? 0.0f : 1.0f / total;
  if (a.sink && !empty)
    keep *= 1.0f / (1.0f + expf(a.sink[h * a.sink_step] - lse));
  for (int d = MLA_LANE; d < a.dv; d += MLA_WAVE) {
    float sum = 0;
    for (int s = 0; s < a.count; s++) {
      float v = mla_part_lse(a, s, t, h);
      if (mla_is_infinite(v)) continue;
      sum += expf(v - top) *
             mla_load_any(a.parts, a.parts_dtype,
                          s * a.p_part + t * a.p_token + h * a.p_head + d);
    }
    mla_store_any(a.out, a.out_dtype, token * a.o_token + h * a.o_head + d,
                  empty ? 0.0f : sum * keep);
  }
  if (a.lse && MLA_LANE == 0)
    a.lse[token * a.lse_token + h * a.lse_head] =
        a.out_base2 ? lse * MLA_LOG2E : lse;
}

#endif
