#include "error_law.h"

#include <math.h>
#include <stdlib.h>

#include "score_norm.h"

/* What both laws of an attention row are made of. */
typedef struct terms {
  const exact_row *row;
  score_bin *order;
  double *v;             /* [n][dv] in binary64 */
  double *nu;            /* [n][dv], root sum (W c)^2; NULL: decode */
  double *pr, *pr2;      /* p r and p r'' */
  double *rho;           /* worst relative error of a weight */
  double rho_max, size;  /* of the scores: max |s| + ln n */
  double sum_rho, sum_s; /* sum p rho, sum p s */
  double lse;            /* natural */
} terms;

/* How far rounding may move the score of key j through the up-projection:
   by sums of |W c| (worst) and by root sums of squares (expected). */
static void up_projected(const exact_row *row, int64_t j, double *worst,
                         double *expected) {
  const exact_keys *keys = row->keys;
  double sum_abs = 0, sum_square = 0;
  for (int64_t i = 0; i < keys->nope; i++) {
    double q = fabs(row->q_d[i]);
    sum_abs += q * keys->k_abs[j * keys->nope + i];
    sum_square += q * q * keys->k_square[j * keys->nope + i];
  }
  *worst = row->scale * (double)keys->latent * sum_abs;
  *expected = row->scale * sqrt((double)keys->latent * sum_square);
}

static void score_terms(terms *t, double *below) {
  const exact_row *row = t->row;
  double s_max = 0;
  for (int64_t j = 0; j < row->n; j++) {
    double size = fabs(row->s[j]), p = row->p[j];
    double worst = 0, expected = 0;
    if (row->keys->nope) up_projected(row, j, &worst, &expected);
    below[j] = row->m - row->s[j];
    t->pr[j] = p * (row->dot_2[j] + size);
    t->pr2[j] = p * expected;
    t->rho[j] = (double)row->keys->d * row->dot_abs[j] + worst +
                size * (row->has_cap ? 7 : 1) + below[j] + 2;
    t->sum_rho += p * t->rho[j];
    t->sum_s += p * row->s[j];
    t->rho_max = fmax(t->rho_max, t->rho[j]);
    s_max = fmax(s_max, size);
  }
  t->size = s_max + log((double)row->n);
}

static terms terms_of(const exact_row *row) {
  const exact_keys *keys = row->keys;
  terms t = {0};
  int64_t n = row->n, dv = keys->dv;
  t.row = row;
  t.v = zeros(n * dv, sizeof *t.v);
  t.pr = zeros(n, sizeof *t.pr);
  t.pr2 = zeros(n, sizeof *t.pr2);
  t.rho = zeros(n, sizeof *t.rho);
  t.lse = mpfr_get_d(row->lse_natural, MPFR_RNDN);
  for (int64_t i = 0; i < n * dv; i++)
    t.v[i] = mpfr_get_d(keys->v[i], MPFR_RNDN);
  if (keys->latent) {
    t.nu = zeros(n * dv, sizeof *t.nu);
    for (int64_t i = 0; i < n * dv; i++) t.nu[i] = sqrt(keys->v_square[i]);
  }
  double *below = zeros(n, sizeof *below);
  score_terms(&t, below);
  t.order = score_bins(below, n);
  free(below);
  return t;
}

static void terms_free(terms *t) {
  free(t->order);
  free(t->v);
  free(t->nu);
  free(t->pr);
  free(t->pr2);
  free(t->rho);
}

/* Sums over the keys for one element. */
typedef struct sums {
  double m, s, rho, nu;
} sums;

static sums sums_of(const terms *t, int64_t d, double mean) {
  const exact_row *row = t->row;
  int64_t dv = row->keys->dv;
  sums x = {0};
  for (int64_t j = 0; j < row->n; j++) {
    double p = row->p[j], v = t->v[j * dv + d];
    x.m += p * fabs(v);
    x.s += p * row->s[j] * v;
    x.rho += p * t->rho[j] * fabs(v - mean);
    if (t->nu) x.nu += p * row->keys->v_abs[j * dv + d];
  }
  return x;
}

