/*
 * mla_product_thin_sm90.cuh - out[b][m][n] = sum_k a[b][m][k] x w[b][k][n] of
 * few rows m, bf16 or f16, f32 sums, for sm_90a: what counts is that weights
 * come as fast as memory gives them.
 *
 * Products are turned over: 64 or 128 columns n are an instruction's rows, and
 * 16 to 128 rows of a its columns. A warp brings boxes of 64 of K, by the copy
 * engine, for one warpgroup or two. A cluster's CTAs have a share of K each,
 * where columns alone are too few for the card; what they have is added in
 * order through their shared memory.
 */
#ifndef MLA_PRODUCT_THIN_SM90_CUH
#define MLA_PRODUCT_THIN_SM90_CUH

#include "sm90_async.h"
#include "sm90_cluster.h"
#include "sm90_num.h"

typedef struct mla_thin_args {
  void *out;
  int64_t o_batch, o_m; /* strides */
  int m, n;             /* n a multiple of 8 */
  int steps, stages;    /* boxes of K; of them in shared memory at once */
} mla_thin_args;

enum { THIN_MOST_STAGES = 10, THIN_MOST_SPLITS = 8 };

/* Rows: columns of out, a CTA; Tokens: rows of a. */
template <int Rows, int Tokens>
struct thin_of {
  enum {
    Groups = Rows / 64,
    Threads = 128 * Groups + 32,
    Weights = Rows * 128,
    Stage = Weights + Tokens * 128,
    /* Two CTAs a unit; and three, where they are more than that. */
    Stages = 96 * 1024 / Stage < THIN_MOST_STAGES ? 96 * 1024 / Stage
                                                  : THIN_MOST_STAGES,
    FewStages = Tokens <= 32 ? 62 * 1024 / Stage : (int)Stages,
    Line = (Rows + 4) * 4, /* of a row's sums, so that lanes meet no bank */
    Sums = Tokens * Line
  };
};

/* A CTA's place: its columns, rows and head; its boxes of K; the ring. */
typedef struct thin_state {
  uint32_t ring, bars;
  int n0, m0, head;
  int split, splits;
  int from, to;
} thin_state;

MLA_DEV uint32_t thin_full(const thin_state &s, int stage) {
  return s.bars + 16 * stage;
}
MLA_DEV uint32_t thin_empty(const thin_state &s, int stage) {
  return s.bars + 16 * stage + 8;
}

/* Where a stage is in its ring. */
typedef struct thin_turn {
  int stage;
  uint32_t parity;
} thin_turn;
MLA_DEV void thin_next(thin_turn &t, int stages) {
  if (++t.stage == stages) t.stage = 0, t.parity ^= 1;
}

template <int Rows>
MLA_DEV thin_state thin_begin(const mla_thin_args &p, uint32_t raw,
                              uint32_t bars) {
  thin_state s;
  s.ring = (raw + 1023) & ~1023u;
  s.bars = bars;
  s.split = cluster_rank();
  s.splits = cluster_size();
  s.n0 = (int)blockIdx.x / s.splits * Rows;
  s.head = (int)blockIdx.z;
  s.from = p.steps * s.split / s.splits;
  s.to = p.steps * (s.split + 1) / s.splits;
  return s;
}

/* Columns: w has rows of K, each with its n one after another; else rows of n,
   each with its K. Weights are read once, or soon again by other rows of a. */
template <int Rows, int Tokens, int Columns>
MLA_DEV void thin_bring(const mla_thin_args &p, const thin_state &s,
                        const CUtensorMap *w, const CUtensorMap *a) {
  typedef thin_of<Rows, Tokens> of;
  const uint64_t policy = gridDim.y > 1 ? l2_stays() : l2_goes_first();
  thin_turn t = {0, 1};
  for (int i = s.from; i < s.to; i++, thin_next(t, p.stages)) {
    const uint32_t to = s.ring + t.stage * of::Stage;
    const uint32_t full = thin_full(s, t.stage);
    mbar_wait(thin_empty(s, t.stage), t.parity);
    mbar_expect(full, of::Stage);
    if (Columns)
      for (int g = 0; g < of::Groups; g++)
        tma_load_3d(to + 8192 * g, w, s.n0 + 64 * g, 64 * i, s.head, full,
                    policy);
    else
      tma_load_3d(to, w, 64 * i, s.n0, s.head, full, policy);
    tma_load_3d(to + of::Weights, a, 64 * i, s.head, s.m0, full);
  }
}

