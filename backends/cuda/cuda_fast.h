/*
 * cuda_fast.h - the kernels for particular NVIDIA devices.
 */
#ifndef MLA_CUDA_FAST_H
#define MLA_CUDA_FAST_H

#include "gpu_fast.h"

/* Dense decode, bf16, 576/512, sm_90a. */
extern const mla_gpu_fast mla_cuda_decode_sm90;
/* The same on other pages, and on caches of codes. */
extern const mla_gpu_fast mla_cuda_pages_sm90;
/* Sparse decode, bf16 and 656-byte caches, 576/512, sm_90a. */
extern const mla_gpu_fast mla_cuda_listed_sm90;
/* Matmul, bf16, sm_90a. */
extern const mla_gpu_fast mla_cuda_product_sm90;
/* Prefill without context, bf16, 192/128, sm_90a. */
extern const mla_gpu_fast mla_cuda_prefill_sm90;
/* And with context. */
extern const mla_gpu_fast mla_cuda_prefill_parts_sm90;

#endif
