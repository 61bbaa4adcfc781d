/*
 * hip_decode.h - decode on matrix cores on the host side.
 */
#ifndef MLA_HIP_DECODE_H
#define MLA_HIP_DECODE_H

#include <stdio.h>

#include "gpu_merge.h"
#include "gpu_query.h"
#include "gpu_vtable.h"
#include "hip_types.h"
#include "mla_decode_mfma_cdna.h"

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

/* How the kernel reads a cache; -1: not at all. */
static int mla_mfma_keys_of(const mla_problem *p) {
  switch (p->cache_format) {
    case MLA_CACHE_FP8_E4M3: return MLA_KEYS_E4M3;
    case MLA_CACHE_FP8_E4M3FNUZ: return MLA_KEYS_E4M3FNUZ;
    case MLA_CACHE_FP8_E5M2: return MLA_KEYS_E5M2;
    case MLA_CACHE_FP8_DS_MLA:
      return p->q_dtype == MLA_BF16 && p->kv_lora_rank == MLA_MFMA_DV
                 ? MLA_KEYS_656
                 : -1;
    default:
      return mla_format_dtype(p->cache_format) == p->q_dtype ? MLA_KEYS_PLAIN
                                                             : -1;
  }
}

/* What lists and pages have in common. */
static int mla_mfma_widths(const mla_handle *h, const mla_problem *p) {
  return h->wave == MLA_MFMA_WAVE && p->op == MLA_OP_DECODE &&
         mla_hip_type(h, p->q_dtype) && mla_mfma_keys_of(p) >= 0 &&
         mla_problem_head_dim(p) == MLA_MFMA_DK &&
         mla_problem_v_dim(p) == MLA_MFMA_DV && mla_problem_kv_heads(p) == 1 &&
         p->logits_soft_cap == 0;
}

static int mla_mfma_serves(const mla_handle *h, const mla_problem *p,
                           const mla_limits *l) {
  const uint64_t flags =
      MLA_CAUSAL | MLA_RETURN_LSE | MLA_LSE_BASE2 | MLA_HAS_SINK;
  const int64_t part = (MLA_MFMA_DV + 1) * (int64_t)p->num_heads * l->tokens;
  return mla_mfma_widths(h, p) && (p->flags & ~flags) == 0 &&
         part <= MLA_GPU_PARTIAL_FLOATS &&
         l->requests * mla_mfma_groups(p, l) < ((int64_t)1 << 31);
}

/* Rows of the cache are loaded by eight columns at a time. */
static int mla_mfma_cache_whole(const mla_tensor *cache, int keys) {
  const int bytes = keys == MLA_KEYS_PLAIN || keys == MLA_KEYS_656 ? 16 : 8;
  const int element = keys == MLA_KEYS_PLAIN ? 2 : 1;
  return (uintptr_t)cache->data % bytes == 0 &&
         cache->stride[0] * element % bytes == 0 &&
         cache->stride[1] * element % bytes == 0;
}

static int mla_mfma_takes(const mla_gpu_call *c) {
  return mla_gpu_is_chunked(mla_arg(c->args, MLA_T_Q), 2) &&
         mla_mfma_cache_whole(mla_arg(c->args, MLA_T_CACHE),
                              mla_mfma_keys_of(c->p));
}

template <int DT, int KEYS>
static mla_status mla_mfma_launch(const mla_gpu_call *c,
                                  const mla_attend_args &a, int groups) {
  MLA_LAUNCH((mla_decode_mfma<DT, KEYS>),
             dim3((unsigned)(a.requests * groups), (unsigned)a.splits),
             dim3(MLA_MFMA_THREADS), 0, c->stream, a, groups);
  return mla_gpu_launched(c, "decode_mfma");
}

template <int DT>
static mla_status mla_mfma_by_keys(const mla_gpu_call *c,
                                   const mla_attend_args &a, int groups) {
  switch (mla_mfma_keys_of(c->p)) {
    case MLA_KEYS_PLAIN:
      return mla_mfma_launch<DT, MLA_KEYS_PLAIN>(c, a, groups);
    case MLA_KEYS_E4M3: return mla_mfma_launch<DT, MLA_KEYS_E4M3>(c, a, groups);
    case MLA_KEYS_E4M3FNUZ:
      return mla_mfma_launch<DT, MLA_KEYS_E4M3FNUZ>(c, a, groups);
    case MLA_KEYS_E5M2: return mla_mfma_launch<DT, MLA_KEYS_E5M2>(c, a, groups);
    default: return mla_mfma_launch<MLA_BF16, MLA_KEYS_656>(c, a, groups);
  }
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
  const int bytes = mla_mfma_keys_of(c->p) == MLA_KEYS_PLAIN ? 2 : 1;
  a.k_block *= bytes;
  a.k_row *= bytes;
  mla_status st = c->p->q_dtype == MLA_BF16
                      ? mla_mfma_by_keys<MLA_BF16>(c, a, (int)groups)
                      : mla_mfma_by_keys<MLA_F16>(c, a, (int)groups);
  return st == MLA_OK ? mla_gpu_merge_out(c, a, a.tokens) : st;
}

static void mla_mfma_describe(const mla_problem *p, mla_answer *answer) {
  static const char *const of[] = {"", "_e4m3", "_e4m3fnuz", "_e5m2", "_656"};
  answer->determinism = MLA_DETERMINISM_RUN_TO_RUN;
  answer->numerics.u_p = p->q_dtype == MLA_BF16 ? 0x1p-8 : 0x1p-11;
  answer->numerics.flushes_subnormals = 1;
  snprintf(answer->kernel, sizeof answer->kernel, "%s_%s%s_mfma",
           p->flags & MLA_SPARSE ? "sparse" : "decode",
           p->q_dtype == MLA_BF16 ? "bf16" : "f16", of[mla_mfma_keys_of(p)]);
}

static const mla_gpu_fast mla_decode_mfma_fast = {
    mla_mfma_serves, mla_mfma_workspace, mla_mfma_describe, mla_mfma_takes,
    mla_mfma_run};

#endif
