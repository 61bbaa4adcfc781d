/*
 * compare.c - values against budgets, bits against bits, bytes against bytes.
 */
#include "compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare_state.h"
#include "compare_topk.h"
#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "output_digest.h"
#include "spans.h"
#include "tensor.h"

/* Index of all axes but the last, from a row's number. */
static void row_index(const mla_tensor *t, int64_t row, int64_t *index) {
  for (int32_t a = t->rank - 2; a >= 0; a--) {
    index[a] = row % t->shape[a];
    row /= t->shape[a];
  }
}

/* lse has no last axis of its own: its rows are single values. */
static int is_scalar_row(const comparison *c) {
  return c->view.width == 1 && c->t->shape[c->t->rank - 1] != 1 &&
         c->slot == MLA_T_LSE;
}

static int64_t offset_of(const mla_tensor *t, const int64_t *index) {
  int64_t at = 0;
  for (int32_t a = 0; a < t->rank; a++) at += index[a] * t->stride[a];
  return at;
}

static int is_poison(const comparison *c, int64_t offset) {
  int64_t size = mla_dtype_bits(c->t->dtype) / 8;
  if (!c->poison) return 0;
  for (int64_t i = 0; i < size; i++)
    if (c->got[offset * size + i] != c->poison) return 0;
  return 1;
}

/* ---------------------------------------------------------------- a value */

/* Error over budget; 0 is perfect, above 1 is wrong. */
static double ratio_of(double error, double budget) {
  if (error == 0) return 0;
  return budget > 0 ? error / budget : mla_inf();
}

static int lse_may_be_positive(const comparison *c, double expected,
                               double got) {
  return c->slot == MLA_T_LSE && c->numerics->lse_empty_positive &&
         mla_isinf(expected) < 0 && mla_isinf(got) > 0;
}

/* Is the infinity what storing a value within the budget gives? */
static int may_overflow(const comparison *c, double expected, double got,
                        double budget) {
  if (mla_isinf(expected) || !mla_isinf(got)) return 0;
  double edge = got > 0 ? expected + budget : expected - budget;
  return mla_round_to(c->t->dtype, edge) == got;
}

static double judge_value(const comparison *c, double expected, double got,
                          double budget) {
  if (mla_isnan(expected) || mla_isnan(got))
    return mla_isnan(expected) && mla_isnan(got) ? 0 : mla_inf();
  if (lse_may_be_positive(c, expected, got)) return 0;
  if (c->o->compare == MLA_COMPARE_BITS) budget = 0;
  if (mla_isinf(expected) || mla_isinf(got))
    return mla_isinf(expected) == mla_isinf(got) ||
                   may_overflow(c, expected, got, budget)
               ? 0
               : mla_inf();
  if (c->o->compare != MLA_COMPARE_BUDGET)
    return mla_round_to(c->t->dtype, expected - budget) <= got &&
                   got <= mla_round_to(c->t->dtype, expected + budget)
               ? 0
               : mla_inf();
  return ratio_of(mla_fabs(got - expected), budget);
}

static void add_metrics(comparison *c, double expected, double got, int bad) {
  mla_output_verdict *o = c->o;
  if (mla_isnan(expected) || mla_isinf(expected)) return;
  if (mla_isnan(got) || mla_isinf(got)) {
    o->not_finite += bad;
    return;
  }
  double error = mla_fabs(got - expected), size = mla_fabs(expected);
  if (error > o->max_abs) o->max_abs = error;
  if (size > 0 && error / size > o->max_rel) o->max_rel = error / size;
  c->error2 += error * error;
  c->size2 += size * size;
}

static void keep_worst(comparison *c, const int64_t *index, double ratio,
                       double expected, double got, double budget) {
  mla_output_verdict *o = c->o;
  if (o->checked > 1 && ratio <= o->worst) return;
  o->worst = ratio;
  o->expected = expected;
  o->got = got;
  o->budget = budget;
  memcpy(o->index, index, sizeof o->index);
}

