/*
 * gpu_query.h - what the portable kernels serve, and what they need for it.
 */
#ifndef MLA_GPU_QUERY_H
#define MLA_GPU_QUERY_H

#include <stdio.h>

#include "gpu_run_index.h"
#include "gpu_run_sparse.h"
#include "gpu_run_widen.h"

static int mla_gpu_real(int dtype) {
  return dtype == MLA_F32 || dtype == MLA_F16 || dtype == MLA_BF16;
}

static int mla_gpu_uses_cache(const mla_problem *p) {
  return p->op == MLA_OP_KV_WRITE || p->op == MLA_OP_KV_READ ||
         p->op == MLA_OP_KV_COPY || p->op == MLA_OP_DECODE ||
         p->op == MLA_OP_INDEX ||
         (p->op == MLA_OP_PREFILL && (p->flags & MLA_CONTEXT));
}

static const char *mla_gpu_why_not_cache(const mla_problem *p) {
  const int cache = mla_format_dtype(p->cache_format);
  const int attends = p->op == MLA_OP_DECODE || p->op == MLA_OP_PREFILL;
  if (p->cache_format == MLA_CACHE_F64) return "cache_format: no f64";
  if (mla_cache_layout_of(p).quantised) {
    if (attends && mla_cache_mixed(p->cache_format) && p->q_dtype == MLA_F16)
      return "cache_format: holds bf16, which f16 queries do not";
    return NULL;
  }
  if (p->op == MLA_OP_PREFILL && cache != p->q_dtype)
    return "cache_format: prefill takes plain context of q's type only";
  if (p->op == MLA_OP_DECODE && p->q_dtype != MLA_F32 && cache != p->q_dtype)
    return "cache_format: must be q's type, or q f32";
  return NULL;
}

static const char *mla_gpu_why_not_types(const mla_problem *p) {
  const int weights = p->op == MLA_OP_ABSORB || p->op == MLA_OP_Q_ABSORB ||
                      p->op == MLA_OP_V_EXPAND || p->op == MLA_OP_PREFILL ||
                      p->op == MLA_OP_MATMUL;
  const int queries = p->op != MLA_OP_KV_READ && p->op != MLA_OP_KV_COPY &&
                      p->op != MLA_OP_ABSORB && p->op != MLA_OP_MAP_INDICES;
  const int outputs = p->op != MLA_OP_KV_WRITE && p->op != MLA_OP_KV_COPY &&
                      p->op != MLA_OP_INDEX && p->op != MLA_OP_MAP_INDICES;
  if (queries && !mla_gpu_real(p->q_dtype))
    return "q_dtype: f32, f16 and bf16 only";
  if (outputs && !mla_gpu_real(p->out_dtype))
    return "out_dtype: f32, f16 and bf16 only";
  if (weights && !(p->flags & MLA_BLOCK_SCALED) &&
      !mla_gpu_real(p->weight_dtype))
    return "weight_dtype: f32, f16 and bf16 only";
  if (!mla_gpu_uses_cache(p)) return NULL;
  return mla_gpu_why_not_cache(p);
}

static const char *mla_gpu_why_not(const mla_problem *p) {
  if (p->window) return "window: no sliding window";
  if (p->flags & (MLA_ALIBI | MLA_OUTPUT_SCALE))
    return "flags: neither ALiBi nor an output scale";
  if (p->op > MLA_OP_MAP_INDICES) return "op: unknown";
  if (p->flags & MLA_SPARSE && p->flags & MLA_SEPARATE_V)
    return "flags: no lists of slots for K and V apart";
  if (p->flags & MLA_SPARSE && mla_gpu_most_keys(p, NULL) > INT32_MAX)
    return "topk: with extra_topk at most 2^31 - 1";
  const char *types = mla_gpu_why_not_types(p);
  if (types) return types;
  if (p->op == MLA_OP_DECODE &&
      (mla_problem_head_dim(p) > 1024 || mla_problem_v_dim(p) > 1024))
    return "head_dim: at most 1024 columns of keys and values";
  if (p->op == MLA_OP_PREFILL && p->kv_lora_rank + p->qk_rope_head_dim > 1024)
    return "kv_lora_rank: at most 1024 with qk_rope_head_dim";
  if (p->num_heads > 65535) return "num_heads: at most 65535";
  return NULL;
}

static uint64_t mla_gpu_workspace(const mla_problem *p, const mla_limits *l) {
  int64_t floats = 0;
  if (p->op == MLA_OP_DECODE || p->op == MLA_OP_PREFILL)
    floats = mla_gpu_slice(p, l) * mla_gpu_token_floats(p, l);
  if (p->op == MLA_OP_INDEX) floats = mla_gpu_index_floats(p, l);
  if (p->op == MLA_OP_ABSORB) floats = mla_gpu_widen_floats(p);
  return (uint64_t)floats * sizeof(float);
}

static mla_status mla_gpu_query(mla_handle *handle, const mla_problem *problem,
                                const mla_limits *limits, mla_answer *answer,
                                mla_error *err) {
  (void)handle;
  (void)err;
  const char *no = mla_gpu_why_not(problem);
  answer->supported = !no;
  snprintf(answer->reason, sizeof answer->reason, "%s", no ? no : "");
  snprintf(answer->kernel, sizeof answer->kernel, "%s_portable",
           mla_op_name(problem->op));
  answer->workspace_bytes = mla_gpu_workspace(problem, limits);
  answer->workspace_alignment = 256;
  answer->determinism = MLA_DETERMINISM_BATCH_INVARIANT;
  answer->capture_safe = 1;
  return MLA_OK;
}

static mla_status mla_gpu_plan(mla_handle *handle, const mla_problem *problem,
                               const mla_limits *limits,
                               mla_backend_plan **plan, mla_error *err) {
  mla_backend_plan *p = (mla_backend_plan *)calloc(1, sizeof *p);
  if (!p)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "plan", "no memory for a plan");
  p->handle = handle;
  p->problem = *problem;
  p->limits = *limits;
  p->workspace_bytes = mla_gpu_workspace(problem, limits);
  *plan = p;
  return MLA_OK;
}

static void mla_gpu_plan_free(mla_backend_plan *plan) {
  free(plan);
}

#endif
