/*
 * layer_index.c - the sparse indexer: which positions a row attends to, and
 * attention to those.
 */
#include <stdlib.h>
#include <string.h>

#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "layer_internal.h"
#include "norm.h"
#include "tensor.h"

static mla_status expect_indexer(const mla_layer *layer, mla_error *err) {
  if (layer->config.index_topk > 0) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, "index_topk",
                  "index_topk is %d: the layer has no indexer",
                  layer->config.index_topk);
}

static int32_t real_type(const mla_layer *layer) {
  return layer->activation == MLA_F64 ? MLA_F64 : MLA_F32;
}

/* -------------------------------------------------------------- projecting */

static mla_status project_q(const mla_layer *layer, const mla_tensor *hidden,
                            const mla_tensor *q_index, mla_error *err) {
  const int64_t shape[2] = {hidden->shape[0], layer->config.q_lora_rank};
  mla_tensor rows = *q_index, latent;
  rows.rank = 2;
  rows.shape[1] = q_index->shape[1] * q_index->shape[2];
  rows.stride[1] = 1;
  mla_status status = mla_layer_alloc(&latent, "the q latent",
                                      layer->activation, 2, shape, err);
  if (status != MLA_OK) return status;
  status = mla_layer_q_latent(layer, hidden, &latent, err);
  if (status == MLA_OK) {
    status = mla_layer_multiply(layer, &latent, &layer->weights.index_wq_b,
                                &rows, err);
  }
  free(latent.data);
  return status;
}

/* In the activations' type first, as every product; then scaled in f32. */
static mla_status project_weights(const mla_layer *layer,
                                  const mla_tensor *hidden,
                                  const mla_tensor *index_weights,
                                  mla_error *err) {
  const mla_layer_config *c = &layer->config;
  const int64_t shape[2] = {hidden->shape[0], c->index_n_heads};
  double heads = (double)c->index_n_heads, width = (double)c->index_head_dim;
  double factor = 1 / (mla_sqrt(heads) * mla_sqrt(width));
  mla_tensor raw;
  mla_status status = mla_layer_alloc(&raw, "the head weights",
                                      layer->activation, 2, shape, err);
  if (status != MLA_OK) return status;
  status = mla_layer_multiply(layer, hidden, &layer->weights.index_weights_proj,
                              &raw, err);
  for (int64_t t = 0; status == MLA_OK && t < shape[0]; t++) {
    for (int64_t h = 0; h < shape[1]; h++) {
      mla_put(index_weights->data, index_weights->dtype,
              mla_at2(index_weights, t, h),
              mla_get(raw.data, raw.dtype, mla_at2(&raw, t, h)) * factor);
    }
  }
  free(raw.data);
  return status;
}

/* The first R of every key and query turn, as the main path's do but for
   which of them are a pair. */
static mla_status rotate(const mla_layer *layer, const int64_t *positions,
                         const mla_tensor *q_index, const mla_tensor *k_index,
                         mla_error *err) {
  mla_rope rope = layer->config.rope;
  size_t pairs = (size_t)rope.dim / 2;
  double *cosine = malloc(2 * pairs * sizeof *cosine);
  if (!cosine) {
    return mla_fail(err, MLA_OUT_OF_MEMORY, "rope",
                    "no memory for a table of %zu pairs", pairs);
  }
  double *sine = cosine + pairs;
  rope.half_split = layer->config.index_half_split;
  for (int64_t t = 0; t < q_index->shape[0]; t++) {
    mla_rope_angles(&rope, layer->frequencies, positions[t], cosine, sine);
    mla_rope_rotate(&rope, cosine, sine, k_index->data, k_index->dtype,
                    mla_at2(k_index, t, 0));
    for (int64_t h = 0; h < q_index->shape[1]; h++) {
      mla_rope_rotate(&rope, cosine, sine, q_index->data, q_index->dtype,
                      mla_at3(q_index, t, h, 0));
    }
  }
  free(cosine);
  return MLA_OK;
}

