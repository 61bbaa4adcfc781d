/*
 * cpu_convert.h - rows of elements from one tensor to another.
 */
#ifndef MLA_CPU_CONVERT_H
#define MLA_CPU_CONVERT_H

#include "cpu_table.h"
#include "mla/backend.h"

/*
 * Bytes that a call must write before it writes them past the caches: more than
 * would still lie there when they are read. A step of decode stays below, a
 * long prompt's entries do not. What is read of more than these has to come
 * from memory.
 */
#define MLA_CPU_FAR ((int64_t)16 << 20)

/* n elements from one offset to another: each rounded once, or the very bits
   where the types agree. The two may be the same memory. far: past the caches,
   to be settled (cpu_kernels.h). */
void mla_cpu_convert(const mla_cpu_table *table, const mla_tensor *from,
                     int64_t from_at, const mla_tensor *to, int64_t to_at,
                     int64_t n, int far);

/* Bytes from one place to another, near or far; the two as in `stream`. */
void mla_cpu_put(const mla_cpu_table *table, int far, void *to,
                 const void *from, int64_t bytes);

#endif
