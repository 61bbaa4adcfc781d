/*
 * model_presets.h - the attention sizes of models, and cases of those sizes.
 *
 * A model is a name of the table or the path of a config.json; ":tpN" behind
 * it shards its heads over N devices: "deepseek-v3:tp8".
 */
#ifndef MLA_MODEL_PRESETS_H
#define MLA_MODEL_PRESETS_H

#include "suite.h"

/* Sizes before sharding; names as in config.json. */
typedef struct mla_model {
  const char *name;  /* "deepseek-v3" */
  const char *title; /* "DeepSeek-V3, R1" */
  int32_t hidden_size;
  int32_t num_heads;
  int32_t q_lora_rank; /* 0: the query comes from the hidden state */
  int32_t kv_lora_rank;
  int32_t qk_nope_head_dim;
  int32_t qk_rope_head_dim;
  int32_t v_head_dim;
  int32_t index_n_heads; /* of a sparse indexer; 0: none */
  int32_t index_head_dim;
  int32_t index_topk;
  double softmax_scale; /* 0: (P + R)^-1/2 */
  const char *source;   /* where the sizes are written down */
} mla_model;

/* NULL past the last. */
const mla_model *mla_model_at(int i);
/* By name, whatever the case of its letters; NULL: none. */
const mla_model *mla_model_find(const char *name);

/*
 * Cases of a model: decode at several lengths, prefill with and without
 * context, absorb, q_absorb, v_expand, kv_write, kv_read; where the model has
 * an indexer, index, map_indices and sparse decode. All are asked of a backend.
 * suite->name is "model:" and the name.
 * Errors: NOT_AVAILABLE (neither a name nor a file), INVALID_ARGUMENT (heads
 * that do not divide, a config.json that cannot be read so).
 */
mla_status mla_model_suite(const char *name, mla_suite *suite, mla_error *err);

#endif
