/*
 * config_json.c - sizes and scales of a layer from a config.json.
 */
#include "config_json.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "config_rope.h"
#include "dmath.h"
#include "error.h"

/* One family whose files leave unsaid what its code knows: values as wide as
   hidden / heads, half-split pairs. */
static int is_minicpm3(const cJSON *object) {
  const cJSON *type = cJSON_GetObjectItemCaseSensitive(object, "model_type");
  return cJSON_IsString(type) && strcmp(type->valuestring, "minicpm3") == 0;
}

static mla_status read_sizes(const cJSON *object, mla_layer_config *config,
                             mla_error *err) {
  const struct {
    const char *key;
    int32_t *value;
    int needed;
  } sizes[] = {
      {"hidden_size", &config->hidden_size, 1},
      {"num_attention_heads", &config->num_heads, 1},
      {"q_lora_rank", &config->q_lora_rank, 0},
      {"kv_lora_rank", &config->kv_lora_rank, 1},
      {"qk_nope_head_dim", &config->qk_nope_head_dim, 1},
      {"qk_rope_head_dim", &config->qk_rope_head_dim, 1},
      {"v_head_dim", &config->v_head_dim, !is_minicpm3(object)},
      {"index_n_heads", &config->index_n_heads, 0},
      {"index_head_dim", &config->index_head_dim, 0},
      {"index_topk", &config->index_topk, 0},
  };
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const char *key = sizes[i].key;
    int64_t value = 0;
    if (sizes[i].needed && !mla_config_has(object, key)) {
      return mla_fail(err, MLA_INVALID_ARGUMENT, key, "%s is missing", key);
    }
    mla_status status = mla_config_integer(object, key, &value, err);
    if (status != MLA_OK) return status;
    if (value < 0 || value > INT32_MAX) {
      return mla_fail(err, MLA_INVALID_ARGUMENT, key,
                      "%s is %lld, from 0 to 2147483647", key,
                      (long long)value);
    }
    *sizes[i].value = (int32_t)value;
  }
  if (!mla_config_has(object, "v_head_dim") && config->num_heads > 0) {
    config->v_head_dim = config->hidden_size / config->num_heads;
  }
  config->rope.dim = config->qk_rope_head_dim;
  return MLA_OK;
}

static mla_status read_lora_scale(const cJSON *object, const char *key,
                                  int32_t hidden, int32_t rank, double *scale,
                                  mla_error *err) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  if (!cJSON_IsBool(item)) return mla_config_number(object, key, scale, err);
  *scale = 0;
  if (cJSON_IsFalse(item)) return MLA_OK;
  if (rank <= 0) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, key,
                    "%s is true, but there is no rank to scale by", key);
  }
  *scale = mla_sqrt((double)hidden / rank);
  return MLA_OK;
}

mla_status mla_config_lora_scales(const cJSON *object, mla_layer_config *config,
                                  mla_error *err) {
  mla_status status =
      read_lora_scale(object, "mla_scale_q_lora", config->hidden_size,
                      config->q_lora_rank, &config->mla_scale_q_lora, err);
  if (status != MLA_OK) return status;
  return read_lora_scale(object, "mla_scale_kv_lora", config->hidden_size,
                         config->kv_lora_rank, &config->mla_scale_kv_lora, err);
}

static mla_status read_scales(const cJSON *object, mla_layer_config *config,
                              mla_error *err) {
  mla_status status =
      mla_config_number(object, "rms_norm_eps", &config->q_norm_eps, err);
  config->kv_norm_eps = config->q_norm_eps;
  return status == MLA_OK ? mla_config_lora_scales(object, config, err)
                          : status;
}

static mla_status read_pairing(const cJSON *object, mla_layer_config *config,
                               mla_error *err) {
  int interleave = !is_minicpm3(object);
  mla_status status =
      mla_config_flag(object, "rope_interleave", &interleave, err);
  config->rope.half_split = !interleave;
  interleave = !config->index_half_split;
  if (status == MLA_OK) {
    status =
        mla_config_flag(object, "indexer_rope_interleave", &interleave, err);
  }
  config->index_half_split = !interleave;
  return status;
}

static mla_status refuse_biases(const cJSON *object, mla_error *err) {
  int biases = 0;
  mla_status status = mla_config_flag(object, "attention_bias", &biases, err);
  if (status == MLA_OK && biases) {
    status = mla_fail(err, MLA_UNSUPPORTED, "attention_bias",
                      "attention_bias is true; the layer's projections have "
                      "no biases");
  }
  return status;
}

/* The language model inside a model of several kinds of input. */
static const cJSON *language_model(const cJSON *object) {
  const cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, "text_config");
  if (!mla_config_has(object, "kv_lora_rank") && cJSON_IsObject(inner)) {
    return inner;
  }
  return object;
}

mla_status mla_config_from(const cJSON *object, mla_layer_config *config,
                           mla_error *err) {
  *config = mla_layer_config_init();
  if (!cJSON_IsObject(object)) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "config",
                    "the config is not a JSON object");
  }
  object = language_model(object);
  mla_status status = read_sizes(object, config, err);
  if (status == MLA_OK) status = read_scales(object, config, err);
  if (status == MLA_OK) status = read_pairing(object, config, err);
  if (status == MLA_OK) status = refuse_biases(object, err);
  if (status == MLA_OK) status = mla_config_rope(object, &config->rope, err);
  if (status == MLA_OK) status = mla_layer_config_check(config, err);
  return status;
}

mla_status mla_config_parse(const char *json, size_t length,
                            mla_layer_config *config, mla_error *err) {
  cJSON *object = cJSON_ParseWithLength(json, length);
  *config = mla_layer_config_init();
  if (!object) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "config",
                    "the config is not JSON");
  }
  mla_status status = mla_config_from(object, config, err);
  cJSON_Delete(object);
  return status;
}
