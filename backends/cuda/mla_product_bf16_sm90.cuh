/*
 * mla_product_bf16_sm90.cuh - out[M,N] = a[M,K] x b[N,K]^T in bf16 or f16, f32
 * sums, for sm_90a; of every head, or b[K,N] (columns).
 *
 * A CTA stays on its SM and walks tiles of 128 x 256 of out: a warp brings
 * boxes of 64 columns of K by the copy engine, two warpgroups own 64 rows
 * each. Finished tiles leave through shared memory and the copy engine, while
 * the next is multiplied.
 */
#ifndef MLA_PRODUCT_BF16_SM90_CUH
#define MLA_PRODUCT_BF16_SM90_CUH

#include "sm90_async.h"
#include "sm90_num.h"

typedef struct mla_product_sm90_args {
  int m, n, k; /* k a multiple of 64, n of 8 */
  int heads;
  int *counter;    /* set to 0: of the work that the next kernel hands out */
  const int *live; /* by 128 rows: whether they are wanted; NULL: all are */
} mla_product_sm90_args;

enum {
  PRODUCT_M = 128,
  PRODUCT_N = 256,
  PRODUCT_STAGES = 3,
  PRODUCT_A = PRODUCT_M * 64 * 2,
  PRODUCT_STAGE = PRODUCT_A + PRODUCT_N * 64 * 2,
  PRODUCT_OUT = PRODUCT_STAGES * PRODUCT_STAGE, /* four boxes a warpgroup */
  PRODUCT_BOX = 64 * 64 * 2,
  PRODUCT_BARS = PRODUCT_OUT + 8 * PRODUCT_BOX,
  PRODUCT_BYTES = PRODUCT_BARS + PRODUCT_STAGES * 16 + 1024, /* to align */
  PRODUCT_THREADS = 288
};

MLA_DEV uint32_t product_full(uint32_t smem, int stage) {
  return smem + PRODUCT_BARS + stage * 16;
}
MLA_DEV uint32_t product_empty(uint32_t smem, int stage) {
  return smem + PRODUCT_BARS + stage * 16 + 8;
}
/* Tiles, those of a column of out one after another. */
MLA_DEV int product_rows(const mla_product_sm90_args &p) {
  return (p.m + PRODUCT_M - 1) / PRODUCT_M;
}
MLA_DEV int product_columns(const mla_product_sm90_args &p) {
  return (p.n + PRODUCT_N - 1) / PRODUCT_N;
}
MLA_DEV int product_tiles(const mla_product_sm90_args &p) {
  return product_rows(p) * product_columns(p) * p.heads;
}

/* Where a tile begins. */
typedef struct product_place {
  int m0, n0, head;
} product_place;
MLA_DEV product_place product_at(const mla_product_sm90_args &p, int tile) {
  const int rows = product_rows(p), columns = product_columns(p);
  const int column = tile / rows;
  return {tile % rows * PRODUCT_M, column % columns * PRODUCT_N,
          column / columns};
}

MLA_DEV int product_wanted(const mla_product_sm90_args &p, int tile) {
  return !p.live || p.live[tile % product_rows(p)];
}

template <int Columns>
MLA_DEV void product_bring(const mla_product_sm90_args &p, uint32_t smem,
                           const CUtensorMap *a, const CUtensorMap *b) {
  const int tiles = product_tiles(p);
  int n = 0; /* stages filled so far */
  for (int t = (int)blockIdx.x; t < tiles; t += (int)gridDim.x) {
    if (!product_wanted(p, t)) continue;
    const product_place at = product_at(p, t);
    for (int k = 0; k < p.k; k += 64, n++) {
      const int stage = n % PRODUCT_STAGES;
      const uint32_t to = smem + stage * PRODUCT_STAGE;
      const uint32_t full = product_full(smem, stage);
      mbar_wait(product_empty(smem, stage), ((n / PRODUCT_STAGES) & 1) ^ 1);
      mbar_expect(full, PRODUCT_STAGE);
      tma_load_3d(to, a, k, at.head, at.m0, full);
      if (Columns) {
#pragma unroll
        for (int i = 0; i < 4; i++)
          tma_load_3d(to + PRODUCT_A + i * PRODUCT_BOX, b, at.n0 + 64 * i, k,
                      at.head, full);
      } else {
        tma_load_3d(to + PRODUCT_A, b, k, at.n0, at.head, full);
        tma_load_3d(to + 2 * PRODUCT_A, b, k, at.n0 + 128, at.head, full);
      }
    }
  }
}

