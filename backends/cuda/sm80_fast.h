/*
 * sm80_fast.h - the kernels for sm_80 and every device after it, asked before
 * the portable ones.
 */
#ifndef MLA_SM80_FAST_H
#define MLA_SM80_FAST_H

#include "sm80_decode.h"
#include "sm80_index.h"
#include "sm80_prefill.h"

static const mla_gpu_fast *const mla_sm80_fast[] = {
    &mla_sm80_decode_fast, &mla_sm80_prefill_fast, &mla_sm80_index_fast, NULL};

#endif
