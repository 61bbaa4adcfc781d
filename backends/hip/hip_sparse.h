/*
 * hip_sparse.h - sparse decode on matrix cores on the host side, in slices of
 * tokens whose partial results fit the workspace.
 */
#ifndef MLA_HIP_SPARSE_H
#define MLA_HIP_SPARSE_H

#include "gpu_run_sparse.h"
#include "hip_decode.h"
#include "mla_sparse_mfma_cdna.h"

/* How a step within the limits is cut. */
typedef struct mla_sparse_cut {
  int64_t groups, splits, slice; /* of heads, of lists, tokens at once */
} mla_sparse_cut;

static mla_sparse_cut mla_sparse_cut_of(const mla_handle *h,
                                        const mla_problem *p,
                                        const mla_limits *l) {
  const int64_t row = (MLA_MFMA_DV + 1) * (int64_t)p->num_heads;
  const int64_t list =
      p->topk + (p->flags & MLA_EXTRA_CACHE ? (int64_t)p->extra_topk : 0);
  const int64_t most = (list + MLA_MFMA_LEAST - 1) / MLA_MFMA_LEAST;
  mla_sparse_cut c;
  c.groups = (p->num_heads + MLA_MFMA_ROWS - 1) / MLA_MFMA_ROWS;
  const int64_t blocks = l->tokens * c.groups;
  c.splits = blocks > 0 ? (h->units + blocks - 1) / blocks : 1;
  if (l->num_splits > 0) c.splits = l->num_splits;
  if (c.splits > most) c.splits = most;
  if (c.splits > 64) c.splits = 64;
  if (c.splits > MLA_GPU_PARTIAL_FLOATS / row)
    c.splits = MLA_GPU_PARTIAL_FLOATS / row;
  if (c.splits < 1) c.splits = 1;
  c.slice = MLA_GPU_PARTIAL_FLOATS / (row * c.splits);
  if (c.slice > l->tokens) c.slice = l->tokens;
  if (c.slice < 1) c.slice = 1;
  return c;
}

static int mla_sparse_serves(const mla_handle *h, const mla_problem *p,
                             const mla_limits *l) {
  const uint64_t flags = MLA_SPARSE | MLA_EXTRA_CACHE | MLA_CAUSAL |
                         MLA_RETURN_LSE | MLA_LSE_BASE2 | MLA_HAS_SINK;
  if (!mla_mfma_widths(h, p) || !(p->flags & MLA_SPARSE)) return 0;
  const int keys = mla_mfma_keys_of(p);
  return (p->flags & ~flags) == 0 &&
         (keys == MLA_KEYS_PLAIN || keys == MLA_KEYS_656) &&
         l->tokens < ((int64_t)1 << 31) &&
         (MLA_MFMA_DV + 1) * (int64_t)p->num_heads <= MLA_GPU_PARTIAL_FLOATS;
}

static uint64_t mla_sparse_workspace(const mla_handle *h, const mla_problem *p,
                                     const mla_limits *l) {
  const mla_sparse_cut c = mla_sparse_cut_of(h, p, l);
  return (uint64_t)(c.slice * p->num_heads * c.splits * (MLA_MFMA_DV + 1)) *
         sizeof(float);
}

static int mla_sparse_takes(const mla_gpu_call *c) {
  const int keys = mla_mfma_keys_of(c->p);
  const mla_tensor *extra = mla_arg(c->args, MLA_T_EXTRA_CACHE);
  return mla_gpu_is_chunked(mla_arg(c->args, MLA_T_Q), 2) &&
         mla_mfma_cache_whole(mla_arg(c->args, MLA_T_CACHE), keys) &&
         (!(c->p->flags & MLA_EXTRA_CACHE) ||
          mla_mfma_cache_whole(extra, keys));
}

/* The lists of tokens from t on, strides of caches in bytes. */
static mla_slot_list mla_sparse_list(const mla_slot_list &whole, int bytes,
                                     int64_t t) {
  mla_slot_list l = whole;
  l.block *= bytes;
  l.row *= bytes;
  if (l.slots) l.slots += t * l.slots_row;
  if (l.lengths) l.lengths += t * l.lengths_step;
  return l;
}

template <int DT, int KEYS>
static mla_status mla_sparse_launch(const mla_gpu_call *c,
                                    const mla_attend_args &a,
                                    const mla_mfma_lists &x, int groups) {
  MLA_LAUNCH((mla_sparse_mfma<DT, KEYS>),
             dim3((unsigned)(a.tokens * groups), (unsigned)a.splits),
             dim3(MLA_MFMA_THREADS), 0, c->stream, a, x, groups);
  return mla_gpu_launched(c, "sparse_mfma");
}

static mla_status mla_sparse_by_keys(const mla_gpu_call *c,
                                     const mla_attend_args &a,
                                     const mla_mfma_lists &x, int groups) {
  if (mla_mfma_keys_of(c->p) == MLA_KEYS_656)
    return mla_sparse_launch<MLA_BF16, MLA_KEYS_656>(c, a, x, groups);
  return c->p->q_dtype == MLA_BF16
             ? mla_sparse_launch<MLA_BF16, MLA_KEYS_PLAIN>(c, a, x, groups)
             : mla_sparse_launch<MLA_F16, MLA_KEYS_PLAIN>(c, a, x, groups);
}

static mla_status mla_sparse_run(const mla_gpu_call *c) {
  const mla_sparse_args whole = mla_gpu_sparse_args(c);
  const mla_sparse_cut cut =
      mla_sparse_cut_of(c->plan->handle, c->p, &c->plan->limits);
  const int bytes = mla_mfma_keys_of(c->p) == MLA_KEYS_PLAIN ? 2 : 1;
  const int64_t tokens = mla_arg(c->args, MLA_T_Q)->shape[0];
  mla_attend_args a = {};
  a.q_token = whole.q_token;
  a.q_head = whole.q_head;
  a.heads = whole.heads;
  a.dv = MLA_MFMA_DV;
  a.scale = whole.scale;
  a.splits = (int)cut.splits;
  a.part_out = (float *)c->workspace;
  a.part_lse = a.part_out + cut.slice * a.heads * a.splits * a.dv;
  for (int64_t t = 0; t < tokens; t += cut.slice) {
    a.tokens = (int)(tokens - t < cut.slice ? tokens - t : cut.slice);
    a.token0 = (int)t;
    a.q = (const uint16_t *)whole.q + t * a.q_token;
    const mla_mfma_lists x = {mla_sparse_list(whole.main, bytes, t),
                              mla_sparse_list(whole.extra, bytes, t)};
    mla_status st = mla_sparse_by_keys(c, a, x, (int)cut.groups);
    if (st == MLA_OK) st = mla_gpu_merge_out(c, a, a.tokens);
    if (st != MLA_OK) return st;
  }
  return MLA_OK;
}

static const mla_gpu_fast mla_sparse_mfma_fast = {
    mla_sparse_serves, mla_sparse_workspace, mla_mfma_describe,
    mla_sparse_takes, mla_sparse_run};

#endif
