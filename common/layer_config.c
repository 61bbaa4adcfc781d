/*
 * layer_config.c - the rules that the description of a layer must keep.
 */
#include "layer_config.h"

#include <string.h>

#include "dmath.h"
#include "error.h"

mla_layer_config mla_layer_config_init(void) {
  mla_layer_config config;
  memset(&config, 0, sizeof config);
  config.q_norm_eps = 1e-6;
  config.kv_norm_eps = 1e-6;
  config.index_norm_eps = 1e-6;
  config.index_half_split = 1;
  config.rope.theta = 10000;
  config.rope.factor = 1;
  config.rope.beta_fast = 32;
  config.rope.beta_slow = 1;
  return config;
}

static mla_status check_size(const char *name, int64_t value, mla_error *err) {
  if (value >= 1 && value <= INT32_MAX) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                  "%s is %lld, from 1 to 2147483647", name, (long long)value);
}

static mla_status check_real(const char *name, double value, double limit,
                             mla_error *err) {
  if (value >= 0 && value <= limit) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, name, "%s is %g, from 0 to %g",
                  name, value, limit);
}

static mla_status check_sizes(const mla_layer_config *c, mla_error *err) {
  int64_t heads = c->num_heads;
  int64_t query = (int64_t)c->qk_nope_head_dim + c->qk_rope_head_dim;
  int64_t up = (int64_t)c->qk_nope_head_dim + c->v_head_dim;
  const struct {
    const char *name;
    int64_t value;
  } sizes[] = {
      {"hidden_size", c->hidden_size},
      {"num_attention_heads", heads},
      {"kv_lora_rank", c->kv_lora_rank},
      {"qk_nope_head_dim", c->qk_nope_head_dim},
      {"qk_rope_head_dim", c->qk_rope_head_dim},
      {"v_head_dim", c->v_head_dim},
      /* rows and columns of the projections are 32-bit too */
      {"kv_lora_rank + qk_rope_head_dim",
       (int64_t)c->kv_lora_rank + c->qk_rope_head_dim},
      {"num_attention_heads * (nope + rope)", heads * query},
      {"num_attention_heads * (nope + v)", heads * up},
  };
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    mla_status status = check_size(sizes[i].name, sizes[i].value, err);
    if (status != MLA_OK) return status;
  }
  if (c->q_lora_rank < 0) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "q_lora_rank",
                    "q_lora_rank is %d, at least 0 (0: none)", c->q_lora_rank);
  }
  return MLA_OK;
}

static mla_status check_reals(const mla_layer_config *c, mla_error *err) {
  const struct {
    const char *name;
    double value, limit;
  } reals[] = {
      {"rms_norm_eps of q", c->q_norm_eps, 1},
      {"rms_norm_eps of kv", c->kv_norm_eps, 1},
      {"eps of the indexer", c->index_norm_eps, 1},
      {"softmax_scale", c->softmax_scale, 1e6},
      {"mla_scale_q_lora", c->mla_scale_q_lora, 1e6},
      {"mla_scale_kv_lora", c->mla_scale_kv_lora, 1e6},
  };
  for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
    mla_status status =
        check_real(reals[i].name, reals[i].value, reals[i].limit, err);
    if (status != MLA_OK) return status;
  }
  return MLA_OK;
}

static mla_status check_indexer(const mla_layer_config *c, mla_error *err) {
  const mla_status bad = MLA_INVALID_ARGUMENT;
  if (c->index_topk <= 0) return MLA_OK;
  int64_t heads = c->index_n_heads;
  mla_status status = check_size("index_n_heads", heads, err);
  if (status == MLA_OK) {
    status = check_size("index_n_heads * index_head_dim",
                        heads * c->index_head_dim, err);
  }
  if (status != MLA_OK) return status;
  if (c->index_head_dim < c->qk_rope_head_dim) {
    return mla_fail(err, bad, "index_head_dim",
                    "index_head_dim is %d, less than the %d of "
                    "qk_rope_head_dim that are rotated",
                    c->index_head_dim, c->qk_rope_head_dim);
  }
  if (c->q_lora_rank == 0) {
    return mla_fail(err, bad, "q_lora_rank",
                    "q_lora_rank is 0, but the indexer's queries are made of "
                    "the q latent");
  }
  return MLA_OK;
}

mla_status mla_layer_config_check(const mla_layer_config *config,
                                  mla_error *err) {
  mla_status status = check_sizes(config, err);
  if (status == MLA_OK) status = check_reals(config, err);
  if (status == MLA_OK) status = check_indexer(config, err);
  if (status == MLA_OK) status = mla_rope_check(&config->rope, err);
  if (status != MLA_OK) return status;
  if (config->rope.dim != config->qk_rope_head_dim) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "rope.dim",
                    "rope.dim is %d, but qk_rope_head_dim is %d",
                    config->rope.dim, config->qk_rope_head_dim);
  }
  return MLA_OK;
}

double mla_layer_softmax_scale(const mla_layer_config *config) {
  if (config->softmax_scale > 0) return config->softmax_scale;
  double width = (double)config->qk_nope_head_dim + config->qk_rope_head_dim;
  return mla_rope_softmax_factor(&config->rope) / mla_sqrt(width);
}
