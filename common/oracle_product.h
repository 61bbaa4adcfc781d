/*
 * oracle_product.h - matrix products in binary64, and the operations that
 * are nothing else: absorb, q_absorb, v_expand, matmul.
 *
 * Every element is summed over k = 0, 1, 2, ... one after another, so blocking
 * and threads leave the bits alone.
 */
#ifndef MLA_ORACLE_PRODUCT_H
#define MLA_ORACLE_PRODUCT_H

#include "oracle.h"

/* Element (i, k) of an operand: data[offset + i * row + k * column]. */
typedef struct mla_operand {
  const void *data;
  int32_t dtype;
  int64_t offset, row, column;
} mla_operand;

/* Row m of a result: data[at[m] + n] (at NULL: m * stride). */
typedef struct mla_result {
  void *data;
  int32_t dtype;
  int64_t stride;
  const int64_t *at;
} mla_result;

typedef enum mla_product_kind {
  MLA_PRODUCT_SUM,     /* sum_k a b */
  MLA_PRODUCT_SQUARES, /* sqrt(sum_k (a b)^2) */
  MLA_PRODUCT_FLUSHED  /* sum_k |a b| where a or b is below `tiny` */
} mla_product_kind;

/*
 * to[m][n] = sum over k of a[m * columns + k] and b(n, k). Shapes: a[rows][
 * depth], dense; b[columns] x [depth].
 */
typedef struct mla_product {
  int64_t rows, columns, depth;
  const double *a;
  mla_operand b;
  double tiny;
} mla_product;

mla_status mla_multiply(const mla_product *x, mla_product_kind kind,
                        mla_result to, mla_error *err);

/*
 * One output of a product operation. Row i of it, flattened over all axes but
 * the last, is (outer, inner) = (i / inner_count, i % inner_count): one of
 * the two is the head, the other the row m of the head's product
 *   out[m][n] = sum over k < depth of a(m, k) b(n, k)
 * whose operands are further along by a_head, b_head a head. With depth 0 it
 * is no product but a move: out[outer][inner][n] is element (n, 0) of b,
 * further along by a_head an outer, b_head an inner index.
 */
typedef struct mla_product_output {
  int32_t slot;
  int64_t outer_count, inner_count, width, depth;
  int head_is_inner;
  mla_operand a, b;
  int64_t a_head, b_head;
} mla_product_output;
#define MLA_PRODUCT_OUTPUTS 5

/* Fills list with the operation's outputs; returns how many. */
int mla_product_outputs(const mla_problem *problem, const mla_args *args,
                        mla_product_output *list);

#endif
