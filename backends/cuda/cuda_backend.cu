/*
 * The CUDA backend's table. Kernels of common/gpu serve every operation on
 * any device; those of cuda_fast.h go before them where they apply.
 */
#include "cuda_fast.h"
#include "gpu_vtable.h"

static const mla_cuda_fast *const fast[] = {
    &mla_cuda_decode_sm90, &mla_cuda_prefill_sm90, &mla_cuda_product_sm90};

static const mla_cuda_fast *fast_for(const mla_handle *h, const mla_problem *p,
                                     const mla_limits *l) {
  for (const mla_cuda_fast *f : fast)
    if (f->serves(h, p, l)) return f;
  return NULL;
}

static mla_status query(mla_handle *handle, const mla_problem *problem,
                        const mla_limits *limits, mla_answer *answer,
                        mla_error *err) {
  mla_status st = mla_gpu_query(handle, problem, limits, answer, err);
  if (st != MLA_OK || !answer->supported) return st;
  const mla_cuda_fast *f = fast_for(handle, problem, limits);
  if (!f) return MLA_OK;
  const uint64_t bytes = f->workspace(handle, problem, limits);
  if (bytes > answer->workspace_bytes) answer->workspace_bytes = bytes;
  f->describe(answer);
  snprintf(answer->kernel, sizeof answer->kernel, "%s", f->kernel);
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
  const mla_cuda_fast *f =
      fast_for(plan->handle, &plan->problem, &plan->limits);
  if (f && f->takes(&c)) return f->run(&c);
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
