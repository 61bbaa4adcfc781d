/*
 * prefill_chunked.c - prefill over a cached context in bounded memory.
 *
 * What new tokens see of each other comes from prefill without a context.
 * The context of each request follows in chunks: gathered (kv_read),
 * up-projected (matmul), its keys put together with their rope parts (one
 * kv_write a head, into a cache of blocks of one), attended (decode with K and
 * V apart, a head of keys for each head), and merged to what there is.
 *
 * Chunks begin at multiples of the chunk, one request at a time: what mates do
 * changes no bit.
 */
#include "prefill_chunked.h"
#include "dtype.h"
#include "error.h"

#define DEFAULT_CHUNK 1024
#define PAGE 64 /* of the up-projected chunk, which is dense */

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* ------------------------------------------------------------- describing */

static int32_t plain_format(int32_t dtype) {
  for (int32_t f = MLA_CACHE_F64; f <= MLA_CACHE_BF16; f++)
    if (mla_format_dtype(f) == dtype) return f;
  return MLA_CACHE_NONE;
}

static mla_problem new_tokens(const mla_composed *c) {
  mla_problem p = mla_compose_partial(c);
  p.flags &= ~MLA_CONTEXT;
  p.cache_format = MLA_CACHE_NONE;
  p.block_size = 0;
  return p;
}

static mla_problem gather(const mla_composed *c) {
  mla_problem p = c->problem;
  p.op = MLA_OP_KV_READ;
  p.flags = 0;
  p.out_dtype = p.q_dtype;
  return p;
}

static mla_problem project(const mla_composed *c) {
  mla_problem p = mla_problem_init(MLA_OP_MATMUL);
  p.flags = c->problem.flags & MLA_BATCH_INVARIANT;
  p.q_dtype = p.out_dtype = c->problem.q_dtype;
  p.weight_dtype = c->problem.weight_dtype;
  p.q_lora_rank = c->problem.kv_lora_rank;
  p.hidden_size = (int32_t)mla_chunk_kv(c);
  return p;
}

static mla_problem put_rope(const mla_composed *c) {
  mla_problem p = mla_problem_init(MLA_OP_KV_WRITE);
  p.q_dtype = c->problem.q_dtype;
  p.cache_format = plain_format(p.q_dtype);
  p.kv_lora_rank = c->problem.qk_nope_head_dim;
  p.qk_rope_head_dim = c->problem.qk_rope_head_dim;
  p.block_size = 1;
  return p;
}

static mla_problem attend(const mla_composed *c) {
  mla_problem p = mla_compose_partial(c);
  p.op = MLA_OP_DECODE;
  p.flags = (p.flags & ~(MLA_CAUSAL | MLA_CONTEXT)) | MLA_SEPARATE_V;
  p.cache_format = plain_format(p.q_dtype);
  p.num_kv_heads = p.num_heads;
  p.head_dim = (int32_t)mla_chunk_key(c);
  p.v_dim = p.v_head_dim;
  p.block_size = (int32_t)least(PAGE, c->size[MLA_CHUNK_TOKENS]);
  return p;
}

static void set_chunk(mla_composed *c) {
  int64_t chunk = c->limits.context_chunk;
  if (chunk == 0) chunk = DEFAULT_CHUNK;
  c->size[MLA_CHUNK_TOKENS] = least(chunk, c->limits.max_seq_len);
  int64_t page = least(PAGE, c->size[MLA_CHUNK_TOKENS]);
  c->size[MLA_CHUNK_BLOCKS] = (c->size[MLA_CHUNK_TOKENS] + page - 1) / page;
}

