/*
 * oracle.h - the reference: every operation of docs/spec.md in plain C.
 *
 * Binary64, fixed order, no libm: the same bits everywhere. Rows may be
 * computed by several threads; a row is one thread's, so bits do not change.
 * Two faces:
 *   mla_oracle_run    computes the operation and writes the outputs, rounded
 *                     once to their types: what the "ref" backend does
 *   mla_expect        computes unrounded answers for all or some rows, and
 *                     with them the quantities from which the error budget of
 *                     any declared arithmetic follows: what the judge uses
 * Arguments are trusted (problem_check.h checks). Tensors are in host memory.
 * These functions allocate; they fail with OUT_OF_MEMORY, and with UNSUPPORTED
 * for what mla_oracle_refusal() names.
 */
#ifndef MLA_ORACLE_H
#define MLA_ORACLE_H

#include "mla/mla.h"

/*
 * NULL when the oracle serves the problem; else one sentence why not, and in
 * *field (may be NULL) the member it is about.
 */
const char *mla_oracle_refusal(const mla_problem *problem, const char **field);

/*
 * num_splits: decode in that many parts, merged (0 and 1: in one).
 * context_chunk: prefill takes the context in such chunks, merged (0: in one).
 * limits may be NULL.
 */
mla_status mla_oracle_run(const mla_problem *problem, const mla_limits *limits,
                          const mla_args *args, mla_error *err);

/*
 * Rows of the outputs to compute. A row of [N,H,*] is token * H + head; of
 * other outputs the flattened index of all axes but the last. Rows that an
 * output lacks, and rows of tokens from query_start_loc[B] on, are left out.
 * Prefill up-projects the keys once for each (request, head) that has a row
 * here: many rows of few heads are cheaper than few rows of many heads.
 */
typedef struct mla_selection {
  int64_t count;      /* 0: all rows */
  const int64_t *row; /* ascending; kept by the caller until freed */
} mla_selection;

typedef struct mla_expected mla_expected;

/*
 * How the backend under judgement rounds what the reference must emulate
 * (dequantisation, q_round); the budget's roundoffs come later. NULL: zeros.
 */
mla_status mla_expect(const mla_problem *problem, const mla_args *args,
                      const mla_selection *selection,
                      const mla_numerics *emulate, mla_expected **expected,
                      mla_error *err);
void mla_expected_free(mla_expected *expected);

/* One output tensor of an expectation. */
typedef struct mla_expected_view {
  int32_t slot;
  int64_t rows; /* value: [rows][width]; lse: width 1 */
  int64_t width;
  const int64_t *row_index; /* row r is this row of the output; NULL: r */
  const double *value;      /* NULL when exact */
  /* Writers and copies: the bytes the whole tensor must hold, gaps between
     strides included, compared byte for byte. */
  const unsigned char *bytes;
  int64_t byte_count;
} mla_expected_view;

/*
 * Outputs come in the order of the operation table: out, lse; w_uk, w_uv, ...
 * lse is in the problem's base; a row without keys has value 0 and lse
 * -infinity, and a budget of 0. kv_write, kv_read and kv_copy are exact: their
 * bytes start from what the tensor in args holds when mla_expect is called,
 * so call it before the backend runs. The selection does not touch them.
 */

int32_t mla_expected_count(const mla_expected *expected);
mla_expected_view mla_expected_at(const mla_expected *expected, int32_t i);
/* The allowed error of each value of output i; budget: [rows][width]. */
void mla_expected_budget(const mla_expected *expected, int32_t i,
                         const mla_numerics *numerics, double *budget);

/*
 * index: the expected positions are the reference's choice, one of several
 * that may be right. A choice is judged by the logits behind it: [rows of
 * positions][width], -infinity where a row does not see a position; and by
 * their allowed errors, budget[rows][width]. NULL for other operations.
 */
const double *mla_expected_logits(const mla_expected *expected, int64_t *width);
void mla_expected_logits_budget(const mla_expected *expected,
                                const mla_numerics *numerics, double *budget);

/*
 * The arrays an expectation consists of, to keep it in a file and restore it:
 * array k has a stable name; data is NULL past the last.
 */
typedef struct mla_expected_array {
  const char *name;
  double *data; /* or bytes, when byte_count is not 0 */
  int64_t count;
  int64_t byte_count;
} mla_expected_array;
mla_expected_array mla_expected_array_at(mla_expected *expected, int32_t k);
/* An expectation of the right shape whose arrays wait to be filled. */
mla_status mla_expected_alloc(const mla_problem *problem, const mla_args *args,
                              const mla_selection *selection,
                              mla_expected **expected, mla_error *err);

#endif
