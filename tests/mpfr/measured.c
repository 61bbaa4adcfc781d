#include "measured.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "dtype.h"
#include "oracle.h"
#include "tensor.h"

static void must(mla_status status, const mla_error *err) {
  if (status == MLA_OK) return;
  fprintf(stderr, "oracle_error: %s: %s\n", mla_status_name(status),
          err->message);
  exit(1);
}

static answers answers_of(const fixed_case *c) {
  const mla_tensor *out = &c->tensor[MLA_T_OUT];
  answers a;
  a.width = out->shape[out->rank - 1];
  a.rows = mla_tensor_count(out) / a.width;
  a.out = malloc((size_t)(a.rows * a.width + 1) * sizeof(double));
  a.lse = malloc((size_t)(a.rows + 1) * sizeof(double));
  if (!a.out || !a.lse) exit(3);
  for (int64_t i = 0; i < a.rows * a.width; i++) a.out[i] = NAN;
  for (int64_t i = 0; i < a.rows; i++) a.lse[i] = NAN;
  return a;
}

void answers_free(answers *a) {
  free(a->out);
  free(a->lse);
}

answers answers_expected(const fixed_case *c) {
  mla_args args = fixed_case_args(c);
  mla_error err = mla_error_init();
  mla_expected *expected = NULL;
  answers a = answers_of(c);
  must(mla_expect(&c->problem, &args, NULL, NULL, &expected, &err), &err);
  for (int32_t i = 0; i < mla_expected_count(expected); i++) {
    mla_expected_view view = mla_expected_at(expected, i);
    double *to = view.slot == MLA_T_LSE ? a.lse : a.out;
    for (int64_t r = 0; r < view.rows; r++) {
      int64_t row = view.row_index ? view.row_index[r] : r;
      for (int64_t d = 0; d < view.width; d++)
        to[row * view.width + d] = view.value[r * view.width + d];
    }
  }
  mla_expected_free(expected);
  return a;
}

answers answers_run(fixed_case *c) {
  mla_args args = fixed_case_args(c);
  mla_error err = mla_error_init();
  answers a = answers_of(c);
  const mla_tensor *out = &c->tensor[MLA_T_OUT], *lse = &c->tensor[MLA_T_LSE];
  must(mla_oracle_run(&c->problem, &c->limits, &args, &err), &err);
  for (int64_t i = 0; i < a.rows * a.width; i++)
    a.out[i] = mla_get(out->data, out->dtype, fixed_case_at(out, i));
  for (int64_t i = 0; lse->data && i < a.rows; i++)
    a.lse[i] = mla_get(lse->data, lse->dtype, fixed_case_at(lse, i));
  return a;
}

static void measure_row(const exact_row *row, const answers *got, int64_t r,
                        int64_t parts, error_stats *out, error_stats *lse) {
  error_law *law = calloc((size_t)got->width, sizeof *law), of_lse = {0};
  if (!law) exit(3);
  if (row->n) error_law_row(row, parts, law, &of_lse);
  for (int64_t d = 0; d < got->width; d++)
    error_stats_add(out, got->out[r * got->width + d], row->out[d], &law[d]);
  mpfr_t exact;
  mpfr_init2(exact, EXACT_BITS);
  mpfr_set(exact, row->lse, MPFR_RNDN);
  error_stats_add(lse, got->lse[r], exact, &of_lse);
  mpfr_clear(exact);
  free(law);
}

void measure_attention(const fixed_case *c, const answers *got, int64_t parts,
                       error_stats *out, error_stats *lse) {
  const mla_tensor *starts = &c->tensor[MLA_T_QUERY_START_LOC];
  int64_t heads = c->problem.num_heads;
  for (int64_t b = 0; b < c->size[MLA_S_B]; b++) {
    int64_t first = mla_get_int(starts->data, MLA_I32, b);
    int64_t end = mla_get_int(starts->data, MLA_I32, b + 1);
    for (int64_t h = 0; h < heads && first < end; h++) {
      exact_keys keys = exact_keys_of(c, b, h);
      for (int64_t t = first; t < end; t++) {
        int64_t n = exact_visible(c, b, t - first);
        exact_row row = exact_row_of(c, &keys, t, h, n);
        measure_row(&row, got, t * heads + h, parts, out, lse);
        exact_row_free(&row);
      }
      exact_keys_free(&keys);
    }
  }
}
