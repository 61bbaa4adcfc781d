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
#include <string.h>

#include "compose_internal.h"
#include "dtype.h"
#include "error.h"
#include "tensor.h"

#define DEFAULT_CHUNK 1024
#define PAGE 64 /* of the up-projected chunk, which is dense */

enum { NEW, GATHER, PROJECT, ROPE, ATTEND, JOIN, LAST }; /* parts */
enum {
  NEW_LENS,
  SLOTS,
  TABLE,
  SEGMENTS,
  LATENT,
  KV,
  K,
  OUTS,
  LSES
};                            /* c->at */
enum { CHUNK, BLOCKS, UNIT }; /* c->size */

/* The four index arrays of a segment, each aligned: UNIT numbers apart. */
enum { SPAN, START, LENGTH, ROWS, ARRAYS };

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t width_of_kv(const mla_composed *c) {
  return (int64_t)c->problem.num_heads *
         (c->problem.qk_nope_head_dim + c->problem.v_head_dim);
}

static int64_t key_width(const mla_composed *c) {
  return (int64_t)c->problem.qk_nope_head_dim + c->problem.qk_rope_head_dim;
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
  p.hidden_size = (int32_t)width_of_kv(c);
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
  p.head_dim = (int32_t)key_width(c);
  p.v_dim = p.v_head_dim;
  p.block_size = (int32_t)least(PAGE, c->size[CHUNK]);
  return p;
}

static void set_chunk(mla_composed *c) {
  int64_t chunk = c->limits.context_chunk;
  if (chunk == 0) chunk = DEFAULT_CHUNK;
  c->size[CHUNK] = least(chunk, c->limits.max_seq_len);
  int64_t page = least(PAGE, c->size[CHUNK]);
  c->size[BLOCKS] = (c->size[CHUNK] + page - 1) / page;
}

