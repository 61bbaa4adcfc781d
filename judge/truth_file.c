/*
 * truth_file.c - the metadata of a file of somebody else's outputs.
 */
#include "truth_file.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_json.h"
#include "config_rope.h"
#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "tensor.h"

static const cJSON *member(const cJSON *object, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(object, key);
}

static mla_status missing(const char *key, mla_error *err) {
  return mla_fail(err, MLA_INVALID_ARGUMENT, key,
                  "%s is missing from the file, or of the wrong kind", key);
}

/* ------------------------------------------------------------ what was run */

static mla_status read_whole(const cJSON *meta, const char *key, int64_t low,
                             int64_t high, int64_t *value, mla_error *err) {
  if (!mla_config_has(meta, key)) return missing(key, err);
  mla_status status = mla_config_integer(meta, key, value, err);
  if (status == MLA_OK && (*value < low || *value > high)) {
    status = mla_fail(err, MLA_INVALID_ARGUMENT, key,
                      "%s is %lld, from %lld to %lld", key, (long long)*value,
                      (long long)low, (long long)high);
  }
  return status;
}

static mla_status read_run(mla_truth_file *truth, mla_error *err) {
  const cJSON *name = member(truth->meta, "case");
  int64_t seed = 0;
  snprintf(truth->name, sizeof truth->name, "%s",
           cJSON_IsString(name) ? name->valuestring : "unnamed");
  mla_status status =
      read_whole(truth->meta, "seed", 0, (int64_t)1 << 53, &seed, err);
  truth->seed = (uint64_t)seed;
  if (status == MLA_OK) {
    status = read_whole(truth->meta, "tokens", 1, MLA_ROPE_MAX_POSITION,
                        &truth->tokens, err);
  }
  if (status == MLA_OK) {
    status = read_whole(truth->meta, "first_position", 0,
                        MLA_ROPE_MAX_POSITION - truth->tokens + 1,
                        &truth->first_position, err);
  }
  return status;
}

/* --------------------------------------------------------------- the layer */

static mla_status read_eps(const cJSON *meta, mla_layer_config *config,
                           mla_error *err) {
  const cJSON *eps = member(meta, "rms_norm_eps");
  if (cJSON_IsObject(eps)) {
    mla_status status =
        mla_config_number(eps, "q_a_layernorm", &config->q_norm_eps, err);
    if (status == MLA_OK) {
      status =
          mla_config_number(eps, "kv_a_layernorm", &config->kv_norm_eps, err);
    }
    if (status != MLA_OK) return status;
    return mla_config_number(eps, "indexer.k_norm", &config->index_norm_eps,
                             err);
  }
  mla_status status =
      mla_config_number(meta, "rms_norm_eps", &config->q_norm_eps, err);
  if (cJSON_IsNumber(eps)) config->kv_norm_eps = config->q_norm_eps;
  return status;
}

static mla_status read_table(const cJSON *meta, mla_rope *rope,
                             mla_error *err) {
  const cJSON *table = member(meta, "rope_table");
  const char *name = cJSON_IsString(table) ? table->valuestring : NULL;
  if (!table || cJSON_IsNull(table)) return MLA_OK;
  if (name && strcmp(name, "exact") == 0) {
    rope->table = MLA_ROPE_TABLE_EXACT;
  } else if (name && strcmp(name, "f32") == 0) {
    rope->table = MLA_ROPE_TABLE_F32;
  } else {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "rope_table",
                    "rope_table is \"%.40s\", not exact or f32",
                    name ? name : "?");
  }
  return MLA_OK;
}

/* What stands beside `config` wins over what stands in it. */
static mla_status read_beside(mla_truth_file *truth, mla_error *err) {
  mla_layer_config *config = &truth->config;
  int interleave = !config->rope.half_split;
  mla_status status = read_eps(truth->meta, config, err);
  if (status == MLA_OK) status = read_table(truth->meta, &config->rope, err);
  if (status == MLA_OK) {
    status = mla_config_flag(truth->meta, "rope_interleave", &interleave, err);
    config->rope.half_split = !interleave;
  }
  interleave = !config->index_half_split;
  if (status == MLA_OK) {
    status = mla_config_flag(truth->meta, "indexer_rope_interleave",
                             &interleave, err);
    config->index_half_split = !interleave;
  }
  if (status == MLA_OK) {
    status = mla_config_lora_scales(truth->meta, config, err);
  }
  return status == MLA_OK ? mla_layer_config_check(config, err) : status;
}

