/*
 * case_types.h - the element types that follow from a case's format.
 */
#ifndef MLA_CASE_TYPES_H
#define MLA_CASE_TYPES_H

#include "case.h"

/* The type of activations that the format implies: its own when plain, bf16
   when the entries are packed or 8 bits wide. */
int32_t mla_case_default_act(const mla_case *c);
int32_t mla_case_act(const mla_case *c);
int32_t mla_case_out(const mla_case *c);
int32_t mla_case_weight(const mla_case *c);
int32_t mla_case_cache_format(const mla_case *c);

#endif
