/*
 * cuda_fast.h - kernels for particular devices, asked before the portable
 * ones. Each says whether it serves a problem (at query) and whether it takes
 * these tensors (at run): strides it cannot take go to the portable kernel.
 */
#ifndef MLA_CUDA_FAST_H
#define MLA_CUDA_FAST_H

#include "gpu_host.h"

/* Dense decode, bf16, 576/512, sm_90a. */
int mla_sm90_decode_serves(const mla_handle *h, const mla_problem *p,
                           const mla_limits *l);
uint64_t mla_sm90_decode_workspace(const mla_handle *h, const mla_problem *p,
                                   const mla_limits *l);
int mla_sm90_decode_takes(const mla_gpu_call *c);
mla_status mla_sm90_decode_run(const mla_gpu_call *c);

#endif
