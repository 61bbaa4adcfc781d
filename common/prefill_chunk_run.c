/*
 * prefill_chunk_run.c - the chunks of a step, one after another.
 */
#include <string.h>

#include "dtype.h"
#include "prefill_chunked.h"
#include "tensor.h"

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* One chunk of one request. */
typedef struct chunk {
  int64_t request, first, rows; /* rows of q */
  int64_t length;               /* entries */
  uint64_t index;               /* its arrays in the workspace */
} chunk;

static mla_tensor array_of(const mla_composed *c, const mla_compose_call *call,
                           const chunk *k, int which, int64_t length) {
  uint64_t at =
      k->index + (uint64_t)(which * c->size[MLA_CHUNK_UNIT]) * sizeof(int32_t);
  return mla_compose_vector(call, at, MLA_I32, length);
}

/* Rows [first, first + rows) of `count` of the three slots for partial
   results, from `slot`. */
static mla_tensor some_of(mla_tensor t, int64_t slot, int64_t count,
                          int64_t first, int64_t rows) {
  t.data =
      (unsigned char *)t.data + (slot * t.stride[0] + first * t.stride[1]) *
                                    (mla_dtype_bits(t.dtype) / 8);
  t.shape[0] = count;
  t.shape[1] = rows;
  return t;
}
static mla_tensor outs_of(const mla_composed *c, const mla_compose_call *call,
                          int64_t slot, int64_t count, int64_t first,
                          int64_t rows) {
  const int64_t shape[4] = {3, c->limits.tokens, c->problem.num_heads,
                            c->problem.v_head_dim};
  return some_of(mla_compose_tensor(call, c->at[MLA_CHUNK_OUTS],
                                    mla_compose_wide(c), 4, shape),
                 slot, count, first, rows);
}
static mla_tensor lses_of(const mla_composed *c, const mla_compose_call *call,
                          int64_t slot, int64_t count, int64_t first,
                          int64_t rows) {
  const int64_t shape[3] = {3, c->limits.tokens, c->problem.num_heads};
  return some_of(mla_compose_tensor(call, c->at[MLA_CHUNK_LSES],
                                    mla_compose_wide(c), 3, shape),
                 slot, count, first, rows);
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
  tensor[MLA_T_SEQ_LENS] = mla_compose_vector(call, c->at[MLA_CHUNK_NEW_LENS],
                                              MLA_I32, call->step.requests);
  tensor[MLA_T_OUT] = only_part(outs_of(c, call, 0, 1, 0, call->rows));
  tensor[MLA_T_LSE] = only_part(lses_of(c, call, 0, 1, 0, call->rows));
  return mla_compose_run(c, call, MLA_CHUNK_NEW, tensor, err);
}

/* [length, L + R] */
static mla_tensor latent_of(const mla_composed *c, const mla_compose_call *call,
                            int64_t length) {
  const int64_t shape[2] = {
      length, (int64_t)c->problem.kv_lora_rank + c->problem.qk_rope_head_dim};
  return mla_compose_tensor(call, c->at[MLA_CHUNK_LATENT], c->problem.q_dtype,
                            2, shape);
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
  tensor[MLA_T_CU_SEQ_LENS] = array_of(c, call, k, MLA_CHUNK_SPAN, 2);
  tensor[MLA_T_SEQ_STARTS] = array_of(c, call, k, MLA_CHUNK_START, 1);
  tensor[MLA_T_DST] = latent_of(c, call, k->length);
  return mla_compose_run(c, call, MLA_CHUNK_GATHER, tensor, err);
}

/* [length, H * (P + V)] */
static mla_tensor kv_of(const mla_composed *c, const mla_compose_call *call,
                        int64_t length) {
  const int64_t shape[2] = {length, mla_chunk_kv(c)};
  return mla_compose_tensor(call, c->at[MLA_CHUNK_KV], c->problem.q_dtype, 2,
                            shape);
}

static mla_status run_project(const mla_composed *c,
                              const mla_compose_call *call, const chunk *k,
                              mla_error *err) {
  mla_tensor tensor[MLA_T_COUNT] = {{0}};
  tensor[MLA_T_A] =
      columns(latent_of(c, call, k->length), 0, c->problem.kv_lora_rank);
  tensor[MLA_T_B] = call->tensor[MLA_T_KV_B_PROJ];
  tensor[MLA_T_OUT] = kv_of(c, call, k->length);
  return mla_compose_run(c, call, MLA_CHUNK_PROJECT, tensor, err);
}

/* [blocks, page, H, width] over rows of `row` elements, heads `head` apart. */
static mla_tensor paged(const mla_composed *c, const mla_compose_call *call,
                        uint64_t at, int64_t width, int64_t row, int64_t head) {
  int64_t page = c->part[MLA_CHUNK_ATTEND].problem.block_size;
  mla_tensor t = {
      call->workspace + at,
      c->problem.q_dtype,
      4,
      {c->size[MLA_CHUNK_BLOCKS], page, c->problem.num_heads, width, 0},
      {page * row, row, head, 1, 0}};
  return t;
}

