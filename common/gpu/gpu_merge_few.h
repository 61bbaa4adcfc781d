/*
 * gpu_merge_few.h - eight parts at most joined: what gpu_merge.h does, for rows
 * beside each other. A wave has a stretch of every part of its rows on its way
 * before it knows what they weigh; lane r * P + s weighs part s of row r.
 *
 * How many parts there may be follows from a step's limits, so a row gets the
 * bits that gpu_merge.h gives it: sums in the same order, the factor last.
 */
#ifndef MLA_GPU_MERGE_FEW_H
#define MLA_GPU_MERGE_FEW_H

#include "gpu_merge.h"

enum {
  MLA_MERGE_FEW = 8,   /* parts */
  MLA_MERGE_LOADS = 8, /* that a lane has on their way: rows by parts */
};

/* A lane's part: what it weighs next to its row's largest, below 0: nothing;
   and its row's. */
typedef struct mla_few_weight {
  float weight;
  mla_row_factor row;
} mla_few_weight;

template <int P>
MLA_DEV mla_few_weight mla_weigh_few(const mla_merge_args &a, float own,
                                     int h) {
  const int none = mla_is_infinite(own);
  const float top = mla_lanes_max(none         ? MLA_NEG_INF
                                  : own != own ? 0.0f
                                               : own,
                                  P);
  const float weight = mla_part_weight(own, top);
  const float total = mla_lanes_sum(none ? 0.0f : weight, P);
  if (h >= a.heads) return {-1.0f, {0.0f, MLA_NEG_INF}};
  return {weight, mla_row_factor_of(a, h, top, total)};
}

/* Grid: x token, y heads; a.waves a block, as many beside each other as a row
   has stretches, then the next heads. */
template <int DT, int N, int P>
MLA_KERNEL mla_merge_few(mla_merge_args a, int stretches) {
  enum { ROWS = MLA_MERGE_LOADS / P };
  const int t = (int)blockIdx.x, token = a.token0 + t;
  if (a.start && token >= a.start[a.requests * a.start_step]) return;
  const int group = MLA_WAVE_ID / stretches, groups = a.waves / stretches;
  const int h0 = ((int)blockIdx.y * groups + group) * ROWS;
  const int stretch = MLA_WAVE_ID - group * stretches;
  const int d = (stretch * MLA_WAVE + MLA_LANE) * N;
  const int part = MLA_LANE % P, h = h0 + MLA_LANE / P % ROWS;
  float own = MLA_NEG_INF;
  if (h < a.heads) own = mla_part_lse(a, part, t, h);
  uint32_t v[ROWS][P][mla_some<DT, N>::words];
  const int64_t from = t * a.p_token + h0 * a.p_head + d;
  MLA_UNROLL
  for (int r = 0; r < ROWS; r++) MLA_UNROLL
  for (int s = 0; s < P; s++)
    if (s < a.count && h0 + r < a.heads && d < a.dv)
      mla_merge_load<DT, N>(a, from + r * a.p_head + s * a.p_part, v[r][s]);
  const mla_few_weight w = mla_weigh_few<P>(a, own, h);
  MLA_UNROLL
  for (int r = 0; r < ROWS; r++) {
    float sum[N] = {};
    MLA_UNROLL
    for (int s = 0; s < P; s++) {
      const float weight = MLA_SHFL(w.weight, r * P + s);
      if (weight < 0.0f || d >= a.dv) continue;
      for (int c = 0; c < N; c++)
        sum[c] += weight * mla_some<DT, N>::at(v[r][s], c);
    }
    const float keep = MLA_SHFL(w.row.keep, r * P);
    for (int c = 0; c < N; c++) sum[c] *= keep;
    if (h0 + r < a.heads && d < a.dv)
      mla_put_any(a.out, a.out_dtype,
                  token * a.o_token + (h0 + r) * a.o_head + d, sum);
  }
  if (a.lse && !stretch && !part && MLA_LANE < ROWS * P && h < a.heads)
    mla_put_row_lse(a, token, h, w.row.lse);
}

#endif
