/*
 * oracle_multiply.c - the reference's matrix product.
 *
 * b is widened once, COLUMNS of it at a time and DEPTH terms deep, and all
 * rows of a go past it. Accumulators of COLUMNS elements are independent, so a
 * compiler may use vectors without changing the order of any sum.
 */
#include <stdlib.h>
#include <string.h>

#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "oracle_load.h"
#include "oracle_product.h"

#define COLUMNS 8
#define DEPTH 256

/* One thread's memory: a panel of b and the sums of its columns. */
typedef struct panel {
  double b[DEPTH][COLUMNS];
  double sum[]; /* [rows][COLUMNS] */
} panel;

static void load_panel(panel *x, const mla_operand *b, int64_t column,
                       int64_t columns, int64_t k, int64_t depth) {
  int by_column = b->row == 1 && columns > 1;
  mla_line line = {b->data, b->dtype, 0, by_column ? b->row : b->column};
  int64_t base = b->offset + column * b->row + k * b->column;
  if (columns < COLUMNS) memset(x->b, 0, sizeof x->b);
  for (int64_t i = 0; i < (by_column ? depth : columns); i++) {
    line.offset = base + i * (by_column ? b->column : b->row);
    if (by_column)
      mla_load(x->b[i], 1, line, columns);
    else
      mla_load(&x->b[0][i], COLUMNS, line, depth);
  }
}

static void add_products(const double *a, double (*b)[COLUMNS], int64_t depth,
                         double *restrict sum) {
  double s[COLUMNS];
  for (int c = 0; c < COLUMNS; c++) s[c] = sum[c];
  for (int64_t k = 0; k < depth; k++)
    for (int c = 0; c < COLUMNS; c++) s[c] += a[k] * b[k][c];
  for (int c = 0; c < COLUMNS; c++) sum[c] = s[c];
}

static void add_squares(const double *a, double (*b)[COLUMNS], int64_t depth,
                        double *restrict sum) {
  double s[COLUMNS];
  for (int c = 0; c < COLUMNS; c++) s[c] = sum[c];
  for (int64_t k = 0; k < depth; k++)
    for (int c = 0; c < COLUMNS; c++) {
      double x = a[k] * b[k][c];
      s[c] += x * x;
    }
  for (int c = 0; c < COLUMNS; c++) sum[c] = s[c];
}

static void add_flushed(const double *a, double (*b)[COLUMNS], int64_t depth,
                        double tiny, double *restrict sum) {
  for (int64_t k = 0; k < depth; k++)
    for (int c = 0; c < COLUMNS; c++) {
      double x = a[k] < 0 ? -a[k] : a[k];
      double y = b[k][c] < 0 ? -b[k][c] : b[k][c];
      sum[c] += x < tiny || y < tiny ? x * y : 0;
    }
}

static void add_panel(panel *x, const mla_product *product,
                      mla_product_kind kind, int64_t k, int64_t depth) {
  for (int64_t m = 0; m < product->rows; m++) {
    const double *a = product->a + m * product->depth + k;
    double *sum = x->sum + m * COLUMNS;
    if (kind == MLA_PRODUCT_SUM)
      add_products(a, x->b, depth, sum);
    else if (kind == MLA_PRODUCT_SQUARES)
      add_squares(a, x->b, depth, sum);
    else
      add_flushed(a, x->b, depth, product->tiny, sum);
  }
}

static void multiply_columns(panel *x, const mla_product *product,
                             mla_product_kind kind, mla_result to,
                             int64_t column) {
  int64_t columns = product->columns - column;
  if (columns > COLUMNS) columns = COLUMNS;
  for (int64_t i = 0; i < product->rows * COLUMNS; i++) x->sum[i] = 0;
  for (int64_t k = 0; k < product->depth; k += DEPTH) {
    int64_t depth = product->depth - k < DEPTH ? product->depth - k : DEPTH;
    load_panel(x, &product->b, column, columns, k, depth);
    add_panel(x, product, kind, k, depth);
  }
  for (int64_t m = 0; m < product->rows; m++) {
    double *sum = x->sum + m * COLUMNS;
    int64_t at = to.at ? to.at[m] : m * to.stride;
    if (kind == MLA_PRODUCT_SQUARES)
      for (int c = 0; c < COLUMNS; c++) sum[c] = mla_sqrt(sum[c]);
    mla_store(to.data, to.dtype, at + column, sum, columns);
  }
}

mla_status mla_multiply(const mla_product *product, mla_product_kind kind,
                        mla_result to, mla_error *err) {
  size_t bytes =
      sizeof(panel) + (size_t)product->rows * COLUMNS * sizeof(double);
  int64_t work = product->rows * product->columns * product->depth;
  int failed = 0;
  (void)work; /* without OpenMP */
#ifdef _OPENMP
#pragma omp parallel reduction(| : failed) if (work > MLA_WORTH_THREADS)
#endif
  {
    panel *memory = malloc(bytes);
    int64_t column;
    if (!memory) failed = 1;
#ifdef _OPENMP
#pragma omp for schedule(dynamic, 4)
#endif
    for (column = 0; column < product->columns; column += COLUMNS)
      if (memory) multiply_columns(memory, product, kind, to, column);
    free(memory);
  }
  if (!failed) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, "rows",
                  "no memory for a product of %lld rows",
                  (long long)product->rows);
}