static void add_part(mla_composed *c, const char *name, mla_problem p) {
  mla_compose_part *part = mla_compose_add(c, name, &p);
  mla_limits *l = &part->limits;
  switch (p.op) {
    case MLA_OP_KV_READ:
      l->requests = 1;
      l->tokens = l->max_seq_len = c->size[MLA_CHUNK_TOKENS];
      break;
    case MLA_OP_KV_WRITE:
      l->tokens = l->num_blocks = c->size[MLA_CHUNK_BLOCKS] * PAGE;
      break;
    case MLA_OP_MATMUL: l->tokens = c->size[MLA_CHUNK_TOKENS]; break;
    case MLA_OP_DECODE:
      l->requests = 1;
      l->tokens = l->max_query_len;
      l->max_seq_len = c->size[MLA_CHUNK_TOKENS];
      l->num_blocks = l->table_width = c->size[MLA_CHUNK_BLOCKS];
      break;
    case MLA_OP_MERGE: l->parts = 2; break;
    default: break;
  }
}

static mla_status describe(mla_composed *c, mla_error *err) {
  int32_t v = c->problem.v_head_dim;
  if (!(c->problem.flags & MLA_CONTEXT))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "flags",
                    "flags lack MLA_CONTEXT: without a context there is "
                    "nothing to chunk");
  if (mla_chunk_kv(c) > INT32_MAX)
    mla_compose_refuse(c, "num_heads: %lld up-projected columns, at most %d",
                       (long long)mla_chunk_kv(c), INT32_MAX);
  set_chunk(c);
  c->answer.numerics.u_mid = mla_unit_roundoff(c->problem.q_dtype);
  add_part(c, "the new tokens", new_tokens(c));
  add_part(c, "gathering", gather(c));
  add_part(c, "up-projection", project(c));
  add_part(c, "joining keys", put_rope(c));
  add_part(c, "a chunk", attend(c));
  add_part(c, "merging a chunk", mla_compose_merging(c, v, 0));
  add_part(c, "the last merge", mla_compose_merging(c, v, 1));
  return MLA_OK;
}

/* Views begin at rows and columns of tensors; a backend that wants more than
   an element's alignment cannot be handed them. */
static void refuse_strict(mla_composed *c) {
  const int32_t q = c->problem.q_dtype, wide = mla_compose_wide(c);
  const int32_t dtypes[MLA_COMPOSE_PARTS] = {wide, MLA_I32, q,   q,
                                             q,    wide,    wide};
  for (int32_t i = MLA_CHUNK_GATHER; i < c->part_count; i++)
    if (mla_compose_strict(&c->part[i], dtypes[i]))
      mla_compose_refuse(
          c,
          "%s: tensors must begin at multiples of %llu bytes, views of "
          "rows do not",
          c->part[i].name,
          (unsigned long long)c->part[i].answer.tensor_alignment);
  if (mla_compose_strict(&c->part[MLA_CHUNK_LAST], c->problem.out_dtype))
    mla_compose_refuse(
        c, "%s: out must begin at multiples of %llu bytes",
        c->part[MLA_CHUNK_LAST].name,
        (unsigned long long)c->part[MLA_CHUNK_LAST].answer.tensor_alignment);
}

static int64_t segments_of(const mla_composed *c, int64_t context) {
  return (context + c->size[MLA_CHUNK_TOKENS] - 1) / c->size[MLA_CHUNK_TOKENS];
}

