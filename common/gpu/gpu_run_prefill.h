/*
 * gpu_run_prefill.h - prefill in its up-projected form on the host side: the
 * context in chunks, then the new tokens; heads in sections, so that the
 * workspace is bounded.
 */
#ifndef MLA_GPU_RUN_PREFILL_H
#define MLA_GPU_RUN_PREFILL_H

#include "gpu_host_attend.h"
#include "gpu_prefill.h"

/* Slots of a chunk of all requests, bytes of a section of heads: about. */
static const int64_t MLA_PREFILL_CHUNK_SLOTS = 16384;
static const int64_t MLA_PREFILL_SECTION_BYTES = (int64_t)1 << 30;

/* How a backend's kernels have it. */
typedef struct mla_prefill_sizes {
  int64_t tile;    /* keys; slots of a request are multiples of it */
  int64_t up_tile; /* slots of a block that up-projects */
  int64_t kept;    /* floats of a row between parts */
} mla_prefill_sizes;

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
static int64_t mla_prefill_new_slots(const mla_limits *l,
                                     const mla_prefill_sizes &z) {
  return mla_prefill_up((l->tokens / z.tile + l->requests + 1) * z.tile,
                        z.up_tile);
}

static int64_t mla_prefill_chunk(const mla_limits *l,
                                 const mla_prefill_sizes &z) {
  const int64_t requests = l->requests > 0 ? l->requests : 1;
  int64_t n = MLA_PREFILL_CHUNK_SLOTS / requests;
  if (n < 256) n = 256;
  if (l->context_chunk > 0) n = l->context_chunk;
  if (n > l->max_seq_len) n = l->max_seq_len;
  return mla_prefill_up(n < 1 ? 1 : n, z.tile);
}

