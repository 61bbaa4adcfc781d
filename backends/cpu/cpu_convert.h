/*
 * cpu_convert.h - rows of elements from one tensor to another.
 */
#ifndef MLA_CPU_CONVERT_H
#define MLA_CPU_CONVERT_H

#include "cpu_table.h"
#include "mla/backend.h"

/* n elements from one offset to another: each rounded once, or the very bits
   where the types agree. The two may be the same memory. */
void mla_cpu_convert(const mla_cpu_table *table, const mla_tensor *from,
                     int64_t from_at, const mla_tensor *to, int64_t to_at,
                     int64_t n);

#endif
