/*
 * error_law.h - how large the reference's error may be (docs/reference.md,
 * "The laws"), in units of 2^-53.
 *
 * Two laws: the worst that rounding can do, to first order, in whatever order
 * the sums are taken; and the expected one, which is the budget that the
 * judge would give a backend that declares binary64 throughout.
 */
#ifndef ERROR_LAW_H
#define ERROR_LAW_H

#include "exact_row.h"

typedef struct error_law {
  double unit;     /* A_d: what errors of out are counted in */
  double expected; /* law of the judge's budget */
  double worst;    /* no lawful order of the sums exceeds it */
} error_law;

/*
 * The laws of a row's elements out[dv] and of its lse. parts: pieces of the
 * keys that were merged by log-sum-exp; 1: none.
 */
void error_law_row(const exact_row *row, int64_t parts, error_law *out,
                   error_law *lse);

/* A merged row: live parts only, their log-sum-exps in a base. */
typedef struct merge_row {
  int64_t parts, dv;
  const double *value; /* [parts][dv] */
  const double *x;     /* [parts], ln_base * (lse - largest) */
  const double *p;     /* [parts], normalised, without the sink */
  const double *out;   /* [dv], with the sink */
  double lse;          /* in the base */
  double largest, ln_base, keep;
  double sink_gap; /* ln_base * |sink - lse| */
} merge_row;
void error_law_merge(const merge_row *row, error_law *out, error_law *lse);

/* y = sum_k a_k b_k. */
error_law error_law_product(int64_t depth, double sum_abs, double sum_square,
                            double y);

#endif
