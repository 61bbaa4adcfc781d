/*
 * config_rope.c - rotary positions from a config.json, old form and new.
 */
#include "config_rope.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "dmath.h"
#include "error.h"

/* ---------------------------------------------------------------- members */

static const cJSON *member(const cJSON *object, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  return cJSON_IsNull(item) ? NULL : item;
}

int mla_config_has(const cJSON *object, const char *key) {
  return member(object, key) != NULL;
}

mla_status mla_config_number(const cJSON *object, const char *key,
                             double *value, mla_error *err) {
  const cJSON *item = member(object, key);
  if (!item) return MLA_OK;
  if (!cJSON_IsNumber(item) || mla_isnan(item->valuedouble) ||
      mla_isinf(item->valuedouble)) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, key, "%s is not a number", key);
  }
  *value = item->valuedouble;
  return MLA_OK;
}

mla_status mla_config_integer(const cJSON *object, const char *key,
                              int64_t *value, mla_error *err) {
  double number = 0;
  if (!mla_config_has(object, key)) return MLA_OK;
  mla_status status = mla_config_number(object, key, &number, err);
  if (status != MLA_OK) return status;
  if (mla_fabs(number) > 9007199254740992.0 || mla_floor(number) != number) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, key,
                    "%s is %g, not a whole number", key, number);
  }
  *value = (int64_t)number;
  return MLA_OK;
}

mla_status mla_config_flag(const cJSON *object, const char *key, int *value,
                           mla_error *err) {
  const cJSON *item = member(object, key);
  if (!item) return MLA_OK;
  if (!cJSON_IsBool(item)) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, key, "%s is not true or false",
                    key);
  }
  *value = cJSON_IsTrue(item);
  return MLA_OK;
}

/* ------------------------------------------------------------ rotary part */

/* The newer form says rope_type, the older type; some files say both. */
static const char *type_name(const cJSON *part) {
  const cJSON *item = member(part, "rope_type");
  if (!item) item = member(part, "type");
  if (!item) return "default";
  return cJSON_IsString(item) ? item->valuestring : "?";
}

static mla_status read_type(const cJSON *part, mla_rope *rope, mla_error *err) {
  const char *name = type_name(part);
  rope->type = MLA_ROPE_PLAIN;
  if (strcmp(name, "default") == 0) return MLA_OK;
  rope->type = MLA_ROPE_YARN;
  if (strcmp(name, "yarn") == 0 || strcmp(name, "deepseek_yarn") == 0) {
    return MLA_OK;
  }
  return mla_fail(err, MLA_UNSUPPORTED, "rope_type",
                  "rope_type is \"%.40s\"; the layer has default and yarn",
                  name);
}

static mla_status read_scales(const cJSON *part, mla_rope *rope,
                              mla_error *err) {
  const struct {
    const char *key;
    double *value;
  } numbers[] = {
      {"rope_theta", &rope->theta},
      {"factor", &rope->factor},
      {"beta_fast", &rope->beta_fast},
      {"beta_slow", &rope->beta_slow},
      {"mscale", &rope->mscale},
      {"mscale_all_dim", &rope->mscale_all_dim},
      {"attention_factor", &rope->attention_factor},
      {"llama_4_scaling_beta", &rope->llama_4_beta},
  };
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    mla_status status =
        mla_config_number(part, numbers[i].key, numbers[i].value, err);
    if (status != MLA_OK) return status;
  }
  int truncates = 1;
  mla_status status = mla_config_flag(part, "truncate", &truncates, err);
  rope->no_truncation = !truncates;
  return status;
}

/* The length before YaRN, and the factor if only lengths are given. */
static mla_status read_lengths(const cJSON *object, const cJSON *part,
                               mla_rope *rope, mla_error *err) {
  int64_t longest = 0;
  mla_status status =
      mla_config_integer(object, "max_position_embeddings", &longest, err);
  if (status != MLA_OK) return status;
  rope->original_max_position = longest;
  status = mla_config_integer(part, "original_max_position_embeddings",
                              &rope->original_max_position, err);
  if (status != MLA_OK) return status;
  if (rope->type == MLA_ROPE_YARN && !mla_config_has(part, "factor")) {
    if (longest <= 0 || rope->original_max_position <= 0) {
      return mla_fail(err, MLA_INVALID_ARGUMENT, "factor",
                      "factor of yarn is absent, and so are the lengths that "
                      "would give it");
    }
    rope->factor = (double)longest / (double)rope->original_max_position;
  }
  return MLA_OK;
}

static mla_status check_partial(const cJSON *object, mla_error *err) {
  double part = 1;
  mla_status status =
      mla_config_number(object, "partial_rotary_factor", &part, err);
  if (status == MLA_OK && part != 1) {
    status = mla_fail(err, MLA_UNSUPPORTED, "partial_rotary_factor",
                      "partial_rotary_factor is %g; qk_rope_head_dim alone "
                      "says what is rotated",
                      part);
  }
  return status;
}

/* Some models have several kinds of layer, each with its own. */
static mla_status check_flat(const cJSON *part, const char *key,
                             mla_error *err) {
  const cJSON *item;
  if (part && !cJSON_IsObject(part)) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, key, "%s is not an object", key);
  }
  cJSON_ArrayForEach(item, part) {
    if (cJSON_IsObject(item)) {
      return mla_fail(err, MLA_UNSUPPORTED, key,
                      "%s differs by kind of layer (\"%.40s\")", key,
                      item->string);
    }
  }
  return MLA_OK;
}

mla_status mla_config_rope(const cJSON *object, mla_rope *rope,
                           mla_error *err) {
  const cJSON *part = member(object, "rope_parameters");
  const char *key = "rope_parameters";
  if (!part) {
    part = member(object, "rope_scaling");
    key = "rope_scaling";
  }
  mla_status status = check_flat(part, key, err);
  if (status == MLA_OK) {
    status = mla_config_number(object, "rope_theta", &rope->theta, err);
  }
  if (status == MLA_OK) status = read_type(part, rope, err);
  if (status == MLA_OK) status = check_partial(object, err);
  if (status == MLA_OK) status = check_partial(part, err);
  if (status == MLA_OK) status = read_scales(part, rope, err);
  if (status == MLA_OK) status = read_lengths(object, part, rope, err);
  return status;
}
