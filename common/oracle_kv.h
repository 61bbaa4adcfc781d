/*
 * oracle_kv.h - writing, gathering and copying plain caches.
 */
#ifndef MLA_ORACLE_KV_H
#define MLA_ORACLE_KV_H

#include "mla/mla.h"

mla_status mla_oracle_kv_write(const mla_problem *problem,
                               const mla_args *args);
mla_status mla_oracle_kv_read(const mla_problem *problem, const mla_args *args);
mla_status mla_oracle_kv_copy(const mla_problem *problem, const mla_args *args);

#endif
