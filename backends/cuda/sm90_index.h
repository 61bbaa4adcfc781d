/*
 * sm90_index.h - the selector's logits by warpgroup products, and its choice by
 * clusters.
 */
#ifndef MLA_SM90_INDEX_H
#define MLA_SM90_INDEX_H

#include "gpu_host.h"
#include "gpu_index_args.h"

/* Queries in bf16 or f16, keys as sm80_index_even() has them. */
mla_status mla_cuda_index_logits_sm90(const mla_gpu_call *c,
                                      const mla_index_args &a, unsigned tokens);

/* CTAs of a cluster for each of so many rows; 1: others serve. */
unsigned mla_cuda_index_cluster_sm90(const mla_gpu_call *c,
                                     const mla_index_args &a, unsigned tokens);
mla_status mla_cuda_index_choice_sm90(const mla_gpu_call *c,
                                      const mla_index_args &a, unsigned tokens);

#endif
