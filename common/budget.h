/*
 * budget.h - how far a healthy implementation may be off: the formulas of
 * docs/tolerance.md, from the quantities of a row and a declared arithmetic.
 */
#ifndef MLA_BUDGET_H
#define MLA_BUDGET_H

#include "mla/mla.h"
#include "oracle_terms.h"

/* The declared numbers with their defaults filled in. */
typedef struct mla_roundoffs {
  double acc, p, mid; /* unit roundoffs */
  int p_is_f16;       /* P in f16: its range matters, not only its roundoff */
  int flushes;
  int rounded_denominator;
} mla_roundoffs;

mla_roundoffs mla_roundoffs_of(const mla_numerics *numerics);

/* The least positive normal number of a type; 0 for binary64. */
double mla_smallest_normal(int32_t dtype);

/* Rows of attention or of a merge; budget[rows][width]. */
void mla_budget_out(const mla_row_sink *rows, int64_t count, int prefill,
                    int32_t out_dtype, const mla_roundoffs *u, double *budget);
/* budget[rows]; lse in base 2 if base2 is nonzero. */
void mla_budget_lse(const mla_row_sink *rows, int64_t count, int base2,
                    int32_t lse_dtype, const mla_roundoffs *u, double *budget);

/* A product of `depth` terms: y the value, norm = sqrt(sum (a b)^2), flushed
   = sum |a b| over subnormal a or b. */
double mla_budget_product(double y, double norm, double flushed, int64_t depth,
                          int32_t out_dtype, const mla_roundoffs *u);
/* A logit of index. */
typedef struct mla_logit_terms {
  double value;   /* -infinity: a position that is not seen */
  double scores;  /* root of the sum over heads of (w |q k|)^2 */
  double sums;    /* root of the sum over heads of (w relu(q.k))^2 */
  double weight;  /* sum over heads of |w| */
  double flushed; /* what flushed operands may change */
  int64_t dim, heads;
} mla_logit_terms;
double mla_budget_logit(const mla_logit_terms *t, int32_t dtype,
                        const mla_roundoffs *u);
/* A value that is only moved, from one type to another. */
double mla_budget_move(double y, int32_t from, int32_t to,
                       const mla_roundoffs *u);

#endif
