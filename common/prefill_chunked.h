/*
 * prefill_chunked.h - what the two files of chunked prefill share.
 */
#ifndef MLA_PREFILL_CHUNKED_H
#define MLA_PREFILL_CHUNKED_H

#include "compose_internal.h"

/* Parts. */
enum {
  MLA_CHUNK_NEW,     /* what new tokens see of each other */
  MLA_CHUNK_GATHER,  /* a chunk's latents and rope keys */
  MLA_CHUNK_PROJECT, /* its latents by kv_b_proj */
  MLA_CHUNK_ROPE,    /* a head's keys put together */
  MLA_CHUNK_ATTEND,
  MLA_CHUNK_JOIN, /* to what there is */
  MLA_CHUNK_LAST  /* the same, to the outputs */
};

/* Places, mla_composed.at. */
enum {
  MLA_CHUNK_NEW_LENS,
  MLA_CHUNK_SLOTS,
  MLA_CHUNK_TABLE,
  MLA_CHUNK_SEGMENTS,
  MLA_CHUNK_LATENT, /* [chunk, L + R] */
  MLA_CHUNK_KV,     /* [chunk, H * (P + V)] */
  MLA_CHUNK_K,      /* [chunk, H, P + R] */
  MLA_CHUNK_OUTS,   /* [3, N, H, V] */
  MLA_CHUNK_LSES    /* [3, N, H] */
};

/* Numbers, mla_composed.size. */
enum {
  MLA_CHUNK_TOKENS, /* of a chunk, at most */
  MLA_CHUNK_BLOCKS, /* pages of it */
  MLA_CHUNK_UNIT    /* numbers from an index array to the next */
};

/* The index arrays of a chunk. */
enum {
  MLA_CHUNK_SPAN,
  MLA_CHUNK_START,
  MLA_CHUNK_LENGTH,
  MLA_CHUNK_ROWS,
  MLA_CHUNK_ARRAYS
};

/* H * (P + V), P + V, P + R */
static inline int64_t mla_chunk_head(const mla_composed *c) {
  return (int64_t)c->problem.qk_nope_head_dim + c->problem.v_head_dim;
}
static inline int64_t mla_chunk_kv(const mla_composed *c) {
  return c->problem.num_heads * mla_chunk_head(c);
}
static inline int64_t mla_chunk_key(const mla_composed *c) {
  return (int64_t)c->problem.qk_nope_head_dim + c->problem.qk_rope_head_dim;
}

/* Rows of request b, and its context if it has any. */
static inline int32_t mla_chunk_rows(const mla_step *s, int64_t b) {
  return s->query_start_loc[b + 1] - s->query_start_loc[b];
}
static inline int64_t mla_chunk_context(const mla_step *s, int64_t b) {
  int64_t rows = mla_chunk_rows(s, b);
  return rows ? s->seq_lens[b] - rows : 0;
}

/* Fills the index arrays of a step and sends them. */
mla_status mla_chunk_upload(mla_composed *c, const mla_compose_call *call,
                            mla_error *err);
mla_status mla_chunk_run(mla_composed *c, const mla_compose_call *call,
                         mla_error *err);

#endif
