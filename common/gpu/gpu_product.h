/*
 * gpu_product.h - out[b][m][n] = sum_k a[b][m][k] * w[b][n][k], any strides.
 *
 * Serves q_absorb, v_expand, matmul and the fused forms of absorb: they differ
 * in strides only. 64 x 64 outputs a block, 4 x 4 a thread, in f32; every 256
 * steps the running sums are put aside, so that no chain is long.
 */
#ifndef MLA_GPU_PRODUCT_H
#define MLA_GPU_PRODUCT_H

#include "gpu_num.h"

enum { MLA_PRODUCT_THREADS = 256, MLA_PRODUCT_TILE = 64, MLA_PRODUCT_K = 16 };

typedef struct mla_product_args {
  const void *a, *w;
  void *out;
  int a_dtype, w_dtype, out_dtype;
  int64_t a_batch, a_m, a_k;
  int64_t w_batch, w_n, w_k;
  int64_t o_batch, o_m, o_n;
  int64_t m, n, k;
  int64_t a_offset, w_offset, out_offset; /* elements: any type's */
  const int32_t *limit; /* rows from *limit - limit_base on are left alone */
  int64_t limit_base;
} mla_product_args;

MLA_DEV float mla_product_load(const void *p, int dtype, int64_t row,
                               int64_t rows, int64_t k, int64_t ks,
                               int64_t at) {
  return row < rows && k < ks ? mla_load_any(p, dtype, at) : 0.0f;
}

/* Grid: x tiles of n, y tiles of m, z batch. */
MLA_KERNEL mla_product_tile(mla_product_args p) {
  MLA_SHARED_TILE(float, a_tile, MLA_PRODUCT_K, MLA_PRODUCT_TILE + 1);
  MLA_SHARED_TILE(float, w_tile, MLA_PRODUCT_K, MLA_PRODUCT_TILE + 1);
  const int64_t n0 = (int64_t)blockIdx.x * MLA_PRODUCT_TILE;
  const int64_t m0 = (int64_t)blockIdx.y * MLA_PRODUCT_TILE;
  const int64_t batch = blockIdx.z;
  int64_t rows = p.m;
  if (p.limit && *p.limit - p.limit_base < rows) rows = *p.limit - p.limit_base;
  const int tm = MLA_TID / 16 * 4, tn = MLA_TID % 16 * 4;
  const int has_outputs = m0 + tm < rows && n0 + tn < p.n;
  float sum[4][4] = {}, total[4][4] = {};
  for (int64_t k0 = 0; k0 < p.k; k0 += MLA_PRODUCT_K) {
    for (int i = MLA_TID; i < MLA_PRODUCT_K * MLA_PRODUCT_TILE;
         i += MLA_PRODUCT_THREADS) {
      const int kk = i % MLA_PRODUCT_K, r = i / MLA_PRODUCT_K;
      const int64_t k = k0 + kk;
      a_tile[kk][r] = mla_product_load(
          p.a, p.a_dtype, m0 + r, rows, k, p.k,
          p.a_offset + batch * p.a_batch + (m0 + r) * p.a_m + k * p.a_k);
      w_tile[kk][r] = mla_product_load(
          p.w, p.w_dtype, n0 + r, p.n, k, p.k,
          p.w_offset + batch * p.w_batch + (n0 + r) * p.w_n + k * p.w_k);
    }
    MLA_BARRIER();
    for (int kk = 0; has_outputs && kk < MLA_PRODUCT_K; kk++) {
      float x[4], y[4];
      for (int i = 0; i < 4; i++) x[i] = a_tile[kk][tm + i];
      for (int j = 0; j < 4; j++) y[j] = w_tile[kk][tn + j];
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) sum[i][j] += x[i] * y[j];
    }
    MLA_BARRIER();
    if (k0 % 256 == 256 - MLA_PRODUCT_K)
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
          total[i][j] += sum[i][j];
          sum[i][j] = 0;
        }
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      if (m0 + tm + i < rows && n0 + tn + j < p.n)
        mla_store_any(p.out, p.out_dtype,
                      p.out_offset + batch * p.o_batch + (m0 + tm + i) * p.o_m +
                          (n0 + tn + j) * p.o_n,
                      total[i][j] + sum[i][j]);
}

#endif
