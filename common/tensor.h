/*
 * tensor.h - offsets and small helpers for mla_tensor.
 */
#ifndef MLA_TENSOR_H
#define MLA_TENSOR_H

#include "mla/mla.h"

/* Offsets in elements, 64-bit throughout. */
static inline int64_t mla_at1(const mla_tensor *t, int64_t i) {
  return i * t->stride[0];
}
static inline int64_t mla_at2(const mla_tensor *t, int64_t i, int64_t j) {
  return i * t->stride[0] + j * t->stride[1];
}
static inline int64_t mla_at3(const mla_tensor *t, int64_t i, int64_t j,
                              int64_t k) {
  return i * t->stride[0] + j * t->stride[1] + k * t->stride[2];
}
static inline int64_t mla_at4(const mla_tensor *t, int64_t i, int64_t j,
                              int64_t k, int64_t l) {
  return mla_at3(t, i, j, k) + l * t->stride[3];
}

/* A dense row-major view; data may be NULL. */
mla_tensor mla_tensor_dense(void *data, int32_t dtype, int32_t rank,
                            const int64_t *shape);
/* Product of the shape; -1 on overflow of int64. */
int64_t mla_tensor_count(const mla_tensor *t);
/* Bytes from data to the end of the last element; -1 on overflow. */
int64_t mla_tensor_extent(const mla_tensor *t);

#endif
