/*
 * truth_stage.c - one operation inside a layer against the reference.
 */
#include "truth_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare_topk.h"
#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "oracle.h"
#include "tensor.h"

/* Offset of the first element of a row: all axes but the last, flattened. */
static int64_t row_offset(const mla_tensor *t, int64_t row) {
  int64_t offset = 0;
  for (int32_t axis = t->rank - 2; axis >= 0; axis--) {
    offset += row % t->shape[axis] * t->stride[axis];
    row /= t->shape[axis];
  }
  return offset;
}

/* Error over budget of one value; anything odd is infinitely wrong. */
static double ratio(double got, double expected, double budget) {
  if (got == expected) return 0;
  double error = mla_fabs(got - expected);
  if (!(error < mla_inf()) || !(budget > 0)) return mla_inf();
  return error / budget;
}

static double worst_value(const mla_expected_view *view, const mla_tensor *t,
                          const double *budget) {
  double worst = 0;
  for (int64_t r = 0; r < view->rows; r++) {
    int64_t at = row_offset(t, view->row_index ? view->row_index[r] : r);
    for (int64_t i = 0; i < view->width; i++) {
      int64_t k = r * view->width + i;
      double x =
          ratio(mla_get(t->data, t->dtype, at + i), view->value[k], budget[k]);
      if (x > worst) worst = x;
    }
  }
  return worst;
}

/* Positions: any choice that the logits' budgets allow. */
static mla_status judge_choices(const mla_expected *expected,
                                const mla_expected_view *view,
                                const mla_answer *answer, const mla_tensor *t,
                                double *worst, mla_error *err) {
  mla_topk_row row = {0};
  row.logit = mla_expected_logits(expected, &row.width);
  row.topk = view->width;
  size_t logits = (size_t)(view->rows * row.width) + 1;
  double *budget = malloc(logits * sizeof *budget);
  row.taken = malloc((size_t)row.width + 1);
  int64_t *chosen = malloc((size_t)row.topk * sizeof *chosen);
  mla_topk_fault *fault = malloc((size_t)row.topk * sizeof *fault);
  int there = budget && row.taken && chosen && fault;
  if (there) mla_expected_logits_budget(expected, &answer->numerics, budget);
  row.budget = budget;
  for (int64_t r = 0; there && r < view->rows; r++) {
    for (int64_t i = 0; i < row.topk; i++)
      chosen[i] = mla_get_int(t->data, t->dtype, mla_at1(t, r) + i);
    mla_topk_judge(&row, chosen, fault);
    for (int64_t i = 0; i < row.topk; i++)
      if (fault[i].ratio > *worst) *worst = fault[i].ratio;
    row.logit += row.width;
    row.budget += row.width;
  }
  free(budget);
  free(row.taken);
  free(chosen);
  free(fault);
  if (there) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, "budget", "no memory for choices");
}

static mla_status judge_output(mla_expected *expected, int32_t i,
                               const mla_answer *answer, const mla_args *args,
                               double *worst, mla_error *err) {
  mla_expected_view view = mla_expected_at(expected, i);
  const mla_tensor *t = mla_arg(args, view.slot);
  if (view.slot == MLA_T_POSITIONS)
    return judge_choices(expected, &view, answer, t, worst, err);
  if (view.bytes) {
    int same = memcmp(t->data, view.bytes, (size_t)view.byte_count) == 0;
    *worst = same ? 0 : mla_inf();
    return MLA_OK;
  }
  size_t count = (size_t)(view.rows * view.width);
  double *budget = malloc((count ? count : 1) * sizeof *budget);
  if (!budget) {
    return mla_fail(err, MLA_OUT_OF_MEMORY, "budget",
                    "no memory for %zu budgets", count);
  }
  mla_expected_budget(expected, i, &answer->numerics, budget);
  *worst = worst_value(&view, t, budget);
  free(budget);
  return MLA_OK;
}

mla_status mla_stage_observe(void *context, const mla_problem *problem,
                             const mla_answer *answer, const mla_args *args,
                             mla_error *err) {
  mla_stage_watch *watch = context;
  mla_expected *expected;
  mla_selection all = {0, NULL};
  mla_status status =
      mla_expect(problem, args, &all, &answer->numerics, &expected, err);
  if (status != MLA_OK) return status;
  for (int32_t i = 0; i < mla_expected_count(expected); i++) {
    double worst = 0;
    status = judge_output(expected, i, answer, args, &worst, err);
    if (status != MLA_OK) break;
    watch->count++;
    if (watch->count == 1 || worst > watch->worst) {
      watch->worst = worst;
      snprintf(watch->where, sizeof watch->where, "%s of %s",
               mla_op_name(problem->op), watch->route);
    }
  }
  mla_expected_free(expected);
  return status;
}
