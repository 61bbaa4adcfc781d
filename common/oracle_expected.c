/*
 * oracle_expected.c - unrounded answers of some rows, kept with what their
 * error budgets need.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "oracle.h"
#include "oracle_attention.h"
#include "oracle_exact.h"
#include "oracle_index.h"
#include "oracle_merge_op.h"
#include "oracle_output.h"
#include "scaled_weights.h"
#include "tensor.h"

typedef enum kind {
  ATTENTION_OUT,
  ATTENTION_LSE,
  PRODUCT,
  EXACT,        /* bytes */
  INDEX_CHOICE, /* positions: by their logits */
  INDEX_LOGITS,
  SLOTS
} kind;

typedef struct output {
  kind kind;
  mla_expected_view view;
  double *value, *norm, *flushed; /* products */
  unsigned char *bytes;           /* exact operations */
  mla_product_output product;
} output;

#define MOST_ARRAYS 16

struct mla_expected {
  mla_problem problem;
  int32_t count;
  output output[MLA_PRODUCT_OUTPUTS];
  mla_row_sink rows; /* attention and merge */
  mla_scaled_weights weights;
  int32_t lse_dtype;
  mla_index_sink index;
  int32_t array_count;
  mla_expected_array array[MOST_ARRAYS];
  char name[MOST_ARRAYS][24];
};

/* ------------------------------------------------------------- arrays */

static mla_expected_array *add_array(mla_expected *x, const char *of,
                                     const char *what) {
  mla_expected_array *array = &x->array[x->array_count];
  char *name = x->name[x->array_count++];
  snprintf(name, sizeof x->name[0], "%s.%s", of, what);
  array->name = name;
  return array;
}

/* Zeroed, so that an array which waits to be filled is never garbage. */
static double *add_doubles(mla_expected *x, const char *of, const char *what,
                           int64_t rows, int64_t width) {
  mla_expected_array *array = add_array(x, of, what);
  array->count = rows * width;
  array->data = calloc((size_t)array->count + 1, sizeof(double));
  return array->data;
}

static unsigned char *add_bytes(mla_expected *x, const char *of,
                                int64_t count) {
  mla_expected_array *array = add_array(x, of, "bytes");
  array->byte_count = count;
  array->data = calloc((size_t)count + 1, 1);
  return (unsigned char *)(void *)array->data;
}

static int all_there(const mla_expected *x) {
  for (int32_t i = 0; i < x->array_count; i++)
    if (!x->array[i].data) return 0;
  return 1;
}

/* ------------------------------------------------------------- shapes */

static output *add_output(mla_expected *x, kind what, int32_t slot,
                          int64_t rows, int64_t width,
                          const mla_selection *selection) {
  output *y = &x->output[x->count++];
  y->kind = what;
  y->view.slot = slot;
  y->view.rows = rows;
  y->view.width = width;
  if (!selection || selection->count == 0) return y;
  y->view.row_index = selection->row;
  y->view.rows = selection->count;
  while (y->view.rows && selection->row[y->view.rows - 1] >= rows)
    y->view.rows--;
  return y;
}

static void add_rows(mla_expected *x, int64_t rows, int64_t width, int wides,
                     const mla_args *args, const mla_selection *selection) {
  static const char *const names[MLA_WIDE_PREFILL] = {
      "value", "A", "B", "F", "M", "G", "Z", "R1", "R2", "NU"};
  output *out = add_output(x, ATTENTION_OUT, MLA_T_OUT, rows, width, selection);
  rows = out->view.rows;
  x->rows.width = width;
  for (int i = 0; i < wides; i++)
    x->rows.wide[i] = add_doubles(x, "out", names[i], rows, width);
  x->rows.lse = add_doubles(x, "lse", "value", rows, 1);
  x->rows.terms =
      (mla_row_terms *)add_doubles(x, "row", "terms", rows, MLA_ROW_TERMS);
  out->view.value = x->rows.wide[MLA_WIDE_OUT];
  const mla_tensor *lse = mla_arg(args, MLA_T_LSE);
  if (!(x->problem.flags & MLA_RETURN_LSE) || !lse) return;
  x->lse_dtype = lse->dtype;
  output *y = add_output(x, ATTENTION_LSE, MLA_T_LSE, rows, 1, NULL);
  y->view.row_index = out->view.row_index;
  y->view.value = x->rows.lse;
}

