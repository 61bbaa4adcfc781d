/*
 * compare.h - one output against what it should be.
 */
#ifndef MLA_COMPARE_H
#define MLA_COMPARE_H

#include "expect.h"
#include "verdict.h"

/*
 * `got` is the tensor's memory after the run, laid out as v->tensor[slot],
 * which was filled with `poison` before (0: unwritten values are not looked
 * for). Fills everything of `o`.
 */
mla_status mla_compare_output(const mla_vector *v, const mla_expectation *e,
                              int32_t slot, const mla_numerics *numerics,
                              const unsigned char *got, unsigned char poison,
                              mla_output_verdict *o, mla_error *err);

/* Does this output fail the vector? */
int mla_output_fails(const mla_output_verdict *o);
/* Does one of them? */
int mla_outputs_fail(const mla_verdict *verdict);

/* "request 0, token 1, head 17, dim 203": an index in the spec's words. */
void mla_describe_index(const mla_vector *v, int32_t slot, const int64_t *index,
                        char *text, size_t size);

#endif
