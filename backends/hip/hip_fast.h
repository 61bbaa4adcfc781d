/*
 * hip_fast.h - kernels on matrix cores, asked before the portable ones: which
 * problems they serve, which tensors they take, and the running.
 */
#ifndef MLA_HIP_FAST_H
#define MLA_HIP_FAST_H

#include <stdio.h>

#include "gpu_merge.h"
#include "gpu_query.h"
#include "gpu_vtable.h"
#include "hip_prefill.h"
#include "mla_decode_mfma_cdna.h"

/* ---------------------------------------------------- dense decode, 576/512 */

/* Row groups a request may have at most. */
static int64_t mla_mfma_groups(const mla_problem *p, const mla_limits *l) {
  const int64_t rows = l->max_query_len * p->num_heads;
  return (rows + MLA_MFMA_ROWS - 1) / MLA_MFMA_ROWS;
}

/* Enough blocks for the device, none below four tiles, and within 1 GiB. */
static int64_t mla_mfma_splits(const mla_handle *h, const mla_problem *p,
                               const mla_limits *l) {
  const int64_t blocks = l->requests * mla_mfma_groups(p, l);
  const int64_t most = (l->max_seq_len + MLA_MFMA_LEAST - 1) / MLA_MFMA_LEAST;
  const int64_t part = (MLA_MFMA_DV + 1) * (int64_t)p->num_heads * l->tokens;
  int64_t n = blocks > 0 ? (h->units + blocks - 1) / blocks : 1;
  if (l->num_splits > 0) n = l->num_splits;
  if (n > most) n = most;
  if (n > 64) n = 64;
  if (part > 0 && n > MLA_GPU_PARTIAL_FLOATS / part)
    n = MLA_GPU_PARTIAL_FLOATS / part;
  return n < 1 ? 1 : n;
}

static uint64_t mla_mfma_workspace(const mla_handle *h, const mla_problem *p,
                                   const mla_limits *l) {
  return (uint64_t)(l->tokens * p->num_heads * mla_mfma_splits(h, p, l) *
                    (MLA_MFMA_DV + 1)) *
         sizeof(float);
}

static int mla_mfma_serves(const mla_handle *h, const mla_problem *p,
                           const mla_limits *l) {
  const uint64_t flags =
      MLA_CAUSAL | MLA_RETURN_LSE | MLA_LSE_BASE2 | MLA_HAS_SINK;
  const int64_t part = (MLA_MFMA_DV + 1) * (int64_t)p->num_heads * l->tokens;
  return h->wave == MLA_MFMA_WAVE && p->op == MLA_OP_DECODE &&
         (p->flags & ~flags) == 0 && mla_hip_type(h, p->q_dtype) &&
         mla_format_dtype(p->cache_format) == p->q_dtype &&
         mla_problem_head_dim(p) == MLA_MFMA_DK &&
         mla_problem_v_dim(p) == MLA_MFMA_DV && mla_problem_kv_heads(p) == 1 &&
         p->logits_soft_cap == 0 && part <= MLA_GPU_PARTIAL_FLOATS &&
         l->requests * mla_mfma_groups(p, l) < ((int64_t)1 << 31);
}

static int mla_mfma_takes(const mla_gpu_call *c) {
  return mla_hip_is_chunked(mla_arg(c->args, MLA_T_Q), 2) &&
         mla_hip_is_chunked(mla_arg(c->args, MLA_T_CACHE), 2);
}

static mla_status mla_mfma_run(const mla_gpu_call *c) {
  const mla_limits *l = &c->plan->limits;
  mla_attend_args a = mla_gpu_attend_args(c);
  const int64_t groups = mla_mfma_groups(c->p, l);
  a.q = mla_gpu_data(c, MLA_T_Q);
  a.q_token = mla_gpu_stride(c, MLA_T_Q, 0);
  a.q_head = mla_gpu_stride(c, MLA_T_Q, 1);
  a.dv = MLA_MFMA_DV;
  a.splits = (int)mla_mfma_splits(c->plan->handle, c->p, l);
  a.part_out = (float *)c->workspace;
  a.part_lse = a.part_out + (int64_t)a.tokens * a.heads * a.splits * a.dv;
  const dim3 grid((unsigned)(a.requests * groups), (unsigned)a.splits);
  const dim3 block(MLA_MFMA_THREADS);
  if (c->p->q_dtype == MLA_BF16)
    MLA_LAUNCH(mla_decode_mfma<MLA_BF16>, grid, block, 0, c->stream, a,
               (int)groups);
  else
    MLA_LAUNCH(mla_decode_mfma<MLA_F16>, grid, block, 0, c->stream, a,
               (int)groups);
  mla_status st = mla_gpu_launched(c, "decode_mfma");
  if (st != MLA_OK) return st;
  mla_merge_args m = mla_gpu_merge_args(c, a);
  mla_gpu_out(c, &m);
  return mla_gpu_merge(c, m, a.tokens);
}

static void mla_mfma_describe(const mla_problem *p, mla_answer *answer) {
  answer->determinism = MLA_DETERMINISM_RUN_TO_RUN;
  answer->numerics.u_p = p->q_dtype == MLA_BF16 ? 0x1p-8 : 0x1p-11;
  answer->numerics.flushes_subnormals = 1;
  snprintf(answer->kernel, sizeof answer->kernel, "decode_%s_mfma",
           p->q_dtype == MLA_BF16 ? "bf16" : "f16");
}

static const mla_gpu_fast mla_decode_mfma_fast = {
    mla_mfma_serves, mla_mfma_workspace, mla_mfma_describe, mla_mfma_takes,
    mla_mfma_run};

/* -------------------------------------------------------- the vtable's two */

static const mla_gpu_fast *const mla_hip_fast[] = {
    &mla_decode_mfma_fast, &mla_prefill_mfma_fast, NULL};

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