static mla_status check_project(
    const mla_layer *layer, const mla_tensor *hidden, const int64_t *positions,
    const mla_tensor *q_index, const mla_tensor *k_index,
    const mla_tensor *index_weights, mla_error *err) {
  const mla_layer_config *c = &layer->config;
  const int32_t type = layer->activation;
  const int64_t n = hidden->shape[0];
  const int64_t in[2] = {-1, c->hidden_size};
  const int64_t q[3] = {n, c->index_n_heads, c->index_head_dim};
  const int64_t k[2] = {n, c->index_head_dim}, w[2] = {n, c->index_n_heads};
  mla_status status = expect_indexer(layer, err);
  if (status == MLA_OK)
    status = mla_layer_expect("hidden", hidden, type, 2, in, err);
  if (status == MLA_OK)
    status = mla_layer_expect("q_index", q_index, type, 3, q, err);
  if (status == MLA_OK)
    status = mla_layer_expect("k_index", k_index, type, 2, k, err);
  if (status == MLA_OK)
    status = mla_layer_expect("index_weights", index_weights, real_type(layer),
                              2, w, err);
  if (status != MLA_OK) return status;
  if (q_index->stride[1] != c->index_head_dim) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "q_index",
                    "q_index has %lld elements from head to head, not %d",
                    (long long)q_index->stride[1], c->index_head_dim);
  }
  return mla_layer_positions_check(positions, n, err);
}

mla_status mla_layer_index_project(mla_layer *layer, const mla_tensor *hidden,
                                   const int64_t *positions,
                                   const mla_tensor *q_index,
                                   const mla_tensor *k_index,
                                   const mla_tensor *index_weights,
                                   mla_error *err) {
  const mla_layer_weights *w = &layer->weights;
  mla_status status = check_project(layer, hidden, positions, q_index, k_index,
                                    index_weights, err);
  if (status == MLA_OK) status = project_q(layer, hidden, q_index, err);
  if (status == MLA_OK)
    status = project_weights(layer, hidden, index_weights, err);
  if (status == MLA_OK)
    status = mla_layer_multiply(layer, hidden, &w->index_wk, k_index, err);
  if (status != MLA_OK) return status;
  mla_layer_norm(k_index, &w->index_k_norm, &w->index_k_norm_bias,
                 layer->config.index_norm_eps, k_index);
  return rotate(layer, positions, q_index, k_index, err);
}

/* ---------------------------------------------------------------- choosing */

mla_status mla_layer_write_keys(mla_layer *layer, int32_t index_format,
                                const mla_tensor *k_index,
                                const mla_tensor *slot_mapping,
                                const mla_tensor *index_cache, mla_error *err) {
  mla_problem problem = mla_layer_problem(layer, MLA_OP_KV_WRITE);
  mla_limits limits = mla_limits_init();
  mla_tensor tensor[MLA_T_COUNT];
  mla_status status = expect_indexer(layer, err);
  if (status != MLA_OK) return status;
  memset(tensor, 0, sizeof tensor);
  problem.kv_lora_rank = layer->config.index_head_dim;
  problem.qk_rope_head_dim = 0;
  problem.cache_format = index_format;
  problem.block_size = (int32_t)index_cache->shape[1];
  limits.tokens = k_index->shape[0];
  limits.num_blocks = index_cache->shape[0];
  tensor[MLA_T_KV_C] = *k_index;
  tensor[MLA_T_SLOT_MAPPING] = *slot_mapping;
  tensor[MLA_T_CACHE] = *index_cache;
  return mla_layer_run(layer, &problem, &limits, tensor, err);
}

