/*
 * layer_project.c - between the hidden state and the attention: projections,
 * norms, rotation, scales; and the way back.
 */
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "layer_internal.h"
#include "norm.h"
#include "tensor.h"

/* ---------------------------------------------------------------- queries */

/* q as [N, H*(P+R)]. */
static mla_tensor flat(const mla_tensor *q) {
  mla_tensor f = *q;
  f.rank = 2;
  f.shape[1] = q->shape[1] * q->shape[2];
  f.stride[1] = 1;
  return f;
}

mla_status mla_layer_q_latent(const mla_layer *layer, const mla_tensor *hidden,
                              const mla_tensor *latent, mla_error *err) {
  const mla_layer_weights *w = &layer->weights;
  mla_status status =
      mla_layer_multiply(layer, hidden, &w->q_a_proj, latent, err);
  if (status != MLA_OK) return status;
  mla_rms_norm(latent, &w->q_a_layernorm, layer->config.q_norm_eps, latent);
  return MLA_OK;
}

static mla_status project_q(const mla_layer *layer, const mla_tensor *hidden,
                            const mla_tensor *q, mla_error *err) {
  const mla_layer_weights *w = &layer->weights;
  const mla_layer_config *c = &layer->config;
  const int64_t shape[2] = {hidden->shape[0], c->q_lora_rank};
  mla_tensor rows = flat(q), latent;
  if (c->q_lora_rank == 0) {
    return mla_layer_multiply(layer, hidden, &w->q_proj, &rows, err);
  }
  mla_status status = mla_layer_alloc(&latent, "the q latent",
                                      layer->activation, 2, shape, err);
  if (status != MLA_OK) return status;
  status = mla_layer_q_latent(layer, hidden, &latent, err);
  if (status == MLA_OK)
    status = mla_layer_multiply(layer, &latent, &w->q_b_proj, &rows, err);
  free(latent.data);
  return status;
}

/* ---------------------------------------------------------------- latents */

/* kv_c is not scaled yet, k_pe not rotated. */
static mla_status project_kv(const mla_layer *layer, const mla_tensor *hidden,
                             const mla_tensor *kv_c, const mla_tensor *k_pe,
                             mla_error *err) {
  const mla_layer_config *c = &layer->config;
  const int64_t latent = c->kv_lora_rank, rope = c->qk_rope_head_dim;
  const int64_t shape[2] = {hidden->shape[0], latent + rope};
  mla_tensor kv;
  mla_status status =
      mla_layer_alloc(&kv, "the kv latent", layer->activation, 2, shape, err);
  if (status != MLA_OK) return status;
  status =
      mla_layer_multiply(layer, hidden, &layer->weights.kv_a_proj, &kv, err);
  if (status == MLA_OK) {
    mla_tensor left = kv;
    left.shape[1] = latent;
    mla_rms_norm(&left, &layer->weights.kv_a_layernorm, c->kv_norm_eps, kv_c);
    for (int64_t t = 0; t < shape[0]; t++) {
      for (int64_t i = 0; i < rope; i++) {
        mla_put(k_pe->data, k_pe->dtype, mla_at2(k_pe, t, i),
                mla_get(kv.data, kv.dtype, mla_at2(&kv, t, latent + i)));
      }
    }
  }
  free(kv.data);
  return status;
}

/* --------------------------------------------------- rotation and scales */

static void scale_elements(const mla_tensor *t, int64_t offset, int64_t count,
                           double factor) {
  if (factor == 1) return;
  for (int64_t i = offset; i < offset + count; i++) {
    mla_put(t->data, t->dtype, i, mla_get(t->data, t->dtype, i) * factor);
  }
}

/* Turns and scales one token's queries: one rounding an element. */
static void finish_q(const mla_layer *layer, const mla_tensor *q, int64_t token,
                     int64_t position, double *cosine, double *sine) {
  const mla_layer_config *c = &layer->config;
  double factor = mla_rope_query_scale(&c->rope, position);
  if (c->mla_scale_q_lora > 0) factor *= c->mla_scale_q_lora;
  for (int32_t i = 0; i < c->rope.dim / 2; i++) {
    cosine[i] *= factor;
    sine[i] *= factor;
  }
  for (int64_t head = 0; head < c->num_heads; head++) {
    int64_t at = mla_at3(q, token, head, 0);
    scale_elements(q, at, c->qk_nope_head_dim, factor);
    mla_rope_rotate(&c->rope, cosine, sine, q->data, q->dtype,
                    at + c->qk_nope_head_dim);
  }
}

