/*
 * truth_routes.c - one sequence through a layer, by every route.
 */
#include "truth_routes.h"

#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "tensor.h"
#include "truth_pages.h"
#include "truth_sparse.h"

/* -------------------------------------------------------------- projecting */

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
  mla_status status = mla_truth_allocate(&s->q, dtype, 3, q, err);
  if (status == MLA_OK)
    status = mla_truth_allocate(&s->kv_c, dtype, 2, kv_c, err);
  if (status == MLA_OK)
    status = mla_truth_allocate(&s->k_pe, dtype, 2, k_pe, err);
  if (status == MLA_OK)
    status = mla_truth_allocate(&s->absorbed, dtype, 3, wide, err);
  if (status == MLA_OK)
    status = mla_truth_allocate(&s->latents, dtype, 3, narrow, err);
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
  if (status == MLA_OK) status = mla_sequence_index(s, hidden, positions, err);
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
  free(s->q_index.data);
  free(s->k_index.data);
  free(s->index_weights.data);
  free(s->positions.data);
  memset(s, 0, sizeof *s);
}

/* ------------------------------------------------------------------ routes */

mla_status mla_sequence_prefill(const mla_sequence *s,
                                const mla_tensor *attention, mla_error *err) {
  return mla_sequence_prefill_front(s, s->q.shape[0], attention, err);
}

mla_status mla_sequence_prefill_front(const mla_sequence *s, int64_t count,
                                      const mla_tensor *attention,
                                      mla_error *err) {
  const int64_t one[1] = {1}, two[1] = {2};
  mla_tensor q = mla_truth_slice(&s->q, 0, count);
  mla_tensor kv_c = mla_truth_slice(&s->kv_c, 0, count);
  mla_tensor k_pe = mla_truth_slice(&s->k_pe, 0, count);
  mla_tensor out = mla_truth_slice(attention, 0, count);
  int32_t tokens = (int32_t)count;
  int32_t lengths[1] = {tokens}, starts[2] = {0, tokens};
  mla_layer_batch batch;
  memset(&batch, 0, sizeof batch);
  batch.seq_lens = mla_tensor_dense(lengths, MLA_I32, 1, one);
  batch.query_start_loc = mla_tensor_dense(starts, MLA_I32, 1, two);
  return mla_layer_prefill(s->layer, &batch, &q, &kv_c, &k_pe, &out, err);
}

mla_status mla_sequence_resume(const mla_sequence *s, int32_t block_size,
                               int64_t past, int64_t chunk,
                               const mla_tensor *attention, mla_error *err) {
  mla_truth_pages p;
  int64_t tokens = s->q.shape[0], count = tokens - past;
  mla_status status = mla_truth_pages_open(&p, s, block_size, err);
  if (status == MLA_OK) status = mla_truth_pages_write(&p, s, 0, past, err);
  if (status == MLA_OK) {
    mla_tensor q = mla_truth_slice(&s->q, past, count);
    mla_tensor kv_c = mla_truth_slice(&s->kv_c, past, count);
    mla_tensor k_pe = mla_truth_slice(&s->k_pe, past, count);
    mla_tensor out = mla_truth_slice(attention, past, count);
    p.lengths[0] = (int32_t)tokens;
    p.starts[1] = (int32_t)count;
    p.batch.context_chunk = chunk;
    status = mla_layer_prefill(s->layer, &p.batch, &q, &kv_c, &k_pe, &out, err);
  }
  mla_truth_pages_close(&p);
  return status;
}

static mla_status decode_token(mla_truth_pages *p, const mla_sequence *s,
                               int64_t token, mla_error *err) {
  mla_tensor q = mla_truth_slice(&s->absorbed, token, 1);
  mla_tensor out = mla_truth_slice(&s->latents, token, 1);
  p->lengths[0] = (int32_t)token + 1;
  p->starts[1] = 1;
  mla_status status = mla_truth_pages_write(p, s, token, 1, err);
  if (status != MLA_OK) return status;
  return mla_layer_attend(s->layer, &p->batch, &q, &out, err);
}

mla_status mla_sequence_decode(const mla_sequence *s, int32_t block_size,
                               int32_t num_splits, const mla_tensor *attention,
                               mla_error *err) {
  mla_truth_pages p;
  mla_status status = mla_truth_pages_open(&p, s, block_size, err);
  p.batch.num_splits = num_splits;
  mla_truth_forget(&s->latents);
  for (int64_t t = 0; t < s->q.shape[0] && status == MLA_OK; t++) {
    status = decode_token(&p, s, t, err);
  }
  mla_truth_pages_close(&p);
  if (status != MLA_OK) return status;
  return mla_layer_expand(s->layer, &s->latents, attention, err);
}
