/*
 * mla_decode_merge_sm90.cuh - pieces of split requests joined.
 */
#ifndef MLA_DECODE_MERGE_SM90_CUH
#define MLA_DECODE_MERGE_SM90_CUH

#include "sm90_decode_out.h"

enum { SM90_MERGE_THREADS = 256, SM90_MERGE_WARPS = 8 };
enum { SM90_PRACTICE_ROWS = 1 << 20 }; /* every tile has some */
static_assert((int)MLA_SM90_MOST_PARTS <= (int)SM90_MERGE_THREADS,
              "a thread an entry");

/* How entries fall into items, 16 rows of some slices of a tile each. */
typedef struct mla_sm90_merge_grid {
  int entries, tiles; /* tiles of 64 rows of a request */
  int slices, warps;  /* of a tile, and those that have rows */
  int share;          /* warps of a block an item: where items are few */
} mla_sm90_merge_grid;

/* Sums of an item's warps, this one's first, added in order: the bits do not
   depend on who came first. */
template <int AtOnce, int Slices>
MLA_DEV void sm90_sum_warps(
    sm90_sum<Slices> &sum,
    const sm90_sum<Slices> (&shared)[SM90_MERGE_WARPS][32], int warps) {
  /* With registers for it no load waits for another: those of warps that there
     are not are the first's. */
  const int loads = AtOnce ? (int)SM90_MERGE_WARPS : warps;
  const sm90_sum<Slices>(*const from)[32] = shared + MLA_WAVE_ID;
  sm90_sum_begin(sum);
#pragma unroll
  for (int g = 0; g < SM90_MERGE_WARPS; g++) {
    if (g >= loads) break;
    const sm90_sum<Slices> &one = from[g < warps ? g : 0][MLA_LANE];
    sum.top[0] = fmaxf(sum.top[0], one.top[0]);
    sum.top[1] = fmaxf(sum.top[1], one.top[1]);
  }
#pragma unroll
  for (int g = 0; g < SM90_MERGE_WARPS; g++) {
    if (g >= loads) break;
    const sm90_sum<Slices> one = from[g < warps ? g : 0][MLA_LANE];
    float by[2];
    if (g >= warps) continue;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      by[r] = sm90_exp2(one.top[r] - sm90_base(sum.top[r]));
      sum.weight[r] += by[r] * one.weight[r];
    }
#pragma unroll
    for (int k = 0; k < Slices; k++) sm90_weigh(sum.value[k], one.value[k], by);
  }
}

/* Past the first-level cache, which would keep what practice has seen. */
MLA_DEV mla_plan_split sm90_split_of(const mla_sm90_args &a, int entry) {
  const int4 v = __ldcg((const int4 *)a.splits + entry);
  return {v.x, v.y, v.z, v.w};
}

/* What there is of an item, joined and put by one of its warps; or a piece of
   nothing, which only brings the code. */
template <class Tile>
MLA_DEV void sm90_merge_item(
    const mla_sm90_args &a, const mla_sm90_merge_grid &g,
    sm90_sum<Tile::Each> (&shared)[SM90_MERGE_WARPS][32], const sm90_slice &x,
    int practice) {
  mla_plan_split split = sm90_split_of(a, (int)blockIdx.y);
  const int mine = MLA_WAVE_ID % g.share;
  if (practice) split = {0, SM90_PRACTICE_ROWS, 0, 0};
  sm90_sum<Tile::Each> sum;
  sm90_sum_pieces<Tile>(a, split, x, split.part + mine, g.share, sum);
  if (practice) split.rows = 0;
  if (g.share > 1) {
    shared[MLA_WAVE_ID][MLA_LANE] = sum;
    __syncthreads();
    if (mine) return;
    sm90_sum_warps<1>(sum, shared, g.share);
  }
  sm90_put_merged<Tile>(a, split, x, sum);
}

/* Few items: grid z tile, y entry, x items of a tile. Where the kernel ahead
   leaves room the code comes before that has ended. */
template <class Tile>
static __global__ void __maxnreg__(Tile::Registers)
    mla_decode_merge_few_sm90(const mla_sm90_args a,
                              const mla_sm90_merge_grid g) {
  __shared__ sm90_sum<Tile::Each> shared[SM90_MERGE_WARPS][32];
  pdl_launch();
  const int item = ((int)blockIdx.x * SM90_MERGE_WARPS + MLA_WAVE_ID) / g.share;
  const sm90_slice x = sm90_slice_of<Tile>(
      a, (int)blockIdx.z, g.tiles, item / g.warps * Tile::Each, item % g.warps);
#pragma unroll 1
  for (int practice = Tile::Practises; practice >= 0; practice--) {
    if (!practice) pdl_wait();
    sm90_merge_item<Tile>(a, g, shared, x, practice);
    if (practice) __syncthreads();
  }
}

