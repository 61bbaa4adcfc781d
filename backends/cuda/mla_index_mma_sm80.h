/*
 * mla_index_mma_sm80.h - the selector's logits on the matrix
 * units of sm_80 and later, from keys and queries as sm80_index_keys.h has
 * them.
 *
 * A warp multiplies 32 keys, rows of A, by all heads, columns of B; the next
 * 32 are on their way meanwhile. Queries lie in shared memory as B has them.
 * Sums over heads are a lane's, then its three neighbours'.
 */
#ifndef MLA_INDEX_MMA_SM80_H
#define MLA_INDEX_MMA_SM80_H

#include "sm80_index_keys.h"

enum {
  SM80_INDEX_KEYS = 128, /* of a block at once, 32 a warp */
  SM80_INDEX_CHUNKS = 8, /* of a lane's four keys */
  SM80_INDEX_BYTES = 2 * SM80_INDEX_CHUNKS * SM80_INDEX_THREADS * 16
};

typedef sm80_index_four sm80_index_b[SM80_INDEX_HEADS][32];

MLA_DEV void sm80_index_multiply(int heads,
                                 const uint32_t (&key)[2][SM80_INDEX_STEPS][4],
                                 const sm80_index_b &q, const float *weight,
                                 float (&sum)[4]) {
  SM80_UNROLL
  for (int i = 0; i < 4; i++) sum[i] = 0;
  for (int h = 0; h < heads; h += 8) {
    float dot[2][4] = {};
    SM80_UNROLL
    for (int s = 0; s < SM80_INDEX_STEPS; s++) {
      const sm80_index_four b = q[h + s][MLA_LANE];
      SM80_MMA(MLA_F16, key[0][s], b.word, dot[0]);
      SM80_MMA(MLA_F16, key[1][s], b.word, dot[1]);
    }
    const float *w = weight + h + MLA_LANE % 4 * 2;
    SM80_UNROLL
    for (int i = 0; i < 4; i++)
      sum[i] = sm80_index_weigh(sum[i], w[0], w[1], &dot[i / 2][i % 2 * 2]);
  }
}

/* Grid: x token, y blocks that share its keys. fills: what is not visible
   becomes -inf. */
template <int DT>
SM80_KERNEL(SM80_INDEX_THREADS, 4)
mla_index_mma(mla_index_args a, sm80_index_pages pages, int fills) {
  MLA_DYNAMIC_SHARED(sm80_chunk, pool);
  MLA_SHARED_TILE(sm80_index_four, q, SM80_INDEX_HEADS, 32);
  MLA_SHARED_TILE(float, weight, 1, SM80_INDEX_HEADS);
  const int64_t local = blockIdx.x;
  const int token = a.token0 + (int)local, lane = MLA_LANE;
  int request;
  const int n = mla_index_visible(a, token, &request);
  float *row = a.logits + local * a.row_len;
  if (n < 0) return;
  if (fills) sm80_index_fill(row, n, a.columns, a.blocks);
  if (n == 0) return;
  const int32_t *table = a.table + request * a.table_row;
  sm80_index_queries<DT>(
      a, token, weight[0], [&](int h, const sm80_index_four &v) {
        q[h / 8 * 8 + lane / 16 * 4 + lane % 4][h % 8 * 4 + lane % 16 / 4] = v;
      });
  MLA_BARRIER();
  sm80_chunk(*raw)[32] =
      (sm80_chunk(*)[32])pool + 2 * SM80_INDEX_CHUNKS * MLA_WAVE_ID;
  const int step = (int)a.blocks * SM80_INDEX_KEYS;
  int j = (int)blockIdx.y * SM80_INDEX_KEYS + 32 * MLA_WAVE_ID, stage = 0;
  float next[4] = {};
  sm80_index_place<4> place = sm80_index_find<4>(pages, table, j, n);
  if (j < n) sm80_index_bring(pages, place, raw, next);
  SM80_COMMIT();
  place = sm80_index_find<4>(pages, table, j + step, n);
  for (; j < n; j += step, stage ^= 1) {
    const float scale[4] = {next[0], next[1], next[2], next[3]};
    uint32_t keys[2][SM80_INDEX_STEPS][4];
    float sum[4];
    if (j + step < n)
      sm80_index_bring(pages, place, raw + (stage ^ 1) * SM80_INDEX_CHUNKS,
                       next);
    SM80_COMMIT();
    place = sm80_index_find<4>(pages, table, j + 2 * step, n);
    SM80_WAIT(1);
    sm80_index_open(raw + stage * SM80_INDEX_CHUNKS, scale, keys);
    sm80_index_multiply(a.heads, keys, q, weight[0], sum);
    SM80_UNROLL
    for (int i = 0; i < 4; i++) sum[i] = sm80_index_logit(sum[i], scale[i]);
    sm80_index_put(row, j, n, sum);
  }
  SM80_WAIT(0);
}

#endif
