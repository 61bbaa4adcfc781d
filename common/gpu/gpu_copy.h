/*
 * gpu_copy.h - tensors of plain numbers to other places, types and strides.
 */
#ifndef MLA_GPU_COPY_H
#define MLA_GPU_COPY_H

#include "gpu_num.h"

enum { MLA_COPY_ROW_THREADS = 256 };

typedef struct mla_copy_args {
  const void *in;
  void *out;
  int in_dtype, out_dtype;
  int64_t in_i, in_j, in_k, out_i, out_j, out_k, count;
  int64_t in_offset;
} mla_copy_args;

/* A strided copy, rounding: out[i][j][k] = in[i][j][k]. Grid: x i, y j. */
MLA_KERNEL mla_copy_rows(mla_copy_args c) {
  const int64_t i = blockIdx.x, j = blockIdx.y;
  for (int64_t k = MLA_TID; k < c.count; k += MLA_COPY_ROW_THREADS)
    mla_store_any(
        c.out, c.out_dtype, i * c.out_i + j * c.out_j + k * c.out_k,
        mla_load_any(c.in, c.in_dtype,
                     c.in_offset + i * c.in_i + j * c.in_j + k * c.in_k));
}

#endif
