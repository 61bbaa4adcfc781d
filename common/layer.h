/*
 * layer.h - one attention layer, hidden state to hidden state, on any backend.
 *
 * The products and the attention are the backend's, asked for through mla.h;
 * norms, rotations and the order of things are here (docs/layer.md). There
 * are two routes from queries to attention that must agree: up-projected
 * prefill, and absorbed decode over a paged cache. The stages are apart, so
 * that routes share projections and a judge can look between:
 *
 *   project   hidden[N,hidden]  -> q[N,H,P+R] kv_c[N,L] k_pe[N,R]
 *   write     kv_c, k_pe        -> cache
 *   prefill   q, kv_c, k_pe     -> attention[N,H,V]
 *   decode    q, cache          -> attention[N,H,V]
 *   output    attention         -> hidden[N,hidden]
 *
 * A layer with a sparse indexer has stages of its own beside them:
 *
 *   index_project   hidden       -> q_index[N,Hi,Di] k_index[N,Di]
 *                                   index_weights[N,Hi]
 *   write_keys      k_index      -> index cache
 *   choose          q_index, index_weights, index cache -> positions[N,topk]
 *   attend_chosen   absorbed q, cache, positions        -> latents[N,H,L]
 *
 * and attends densely by the others, which is the same for rows that see at
 * most topk positions.
 *
 * All tensors are in host memory. Activations (hidden, q, kv_c, k_pe,
 * attention, q_index, k_index) have one element type, chosen at creation. A
 * layer serves one call at a time.
 */
#ifndef MLA_LAYER_H
#define MLA_LAYER_H

#include "layer_config.h"
#include "mla/mla.h"

typedef struct mla_layer mla_layer;

/* As in a checkpoint: [out, in], any element type that the backend takes. */
typedef struct mla_layer_weights {
  mla_tensor q_proj;         /* [H*(P+R), hidden]; only without q_lora */
  mla_tensor q_a_proj;       /* [Lq, hidden]; this and the next two with it */
  mla_tensor q_a_layernorm;  /* [Lq] */
  mla_tensor q_b_proj;       /* [H*(P+R), Lq] */
  mla_tensor kv_a_proj;      /* [L+R, hidden]; kv_a_proj_with_mqa */
  mla_tensor kv_a_layernorm; /* [L] */
  mla_tensor kv_b_proj;      /* [H*(P+V), L] */
  mla_tensor o_proj;         /* [hidden, H*V] */
  /* The indexer's: only with one. */
  mla_tensor index_wq_b;         /* [Hi*Di, Lq] */
  mla_tensor index_wk;           /* [Di, hidden] */
  mla_tensor index_k_norm;       /* [Di] */
  mla_tensor index_k_norm_bias;  /* [Di] */
  mla_tensor index_weights_proj; /* [Hi, hidden] */
} mla_layer_weights;

/*
 * Absorbs kv_b_proj. The weights' data are borrowed until mla_layer_free().
 * activation: MLA_F64 (where the backend serves it), F32, F16, BF16.
 * UNSUPPORTED: a backend with memory of its own.
 */
mla_status mla_layer_create(mla_device *dev, const mla_layer_config *config,
                            const mla_layer_weights *weights,
                            int32_t activation, mla_layer **layer,
                            mla_error *err);
void mla_layer_free(mla_layer *layer);
const mla_layer_config *mla_layer_config_of(const mla_layer *layer);

/*
 * Called after every operation that the backend did, inputs and outputs in
 * place: how a judge compares each with the reference. A status other than
 * MLA_OK ends the call of the layer with it.
 */
typedef mla_status (*mla_layer_observer)(void *context,
                                         const mla_problem *problem,
                                         const mla_answer *answer,
                                         const mla_args *args, mla_error *err);
void mla_layer_observe(mla_layer *layer, mla_layer_observer observer,
                       void *context);