/* Entries that are split, in order. */
typedef struct sm90_splits {
  mla_plan_split of[SM90_MERGE_THREADS];
  int warp[SM90_MERGE_WARPS]; /* how many each warp found */
} sm90_splits;

/* A thread an entry; how many there are. */
MLA_DEV int sm90_find_splits(const mla_sm90_args &a, int entries,
                             sm90_splits &s) {
  const int at = (int)threadIdx.x, warp = MLA_WAVE_ID;
  mla_plan_split split = {0, 0, 0, 0};
  if (at < entries) split = sm90_split_of(a, at);
  const unsigned live = __ballot_sync(0xffffffffu, split.rows > 0);
  if (MLA_LANE == 0) s.warp[warp] = __popc(live);
  __syncthreads();
  int before = 0, all = 0;
#pragma unroll
  for (int i = 0; i < SM90_MERGE_WARPS; i++) {
    if (i < warp) before += s.warp[i];
    all += s.warp[i];
  }
  if (split.rows > 0)
    s.of[before + __popc(live & ((1u << MLA_LANE) - 1))] = split;
  __syncthreads();
  return all;
}

/* Warps an item, as a shift: more than one where few requests are split, and
   each of those may be in many parts. */
MLA_DEV int sm90_merge_shift(int items) {
  const int warps = (int)gridDim.x * SM90_MERGE_WARPS;
  int shift = 0;
  while (1 << shift < SM90_MERGE_WARPS && items << (shift + 1) <= warps)
    shift++;
  return shift;
}

/* Where an item of what is split is. */
typedef struct sm90_item {
  int entry;
  sm90_slice of;
} sm90_item;

template <class Tile, int Slices>
MLA_DEV sm90_item sm90_item_of(const mla_sm90_args &a,
                               const mla_sm90_merge_grid &g, int each, int i) {
  const int a_tile = each / g.tiles, at = i % a_tile;
  return {i / each, sm90_slice_of<Tile>(a, i % each / a_tile, g.tiles,
                                        at / g.warps * Slices, at % g.warps)};
}

/*
 * Many: blocks, as many as there is room for at once, take items of what is
 * split in turn, so that the rest costs nothing. Of an entry there are at
 * least 8 items, so that a block's warps share theirs with no other block.
 */
template <class Tile, int Slices>
static __global__ void __maxnreg__(Tile::Registers)
    mla_decode_merge_many_sm90(const mla_sm90_args a,
                               const mla_sm90_merge_grid g) {
  __shared__ sm90_splits splits;
  __shared__ sm90_sum<Slices> shared[SM90_MERGE_WARPS][32];
  pdl_launch();
  const int each = g.slices / Slices * g.warps * g.tiles;
  const int first = (int)blockIdx.x * SM90_MERGE_WARPS + MLA_WAVE_ID;
  const int likely = sm90_merge_shift(g.entries * each); /* if all are split */
  sm90_item x = sm90_item_of<Tile, Slices>(a, g, each, first >> likely);
#pragma unroll 1
  for (int practice = Tile::Practises; practice >= 0; practice--) {
    if (!practice) pdl_wait();
    const int found = sm90_find_splits(a, g.entries, splits) * each;
    const int all = practice ? first + 1 : found;
    const int shift = practice ? 0 : sm90_merge_shift(all);
    const int share = 1 << shift, mine = MLA_WAVE_ID & (share - 1);
    if (!practice && shift != likely)
      x = sm90_item_of<Tile, Slices>(a, g, each, first >> shift);
#pragma unroll 1
    for (int n = first; n < all << shift;) {
      mla_plan_split split = splits.of[practice ? 0 : x.entry];
      if (practice) split = {0, SM90_PRACTICE_ROWS, 0, 0};
      sm90_sum<Slices> sum;
      sm90_sum_pieces<Tile>(a, split, x.of, split.part + mine, share, sum);
      if (practice) split.rows = 0;
      if (share > 1) { /* there is one turn only */
        shared[MLA_WAVE_ID][MLA_LANE] = sum;
        __syncthreads();
        if (mine) return;
        sm90_sum_warps<0>(sum, shared, share);
      }
      sm90_put_merged<Tile>(a, split, x.of, sum);
      n += (int)gridDim.x * SM90_MERGE_WARPS;
      if (n < all << shift)
        x = sm90_item_of<Tile, Slices>(a, g, each, n >> shift);
    }
    if (practice) __syncthreads();
  }
}
#endif
