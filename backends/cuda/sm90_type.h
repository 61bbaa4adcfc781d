/*
 * sm90_type.h - the numbers that sm_90a's kernels multiply: bf16, or f16 where
 * the same sources are compiled once more with MLA_SM90_F16. Whatever both
 * objects have of a name ends in which.
 */
#ifndef MLA_SM90_TYPE_H
#define MLA_SM90_TYPE_H

#include "gpu_port.h"
#include "mla/backend.h"

#ifdef MLA_SM90_F16
#define MLA_SM90_NAME(stem) stem##_f16_sm90
#define MLA_SM90_TEXT "f16"
enum { SM90_TYPE = MLA_F16, SM90_FORMAT = MLA_CACHE_F16 };
/* What is below 2^-24 is no f16: P is multiplied by 2^12, as its sums are. */
#define SM90_P_UP 12.0f
#define SM90_U 0x1p-11
#else
#define MLA_SM90_NAME(stem) stem##_bf16_sm90
#define MLA_SM90_TEXT "bf16"
enum { SM90_TYPE = MLA_BF16, SM90_FORMAT = MLA_CACHE_BF16 };
#define SM90_P_UP 0.0f
#define SM90_U 0x1p-8
#endif

#endif
