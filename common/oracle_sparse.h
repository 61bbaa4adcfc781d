/*
 * oracle_sparse.h - attention over listed slots instead of a block table.
 */
#ifndef MLA_ORACLE_SPARSE_H
#define MLA_ORACLE_SPARSE_H

#include "oracle_attention.h"

/* Decode with MLA_SPARSE: every token has a list of its own. */
mla_status mla_oracle_sparse(const mla_attention *call, mla_error *err);

#endif