mla_status mla_layer_choose(mla_layer *layer, const mla_layer_batch *batch,
                            const mla_tensor *q_index,
                            const mla_tensor *index_weights,
                            const mla_tensor *positions, mla_error *err) {
  const mla_layer_config *c = &layer->config;
  const int64_t shape[2] = {q_index->shape[0], c->index_topk};
  mla_problem problem = mla_layer_problem(layer, MLA_OP_INDEX);
  mla_tensor tensor[MLA_T_COUNT];
  mla_status status = expect_indexer(layer, err);
  if (status == MLA_OK) status = mla_layer_batch_check(batch, err);
  if (status == MLA_OK)
    status = mla_layer_expect("positions", positions, MLA_I32, 2, shape, err);
  if (status != MLA_OK) return status;
  mla_limits limits = mla_layer_limits(batch, q_index->shape[0]);
  mla_layer_set_batch(tensor, batch);
  problem.num_heads = c->index_n_heads;
  problem.head_dim = c->index_head_dim;
  problem.topk = c->index_topk;
  problem.cache_format = batch->index_format;
  problem.block_size = (int32_t)batch->index_cache.shape[1];
  limits.num_blocks = batch->index_cache.shape[0];
  tensor[MLA_T_Q] = *q_index;
  tensor[MLA_T_CACHE] = batch->index_cache;
  tensor[MLA_T_INDEX_WEIGHTS] = *index_weights;
  tensor[MLA_T_POSITIONS] = *positions;
  return mla_layer_run(layer, &problem, &limits, tensor, err);
}

/* --------------------------------------------------------------- attending */

static mla_status map_positions(const mla_layer *layer,
                                const mla_layer_batch *batch,
                                const mla_tensor *positions,
                                const mla_tensor *indices, mla_error *err) {
  mla_problem problem = mla_problem_init(MLA_OP_MAP_INDICES);
  mla_limits limits = mla_layer_limits(batch, positions->shape[0]);
  mla_tensor tensor[MLA_T_COUNT];
  memset(tensor, 0, sizeof tensor);
  problem.topk = layer->config.index_topk;
  problem.block_size = (int32_t)batch->cache.shape[1];
  tensor[MLA_T_POSITIONS] = *positions;
  tensor[MLA_T_BLOCK_TABLE] = batch->block_table;
  tensor[MLA_T_QUERY_START_LOC] = batch->query_start_loc;
  tensor[MLA_T_INDICES] = *indices;
  return mla_layer_run(layer, &problem, &limits, tensor, err);
}

static mla_status attend_slots(const mla_layer *layer,
                               const mla_layer_batch *batch,
                               const mla_tensor *absorbed,
                               const mla_tensor *indices,
                               const mla_tensor *latents, mla_error *err) {
  mla_problem problem = mla_layer_problem(layer, MLA_OP_DECODE);
  mla_limits limits = mla_layer_limits(batch, absorbed->shape[0]);
  mla_tensor tensor[MLA_T_COUNT];
  memset(tensor, 0, sizeof tensor);
  problem.flags = MLA_SPARSE;
  problem.topk = layer->config.index_topk;
  problem.cache_format = batch->cache_format;
  problem.block_size = (int32_t)batch->cache.shape[1];
  limits.num_splits = batch->num_splits;
  tensor[MLA_T_Q] = *absorbed;
  tensor[MLA_T_CACHE] = batch->cache;
  tensor[MLA_T_INDICES] = *indices;
  tensor[MLA_T_OUT] = *latents;
  return mla_layer_run(layer, &problem, &limits, tensor, err);
}

mla_status mla_layer_attend_chosen(mla_layer *layer,
                                   const mla_layer_batch *batch,
                                   const mla_tensor *absorbed,
                                   const mla_tensor *positions,
                                   const mla_tensor *latents, mla_error *err) {
  const mla_layer_config *c = &layer->config;
  const int64_t list[2] = {absorbed->shape[0], c->index_topk};
  const int64_t heads[3] = {absorbed->shape[0], c->num_heads, c->kv_lora_rank};
  mla_tensor indices;
  mla_status status = expect_indexer(layer, err);
  if (status == MLA_OK) status = mla_layer_batch_check(batch, err);
  if (status == MLA_OK)
    status = mla_layer_expect("positions", positions, MLA_I32, 2, list, err);
  if (status == MLA_OK)
    status =
        mla_layer_expect("latents", latents, layer->activation, 3, heads, err);
  if (status == MLA_OK)
    status = mla_layer_alloc(&indices, "the slots", MLA_I32, 2, list, err);
  if (status != MLA_OK) return status;
  status = map_positions(layer, batch, positions, &indices, err);
  if (status == MLA_OK)
    status = attend_slots(layer, batch, absorbed, &indices, latents, err);
  free(indices.data);
  return status;
}
