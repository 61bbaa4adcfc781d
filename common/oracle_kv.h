/*
 * oracle_kv.h - writing, gathering and copying caches.
 */
#ifndef MLA_ORACLE_KV_H
#define MLA_ORACLE_KV_H

#include "mla/mla.h"

mla_status mla_oracle_kv_write(const mla_problem *problem, const mla_args *args,
                               mla_error *err);
/* dequant: the mla_dequant to read quantised entries by. */
mla_status mla_oracle_kv_read(const mla_problem *problem, const mla_args *args,
                              int32_t dequant, mla_error *err);
mla_status mla_oracle_kv_copy(const mla_problem *problem, const mla_args *args);

/* That of the three which the problem asks for. */
mla_status mla_oracle_kv(const mla_problem *problem, const mla_args *args,
                         int32_t dequant, mla_error *err);

#endif
