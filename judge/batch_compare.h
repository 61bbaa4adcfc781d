/*
 * batch_compare.h - the arrays of a batch's steps against what they must be.
 *
 * Every element is an integer and must be equal, but for
 *   - entries of block_table behind the blocks that a request's length fills:
 *     nobody may read them
 *   - what an answer says that it leaves out: arrays, or all padding
 */
#ifndef MLA_BATCH_COMPARE_H
#define MLA_BATCH_COMPARE_H

#include "batch_case.h"

#define MLA_BATCH_NO_VALUE INT64_MIN /* an element that is not there */

/* One element that is compared. */
typedef struct mla_batch_element {
  int32_t step, array;
  int64_t index, expected, got;
} mla_batch_element;

typedef void (*mla_batch_see)(void *context, const mla_batch_element *e);

/* Calls see() for every element, in order of steps and arrays. */
void mla_batch_compare(const mla_batch_case *c,
                       const mla_batch_answer *expected,
                       const mla_batch_answer *got, mla_batch_see see,
                       void *context);

/* What differs. */
typedef struct mla_batch_diff {
  int64_t compared, wrong, wrong_in[MLA_BATCH_ARRAYS];
  mla_batch_element first; /* where wrong is above 0 */
} mla_batch_diff;

void mla_batch_differ(const mla_batch_case *c, const mla_batch_answer *expected,
                      const mla_batch_answer *got, mla_batch_diff *diff);

/* "step 1: slot_mapping[5] is 48, not 64 (place 1, ...); 7 values ..."; as
   snprintf. */
int mla_batch_diff_print(const mla_batch_case *c,
                         const mla_batch_answer *expected,
                         const mla_batch_diff *diff, char *text, size_t size);

#endif