/* One head: rows of nope and rope parts become entries of K. */
static mla_status run_rope(const mla_composed *c, const mla_compose_call *call,
                           const chunk *k, int64_t h, mla_error *err) {
  const mla_problem *p = &c->problem;
  int64_t head = mla_chunk_head(c);
  int64_t width = mla_chunk_key(c), row = p->num_heads * width;
  mla_tensor tensor[MLA_T_COUNT] = {{0}};
  mla_tensor cache = {
      NULL, p->q_dtype, 3, {k->length, 1, width, 0, 0}, {row, width, 1, 0, 0}};
  cache.data = call->workspace + c->at[MLA_CHUNK_K] +
               (uint64_t)(h * width * (mla_dtype_bits(p->q_dtype) / 8));
  tensor[MLA_T_CACHE] = cache;
  tensor[MLA_T_KV_C] =
      columns(kv_of(c, call, k->length), h * head, p->qk_nope_head_dim);
  tensor[MLA_T_K_PE] = columns(latent_of(c, call, k->length), p->kv_lora_rank,
                               p->qk_rope_head_dim);
  tensor[MLA_T_SLOT_MAPPING] =
      mla_compose_vector(call, c->at[MLA_CHUNK_SLOTS], MLA_I64, k->length);
  return mla_compose_run(c, call, MLA_CHUNK_ROPE, tensor, err);
}

static mla_status run_attend(const mla_composed *c,
                             const mla_compose_call *call, const chunk *k,
                             mla_error *err) {
  const mla_problem *p = &c->problem;
  int64_t head = mla_chunk_head(c);
  int64_t width = mla_chunk_key(c);
  uint64_t to_v =
      (uint64_t)(p->qk_nope_head_dim * (mla_dtype_bits(p->q_dtype) / 8));
  mla_tensor tensor[MLA_T_COUNT] = {{0}};
  tensor[MLA_T_Q] = mla_compose_rows(&call->tensor[MLA_T_Q], k->first, k->rows);
  tensor[MLA_T_CACHE] =
      paged(c, call, c->at[MLA_CHUNK_K], width, p->num_heads * width, width);
  tensor[MLA_T_V_CACHE] = paged(c, call, c->at[MLA_CHUNK_KV] + to_v,
                                p->v_head_dim, mla_chunk_kv(c), head);
  const int64_t table[2] = {1, c->size[MLA_CHUNK_BLOCKS]};
  tensor[MLA_T_BLOCK_TABLE] =
      mla_compose_tensor(call, c->at[MLA_CHUNK_TABLE], MLA_I32, 2, table);
  tensor[MLA_T_SEQ_LENS] = array_of(c, call, k, MLA_CHUNK_LENGTH, 1);
  tensor[MLA_T_QUERY_START_LOC] = array_of(c, call, k, MLA_CHUNK_ROWS, 2);
  tensor[MLA_T_OUT] = only_part(outs_of(c, call, 1, 1, k->first, k->rows));
  tensor[MLA_T_LSE] = only_part(lses_of(c, call, 1, 1, k->first, k->rows));
  return mla_compose_run(c, call, MLA_CHUNK_ATTEND, tensor, err);
}

/* Slots 0 and 1, or 1 and 2, to the other one; or to the outputs. */
static mla_status run_merge(const mla_composed *c, const mla_compose_call *call,
                            int64_t slot, int64_t parts, int64_t to,
                            const chunk *k, mla_error *err) {
  mla_tensor tensor[MLA_T_COUNT] = {{0}};
  mla_tensor outs = outs_of(c, call, slot, parts, k->first, k->rows);
  mla_tensor lses = lses_of(c, call, slot, parts, k->first, k->rows);
  if (to < 0)
    return mla_compose_join(c, call, MLA_CHUNK_LAST, outs, lses, k->first,
                            k->rows, err);
  tensor[MLA_T_PARTS] = outs;
  tensor[MLA_T_PART_LSES] = lses;
  tensor[MLA_T_OUT] = only_part(outs_of(c, call, to, 1, k->first, k->rows));
  tensor[MLA_T_LSE] = only_part(lses_of(c, call, to, 1, k->first, k->rows));
  return mla_compose_run(c, call, MLA_CHUNK_JOIN, tensor, err);
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
  int64_t context = mla_chunk_context(s, b), at = 0;
  chunk k = {b, s->query_start_loc[b], mla_chunk_rows(s, b), 0, 0};
  mla_status status = MLA_OK;
  if (k.rows == 0) return MLA_OK;
  if (context == 0) return run_merge(c, call, 0, 1, -1, &k, err);
  for (int64_t start = 0; status == MLA_OK && start < context;
       start += c->size[MLA_CHUNK_TOKENS]) {
    uint64_t arrays =
        (uint64_t)((*segment)++ * MLA_CHUNK_ARRAYS * c->size[MLA_CHUNK_UNIT]);
    k.index = c->at[MLA_CHUNK_SEGMENTS] + arrays * sizeof(int32_t);
    k.length = least(c->size[MLA_CHUNK_TOKENS], context - start);
    int last = start + k.length >= context;
    status = run_chunk(c, call, &k, err);
    if (status == MLA_OK)
      status = run_merge(c, call, at / 2, 2, last ? -1 : 2 - at, &k, err);
    at = 2 - at;
  }
  return status;
}

mla_status mla_chunk_run(mla_composed *c, const mla_compose_call *call,
                         mla_error *err) {
  int64_t segment = 0;
  mla_status status = mla_chunk_upload(c, call, err);
  if (status == MLA_OK) status = run_new(c, call, err);
  for (int64_t b = 0; status == MLA_OK && b < call->step.requests; b++)
    status = run_request(c, call, b, &segment, err);
  return status;
}