static mla_prefill_cut mla_prefill_cut_of(const mla_problem *p,
                                          const mla_limits *l,
                                          const mla_prefill_sizes &z) {
  mla_prefill_cut c = {};
  c.slots = mla_prefill_new_slots(l, z);
  c.width = p->kv_lora_rank + p->qk_rope_head_dim;
  int64_t kept = 0; /* of a head */
  if (p->flags & MLA_CONTEXT) {
    c.chunk = mla_prefill_chunk(l, z);
    const int64_t n = mla_prefill_up(l->requests * c.chunk, z.up_tile);
    if (n > c.slots) c.slots = n;
    kept = l->tokens * z.kept * (int64_t)sizeof(float);
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

static uint64_t mla_prefill_bytes(const mla_prefill_cut &c) {
  return (uint64_t)(c.latents + 2 * c.keys + c.kept);
}

/* What such kernels serve, whatever they take of types; step: columns of a
   latent that they take at once. */
static int mla_prefill_fits(const mla_problem *p, const mla_limits *l,
                            const mla_prefill_sizes &z, int step) {
  const uint64_t flags = MLA_CAUSAL | MLA_RETURN_LSE | MLA_LSE_BASE2 |
                         MLA_HAS_SINK | MLA_CONTEXT | MLA_BATCH_INVARIANT;
  const int64_t most = (int64_t)1 << 30;
  if (p->op != MLA_OP_PREFILL || (p->flags & ~flags) != 0 ||
      p->weight_dtype != p->q_dtype || p->logits_soft_cap != 0)
    return 0;
  return p->qk_nope_head_dim == MLA_PREFILL_DV &&
         p->qk_rope_head_dim == MLA_PREFILL_ROPE &&
         p->v_head_dim == MLA_PREFILL_DV && p->kv_lora_rank % step == 0 &&
         p->num_heads < 32768 && l->tokens < most && l->requests < most &&
         mla_prefill_cut_of(p, l, z).slots < most;
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

/* NULL: there is none. */
static int mla_prefill_whole(const mla_tensor *t) {
  return !t || mla_gpu_is_chunked(t, t->rank - 1);
}

static mla_attend_args mla_prefill_gathers(const mla_gpu_call *c) {
  mla_attend_args a = mla_gpu_attend_args(c);
  a.new_c = mla_gpu_data(c, MLA_T_KV_C);
  a.new_r = mla_gpu_data(c, MLA_T_K_PE);
  a.new_c_row = mla_gpu_stride(c, MLA_T_KV_C, 0);
  a.new_r_row = mla_gpu_stride(c, MLA_T_K_PE, 0);
  a.latent = c->p->kv_lora_rank;
  a.dk = a.latent + c->p->qk_rope_head_dim;
  a.rows_whole = !a.k_entry.scaled && a.latent % 8 == 0 && a.dk % 8 == 0 &&
                 mla_prefill_whole(mla_arg(c->args, MLA_T_KV_C)) &&
                 mla_prefill_whole(mla_arg(c->args, MLA_T_K_PE)) &&
                 mla_prefill_whole(mla_arg(c->args, MLA_T_CACHE));
  return a;
}

static mla_upproject_args mla_prefill_projects(const mla_gpu_call *c,
                                               const mla_prefill_cut &cut) {
  mla_upproject_args u = {};
  u.latents = (const uint16_t *)c->workspace;
  u.w = mla_gpu_data(c, MLA_T_KV_B_PROJ);
  u.w_row = mla_gpu_stride(c, MLA_T_KV_B_PROJ, 0);
  u.w_whole = mla_gpu_is_chunked(mla_arg(c->args, MLA_T_KV_B_PROJ), 1);
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
  a.q_whole = mla_gpu_is_chunked(mla_arg(c->args, MLA_T_Q), 2);
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

/* The three kernels over one part, for a section of heads. */
typedef mla_status mla_prefill_part_fn(const mla_gpu_call *c,
                                       const mla_prefill_step &s,
                                       const mla_prefill_part &p,
                                       int64_t slots);

template <int DT, int TILE>
static mla_status mla_prefill_gathered(const mla_gpu_call *c,
                                       const mla_prefill_step &s,
                                       const mla_prefill_part &p,
                                       int64_t slots) {
  const int waves = MLA_PREFILL_THREADS / c->plan->handle->wave;
  MLA_LAUNCH((mla_prefill_gather<DT, TILE>),
             dim3((unsigned)((slots + waves - 1) / waves)),
             dim3(MLA_PREFILL_THREADS), 0, c->stream, s.gather, p,
             (uint16_t *)c->workspace);
  return mla_gpu_launched(c, "prefill_gather");
}

/* Parts of a section of heads. Lengths are known on the device alone: as many
   chunks as the limits allow, which are empty for most. */
static mla_status mla_prefill_section(const mla_gpu_call *c,
                                      const mla_prefill_cut &cut,
                                      const mla_prefill_step &s,
                                      const mla_prefill_sizes &z,
                                      mla_prefill_part_fn *run) {
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
    mla_status st = run(c, s, p, p.requests * cut.chunk);
    if (st != MLA_OK) return st;
  }
  p.chunk = p.first = 0;
  return run(c, s, p, mla_prefill_new_slots(l, z));
}

static inline mla_status mla_prefill_parts(const mla_gpu_call *c,
                                           const mla_prefill_sizes &z,
                                           mla_prefill_part_fn *run) {
  const mla_prefill_cut cut = mla_prefill_cut_of(c->p, &c->plan->limits, z);
  mla_prefill_step s;
  s.gather = mla_prefill_gathers(c);
  s.up = mla_prefill_projects(c, cut);
  s.attend = mla_prefill_attends(c, cut, s);
  if (!s.gather.requests || !s.gather.tokens) return MLA_OK;
  for (int64_t h = 0; h < c->p->num_heads; h += cut.heads) {
    const int64_t rest = c->p->num_heads - h;
    s.up.head0 = s.attend.head0 = (int)h;
    s.attend.heads = (int)(rest < cut.heads ? rest : cut.heads);
    mla_status st = mla_prefill_section(c, cut, s, z, run);
    if (st != MLA_OK) return st;
  }
  return MLA_OK;
}

#endif
