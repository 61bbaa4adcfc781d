/*
 * layer.c - making a layer, and asking a backend for one operation.
 */
#include "layer.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "layer_internal.h"
#include "tensor.h"

/* ---------------------------------------------------------------- tensors */

mla_status mla_layer_alloc(mla_tensor *tensor, const char *name, int32_t dtype,
                           int32_t rank, const int64_t *shape, mla_error *err) {
  *tensor = mla_tensor_dense(NULL, dtype, rank, shape);
  int64_t bytes = mla_tensor_extent(tensor);
  if (bytes >= 0 && (uint64_t)bytes <= SIZE_MAX) {
    tensor->data = calloc(1, bytes > 0 ? (size_t)bytes : 1);
  }
  if (tensor->data) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, name, "no memory for %s, %lld bytes",
                  name, (long long)bytes);
}

mla_status mla_layer_expect(const char *name, const mla_tensor *tensor,
                            int32_t dtype, int32_t rank, const int64_t *shape,
                            mla_error *err) {
  const mla_status bad = MLA_INVALID_ARGUMENT;
  const char *wanted = mla_dtype_name(dtype);
  if (!tensor->data) return mla_fail(err, bad, name, "%s is absent", name);
  if (dtype != MLA_DTYPE_NONE && tensor->dtype != dtype) {
    const char *got = mla_dtype_name(tensor->dtype);
    return mla_fail(err, bad, name, "%s is of %s, the layer takes %s", name,
                    got ? got : "an unknown type", wanted ? wanted : "?");
  }
  if (tensor->rank != rank) {
    return mla_fail(err, bad, name, "%s has rank %d, not %d", name,
                    tensor->rank, rank);
  }
  for (int32_t axis = 0; axis < rank; axis++) {
    if (shape[axis] >= 0 && tensor->shape[axis] != shape[axis]) {
      return mla_fail(err, bad, name, "%s has %lld on axis %d, not %lld", name,
                      (long long)tensor->shape[axis], axis,
                      (long long)shape[axis]);
    }
  }
  return MLA_OK;
}

/* ------------------------------------------------------------ one operation */

mla_problem mla_layer_problem(const mla_layer *layer, mla_op op) {
  const mla_layer_config *c = &layer->config;
  mla_problem problem = mla_problem_init(op);
  problem.q_dtype = layer->activation;
  problem.out_dtype = layer->activation;
  problem.weight_dtype = layer->weights.kv_b_proj.dtype;
  problem.num_heads = c->num_heads;
  problem.kv_lora_rank = c->kv_lora_rank;
  problem.qk_nope_head_dim = c->qk_nope_head_dim;
  problem.qk_rope_head_dim = c->qk_rope_head_dim;
  problem.v_head_dim = c->v_head_dim;
  problem.scale = mla_layer_softmax_scale(c);
  return problem;
}

static void *alloc_workspace(const mla_answer *answer, uint64_t *bytes) {
  uint64_t alignment = answer->workspace_alignment;
  if (alignment < 64) alignment = 64;
  *bytes = (answer->workspace_bytes / alignment + 1) * alignment;
  if (*bytes > SIZE_MAX || *bytes < answer->workspace_bytes) return NULL;
  return aligned_alloc((size_t)alignment, (size_t)*bytes);
}

static mla_status run_plan(const mla_layer *layer, const mla_plan *plan,
                           const mla_problem *problem, const mla_args *args,
                           mla_error *err) {
  const mla_answer *answer = mla_plan_answer(plan);
  uint64_t bytes;
  void *workspace = alloc_workspace(answer, &bytes);
  if (!workspace) {
    return mla_fail(err, MLA_OUT_OF_MEMORY, "workspace",
                    "no memory for a workspace of %llu bytes",
                    (unsigned long long)answer->workspace_bytes);
  }
  mla_status status = mla_run(plan, args, workspace, bytes, NULL, err);
  free(workspace);
  if (status != MLA_OK || !layer->observer) return status;
  return layer->observer(layer->observer_context, problem, answer, args, err);
}

