/*
 * gpu_run_widen.h - absorb with scaled weights on the host side: the weights
 * become f32 in the workspace, and are then taken apart as any others.
 */
#ifndef MLA_GPU_RUN_WIDEN_H
#define MLA_GPU_RUN_WIDEN_H

#include <string.h>

#include "gpu_run_product.h"
#include "gpu_widen.h"

/* Weights with scales: both, what they take in f32, and the flag without
   which a call has none. */
typedef struct mla_widen_pair {
  int codes, scales;
  uint64_t need;
  int64_t rows, columns;
} mla_widen_pair;

enum { MLA_WIDEN_PAIRS = 3 };

static inline void mla_gpu_widen_pairs(const mla_problem *p,
                                       mla_widen_pair pair[MLA_WIDEN_PAIRS]) {
  const int64_t h = p->num_heads, nope = p->qk_nope_head_dim;
  const int64_t v = p->v_head_dim, r = p->qk_rope_head_dim;
  pair[0] = {MLA_T_KV_B_PROJ, MLA_T_KV_B_SCALE, MLA_BLOCK_SCALED,
             h * (nope + v), p->kv_lora_rank};
  pair[1] = {MLA_T_Q_B_PROJ, MLA_T_Q_B_SCALE, MLA_BLOCK_SCALED | MLA_FUSED_Q,
             h * (nope + r), p->q_lora_rank};
  pair[2] = {MLA_T_O_PROJ, MLA_T_O_SCALE, MLA_BLOCK_SCALED | MLA_FUSED_O,
             p->hidden_size, h * v};
}

/* f32 of the workspace. */
static inline int64_t mla_gpu_widen_floats(const mla_problem *p) {
  mla_widen_pair pair[MLA_WIDEN_PAIRS];
  int64_t floats = 0;
  mla_gpu_widen_pairs(p, pair);
  for (int i = 0; i < MLA_WIDEN_PAIRS; i++)
    if ((p->flags & pair[i].need) == pair[i].need)
      floats += pair[i].rows * pair[i].columns;
  return floats;
}

/* One of them to `to`, and the tensor that says so. */
static mla_status mla_gpu_widen(const mla_gpu_call *c, const mla_widen_pair &x,
                                float *to, mla_tensor *tensor) {
  const mla_tensor *codes = mla_arg(c->args, x.codes);
  const mla_tensor *scales = mla_arg(c->args, x.scales);
  mla_widen_args a = {};
  a.codes = (const uint8_t *)codes->data;
  a.codes_row = codes->stride[0];
  a.scales = (const float *)scales->data;
  a.scales_row = scales->stride[0];
  a.columns = x.columns;
  a.to = to;
  MLA_LAUNCH(mla_widen_rows, dim3((unsigned)x.rows), dim3(MLA_WIDEN_THREADS), 0,
             c->stream, a);
  tensor->data = to;
  tensor->dtype = MLA_F32;
  tensor->stride[0] = x.columns;
  return mla_gpu_launched(c, "widen_rows");
}

static mla_status mla_gpu_absorb_scaled(const mla_gpu_call *c) {
  mla_tensor tensor[MLA_T_COUNT] = {};
  const mla_args args = {sizeof args, MLA_T_COUNT, tensor};
  mla_widen_pair pair[MLA_WIDEN_PAIRS];
  mla_gpu_call widened = *c;
  float *to = (float *)c->workspace;
  const uint32_t count =
      c->args->count < MLA_T_COUNT ? c->args->count : MLA_T_COUNT;
  memcpy(tensor, c->args->tensor, count * sizeof *tensor);
  mla_gpu_widen_pairs(c->p, pair);
  for (int i = 0; i < MLA_WIDEN_PAIRS; i++) {
    if ((c->p->flags & pair[i].need) != pair[i].need) continue;
    mla_status st = mla_gpu_widen(c, pair[i], to, &tensor[pair[i].codes]);
    if (st != MLA_OK) return st;
    to += pair[i].rows * pair[i].columns;
  }
  widened.args = &args;
  return mla_gpu_absorb(&widened);
}

#endif