static void take_value(comparison *c, const int64_t *index, double expected,
                       double budget) {
  int64_t offset = offset_of(c->t, index);
  double got = mla_get(c->got, c->t->dtype, offset);
  double ratio = judge_value(c, expected, got, budget);
  int bad = !(ratio <= 1); /* a NaN ratio is bad */
  c->o->checked++;
  add_metrics(c, expected, got, bad);
  keep_worst(c, index, ratio, expected, got, budget);
  int unwritten = is_poison(c, offset); /* look_at_all marks those */
  if (!bad && !unwritten) return;
  c->o->bad++;
  if (!unwritten) mla_region_mark(&c->region, index);
}

static void take_rows(comparison *c) {
  int64_t index[MLA_MAX_RANK] = {0};
  int32_t last = c->t->rank - 1;
  for (int64_t r = 0; r < c->view.rows; r++) {
    int64_t row = c->view.row_index ? c->view.row_index[r] : r;
    const double *expected = c->view.value + r * c->view.width;
    const double *budget = c->budget + r * c->view.width;
    if (is_scalar_row(c)) {
      index[last] = row % c->t->shape[last];
      row_index(c->t, row / c->t->shape[last], index);
      take_value(c, index, expected[0], budget[0]);
      continue;
    }
    row_index(c->t, row, index);
    for (index[last] = 0; index[last] < c->view.width; index[last]++)
      take_value(c, index, expected[index[last]], budget[index[last]]);
  }
}

/* ------------------------------------------------------------ a choice */

/* The room for one row, and the budgets of all logits. */
typedef struct choices {
  mla_topk_row row;
  double *budget;
  int64_t *chosen;
  mla_topk_fault *fault;
} choices;

static mla_status choices_new(const comparison *c, const mla_expectation *e,
                              choices *x, mla_error *err) {
  x->row.logit = mla_expected_logits(e->expected, &x->row.width);
  x->row.topk = c->view.width;
  size_t n = (size_t)x->row.topk + 1;
  x->budget =
      calloc((size_t)(c->view.rows * x->row.width) + 1, sizeof *x->budget);
  x->row.taken = malloc((size_t)x->row.width + 1);
  x->chosen = malloc(n * sizeof *x->chosen);
  x->fault = malloc(n * sizeof *x->fault);
  if (!x->budget || !x->row.taken || !x->chosen || !x->fault)
    return mla_fail(err, MLA_OUT_OF_MEMORY, mla_slot_name(c->slot),
                    "no memory to compare %s", mla_slot_name(c->slot));
  mla_expected_logits_budget(e->expected, c->numerics, x->budget);
  x->row.budget = x->budget;
  return MLA_OK;
}

static void choices_free(choices *x) {
  free(x->budget);
  free(x->row.taken);
  free(x->chosen);
  free(x->fault);
}

/* "expected" is the position that was left out, "budget" that of the two
   logits. */
static void take_choice(comparison *c, const choices *x, int64_t row,
                        int64_t i) {
  int64_t index[MLA_MAX_RANK] = {row, i};
  const mla_topk_fault *fault = &x->fault[i];
  int unwritten = is_poison(c, offset_of(c->t, index));
  c->o->checked++;
  keep_worst(c, index, fault->ratio, (double)fault->instead,
             (double)x->chosen[i], fault->budget);
  if (!(fault->ratio > 1) && !unwritten) return;
  c->o->bad++;
  if (!unwritten) mla_region_mark(&c->region, index);
}

static mla_status take_choices(comparison *c, const mla_expectation *e,
                               mla_error *err) {
  choices x = {0};
  mla_status status = choices_new(c, e, &x, err);
  for (int64_t r = 0; status == MLA_OK && r < c->view.rows; r++) {
    int64_t row = c->view.row_index ? c->view.row_index[r] : r;
    for (int64_t i = 0; i < x.row.topk; i++)
      x.chosen[i] = mla_get_int(c->got, c->t->dtype, mla_at1(c->t, row) + i);
    mla_topk_judge(&x.row, x.chosen, x.fault);
    for (int64_t i = 0; i < x.row.topk; i++) take_choice(c, &x, row, i);
    x.row.logit += x.row.width;
    x.row.budget += x.row.width;
  }
  choices_free(&x);
  return status;
}

