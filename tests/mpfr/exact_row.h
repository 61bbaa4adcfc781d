/*
 * exact_row.h - attention rows evaluated with 256 bits.
 *
 * Straight from the formulas of docs/spec.md, section 3, and from the same
 * inputs as the reference, but with nothing of its code: what its error is
 * measured against.
 */
#ifndef EXACT_ROW_H
#define EXACT_ROW_H

#include <mpfr.h>

#include "fixed_case.h"

#define EXACT_BITS 256
#define DOUBLE_BITS 53

/* One flat array of numbers, all 0. Inputs need DOUBLE_BITS only. */
mpfr_t *exact_new(int64_t count, int bits);
void exact_free(mpfr_t *x, int64_t count);

/* The keys and values that one head of one request may see. */
typedef struct exact_keys {
  int64_t n, d, dv;
  mpfr_t *k;   /* [n][d] */
  double *k_d; /* the same, rounded */
  mpfr_t *v;   /* [n][dv] */
  /* Prefill: what rounding the up-projected elements may do, as sums over
     the latents of |W c| and of (W c)^2; else NULL. */
  int64_t latent, nope;
  double *k_abs, *k_square; /* [n][nope] */
  double *v_abs, *v_square; /* [n][dv] */
} exact_keys;

exact_keys exact_keys_of(const fixed_case *c, int64_t request, int64_t head);
void exact_keys_free(exact_keys *keys);

/* One row, and the quantities of its error laws in binary64. */
typedef struct exact_row {
  int64_t n; /* keys that it sees, at most those of `keys` */
  const exact_keys *keys;
  mpfr_t *out; /* [dv] */
  mpfr_t lse;  /* in the problem's base; -infinity without keys */
  mpfr_t lse_natural;
  double scale, m, keep; /* keep: the denominator's share that is no sink's */
  double sink;           /* -infinity: none */
  int has_cap, base2;
  double *s, *p;           /* [n], p without the sink */
  mpfr_t *q;               /* [d] */
  double *q_d;             /* the same */
  double *dot_abs, *dot_2; /* [n]: scale sum |q k|, scale root sum (q k)^2 */
} exact_row;

exact_row exact_row_of(const fixed_case *c, const exact_keys *keys,
                       int64_t token, int64_t head, int64_t n);
void exact_row_free(exact_row *row);

/* Keys that row t (of the request's own) sees. */
int64_t exact_visible(const fixed_case *c, int64_t request, int64_t t);

#endif
