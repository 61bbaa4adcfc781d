/*
 * expect.h - what must come out of a vector, from the reference.
 *
 * Big cases are answered for a sample of rows, the same on every machine; the
 * verdict says how many. Answers can be kept in a folder, under a hash of
 * everything they depend on, so that a second run judges at once.
 */
#ifndef MLA_EXPECT_H
#define MLA_EXPECT_H

#include "oracle.h"
#include "vector.h"

/* Named in vectors and in kept answers; changes when the reference's bits
   do. */
#define MLA_REFERENCE_NAME "libmla-reference-1"

typedef struct mla_expectation {
  mla_expected *expected;
  int64_t *row; /* the sample; NULL: all rows */
  int64_t rows, rows_total;
} mla_expectation;

/* Floating-point operations above which rows are sampled. */
#define MLA_SAMPLE_ABOVE 4e8

/* `keep`: a folder for answers, or NULL. Free it, whatever is returned. */
mla_status mla_expectation_make(const mla_vector *v,
                                const mla_numerics *emulate, const char *keep,
                                mla_expectation *e, mla_error *err);
/* For few rows of a big case, quickly (sample.h). */
mla_status mla_expectation_few(const mla_vector *v, const mla_numerics *emulate,
                               mla_expectation *e, mla_error *err);
void mla_expectation_free(mla_expectation *e);

/* The view of an output slot; slot -1 in it when there is none. */
mla_expected_view mla_expectation_of(const mla_expectation *e, int32_t slot,
                                     int32_t *index);
/* One number for all expected values: equal on every machine. */
uint64_t mla_expectation_digest(const mla_vector *v, const mla_expectation *e);

/*
 * Do the values stored in the vector's file agree with the reference's?
 * INVALID_ARGUMENT with a sentence that says where they do not.
 */
mla_status mla_expectation_check(const mla_vector *v, const mla_expectation *e,
                                 mla_error *err);

#endif
