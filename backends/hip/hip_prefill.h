/*
 * hip_prefill.h - prefill on matrix cores on the host side.
 */
#ifndef MLA_HIP_PREFILL_H
#define MLA_HIP_PREFILL_H

#include <stdio.h>

#include "gpu_query.h"
#include "gpu_run_prefill.h"
#include "gpu_vtable.h"
#include "hip_types.h"
#include "mla_prefill_mfma_cdna.h"

static const mla_prefill_sizes mla_prefill_mfma_sizes = {
    MLA_PREFILL_KEYS, MLA_UP_TILE, MLA_PREFILL_KEPT};

static int mla_prefill_serves(const mla_handle *h, const mla_problem *p,
                              const mla_limits *l) {
  return h->wave == MLA_MFMA_WAVE && mla_hip_type(h, p->q_dtype) &&
         mla_prefill_fits(p, l, mla_prefill_mfma_sizes, MLA_UP_STEP);
}

static uint64_t mla_prefill_workspace(const mla_handle *h, const mla_problem *p,
                                      const mla_limits *l) {
  (void)h;
  return mla_prefill_bytes(mla_prefill_cut_of(p, l, mla_prefill_mfma_sizes));
}

static void mla_prefill_describe(const mla_problem *p, mla_answer *answer) {
  const int is_bf16 = p->q_dtype == MLA_BF16;
  answer->determinism = MLA_DETERMINISM_BATCH_INVARIANT;
  answer->numerics.u_p = is_bf16 ? 0x1p-8 : 0x1p-11;
  answer->numerics.u_mid = answer->numerics.u_p;
  answer->numerics.flushes_subnormals = 1;
  snprintf(answer->kernel, sizeof answer->kernel, "prefill_%s_mfma",
           is_bf16 ? "bf16" : "f16");
}

/* Any strides: a row's bits must not follow from how its tensors lie. */
static int mla_prefill_takes(const mla_gpu_call *c) {
  (void)c;
  return 1;
}

/* One part for a section of heads. */
template <int DT>
static mla_status mla_prefill_part_run(const mla_gpu_call *c,
                                       const mla_prefill_step &s,
                                       const mla_prefill_part &p,
                                       int64_t slots) {
  const dim3 block(MLA_PREFILL_THREADS);
  const unsigned heads = (unsigned)s.attend.heads;
  mla_status st = mla_prefill_gathered<DT, MLA_PREFILL_KEYS>(c, s, p, slots);
  if (st != MLA_OK) return st;
  MLA_LAUNCH(
      mla_upproject_mfma<DT>,
      dim3((unsigned)((slots + MLA_UP_TILE - 1) / MLA_UP_TILE), 2 * heads),
      block, 0, c->stream, s.up, p);
  st = mla_gpu_launched(c, "upproject_mfma");
  if (st != MLA_OK) return st;
  MLA_LAUNCH(mla_prefill_mfma<DT>, dim3((unsigned)s.attend.tiles, heads), block,
             0, c->stream, s.attend, p);
  return mla_gpu_launched(c, "prefill_mfma");
}

static mla_status mla_prefill_part_of(const mla_gpu_call *c,
                                      const mla_prefill_step &s,
                                      const mla_prefill_part &p,
                                      int64_t slots) {
  return c->p->q_dtype == MLA_BF16
             ? mla_prefill_part_run<MLA_BF16>(c, s, p, slots)
             : mla_prefill_part_run<MLA_F16>(c, s, p, slots);
}

static mla_status mla_prefill_run(const mla_gpu_call *c) {
  return mla_prefill_parts(c, mla_prefill_mfma_sizes, mla_prefill_part_of);
}

static const mla_gpu_fast mla_prefill_mfma_fast = {
    mla_prefill_serves, mla_prefill_workspace, mla_prefill_describe,
    mla_prefill_takes, mla_prefill_run};

#endif
