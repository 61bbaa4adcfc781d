/*
 * oracle_merge_op.h - the merge operation over all or some rows.
 */
#ifndef MLA_ORACLE_MERGE_OP_H
#define MLA_ORACLE_MERGE_OP_H

#include "oracle.h"
#include "oracle_terms.h"

typedef struct mla_merge_call {
  const mla_problem *problem;
  const mla_args *args;
  int64_t rows;
  const int64_t *row_id; /* token * H + head; NULL: r */
  mla_row_sink *keep;    /* where answers go; NULL: the outputs, rounded */
} mla_merge_call;

int64_t mla_merge_rows(const mla_args *args); /* tokens * H */
mla_status mla_oracle_merge(const mla_merge_call *call, mla_error *err);

#endif
