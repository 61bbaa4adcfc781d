/*
 * sm80_index.h - the selector on the host side: logits by matrix products, and
 * the choice among rows that a block keeps.
 */
#ifndef MLA_SM80_INDEX_H
#define MLA_SM80_INDEX_H

#include <stdio.h>

#include "gpu_fast.h"
#include "gpu_query.h"
#include "mla_index_mma_sm80.h"
#include "mla_topk_sm80.h"

enum { SM80_INDEX_BLOCKS = 4 }; /* a unit, of all tokens together */

static int sm80_index_serves(const mla_handle *h, const mla_problem *p,
                             const mla_limits *l) {
  (void)l;
  /* Who asks for invariance gets one kernel for tensors of any strides. */
  return h->major >= 8 && h->wave == 32 && p->op == MLA_OP_INDEX &&
         !(p->flags & MLA_BATCH_INVARIANT) &&
         (p->q_dtype == MLA_BF16 || p->q_dtype == MLA_F16) &&
         p->cache_format == MLA_CACHE_FP8_INDEX &&
         mla_problem_head_dim(p) == SM80_INDEX_WIDTH &&
         p->num_heads <= SM80_INDEX_HEADS;
}

static uint64_t sm80_index_workspace(const mla_handle *h, const mla_problem *p,
                                     const mla_limits *l) {
  (void)h;
  return mla_gpu_workspace(p, l);
}

static void sm80_index_describe(const mla_problem *p, mla_answer *answer) {
  answer->determinism = MLA_DETERMINISM_RUN_TO_RUN;
  answer->numerics.dequant = MLA_DEQUANT_SCALE_AFTER;
  snprintf(answer->kernel, sizeof answer->kernel, "index_%s_mma",
           p->q_dtype == MLA_BF16 ? "bf16" : "f16");
}

/* Codes of a key by 16 bytes, queries by 8. */
static int sm80_index_even(const mla_gpu_call *c, const mla_index_args &a) {
  const mla_tensor *q = mla_arg(c->args, MLA_T_Q);
  const mla_tensor *cache = mla_arg(c->args, MLA_T_CACHE);
  return (uintptr_t)q->data % 8 == 0 && q->stride[0] % 4 == 0 &&
         q->stride[1] % 4 == 0 && (uintptr_t)cache->data % 16 == 0 &&
         cache->stride[0] % 16 == 0 && a.entry.side_bytes == 4 &&
         a.entry.row_bytes == SM80_INDEX_WIDTH && a.entry.block < INT32_MAX &&
         a.columns <= 1 << 30;
}

static int sm80_index_takes(const mla_gpu_call *c) {
  (void)c;
  return 1;
}

static mla_status sm80_index_logits(const mla_gpu_call *c,
                                    const mla_index_args &from,
                                    unsigned tokens) {
  const int64_t units = c->plan->handle->units;
  const int fills = (c->p->flags & MLA_RETURN_LOGITS) != 0;
  mla_index_args a = from;
  a.compute = MLA_F32; /* what was declared, but for the last rounding */
  if (!sm80_index_even(c, a)) return mla_gpu_index_logits(c, a, tokens);
  a.blocks = (a.columns + SM80_INDEX_KEYS - 1) / SM80_INDEX_KEYS;
  const int64_t share = SM80_INDEX_BLOCKS * units / tokens;
  if (a.blocks > share) a.blocks = share > 0 ? share : 1;
  const dim3 grid(tokens, (unsigned)a.blocks), block(SM80_INDEX_THREADS);
  const int is_bf16 = c->p->q_dtype == MLA_BF16;
  const auto kernel =
      is_bf16 ? mla_index_mma<MLA_BF16> : mla_index_mma<MLA_F16>;
  const mla_status st =
      mla_gpu_shared(c, (const void *)kernel, SM80_INDEX_BYTES, "index_mma");
  if (st != MLA_OK) return st;
  MLA_LAUNCH(kernel, grid, block, SM80_INDEX_BYTES, c->stream, a,
             sm80_index_pages_of(a), fills);
  return mla_gpu_launched(c, "index_mma");
}

static mla_status sm80_index_choice(const mla_gpu_call *c,
                                    const mla_index_args &a, unsigned tokens) {
  const mla_tensor *positions = mla_arg(c->args, MLA_T_POSITIONS);
  const int least = (int)sizeof(sm80_topk_shared) + 1024;
  int room = (c->plan->handle->shared_bytes - least) / 4;
  if (room > SM80_TOPK_KEPT) room = SM80_TOPK_KEPT;
  if (room > a.columns) room = (int)a.columns;
  const int bytes = 4 * room;
  const mla_status st =
      mla_gpu_shared(c, (const void *)mla_topk_kept, bytes, "topk_kept");
  if (st != MLA_OK) return st;
  MLA_LAUNCH(mla_topk_kept, dim3(tokens), dim3(SM80_TOPK_THREADS), bytes,
             c->stream, a, (int32_t *)positions->data, positions->stride[0],
             c->p->topk, room);
  return mla_gpu_launched(c, "topk_kept");
}

static mla_status sm80_index_run(const mla_gpu_call *c) {
  return mla_gpu_index_by(c, sm80_index_logits, sm80_index_choice);
}

static const mla_gpu_fast mla_sm80_index_fast = {
    sm80_index_serves, sm80_index_workspace, sm80_index_describe,
    sm80_index_takes, sm80_index_run};

#endif
