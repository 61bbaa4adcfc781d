/*
 * mla_decode_merge_sm90.cuh - pieces of split requests joined.
 */
#ifndef MLA_DECODE_MERGE_SM90_CUH
#define MLA_DECODE_MERGE_SM90_CUH

#include "sm90_decode_rows.h"

/* The weighted sum of a row's pieces; a lane has columns 4 * lane + 128 * i. */
typedef struct sm90_sum {
  float4 value[4];
  float weight;
} sm90_sum;

MLA_DEV void sm90_add(float4 &to, const float4 &v, float by) {
  to.x += by * v.x;
  to.y += by * v.y;
  to.z += by * v.z;
  to.w += by * v.w;
}

/* Pieces from, from + step, ... of a row. */
MLA_DEV sm90_sum sm90_sum_pieces(const mla_sm90_args &a,
                                 const mla_plan_split &split, int from,
                                 int step, int64_t row, int64_t rows,
                                 float top) {
  sm90_sum sum = {};
#pragma unroll 2
  for (int p = from; p <= split.last_part; p += step) {
    const int64_t piece = mla_plan_piece(p, split.part) * rows + row;
    const float4 *v = (const float4 *)(a.part_out + piece * 512) + MLA_LANE;
    const float weight = exp2f(a.part_lse[piece] - top);
    sum.weight += weight;
#pragma unroll
    for (int i = 0; i < 4; i++) sm90_add(sum.value[i], v[32 * i], weight);
  }
  return sum;
}

/* Warps' sums added in order: the bits do not depend on who came first. */
MLA_DEV void sm90_sum_warps(sm90_sum &sum, sm90_sum (&shared)[8][32]) {
  shared[MLA_WAVE_ID][MLA_LANE] = sum;
  __syncthreads();
  for (int g = 1; g < 8 && MLA_WAVE_ID == 0; g++) {
    const sm90_sum &other = shared[g][MLA_LANE];
    sum.weight += other.weight;
#pragma unroll
    for (int i = 0; i < 4; i++) sm90_add(sum.value[i], other.value[i], 1.0f);
  }
}

/* Largest lse of a row's pieces, by every warp for itself. */
MLA_DEV float sm90_top_piece(const mla_sm90_args &a,
                             const mla_plan_split &split, int64_t row,
                             int64_t rows) {
  float top = MLA_NEG_INF;
  for (int p = split.part + MLA_LANE; p <= split.last_part; p += 32)
    top = fmaxf(top, a.part_lse[mla_plan_piece(p, split.part) * rows + row]);
  return mla_wave_max(top);
}

MLA_DEV void sm90_put_merged(const mla_sm90_args &a,
                             const mla_plan_split &split, int row, float top,
                             const sm90_sum &sum) {
  const int empty = top == MLA_NEG_INF;
  const float lse = empty ? MLA_NEG_INF : top + log2f(sum.weight);
  const int64_t token = split.first_token + row / a.heads;
  const int64_t head = row % a.heads;
  const float keep = empty ? 0.0f : sm90_sink(a, head, lse) / sum.weight;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float4 v = sum.value[i];
    v.x *= keep, v.y *= keep, v.z *= keep, v.w *= keep;
    sm90_put4(a.out, a.out_dtype,
              token * a.o_token + head * a.o_head + 4 * MLA_LANE + 128 * i, v);
  }
  if (MLA_LANE == 0) sm90_put_lse(a, token, head, lse);
}

/*
 * Pieces of split requests joined. Grid: y entry of a.splits; x rows, one for
 * all 8 warps of a block (wide: many pieces a row) or one a warp.
 */
static __global__ void __launch_bounds__(256)
    mla_decode_merge_sm90(const mla_sm90_args a, int m_blocks, int wide) {
  __shared__ sm90_sum shared[8][32];
  pdl_launch();
  pdl_wait();
  const mla_plan_split split = a.splits[blockIdx.y];
  const int row = wide ? (int)blockIdx.x : (int)blockIdx.x * 8 + MLA_WAVE_ID;
  if (row >= split.rows) return;
  const int64_t rows = (int64_t)m_blocks * 64;
  const float top = sm90_top_piece(a, split, row, rows);
  sm90_sum sum =
      sm90_sum_pieces(a, split, split.part + (wide ? MLA_WAVE_ID : 0),
                      wide ? 8 : 1, row, rows, sm90_base(top));
  if (wide) sm90_sum_warps(sum, shared);
  if (!wide || MLA_WAVE_ID == 0) sm90_put_merged(a, split, row, top, sum);
}
#endif
