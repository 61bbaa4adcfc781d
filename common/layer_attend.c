/*
 * layer_attend.c - the cache, and the two routes from queries to attention.
 */
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "layer_internal.h"
#include "tensor.h"

/* ------------------------------------------------------------------ cache */

mla_status mla_layer_write(mla_layer *layer, int32_t cache_format,
                           const mla_tensor *kv_c, const mla_tensor *k_pe,
                           const mla_tensor *slot_mapping,
                           const mla_tensor *cache, mla_error *err) {
  mla_problem problem = mla_layer_problem(layer, MLA_OP_KV_WRITE);
  mla_limits limits = mla_limits_init();
  mla_tensor tensor[MLA_T_COUNT];
  memset(tensor, 0, sizeof tensor);
  problem.cache_format = cache_format;
  problem.block_size = (int32_t)cache->shape[1];
  limits.tokens = kv_c->shape[0];
  limits.num_blocks = cache->shape[0];
  tensor[MLA_T_KV_C] = *kv_c;
  tensor[MLA_T_K_PE] = *k_pe;
  tensor[MLA_T_SLOT_MAPPING] = *slot_mapping;
  tensor[MLA_T_CACHE] = *cache;
  return mla_layer_run(layer, &problem, &limits, tensor, err);
}

/* ------------------------------------------------------------------ bounds */

mla_status mla_layer_batch_check(const mla_layer_batch *batch, mla_error *err) {
  const int64_t any[1] = {-1};
  const int64_t starts[1] = {batch->seq_lens.shape[0] + 1};
  mla_status status =
      mla_layer_expect("seq_lens", &batch->seq_lens, MLA_I32, 1, any, err);
  if (status != MLA_OK) return status;
  return mla_layer_expect("query_start_loc", &batch->query_start_loc, MLA_I32,
                          1, starts, err);
}

mla_limits mla_layer_limits(const mla_layer_batch *batch, int64_t tokens) {
  const mla_tensor *starts = &batch->query_start_loc;
  mla_limits limits = mla_limits_init();
  limits.requests = batch->seq_lens.shape[0];
  limits.tokens = tokens;
  limits.max_query_len = 1;
  limits.max_seq_len = 1;
  for (int64_t b = 0; b < limits.requests; b++) {
    int64_t length = mla_get_int(batch->seq_lens.data, MLA_I32, b);
    int64_t rows = mla_get_int(starts->data, MLA_I32, b + 1) -
                   mla_get_int(starts->data, MLA_I32, b);
    if (length > limits.max_seq_len) limits.max_seq_len = length;
    if (rows > limits.max_query_len) limits.max_query_len = rows;
  }
  if (batch->cache.data) {
    limits.num_blocks = batch->cache.shape[0];
    limits.table_width = batch->block_table.shape[1];
  }
  return limits;
}

void mla_layer_set_batch(mla_tensor *tensor, const mla_layer_batch *batch) {
  memset(tensor, 0, MLA_T_COUNT * sizeof *tensor);
  tensor[MLA_T_CACHE] = batch->cache;
  tensor[MLA_T_BLOCK_TABLE] = batch->block_table;
  tensor[MLA_T_SEQ_LENS] = batch->seq_lens;
  tensor[MLA_T_QUERY_START_LOC] = batch->query_start_loc;
}

static mla_status expect_heads(const mla_layer *layer, const char *name,
                               const mla_tensor *tensor, int64_t tokens,
                               int64_t width, mla_error *err) {
  const int64_t shape[3] = {tokens, layer->config.num_heads, width};
  return mla_layer_expect(name, tensor, layer->activation, 3, shape, err);
}

static int64_t query_width(const mla_layer *layer) {
  return (int64_t)layer->config.qk_nope_head_dim +
         layer->config.qk_rope_head_dim;
}

static int64_t entry_width(const mla_layer *layer) {
  return (int64_t)layer->config.kv_lora_rank + layer->config.qk_rope_head_dim;
}

/* ------------------------------------------------------------------ decode */

/* The first `width` elements of every row of a head. */
static mla_tensor left_columns(const mla_tensor *t, int64_t width) {
  mla_tensor part = *t;
  part.shape[2] = width;
  return part;
}

static void copy_rope(const mla_layer *layer, const mla_tensor *q,
                      const mla_tensor *absorbed) {
  const mla_layer_config *c = &layer->config;
  for (int64_t t = 0; t < q->shape[0]; t++) {
    for (int64_t h = 0; h < c->num_heads; h++) {
      int64_t from = mla_at3(q, t, h, c->qk_nope_head_dim);
      int64_t to = mla_at3(absorbed, t, h, c->kv_lora_rank);
      for (int64_t i = 0; i < c->qk_rope_head_dim; i++) {
        mla_put(absorbed->data, absorbed->dtype, to + i,
                mla_get(q->data, q->dtype, from + i));
      }
    }
  }
}

mla_status mla_layer_absorb(mla_layer *layer, const mla_tensor *q,
                            const mla_tensor *absorbed, mla_error *err) {
  mla_problem problem = mla_layer_problem(layer, MLA_OP_Q_ABSORB);
  mla_limits limits = mla_limits_init();
  mla_tensor tensor[MLA_T_COUNT];
  mla_status status = expect_heads(layer, "q", q, -1, query_width(layer), err);
  if (status == MLA_OK) {
    status = expect_heads(layer, "absorbed", absorbed, q->shape[0],
                          entry_width(layer), err);
  }
  if (status != MLA_OK) return status;
  memset(tensor, 0, sizeof tensor);
  limits.tokens = q->shape[0];
  tensor[MLA_T_Q_NOPE] = left_columns(q, layer->config.qk_nope_head_dim);
  tensor[MLA_T_W_UK] = layer->w_uk;
  tensor[MLA_T_Q_LATENT] = left_columns(absorbed, layer->config.kv_lora_rank);
  copy_rope(layer, q, absorbed);
  return mla_layer_run(layer, &problem, &limits, tensor, err);
}

