/*
 * oracle_exact.h - the bytes that writers and copies must leave.
 */
#ifndef MLA_ORACLE_EXACT_H
#define MLA_ORACLE_EXACT_H

#include "mla/mla.h"

/* The output slot of kv_write, kv_read, kv_copy. */
int32_t mla_exact_slot(int32_t op);
/*
 * The whole memory of that slot's tensor, gaps included, as the operation
 * would leave it, reading by `dequant`. What the arguments hold is not
 * changed.
 */
mla_status mla_exact_bytes(const mla_problem *problem, const mla_args *args,
                           int32_t dequant, unsigned char *bytes,
                           mla_error *err);

#endif
