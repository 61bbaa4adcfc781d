/*
 * budget_direct.c - a row's budget by looking at every pair of keys.
 */
#include "budget_direct.h"

#include <math.h>
#include <stdlib.h>

static int64_t bin(const direct_row *x, int64_t j) {
  return (int64_t)floor((x->m - x->s[j]) * 512);
}

/* ||x|| of x_j = p_j weight_j value_j, by looking at every pair of keys. */
static double norm(const direct_row *x, const double *weight,
                   const double *value, int64_t step) {
  double squares = 0, bins = 0;
  for (int64_t j = 0; j < x->n; j++) {
    double term = x->p[j] * (weight ? weight[j] : 1);
    if (value) term *= value[j * step];
    squares += term * term;
    for (int64_t i = 0; i < x->n; i++) {
      if (bin(x, i) != bin(x, j)) continue;
      double other = x->p[i] * (weight ? weight[i] : 1);
      if (value) other *= value[i * step];
      bins += term * other;
    }
  }
  return sqrt(squares + fmax(bins, 0));
}

void direct_score(direct_row *x, int64_t j) {
  double dot = 0, squares = 0, up = 0, kap = 0;
  for (int64_t e = 0; e < x->d; e++) {
    double t = x->q[e] * x->k[j * x->d + e];
    dot += t;
    squares += t * t;
    if (e >= x->nope) continue;
    up += t * t;
    kap += x->q[e] * x->q[e] * x->kap2[j * x->d + e];
  }
  double raw = x->scale * dot, slope = x->scale;
  x->s[j] = x->cap > 0 ? x->cap * tanh(raw / x->cap) : raw;
  if (x->cap > 0) slope /= pow(cosh(raw / x->cap), 2);
  x->r[j] = slope * sqrt(squares) + fabs(x->s[j]);
  x->r1[j] = slope * sqrt(up);
  x->r2[j] = slope * sqrt((double)x->latent) * sqrt(kap);
}

void direct_softmax(direct_row *x) {
  double sum = 0;
  x->m = -INFINITY;
  for (int64_t j = 0; j < x->n; j++) x->m = fmax(x->m, x->s[j]);
  for (int64_t j = 0; j < x->n; j++) sum += exp(x->s[j] - x->m);
  x->lse = x->m + log(sum);
  x->keep = 1 / (1 + exp(x->sink - x->lse));
  for (int64_t j = 0; j < x->n; j++) x->p[j] = exp(x->s[j] - x->lse);
}

double direct_out_budget(const direct_row *x, int64_t e,
                         const direct_declared *u) {
  const double *v = x->v + e;
  int64_t step = x->dv;
  double out = 0, size = 0, ps = 0, psv = 0, light = 0;
  for (int64_t j = 0; j < x->n; j++) {
    out += x->keep * x->p[j] * v[j * step];
    size += x->keep * x->p[j] * fabs(v[j * step]);
    ps += x->keep * x->p[j] * x->s[j];
    psv += x->keep * x->p[j] * x->s[j] * v[j * step];
    if (exp(x->s[j] - x->m) < 0x1p-14) light += fabs(v[j * step]);
  }
  double a = x->keep * norm(x, NULL, v, step), o = fabs(out);
  double b = x->keep * norm(x, x->r, v, step);
  double c = x->keep * norm(x, x->r, NULL, 0), d = (double)x->d;
  double sum = 6 * u->acc * sqrt(d) * (b + o * c) +
               d / 8 * u->acc * fabs(psv - out * ps) + 3 * u->p * a +
               2 * u->acc * sqrt((double)x->n) * (size + o) +
               (u->p + u->out + 4 * u->acc) * o + u->eta;
  if (x->keep < 1)
    sum += 6 * u->acc *
           (o * (1 - x->keep) * (1 + fabs(x->sink) + fabs(x->sink - x->lse)) +
            a * fmax(0, x->sink - x->m));
  sum += u->p * (u->p_is_f16 ? 0x1p-14 : 0x1p-126) * x->keep *
         exp(x->m - x->lse) * light;
  if (!u->prefill) return sum;
  double *nu = malloc((size_t)x->n * sizeof *nu);
  for (int64_t j = 0; j < x->n; j++) nu[j] = sqrt(x->nu2[j * step + e]);
  sum += 3 * u->mid *
         (x->keep * norm(x, x->r1, v, step) +
          o * x->keep * norm(x, x->r1, NULL, 0) + a);
  sum += 6 * u->acc *
         (x->keep * norm(x, x->r2, v, step) +
          o * x->keep * norm(x, x->r2, NULL, 0) +
          sqrt((double)x->latent) * x->keep * norm(x, NULL, nu, 1));
  free(nu);
  return sum;
}

double direct_lse_budget(const direct_row *x, const direct_declared *u,
                         int rounded) {
  double ps = 0;
  for (int64_t j = 0; j < x->n; j++) ps += x->p[j] * x->s[j];
  double sum = 6 * u->acc * sqrt((double)x->d) * norm(x, x->r, NULL, 0) +
               (double)x->d / 8 * u->acc * fabs(ps) +
               2 * u->acc * sqrt((double)x->n) +
               4 * u->acc * (1 + fabs(x->lse) + fabs(x->m));
  if (u->prefill)
    sum += 3 * u->mid * norm(x, x->r1, NULL, 0) +
           6 * u->acc * norm(x, x->r2, NULL, 0);
  return rounded ? sum + u->p : sum;
}