static void add_products(mla_expected *x, const mla_selection *selection) {
  mla_product_output list[MLA_PRODUCT_OUTPUTS];
  int count = mla_product_outputs(&x->problem, &x->weights.args, list);
  for (int i = 0; i < count; i++) {
    const char *name = mla_slot_name(list[i].slot);
    int64_t all = list[i].outer_count * list[i].inner_count;
    int64_t width = list[i].width;
    output *y = add_output(x, PRODUCT, list[i].slot, all, width, selection);
    y->product = list[i];
    y->value = add_doubles(x, name, "value", y->view.rows, width);
    y->view.value = y->value;
    if (list[i].depth == 0) continue;
    y->norm = add_doubles(x, name, "norm", y->view.rows, width);
    y->flushed = add_doubles(x, name, "flushed", y->view.rows, width);
  }
}

static void add_exact(mla_expected *x, const mla_args *args) {
  int32_t slot = mla_exact_slot(x->problem.op);
  int64_t bytes = mla_tensor_extent(mla_arg(args, slot));
  output *y = add_output(x, EXACT, slot, 0, 0, NULL);
  y->bytes = add_bytes(x, mla_slot_name(slot), bytes);
  y->view.bytes = y->bytes;
  y->view.byte_count = bytes;
}

static void add_index(mla_expected *x, const mla_args *args,
                      const mla_selection *selection) {
  const mla_tensor *logits = mla_arg(args, MLA_T_LOGITS);
  int64_t rows = mla_attention_tokens(args), topk = x->problem.topk;
  output *y =
      add_output(x, INDEX_CHOICE, MLA_T_POSITIONS, rows, topk, selection);
  mla_expected_view view = y->view;
  int64_t width = mla_index_width(args);
  x->index.width = width;
  x->index.weight = add_doubles(x, "row", "weight", view.rows, 1);
  x->index.positions = add_doubles(x, "positions", "value", view.rows, topk);
  x->index.logit = add_doubles(x, "logits", "value", view.rows, width);
  x->index.scores = add_doubles(x, "logits", "scores", view.rows, width);
  x->index.sums = add_doubles(x, "logits", "sums", view.rows, width);
  x->index.flushed = add_doubles(x, "logits", "flushed", view.rows, width);
  y->view.value = x->index.positions;
  if (!logits) return;
  y = add_output(x, INDEX_LOGITS, MLA_T_LOGITS, rows, width, selection);
  y->view.value = x->index.logit;
}

static void add_slots(mla_expected *x, const mla_args *args,
                      const mla_selection *selection) {
  output *y = add_output(x, SLOTS, MLA_T_INDICES, mla_map_tokens(args),
                         x->problem.topk, selection);
  y->value = add_doubles(x, "indices", "value", y->view.rows, y->view.width);
  y->view.value = y->value;
}

static void shape(mla_expected *x, const mla_args *args,
                  const mla_selection *selection) {
  const mla_problem *p = &x->problem;
  int64_t heads = p->num_heads;
  switch (p->op) {
    case MLA_OP_DECODE:
      add_rows(x, mla_attention_tokens(args) * heads, mla_problem_v_dim(p),
               MLA_WIDE_DECODE, args, selection);
      break;
    case MLA_OP_PREFILL:
      add_rows(x, mla_attention_tokens(args) * heads, p->v_head_dim,
               MLA_WIDE_PREFILL, args, selection);
      break;
    case MLA_OP_MERGE:
      add_rows(x, mla_merge_rows(args), p->v_head_dim, MLA_WIDE_DECODE, args,
               selection);
      break;
    case MLA_OP_KV_WRITE:
    case MLA_OP_KV_READ:
    case MLA_OP_KV_COPY: add_exact(x, args); break;
    case MLA_OP_INDEX: add_index(x, args, selection); break;
    case MLA_OP_MAP_INDICES: add_slots(x, args, selection); break;
    default: add_products(x, selection);
  }
}

