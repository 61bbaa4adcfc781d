/*
 * hip_fast.h - the kernels on matrix cores, asked before the portable ones.
 */
#ifndef MLA_HIP_FAST_H
#define MLA_HIP_FAST_H

#include "hip_decode.h"
#include "hip_prefill.h"
#include "hip_sparse.h"

static const mla_gpu_fast *const mla_hip_fast[] = {
    &mla_decode_mfma_fast, &mla_sparse_mfma_fast, &mla_prefill_mfma_fast, NULL};

static mla_status mla_hip_query(mla_handle *handle, const mla_problem *problem,
                                const mla_limits *limits, mla_answer *answer,
                                mla_error *err) {
  return mla_gpu_query_with(mla_hip_fast, handle, problem, limits, answer, err);
}

static mla_status mla_hip_run(const mla_backend_plan *plan,
                              const mla_args *args, void *workspace,
                              uint64_t workspace_bytes, mla_stream stream,
                              mla_error *err) {
  (void)workspace_bytes;
  return mla_gpu_run_with(mla_hip_fast, plan, args, workspace, stream, err);
}

#endif
