/*
 * cuda_fast.h - kernels for particular devices, asked before the portable
 * ones.
 */
#ifndef MLA_CUDA_FAST_H
#define MLA_CUDA_FAST_H

#include "gpu_host.h"

typedef struct mla_cuda_fast {
  const char *kernel;
  /* Whether it serves a problem, at query... */
  int (*serves)(const mla_handle *h, const mla_problem *p, const mla_limits *l);
  uint64_t (*workspace)(const mla_handle *h, const mla_problem *p,
                        const mla_limits *l);
  /* ... what it promises: an answer for the portable kernel, amended. */
  void (*describe)(mla_answer *answer);
  /* Whether it takes these tensors, at run: strides that it cannot take go to
     the portable kernel. */
  int (*takes)(const mla_gpu_call *c);
  mla_status (*run)(const mla_gpu_call *c);
} mla_cuda_fast;

/* Dense decode, bf16, 576/512, sm_90a. */
extern const mla_cuda_fast mla_cuda_decode_sm90;
/* Matmul, bf16, sm_90a. */
extern const mla_cuda_fast mla_cuda_product_sm90;
/* Prefill without context, bf16, 192/128, sm_90a. */
extern const mla_cuda_fast mla_cuda_prefill_sm90;

#endif