static void add_part(mla_composed *c, const char *name, mla_problem p) {
  mla_compose_part *part = mla_compose_add(c, name, &p);
  mla_limits *l = &part->limits;
  switch (p.op) {
    case MLA_OP_KV_READ:
      l->requests = 1;
      l->tokens = l->max_seq_len = c->size[CHUNK];
      break;
    case MLA_OP_KV_WRITE:
      l->tokens = l->num_blocks = c->size[BLOCKS] * PAGE;
      break;
    case MLA_OP_MATMUL: l->tokens = c->size[CHUNK]; break;
    case MLA_OP_DECODE:
      l->requests = 1;
      l->tokens = l->max_query_len;
      l->max_seq_len = c->size[CHUNK];
      l->num_blocks = l->table_width = c->size[BLOCKS];
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
  if (width_of_kv(c) > INT32_MAX)
    mla_compose_refuse(c, "num_heads: %lld up-projected columns, at most %d",
                       (long long)width_of_kv(c), INT32_MAX);
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
  for (int32_t i = GATHER; i < c->part_count; i++)
    if (mla_compose_strict(&c->part[i], dtypes[i]))
      mla_compose_refuse(
          c,
          "%s: tensors must begin at multiples of %llu bytes, views of "
          "rows do not",
          c->part[i].name,
          (unsigned long long)c->part[i].answer.tensor_alignment);
  if (mla_compose_strict(&c->part[LAST], c->problem.out_dtype))
    mla_compose_refuse(
        c, "%s: out must begin at multiples of %llu bytes", c->part[LAST].name,
        (unsigned long long)c->part[LAST].answer.tensor_alignment);
}

static int64_t segments_of(const mla_composed *c, int64_t context) {
  return (context + c->size[CHUNK] - 1) / c->size[CHUNK];
}

static void lay_out(mla_composed *c) {
  const mla_problem *p = &c->problem;
  int32_t wide = mla_compose_wide(c);
  uint64_t size = (uint64_t)mla_dtype_bits(p->q_dtype) / 8;
  uint64_t rows = 3 * (uint64_t)c->limits.tokens * (uint64_t)p->num_heads;
  uint64_t keys = (uint64_t)c->size[BLOCKS] * PAGE;
  uint64_t wide_size = (uint64_t)mla_dtype_bits(wide) / 8;
  refuse_strict(c);
  c->size[UNIT] = mla_compose_padded(c, 2, MLA_I32);
  c->at[NEW_LENS] = mla_compose_reserve_index(c, (uint64_t)c->limits.requests,
                                              sizeof(int32_t));
  c->at[SLOTS] = mla_compose_reserve_index(c, keys, sizeof(int64_t));
  c->at[TABLE] =
      mla_compose_reserve_index(c, (uint64_t)c->size[BLOCKS], sizeof(int32_t));
  uint64_t segments = (uint64_t)segments_of(c, c->limits.max_seq_len);
  if (segments > UINT64_MAX / 2 / (uint64_t)c->limits.requests) segments = 0;
  c->at[SEGMENTS] = mla_compose_reserve_index(
      c, segments ? segments * (uint64_t)c->limits.requests : UINT64_MAX / 4,
      ARRAYS * (uint64_t)c->size[UNIT] * sizeof(int32_t));
  c->at[LATENT] = mla_compose_reserve(
      c, keys, (uint64_t)(p->kv_lora_rank + p->qk_rope_head_dim) * size);
  c->at[KV] = mla_compose_reserve(c, keys, (uint64_t)width_of_kv(c) * size);
  c->at[K] = mla_compose_reserve(
      c, keys, (uint64_t)p->num_heads * (uint64_t)key_width(c) * size);
  c->at[OUTS] =
      mla_compose_reserve(c, rows, (uint64_t)p->v_head_dim * wide_size);
  c->at[LSES] = mla_compose_reserve(c, rows, wide_size);
}

/* ---------------------------------------------------------- index arrays */

static int32_t rows_of(const mla_step *s, int64_t b) {
  return s->query_start_loc[b + 1] - s->query_start_loc[b];
}

static int64_t context_of(const mla_step *s, int64_t b) {
  return rows_of(s, b) ? (int64_t)s->seq_lens[b] - rows_of(s, b) : 0;
}

/* The k-th segment of request b of the step, which is its i-th in all. */
static void put_segment(const mla_composed *c, int32_t *array, int64_t length,
                        int64_t start, int32_t rows) {
  int64_t unit = c->size[UNIT];
  array[SPAN * unit] = 0;
  array[SPAN * unit + 1] = (int32_t)length;
  array[START * unit] = (int32_t)start;
  array[LENGTH * unit] = (int32_t)length;
  array[ROWS * unit] = 0;
  array[ROWS * unit + 1] = rows;
}

static void put_segments(const mla_composed *c, const mla_step *s) {
  int32_t *array = mla_compose_host(c, c->at[SEGMENTS]);
  for (int64_t b = 0; b < s->requests; b++) {
    int64_t context = context_of(s, b), chunk = c->size[CHUNK];
    for (int64_t start = 0; start < context; start += chunk) {
      put_segment(c, array, least(chunk, context - start), start,
                  rows_of(s, b));
      array += ARRAYS * c->size[UNIT];
    }
  }
}

static mla_status upload(mla_composed *c, const mla_compose_call *call,
                         mla_error *err) {
  int32_t *lens = mla_compose_host(c, c->at[NEW_LENS]);
  int64_t *slots = mla_compose_host(c, c->at[SLOTS]);
  int32_t *table = mla_compose_host(c, c->at[TABLE]);
  for (int64_t b = 0; b < call->step.requests; b++)
    lens[b] = rows_of(&call->step, b);
  for (int64_t i = 0; i < c->size[CHUNK]; i++) slots[i] = i;
  for (int64_t i = 0; i < c->size[BLOCKS]; i++) table[i] = (int32_t)i;
  put_segments(c, &call->step);
  return mla_compose_upload(c, call, err);
}

/* ---------------------------------------------------------------- running */

/* One chunk of one request. */
typedef struct chunk {
  int64_t request, first, rows; /* rows of q */
  int64_t length;               /* entries */
  uint64_t index;               /* its arrays in the workspace */
} chunk;

static mla_tensor array_of(const mla_composed *c, const mla_compose_call *call,
                           const chunk *k, int which, int64_t length) {
  uint64_t at = k->index + (uint64_t)(which * c->size[UNIT]) * sizeof(int32_t);
  return mla_compose_vector(call, at, MLA_I32, length);
}

/* [slots,N,H,V] and [slots,N,H] of partial results: `count` from `slot`. */
static mla_tensor outs_of(const mla_composed *c, const mla_compose_call *call,
                          int64_t slot, int64_t count, int64_t first,
                          int64_t rows) {
  const int64_t shape[4] = {3, c->limits.tokens, c->problem.num_heads,
                            c->problem.v_head_dim};
  mla_tensor t =
      mla_compose_tensor(call, c->at[OUTS], mla_compose_wide(c), 4, shape);
  t.data =
      (unsigned char *)t.data + (slot * t.stride[0] + first * t.stride[1]) *
                                    (mla_dtype_bits(t.dtype) / 8);
  t.shape[0] = count;
  t.shape[1] = rows;
  return t;
}
static mla_tensor lses_of(const mla_composed *c, const mla_compose_call *call,
                          int64_t slot, int64_t count, int64_t first,
                          int64_t rows) {
  const int64_t shape[3] = {3, c->limits.tokens, c->problem.num_heads};
  mla_tensor t =
      mla_compose_tensor(call, c->at[LSES], mla_compose_wide(c), 3, shape);
  t.data =
      (unsigned char *)t.data + (slot * t.stride[0] + first * t.stride[1]) *
                                    (mla_dtype_bits(t.dtype) / 8);
  t.shape[0] = count;
  t.shape[1] = rows;
  return t;
}

/* Without the first axis, which has length 1. */
static mla_tensor only_part(mla_tensor t) {
  t.rank--;
  for (int axis = 0; axis < t.rank; axis++) {
    t.shape[axis] = t.shape[axis + 1];
    t.stride[axis] = t.stride[axis + 1];
  }
  return t;
}

static mla_status run_new(const mla_composed *c, const mla_compose_call *call,
                          mla_error *err) {
  static const int slots[] = {MLA_T_Q, MLA_T_KV_C, MLA_T_K_PE};
  mla_tensor tensor[MLA_T_COUNT] = {{0}};
  for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++)
    tensor[slots[i]] = mla_compose_rows(&call->tensor[slots[i]], 0, call->rows);
  tensor[MLA_T_KV_B_PROJ] = call->tensor[MLA_T_KV_B_PROJ];
  tensor[MLA_T_QUERY_START_LOC] = call->tensor[MLA_T_QUERY_START_LOC];
  tensor[MLA_T_SEQ_LENS] =
      mla_compose_vector(call, c->at[NEW_LENS], MLA_I32, call->step.requests);
  tensor[MLA_T_OUT] = only_part(outs_of(c, call, 0, 1, 0, call->rows));
  tensor[MLA_T_LSE] = only_part(lses_of(c, call, 0, 1, 0, call->rows));
  return mla_compose_run(c, call, NEW, tensor, err);
}