static void lay_out(mla_composed *c) {
  const mla_problem *p = &c->problem;
  int32_t wide = mla_compose_wide(c);
  uint64_t size = (uint64_t)mla_dtype_bits(p->q_dtype) / 8;
  uint64_t rows = 3 * (uint64_t)c->limits.tokens * (uint64_t)p->num_heads;
  uint64_t keys = (uint64_t)c->size[MLA_CHUNK_BLOCKS] * PAGE;
  uint64_t wide_size = (uint64_t)mla_dtype_bits(wide) / 8;
  refuse_strict(c);
  c->size[MLA_CHUNK_UNIT] = mla_compose_padded(c, 2, MLA_I32);
  c->at[MLA_CHUNK_NEW_LENS] = mla_compose_reserve_index(
      c, (uint64_t)c->limits.requests, sizeof(int32_t));
  c->at[MLA_CHUNK_SLOTS] = mla_compose_reserve_index(c, keys, sizeof(int64_t));
  c->at[MLA_CHUNK_TABLE] = mla_compose_reserve_index(
      c, (uint64_t)c->size[MLA_CHUNK_BLOCKS], sizeof(int32_t));
  uint64_t segments = (uint64_t)segments_of(c, c->limits.max_seq_len);
  if (segments > UINT64_MAX / 2 / (uint64_t)c->limits.requests) segments = 0;
  c->at[MLA_CHUNK_SEGMENTS] = mla_compose_reserve_index(
      c, segments ? segments * (uint64_t)c->limits.requests : UINT64_MAX / 4,
      MLA_CHUNK_ARRAYS * (uint64_t)c->size[MLA_CHUNK_UNIT] * sizeof(int32_t));
  c->at[MLA_CHUNK_LATENT] = mla_compose_reserve(
      c, keys, (uint64_t)(p->kv_lora_rank + p->qk_rope_head_dim) * size);
  c->at[MLA_CHUNK_KV] =
      mla_compose_reserve(c, keys, (uint64_t)mla_chunk_kv(c) * size);
  c->at[MLA_CHUNK_K] = mla_compose_reserve(
      c, keys, (uint64_t)p->num_heads * (uint64_t)mla_chunk_key(c) * size);
  c->at[MLA_CHUNK_OUTS] =
      mla_compose_reserve(c, rows, (uint64_t)p->v_head_dim * wide_size);
  c->at[MLA_CHUNK_LSES] = mla_compose_reserve(c, rows, wide_size);
}

/* ---------------------------------------------------------- index arrays */

/* The k-th segment of request b of the step, which is its i-th in all. */
static void put_segment(const mla_composed *c, int32_t *array, int64_t length,
                        int64_t start, int32_t rows) {
  int64_t unit = c->size[MLA_CHUNK_UNIT];
  array[MLA_CHUNK_SPAN * unit] = 0;
  array[MLA_CHUNK_SPAN * unit + 1] = (int32_t)length;
  array[MLA_CHUNK_START * unit] = (int32_t)start;
  array[MLA_CHUNK_LENGTH * unit] = (int32_t)length;
  array[MLA_CHUNK_ROWS * unit] = 0;
  array[MLA_CHUNK_ROWS * unit + 1] = rows;
}

static void put_segments(const mla_composed *c, const mla_step *s) {
  int32_t *array = mla_compose_host(c, c->at[MLA_CHUNK_SEGMENTS]);
  for (int64_t b = 0; b < s->requests; b++) {
    int64_t context = mla_chunk_context(s, b),
            chunk = c->size[MLA_CHUNK_TOKENS];
    for (int64_t start = 0; start < context; start += chunk) {
      put_segment(c, array, least(chunk, context - start), start,
                  mla_chunk_rows(s, b));
      array += MLA_CHUNK_ARRAYS * c->size[MLA_CHUNK_UNIT];
    }
  }
}

mla_status mla_chunk_upload(mla_composed *c, const mla_compose_call *call,
                            mla_error *err) {
  int32_t *lens = mla_compose_host(c, c->at[MLA_CHUNK_NEW_LENS]);
  int64_t *slots = mla_compose_host(c, c->at[MLA_CHUNK_SLOTS]);
  int32_t *table = mla_compose_host(c, c->at[MLA_CHUNK_TABLE]);
  for (int64_t b = 0; b < call->step.requests; b++)
    lens[b] = mla_chunk_rows(&call->step, b);
  for (int64_t i = 0; i < c->size[MLA_CHUNK_TOKENS]; i++) slots[i] = i;
  for (int64_t i = 0; i < c->size[MLA_CHUNK_BLOCKS]; i++) table[i] = (int32_t)i;
  put_segments(c, &call->step);
  return mla_compose_upload(c, call, err);
}

const mla_composer mla_composer_chunked = {
    "chunked prefill", MLA_OP_PREFILL, describe, lay_out, NULL, mla_chunk_run};
