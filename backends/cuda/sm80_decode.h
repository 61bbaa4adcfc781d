/*
 * sm80_decode.h - decode by matrix products of warps, on the host side.
 */
#ifndef MLA_SM80_DECODE_H
#define MLA_SM80_DECODE_H

#include <stdio.h>

#include "gpu_query.h"
#include "gpu_vtable.h"
#include "mla_decode_mma_sm80.h"

enum {
  SM80_LEAST_KEYS = 128, /* of a split, where the device's units decide */
  SM80_MOST_SPLITS = 64,
  SM80_MOST_STAGES = 3,
  /* What a block does beside keys, and a split's merging: in keys. */
  SM80_BLOCK_COST = 64,
  SM80_MERGE_COST = 8
};

static int sm80_bytes(int rows, int dk, int stages) {
  const int stride = SM80_STRIDE(SM80_CHUNKS(dk));
  const int groups = rows == 64 ? 2 : 4;
  return ((rows + stages * SM80_KEYS) * stride + rows * SM80_P_STRIDE) * 16 +
         (groups + 1 + SM80_SUMS) * rows * (int)sizeof(float) +
         (rows == 64 ? SM80_HALVES : 0);
}

/* Stages of a block of so many rows; 0: it has no room for two. */
static int sm80_stages(const mla_handle *h, const mla_problem *p, int rows) {
  int n = SM80_MOST_STAGES;
  while (n > 1 &&
         sm80_bytes(rows, mla_problem_head_dim(p), n) > h->shared_bytes)
    n--;
  return n > 1 ? n : 0;
}

/* Rows of a block: those there are, or as many as shared memory allows. */
static int sm80_rows(const mla_handle *h, const mla_problem *p,
                     const mla_limits *l) {
  const int64_t rows = l->max_query_len * p->num_heads;
  int n = rows <= 16 ? 16 : (rows <= 32 ? 32 : 64);
  while (n >= 16 && !sm80_stages(h, p, n)) n /= 2;
  return n >= 16 ? n : 0;
}

static int64_t sm80_groups(const mla_handle *h, const mla_problem *p,
                           const mla_limits *l) {
  const int64_t n = sm80_rows(h, p, l);
  return (l->max_query_len * p->num_heads + n - 1) / n;
}

/* The number of splits that ends first: waves of blocks, each as long as its
   keys and what it does besides. */
static int64_t sm80_best_splits(const mla_handle *h, int64_t blocks,
                                int64_t keys, int64_t most) {
  int64_t best = 1, least = INT64_MAX;
  for (int64_t n = 1; n <= most; n++) {
    const int64_t waves = (blocks * n + h->units - 1) / h->units;
    const int64_t cost = waves * ((keys + n - 1) / n + SM80_BLOCK_COST) +
                         (n > 1 ? n * SM80_MERGE_COST : 0);
    if (cost < least) {
      least = cost;
      best = n;
    }
  }
  return best;
}

/* f32 of one part of every row. */
static int64_t sm80_part(const mla_problem *p, const mla_limits *l) {
  return (mla_problem_v_dim(p) + 1) * (int64_t)p->num_heads * l->tokens;
}

/* A row's bits must not follow from its mates: then as the portable kernels
   split. Otherwise as it suits the device. */
static int64_t sm80_splits(const mla_handle *h, const mla_problem *p,
                           const mla_limits *l) {
  if (p->flags & MLA_BATCH_INVARIANT) return mla_gpu_splits(p, l);
  int64_t most = (l->max_seq_len + SM80_LEAST_KEYS - 1) / SM80_LEAST_KEYS;
  const int64_t part = sm80_part(p, l);
  if (part > 0 && most > MLA_GPU_PARTIAL_FLOATS / part)
    most = MLA_GPU_PARTIAL_FLOATS / part;
  if (most > SM80_MOST_SPLITS) most = SM80_MOST_SPLITS;
  if (most < 1) most = 1;
  if (l->num_splits > 0) return l->num_splits < most ? l->num_splits : most;
  return sm80_best_splits(h, l->requests * sm80_groups(h, p, l), l->max_seq_len,
                          most);
}

static int sm80_decode_serves(const mla_handle *h, const mla_problem *p,
                              const mla_limits *l) {
  const uint64_t flags = MLA_CAUSAL | MLA_RETURN_LSE | MLA_LSE_BASE2 |
                         MLA_HAS_SINK | MLA_BATCH_INVARIANT;
  if (h->major < 8 || h->wave != SM80_WARP || p->op != MLA_OP_DECODE ||
      (p->flags & ~flags) != 0 || mla_problem_kv_heads(p) != 1 ||
      p->logits_soft_cap != 0)
    return 0;
  return (p->q_dtype == MLA_BF16 || p->q_dtype == MLA_F16) &&
         !mla_cache_layout_of(p).quantised &&
         mla_format_dtype(p->cache_format) == p->q_dtype &&
         mla_problem_head_dim(p) <= SM80_MOST_DK &&
         mla_problem_v_dim(p) <= SM80_MOST_DV &&
         mla_problem_v_dim(p) <= mla_problem_head_dim(p) &&
         l->max_query_len >= 1 && sm80_rows(h, p, l) > 0 &&
         sm80_part(p, l) * sm80_splits(h, p, l) <= MLA_GPU_PARTIAL_FLOATS &&
         l->requests * sm80_groups(h, p, l) < ((int64_t)1 << 31);
}

