/*
 * config_json.h - a HF config.json as the description of a layer.
 *
 * Read: hidden_size, num_attention_heads, q_lora_rank (absent or null: none),
 * kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, rms_norm_eps,
 * rope_interleave, mla_scale_q_lora, mla_scale_kv_lora, the index_* of a
 * sparse indexer, and rotary positions in both forms: rope_scaling beside
 * rope_theta, or rope_parameters with everything. A model inside another
 * (text_config) is found. What would change the numbers and is not known here
 * (another rope type, projection biases) is refused, never ignored.
 */
#ifndef MLA_CONFIG_JSON_H
#define MLA_CONFIG_JSON_H

#include "layer_config.h"

struct cJSON;

/* INVALID_ARGUMENT: a member is missing or of the wrong kind; UNSUPPORTED: a
   rope type or a feature that the layer does not have. One sentence. */
mla_status mla_config_parse(const char *json, size_t length,
                            mla_layer_config *config, mla_error *err);
mla_status mla_config_from(const struct cJSON *object, mla_layer_config *config,
                           mla_error *err);
/* mla_scale_q_lora and mla_scale_kv_lora of an object: a number, or true for
   sqrt(hidden / rank), as one family of models has it. Sizes stand already. */
mla_status mla_config_lora_scales(const struct cJSON *object,
                                  mla_layer_config *config, mla_error *err);

#endif
