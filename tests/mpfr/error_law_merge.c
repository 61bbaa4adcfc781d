#include <math.h>
#include <stdlib.h>

#include "error_law.h"
#include "score_norm.h"

typedef struct merge_terms {
  const merge_row *row;
  score_bin *order;
  double *rho; /* worst relative error of a weight */
  double *pr;  /* p (1 + |x|) */
  double c;    /* ||p r|| */
  double sum_rho;
} merge_terms;

static merge_terms merge_terms_of(const merge_row *row) {
  int64_t n = row->parts;
  merge_terms t = {
      row, NULL, zeros(n, sizeof(double)), zeros(n, sizeof(double)), 0, 0};
  double *below = zeros(n, sizeof *below);
  for (int64_t i = 0; i < n; i++) {
    below[i] = -row->x[i];
    t.rho[i] = 3 * below[i] + 2;
    t.pr[i] = row->p[i] * (1 + below[i]);
    t.sum_rho += row->p[i] * t.rho[i];
  }
  t.order = score_bins(below, n);
  t.c = score_norm(t.order, n, t.pr, NULL, 0);
  free(below);
  return t;
}

static void merge_terms_free(merge_terms *t) {
  free(t->order);
  free(t->rho);
  free(t->pr);
}

static error_law law_of_lse(const merge_terms *t) {
  const merge_row *row = t->row;
  double parts = (double)row->parts, size = fabs(row->lse), ln = row->ln_base;
  double largest = fabs(row->largest);
  error_law law;
  law.unit = fmax(1, size);
  law.worst = (t->sum_rho + parts + 4 * log(parts)) / ln + size;
  law.expected =
      (LAMBDA * t->c + 2 * sqrt(parts) + 4 * (1 + (size + largest) * ln)) / ln;
  return law;
}

/* Relative error of what the sink leaves, given that of e^lse. */
static double sink_error(const merge_row *row, double lse_error) {
  if (row->keep == 1) return 0;
  double exponent = lse_error * row->ln_base + 3 * row->sink_gap + 2;
  return (1 - row->keep) * exponent + 3;
}

static error_law law_of_out(const merge_terms *t, int64_t d,
                            const error_law *lse) {
  const merge_row *row = t->row;
  const double *v = row->value + d;
  double parts = (double)row->parts, keep = row->keep;
  double y = fabs(row->out[d]), mean = row->out[d] / keep, m = 0, e = 0;
  for (int64_t i = 0; i < row->parts; i++) {
    double x = v[i * row->dv];
    m += row->p[i] * fabs(x);
    e += row->p[i] * t->rho[i] * fabs(x - mean);
  }
  double a = keep * score_norm(t->order, row->parts, row->p, v, row->dv);
  double b = keep * score_norm(t->order, row->parts, t->pr, v, row->dv);
  error_law law;
  law.unit = a;
  law.worst = keep * (e + parts * (m + fabs(mean)) + fabs(mean)) +
              y * sink_error(row, lse->worst);
  law.expected = LAMBDA * (b + y * keep * t->c) + MU * a +
                 2 * sqrt(parts) * (keep * m + y) + 6 * y +
                 y * sink_error(row, lse->expected);
  return law;
}

void error_law_merge(const merge_row *row, error_law *out, error_law *lse) {
  merge_terms t = merge_terms_of(row);
  *lse = law_of_lse(&t);
  for (int64_t d = 0; d < row->dv; d++) out[d] = law_of_out(&t, d, lse);
  merge_terms_free(&t);
}
