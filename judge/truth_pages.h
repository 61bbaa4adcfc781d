/*
 * truth_pages.h - a paged cache around one sequence.
 *
 * It is as unkind as a lawful one may be: pages out of order, one page nobody
 * owns, NaN wherever nothing has been written, and table entries past the
 * last page that lead nowhere.
 */
#ifndef MLA_TRUTH_PAGES_H
#define MLA_TRUTH_PAGES_H

#include "truth_routes.h"

typedef struct mla_truth_pages {
  int32_t block_size;
  int32_t lengths[1]; /* of the step at hand, for the batch */
  int32_t starts[2];
  mla_layer_batch batch;
} mla_truth_pages;

/* Close it, whatever is returned. Not to be moved: the batch points into it. */
mla_status mla_truth_pages_open(mla_truth_pages *p, const mla_sequence *s,
                                int32_t block_size, mla_error *err);
void mla_truth_pages_close(mla_truth_pages *p);
/* Writes tokens [first, first + count) where the table says they go; index
   keys too, where the sequence has them. */
mla_status mla_truth_pages_write(mla_truth_pages *p, const mla_sequence *s,
                                 int64_t first, int64_t count, mla_error *err);

/* A dense tensor without contents. */
mla_status mla_truth_allocate(mla_tensor *t, int32_t dtype, int32_t rank,
                              const int64_t *shape, mla_error *err);
/* Rows [first, first + count) of a tensor. */
mla_tensor mla_truth_slice(const mla_tensor *t, int64_t first, int64_t count);
/* NaN everywhere: nothing that was there before can pass for an answer. */
void mla_truth_forget(const mla_tensor *t);

#endif