mla_status mla_layer_run(const mla_layer *layer, const mla_problem *problem,
                         const mla_limits *limits, const mla_tensor *tensor,
                         mla_error *err) {
  mla_args args = {(uint32_t)sizeof args, MLA_T_COUNT, tensor};
  mla_plan *plan;
  mla_status status = mla_plan_create(layer->dev, problem, limits, &plan, err);
  if (status != MLA_OK) return status;
  status = run_plan(layer, plan, problem, &args, err);
  mla_plan_free(plan);
  return status;
}

mla_status mla_layer_multiply(const mla_layer *layer, const mla_tensor *a,
                              const mla_tensor *b, const mla_tensor *out,
                              mla_error *err) {
  mla_tensor tensor[MLA_T_COUNT];
  mla_problem problem = mla_problem_init(MLA_OP_MATMUL);
  mla_limits limits = mla_limits_init();
  memset(tensor, 0, sizeof tensor);
  problem.q_dtype = a->dtype;
  problem.weight_dtype = b->dtype;
  problem.out_dtype = out->dtype;
  problem.q_lora_rank = (int32_t)b->shape[1];
  problem.hidden_size = (int32_t)b->shape[0];
  limits.tokens = a->shape[0];
  tensor[MLA_T_A] = *a;
  tensor[MLA_T_B] = *b;
  tensor[MLA_T_OUT] = *out;
  return mla_layer_run(layer, &problem, &limits, tensor, err);
}

/* ------------------------------------------------------------------ making */

static mla_status check_weights(const mla_layer_config *c,
                                const mla_layer_weights *w, mla_error *err) {
  const int64_t query =
      c->num_heads * ((int64_t)c->qk_nope_head_dim + c->qk_rope_head_dim);
  const int64_t up =
      c->num_heads * ((int64_t)c->qk_nope_head_dim + c->v_head_dim);
  const int64_t latent = (int64_t)c->kv_lora_rank + c->qk_rope_head_dim;
  const int64_t values = (int64_t)c->num_heads * c->v_head_dim;
  const int64_t keys = (int64_t)c->index_n_heads * c->index_head_dim;
  const int64_t hidden = c->hidden_size;
  const int has_lora = c->q_lora_rank > 0, sparse = c->index_topk > 0;
  const struct {
    const char *name;
    const mla_tensor *tensor;
    int needed;
    int32_t rank;
    int64_t shape[2];
  } all[] = {
      {"q_proj", &w->q_proj, !has_lora, 2, {query, c->hidden_size}},
      {"q_a_proj", &w->q_a_proj, has_lora, 2, {c->q_lora_rank, c->hidden_size}},
      {"q_a_layernorm", &w->q_a_layernorm, has_lora, 1, {c->q_lora_rank, 0}},
      {"q_b_proj", &w->q_b_proj, has_lora, 2, {query, c->q_lora_rank}},
      {"kv_a_proj", &w->kv_a_proj, 1, 2, {latent, c->hidden_size}},
      {"kv_a_layernorm", &w->kv_a_layernorm, 1, 1, {c->kv_lora_rank, 0}},
      {"kv_b_proj", &w->kv_b_proj, 1, 2, {up, c->kv_lora_rank}},
      {"o_proj", &w->o_proj, 1, 2, {c->hidden_size, values}},
      {"index_wq_b", &w->index_wq_b, sparse, 2, {keys, c->q_lora_rank}},
      {"index_wk", &w->index_wk, sparse, 2, {c->index_head_dim, hidden}},
      {"index_k_norm", &w->index_k_norm, sparse, 1, {c->index_head_dim, 0}},
      {"index_k_norm_bias",
       &w->index_k_norm_bias,
       sparse,
       1,
       {c->index_head_dim, 0}},
      {"index_weights_proj",
       &w->index_weights_proj,
       sparse,
       2,
       {c->index_n_heads, hidden}},
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (!all[i].needed) continue;
    mla_status status =
        mla_layer_expect(all[i].name, all[i].tensor, MLA_DTYPE_NONE,
                         all[i].rank, all[i].shape, err);
    if (status != MLA_OK) return status;
  }
  return MLA_OK;
}

