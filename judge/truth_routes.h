/*
 * truth_routes.h - one sequence through a layer, by every route.
 */
#ifndef MLA_TRUTH_ROUTES_H
#define MLA_TRUTH_ROUTES_H

#include "layer.h"

/* One sequence after its projections; positions 0 .. tokens-1 of a cache. */
typedef struct mla_sequence {
  mla_layer *layer;
  mla_tensor q;        /* [T,H,P+R] */
  mla_tensor kv_c;     /* [T,L] */
  mla_tensor k_pe;     /* [T,R] */
  mla_tensor absorbed; /* [T,H,L+R]: q, for decode */
  mla_tensor latents;  /* [T,H,L]: what decode attends to */
  /* With an indexer. */
  mla_tensor q_index;       /* [T,Hi,Di] */
  mla_tensor k_index;       /* [T,Di] */
  mla_tensor index_weights; /* [T,Hi] */
  mla_tensor positions;     /* [T,topk]: what the last route chose */
} mla_sequence;

/* Allocates and projects. Free it, whatever is returned. */
mla_status mla_sequence_project(mla_sequence *s, mla_layer *layer,
                                const mla_tensor *hidden,
                                int64_t first_position, mla_error *err);
void mla_sequence_free(mla_sequence *s);

/* attention[T,H,V], all tokens up-projected at once. */
mla_status mla_sequence_prefill(const mla_sequence *s,
                                const mla_tensor *attention, mla_error *err);
/* The same for the first `count` tokens alone. */
mla_status mla_sequence_prefill_front(const mla_sequence *s, int64_t count,
                                      const mla_tensor *attention,
                                      mla_error *err);
/*
 * The same with the first `past` tokens in a paged cache, up-projected in
 * chunks of `chunk`; only the rows from `past` on are written.
 */
mla_status mla_sequence_resume(const mla_sequence *s, int32_t block_size,
                               int64_t past, int64_t chunk,
                               const mla_tensor *attention, mla_error *err);
/* Token by token, each written to the cache and then decoded. */
mla_status mla_sequence_decode(const mla_sequence *s, int32_t block_size,
                               int32_t num_splits, const mla_tensor *attention,
                               mla_error *err);

#endif