/* ------------------------------------------------- everything is written */

/* Walks every element of the live rows. */
static int next_index(const mla_tensor *t, int64_t *index) {
  for (int32_t a = t->rank - 1; a >= 0; a--) {
    if (++index[a] < t->shape[a]) return 1;
    index[a] = 0;
  }
  return 0;
}

/* Elements outside the sample too must be written, and their bytes are taken
   out of what must not change. */
static void look_at_all(comparison *c) {
  int64_t index[MLA_MAX_RANK] = {0};
  int64_t size = mla_dtype_bits(c->t->dtype) / 8;
  if (mla_tensor_count(c->t) == 0) return;
  do {
    if (c->live >= 0 && index[0] >= c->live) return;
    int64_t offset = offset_of(c->t, index);
    c->o->elements++;
    if (is_poison(c, offset)) {
      c->o->unwritten++;
      mla_region_mark(&c->region, index);
    }
    memset(c->written + offset * size, 1, (size_t)size);
  } while (next_index(c->t, index));
}

static void look_between(comparison *c) {
  const unsigned char *before = c->t->data;
  int64_t touched = 0, first = -1;
  for (int64_t i = 0; i < c->extent; i++) {
    if (c->written[i] || c->got[i] == before[i]) continue;
    if (!touched++) first = i;
  }
  if (!touched) return;
  snprintf(c->o->outside, sizeof c->o->outside,
           "%lld bytes of %s that are no output were changed, the first at "
           "byte %lld",
           (long long)touched, mla_slot_name(c->slot), (long long)first);
}

/* ------------------------------------------------------------------ bytes */

/* A difference that is none: two NaNs of a plain type. */
static int both_nan(const comparison *c, int64_t byte) {
  int64_t size = mla_dtype_bits(c->t->dtype) / 8;
  if (c->t->dtype == MLA_U8 || size == 0) return 0;
  int64_t element = byte / size;
  return mla_isnan(mla_get(c->got, c->t->dtype, element)) &&
         mla_isnan(mla_get(c->view.bytes, c->t->dtype, element));
}

/* The index of an element from its offset; 0 when it lies in a gap. */
static int index_at(const mla_tensor *t, int64_t offset, int64_t *index) {
  for (int32_t a = 0; a < t->rank; a++) {
    int64_t stride = t->stride[a] ? t->stride[a] : 1;
    index[a] = offset / stride;
    offset -= index[a] * stride;
    if (index[a] >= t->shape[a]) return 0;
  }
  return offset == 0;
}

/* An element counts once, however many of its bytes are wrong. */
static int is_first_wrong(const comparison *c, int64_t byte, int64_t size) {
  int64_t from = byte - byte % size;
  return memcmp(c->got + from, c->view.bytes + from, (size_t)(byte - from)) ==
         0;
}

static void take_wrong_byte(comparison *c, int64_t i) {
  int64_t size = mla_dtype_bits(c->t->dtype) / 8, element = i / size;
  int64_t index[MLA_MAX_RANK] = {0};
  mla_output_verdict *o = c->o;
  int inside = index_at(c->t, element, index);
  if (inside && is_first_wrong(c, i, size)) mla_region_mark(&c->region, index);
  if (!inside && !o->outside[0])
    snprintf(o->outside, sizeof o->outside,
             "byte %lld of %s, in a gap, was changed", (long long)i,
             mla_slot_name(c->slot));
  if (o->bad++) return;
  o->worst = mla_inf();
  memcpy(o->index, index, sizeof o->index);
  o->expected = mla_get(c->view.bytes, c->t->dtype, element);
  o->got = mla_get(c->got, c->t->dtype, element);
}

static void take_bytes(comparison *c) {
  c->o->checked = c->o->elements = mla_span_bytes(c->t);
  for (int64_t k = 0; k < mla_span_count(c->t); k++) {
    mla_span span = mla_span_at(c->t, k);
    for (int64_t i = span.at; i < span.at + span.bytes; i++)
      if (c->got[i] != c->view.bytes[i] && !both_nan(c, i))
        take_wrong_byte(c, i);
  }
}