/* [length, L + R] */
static mla_tensor latent_of(const mla_composed *c, const mla_compose_call *call,
                            int64_t length) {
  const int64_t shape[2] = {
      length, (int64_t)c->problem.kv_lora_rank + c->problem.qk_rope_head_dim};
  return mla_compose_tensor(call, c->at[LATENT], c->problem.q_dtype, 2, shape);
}

/* Columns [first, first + count) of a matrix. */
static mla_tensor columns(mla_tensor t, int64_t first, int64_t count) {
  t.data = (unsigned char *)t.data + first * (mla_dtype_bits(t.dtype) / 8);
  t.shape[1] = count;
  return t;
}

static mla_status run_gather(const mla_composed *c,
                             const mla_compose_call *call, const chunk *k,
                             mla_error *err) {
  mla_tensor tensor[MLA_T_COUNT] = {{0}};
  tensor[MLA_T_CACHE] = call->tensor[MLA_T_CACHE];
  tensor[MLA_T_BLOCK_TABLE] =
      mla_compose_rows(&call->tensor[MLA_T_BLOCK_TABLE], k->request, 1);
  tensor[MLA_T_CU_SEQ_LENS] = array_of(c, call, k, SPAN, 2);
  tensor[MLA_T_SEQ_STARTS] = array_of(c, call, k, START, 1);
  tensor[MLA_T_DST] = latent_of(c, call, k->length);
  return mla_compose_run(c, call, GATHER, tensor, err);
}