template <int Rows, int Tokens, int Columns>
MLA_DEV void thin_multiply(const mla_thin_args &p, const thin_state &s,
                           float (&acc)[Tokens / 2]) {
  typedef thin_of<Rows, Tokens> of;
  const int group = (int)threadIdx.x / 128, speaks = threadIdx.x % 128 == 0;
  thin_turn t = {0, 0};
  int last = -1; /* the stage that is still being read */
  for (int i = s.from; i < s.to; i++, thin_next(t, p.stages)) {
    const uint32_t at = s.ring + t.stage * of::Stage;
    const uint64_t w = wgmma_rows(at + 8192 * group);
    const uint64_t a = wgmma_rows(at + of::Weights);
    mbar_wait(thin_full(s, t.stage), t.parity);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++)
      wgmma_m64_ss<Columns>(acc, w + (Columns ? 128 : 2) * k, a + 2 * k,
                            i - s.from + k > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (speaks && last >= 0) mbar_arrive(thin_empty(s, last));
    last = t.stage;
  }
  wgmma_wait<0>();
  wgmma_hold(acc);
}

/* This warpgroup's sums, row by row of out. */
template <int Rows, int Tokens>
MLA_DEV void thin_put_sums(const thin_state &s, int live,
                           const float (&acc)[Tokens / 2]) {
  const int lane = MLA_LANE;
  const uint32_t at = s.ring + 4 * (uint32_t)(MLA_WAVE_ID * 16 + lane / 4) +
                      (uint32_t)(lane % 4 * 2) * thin_of<Rows, Tokens>::Line;
#pragma unroll
  for (int i = 0; i < Tokens / 2; i++) {
    const int token = i / 4 * 8 + i % 2;
    if (token + lane % 4 * 2 < live)
      store_shared(at + token * thin_of<Rows, Tokens>::Line + i / 2 % 2 * 32,
                   acc[i]);
  }
}

/* Four columns of a row, of all CTAs of the cluster. */
MLA_DEV float4 thin_sum(uint32_t at, int splits) {
  float4 x[THIN_MOST_SPLITS];
  float4 sum = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < THIN_MOST_SPLITS; i++)
    if (i < splits) x[i] = cluster_load(cluster_address(at, i));
#pragma unroll
  for (int i = 0; i < THIN_MOST_SPLITS; i++) {
    if (i >= splits) break;
    sum.x += x[i].x;
    sum.y += x[i].y;
    sum.z += x[i].z;
    sum.w += x[i].w;
  }
  return sum;
}

template <int Rows, int Tokens>
MLA_DEV void thin_put(const mla_thin_args &p, const thin_state &s, int live) {
  typedef thin_of<Rows, Tokens> of;
  uint16_t *out = (uint16_t *)p.out + s.head * p.o_batch + s.m0 * p.o_m + s.n0;
  const int wide = Rows / 4;
  for (int i = s.split * of::Threads + MLA_TID; i < live * wide;
       i += s.splits * of::Threads) {
    const int token = i / wide, at = i % wide;
    if (s.n0 + 4 * at >= p.n) continue;
    const uint32_t from = s.ring + token * of::Line + 16 * at;
    const float4 v =
        s.splits > 1 ? thin_sum(from, s.splits) : load_shared_4(from);
    *(uint2 *)(out + token * p.o_m + 4 * at) =
        make_uint2(sm90_pack(v.x, v.y), sm90_pack(v.z, v.w));
  }
}

template <int Rows, int Tokens, int Columns>
static __global__ void __launch_bounds__(thin_of<Rows, Tokens>::Threads, 2)
    MLA_SM90_NAME(mla_product_thin)(const __grid_constant__ CUtensorMap w,
                                    const __grid_constant__ CUtensorMap a,
                                    const mla_thin_args p) {
  typedef thin_of<Rows, Tokens> of;
  extern __shared__ unsigned char raw[];
  __shared__ uint64_t bars[2 * THIN_MOST_STAGES];
  thin_state s = thin_begin<Rows>(p, smem_address(raw), smem_address(bars));
  s.m0 = (int)blockIdx.y * Tokens;
  const int live = p.m - s.m0 < Tokens ? p.m - s.m0 : Tokens;
  if (threadIdx.x == 0) {
    for (int i = 0; i < p.stages; i++) {
      mbar_init(thin_full(s, i), 1);
      mbar_init(thin_empty(s, i), of::Groups);
    }
    mbar_init_fence();
  }
  __syncthreads();
  pdl_launch();
  const int brings = threadIdx.x >= 128 * of::Groups;
  float acc[Tokens / 2];
  if (brings) {
    if (MLA_LANE == 0) {
      pdl_wait();
      thin_bring<Rows, Tokens, Columns>(p, s, &w, &a);
    }
    __syncwarp();
  } else {
    pdl_wait();
    thin_multiply<Rows, Tokens, Columns>(p, s, acc);
  }
  __syncthreads(); /* the ring is free for sums */
  if (!brings) thin_put_sums<Rows, Tokens>(s, live, acc);
  cluster_sync(); /* all sums are there */
  thin_put<Rows, Tokens>(p, s, live);
  cluster_sync(); /* nobody reads them any more */
}

#endif