static int near(double a, double b, double tolerance) {
  return mla_fabs(a - b) <= tolerance * mla_fabs(b);
}

/*
 * The scales the file was made with. They follow from the config by rule; a
 * model that breaks the rule is judged by its own scale, and that is said.
 */
static mla_status read_scalings(mla_truth_file *truth, mla_error *err) {
  mla_layer_config *config = &truth->config;
  double softmax = mla_layer_softmax_scale(config);
  double attention = mla_rope_attention_factor(&config->rope);
  double softmax_rule = softmax, attention_rule = attention;
  mla_status status =
      mla_config_number(truth->meta, "softmax_scale", &softmax, err);
  if (status == MLA_OK) {
    status =
        mla_config_number(truth->meta, "attention_scaling", &attention, err);
  }
  if (status != MLA_OK) return status;
  if (!near(softmax, softmax_rule, 1e-12)) {
    config->softmax_scale = softmax;
    snprintf(truth->remark, sizeof truth->remark,
             "softmax_scale is %.9g in the file, %.9g by the rule", softmax,
             softmax_rule);
  }
  if (!near(attention, attention_rule, 1e-7)) {
    config->rope.attention_factor = attention;
    snprintf(truth->remark, sizeof truth->remark,
             "attention_scaling is %.9g in the file, %.9g by the rule",
             attention, attention_rule);
  }
  return mla_layer_config_check(config, err);
}

/* --------------------------------------------------- what cannot be judged */

/* Something of an indexer, whose sizes the config does not have. */
static int has_half_an_indexer(const mla_truth_file *truth) {
  return truth->config.index_topk == 0 &&
         (mla_st_find(truth->file, "topk_indices") != NULL ||
          mla_config_has(truth->meta, "indexer_rope_interleave"));
}

static mla_status check_parameters(mla_truth_file *truth, mla_error *err) {
  const cJSON *params = member(truth->meta, "params"), *param;
  if (!cJSON_IsObject(params)) return missing("params", err);
  if (has_half_an_indexer(truth)) return missing("index_topk", err);
  cJSON_ArrayForEach(param, params) {
    if (!mla_truth_knows(param->string)) {
      snprintf(truth->unsupported, sizeof truth->unsupported,
               "has a parameter \"%.80s\" that the layer does not have: not "
               "judged",
               param->string);
      return MLA_OK;
    }
  }
  return MLA_OK;
}

/* -------------------------------------------------------------- the outputs */

static mla_status view(const mla_truth_file *truth, const char *name,
                       int32_t rank, const int64_t *shape, int is_index,
                       mla_tensor *tensor, mla_error *err) {
  const mla_st_tensor *stored = mla_st_find(truth->file, name);
  if (!stored) return missing(name, err);
  mla_status status = mla_st_view(stored, tensor, err);
  if (status != MLA_OK) return status;
  int index = tensor->dtype == MLA_I32 || tensor->dtype == MLA_I64;
  int real = tensor->dtype >= MLA_F64 && tensor->dtype <= MLA_BF16;
  int good = tensor->rank == rank && (is_index ? index : real);
  for (int32_t i = 0; i < rank && good; i++) {
    good =
        tensor->shape[i] == shape[i] || (shape[i] < 0 && tensor->shape[i] > 0);
  }
  if (good) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                  "%s does not have the shape that config and tokens give, or "
                  "not a type for it",
                  name);
}

static mla_status check_rows(const mla_truth_file *truth, mla_error *err) {
  for (int64_t i = 0; i < truth->rows.shape[0]; i++) {
    int64_t row = mla_get_int(truth->rows.data, truth->rows.dtype, i);
    if (row < 0 || row >= truth->tokens) {
      return mla_fail(err, MLA_INVALID_ARGUMENT, "rows",
                      "rows[%lld] is %lld, from 0 to %lld", (long long)i,
                      (long long)row, (long long)truth->tokens - 1);
    }
  }
  return MLA_OK;
}

