/*
 * mla_decode_merge_sm90.cuh - pieces of split requests joined.
 */
#ifndef MLA_DECODE_MERGE_SM90_CUH
#define MLA_DECODE_MERGE_SM90_CUH

#include "sm90_decode_out.h"

/* Sums of an item's warps, this one's first, added in order: the bits do not
   depend on who came first. */
MLA_DEV void sm90_sum_warps(sm90_sum &sum, const sm90_sum (&shared)[8][32],
                            int warps) {
  sm90_sum all[8];
  float top[2] = {MLA_NEG_INF, MLA_NEG_INF};
#pragma unroll
  for (int g = 0; g < 8; g++) {
    all[g] = {{0, 0, 0, 0}, {MLA_NEG_INF, MLA_NEG_INF}, {0, 0}};
    if (g < warps) all[g] = shared[(MLA_WAVE_ID + g) % 8][MLA_LANE];
    top[0] = fmaxf(top[0], all[g].top[0]);
    top[1] = fmaxf(top[1], all[g].top[1]);
  }
  sum = {{0, 0, 0, 0}, {top[0], top[1]}, {0, 0}};
#pragma unroll
  for (int g = 0; g < 8; g++) {
    float by[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      by[r] = sm90_exp2(all[g].top[r] - sm90_base(top[r]));
      sum.weight[r] += by[r] * all[g].weight[r];
    }
    sm90_weigh(sum.value, all[g].value, by);
  }
}

/*
 * Grid: z tile of 64 rows, y entry of a.splits, x items of a tile, each of as
 * many of a block's 8 warps as `share` it. `warps` of a tile have rows.
 */
static __global__ void __launch_bounds__(256)
    mla_decode_merge_sm90(const mla_sm90_args a, int warps, int share) {
  __shared__ sm90_sum shared[8][32];
  pdl_launch();
  pdl_wait();
  const mla_plan_split split = a.splits[blockIdx.y];
  const int item = ((int)blockIdx.x * 8 + MLA_WAVE_ID) / share;
  const int mine = MLA_WAVE_ID % share;
  const sm90_slice x =
      sm90_slice_of((int)blockIdx.z, (int)gridDim.z, item, warps);
  sm90_sum sum = sm90_sum_pieces(a, split, x, split.part + mine, share);
  if (share > 1) {
    shared[MLA_WAVE_ID][MLA_LANE] = sum;
    __syncthreads();
    if (mine) return;
    sm90_sum_warps(sum, shared, share);
  }
  sm90_put_merged(a, split, x, sum);
}
#endif
