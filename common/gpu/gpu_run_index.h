/*
 * gpu_run_index.h - the selector on the host side: logits, then the largest;
 * and positions to slots.
 *
 * Logits that nobody asked for lie in the workspace, a slice of tokens at a
 * time; a token's choice does not depend on where a slice ends.
 */
#ifndef MLA_GPU_RUN_INDEX_H
#define MLA_GPU_RUN_INDEX_H

#include "gpu_map.h"
#include "gpu_run_attend.h"
#include "gpu_topk.h"

static inline int64_t mla_gpu_index_slice(const mla_limits *l) {
  int64_t n =
      MLA_GPU_PARTIAL_FLOATS / (l->max_seq_len > 0 ? l->max_seq_len : 1);
  if (n < 1) n = 1;
  return n < l->tokens ? n : (l->tokens > 0 ? l->tokens : 1);
}

/* f32 of the workspace. */
static inline int64_t mla_gpu_index_floats(const mla_problem *p,
                                           const mla_limits *l) {
  if (p->flags & MLA_RETURN_LOGITS) return 0;
  return mla_gpu_index_slice(l) * (l->max_seq_len > 0 ? l->max_seq_len : 1);
}

static inline mla_index_args mla_gpu_index_args(const mla_gpu_call *c) {
  const mla_tensor *cache = mla_arg(c->args, MLA_T_CACHE);
  const mla_tensor *logits = mla_arg(c->args, MLA_T_LOGITS);
  mla_index_args a = {};
  a.q = mla_gpu_data(c, MLA_T_Q);
  a.q_token = mla_gpu_stride(c, MLA_T_Q, 0);
  a.q_head = mla_gpu_stride(c, MLA_T_Q, 1);
  a.q_dtype = c->p->q_dtype;
  a.weights = (const float *)mla_gpu_data(c, MLA_T_INDEX_WEIGHTS);
  a.weights_token = mla_gpu_stride(c, MLA_T_INDEX_WEIGHTS, 0);
  a.cache = cache->data;
  a.cache_dtype = cache->dtype;
  a.block_size = c->p->block_size;
  a.block = cache->stride[0];
  a.row = cache->stride[1];
  a.entry = mla_gpu_entry(c, MLA_T_CACHE);
  a.compute = a.q_dtype;
  mla_gpu_requests(c, &a);
  a.heads = c->p->num_heads;
  a.width = mla_problem_head_dim(c->p);
  a.logits = logits ? (float *)logits->data : (float *)c->workspace;
  a.columns = logits ? logits->shape[1] : c->plan->limits.max_seq_len;
  a.row_len = logits ? logits->stride[0] : a.columns;
  a.blocks = (a.columns + MLA_INDEX_KEYS - 1) / MLA_INDEX_KEYS;
  if (a.blocks > 65535) a.blocks = 65535;
  return a;
}

/* Logits of so many tokens from a.token0 on. */
typedef mla_status (*mla_gpu_logits)(const mla_gpu_call *c,
                                     const mla_index_args &a, unsigned tokens);

static mla_status mla_gpu_index_logits(const mla_gpu_call *c,
                                       const mla_index_args &a,
                                       unsigned tokens) {
  MLA_LAUNCH(mla_index_logits, dim3(tokens, (unsigned)a.blocks),
             dim3(MLA_INDEX_THREADS), 0, c->stream, a);
  return mla_gpu_launched(c, "index_logits");
}

/* The largest of so many rows of logits. */
typedef mla_status (*mla_gpu_choice)(const mla_gpu_call *c,
                                     const mla_index_args &a, unsigned tokens);

static mla_status mla_gpu_index_choice(const mla_gpu_call *c,
                                       const mla_index_args &a,
                                       unsigned tokens) {
  const mla_tensor *positions = mla_arg(c->args, MLA_T_POSITIONS);
  MLA_LAUNCH(mla_topk_rows, dim3(tokens), dim3(MLA_TOPK_THREADS), 0, c->stream,
             a, (int32_t *)positions->data, positions->stride[0], c->p->topk);
  return mla_gpu_launched(c, "topk_rows");
}

static mla_status mla_gpu_index_by(const mla_gpu_call *c, mla_gpu_logits logits,
                                   mla_gpu_choice choice) {
  const int64_t tokens = mla_arg(c->args, MLA_T_Q)->shape[0];
  const int keeps = (c->p->flags & MLA_RETURN_LOGITS) != 0;
  const int64_t slice = keeps ? tokens : mla_gpu_index_slice(&c->plan->limits);
  mla_index_args a = mla_gpu_index_args(c);
  for (int64_t t = 0; t < tokens; t += slice) {
    const unsigned n = (unsigned)(tokens - t < slice ? tokens - t : slice);
    a.token0 = (int)t;
    mla_status st = logits(c, a, n);
    if (st != MLA_OK) return st;
    st = choice(c, a, n);
    if (st != MLA_OK) return st;
  }
  return MLA_OK;
}

static mla_status mla_gpu_index(const mla_gpu_call *c) {
  return mla_gpu_index_by(c, mla_gpu_index_logits, mla_gpu_index_choice);
}

static mla_status mla_gpu_map_indices(const mla_gpu_call *c) {
  const mla_tensor *positions = mla_arg(c->args, MLA_T_POSITIONS);
  const mla_tensor *table = mla_arg(c->args, MLA_T_BLOCK_TABLE);
  mla_map_args a = {};
  a.positions = (const int32_t *)positions->data;
  a.positions_row = positions->stride[0];
  a.table = (const int32_t *)table->data;
  a.table_row = table->stride[0];
  a.table_width = table->shape[1];
  a.start = (const int32_t *)mla_gpu_data(c, MLA_T_QUERY_START_LOC);
  a.start_step = mla_gpu_stride(c, MLA_T_QUERY_START_LOC, 0);
  a.slots = (int32_t *)mla_gpu_data(c, MLA_T_INDICES);
  a.slots_row = mla_gpu_stride(c, MLA_T_INDICES, 0);
  a.requests = (int)table->shape[0];
  a.topk = c->p->topk;
  a.block_size = c->p->block_size;
  MLA_LAUNCH(mla_map_rows, dim3((unsigned)positions->shape[0]),
             dim3(MLA_MAP_THREADS), 0, c->stream, a);
  return mla_gpu_launched(c, "map_rows");
}

#endif
