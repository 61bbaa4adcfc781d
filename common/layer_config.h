/*
 * layer_config.h - what one attention layer of a model is: sizes and scales.
 *
 * Members carry the names of HF config.json where it has them; judge/
 * config_json.h reads one. Everything is per layer and after sharding.
 */
#ifndef MLA_LAYER_CONFIG_H
#define MLA_LAYER_CONFIG_H

#include "rope.h"

typedef struct mla_layer_config {
  int32_t hidden_size;
  int32_t num_heads;        /* H */
  int32_t q_lora_rank;      /* Lq; 0: one q_proj from the hidden state */
  int32_t kv_lora_rank;     /* L */
  int32_t qk_nope_head_dim; /* P */
  int32_t qk_rope_head_dim; /* R, even; also rope.dim */
  int32_t v_head_dim;       /* V */
  double q_norm_eps;        /* of q_a_layernorm */
  double kv_norm_eps;       /* of kv_a_layernorm */
  double softmax_scale;     /* 0: (P + R)^-1/2 times YaRN's factor */
  double mla_scale_q_lora;  /* on the whole q; 0 reads as 1 */
  double mla_scale_kv_lora; /* on the normed kv_c, before the cache; 0: 1 */
  mla_rope rope;
  /* The sparse indexer: 0 where there is none. */
  int32_t index_n_heads;
  int32_t index_head_dim;
  int32_t index_topk;
  int32_t index_half_split; /* pairs of its rotation, as in mla_rope */
  double index_norm_eps;    /* of its LayerNorm */
} mla_layer_config;

/* Zeroed but for what has a usual value: eps 1e-6, theta 1e4, the betas. */
mla_layer_config mla_layer_config_init(void);
/* INVALID_ARGUMENT with a sentence naming the member, its value, the limit. */
mla_status mla_layer_config_check(const mla_layer_config *config,
                                  mla_error *err);
double mla_layer_softmax_scale(const mla_layer_config *config);

#endif
