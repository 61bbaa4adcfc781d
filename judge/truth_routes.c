/*
 * truth_routes.c - one sequence through a layer, by every route.
 *
 * The cache is as unkind as a lawful one may be: pages out of order, one page
 * nobody owns, NaN wherever nothing has been written, and table entries past
 * the last page that lead nowhere.
 */
#include "truth_routes.h"

#include <stdlib.h>
#include <string.h>

#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "tensor.h"

#define SPARE 2 /* pages, and table entries, beyond those in use */

/* -------------------------------------------------------------- projecting */

static mla_status allocate(mla_tensor *t, int32_t dtype, int32_t rank,
                           const int64_t *shape, mla_error *err) {
  *t = mla_tensor_dense(NULL, dtype, rank, shape);
  int64_t bytes = mla_tensor_extent(t);
  if (bytes > 0 && (uint64_t)bytes <= SIZE_MAX) t->data = malloc((size_t)bytes);
  if (t->data) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, "sequence",
                  "no memory for an array of %lld bytes", (long long)bytes);
}

static mla_status allocate_projections(mla_sequence *s, int64_t tokens,
                                       int32_t dtype, mla_error *err) {
  const mla_layer_config *c = mla_layer_config_of(s->layer);
  const int64_t q[3] = {tokens, c->num_heads,
                        (int64_t)c->qk_nope_head_dim + c->qk_rope_head_dim};
  const int64_t kv_c[2] = {tokens, c->kv_lora_rank};
  const int64_t k_pe[2] = {tokens, c->qk_rope_head_dim};
  const int64_t wide[3] = {tokens, c->num_heads,
                           (int64_t)c->kv_lora_rank + c->qk_rope_head_dim};
  const int64_t narrow[3] = {tokens, c->num_heads, c->kv_lora_rank};
  mla_status status = allocate(&s->q, dtype, 3, q, err);
  if (status == MLA_OK) status = allocate(&s->kv_c, dtype, 2, kv_c, err);
  if (status == MLA_OK) status = allocate(&s->k_pe, dtype, 2, k_pe, err);
  if (status == MLA_OK) status = allocate(&s->absorbed, dtype, 3, wide, err);
  if (status == MLA_OK) status = allocate(&s->latents, dtype, 3, narrow, err);
  return status;
}

mla_status mla_sequence_project(mla_sequence *s, mla_layer *layer,
                                const mla_tensor *hidden,
                                int64_t first_position, mla_error *err) {
  int64_t tokens = hidden->shape[0];
  memset(s, 0, sizeof *s);
  s->layer = layer;
  mla_status status = allocate_projections(s, tokens, hidden->dtype, err);
  if (status != MLA_OK) return status;
  int64_t *positions = malloc((size_t)tokens * sizeof *positions);
  if (!positions) {
    return mla_fail(err, MLA_OUT_OF_MEMORY, "positions",
                    "no memory for %lld positions", (long long)tokens);
  }
  for (int64_t t = 0; t < tokens; t++) positions[t] = first_position + t;
  status = mla_layer_project(layer, hidden, positions, &s->q, &s->kv_c,
                             &s->k_pe, err);
  free(positions);
  if (status != MLA_OK) return status;
  return mla_layer_absorb(layer, &s->q, &s->absorbed, err);
}

void mla_sequence_free(mla_sequence *s) {
  free(s->q.data);
  free(s->kv_c.data);
  free(s->k_pe.data);
  free(s->absorbed.data);
  free(s->latents.data);
  memset(s, 0, sizeof *s);
}

/* Rows [first, first + count) of a tensor. */
static mla_tensor slice(const mla_tensor *t, int64_t first, int64_t count) {
  mla_tensor part = *t;
  int64_t bytes = mla_dtype_bits(t->dtype) / 8;
  part.data = (unsigned char *)t->data + first * t->stride[0] * bytes;
  part.shape[0] = count;
  return part;
}

/* NaN everywhere: nothing that was there before can pass for an answer. */
static void forget(const mla_tensor *t) {
  int64_t count = mla_tensor_count(t);
  for (int64_t i = 0; i < count; i++) {
    mla_put(t->data, t->dtype, i, mla_nan());
  }
}

/* ------------------------------------------------------------------- pages */

typedef struct paged {
  int32_t block_size;
  int32_t lengths[1];
  int32_t starts[2];
  mla_layer_batch batch;
} paged;

static int32_t format_of(int32_t dtype) {
  switch (dtype) {
    case MLA_F64: return MLA_CACHE_F64;
    case MLA_F32: return MLA_CACHE_F32;
    case MLA_F16: return MLA_CACHE_F16;
    default: return MLA_CACHE_BF16;
  }
}

/* A permutation of the pages: last first, the odd ones before the even. */
static int32_t page_of(int64_t block, int64_t pages) {
  int64_t odd = pages / 2;
  int64_t back = pages - 1 - block;
  return (int32_t)(back < odd ? 2 * back + 1 : 2 * (back - odd));
}

