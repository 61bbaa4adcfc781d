/*
 * oracle_output.h - computing a described output of a product operation.
 */
#ifndef MLA_ORACLE_OUTPUT_H
#define MLA_ORACLE_OUTPUT_H

#include "oracle_product.h"

/*
 * Computes rows row_id[0..rows) (NULL: all) of x; row r goes to data[r *
 * stride] of `to` (at NULL), or to element at[r]. For a move, SUM gives the
 * values and the other kinds 0.
 */
mla_status mla_product_rows(const mla_product_output *x, int64_t rows,
                            const int64_t *row_id, mla_product_kind kind,
                            double tiny, mla_result to, mla_error *err);

/* Every row into the operation's tensors, rounded. */
mla_status mla_oracle_product(const mla_problem *problem, const mla_args *args,
                              mla_error *err);

#endif