static mla_status rotate(const mla_layer *layer, const int64_t *positions,
                         const mla_tensor *q, const mla_tensor *k_pe,
                         mla_error *err) {
  const mla_rope *rope = &layer->config.rope;
  size_t pairs = (size_t)rope->dim / 2;
  double *cosine = malloc(2 * pairs * sizeof *cosine);
  if (!cosine) {
    return mla_fail(err, MLA_OUT_OF_MEMORY, "rope",
                    "no memory for a table of %zu pairs", pairs);
  }
  double *sine = cosine + pairs;
  for (int64_t t = 0; t < q->shape[0]; t++) {
    mla_rope_angles(rope, layer->frequencies, positions[t], cosine, sine);
    mla_rope_rotate(rope, cosine, sine, k_pe->data, k_pe->dtype,
                    mla_at2(k_pe, t, 0));
    finish_q(layer, q, t, positions[t], cosine, sine);
  }
  free(cosine);
  return MLA_OK;
}

/* ------------------------------------------------------------- the stages */

mla_status mla_layer_positions_check(const int64_t *positions, int64_t count,
                                     mla_error *err) {
  for (int64_t t = 0; t < count; t++) {
    if (positions[t] < 0 || positions[t] > MLA_ROPE_MAX_POSITION) {
      return mla_fail(err, MLA_INVALID_ARGUMENT, "positions",
                      "positions[%lld] is %lld, from 0 to %lld", (long long)t,
                      (long long)positions[t],
                      (long long)MLA_ROPE_MAX_POSITION);
    }
  }
  return MLA_OK;
}

static mla_status check_project(const mla_layer *layer,
                                const mla_tensor *hidden,
                                const int64_t *positions, const mla_tensor *q,
                                const mla_tensor *kv_c, const mla_tensor *k_pe,
                                mla_error *err) {
  const mla_layer_config *c = &layer->config;
  const int32_t type = layer->activation;
  const int64_t n = hidden->shape[0];
  const int64_t width = (int64_t)c->qk_nope_head_dim + c->qk_rope_head_dim;
  const int64_t in[2] = {-1, c->hidden_size},
                query[3] = {n, c->num_heads, width};
  const int64_t latent[2] = {n, c->kv_lora_rank};
  const int64_t rope[2] = {n, c->qk_rope_head_dim};
  mla_status status = mla_layer_expect("hidden", hidden, type, 2, in, err);
  if (status == MLA_OK) status = mla_layer_expect("q", q, type, 3, query, err);
  if (status == MLA_OK)
    status = mla_layer_expect("kv_c", kv_c, type, 2, latent, err);
  if (status == MLA_OK)
    status = mla_layer_expect("k_pe", k_pe, type, 2, rope, err);
  if (status != MLA_OK) return status;
  if (q->stride[1] != width) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "q",
                    "q has %lld elements from head to head, not %lld",
                    (long long)q->stride[1], (long long)width);
  }
  return mla_layer_positions_check(positions, n, err);
}

mla_status mla_layer_project(mla_layer *layer, const mla_tensor *hidden,
                             const int64_t *positions, const mla_tensor *q,
                             const mla_tensor *kv_c, const mla_tensor *k_pe,
                             mla_error *err) {
  mla_status status =
      check_project(layer, hidden, positions, q, kv_c, k_pe, err);
  if (status == MLA_OK) status = project_q(layer, hidden, q, err);
  if (status == MLA_OK) status = project_kv(layer, hidden, kv_c, k_pe, err);
  if (status != MLA_OK) return status;
  if (layer->config.mla_scale_kv_lora > 0) {
    mla_scale_rows(kv_c, layer->config.mla_scale_kv_lora);
  }
  return rotate(layer, positions, q, k_pe, err);
}

mla_status mla_layer_output(mla_layer *layer, const mla_tensor *attention,
                            const mla_tensor *hidden, mla_error *err) {
  const mla_layer_config *c = &layer->config;
  const int32_t type = layer->activation;
  const int64_t in[3] = {-1, c->num_heads, c->v_head_dim};
  const int64_t out[2] = {attention->shape[0], c->hidden_size};
  mla_status status =
      mla_layer_expect("attention", attention, type, 3, in, err);
  if (status == MLA_OK) {
    status = mla_layer_expect("hidden", hidden, type, 2, out, err);
  }
  if (status != MLA_OK) return status;
  if (attention->stride[1] != c->v_head_dim) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "attention",
                    "attention has %lld elements from head to head, not %d",
                    (long long)attention->stride[1], c->v_head_dim);
  }
  mla_tensor rows = flat(attention);
  return mla_layer_multiply(layer, &rows, &layer->weights.o_proj, hidden, err);
}