mla_status mla_layer_attend(mla_layer *layer, const mla_layer_batch *batch,
                            const mla_tensor *absorbed,
                            const mla_tensor *latents, mla_error *err) {
  mla_problem problem = mla_layer_problem(layer, MLA_OP_DECODE);
  mla_tensor tensor[MLA_T_COUNT];
  mla_status status = mla_layer_batch_check(batch, err);
  if (status == MLA_OK) {
    status =
        expect_heads(layer, "absorbed", absorbed, -1, entry_width(layer), err);
  }
  if (status == MLA_OK) {
    status = expect_heads(layer, "latents", latents, absorbed->shape[0],
                          layer->config.kv_lora_rank, err);
  }
  if (status != MLA_OK) return status;
  mla_limits limits = mla_layer_limits(batch, absorbed->shape[0]);
  mla_layer_set_batch(tensor, batch);
  problem.flags = MLA_CAUSAL;
  problem.cache_format = batch->cache_format;
  problem.block_size = (int32_t)batch->cache.shape[1];
  limits.num_splits = batch->num_splits;
  tensor[MLA_T_Q] = *absorbed;
  tensor[MLA_T_OUT] = *latents;
  return mla_layer_run(layer, &problem, &limits, tensor, err);
}

mla_status mla_layer_expand(mla_layer *layer, const mla_tensor *latents,
                            const mla_tensor *attention, mla_error *err) {
  mla_problem problem = mla_layer_problem(layer, MLA_OP_V_EXPAND);
  mla_limits limits = mla_limits_init();
  mla_tensor tensor[MLA_T_COUNT];
  mla_status status = expect_heads(layer, "latents", latents, -1,
                                   layer->config.kv_lora_rank, err);
  if (status == MLA_OK) {
    status = expect_heads(layer, "attention", attention, latents->shape[0],
                          layer->config.v_head_dim, err);
  }
  if (status != MLA_OK) return status;
  memset(tensor, 0, sizeof tensor);
  limits.tokens = latents->shape[0];
  tensor[MLA_T_O_LATENT] = *latents;
  tensor[MLA_T_W_UV] = layer->w_uv;
  tensor[MLA_T_OUT] = *attention;
  return mla_layer_run(layer, &problem, &limits, tensor, err);
}

mla_status mla_layer_decode(mla_layer *layer, const mla_layer_batch *batch,
                            const mla_tensor *q, const mla_tensor *attention,
                            mla_error *err) {
  const mla_layer_config *c = &layer->config;
  const int64_t wide[3] = {q->shape[0], c->num_heads, entry_width(layer)};
  const int64_t narrow[3] = {q->shape[0], c->num_heads, c->kv_lora_rank};
  mla_tensor absorbed, latents;
  memset(&latents, 0, sizeof latents);
  mla_status status = mla_layer_alloc(&absorbed, "the absorbed q",
                                      layer->activation, 3, wide, err);
  if (status == MLA_OK) {
    status = mla_layer_alloc(&latents, "the attended latents",
                             layer->activation, 3, narrow, err);
  }
  if (status == MLA_OK) status = mla_layer_absorb(layer, q, &absorbed, err);
  if (status == MLA_OK)
    status = mla_layer_attend(layer, batch, &absorbed, &latents, err);
  if (status == MLA_OK)
    status = mla_layer_expand(layer, &latents, attention, err);
  free(absorbed.data);
  free(latents.data);
  return status;
}

/* ----------------------------------------------------------------- prefill */

mla_status mla_layer_prefill(mla_layer *layer, const mla_layer_batch *batch,
                             const mla_tensor *q, const mla_tensor *kv_c,
                             const mla_tensor *k_pe,
                             const mla_tensor *attention, mla_error *err) {
  mla_problem problem = mla_layer_problem(layer, MLA_OP_PREFILL);
  mla_tensor tensor[MLA_T_COUNT];
  mla_status status = expect_heads(layer, "q", q, -1, query_width(layer), err);
  if (status == MLA_OK) {
    status = expect_heads(layer, "attention", attention, q->shape[0],
                          layer->config.v_head_dim, err);
  }
  if (status == MLA_OK) status = mla_layer_batch_check(batch, err);
  if (status != MLA_OK) return status;
  mla_limits limits = mla_layer_limits(batch, q->shape[0]);
  mla_layer_set_batch(tensor, batch);
  problem.flags = MLA_CAUSAL;
  if (batch->cache.data) {
    problem.flags |= MLA_CONTEXT;
    problem.cache_format = batch->cache_format;
    problem.block_size = (int32_t)batch->cache.shape[1];
    limits.context_chunk = batch->context_chunk;
  }
  tensor[MLA_T_Q] = *q;
  tensor[MLA_T_KV_C] = *kv_c;
  tensor[MLA_T_K_PE] = *k_pe;
  tensor[MLA_T_KV_B_PROJ] = layer->weights.kv_b_proj;
  tensor[MLA_T_OUT] = *attention;
  return mla_layer_run(layer, &problem, &limits, tensor, err);
}
