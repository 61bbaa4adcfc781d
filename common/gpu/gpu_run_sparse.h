/*
 * gpu_run_sparse.h - sparse decode on the host side: two lists at most, then
 * the slices and merging of dense decode.
 */
#ifndef MLA_GPU_RUN_SPARSE_H
#define MLA_GPU_RUN_SPARSE_H

#include "gpu_run_attend.h"
#include "gpu_sparse.h"

static inline mla_sparse_args mla_gpu_sparse_args(const mla_gpu_call *c) {
  mla_sparse_args a = {};
  const mla_problem *p = c->p;
  a.q = mla_gpu_data(c, MLA_T_Q);
  a.q_token = mla_gpu_stride(c, MLA_T_Q, 0);
  a.q_head = mla_gpu_stride(c, MLA_T_Q, 1);
  a.q_dtype = p->q_dtype;
  a.main = mla_gpu_slot_list(c, MLA_T_CACHE, MLA_T_INDICES, MLA_T_TOPK_LEN);
  if (p->flags & MLA_EXTRA_CACHE)
    a.extra = mla_gpu_slot_list(c, MLA_T_EXTRA_CACHE, MLA_T_EXTRA_INDICES,
                                MLA_T_EXTRA_TOPK_LEN);
  a.compute = p->q_dtype;
  a.heads = p->num_heads;
  a.dk = mla_problem_head_dim(p);
  a.dv = mla_problem_v_dim(p);
  a.scale = (float)p->scale;
  a.cap = (float)p->logits_soft_cap;
  a.splits = (int)mla_gpu_splits(p, &c->plan->limits);
  return a;
}

template <int C>
static mla_status mla_gpu_sparse_launch(const mla_gpu_call *c,
                                        mla_sparse_args a, int tokens) {
  int bytes;
  const int waves = MLA_ATTEND_THREADS / c->plan->handle->wave;
  a.tile = mla_gpu_tile(a.dk, 0, &bytes);
  mla_status st = mla_gpu_shared(c, (const void *)mla_sparse_partial<C>, bytes,
                                 "sparse_partial");
  if (st != MLA_OK) return st;
  const dim3 grid((unsigned)tokens, (unsigned)((a.heads + waves - 1) / waves),
                  (unsigned)a.splits);
  MLA_LAUNCH(mla_sparse_partial<C>, grid, dim3(MLA_ATTEND_THREADS),
             (size_t)bytes, c->stream, a);
  return mla_gpu_launched(c, "sparse_partial");
}

static mla_status mla_gpu_sparse_slice(const mla_gpu_call *c,
                                       const mla_sparse_args &a, int tokens) {
  const int lanes = c->plan->handle->wave;
  if (a.dv <= 4 * lanes) return mla_gpu_sparse_launch<4>(c, a, tokens);
  if (a.dv <= 16 * lanes) return mla_gpu_sparse_launch<16>(c, a, tokens);
  return mla_gpu_sparse_launch<1024 / MLA_LEAST_WAVE>(c, a, tokens);
}

static mla_status mla_gpu_sparse(const mla_gpu_call *c) {
  mla_sparse_args a = mla_gpu_sparse_args(c);
  const int64_t tokens = mla_arg(c->args, MLA_T_Q)->shape[0];
  const int64_t slice = mla_gpu_slice(c->p, &c->plan->limits);
  mla_attend_args parts = {}; /* what merging asks of it; every row is one */
  parts.heads = a.heads;
  parts.dv = a.dv;
  parts.splits = a.splits;
  parts.part_out = a.part_out = (float *)c->workspace;
  parts.part_lse = a.part_lse = a.part_out + slice * a.heads * a.splits * a.dv;
  for (int64_t t = 0; t < tokens; t += slice) {
    const int n = (int)(tokens - t < slice ? tokens - t : slice);
    parts.token0 = a.token0 = (int)t;
    mla_status st = mla_gpu_sparse_slice(c, a, n);
    if (st == MLA_OK) st = mla_gpu_merge_out(c, parts, n);
    if (st != MLA_OK) return st;
  }
  return MLA_OK;
}

#endif
