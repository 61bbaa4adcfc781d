/*
 * truth_sparse.h - one sequence through a layer with an indexer.
 */
#ifndef MLA_TRUTH_SPARSE_H
#define MLA_TRUTH_SPARSE_H

#include "truth_routes.h"

/* The indexer's projections; nothing for a layer without one. */
mla_status mla_sequence_index(mla_sequence *s, const mla_tensor *hidden,
                              const int64_t *positions, mla_error *err);

/* Both leave s->positions as they chose them. All tokens in one call: */
mla_status mla_sequence_sparse_prefill(const mla_sequence *s,
                                       int32_t block_size,
                                       const mla_tensor *attention,
                                       mla_error *err);
/* Token by token, each written to the caches, then chosen for and decoded. */
mla_status mla_sequence_sparse_decode(const mla_sequence *s, int32_t block_size,
                                      int32_t num_splits,
                                      const mla_tensor *attention,
                                      mla_error *err);

/*
 * Rows of s->positions that are not the set in `wanted` [T, at least topk]:
 * row t sees t + 1 positions, and of a row that sees fewer than topk only
 * those count that it sees.
 */
int64_t mla_sequence_wrong_choices(const mla_sequence *s,
                                   const mla_tensor *wanted);

#endif
