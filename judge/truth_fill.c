/*
 * truth_fill.c - weights and inputs drawn by name.
 */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "rng.h"
#include "tensor.h"
#include "truth_file.h"

/* log2(n) / 2 rounded to the nearest whole number, a tie to the even one. */
static int half_log2(int64_t n) {
  int k = 0;
  while (n >> (2 * k + 2) > 0) k++; /* 4^k <= n < 4^(k+1) */
  int64_t tie = (int64_t)2 << (2 * k);
  if (n == tie) return k + k % 2;
  return n < tie ? k : k + 1;
}

/* value = offset + bell * factor: exact in f32 by the choice of both. */
static void fill(const mla_tensor *t, uint64_t seed, const char *name,
                 double offset, double factor) {
  mla_rng rng = mla_rng_named(seed, name);
  int64_t count = mla_tensor_count(t);
  float *value = t->data;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; i++) {
    value[i] = (float)(offset + mla_rng_bell(rng, (uint64_t)i) * factor);
  }
}

static mla_status allocate(mla_tensor *t, int32_t dtype, int32_t rank,
                           const int64_t *shape, mla_error *err) {
  *t = mla_tensor_dense(NULL, dtype, rank, shape);
  int64_t bytes = mla_tensor_extent(t);
  if (bytes > 0 && (uint64_t)bytes <= SIZE_MAX) t->data = malloc((size_t)bytes);
  if (t->data) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, "weights",
                  "no memory for an array of %lld bytes", (long long)bytes);
}

/* --------------------------------------------------------------- weights */

typedef struct slot {
  const char *name; /* without ".weight" */
  mla_tensor *tensor;
} slot;

#define SLOTS 13
static void list_slots(mla_layer_weights *w, slot *list) {
  const slot all[SLOTS] = {
      {"q_proj", &w->q_proj},
      {"q_a_proj", &w->q_a_proj},
      {"q_a_layernorm", &w->q_a_layernorm},
      {"q_b_proj", &w->q_b_proj},
      {"kv_a_proj_with_mqa", &w->kv_a_proj},
      {"kv_a_layernorm", &w->kv_a_layernorm},
      {"kv_b_proj", &w->kv_b_proj},
      {"o_proj", &w->o_proj},
      {"indexer.wq_b", &w->index_wq_b},
      {"indexer.wk", &w->index_wk},
      {"indexer.k_norm", &w->index_k_norm},
      {"indexer.k_norm.bias", &w->index_k_norm_bias},
      {"indexer.weights_proj", &w->index_weights_proj},
  };
  memcpy(list, all, sizeof all);
}

static mla_tensor *slot_of(mla_layer_weights *w, const char *name) {
  slot list[SLOTS];
  size_t length = strlen(name);
  list_slots(w, list);
  if (length > 7 && strcmp(name + length - 7, ".weight") == 0) length -= 7;
  for (int i = 0; i < SLOTS; i++) {
    if (strlen(list[i].name) == length &&
        memcmp(list[i].name, name, length) == 0) {
      return list[i].tensor;
    }
  }
  return NULL;
}

int mla_truth_knows(const char *parameter) {
  mla_layer_weights weights;
  return slot_of(&weights, parameter) != NULL;
}

/* Shapes are held to the config by mla_layer_create(); here only to sense. */
static mla_status read_shape(const cJSON *param, int64_t *shape, int32_t *rank,
                             mla_error *err) {
  *rank = cJSON_IsArray(param) ? cJSON_GetArraySize(param) : 0;
  int good = *rank == 1 || *rank == 2;
  for (int32_t i = 0; i < *rank && good; i++) {
    const cJSON *item = cJSON_GetArrayItem(param, i);
    double size = cJSON_IsNumber(item) ? item->valuedouble : 0;
    good = size >= 1 && size <= INT32_MAX && size == (double)(int64_t)size;
    if (good) shape[i] = (int64_t)size;
  }
  if (good) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, "params",
                  "params.\"%.80s\" is not a shape of one or two axes",
                  param->string);
}

static mla_status draw(const mla_truth_file *truth, const cJSON *param,
                       mla_layer_weights *weights, mla_error *err) {
  int64_t shape[2] = {0, 0};
  int32_t rank;
  mla_tensor *tensor = slot_of(weights, param->string);
  if (!tensor || tensor->data) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "params",
                    "params.\"%.80s\" is unknown or there twice",
                    param->string);
  }
  mla_status status = read_shape(param, shape, &rank, err);
  if (status == MLA_OK) status = allocate(tensor, MLA_F32, rank, shape, err);
  if (status != MLA_OK) return status;
  if (rank == 1) {
    int bias = tensor == &weights->index_k_norm_bias;
    fill(tensor, truth->seed, param->string, bias ? 0 : 1, 1.0 / 16);
  } else {
    double factor = 1.0 / (double)((int64_t)1 << half_log2(shape[1]));
    fill(tensor, truth->seed, param->string, 0, factor);
  }
  return MLA_OK;
}

mla_status mla_truth_weights(const mla_truth_file *truth,
                             mla_layer_weights *weights, mla_error *err) {
  const cJSON *param;
  memset(weights, 0, sizeof *weights);
  cJSON_ArrayForEach(param,
                     cJSON_GetObjectItemCaseSensitive(truth->meta, "params")) {
    mla_status status = draw(truth, param, weights, err);
    if (status != MLA_OK) return status;
  }
  return MLA_OK;
}

void mla_truth_weights_free(mla_layer_weights *weights) {
  slot list[SLOTS];
  list_slots(weights, list);
  for (int i = 0; i < SLOTS; i++) {
    free(list[i].tensor->data);
    list[i].tensor->data = NULL;
  }
}

/* ----------------------------------------------------------------- inputs */

mla_status mla_truth_hidden(const mla_truth_file *truth, int32_t dtype,
                            mla_tensor *hidden, mla_error *err) {
  const int64_t shape[2] = {truth->tokens, truth->config.hidden_size};
  mla_rng rng = mla_rng_named(truth->seed, "hidden_states");
  mla_status status = allocate(hidden, dtype, 2, shape, err);
  if (status != MLA_OK) return status;
  for (int64_t i = 0; i < shape[0] * shape[1]; i++) {
    mla_put(hidden->data, dtype, i, mla_rng_bell(rng, (uint64_t)i));
  }
  return MLA_OK;
}
