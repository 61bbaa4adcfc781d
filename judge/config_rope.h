/*
 * config_rope.h - the rotary part of a config.json, and typed members.
 */
#ifndef MLA_CONFIG_ROPE_H
#define MLA_CONFIG_ROPE_H

#include "layer_config.h"

struct cJSON;

/* Members that may be absent or null: the value then stays as it is. */
mla_status mla_config_number(const struct cJSON *object, const char *key,
                             double *value, mla_error *err);
mla_status mla_config_integer(const struct cJSON *object, const char *key,
                              int64_t *value, mla_error *err);
mla_status mla_config_flag(const struct cJSON *object, const char *key,
                           int *value, mla_error *err);
int mla_config_has(const struct cJSON *object, const char *key);

/* rope_parameters, or rope_scaling and rope_theta. */
mla_status mla_config_rope(const struct cJSON *object, mla_rope *rope,
                           mla_error *err);

#endif
