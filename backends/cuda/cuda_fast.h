/*
 * cuda_fast.h - the kernels for particular NVIDIA devices.
 */
#ifndef MLA_CUDA_FAST_H
#define MLA_CUDA_FAST_H

#include "gpu_fast.h"

/* All for sm_90a, in bf16 and in f16. Dense decode, 576/512. */
extern const mla_gpu_fast mla_cuda_decode_bf16_sm90, mla_cuda_decode_f16_sm90;
/* The same where requests have few rows, or few blocks. */
extern const mla_gpu_fast mla_cuda_narrow_bf16_sm90, mla_cuda_narrow_f16_sm90;
/* The same on other pages, and on caches of codes. */
extern const mla_gpu_fast mla_cuda_pages_bf16_sm90, mla_cuda_pages_f16_sm90;
/* Sparse decode, 576/512; with bf16 queries the 656-byte cache's too. */
extern const mla_gpu_fast mla_cuda_listed_bf16_sm90, mla_cuda_listed_f16_sm90;
/* q_absorb and v_expand. */
extern const mla_gpu_fast mla_cuda_heads_bf16_sm90, mla_cuda_heads_f16_sm90;
/* Matmul. */
extern const mla_gpu_fast mla_cuda_product_bf16_sm90, mla_cuda_product_f16_sm90;
/* Prefill without context, 192/128. */
extern const mla_gpu_fast mla_cuda_prefill_bf16_sm90, mla_cuda_prefill_f16_sm90;
/* And with context. */
extern const mla_gpu_fast mla_cuda_prefill_parts_bf16_sm90,
    mla_cuda_prefill_parts_f16_sm90;

#endif
