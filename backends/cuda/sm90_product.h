/*
 * sm90_product.h - products for the operations that are made of them.
 */
#ifndef MLA_SM90_PRODUCT_H
#define MLA_SM90_PRODUCT_H

#include "sm90_tensor_map.h"

/* A matrix in boxes of 64 columns and so many rows. */
static inline mla_status mla_sm90_map_rows(const mla_tensor *t, uint32_t rows,
                                           CUtensorMap *map, mla_error *err) {
  const uint64_t size[2] = {(uint64_t)t->shape[1], (uint64_t)t->shape[0]};
  const uint64_t stride[1] = {(uint64_t)t->stride[0] * 2};
  const uint32_t box[2] = {64, rows};
  return mla_tensor_map(map, t->data, 2, size, stride, box, MLA_TENSOR_PAIRS,
                        err);
}

/*
 * out[M,N] = a[M,K] x b[N,K]^T, all of SM90_TYPE and of even walk, K a
 * multiple of 64; *counter (or NULL) becomes 0. live (or NULL): whether 128
 * rows of a are wanted.
 */
mla_status MLA_SM90_NAME(mla_launch_product)(const mla_gpu_call *c,
                                             const mla_tensor *a,
                                             const mla_tensor *b,
                                             const mla_tensor *out,
                                             int *counter, const int *live);

#endif
