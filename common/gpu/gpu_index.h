/*
 * gpu_index.h - the selector's logits, portable:
 * logit_j = sum_h w_h * relu(q_h . k_j) over index keys in a paged cache.
 *
 * A block takes 64 keys of one token, 32 heads at a time: 2 keys x 4 heads a
 * thread. Sums run over 64 columns, then over those sums.
 */
#ifndef MLA_GPU_INDEX_H
#define MLA_GPU_INDEX_H

#include "gpu_index_args.h"

enum {
  MLA_INDEX_THREADS = 256,
  MLA_INDEX_KEYS = 64,
  MLA_INDEX_HEADS = 32,
  MLA_INDEX_COLUMNS = 64,
  MLA_INDEX_GROUPS = MLA_INDEX_HEADS / 4 /* of heads, by threads */
};

/* Columns [d0, d0 + 64) of the keys from j0 on, by all waves. */
MLA_DEV void mla_index_load_keys(const mla_index_args &a, int request,
                                 int64_t j0, int64_t n, int d0,
                                 float (*to)[MLA_INDEX_COLUMNS + 1]) {
  const int waves = MLA_INDEX_THREADS / MLA_WAVE;
  for (int j = MLA_WAVE_ID; j < MLA_INDEX_KEYS; j += waves) {
    if (j0 + j >= n) continue; /* nobody uses what stands there */
    const int64_t id = a.table[request * a.table_row + (j0 + j) / a.block_size];
    const int64_t offset = (j0 + j) % a.block_size;
    const int64_t at = id * a.block + offset * a.row;
    const mla_entry_place p = mla_entry_at(a.entry, a.cache, id, offset, 0);
    for (int d = MLA_LANE; d < MLA_INDEX_COLUMNS && d0 + d < a.width;
         d += MLA_WAVE)
      to[j][d] = a.entry.scaled
                     ? mla_entry_value(a.entry, p, d0 + d, a.compute)
                     : mla_load_any(a.cache, a.cache_dtype, at + d0 + d);
  }
}

MLA_DEV void mla_index_load_queries(const mla_index_args &a, int64_t token,
                                    int h0, int d0,
                                    float (*to)[MLA_INDEX_COLUMNS]) {
  for (int i = MLA_TID; i < MLA_INDEX_HEADS * MLA_INDEX_COLUMNS;
       i += MLA_INDEX_THREADS) {
    const int h = h0 + i / MLA_INDEX_COLUMNS, d = i % MLA_INDEX_COLUMNS;
    if (h < a.heads && d0 + d < a.width)
      to[i / MLA_INDEX_COLUMNS][d] = mla_load_any(
          a.q, a.q_dtype, token * a.q_token + h * a.q_head + d0 + d);
  }
}

/* Grid: x token, y blocks that share its keys. */
MLA_KERNEL mla_index_logits(mla_index_args a) {
  MLA_SHARED_TILE(float, q, MLA_INDEX_HEADS, MLA_INDEX_COLUMNS);
  MLA_SHARED_TILE(float, k, MLA_INDEX_KEYS, MLA_INDEX_COLUMNS + 1);
  MLA_SHARED_TILE(float, sums, MLA_INDEX_GROUPS, MLA_INDEX_KEYS);
  const int64_t local = blockIdx.x;
  const int token = a.token0 + (int)local;
  int request;
  const int64_t n = mla_index_visible(a, token, &request);
  if (n < 0) return;
  const int key = MLA_TID % 32, group = MLA_TID / 32;
  float *row = a.logits + local * a.row_len;
  for (int64_t j0 = (int64_t)blockIdx.y * MLA_INDEX_KEYS; j0 < a.columns;
       j0 += a.blocks * MLA_INDEX_KEYS) {
    float sum[2] = {0, 0};
    for (int h0 = 0; h0 < a.heads && j0 < n; h0 += MLA_INDEX_HEADS) {
      const int h = h0 + group * 4;
      float dot[2][4] = {};
      for (int d0 = 0; d0 < a.width; d0 += MLA_INDEX_COLUMNS) {
        const int columns =
            a.width - d0 < MLA_INDEX_COLUMNS ? a.width - d0 : MLA_INDEX_COLUMNS;
        float part[2][4] = {};
        MLA_BARRIER();
        mla_index_load_keys(a, request, j0, n, d0, k);
        mla_index_load_queries(a, token, h0, d0, q);
        MLA_BARRIER();
        for (int d = 0; h < a.heads && d < columns; d++) {
          const float near = k[key][d], far = k[key + 32][d];
          for (int i = 0; i < 4; i++) {
            const float qd = q[group * 4 + i][d];
            part[0][i] += qd * near;
            part[1][i] += qd * far;
          }
        }
        for (int i = 0; i < 4; i++) {
          dot[0][i] += part[0][i];
          dot[1][i] += part[1][i];
        }
      }
      for (int i = 0; i < 4; i++) {
        if (h + i >= a.heads) continue;
        const float w = a.weights[token * a.weights_token + h + i];
        sum[0] += w * (dot[0][i] > 0 ? dot[0][i] : 0.0f);
        sum[1] += w * (dot[1][i] > 0 ? dot[1][i] : 0.0f);
      }
    }
    MLA_BARRIER();
    sums[group][key] = sum[0];
    sums[group][key + 32] = sum[1];
    MLA_BARRIER();
    const int64_t j = j0 + MLA_TID;
    if (MLA_TID >= MLA_INDEX_KEYS || j >= a.columns) continue;
    float logit = 0;
    for (int g = 0; g < MLA_INDEX_GROUPS; g++) logit += sums[g][MLA_TID];
    row[j] = j < n ? logit : MLA_NEG_INF;
  }
}

#endif