static uint64_t sm80_decode_workspace(const mla_handle *h, const mla_problem *p,
                                      const mla_limits *l) {
  return (uint64_t)(sm80_part(p, l) * sm80_splits(h, p, l)) * sizeof(float);
}

static void sm80_decode_describe(const mla_problem *p, mla_answer *answer) {
  const int is_bf16 = p->q_dtype == MLA_BF16;
  answer->determinism = p->flags & MLA_BATCH_INVARIANT
                            ? MLA_DETERMINISM_BATCH_INVARIANT
                            : MLA_DETERMINISM_RUN_TO_RUN;
  answer->numerics.u_p = is_bf16 ? 0x1p-8 : 0x1p-11;
  answer->numerics.flushes_subnormals = 1; /* of P */
  snprintf(answer->kernel, sizeof answer->kernel, "decode_%s_mma",
           is_bf16 ? "bf16" : "f16");
}

/* Any strides: a row's bits must not follow from how its tensors lie. */
static int sm80_decode_takes(const mla_gpu_call *c) {
  (void)c;
  return 1;
}

static mla_sm80_decode sm80_decode_args(const mla_gpu_call *c) {
  const mla_handle *h = c->plan->handle;
  const mla_limits *l = &c->plan->limits;
  mla_sm80_decode x = {};
  x.a = mla_gpu_attend_args(c);
  x.a.q = mla_gpu_data(c, MLA_T_Q);
  x.a.q_token = mla_gpu_stride(c, MLA_T_Q, 0);
  x.a.q_head = mla_gpu_stride(c, MLA_T_Q, 1);
  x.a.dk = mla_problem_head_dim(c->p);
  x.a.dv = mla_problem_v_dim(c->p);
  x.a.splits = (int)sm80_splits(h, c->p, l);
  x.a.part_out = (float *)c->workspace;
  x.a.part_lse =
      x.a.part_out + (int64_t)x.a.tokens * x.a.heads * x.a.splits * x.a.dv;
  x.groups = (int)sm80_groups(h, c->p, l);
  x.stages = sm80_stages(h, c->p, sm80_rows(h, c->p, l));
  x.least = c->p->flags & MLA_BATCH_INVARIANT ? 0 : SM80_LEAST_KEYS;
  x.q_whole =
      x.a.dk % 8 == 0 && mla_gpu_is_chunked(mla_arg(c->args, MLA_T_Q), 2);
  x.k_whole =
      x.a.dk % 8 == 0 && mla_gpu_is_chunked(mla_arg(c->args, MLA_T_CACHE), 2);
  x.scale2 = (float)(c->p->scale * 1.4426950408889634);
  x.direct = x.a.splits == 1;
  x.m = mla_gpu_merge_args(c, x.a);
  mla_gpu_out(c, &x.m);
  return x;
}

template <int DT, int ROWS, int DK, int DV>
static mla_status sm80_decode_launch(const mla_gpu_call *c,
                                     const mla_sm80_decode &x) {
  const int bytes = sm80_bytes(ROWS, x.a.dk, x.stages);
  mla_status st = mla_gpu_shared(
      c, (const void *)mla_decode_mma<DT, ROWS, DK, DV>, bytes, "decode_mma");
  if (st != MLA_OK) return st;
  MLA_LAUNCH((mla_decode_mma<DT, ROWS, DK, DV>),
             dim3((unsigned)(x.a.requests * x.groups), (unsigned)x.a.splits),
             dim3(SM80_THREADS), (size_t)bytes, c->stream, x);
  return mla_gpu_launched(c, "decode_mma");
}

template <int DT, int ROWS>
static mla_status sm80_decode_width(const mla_gpu_call *c,
                                    const mla_sm80_decode &x) {
  return x.a.dk == 576 && x.a.dv == 512
             ? sm80_decode_launch<DT, ROWS, 576, 512>(c, x)
             : sm80_decode_launch<DT, ROWS, 0, 0>(c, x);
}

template <int DT>
static mla_status sm80_decode_rows(const mla_gpu_call *c,
                                   const mla_sm80_decode &x) {
  switch (sm80_rows(c->plan->handle, c->p, &c->plan->limits)) {
    case 16: return sm80_decode_width<DT, 16>(c, x);
    case 32: return sm80_decode_width<DT, 32>(c, x);
    default: return sm80_decode_width<DT, 64>(c, x);
  }
}

static mla_status sm80_decode_run(const mla_gpu_call *c) {
  const mla_sm80_decode x = sm80_decode_args(c);
  if (!x.a.requests || !x.a.tokens) return MLA_OK;
  const mla_status st = c->p->q_dtype == MLA_BF16
                            ? sm80_decode_rows<MLA_BF16>(c, x)
                            : sm80_decode_rows<MLA_F16>(c, x);
  return st == MLA_OK && !x.direct ? mla_gpu_merge(c, x.m, x.a.tokens) : st;
}

static const mla_gpu_fast mla_sm80_decode_fast = {
    sm80_decode_serves, sm80_decode_workspace, sm80_decode_describe,
    sm80_decode_takes, sm80_decode_run};

#endif
