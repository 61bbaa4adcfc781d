/*
 * cpu_weights.h - absorb's weights with scales, widened to f32.
 */
#ifndef MLA_CPU_WEIGHTS_H
#define MLA_CPU_WEIGHTS_H

#include "cpu_internal.h"

/* Bytes of workspace that widened weights take; 0 without scales. */
uint64_t mla_cpu_weights_take(mla_cpu_arena *arena,
                              const mla_cpu_context *context, float *memory[3]);

/* Fills them, and gives the call's tensors with those instead of codes. */
void mla_cpu_weights_widen(const mla_cpu_context *context, const mla_args *args,
                           float *const memory[3],
                           mla_tensor tensor[MLA_T_COUNT]);

#endif
