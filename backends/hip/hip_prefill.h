/*
 * hip_prefill.h - prefill on matrix cores on the host side: the context in
 * chunks, then the new tokens; heads in sections, so that the workspace is
 * bounded.
 */
#ifndef MLA_HIP_PREFILL_H
#define MLA_HIP_PREFILL_H

#include <stdio.h>

#include "gpu_query.h"
#include "gpu_vtable.h"
#include "hip_types.h"
#include "mla_prefill_mfma_cdna.h"

/* Slots of a chunk of all requests, bytes of a section of heads: about. */
static const int64_t MLA_PREFILL_CHUNK_SLOTS = 16384;
static const int64_t MLA_PREFILL_SECTION_BYTES = (int64_t)1 << 30;

/* How a step within the limits is cut, and what it needs. */
typedef struct mla_prefill_cut {
  int64_t slots; /* of the largest part, whole blocks of the projection */
  int64_t chunk; /* context tokens of a request at once */
  int64_t width; /* columns of a latent with its rope part */
  int64_t heads; /* of a section */
  int64_t latents, keys, kept; /* bytes; keys: of K, and again of V */
} mla_prefill_cut;

static int64_t mla_prefill_up(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

/* Slots of the new tokens: a request takes a tile more than it fills. */
static int64_t mla_prefill_new_slots(const mla_limits *l) {
  const int64_t tile = MLA_PREFILL_KEYS;
  return mla_prefill_up((l->tokens / tile + l->requests + 1) * tile,
                        MLA_UP_TILE);
}

static int64_t mla_prefill_chunk(const mla_limits *l) {
  const int64_t requests = l->requests > 0 ? l->requests : 1;
  int64_t n = MLA_PREFILL_CHUNK_SLOTS / requests;
  if (n < 256) n = 256;
  if (l->context_chunk > 0) n = l->context_chunk;
  if (n > l->max_seq_len) n = l->max_seq_len;
  return mla_prefill_up(n < 1 ? 1 : n, MLA_PREFILL_KEYS);
}

static mla_prefill_cut mla_prefill_cut_of(const mla_problem *p,
                                          const mla_limits *l) {
  mla_prefill_cut c = {};
  c.slots = mla_prefill_new_slots(l);
  c.width = p->kv_lora_rank + p->qk_rope_head_dim;
  int64_t kept = 0; /* of a head */
  if (p->flags & MLA_CONTEXT) {
    c.chunk = mla_prefill_chunk(l);
    const int64_t n = mla_prefill_up(l->requests * c.chunk, MLA_UP_TILE);
    if (n > c.slots) c.slots = n;
    kept = l->tokens * MLA_PREFILL_KEPT * (int64_t)sizeof(float);
  }
  const int64_t keys = c.slots * MLA_PREFILL_DV * 2;
  c.heads = MLA_PREFILL_SECTION_BYTES / (2 * keys + kept);
  if (c.heads > p->num_heads) c.heads = p->num_heads;
  if (c.heads < 1) c.heads = 1;
  c.latents = mla_prefill_up(c.slots * c.width * 2, 256);
  c.keys = c.heads * keys;
  c.kept = c.heads * kept;
  return c;
}

static int mla_prefill_serves(const mla_handle *h, const mla_problem *p,
                              const mla_limits *l) {
  const uint64_t flags = MLA_CAUSAL | MLA_RETURN_LSE | MLA_LSE_BASE2 |
                         MLA_HAS_SINK | MLA_CONTEXT | MLA_BATCH_INVARIANT;
  const int64_t most = (int64_t)1 << 30;
  if (h->wave != MLA_MFMA_WAVE || p->op != MLA_OP_PREFILL ||
      (p->flags & ~flags) != 0 || !mla_hip_type(h, p->q_dtype) ||
      p->weight_dtype != p->q_dtype || p->logits_soft_cap != 0)
    return 0;
  return p->qk_nope_head_dim == MLA_PREFILL_DV &&
         p->qk_rope_head_dim == MLA_PREFILL_ROPE &&
         p->v_head_dim == MLA_PREFILL_DV &&
         p->kv_lora_rank % MLA_UP_STEP == 0 && p->num_heads < 32768 &&
         l->tokens < most && l->requests < most &&
         mla_prefill_cut_of(p, l).slots < most;
}

static uint64_t mla_prefill_workspace(const mla_handle *h, const mla_problem *p,
                                      const mla_limits *l) {
  (void)h;
  const mla_prefill_cut c = mla_prefill_cut_of(p, l);
  return (uint64_t)(c.latents + 2 * c.keys + c.kept);
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

/* Whether rows of it can be written four elements at once. */
static int mla_prefill_out_whole(const mla_tensor *out) {
  const int bytes = out->dtype == MLA_F32 ? 16 : 8;
  return (uintptr_t)out->data % bytes == 0 && out->stride[0] % 4 == 0 &&
         out->stride[1] % 4 == 0;
}

/* A step on its way: arguments of the three kernels. */
typedef struct mla_prefill_step {
  mla_attend_args gather;
  mla_upproject_args up;
  mla_prefill_args attend;
} mla_prefill_step;

static mla_attend_args mla_prefill_gathers(const mla_gpu_call *c) {
  mla_attend_args a = mla_gpu_attend_args(c);
  a.new_c = mla_gpu_data(c, MLA_T_KV_C);
  a.new_r = mla_gpu_data(c, MLA_T_K_PE);
  a.new_c_row = mla_gpu_stride(c, MLA_T_KV_C, 0);
  a.new_r_row = mla_gpu_stride(c, MLA_T_K_PE, 0);
  a.latent = c->p->kv_lora_rank;
  a.dk = a.latent + c->p->qk_rope_head_dim;
  return a;
}

static mla_upproject_args mla_prefill_projects(const mla_gpu_call *c,
                                               const mla_prefill_cut &cut) {
  mla_upproject_args u = {};
  u.latents = (const uint16_t *)c->workspace;
  u.w = mla_gpu_data(c, MLA_T_KV_B_PROJ);
  u.w_row = mla_gpu_stride(c, MLA_T_KV_B_PROJ, 0);
  u.w_whole = mla_hip_is_chunked(mla_arg(c->args, MLA_T_KV_B_PROJ), 1);
  u.width = cut.width;
  u.slots = cut.slots;
  u.latent = c->p->kv_lora_rank;
  u.k = (uint16_t *)(c->workspace + cut.latents);
  u.v = (uint16_t *)(c->workspace + cut.latents + cut.keys);
  return u;
}

static mla_prefill_args mla_prefill_attends(const mla_gpu_call *c,
                                            const mla_prefill_cut &cut,
                                            const mla_prefill_step &s) {
  mla_prefill_args a = {};
  a.q = mla_gpu_data(c, MLA_T_Q);
  a.q_token = mla_gpu_stride(c, MLA_T_Q, 0);
  a.q_head = mla_gpu_stride(c, MLA_T_Q, 1);
  a.q_whole = mla_hip_is_chunked(mla_arg(c->args, MLA_T_Q), 2);
  a.out_whole = mla_prefill_out_whole(mla_arg(c->args, MLA_T_OUT));
  a.latents = s.up.latents;
  a.k = s.up.k;
  a.v = s.up.v;
  a.width = cut.width;
  a.slots = cut.slots;
  a.latent = s.up.latent;
  a.kept = (float *)(c->workspace + cut.latents + 2 * cut.keys);
  a.tiles = s.gather.tokens / MLA_PREFILL_ROWS + s.gather.requests;
  a.causal = s.gather.causal;
  a.scale = (float)(c->p->scale * 1.4426950408889634);
  a.out = (void *)mla_gpu_data(c, MLA_T_OUT);
  a.o_token = mla_gpu_stride(c, MLA_T_OUT, 0);
  a.o_head = mla_gpu_stride(c, MLA_T_OUT, 1);
  a.out_dtype = c->p->out_dtype;
  a.lse = (float *)mla_gpu_data(c, MLA_T_LSE);
  a.lse_token = mla_gpu_stride(c, MLA_T_LSE, 0);
  a.lse_head = mla_gpu_stride(c, MLA_T_LSE, 1);
  a.lse_base2 = (c->p->flags & MLA_LSE_BASE2) != 0;
  a.sink = (const float *)mla_gpu_data(c, MLA_T_SINK);
  a.sink_step = mla_gpu_stride(c, MLA_T_SINK, 0);
  return a;
}

/* One part for a section of heads. */
template <int DT>
static mla_status mla_prefill_part_run(const mla_gpu_call *c,
                                       const mla_prefill_step &s,
                                       const mla_prefill_part &p,
                                       int64_t slots) {
  const dim3 block(MLA_PREFILL_THREADS);
  const unsigned heads = (unsigned)s.attend.heads;
  const int waves = MLA_PREFILL_THREADS / MLA_MFMA_WAVE;
  MLA_LAUNCH(mla_prefill_gather<DT>,
             dim3((unsigned)((slots + waves - 1) / waves)), block, 0, c->stream,
             s.gather, p, (uint16_t *)c->workspace);
  mla_status st = mla_gpu_launched(c, "prefill_gather");
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

/* Parts of a section of heads. Lengths are known on the device alone: as many
   chunks as the limits allow, which are empty for most. */
static mla_status mla_prefill_section(const mla_gpu_call *c,
                                      const mla_prefill_cut &cut,
                                      const mla_prefill_step &s) {
  const mla_limits *l = &c->plan->limits;
  mla_prefill_part p = {};
  p.start = s.gather.start;
  p.start_step = s.gather.start_step;
  p.seq_lens = s.gather.seq_lens;
  p.seq_lens_step = s.gather.seq_lens_step;
  p.requests = s.gather.requests;
  p.chunk = (int)cut.chunk;
  for (int64_t at = 0; cut.chunk && at < l->max_seq_len; at += cut.chunk) {
    p.first = (int)at;
    mla_status st = mla_prefill_part_of(c, s, p, p.requests * cut.chunk);
    if (st != MLA_OK) return st;
  }
  p.chunk = p.first = 0;
  return mla_prefill_part_of(c, s, p, mla_prefill_new_slots(l));
}

static mla_status mla_prefill_run(const mla_gpu_call *c) {
  const mla_prefill_cut cut = mla_prefill_cut_of(c->p, &c->plan->limits);
  mla_prefill_step s;
  s.gather = mla_prefill_gathers(c);
  s.up = mla_prefill_projects(c, cut);
  s.attend = mla_prefill_attends(c, cut, s);
  if (!s.gather.requests || !s.gather.tokens) return MLA_OK;
  for (int64_t h = 0; h < c->p->num_heads; h += cut.heads) {
    const int64_t rest = c->p->num_heads - h;
    s.up.head0 = s.attend.head0 = (int)h;
    s.attend.heads = (int)(rest < cut.heads ? rest : cut.heads);
    mla_status st = mla_prefill_section(c, cut, s);
    if (st != MLA_OK) return st;
  }
  return MLA_OK;
}

static const mla_gpu_fast mla_prefill_mfma_fast = {
    mla_prefill_serves, mla_prefill_workspace, mla_prefill_describe,
    mla_prefill_takes, mla_prefill_run};

#endif
