/*
 * problem_check.h - every rule of docs/spec.md section 6, in one place.
 *
 * Each function returns MLA_OK, or a status and one sentence that names the
 * field, its value and the limit. Nothing is written but err.
 */
#ifndef MLA_PROBLEM_CHECK_H
#define MLA_PROBLEM_CHECK_H

#include "mla/mla.h"

mla_status mla_problem_check(const mla_problem *problem, mla_error *err);
mla_status mla_limits_check(const mla_problem *problem,
                            const mla_limits *limits, mla_error *err);
/*
 * Presence, types, shapes, strides, alignment, bounds against limits; and,
 * when host_contents is nonzero, the contents of index tensors.
 */
mla_status mla_args_check(const mla_problem *problem, const mla_limits *limits,
                          const mla_answer *answer, const mla_args *args,
                          int host_contents, mla_error *err);

/* Of arguments that passed: is there nothing to do (no rows, no slots)? */
int mla_args_empty(const mla_problem *problem, const mla_args *args);

#endif
