/*
 * gpu_index_args.h - what the selector's kernels are given.
 */
#ifndef MLA_GPU_INDEX_ARGS_H
#define MLA_GPU_INDEX_ARGS_H

#include "gpu_entry.h"
#include "gpu_request.h"

typedef struct mla_index_args {
  const void *q; /* element (t, h, d) at t * q_token + h * q_head + d */
  int64_t q_token, q_head;
  int q_dtype;
  const float *weights; /* (t, h) at t * weights_token + h */
  int64_t weights_token;
  const void *cache;
  int cache_dtype, block_size;
  int64_t block, row;
  mla_entry entry; /* where keys have scales */
  int compute;     /* what their products with codes are rounded to */
  const int32_t *table;
  int64_t table_row;
  const int32_t *seq_lens, *start;
  int64_t seq_lens_step, start_step;
  int requests, heads, width;
  int token0;      /* first token of this launch */
  float *logits;   /* row of token0 */
  int64_t row_len; /* floats from a row to the next */
  int64_t columns; /* of a row: those past the visible become -inf */
  int64_t blocks;  /* that share a row */
} mla_index_args;

/* Keys that a token sees; -1: a row of padding. */
MLA_DEV int mla_index_visible(const mla_index_args &a, int token,
                              int *request) {
  const int b = mla_request_at(a.start, a.start_step, a.requests, token);
  *request = b;
  if (b < 0) return -1;
  const int seq = a.seq_lens[b * a.seq_lens_step];
  const int n = seq - a.start[(b + 1) * a.start_step] + token + 1;
  return n < 0 ? 0 : n;
}

#endif