/* positions[N], from 0 to MLA_ROPE_MAX_POSITION. */
mla_status mla_layer_project(mla_layer *layer, const mla_tensor *hidden,
                             const int64_t *positions, const mla_tensor *q,
                             const mla_tensor *kv_c, const mla_tensor *k_pe,
                             mla_error *err);

/* slot_mapping[S] i64, S <= N; the cache's type is one the backend writes. */
mla_status mla_layer_write(mla_layer *layer, int32_t cache_format,
                           const mla_tensor *kv_c, const mla_tensor *k_pe,
                           const mla_tensor *slot_mapping,
                           const mla_tensor *cache, mla_error *err);

/* Requests packed without padding, and where their past lies. */
typedef struct mla_layer_batch {
  int32_t cache_format;
  int32_t num_splits;         /* decode; 0: the backend chooses */
  int64_t context_chunk;      /* prefill with a past; 0: the backend chooses */
  mla_tensor cache;           /* [NB,BS,E]; absent: prefill without a past */
  mla_tensor block_table;     /* i32 [B,W]; likewise */
  mla_tensor seq_lens;        /* i32 [B], this step's tokens included */
  mla_tensor query_start_loc; /* i32 [B+1] */
  /* With an indexer; its pages are those of the cache. */
  int32_t index_format;
  mla_tensor index_cache; /* [NB,BS,Ei] */
} mla_layer_batch;

/* Causal. The new tokens are in the cache already. */
mla_status mla_layer_decode(mla_layer *layer, const mla_layer_batch *batch,
                            const mla_tensor *q, const mla_tensor *attention,
                            mla_error *err);
/* The three steps of decode, for who decodes the same queries many times:
   absorbed[N,H,L+R], latents[N,H,L]. */
mla_status mla_layer_absorb(mla_layer *layer, const mla_tensor *q,
                            const mla_tensor *absorbed, mla_error *err);
mla_status mla_layer_attend(mla_layer *layer, const mla_layer_batch *batch,
                            const mla_tensor *absorbed,
                            const mla_tensor *latents, mla_error *err);
mla_status mla_layer_expand(mla_layer *layer, const mla_tensor *latents,
                            const mla_tensor *attention, mla_error *err);

/* Causal. Of the new tokens kv_c and k_pe are read, not the cache. */
mla_status mla_layer_prefill(mla_layer *layer, const mla_layer_batch *batch,
                             const mla_tensor *q, const mla_tensor *kv_c,
                             const mla_tensor *k_pe,
                             const mla_tensor *attention, mla_error *err);

/* ------------------------------------------------------------- the indexer */

/*
 * index_weights are f32, or f64 where activations are: weights_proj(hidden)
 * times Hi^-1/2 and times the scores' own scale, Di^-1/2.
 */
mla_status mla_layer_index_project(mla_layer *layer, const mla_tensor *hidden,
                                   const int64_t *positions,
                                   const mla_tensor *q_index,
                                   const mla_tensor *k_index,
                                   const mla_tensor *index_weights,
                                   mla_error *err);
mla_status mla_layer_write_keys(mla_layer *layer, int32_t index_format,
                                const mla_tensor *k_index,
                                const mla_tensor *slot_mapping,
                                const mla_tensor *index_cache, mla_error *err);
/* positions i32: the chosen ones of each row, -1 behind them. */
mla_status mla_layer_choose(mla_layer *layer, const mla_layer_batch *batch,
                            const mla_tensor *q_index,
                            const mla_tensor *index_weights,
                            const mla_tensor *positions, mla_error *err);
mla_status mla_layer_attend_chosen(mla_layer *layer,
                                   const mla_layer_batch *batch,
                                   const mla_tensor *absorbed,
                                   const mla_tensor *positions,
                                   const mla_tensor *latents, mla_error *err);

mla_status mla_layer_output(mla_layer *layer, const mla_tensor *attention,
                            const mla_tensor *hidden, mla_error *err);

#endif
