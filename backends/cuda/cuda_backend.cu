/*
 * The CUDA backend's table. Kernels of common/gpu serve every operation on
 * any device; those of cuda_fast.h go before them where they apply.
 */
#include "cuda_fast.h"
#include "gpu_vtable.h"

static mla_status query(mla_handle *handle, const mla_problem *problem,
                        const mla_limits *limits, mla_answer *answer,
                        mla_error *err) {
  mla_status st = mla_gpu_query(handle, problem, limits, answer, err);
  if (st != MLA_OK || !answer->supported ||
      !mla_sm90_decode_serves(handle, problem, limits))
    return st;
  const uint64_t bytes = mla_sm90_decode_workspace(handle, problem, limits);
  if (bytes > answer->workspace_bytes) answer->workspace_bytes = bytes;
  answer->determinism = MLA_DETERMINISM_RUN_TO_RUN;
  answer->numerics.u_p = 0x1p-8;
  answer->numerics.flushes_subnormals = 1; /* of P, by ex2.approx.ftz */
  snprintf(answer->kernel, sizeof answer->kernel, "decode_bf16_sm90");
  return MLA_OK;
}

static mla_status run(const mla_backend_plan *plan, const mla_args *args,
                      void *workspace, uint64_t workspace_bytes,
                      mla_stream stream, mla_error *err) {
  mla_gpu_call c = {plan,
                    &plan->problem,
                    args,
                    (unsigned char *)workspace,
                    mla_gpu_stream_of(stream),
                    err};
  if (mla_sm90_decode_serves(plan->handle, &plan->problem, &plan->limits) &&
      mla_sm90_decode_takes(&c))
    return mla_sm90_decode_run(&c);
  return mla_gpu_run(plan, args, workspace, workspace_bytes, stream, err);
}

extern "C" const mla_backend *mla_cuda_backend(uint32_t major, uint32_t minor) {
  static mla_backend backend;
  (void)minor;
  if (major != MLA_ABI_MAJOR) return NULL;
  if (!backend.size) {
    backend.name = "cuda";
    backend.version = MLA_VERSION_STRING;
    backend.description = "NVIDIA GPUs, sm_80 and later";
    mla_gpu_fill_vtable(&backend);
    backend.query = query;
    backend.run = run;
  }
  return &backend;
}