/* Rows of at least as many positions as a row may have to choose. */
static mla_status read_choices(mla_truth_file *truth, mla_error *err) {
  int64_t least = truth->config.index_topk;
  const int64_t shape[2] = {truth->tokens, -1};
  if (least > truth->tokens) least = truth->tokens;
  mla_status status =
      view(truth, "topk_indices", 2, shape, 1, &truth->topk, err);
  if (status == MLA_OK && truth->topk.shape[1] < least) {
    status = mla_fail(err, MLA_INVALID_ARGUMENT, "topk_indices",
                      "topk_indices has %lld positions a row, at least %lld "
                      "are chosen",
                      (long long)truth->topk.shape[1], (long long)least);
  }
  return status;
}

static mla_status read_outputs(mla_truth_file *truth, mla_error *err) {
  const mla_layer_config *c = &truth->config;
  const int64_t any[1] = {-1};
  const int64_t output[2] = {truth->tokens, c->hidden_size};
  const int64_t latent[2] = {truth->tokens, c->kv_lora_rank};
  mla_status status = view(truth, "output", 2, output, 0, &truth->output, err);
  if (status == MLA_OK)
    status = view(truth, "kv_c", 2, latent, 0, &truth->kv_c, err);
  if (status == MLA_OK)
    status = view(truth, "rows", 1, any, 1, &truth->rows, err);
  if (status == MLA_OK) status = check_rows(truth, err);
  if (status != MLA_OK) return status;
  const int64_t attention[2] = {truth->rows.shape[0],
                                (int64_t)c->num_heads * c->v_head_dim};
  status =
      view(truth, "attn_output_rows", 2, attention, 0, &truth->attention, err);
  if (status != MLA_OK || c->index_topk == 0) return status;
  return read_choices(truth, err);
}

/* ---------------------------------------------------------------- the whole */

/* The indexer's sizes may stand in an object of their own. */
static void lift_indexer(cJSON *config) {
  static const char *const keys[] = {"index_n_heads", "index_head_dim",
                                     "index_topk"};
  const cJSON *index = member(config, "index");
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    const cJSON *value = member(index, keys[i]);
    if (!value || member(config, keys[i])) continue;
    cJSON_AddItemToObject(config, keys[i], cJSON_Duplicate(value, 1));
  }
}

static mla_status read_meta(mla_truth_file *truth, mla_error *err) {
  const char *text = mla_st_meta(truth->file, "truth");
  if (!text) return missing("metadata key truth", err);
  truth->meta = cJSON_Parse(text);
  cJSON *config = cJSON_GetObjectItemCaseSensitive(truth->meta, "config");
  if (!cJSON_IsObject(config)) return missing("truth.config", err);
  lift_indexer(config);
  mla_status status = read_run(truth, err);
  if (status != MLA_OK) return status;
  mla_error own = mla_error_init();
  status = mla_config_from(config, &truth->config, &own);
  if (status == MLA_UNSUPPORTED) {
    snprintf(truth->unsupported, sizeof truth->unsupported, "%s", own.message);
    return MLA_OK;
  }
  if (status != MLA_OK) {
    return mla_fail(err, status, own.field, "%s", own.message);
  }
  status = read_beside(truth, err);
  if (status == MLA_OK) status = read_scalings(truth, err);
  if (status == MLA_OK) status = check_parameters(truth, err);
  return status;
}

mla_status mla_truth_open(const char *path, mla_truth_file *truth,
                          mla_error *err) {
  memset(truth, 0, sizeof *truth);
  mla_status status = mla_st_open(path, &truth->file, err);
  if (status == MLA_OK) status = read_meta(truth, err);
  if (status != MLA_OK || truth->unsupported[0]) return status;
  return read_outputs(truth, err);
}

void mla_truth_close(mla_truth_file *truth) {
  cJSON_Delete(truth->meta);
  mla_st_close(truth->file);
  truth->meta = NULL;
  truth->file = NULL;
}
