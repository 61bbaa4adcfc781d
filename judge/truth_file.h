/*
 * truth_file.h - what a file of somebody else's outputs says of itself.
 */
#ifndef MLA_TRUTH_FILE_H
#define MLA_TRUTH_FILE_H

#include "layer.h"
#include "safetensors.h"

struct cJSON;

typedef struct mla_truth_file {
  mla_st *file;
  struct cJSON *meta;
  char name[64];
  mla_layer_config config;
  uint64_t seed;
  int64_t tokens;
  int64_t first_position;
  mla_tensor output;     /* [tokens, hidden] */
  mla_tensor kv_c;       /* [tokens, L], before mla_scale_kv_lora */
  mla_tensor rows;       /* [K] */
  mla_tensor attention;  /* [K, H*V], of those rows */
  mla_tensor topk;       /* [tokens, topk]; only with an indexer */
  char unsupported[240]; /* why the layer cannot be judged by it, or "" */
  char remark[240];      /* where the file departs from a rule, or "" */
} mla_truth_file;

/* Close it, whatever is returned. */
mla_status mla_truth_open(const char *path, mla_truth_file *truth,
                          mla_error *err);
void mla_truth_close(mla_truth_file *truth);

/* Is this the name of a weight of the layer? */
int mla_truth_knows(const char *parameter);

/* Weights by the fill rule, in f32, which holds them exactly. Free them,
   whatever is returned. */
mla_status mla_truth_weights(const mla_truth_file *truth,
                             mla_layer_weights *weights, mla_error *err);
void mla_truth_weights_free(mla_layer_weights *weights);

/* [tokens, hidden] of the element type, by the fill rule. */
mla_status mla_truth_hidden(const mla_truth_file *truth, int32_t dtype,
                            mla_tensor *hidden, mla_error *err);

#endif
