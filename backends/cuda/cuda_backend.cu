/*
 * The CUDA backend's table. Kernels of common/gpu serve every operation on
 * any device; those of cuda_fast.h go before them where they apply.
 */
#include "cuda_fast.h"
#include "gpu_vtable.h"
#include "sm80_fast.h"
#include "sm90_index.h"

static mla_status index_logits(const mla_gpu_call *c, const mla_index_args &a,
                               unsigned tokens) {
  const mla_handle *h = c->plan->handle;
  if (h->major == 9 && h->minor == 0 && sm80_index_even(c, a))
    return mla_cuda_index_logits_sm90(c, a, tokens);
  return sm80_index_logits(c, a, tokens);
}

static mla_status index_choice(const mla_gpu_call *c, const mla_index_args &a,
                               unsigned tokens) {
  const mla_handle *h = c->plan->handle;
  if (h->major == 9 && h->minor == 0 &&
      mla_cuda_index_cluster_sm90(c, a, tokens) > 1)
    return mla_cuda_index_choice_sm90(c, a, tokens);
  return sm80_index_choice(c, a, tokens);
}

static mla_status index_run(const mla_gpu_call *c) {
  return mla_gpu_index_by(c, index_logits, index_choice);
}

static const mla_gpu_fast index_fast = {sm80_index_serves, sm80_index_workspace,
                                        sm80_index_describe, sm80_index_takes,
                                        index_run};

static const mla_gpu_fast *const fast[] = {&mla_cuda_narrow_bf16_sm90,
                                           &mla_cuda_decode_bf16_sm90,
                                           &mla_cuda_pages_bf16_sm90,
                                           &mla_cuda_listed_bf16_sm90,
                                           &mla_cuda_prefill_bf16_sm90,
                                           &mla_cuda_prefill_parts_bf16_sm90,
                                           &mla_cuda_product_bf16_sm90,
                                           &mla_cuda_heads_bf16_sm90,
                                           &mla_cuda_narrow_f16_sm90,
                                           &mla_cuda_decode_f16_sm90,
                                           &mla_cuda_pages_f16_sm90,
                                           &mla_cuda_listed_f16_sm90,
                                           &mla_cuda_prefill_f16_sm90,
                                           &mla_cuda_prefill_parts_f16_sm90,
                                           &mla_cuda_product_f16_sm90,
                                           &mla_cuda_heads_f16_sm90,
                                           &mla_sm80_decode_fast,
                                           &mla_sm80_prefill_fast,
                                           &index_fast,
                                           NULL};

static mla_status query(mla_handle *handle, const mla_problem *problem,
                        const mla_limits *limits, mla_answer *answer,
                        mla_error *err) {
  return mla_gpu_query_with(fast, handle, problem, limits, answer, err);
}

static mla_status run(const mla_backend_plan *plan, const mla_args *args,
                      void *workspace, uint64_t workspace_bytes,
                      mla_stream stream, mla_error *err) {
  (void)workspace_bytes;
  return mla_gpu_run_with(fast, plan, args, workspace, stream, err);
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