static mla_status check_device(mla_device *dev, mla_error *err) {
  if (mla_device_backend(dev)->mem_alloc) {
    return mla_fail(err, MLA_UNSUPPORTED, "dev",
                    "the layer keeps its tensors in host memory, backend %s "
                    "has memory of its own",
                    mla_device_backend(dev)->name);
  }
  return MLA_OK;
}

static mla_status absorb(mla_layer *layer, mla_error *err) {
  const mla_layer_config *c = &layer->config;
  const int64_t key[3] = {c->num_heads, c->qk_nope_head_dim, c->kv_lora_rank};
  const int64_t value[3] = {c->num_heads, c->v_head_dim, c->kv_lora_rank};
  mla_problem problem = mla_layer_problem(layer, MLA_OP_ABSORB);
  mla_limits limits = mla_limits_init();
  mla_tensor tensor[MLA_T_COUNT];
  problem.out_dtype = problem.weight_dtype; /* split apart, not changed */
  mla_status status =
      mla_layer_alloc(&layer->w_uk, "w_uk", problem.weight_dtype, 3, key, err);
  if (status == MLA_OK) {
    status = mla_layer_alloc(&layer->w_uv, "w_uv", problem.weight_dtype, 3,
                             value, err);
  }
  if (status != MLA_OK) return status;
  memset(tensor, 0, sizeof tensor);
  tensor[MLA_T_KV_B_PROJ] = layer->weights.kv_b_proj;
  tensor[MLA_T_W_UK] = layer->w_uk;
  tensor[MLA_T_W_UV] = layer->w_uv;
  return mla_layer_run(layer, &problem, &limits, tensor, err);
}

static mla_status fill_layer(mla_layer *layer, mla_error *err) {
  size_t pairs = (size_t)layer->config.qk_rope_head_dim / 2;
  layer->frequencies = malloc(pairs * sizeof *layer->frequencies);
  if (!layer->frequencies) {
    return mla_fail(err, MLA_OUT_OF_MEMORY, "rope",
                    "no memory for %zu frequencies", pairs);
  }
  mla_rope_frequencies(&layer->config.rope, layer->frequencies);
  return absorb(layer, err);
}

mla_status mla_layer_create(mla_device *dev, const mla_layer_config *config,
                            const mla_layer_weights *weights,
                            int32_t activation, mla_layer **layer,
                            mla_error *err) {
  *layer = NULL;
  mla_status status = mla_layer_config_check(config, err);
  if (status == MLA_OK) status = check_device(dev, err);
  if (status == MLA_OK) status = check_weights(config, weights, err);
  if (status != MLA_OK) return status;
  mla_layer *made = calloc(1, sizeof *made);
  if (!made) {
    return mla_fail(err, MLA_OUT_OF_MEMORY, "layer", "no memory for a layer");
  }
  made->dev = dev;
  made->config = *config;
  made->weights = *weights;
  made->activation = activation;
  status = fill_layer(made, err);
  if (status != MLA_OK) {
    mla_layer_free(made);
    return status;
  }
  *layer = made;
  return MLA_OK;
}

void mla_layer_free(mla_layer *layer) {
  if (!layer) return;
  free(layer->w_uk.data);
  free(layer->w_uv.data);
  free(layer->frequencies);
  free(layer);
}

const mla_layer_config *mla_layer_config_of(const mla_layer *layer) {
  return &layer->config;
}

void mla_layer_observe(mla_layer *layer, mla_layer_observer observer,
                       void *context) {
  layer->observer = observer;
  layer->observer_context = context;
}
