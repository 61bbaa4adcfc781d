/*
 * gpu_host_attend.h - what attention is given, from a call.
 */
#ifndef MLA_GPU_HOST_ATTEND_H
#define MLA_GPU_HOST_ATTEND_H

#include "gpu_attend.h"
#include "gpu_host_list.h"

static inline int64_t mla_gpu_splits(const mla_problem *p,
                                     const mla_limits *l) {
  int64_t n = (mla_gpu_most_keys(p, l) + 511) / 512;
  if (n > MLA_ATTEND_MAX_SPLITS) n = MLA_ATTEND_MAX_SPLITS;
  return n < 1 ? 1 : n;
}

/* Whose tokens and pages these are: attention's arguments, or the index's. */
template <class Args>
static inline void mla_gpu_requests(const mla_gpu_call *c, Args *a) {
  a->table = (const int32_t *)mla_gpu_data(c, MLA_T_BLOCK_TABLE);
  a->table_row = mla_gpu_stride(c, MLA_T_BLOCK_TABLE, 0);
  a->seq_lens = (const int32_t *)mla_gpu_data(c, MLA_T_SEQ_LENS);
  a->seq_lens_step = mla_gpu_stride(c, MLA_T_SEQ_LENS, 0);
  a->start = (const int32_t *)mla_gpu_data(c, MLA_T_QUERY_START_LOC);
  a->start_step = mla_gpu_stride(c, MLA_T_QUERY_START_LOC, 0);
  a->requests = (int)mla_arg(c->args, MLA_T_SEQ_LENS)->shape[0];
}

/* What decode and prefill have in common. */
static inline mla_attend_args mla_gpu_attend_args(const mla_gpu_call *c) {
  mla_attend_args a = {};
  const mla_problem *p = c->p;
  a.cache = mla_gpu_data(c, MLA_T_CACHE);
  a.k_entry = mla_gpu_entry(c, MLA_T_CACHE);
  a.compute = p->q_dtype;
  a.k_block = mla_gpu_stride(c, MLA_T_CACHE, 0);
  a.k_row = mla_gpu_stride(c, MLA_T_CACHE, 1);
  mla_gpu_requests(c, &a);
  a.heads = p->num_heads;
  a.kv_heads = mla_problem_kv_heads(p);
  a.block_size = p->block_size > 0 ? p->block_size : 1;
  a.tokens = (int)mla_arg(c->args, MLA_T_Q)->shape[0];
  a.causal = (p->flags & MLA_CAUSAL) != 0;
  a.scale = (float)p->scale;
  a.cap = (float)p->logits_soft_cap;
  a.splits = (int)mla_gpu_splits(p, &c->plan->limits);
  return a;
}

#endif