/* -------------------------------------------------------------- the whole */

/*
 * Integer values and equal probabilities: products are exact in any type, but
 * parts may be merged by weights like exp(ln 24 - ln 32), and a sum that is 0
 * then is not quite. What remains of the budget without the rounding of P, of
 * up-projected values and of the output is what such sums may err.
 */
static void keep_sums_only(comparison *c, int64_t values) {
  double u_out = mla_unit_roundoff(c->t->dtype);
  for (int64_t i = 0; i < values; i++) {
    double sums = c->budget[i] - u_out * mla_fabs(c->view.value[i]);
    c->budget[i] = sums > 0 ? sums : 0;
  }
}

static mla_status start(comparison *c, const mla_expectation *e,
                        mla_error *err) {
  mla_numerics numerics = *c->numerics;
  if (c->o->compare == MLA_COMPARE_SUMS) numerics.u_p = numerics.u_mid = 0;
  int64_t values = c->view.rows * c->view.width;
  mla_status status = mla_region_new(c->v, c->slot, &c->region, err);
  if (status != MLA_OK) return status;
  c->written = calloc(c->view.bytes ? 1 : (size_t)c->extent + 1, 1);
  c->budget = calloc((size_t)values + 1, sizeof *c->budget);
  if (!c->written || !c->budget)
    return mla_fail(err, MLA_OUT_OF_MEMORY, mla_slot_name(c->slot),
                    "no memory to compare %s", mla_slot_name(c->slot));
  if (c->view.value && c->o->compare != MLA_COMPARE_BITS)
    mla_expected_budget(e->expected, c->view_index, &numerics, c->budget);
  if (c->o->compare == MLA_COMPARE_SUMS) keep_sums_only(c, values);
  return MLA_OK;
}

static void finish(comparison *c) {
  mla_region_describe(&c->region, c->o->where, sizeof c->o->where);
  mla_region_axes(&c->region, c->o->axes, sizeof c->o->axes);
  mla_bad_draw(&c->region.bad, c->t->rank, c->t->shape, &c->o->map);
  memcpy(c->o->shape, c->t->shape, sizeof c->o->shape);
  c->o->digest = mla_output_digest(c->t, c->live, c->got);
  if (c->o->checked)
    mla_describe_index(c->v, c->slot, c->o->index, c->o->at, sizeof c->o->at);
  if (c->size2 > 0) c->o->rel_l2 = mla_sqrt(c->error2 / c->size2);
  mla_region_free(&c->region);
  free(c->written);
  free(c->budget);
}

mla_status mla_compare_output(const mla_vector *v, const mla_expectation *e,
                              int32_t slot, const mla_numerics *numerics,
                              const unsigned char *got, unsigned char poison,
                              mla_output_verdict *o, mla_error *err) {
  comparison c = {0};
  memset(o, 0, sizeof *o);
  o->slot = slot;
  o->compare = v->compare[slot];
  o->rank = v->tensor[slot].rank;
  c.v = v;
  c.slot = slot;
  c.t = &v->tensor[slot];
  c.o = o;
  c.numerics = numerics;
  c.got = got;
  c.poison = poison;
  c.extent = mla_tensor_extent(c.t);
  c.live = mla_vector_live(v, slot);
  c.view = mla_expectation_of(e, slot, &c.view_index);
  mla_status status = start(&c, e, err);
  if (status == MLA_OK && c.view.bytes) {
    take_bytes(&c);
  } else if (status == MLA_OK) {
    if (o->compare == MLA_COMPARE_CHOICE && c.view.rows)
      status = take_choices(&c, e, err);
    else
      take_rows(&c);
    look_at_all(&c);
    look_between(&c);
  }
  finish(&c);
  return status;
}

int mla_output_fails(const mla_output_verdict *o) {
  return o->bad > 0 || o->unwritten > 0 || o->outside[0] != '\0';
}

int mla_outputs_fail(const mla_verdict *verdict) {
  for (int32_t i = 0; i < verdict->outputs; i++)
    if (mla_output_fails(&verdict->output[i])) return 1;
  return 0;
}
