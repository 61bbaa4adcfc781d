/*
 * budget_direct.h - docs/tolerance.md's formulas of one row, by hand.
 */
#ifndef BUDGET_DIRECT_H
#define BUDGET_DIRECT_H

#include <stdint.h>

/* Everything is indexed by key j. */
typedef struct direct_row {
  int64_t n, d, dv, latent, nope;
  double scale, cap, sink; /* sink -infinity: none */
  const double *q, *k, *v, *kap2, *nu2;
  double *s, *p, *r, *r1, *r2;
  double m, lse, keep;
} direct_row;

typedef struct direct_declared {
  double acc, p, mid, out, eta;
  int p_is_f16, prefill;
} direct_declared;

/* s, r, r1 and r2 of key j. */
void direct_score(direct_row *x, int64_t j);
/* m, lse, keep and p, of all scores. */
void direct_softmax(direct_row *x);
double direct_out_budget(const direct_row *x, int64_t e,
                         const direct_declared *u);
double direct_lse_budget(const direct_row *x, const direct_declared *u,
                         int rounded);

#endif