/* [length, H * (P + V)] */
static mla_tensor kv_of(const mla_composed *c, const mla_compose_call *call,
                        int64_t length) {
  const int64_t shape[2] = {length, width_of_kv(c)};
  return mla_compose_tensor(call, c->at[KV], c->problem.q_dtype, 2, shape);
}

static mla_status run_project(const mla_composed *c,
                              const mla_compose_call *call, const chunk *k,
                              mla_error *err) {
  mla_tensor tensor[MLA_T_COUNT] = {{0}};
  tensor[MLA_T_A] =
      columns(latent_of(c, call, k->length), 0, c->problem.kv_lora_rank);
  tensor[MLA_T_B] = call->tensor[MLA_T_KV_B_PROJ];
  tensor[MLA_T_OUT] = kv_of(c, call, k->length);
  return mla_compose_run(c, call, PROJECT, tensor, err);
}

/* [blocks, page, H, width] over rows of `row` elements, heads `head` apart. */
static mla_tensor paged(const mla_composed *c, const mla_compose_call *call,
                        uint64_t at, int64_t width, int64_t row, int64_t head) {
  int64_t page = c->part[ATTEND].problem.block_size;
  mla_tensor t = {call->workspace + at,
                  c->problem.q_dtype,
                  4,
                  {c->size[BLOCKS], page, c->problem.num_heads, width, 0},
                  {page * row, row, head, 1, 0}};
  return t;
}

/* One head: rows of nope and rope parts become entries of K. */
static mla_status run_rope(const mla_composed *c, const mla_compose_call *call,
                           const chunk *k, int64_t h, mla_error *err) {
  const mla_problem *p = &c->problem;
  int64_t head = (int64_t)p->qk_nope_head_dim + p->v_head_dim;
  int64_t width = key_width(c), row = p->num_heads * width;
  mla_tensor tensor[MLA_T_COUNT] = {{0}};
  mla_tensor cache = {
      NULL, p->q_dtype, 3, {k->length, 1, width, 0, 0}, {row, width, 1, 0, 0}};
  cache.data = call->workspace + c->at[K] +
               (uint64_t)(h * width * (mla_dtype_bits(p->q_dtype) / 8));
  tensor[MLA_T_CACHE] = cache;
  tensor[MLA_T_KV_C] =
      columns(kv_of(c, call, k->length), h * head, p->qk_nope_head_dim);
  tensor[MLA_T_K_PE] = columns(latent_of(c, call, k->length), p->kv_lora_rank,
                               p->qk_rope_head_dim);
  tensor[MLA_T_SLOT_MAPPING] =
      mla_compose_vector(call, c->at[SLOTS], MLA_I64, k->length);
  return mla_compose_run(c, call, ROPE, tensor, err);
}

static mla_status run_attend(const mla_composed *c,
                             const mla_compose_call *call, const chunk *k,
                             mla_error *err) {
  const mla_problem *p = &c->problem;
  int64_t head = (int64_t)p->qk_nope_head_dim + p->v_head_dim;
  int64_t width = key_width(c);
  uint64_t to_v =
      (uint64_t)(p->qk_nope_head_dim * (mla_dtype_bits(p->q_dtype) / 8));
  mla_tensor tensor[MLA_T_COUNT] = {{0}};
  tensor[MLA_T_Q] = mla_compose_rows(&call->tensor[MLA_T_Q], k->first, k->rows);
  tensor[MLA_T_CACHE] =
      paged(c, call, c->at[K], width, p->num_heads * width, width);
  tensor[MLA_T_V_CACHE] =
      paged(c, call, c->at[KV] + to_v, p->v_head_dim, width_of_kv(c), head);
  const int64_t table[2] = {1, c->size[BLOCKS]};
  tensor[MLA_T_BLOCK_TABLE] =
      mla_compose_tensor(call, c->at[TABLE], MLA_I32, 2, table);
  tensor[MLA_T_SEQ_LENS] = array_of(c, call, k, LENGTH, 1);
  tensor[MLA_T_QUERY_START_LOC] = array_of(c, call, k, ROWS, 2);
  tensor[MLA_T_OUT] = only_part(outs_of(c, call, 1, 1, k->first, k->rows));
  tensor[MLA_T_LSE] = only_part(lses_of(c, call, 1, 1, k->first, k->rows));
  return mla_compose_run(c, call, ATTEND, tensor, err);
}