/* n: stages used before. */
template <int Columns>
MLA_DEV void product_multiply(uint32_t smem, int n, int steps,
                              float (&acc)[128]) {
  const int half = (int)threadIdx.x / 128;
  for (int i = 0; i < steps; i++, n++) {
    const int stage = n % PRODUCT_STAGES;
    const uint32_t at = smem + stage * PRODUCT_STAGE;
    const uint64_t a = wgmma_rows(at + half * (PRODUCT_A / 2));
    const uint64_t b = Columns ? wgmma_columns(at + PRODUCT_A, PRODUCT_BOX)
                               : wgmma_rows(at + PRODUCT_A);
    mbar_wait(product_full(smem, stage), (n / PRODUCT_STAGES) & 1);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++)
      wgmma_m64n256k16_ss<Columns>(acc, a + 2 * k, b + (Columns ? 128 : 2) * k,
                                   i + k > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (i > 0 && threadIdx.x % 128 == 0)
      mbar_arrive(product_empty(smem, (n - 1) % PRODUCT_STAGES));
  }
  wgmma_wait<0>();
  wgmma_hold(acc);
  if (threadIdx.x % 128 == 0)
    mbar_arrive(product_empty(smem, (n - 1) % PRODUCT_STAGES));
}

/* To this warpgroup's boxes, swizzled as the copy engine reads them. */
MLA_DEV void product_stage_out(uint32_t boxes, const float (&acc)[128]) {
  const int lane = MLA_LANE;
  const int row = (int)threadIdx.x % 128 / 32 * 16 + lane % 16;
#pragma unroll
  for (int j = 0; j < 32; j += 2) {
    const int chunk = (j % 8 + lane / 16) ^ (row % 8);
    const float *x = &acc[4 * j];
    const uint32_t m[4] = {sm90_pack(x[0], x[1]), sm90_pack(x[2], x[3]),
                           sm90_pack(x[4], x[5]), sm90_pack(x[6], x[7])};
    store_matrices(boxes + j / 8 * PRODUCT_BOX + row * 128 + chunk * 16, m);
  }
}

MLA_DEV void product_store(uint32_t smem, const CUtensorMap *out,
                           const product_place &at, const float (&acc)[128]) {
  const int half = (int)threadIdx.x / 128, speaks = threadIdx.x % 128 == 0;
  const uint32_t boxes = smem + PRODUCT_OUT + half * 4 * PRODUCT_BOX;
  if (speaks) tma_store_wait_read();
  bar_sync(1 + half, 128);
  product_stage_out(boxes, acc);
  fence_async();
  bar_sync(1 + half, 128);
  if (!speaks) return;
#pragma unroll
  for (int i = 0; i < 4; i++)
    tma_store_3d(out, at.n0 + 64 * i, at.head, at.m0 + 64 * half,
                 boxes + i * PRODUCT_BOX);
  tma_store_commit();
}

template <int Columns>
static __global__ void __launch_bounds__(PRODUCT_THREADS, 1)
    MLA_SM90_NAME(mla_product)(const __grid_constant__ CUtensorMap a,
                               const __grid_constant__ CUtensorMap b,
                               const __grid_constant__ CUtensorMap out,
                               const mla_product_sm90_args p) {
  extern __shared__ unsigned char raw[];
  const uint32_t smem = (smem_address(raw) + 1023) & ~1023u;
  if (threadIdx.x == 0) {
    for (int i = 0; i < PRODUCT_STAGES; i++) {
      mbar_init(product_full(smem, i), 1);
      mbar_init(product_empty(smem, i), 2);
    }
    mbar_init_fence();
    if (p.counter && blockIdx.x == 0) *p.counter = 0;
  }
  __syncthreads();
  pdl_launch();
  if (MLA_WAVE_ID == 8) {
    if (MLA_LANE == 0) product_bring<Columns>(p, smem, &a, &b);
    return;
  }
  const int tiles = product_tiles(p), steps = p.k / 64;
  int n = 0;
  for (int t = (int)blockIdx.x; t < tiles; t += (int)gridDim.x) {
    if (!product_wanted(p, t)) continue;
    float acc[128];
    product_multiply<Columns>(smem, n, steps, acc);
    n += steps;
    product_store(smem, &out, product_at(p, t), acc);
  }
  tma_store_wait();
}

#endif
