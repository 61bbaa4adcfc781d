/*
 * sm90_even.h - tensors as the copy engine takes them, in 16-byte steps; and
 * copies of those that it does not. Bits that follow from a row's data alone
 * must not follow from how tensors lie: where that is asked for, kernels take
 * copies.
 */
#ifndef MLA_SM90_EVEN_H
#define MLA_SM90_EVEN_H

#include "gpu_run_copy.h"

extern "C" {
#include "tensor.h"
}

/* Where invariance is asked for, and there alone, tensors of any strides are
   taken. */
static inline void mla_sm90_even_promise(const mla_problem *p,
                                         mla_answer *answer) {
  answer->determinism = p->flags & MLA_BATCH_INVARIANT
                            ? MLA_DETERMINISM_BATCH_INVARIANT
                            : MLA_DETERMINISM_RUN_TO_RUN;
  answer->workspace_alignment = 256;
}

/* Does the copy engine take it? */
static inline int mla_sm90_even_walk(const mla_tensor *t) {
  for (int axis = 0; axis + 1 < t->rank; axis++)
    if (t->stride[axis] % 8) return 0;
  return (uintptr_t)t->data % 16 == 0;
}

/* Bytes of the workspace for a dense copy. */
static inline uint64_t mla_sm90_even_bytes(int64_t rows, int64_t width) {
  return (uint64_t)(rows * width * 2 + 255) / 256 * 256;
}

/* Of two or three axes, of one shape and type. */
static inline mla_status mla_sm90_copy_tensor(const mla_gpu_call *c,
                                              const mla_tensor &from,
                                              const mla_tensor &to) {
  const int k = from.rank - 1;
  mla_copy_args x = {};
  x.in = from.data;
  x.out = to.data;
  x.in_dtype = x.out_dtype = from.dtype;
  x.in_i = from.stride[0];
  x.in_j = from.stride[k - 1];
  x.out_i = to.stride[0];
  x.out_j = to.stride[k - 1];
  x.in_k = x.out_k = 1;
  x.count = from.shape[k];
  return mla_gpu_copy(c, x, from.shape[0], k > 1 ? from.shape[1] : 1);
}

/* The tensor, or one as large in the workspace; *at moves behind that. */
static inline mla_tensor mla_sm90_even_place(const mla_tensor &t,
                                             unsigned char **at) {
  if (mla_sm90_even_walk(&t)) return t;
  const mla_tensor to = mla_tensor_dense(*at, t.dtype, t.rank, t.shape);
  *at += mla_sm90_even_bytes(mla_tensor_count(&t) / t.shape[t.rank - 1],
                             t.shape[t.rank - 1]);
  return to;
}

/* The call's tensor, or a dense copy of it; *at moves behind that. */
static inline mla_status mla_sm90_even_tensor(const mla_gpu_call *c, int slot,
                                              unsigned char **at,
                                              mla_tensor *t) {
  const mla_tensor *from = mla_arg(c->args, slot);
  *t = mla_sm90_even_place(*from, at);
  return t->data == from->data ? MLA_OK : mla_sm90_copy_tensor(c, *from, *t);
}

#endif
