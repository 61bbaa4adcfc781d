/*
 * sm80_prefill.h - prefill by matrix products of warps, on the host side.
 */
#ifndef MLA_SM80_PREFILL_H
#define MLA_SM80_PREFILL_H

#include <stdio.h>

#include "gpu_query.h"
#include "gpu_run_prefill.h"
#include "gpu_vtable.h"
#include "mla_prefill_mma_sm80.h"

static const mla_prefill_sizes sm80_prefill_sizes = {
    SM80_PREFILL_KEYS, SM80_UP_TILE, SM80_PREFILL_KEPT};

static int sm80_prefill_serves(const mla_handle *h, const mla_problem *p,
                               const mla_limits *l) {
  return h->major >= 8 && h->wave == 32 &&
         h->shared_bytes >= SM80_PREFILL_BYTES &&
         (p->q_dtype == MLA_BF16 || p->q_dtype == MLA_F16) &&
         mla_prefill_fits(p, l, sm80_prefill_sizes, 8);
}

static uint64_t sm80_prefill_workspace(const mla_handle *h,
                                       const mla_problem *p,
                                       const mla_limits *l) {
  (void)h;
  return mla_prefill_bytes(mla_prefill_cut_of(p, l, sm80_prefill_sizes));
}

static void sm80_prefill_describe(const mla_problem *p, mla_answer *answer) {
  const int is_bf16 = p->q_dtype == MLA_BF16;
  answer->determinism = MLA_DETERMINISM_BATCH_INVARIANT;
  answer->numerics.u_p = is_bf16 ? 0x1p-8 : 0x1p-11;
  answer->numerics.u_mid = answer->numerics.u_p;
  answer->numerics.flushes_subnormals = 1; /* of P */
  snprintf(answer->kernel, sizeof answer->kernel, "prefill_%s_mma",
           is_bf16 ? "bf16" : "f16");
}

/* Any strides: a row's bits must not follow from how its tensors lie. */
static int sm80_prefill_takes(const mla_gpu_call *c) {
  (void)c;
  return 1;
}

/* One part for a section of heads. */
template <int DT>
static mla_status sm80_prefill_part_run(const mla_gpu_call *c,
                                        const mla_prefill_step &s,
                                        const mla_prefill_part &p,
                                        int64_t slots) {
  const dim3 block(MLA_PREFILL_THREADS);
  const unsigned heads = (unsigned)s.attend.heads;
  mla_status st = mla_prefill_gathered<DT, SM80_PREFILL_KEYS>(c, s, p, slots);
  if (st == MLA_OK)
    st = mla_gpu_shared(c, (const void *)mla_upproject_mma<DT>, SM80_UP_BYTES,
                        "upproject_mma");
  if (st != MLA_OK) return st;
  MLA_LAUNCH(
      mla_upproject_mma<DT>,
      dim3((unsigned)((slots + SM80_UP_TILE - 1) / SM80_UP_TILE), 2 * heads),
      block, SM80_UP_BYTES, c->stream, s.up, p);
  st = mla_gpu_launched(c, "upproject_mma");
  if (st == MLA_OK)
    st = mla_gpu_shared(c, (const void *)mla_prefill_mma<DT>,
                        SM80_PREFILL_BYTES, "prefill_mma");
  if (st != MLA_OK) return st;
  MLA_LAUNCH(mla_prefill_mma<DT>, dim3((unsigned)s.attend.tiles, heads), block,
             SM80_PREFILL_BYTES, c->stream, s.attend, p);
  return mla_gpu_launched(c, "prefill_mma");
}

static mla_status sm80_prefill_part_of(const mla_gpu_call *c,
                                       const mla_prefill_step &s,
                                       const mla_prefill_part &p,
                                       int64_t slots) {
  return c->p->q_dtype == MLA_BF16
             ? sm80_prefill_part_run<MLA_BF16>(c, s, p, slots)
             : sm80_prefill_part_run<MLA_F16>(c, s, p, slots);
}

static mla_status sm80_prefill_run(const mla_gpu_call *c) {
  return mla_prefill_parts(c, sm80_prefill_sizes, sm80_prefill_part_of);
}

static const mla_gpu_fast mla_sm80_prefill_fast = {
    sm80_prefill_serves, sm80_prefill_workspace, sm80_prefill_describe,
    sm80_prefill_takes, sm80_prefill_run};

#endif