mla_status mla_expected_alloc(const mla_problem *problem, const mla_args *args,
                              const mla_selection *selection,
                              mla_expected **expected, mla_error *err) {
  const char *field, *reason = mla_oracle_refusal(problem, &field);
  if (reason) return mla_fail(err, MLA_UNSUPPORTED, field, "%s", reason);
  mla_status status = MLA_OK;
  mla_expected *x = calloc(1, sizeof *x);
  if (x) {
    x->problem = *problem;
    status = mla_weights_widen(problem, args, &x->weights, err);
    if (!status) shape(x, args, selection);
  }
  if (status) {
    mla_expected_free(x);
    return status;
  }
  if (!x || !all_there(x)) {
    mla_expected_free(x);
    return mla_fail(err, MLA_OUT_OF_MEMORY, "selection",
                    "no memory for the expected values of %s",
                    mla_op_name(problem->op));
  }
  *expected = x;
  return MLA_OK;
}

void mla_expected_free(mla_expected *expected) {
  if (!expected) return;
  for (int32_t i = 0; i < expected->array_count; i++)
    free(expected->array[i].data);
  mla_weights_free(&expected->weights);
  free(expected);
}

/* ------------------------------------------------------------ answers */

static mla_status fill_rows(mla_expected *x, const mla_args *args,
                            const mla_numerics *emulate, mla_error *err) {
  const mla_expected_view *view = &x->output[0].view;
  if (x->problem.op == MLA_OP_MERGE) {
    mla_merge_call call = {&x->problem, args, view->rows, view->row_index,
                           &x->rows};
    return mla_oracle_merge(&call, err);
  }
  mla_attention call = {0};
  call.problem = &x->problem;
  call.args = args;
  call.rows = view->rows;
  call.row_id = view->row_index;
  call.q_round = emulate ? emulate->q_round : MLA_Q_ROUND_NONE;
  call.dequant = emulate ? emulate->dequant : MLA_DEQUANT_ROUND_PRODUCT;
  call.keep = &x->rows;
  return x->problem.op == MLA_OP_DECODE ? mla_oracle_decode(&call, err)
                                        : mla_oracle_prefill(&call, err);
}

static mla_status fill_index(mla_expected *x, const mla_args *args,
                             const mla_numerics *emulate, mla_error *err) {
  const mla_expected_view *view = &x->output[0].view;
  mla_index_call call = {&x->problem,
                         args,
                         view->rows,
                         view->row_index,
                         emulate ? emulate->dequant : MLA_DEQUANT_ROUND_PRODUCT,
                         &x->index};
  return mla_oracle_index(&call, err);
}

static void fill_slots(mla_expected *x, const mla_args *args) {
  const mla_expected_view *view = &x->output[0].view;
  mla_oracle_map_indices(&x->problem, args, view->rows, view->row_index,
                         x->output[0].value);
}

static mla_status fill_product(output *y, int32_t q_dtype, mla_error *err) {
  double *to[] = {y->value, y->norm, y->flushed};
  mla_status status = MLA_OK;
  for (int i = 0; i < 3 && !status; i++) {
    mla_result result = {to[i], MLA_F64, y->view.width, NULL};
    if (to[i])
      status = mla_product_rows(&y->product, y->view.rows, y->view.row_index,
                                (mla_product_kind)i,
                                mla_smallest_normal(q_dtype), result, err);
  }
  return status;
}

static mla_status fill(mla_expected *x, const mla_args *args,
                       const mla_numerics *emulate, mla_error *err) {
  mla_status status = MLA_OK;
  if (x->output[0].kind == ATTENTION_OUT)
    return fill_rows(x, args, emulate, err);
  if (x->output[0].kind == INDEX_CHOICE)
    return fill_index(x, args, emulate, err);
  if (x->output[0].kind == SLOTS) {
    fill_slots(x, args);
    return MLA_OK;
  }
  if (x->output[0].kind == EXACT)
    return mla_exact_bytes(
        &x->problem, args,
        emulate ? emulate->dequant : MLA_DEQUANT_ROUND_PRODUCT,
        x->output[0].bytes, err);
  for (int32_t i = 0; i < x->count && !status; i++)
    status = fill_product(&x->output[i], x->problem.q_dtype, err);
  return status;
}

