#include "oracle_output.h"

#include <stdlib.h>

#include "error.h"
#include "oracle_load.h"
#include "scaled_weights.h"
#include "tensor.h"

/* The rows of one head: which of the output's they are, and its product. */
typedef struct head_rows {
  int64_t count;
  int64_t *m;  /* row of the head's product */
  int64_t *at; /* element where it goes */
  double *a;   /* [count][depth] */
} head_rows;

static int64_t row_of(const int64_t *row_id, int64_t r) {
  return row_id ? row_id[r] : r;
}

static int64_t place(mla_result to, int64_t r) {
  return to.at ? to.at[r] : r * to.stride;
}

static void move_rows(const mla_product_output *x, int64_t rows,
                      const int64_t *row_id, mla_result to) {
  int64_t r;
#ifdef _OPENMP
#pragma omp parallel for
#endif
  for (r = 0; r < rows; r++) {
    int64_t id = row_of(row_id, r);
    int64_t from = x->b.offset + id / x->inner_count * x->a_head +
                   id % x->inner_count * x->b_head;
    for (int64_t n = 0; n < x->width; n++) {
      mla_line line = {x->b.data, x->b.dtype, from + n * x->b.row, 1};
      double value;
      mla_load(&value, 1, line, 1);
      mla_store(to.data, to.dtype, place(to, r) + n, &value, 1);
    }
  }
}

static void find_rows(const mla_product_output *x, int64_t rows,
                      const int64_t *row_id, int64_t head, mla_result to,
                      head_rows *found) {
  found->count = 0;
  if (!row_id) { /* all of them, so no search */
    int64_t step = x->head_is_inner ? x->inner_count : 1;
    int64_t r = x->head_is_inner ? head : head * x->inner_count;
    found->count = x->head_is_inner ? x->outer_count : x->inner_count;
    for (int64_t m = 0; m < found->count; m++) {
      found->m[m] = m;
      found->at[m] = place(to, r + m * step);
    }
    return;
  }
  for (int64_t r = 0; r < rows; r++) {
    int64_t id = row_id[r];
    int64_t outer = id / x->inner_count, inner = id % x->inner_count;
    if ((x->head_is_inner ? inner : outer) != head) continue;
    found->m[found->count] = x->head_is_inner ? outer : inner;
    found->at[found->count++] = place(to, r);
  }
}

static void load_a(const mla_product_output *x, int64_t head,
                   head_rows *found) {
  int64_t i;
#ifdef _OPENMP
#pragma omp parallel for if (found->count * x->depth > MLA_WORTH_THREADS)
#endif
  for (i = 0; i < found->count; i++) {
    mla_line line = {x->a.data, x->a.dtype,
                     x->a.offset + head * x->a_head + found->m[i] * x->a.row,
                     x->a.column};
    mla_load(found->a + i * x->depth, 1, line, x->depth);
  }
}

static mla_status multiply_head(const mla_product_output *x, int64_t head,
                                mla_product_kind kind, double tiny,
                                mla_result to, head_rows *found,
                                mla_error *err) {
  mla_product product = {found->count, x->width, x->depth,
                         found->a,     x->b,     tiny};
  product.b.offset += head * x->b_head;
  to.at = found->at;
  load_a(x, head, found);
  return mla_multiply(&product, kind, to, err);
}

static mla_status multiply_heads(const mla_product_output *x, int64_t rows,
                                 const int64_t *row_id, mla_product_kind kind,
                                 double tiny, mla_result to, head_rows *found,
                                 mla_error *err) {
  int64_t heads = x->head_is_inner ? x->inner_count : x->outer_count;
  mla_status status = MLA_OK;
  for (int64_t head = 0; head < heads && !status; head++) {
    find_rows(x, rows, row_id, head, to, found);
    if (found->count)
      status = multiply_head(x, head, kind, tiny, to, found, err);
  }
  return status;
}

mla_status mla_product_rows(const mla_product_output *x, int64_t rows,
                            const int64_t *row_id, mla_product_kind kind,
                            double tiny, mla_result to, mla_error *err) {
  head_rows found = {0};
  mla_status status;
  int64_t most = x->head_is_inner ? x->outer_count : x->inner_count;
  if (x->depth == 0) {
    if (kind == MLA_PRODUCT_SUM) move_rows(x, rows, row_id, to);
    return MLA_OK;
  }
  if (most > rows) most = rows;
  found.m = malloc((size_t)(most + 1) * sizeof *found.m);
  found.at = malloc((size_t)(most + 1) * sizeof *found.at);
  found.a = malloc((size_t)(most * x->depth + 1) * sizeof *found.a);
  if (found.m && found.at && found.a)
    status = multiply_heads(x, rows, row_id, kind, tiny, to, &found, err);
  else
    status = mla_fail(err, MLA_OUT_OF_MEMORY, "tokens",
                      "no memory for %lld rows of a product", (long long)most);
  free(found.m);
  free(found.at);
  free(found.a);
  return status;
}

/* Where every row of the output's tensor begins. */
static int64_t *row_places(const mla_product_output *x, const mla_tensor *t,
                           int64_t rows) {
  int64_t *at = malloc((size_t)(rows + 1) * sizeof *at);
  if (!at) return NULL;
  for (int64_t r = 0; r < rows; r++)
    at[r] = t->rank == 2 ? mla_at1(t, r)
                         : mla_at2(t, r / x->inner_count, r % x->inner_count);
  return at;
}

static mla_status run_output(const mla_product_output *x, const mla_tensor *t,
                             mla_error *err) {
  int64_t rows = x->outer_count * x->inner_count;
  int64_t *at = row_places(x, t, rows);
  mla_result to = {t->data, t->dtype, 0, at};
  mla_status status;
  if (!at)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "tokens", "no memory for %lld rows",
                    (long long)rows);
  status = mla_product_rows(x, rows, NULL, MLA_PRODUCT_SUM, 0, to, err);
  free(at);
  return status;
}

mla_status mla_oracle_product(const mla_problem *problem, const mla_args *args,
                              mla_error *err) {
  mla_product_output list[MLA_PRODUCT_OUTPUTS];
  mla_scaled_weights weights;
  mla_status status = mla_weights_widen(problem, args, &weights, err);
  int count = status ? 0 : mla_product_outputs(problem, &weights.args, list);
  for (int i = 0; i < count && !status; i++)
    status = run_output(&list[i], mla_arg(args, list[i].slot), err);
  mla_weights_free(&weights);
  return status;
}
