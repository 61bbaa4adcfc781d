#include "exact_row.h"

#include <math.h>
#include <stdlib.h>

#include "dtype.h"
#include "tensor.h"

int64_t exact_visible(const fixed_case *c, int64_t request, int64_t t) {
  const mla_tensor *starts = &c->tensor[MLA_T_QUERY_START_LOC];
  const mla_tensor *lens = &c->tensor[MLA_T_SEQ_LENS];
  int64_t queries = mla_get_int(starts->data, MLA_I32, request + 1) -
                    mla_get_int(starts->data, MLA_I32, request);
  int64_t seq = mla_get_int(lens->data, MLA_I32, request);
  int64_t n = c->problem.flags & MLA_CAUSAL ? seq - queries + t + 1 : seq;
  return n < 0 ? 0 : n;
}

static double *doubles(int64_t count) {
  double *x = calloc((size_t)count + 1, sizeof *x);
  if (!x) exit(3);
  return x;
}

/* s = scale q.k, then the cap; and the sums that bound its rounding. */
static void score(mpfr_t s, exact_row *row, const mla_problem *p, int64_t j,
                  mpfr_t product) {
  const exact_keys *keys = row->keys;
  double sum_abs = 0, sum_square = 0;
  mpfr_set_zero(s, 1);
  for (int64_t d = 0; d < keys->d; d++) {
    mpfr_mul(product, keys->k[j * keys->d + d], row->q[d], MPFR_RNDN);
    mpfr_add(s, s, product, MPFR_RNDN);
    double x = keys->k_d[j * keys->d + d] * row->q_d[d];
    sum_abs += fabs(x);
    sum_square += x * x;
  }
  mpfr_mul_d(s, s, p->scale, MPFR_RNDN);
  if (p->logits_soft_cap > 0) {
    mpfr_div_d(s, s, p->logits_soft_cap, MPFR_RNDN);
    mpfr_tanh(s, s, MPFR_RNDN);
    mpfr_mul_d(s, s, p->logits_soft_cap, MPFR_RNDN);
  }
  double t = row->has_cap ? mpfr_get_d(s, MPFR_RNDN) / p->logits_soft_cap : 0;
  row->dot_abs[j] = p->scale * (1 - t * t) * sum_abs;
  row->dot_2[j] = p->scale * (1 - t * t) * sqrt(sum_square);
}

/* e[j] = e^(s[j] - m) in place; sum of them. */
static void weigh(mpfr_t *e, int64_t n, mpfr_t m, mpfr_t sum) {
  mpfr_set(m, e[0], MPFR_RNDN);
  for (int64_t j = 1; j < n; j++) mpfr_max(m, m, e[j], MPFR_RNDN);
  mpfr_set_zero(sum, 1);
  for (int64_t j = 0; j < n; j++) {
    mpfr_sub(e[j], e[j], m, MPFR_RNDN);
    mpfr_exp(e[j], e[j], MPFR_RNDN);
    mpfr_add(sum, sum, e[j], MPFR_RNDN);
  }
}

static void average(exact_row *row, mpfr_t *e, mpfr_t sum, mpfr_t product) {
  const exact_keys *keys = row->keys;
  for (int64_t j = 0; j < row->n; j++) {
    mpfr_div(e[j], e[j], sum, MPFR_RNDN);
    row->p[j] = mpfr_get_d(e[j], MPFR_RNDN);
    for (int64_t d = 0; d < keys->dv; d++) {
      mpfr_mul(product, e[j], keys->v[j * keys->dv + d], MPFR_RNDN);
      mpfr_add(row->out[d], row->out[d], product, MPFR_RNDN);
    }
  }
}

/* The denominator gains e^sink: out shrinks, lse does not change. */
static void add_sink(exact_row *row, mpfr_t keep) {
  mpfr_d_sub(keep, row->sink, row->lse_natural, MPFR_RNDN);
  mpfr_exp(keep, keep, MPFR_RNDN);
  mpfr_add_ui(keep, keep, 1, MPFR_RNDN);
  mpfr_ui_div(keep, 1, keep, MPFR_RNDN);
  row->keep = mpfr_get_d(keep, MPFR_RNDN);
  for (int64_t d = 0; d < row->keys->dv; d++)
    mpfr_mul(row->out[d], row->out[d], keep, MPFR_RNDN);
}

static void evaluate(exact_row *row, const mla_problem *p) {
  mpfr_t *e = exact_new(row->n, EXACT_BITS), m, sum, work;
  mpfr_inits2(EXACT_BITS, m, sum, work, (mpfr_ptr)0);
  for (int64_t j = 0; j < row->n; j++) {
    score(e[j], row, p, j, work);
    row->s[j] = mpfr_get_d(e[j], MPFR_RNDN);
  }
  weigh(e, row->n, m, sum);
  average(row, e, sum, work);
  row->m = mpfr_get_d(m, MPFR_RNDN);
  mpfr_log(row->lse_natural, sum, MPFR_RNDN);
  mpfr_add(row->lse_natural, row->lse_natural, m, MPFR_RNDN);
  if (isfinite(row->sink)) add_sink(row, work);
  mpfr_set(row->lse, row->lse_natural, MPFR_RNDN);
  if (row->base2) {
    mpfr_const_log2(work, MPFR_RNDN);
    mpfr_div(row->lse, row->lse, work, MPFR_RNDN);
  }
  exact_free(e, row->n);
  mpfr_clears(m, sum, work, (mpfr_ptr)0);
}

exact_row exact_row_of(const fixed_case *c, const exact_keys *keys,
                       int64_t token, int64_t head, int64_t n) {
  const mla_tensor *q = &c->tensor[MLA_T_Q], *sink = &c->tensor[MLA_T_SINK];
  exact_row row = {0};
  row.n = n;
  row.keys = keys;
  row.scale = c->problem.scale;
  row.keep = 1;
  row.sink = sink->data ? mla_get(sink->data, sink->dtype, head) : -INFINITY;
  row.has_cap = c->problem.logits_soft_cap > 0;
  row.base2 = (c->problem.flags & MLA_LSE_BASE2) != 0;
  row.out = exact_new(keys->dv, EXACT_BITS);
  mpfr_inits2(EXACT_BITS, row.lse, row.lse_natural, (mpfr_ptr)0);
  mpfr_set_inf(row.lse, -1);
  row.s = doubles(n);
  row.p = doubles(n);
  row.dot_abs = doubles(n);
  row.dot_2 = doubles(n);
  row.q = exact_new(keys->d, DOUBLE_BITS);
  row.q_d = doubles(keys->d);
  for (int64_t d = 0; d < keys->d; d++) {
    row.q_d[d] = mla_get(q->data, q->dtype, mla_at3(q, token, head, d));
    mpfr_set_d(row.q[d], row.q_d[d], MPFR_RNDN);
  }
  if (n > 0) evaluate(&row, &c->problem);
  return row;
}

void exact_row_free(exact_row *row) {
  exact_free(row->out, row->keys->dv);
  mpfr_clears(row->lse, row->lse_natural, (mpfr_ptr)0);
  free(row->s);
  free(row->p);
  free(row->dot_abs);
  free(row->dot_2);
  exact_free(row->q, row->keys->d);
  free(row->q_d);
}
