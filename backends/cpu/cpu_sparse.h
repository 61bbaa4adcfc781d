/*
 * cpu_sparse.h - decode over lists of slots, as decode's run calls it.
 */
#ifndef MLA_CPU_SPARSE_H
#define MLA_CPU_SPARSE_H

#include "cpu_internal.h"

uint64_t mla_cpu_sparse_workspace(const mla_cpu_context *context);
void mla_cpu_sparse_run(const mla_cpu_context *context, const mla_args *args,
                        void *workspace);

#endif