static mla_status open_pages(paged *p, const mla_sequence *s,
                             int32_t block_size, mla_error *err) {
  int64_t used = (s->kv_c.shape[0] + block_size - 1) / block_size;
  int64_t pages = used + SPARE;
  const int64_t cache[3] = {pages, block_size,
                            s->kv_c.shape[1] + s->k_pe.shape[1]};
  const int64_t table[2] = {1, pages}, one[1] = {1}, two[1] = {2};
  memset(p, 0, sizeof *p);
  p->block_size = block_size;
  p->batch.cache_format = format_of(s->kv_c.dtype);
  mla_status status = allocate(&p->batch.cache, s->kv_c.dtype, 3, cache, err);
  if (status == MLA_OK)
    status = allocate(&p->batch.block_table, MLA_I32, 2, table, err);
  if (status != MLA_OK) return status;
  forget(&p->batch.cache);
  for (int64_t block = 0; block < pages; block++) {
    int32_t page = block < used ? page_of(block, pages) : INT32_MAX;
    mla_put_int(p->batch.block_table.data, MLA_I32, block, page);
  }
  p->batch.seq_lens = mla_tensor_dense(p->lengths, MLA_I32, 1, one);
  p->batch.query_start_loc = mla_tensor_dense(p->starts, MLA_I32, 1, two);
  return MLA_OK;
}

static void close_pages(paged *p) {
  free(p->batch.cache.data);
  free(p->batch.block_table.data);
}

/* Writes tokens [first, first + count) where the table says they go. */
static mla_status write_tokens(paged *p, const mla_sequence *s, int64_t first,
                               int64_t count, mla_error *err) {
  const int64_t shape[1] = {count};
  mla_tensor kv_c = slice(&s->kv_c, first, count), slots;
  mla_tensor k_pe = slice(&s->k_pe, first, count);
  mla_status status = allocate(&slots, MLA_I64, 1, shape, err);
  if (status != MLA_OK) return status;
  for (int64_t t = 0; t < count; t++) {
    int64_t block = (first + t) / p->block_size;
    int64_t page = mla_get_int(p->batch.block_table.data, MLA_I32, block);
    mla_put_int(slots.data, MLA_I64, t,
                page * p->block_size + (first + t) % p->block_size);
  }
  status = mla_layer_write(s->layer, p->batch.cache_format, &kv_c, &k_pe,
                           &slots, &p->batch.cache, err);
  free(slots.data);
  return status;
}

/* ------------------------------------------------------------------ routes */

mla_status mla_sequence_prefill(const mla_sequence *s,
                                const mla_tensor *attention, mla_error *err) {
  const int64_t one[1] = {1}, two[1] = {2};
  int32_t tokens = (int32_t)s->q.shape[0];
  int32_t lengths[1] = {tokens}, starts[2] = {0, tokens};
  mla_layer_batch batch;
  memset(&batch, 0, sizeof batch);
  batch.seq_lens = mla_tensor_dense(lengths, MLA_I32, 1, one);
  batch.query_start_loc = mla_tensor_dense(starts, MLA_I32, 1, two);
  return mla_layer_prefill(s->layer, &batch, &s->q, &s->kv_c, &s->k_pe,
                           attention, err);
}

mla_status mla_sequence_resume(const mla_sequence *s, int32_t block_size,
                               int64_t past, int64_t chunk,
                               const mla_tensor *attention, mla_error *err) {
  paged p;
  int64_t tokens = s->q.shape[0], count = tokens - past;
  mla_status status = open_pages(&p, s, block_size, err);
  if (status == MLA_OK) status = write_tokens(&p, s, 0, past, err);
  if (status == MLA_OK) {
    mla_tensor q = slice(&s->q, past, count);
    mla_tensor kv_c = slice(&s->kv_c, past, count);
    mla_tensor k_pe = slice(&s->k_pe, past, count);
    mla_tensor out = slice(attention, past, count);
    p.lengths[0] = (int32_t)tokens;
    p.starts[1] = (int32_t)count;
    p.batch.context_chunk = chunk;
    status = mla_layer_prefill(s->layer, &p.batch, &q, &kv_c, &k_pe, &out, err);
  }
  close_pages(&p);
  return status;
}

static mla_status decode_token(paged *p, const mla_sequence *s, int64_t token,
                               mla_error *err) {
  mla_tensor q = slice(&s->absorbed, token, 1);
  mla_tensor out = slice(&s->latents, token, 1);
  p->lengths[0] = (int32_t)token + 1;
  p->starts[1] = 1;
  mla_status status = write_tokens(p, s, token, 1, err);
  if (status != MLA_OK) return status;
  return mla_layer_attend(s->layer, &p->batch, &q, &out, err);
}

mla_status mla_sequence_decode(const mla_sequence *s, int32_t block_size,
                               int32_t num_splits, const mla_tensor *attention,
                               mla_error *err) {
  paged p;
  mla_status status = open_pages(&p, s, block_size, err);
  p.batch.num_splits = num_splits;
  forget(&s->latents);
  for (int64_t t = 0; t < s->q.shape[0] && status == MLA_OK; t++) {
    status = decode_token(&p, s, t, err);
  }
  close_pages(&p);
  if (status != MLA_OK) return status;
  return mla_layer_expand(s->layer, &s->latents, attention, err);
}
