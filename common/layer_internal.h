/*
 * layer_internal.h - what the files of the layer share.
 */
#ifndef MLA_LAYER_INTERNAL_H
#define MLA_LAYER_INTERNAL_H

#include "layer.h"

struct mla_layer {
  mla_device *dev;
  mla_layer_config config;
  mla_layer_weights weights;
  int32_t activation;
  mla_tensor w_uk;     /* [H,P,L], of kv_b_proj's type */
  mla_tensor w_uv;     /* [H,V,L] */
  double *frequencies; /* [R/2] */
  mla_layer_observer observer;
  void *observer_context;
};

/* A problem of the layer's sizes and types. */
mla_problem mla_layer_problem(const mla_layer *layer, mla_op op);

/*
 * Plans, runs and shows to the observer one operation. tensor[MLA_T_COUNT],
 * in host memory whatever the backend's.
 */
mla_status mla_layer_run(const mla_layer *layer, const mla_problem *problem,
                         const mla_limits *limits, const mla_tensor *tensor,
                         mla_error *err);

/* out[M,N] = a[M,K] b[N,K]^T */
mla_status mla_layer_multiply(const mla_layer *layer, const mla_tensor *a,
                              const mla_tensor *b, const mla_tensor *out,
                              mla_error *err);

/* hidden -> the normed q latent [N,Lq], of the activations' type. */
mla_status mla_layer_q_latent(const mla_layer *layer, const mla_tensor *hidden,
                              const mla_tensor *latent, mla_error *err);
/* positions[count] lie where rotations are exact. */
mla_status mla_layer_positions_check(const int64_t *positions, int64_t count,
                                     mla_error *err);

/* The bounds of this very step: its contents are in host memory. */
mla_limits mla_layer_limits(const mla_layer_batch *batch, int64_t tokens);
/* seq_lens and query_start_loc are there and fit each other. */
mla_status mla_layer_batch_check(const mla_layer_batch *batch, mla_error *err);
/* tensor[MLA_T_COUNT], zeroed but for what the batch holds. */
void mla_layer_set_batch(mla_tensor *tensor, const mla_layer_batch *batch);

/* A dense tensor of zeros; OUT_OF_MEMORY with its name. */
mla_status mla_layer_alloc(mla_tensor *tensor, const char *name, int32_t dtype,
                           int32_t rank, const int64_t *shape, mla_error *err);

/* Type and shape are these (a dimension of -1: any), data is there. */
mla_status mla_layer_expect(const char *name, const mla_tensor *tensor,
                            int32_t dtype, int32_t rank, const int64_t *shape,
                            mla_error *err);

#endif
