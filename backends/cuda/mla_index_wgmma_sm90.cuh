/*
 * mla_index_wgmma_sm90.cuh - the selector's logits by warpgroup
 * products, for sm_90a, from keys and queries as sm80_index_keys.h has them.
 *
 * A block multiplies 64 keys, rows of A in registers, 16 a warp, by 64 heads,
 * columns of B: two boxes of 64 rows in shared memory, a head a row, swizzled.
 * The next two blocks of keys are on their way meanwhile. A lane keeps its
 * heads' weights.
 */
#ifndef MLA_INDEX_WGMMA_SM90_CUH
#define MLA_INDEX_WGMMA_SM90_CUH

#include "sm80_index_keys.h"
#include "sm90_async.h"

enum {
  SM90_INDEX_KEYS = 64,
  SM90_INDEX_CHUNKS = 4, /* of a lane's two keys */
  SM90_INDEX_STAGES = 3,
  SM90_INDEX_BOX = 64 * 128, /* bytes */
  SM90_INDEX_STAGE = SM90_INDEX_CHUNKS * SM80_INDEX_THREADS * 16,
  SM90_INDEX_BYTES =
      2 * SM90_INDEX_BOX + SM90_INDEX_STAGES * SM90_INDEX_STAGE + 1024
};

/* A lane's four columns of a head's row: of step s two pairs, 8 numbers apart,
   as A has them. */
MLA_DEV void sm90_index_put_query(unsigned char *boxes, int h,
                                  const sm80_index_four &v) {
  const int lane = MLA_LANE, step = lane / 16 * 4 + lane % 4;
  unsigned char *row = boxes + step / 4 * SM90_INDEX_BOX + h * 128;
  const int chunk = step % 4 * 2, at = lane % 16 / 4 * 4;
  *(uint32_t *)(row + ((chunk ^ h % 8) << 4) + at) = v.word[0];
  *(uint32_t *)(row + ((chunk + 1 ^ h % 8) << 4) + at) = v.word[1];
}

/* Scores of 64 keys. */
MLA_DEV void sm90_index_scores(const uint32_t (&key)[1][SM80_INDEX_STEPS][4],
                               uint64_t q, float (&dot)[32]) {
  wgmma_fence();
#pragma unroll
  for (int s = 0; s < SM80_INDEX_STEPS; s++)
    wgmma_m64n64k16_rs(dot, key[0][s],
                       wgmma_at(q, s / 4 * SM90_INDEX_BOX + s % 4 * 32), s > 0);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_hold(dot);
}

/* A lane's two keys' sums over its heads. */
MLA_DEV void sm90_index_sums(const float (&dot)[32], const float (&w)[16],
                             float (&sum)[2]) {
#pragma unroll
  for (int i = 0; i < 2; i++) sum[i] = 0;
#pragma unroll
  for (int j = 0; j < 8; j++)
#pragma unroll
    for (int i = 0; i < 2; i++)
      sum[i] =
          sm80_index_weigh(sum[i], w[2 * j], w[2 * j + 1], &dot[4 * j + 2 * i]);
}

/* Grid: x token, y blocks that share its keys. fills: what is not visible
   becomes -inf. */
template <int DT>
static __global__ void __launch_bounds__(SM80_INDEX_THREADS, 4)
    mla_index_wgmma(const mla_index_args a, const sm80_index_pages pages,
                    int fills) {
  extern __shared__ unsigned char pool[];
  __shared__ float weight[SM80_INDEX_HEADS];
  const int64_t local = blockIdx.x;
  const int token = a.token0 + (int)local;
  int request;
  pdl_launch(); /* what chooses among the logits */
  const int n = mla_index_visible(a, token, &request);
  float *row = a.logits + local * a.row_len;
  if (n < 0) return;
  if (fills) sm80_index_fill(row, n, a.columns, a.blocks);
  if (n == 0) return;
  const int32_t *table = a.table + request * a.table_row;
  unsigned char *boxes = pool + (1023 & -smem_address(pool));
  sm80_index_queries<DT>(a, token, weight,
                         [&](int h, const sm80_index_four &v) {
                           sm90_index_put_query(boxes, h, v);
                         });
  fence_async();
  __syncthreads();
  float w[16];
#pragma unroll
  for (int i = 0; i < 16; i++)
    w[i] = weight[i / 2 * 8 + MLA_LANE % 4 * 2 + i % 2];
  const uint64_t q = wgmma_rows(smem_address(boxes));
  sm80_chunk(*raw)[32] = (sm80_chunk(*)[32])(boxes + 2 * SM90_INDEX_BOX) +
                         SM90_INDEX_CHUNKS * MLA_WAVE_ID;
  enum { stage = SM90_INDEX_CHUNKS * SM80_INDEX_THREADS / 32 };
  const int step = (int)a.blocks * SM90_INDEX_KEYS, own = 16 * MLA_WAVE_ID;
  int j = (int)blockIdx.y * SM90_INDEX_KEYS;
  float next[2][2] = {};
  sm80_index_place<2> place = sm80_index_find<2>(pages, table, j + own, n);
  if (j < n) sm80_index_bring(pages, place, raw, next[0]);
  SM80_COMMIT();
  place = sm80_index_find<2>(pages, table, j + step + own, n);
  if (j + step < n) sm80_index_bring(pages, place, raw + stage, next[1]);
  SM80_COMMIT();
  place = sm80_index_find<2>(pages, table, j + 2 * step + own, n);
#pragma unroll 1
  for (int at = 0; j < n; j += step) {
    const float scale[2] = {next[0][0], next[0][1]};
    const int free = at == 0 ? 2 : at - 1;
    uint32_t keys[1][SM80_INDEX_STEPS][4];
    float dot[32], sum[2];
    next[0][0] = next[1][0], next[0][1] = next[1][1];
    if (j + 2 * step < n)
      sm80_index_bring(pages, place, raw + free * stage, next[1]);
    SM80_COMMIT();
    place = sm80_index_find<2>(pages, table, j + 3 * step + own, n);
    SM80_WAIT(2);
    sm80_index_open(raw + at * stage, scale, keys);
    sm90_index_scores(keys, q, dot);
    sm90_index_sums(dot, w, sum);
#pragma unroll
    for (int i = 0; i < 2; i++) sum[i] = sm80_index_logit(sum[i], scale[i]);
    sm80_index_put(row, j + own, n, sum);
    at = at == 2 ? 0 : at + 1;
  }
  SM80_WAIT(0);
}

#endif