mla_status mla_expect(const mla_problem *problem, const mla_args *args,
                      const mla_selection *selection,
                      const mla_numerics *emulate, mla_expected **expected,
                      mla_error *err) {
  mla_expected *x = NULL;
  mla_status status = mla_expected_alloc(problem, args, selection, &x, err);
  if (!status) status = fill(x, args, emulate, err);
  if (status) {
    mla_expected_free(x);
    return status;
  }
  *expected = x;
  return MLA_OK;
}

/* ------------------------------------------------------------ reading */

int32_t mla_expected_count(const mla_expected *expected) {
  return expected->count;
}

mla_expected_view mla_expected_at(const mla_expected *expected, int32_t i) {
  return expected->output[i].view;
}

mla_expected_array mla_expected_array_at(mla_expected *expected, int32_t k) {
  mla_expected_array none = {NULL, NULL, 0, 0};
  return k >= 0 && k < expected->array_count ? expected->array[k] : none;
}

/* code * scale is a product, rounded before it is moved. */
static double budget_of_move(const mla_problem *p, const output *y, double x,
                             const mla_roundoffs *u) {
  double scaled = p->flags & MLA_BLOCK_SCALED ? u->acc * mla_fabs(x) : 0;
  return mla_budget_move(x, y->product.b.dtype, p->out_dtype, u) + scaled;
}

static void budget_product(const mla_problem *p, const output *y,
                           const mla_roundoffs *u, double *budget) {
  int64_t count = y->view.rows * y->view.width;
  for (int64_t i = 0; i < count; i++)
    budget[i] = y->product.depth == 0
                    ? budget_of_move(p, y, y->value[i], u)
                    : mla_budget_product(y->value[i], y->norm[i], y->flushed[i],
                                         y->product.depth, p->out_dtype, u);
}

const double *mla_expected_logits(const mla_expected *expected,
                                  int64_t *width) {
  *width = expected->index.width;
  return expected->index.logit;
}

void mla_expected_logits_budget(const mla_expected *expected,
                                const mla_numerics *numerics, double *budget) {
  const mla_index_sink *x = &expected->index;
  const mla_problem *p = &expected->problem;
  mla_roundoffs u = mla_roundoffs_of(numerics);
  int32_t dtype = p->q_dtype == MLA_F64 ? MLA_F64 : MLA_F32;
  int64_t count = expected->output[0].view.rows * x->width;
  for (int64_t i = 0; i < count; i++) {
    mla_logit_terms t = {x->logit[i],   x->scores[i],
                         x->sums[i],    x->weight[i / x->width],
                         x->flushed[i], mla_problem_head_dim(p),
                         p->num_heads};
    budget[i] = mla_budget_logit(&t, dtype, &u);
  }
}

void mla_expected_budget(const mla_expected *expected, int32_t i,
                         const mla_numerics *numerics, double *budget) {
  static const mla_numerics none;
  const mla_problem *p = &expected->problem;
  const output *y = &expected->output[i];
  mla_roundoffs u = mla_roundoffs_of(numerics ? numerics : &none);
  switch (y->kind) {
    case ATTENTION_OUT:
      mla_budget_out(&expected->rows, y->view.rows, p->op == MLA_OP_PREFILL,
                     p->out_dtype, &u, budget);
      break;
    case ATTENTION_LSE:
      mla_budget_lse(&expected->rows, y->view.rows,
                     (p->flags & MLA_LSE_BASE2) != 0, expected->lse_dtype, &u,
                     budget);
      break;
    case PRODUCT: budget_product(p, y, &u, budget); break;
    case INDEX_LOGITS:
      mla_expected_logits_budget(expected, numerics ? numerics : &none, budget);
      break;
    default: /* bytes have no budget; slots and positions are exact */
      for (int64_t k = 0; k < y->view.rows * y->view.width; k++) budget[k] = 0;
  }
}
