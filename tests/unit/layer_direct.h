/*
 * layer_direct.h - a small layer with random weights, and its attention by
 * plain loops: no absorption, no cache, no backend.
 */
#ifndef MLA_LAYER_DIRECT_H
#define MLA_LAYER_DIRECT_H

#include "layer.h"

enum {
  DIRECT_T = 7,
  DIRECT_HIDDEN = 10,
  DIRECT_H = 3,
  DIRECT_LQ = 9,
  DIRECT_L = 8,
  DIRECT_P = 6,
  DIRECT_R = 4,
  DIRECT_V = 5,
  DIRECT_HI = 2, /* of the indexer */
  DIRECT_DI = 6,
  DIRECT_TOPK = 3
};

typedef struct direct_layer {
  mla_layer_config config;
  mla_layer_weights weights;
  mla_tensor hidden; /* [T, hidden] f64 */
  int64_t first_position;
} direct_layer;

/* config's sizes are set here; the rest is the caller's. With a q_lora or an
   index_topk of more than 0 the layer has such. */
void direct_layer_make(direct_layer *d, const mla_layer_config *config);
void direct_layer_free(direct_layer *d);

/* attention[T][H*V], out[T][hidden], kv_c[T][L] (scaled), by the formulas of
   docs/spec.md. */
void direct_layer_run(const direct_layer *d, double *attention, double *out,
                      double *kv_c);

/* topk[T][TOPK]: positions that each token's indexer chooses, -1 behind. */
void direct_layer_choose(const direct_layer *d, int32_t *topk);

#endif
