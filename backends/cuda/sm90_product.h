/*
 * sm90_product.h - products for the operations that are made of them.
 */
#ifndef MLA_SM90_PRODUCT_H
#define MLA_SM90_PRODUCT_H

#include "sm90_tensor_map.h"

/* out[m][h][n] = a[m][h][k] x w[h], which is [n][k], or [k][n] (columns). All
   of SM90_TYPE and of even walk. Strides in elements. */
typedef struct mla_sm90_product {
  const void *a, *w;
  void *out;
  int64_t heads, m, n, k;
  int columns;
  int64_t a_row, a_head, w_row, w_head, o_row, o_head;
} mla_sm90_product;

/* out[M,N] = a[M,K] x b[N,K]^T. */
static inline mla_sm90_product mla_sm90_product_of(const mla_tensor *a,
                                                   const mla_tensor *b,
                                                   const mla_tensor *out) {
  mla_sm90_product t = {};
  t.a = a->data;
  t.w = b->data;
  t.out = out->data;
  t.heads = 1;
  t.m = out->shape[0];
  t.n = out->shape[1];
  t.k = a->shape[1];
  t.a_row = a->stride[0];
  t.w_row = b->stride[0];
  t.o_row = out->stride[0];
  return t;
}

/* An axis of length 1 may have any stride. */
static inline uint64_t mla_sm90_step(int64_t length, int64_t stride) {
  return length > 1 ? (uint64_t)stride * 2 : 16;
}

/* Boxes of 64 of K and so many rows of n; or of 64 of n and 64 rows of K. */
static inline mla_status mla_sm90_map_weights(const mla_sm90_product &t,
                                              uint32_t rows, int miss,
                                              CUtensorMap *map,
                                              mla_error *err) {
  const int64_t inner = t.columns ? t.n : t.k, outer = t.columns ? t.k : t.n;
  const uint64_t size[3] = {(uint64_t)inner, (uint64_t)outer,
                            (uint64_t)t.heads};
  const uint64_t stride[2] = {mla_sm90_step(outer, t.w_row),
                              mla_sm90_step(t.heads, t.w_head)};
  const uint32_t box[3] = {64, t.columns ? 64 : rows, 1};
  return mla_tensor_map(map, t.w, 3, size, stride, box, miss, err);
}

/* Boxes of 64 columns and so many rows, of a head. */
static inline mla_status mla_sm90_map_rows(const void *data, int64_t columns,
                                           const mla_sm90_product &t,
                                           int64_t head, int64_t row,
                                           uint32_t rows, CUtensorMap *map,
                                           mla_error *err) {
  const uint64_t size[3] = {(uint64_t)columns, (uint64_t)t.heads,
                            (uint64_t)t.m};
  const uint64_t stride[2] = {mla_sm90_step(t.heads, head),
                              mla_sm90_step(t.m, row)};
  const uint32_t box[3] = {64, 1, rows};
  return mla_tensor_map(map, data, 3, size, stride, box, MLA_TENSOR_PAIRS, err);
}

/*
 * By tiles of 128 rows and 256 columns; k a multiple of 64, n of 8. *counter
 * (or NULL) becomes 0. live (or NULL): whether 128 rows of a are wanted.
 */
mla_status MLA_SM90_NAME(mla_launch_product)(const mla_gpu_call *c,
                                             const mla_sm90_product &t,
                                             int *counter, const int *live);

/* Where weights are what counts (mla_product_thin_sm90.cuh); n a multiple of
   8. */
mla_status MLA_SM90_NAME(mla_launch_thin)(const mla_gpu_call *c,
                                          const mla_sm90_product &t);

#endif
