/*
 * truth_sparse.c - one sequence through a layer with an indexer.
 */
#include "truth_sparse.h"

#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "tensor.h"
#include "truth_pages.h"

static mla_status allocate(mla_sequence *s, int64_t tokens, int32_t dtype,
                           mla_error *err) {
  const mla_layer_config *c = mla_layer_config_of(s->layer);
  const int64_t q[3] = {tokens, c->index_n_heads, c->index_head_dim};
  const int64_t k[2] = {tokens, c->index_head_dim};
  const int64_t w[2] = {tokens, c->index_n_heads};
  const int64_t list[2] = {tokens, c->index_topk};
  int32_t real = dtype == MLA_F64 ? MLA_F64 : MLA_F32;
  mla_status status = mla_truth_allocate(&s->q_index, dtype, 3, q, err);
  if (status == MLA_OK)
    status = mla_truth_allocate(&s->k_index, dtype, 2, k, err);
  if (status == MLA_OK)
    status = mla_truth_allocate(&s->index_weights, real, 2, w, err);
  if (status == MLA_OK)
    status = mla_truth_allocate(&s->positions, MLA_I32, 2, list, err);
  return status;
}

mla_status mla_sequence_index(mla_sequence *s, const mla_tensor *hidden,
                              const int64_t *positions, mla_error *err) {
  if (mla_layer_config_of(s->layer)->index_topk == 0) return MLA_OK;
  mla_status status = allocate(s, hidden->shape[0], hidden->dtype, err);
  if (status != MLA_OK) return status;
  return mla_layer_index_project(s->layer, hidden, positions, &s->q_index,
                                 &s->k_index, &s->index_weights, err);
}

/* Nothing that an earlier route chose can pass for this one's choice. */
static void forget_choices(const mla_sequence *s) {
  int64_t count = mla_tensor_count(&s->positions);
  for (int64_t i = 0; i < count; i++) {
    mla_put_int(s->positions.data, MLA_I32, i, INT32_MIN);
  }
}

/* Tokens [first, first + count), which are in the caches. */
static mla_status attend(mla_truth_pages *p, const mla_sequence *s,
                         int64_t first, int64_t count, mla_error *err) {
  mla_tensor q_index = mla_truth_slice(&s->q_index, first, count);
  mla_tensor weights = mla_truth_slice(&s->index_weights, first, count);
  mla_tensor positions = mla_truth_slice(&s->positions, first, count);
  mla_tensor q = mla_truth_slice(&s->absorbed, first, count);
  mla_tensor out = mla_truth_slice(&s->latents, first, count);
  p->lengths[0] = (int32_t)(first + count);
  p->starts[1] = (int32_t)count;
  mla_status status = mla_layer_choose(s->layer, &p->batch, &q_index, &weights,
                                       &positions, err);
  if (status != MLA_OK) return status;
  return mla_layer_attend_chosen(s->layer, &p->batch, &q, &positions, &out,
                                 err);
}

mla_status mla_sequence_sparse_prefill(const mla_sequence *s,
                                       int32_t block_size,
                                       const mla_tensor *attention,
                                       mla_error *err) {
  mla_truth_pages p;
  int64_t tokens = s->q.shape[0];
  mla_status status = mla_truth_pages_open(&p, s, block_size, err);
  mla_truth_forget(&s->latents);
  forget_choices(s);
  if (status == MLA_OK) status = mla_truth_pages_write(&p, s, 0, tokens, err);
  if (status == MLA_OK) status = attend(&p, s, 0, tokens, err);
  mla_truth_pages_close(&p);
  if (status != MLA_OK) return status;
  return mla_layer_expand(s->layer, &s->latents, attention, err);
}

mla_status mla_sequence_sparse_decode(const mla_sequence *s, int32_t block_size,
                                      int32_t num_splits,
                                      const mla_tensor *attention,
                                      mla_error *err) {
  mla_truth_pages p;
  mla_status status = mla_truth_pages_open(&p, s, block_size, err);
  p.batch.num_splits = num_splits;
  mla_truth_forget(&s->latents);
  forget_choices(s);
  for (int64_t t = 0; t < s->q.shape[0] && status == MLA_OK; t++) {
    status = mla_truth_pages_write(&p, s, t, 1, err);
    if (status == MLA_OK) status = attend(&p, s, t, 1, err);
  }
  mla_truth_pages_close(&p);
  if (status != MLA_OK) return status;
  return mla_layer_expand(s->layer, &s->latents, attention, err);
}

/* ---------------------------------------------------------------- comparing */

static int64_t entry(const mla_tensor *t, int64_t row, int64_t i) {
  return mla_get_int(t->data, t->dtype, mla_at2(t, row, i));
}

/* Is this position in the row, among those that the row sees? */
static int holds(const mla_tensor *t, int64_t row, int64_t position) {
  for (int64_t i = 0; i < t->shape[1]; i++) {
    if (entry(t, row, i) == position) return 1;
  }
  return 0;
}

static int is_right(const mla_tensor *got, const mla_tensor *wanted,
                    int64_t row) {
  int64_t topk = got->shape[1], seen = row + 1;
  int64_t count = seen < topk ? seen : topk;
  for (int64_t i = 0; i < topk; i++) {
    int64_t position = entry(got, row, i);
    if (i >= count && position != -1) return 0;
    if (i < count && (position < 0 || position >= seen)) return 0;
  }
  for (int64_t i = 0, found = 0; i < wanted->shape[1] && found < count; i++) {
    int64_t position = entry(wanted, row, i);
    if (position < 0 || position >= seen) continue;
    if (!holds(got, row, position)) return 0;
    found++;
  }
  return 1;
}

int64_t mla_sequence_wrong_choices(const mla_sequence *s,
                                   const mla_tensor *wanted) {
  int64_t wrong = 0;
  for (int64_t t = 0; t < s->positions.shape[0]; t++) {
    wrong += !is_right(&s->positions, wanted, t);
  }
  return wrong;
}
