/*
 * gpu_merge.h - partial results joined by log-sum-exp, a wave a stretch of a
 * row's columns.
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
  int waves; /* of a block */
} mla_merge_args;

#define MLA_LN2 0.69314718055994531f
#define MLA_LOG2E 1.4426950408889634f

MLA_DEV int mla_is_infinite(float v) {
  return (__float_as_uint(v) & 0x7fffffffu) == 0x7f800000u;
}

/* The lse of part s of a row, natural; -inf past the last. */
MLA_DEV float mla_part_lse(const mla_merge_args &a, int s, int t, int h) {
  if (s >= a.count) return MLA_NEG_INF;
  const float v = a.lses[s * a.l_part + t * a.l_token + h * a.l_head];
  return a.in_base2 ? v * MLA_LN2 : v;
}

/* What a part weighs next to the largest lse; below 0: it means nothing. */
MLA_DEV float mla_part_weight(float lse, float top) {
  return mla_is_infinite(lse) ? -1.0f : expf(lse - top);
}

/* What a row's weighted sum is multiplied by, and its natural lse; top: the
   largest lse of a part that lives, total: their weights. */
typedef struct mla_row_factor {
  float keep, lse;
} mla_row_factor;

MLA_DEV mla_row_factor mla_row_factor_of(const mla_merge_args &a, int h,
                                         float top, float total) {
  if (top == MLA_NEG_INF) return {0.0f, MLA_NEG_INF};
  const float lse = top + logf(total);
  float keep = 1.0f / total;
  if (a.sink) keep *= 1.0f / (1.0f + expf(a.sink[h * a.sink_step] - lse));
  return {keep, lse};
}

MLA_DEV void mla_put_row_lse(const mla_merge_args &a, int token, int h,
                             float lse) {
  a.lse[token * a.lse_token + h * a.lse_head] =
      a.out_base2 ? lse * MLA_LOG2E : lse;
}

/* A row's parts: the largest finite lse (-inf: no part lives; any number where
   one is NaN, since its weight is NaN then), the sum of their weights, and the
   weight of part MLA_LANE. */
typedef struct mla_row_parts {
  float top, total, own;
} mla_row_parts;

MLA_DEV mla_row_parts mla_weigh_parts(const mla_merge_args &a, int t, int h) {
  const float first = mla_part_lse(a, MLA_LANE, t, h);
  mla_row_parts r = {MLA_NEG_INF, 0, 0};
  for (int s = MLA_LANE; s < a.count; s += MLA_WAVE) {
    const float v = s == MLA_LANE ? first : mla_part_lse(a, s, t, h);
    if (!mla_is_infinite(v)) r.top = fmaxf(r.top, v != v ? 0.0f : v);
  }
  r.top = mla_wave_max(r.top);
  r.own = mla_part_weight(first, r.top);
  for (int s = MLA_LANE; s < a.count; s += MLA_WAVE) {
    const float weight = s == MLA_LANE
                             ? r.own
                             : mla_part_weight(mla_part_lse(a, s, t, h), r.top);
    r.total += weight < 0.0f ? 0.0f : weight; /* NaN stays one */
  }
  r.total = mla_wave_sum(r.total);
  return r;
}

enum {
  MLA_MERGE_AHEAD = 4,    /* parts that a lane has on their way at once */
  MLA_MERGE_THREADS = 256 /* of a block, at most */
};

/* N columns of a part, one of any type as f32. */
template <int DT, int N>
MLA_DEV void mla_merge_load(const mla_merge_args &a, int64_t at,
                            uint32_t (&w)[mla_some<DT, N>::words]) {
  if constexpr (N == 1)
    w[0] = __float_as_uint(mla_load_any(a.parts, a.parts_dtype, at));
  else
    mla_some<DT, N>::load(a.parts, at, w);
}

/* The weighted sum of N columns from d on. */
template <int DT, int N>
MLA_DEV void mla_merge_columns(const mla_merge_args &a, int t, int h,
                               const mla_row_parts &r, int d, float (&sum)[N]) {
  const int64_t from = t * a.p_token + h * a.p_head + d;
  for (int c = 0; c < N; c++) sum[c] = 0;
  for (int s0 = 0; s0 < a.count; s0 += MLA_WAVE) {
    const int n = a.count - s0 < MLA_WAVE ? a.count - s0 : MLA_WAVE;
    float own = r.own;
    if (s0) own = mla_part_weight(mla_part_lse(a, s0 + MLA_LANE, t, h), r.top);
    for (int j = 0; j < n; j += MLA_MERGE_AHEAD) {
      uint32_t v[MLA_MERGE_AHEAD][mla_some<DT, N>::words];
      float weight[MLA_MERGE_AHEAD];
      MLA_UNROLL
      for (int i = 0; i < MLA_MERGE_AHEAD; i++) {
        weight[i] = MLA_SHFL(own, (j + i) % MLA_WAVE);
        if (j + i >= n || d >= a.dv) weight[i] = -1.0f;
        if (!(weight[i] < 0.0f))
          mla_merge_load<DT, N>(a, from + (s0 + j + i) * a.p_part, v[i]);
      }
      MLA_UNROLL
      for (int i = 0; i < MLA_MERGE_AHEAD; i++) {
        if (weight[i] < 0.0f) continue;
        for (int c = 0; c < N; c++)
          sum[c] += weight[i] * mla_some<DT, N>::at(v[i], c);
      }
    }
  }
}

/* Grid: x token, y head; a.waves a block, N columns a lane at once. */
template <int DT, int N>
MLA_KERNEL mla_merge_rows(mla_merge_args a) {
  const int t = (int)blockIdx.x, h = (int)blockIdx.y, token = a.token0 + t;
  if (a.start && token >= a.start[a.requests * a.start_step]) return;
  const mla_row_parts r = mla_weigh_parts(a, t, h);
  const mla_row_factor f = mla_row_factor_of(a, h, r.top, r.total);
  for (int d0 = MLA_WAVE_ID * MLA_WAVE * N; d0 < a.dv;
       d0 += a.waves * MLA_WAVE * N) {
    const int d = d0 + MLA_LANE * N;
    float sum[N];
    mla_merge_columns<DT, N>(a, t, h, r, d, sum);
    if (d >= a.dv) continue;
    for (int c = 0; c < N; c++) sum[c] *= f.keep;
    mla_put_any(a.out, a.out_dtype, token * a.o_token + h * a.o_head + d, sum);
  }
  if (a.lse && MLA_TID == 0) mla_put_row_lse(a, token, h, f.lse);
}

#endif