static double worst_lse(const terms *t, int64_t parts) {
  double n = (double)t->row->n, size = fabs(t->lse);
  if (parts <= 1) return t->sum_rho + n + 2 * (size + fabs(t->row->m)) + size;
  return t->rho_max + n + 9 * t->size + 2 + (double)parts + 3 * size;
}

static double worst_out(const terms *t, int64_t parts, const sums *x,
                        double out) {
  const exact_row *row = t->row;
  double n = (double)row->n, mean = fabs(out) / row->keep;
  double error = x->rho + n * (x->m + mean) + mean;
  if (parts > 1) {
    double weight = t->rho_max + n + 7 * t->size + 2 + (double)parts;
    error = (2 * t->rho_max + 2 * n + 1) * x->m + weight * (x->m + mean) + mean;
  }
  error += (double)row->keys->latent * x->nu;
  if (row->keep == 1) return error;
  double sink = worst_lse(t, parts) + fabs(row->sink - t->lse) + 2;
  return row->keep * error + fabs(out) * ((1 - row->keep) * sink + 3);
}

static double expected_out(const terms *t, int64_t d, const sums *x, double out,
                           double a) {
  const exact_row *row = t->row;
  int64_t n = row->n, dv = row->keys->dv;
  double depth = (double)row->keys->d, size = fabs(out), keep = row->keep;
  double b = keep * score_norm(t->order, n, t->pr, t->v + d, dv);
  double c = keep * score_norm(t->order, n, t->pr, NULL, 0);
  double f = keep * fabs(x->s - out * t->sum_s);
  double law = LAMBDA * sqrt(depth) * (b + size * c) + depth / 8 * f + MU * a +
               2 * sqrt((double)n) * (keep * x->m + size) + 6 * size;
  if (!t->nu) return law;
  double b2 = keep * score_norm(t->order, n, t->pr2, t->v + d, dv);
  double c2 = keep * score_norm(t->order, n, t->pr2, NULL, 0);
  double nu = keep * score_norm(t->order, n, row->p, t->nu + d, dv);
  double latent = sqrt((double)row->keys->latent);
  return law + LAMBDA * (b2 + size * c2 + latent * nu);
}

static double expected_lse(const terms *t) {
  const exact_row *row = t->row;
  double depth = (double)row->keys->d;
  double c = score_norm(t->order, row->n, t->pr, NULL, 0);
  double c2 = score_norm(t->order, row->n, t->pr2, NULL, 0);
  return LAMBDA * sqrt(depth) * c + depth / 8 * fabs(t->sum_s) +
         2 * sqrt((double)row->n) + 4 * (1 + fabs(t->lse) + fabs(row->m)) +
         LAMBDA * c2;
}

void error_law_row(const exact_row *row, int64_t parts, error_law *out,
                   error_law *lse) {
  int64_t dv = row->keys->dv;
  terms t = terms_of(row);
  for (int64_t d = 0; d < dv; d++) {
    double y = mpfr_get_d(row->out[d], MPFR_RNDN);
    sums x = sums_of(&t, d, y / row->keep);
    out[d].unit = row->keep * score_norm(t.order, row->n, row->p, t.v + d, dv);
    out[d].expected = expected_out(&t, d, &x, y, out[d].unit);
    out[d].worst = worst_out(&t, parts, &x, y);
  }
  double base = row->base2 ? log(2) : 1;
  double rounding = row->base2 ? 3 * fabs(t.lse) : 0;
  lse->unit = fmax(1, fabs(t.lse) / base);
  lse->expected = (expected_lse(&t) + rounding) / base;
  lse->worst = (worst_lse(&t, parts) + rounding) / base;
  terms_free(&t);
}

error_law error_law_product(int64_t depth, double sum_abs, double sum_square,
                            double y) {
  double k = (double)depth;
  error_law law;
  law.unit = sqrt(sum_square);
  law.expected = LAMBDA * sqrt(k) * law.unit + k / 8 * fabs(y) + 5 * fabs(y);
  law.worst = k * sum_abs;
  return law;
}