/* Slots 0 and 1, or 1 and 2, to the other one; or to the outputs. */
static mla_status run_merge(const mla_composed *c, const mla_compose_call *call,
                            int64_t slot, int64_t parts, int64_t to,
                            const chunk *k, mla_error *err) {
  mla_tensor tensor[MLA_T_COUNT] = {{0}};
  tensor[MLA_T_PARTS] = outs_of(c, call, slot, parts, k->first, k->rows);
  tensor[MLA_T_PART_LSES] = lses_of(c, call, slot, parts, k->first, k->rows);
  if (to >= 0) {
    tensor[MLA_T_OUT] = only_part(outs_of(c, call, to, 1, k->first, k->rows));
    tensor[MLA_T_LSE] = only_part(lses_of(c, call, to, 1, k->first, k->rows));
    return mla_compose_run(c, call, JOIN, tensor, err);
  }
  tensor[MLA_T_SINK] = call->tensor[MLA_T_SINK];
  tensor[MLA_T_OUT] =
      mla_compose_rows(&call->tensor[MLA_T_OUT], k->first, k->rows);
  if (c->problem.flags & MLA_RETURN_LSE)
    tensor[MLA_T_LSE] =
        mla_compose_rows(&call->tensor[MLA_T_LSE], k->first, k->rows);
  return mla_compose_run(c, call, LAST, tensor, err);
}

/* From the gathered chunk to its partial result, in slot 1. */
static mla_status run_chunk(const mla_composed *c, const mla_compose_call *call,
                            const chunk *k, mla_error *err) {
  mla_status status = run_gather(c, call, k, err);
  if (status == MLA_OK) status = run_project(c, call, k, err);
  for (int64_t h = 0; status == MLA_OK && h < c->problem.num_heads; h++)
    status = run_rope(c, call, k, h, err);
  return status == MLA_OK ? run_attend(c, call, k, err) : status;
}

/* All chunks of a request; the sum so far changes between slots 0 and 2. */
static mla_status run_request(const mla_composed *c,
                              const mla_compose_call *call, int64_t b,
                              int64_t *segment, mla_error *err) {
  const mla_step *s = &call->step;
  int64_t context = context_of(s, b), at = 0;
  chunk k = {b, s->query_start_loc[b], rows_of(s, b), 0, 0};
  mla_status status = MLA_OK;
  if (k.rows == 0) return MLA_OK;
  if (context == 0) return run_merge(c, call, 0, 1, -1, &k, err);
  for (int64_t start = 0; status == MLA_OK && start < context;
       start += c->size[CHUNK]) {
    uint64_t arrays = (uint64_t)((*segment)++ * ARRAYS * c->size[UNIT]);
    k.index = c->at[SEGMENTS] + arrays * sizeof(int32_t);
    k.length = least(c->size[CHUNK], context - start);
    int last = start + k.length >= context;
    status = run_chunk(c, call, &k, err);
    if (status == MLA_OK)
      status = run_merge(c, call, at / 2, 2, last ? -1 : 2 - at, &k, err);
    at = 2 - at;
  }
  return status;
}

static mla_status run(mla_composed *c, const mla_compose_call *call,
                      mla_error *err) {
  int64_t segment = 0;
  mla_status status = upload(c, call, err);
  if (status == MLA_OK) status = run_new(c, call, err);
  for (int64_t b = 0; status == MLA_OK && b < call->step.requests; b++)
    status = run_request(c, call, b, &segment, err);
  return status;
}

const mla_composer mla_composer_chunked = {
    "chunked prefill", MLA_OP_PREFILL, describe, lay_out, NULL, run};
