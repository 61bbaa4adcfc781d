/*
 * The host side of prefill with context on sm_90a, in parts: the new tokens,
 * then chunks of every request's context from its end to its beginning. A
 * chunk's latents are gathered from the cache into slots, up-projected and
 * attended; heads are taken in sections, so that the workspace is bounded.
 */
#include "gpu_run_prefill.h"
#include "sm90_prefill_host.h"

/* Slots of a request are whole blocks of keys, and of the projection. */
static const mla_prefill_sizes SIZES = {PREFILL_TILE, PREFILL_TILE,
                                        PREFILL_KEPT};

/* Of every 128 slots: whether a request has any of them. */
static __global__ void prefill_live(mla_prefill_plan p, int *live, int count) {
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  const int slot = i * PREFILL_TILE;
  if (i >= count) return;
  live[i] = slot % p.chunk < prefill_context(p, slot / p.chunk);
}

static int serves(const mla_handle *h, const mla_problem *p,
                  const mla_limits *l) {
  return mla_sm90_prefills(h, p) && (p->flags & MLA_CONTEXT) &&
         mla_prefill_fits(p, l, SIZES, 64);
}

/* The workspace: the counter, copies of inputs, live, then as mla_prefill_cut
   has it. */
static int64_t live_bytes(const mla_prefill_cut &cut) {
  return mla_prefill_up(cut.slots / PREFILL_TILE * (int64_t)sizeof(int), 256);
}
static uint64_t workspace(const mla_handle *h, const mla_problem *p,
                          const mla_limits *l) {
  (void)h;
  const mla_prefill_cut cut = mla_prefill_cut_of(p, l, SIZES);
  return MLA_SM90_COUNTER_BYTES + mla_sm90_prefill_even(p, l) +
         (uint64_t)live_bytes(cut) + mla_prefill_bytes(cut);
}

/* A section of heads on its way. */
typedef struct parts_step {
  mla_prefill_sm90_args attend;
  mla_attend_args gather;
  int *live;
  uint16_t *latents;
  unsigned char *up;
  mla_sm90_prefill_inputs all;
  mla_tensor q, w; /* the section's */
  int64_t width;
} parts_step;

static mla_tensor dense(void *data, int64_t rows, int64_t heads) {
  const int64_t shape[3] = {rows, heads, MLA_SM90_UP};
  return mla_tensor_dense(data, SM90_TYPE, 3, shape);
}

/* Latents up-projected, then attended by the section's heads. */
static mla_status project(const mla_gpu_call *c, const parts_step &s,
                          const mla_tensor *latents, const mla_tensor *rope,
                          const int *live) {
  const int64_t rows = latents->shape[0], heads = s.attend.plan.heads;
  const int64_t flat[2] = {rows, heads * MLA_SM90_UP};
  const mla_tensor to = mla_tensor_dense(s.up, SM90_TYPE, 2, flat);
  const mla_tensor up = dense(s.up, rows, heads);
  mla_status st = MLA_SM90_NAME(mla_launch_product)(
      c, mla_sm90_product_of(latents, &s.w, &to), s.attend.counter, live);
  if (st != MLA_OK) return st;
  return mla_sm90_prefill_attend<1>(c, s.attend, &s.q, &up, rope);
}

/* A chunk of every request's context. */
static mla_status chunk(const mla_gpu_call *c, const parts_step &s) {
  const mla_prefill_plan &plan = s.attend.plan;
  const int64_t slots = (int64_t)plan.requests * plan.chunk;
  const int count = (int)(slots / PREFILL_TILE);
  const mla_prefill_part part = {
      plan.start,    plan.seq_lens, plan.start_step, plan.seq_lens_step,
      plan.requests, plan.chunk,    plan.first};
  prefill_live<<<(count + 255) / 256, 256, 0, c->stream>>>(plan, s.live, count);
  const int waves = MLA_PREFILL_THREADS / 32;
  mla_prefill_gather<SM90_TYPE, PREFILL_TILE>
      <<<(unsigned)((slots + waves - 1) / waves), MLA_PREFILL_THREADS, 0,
         c->stream>>>(s.gather, part, s.latents);
  mla_status st = mla_gpu_launched(c, "prefill_gather");
  if (st != MLA_OK) return st;
  const int64_t shape[2] = {slots, s.width};
  mla_tensor latents = mla_tensor_dense(s.latents, SM90_TYPE, 2, shape);
  mla_tensor rope = latents;
  latents.shape[1] = c->p->kv_lora_rank;
  rope.data = s.latents + c->p->kv_lora_rank;
  rope.shape[1] = c->p->qk_rope_head_dim;
  return project(c, s, &latents, &rope, s.live);
}

/* The parts of a section of heads. Lengths are known on the device alone: as
   many chunks as the limits allow, which may be empty. */
static mla_status parts(const mla_gpu_call *c, parts_step *s, int64_t size) {
  const int64_t longest = c->plan->limits.max_seq_len;
  mla_prefill_plan *plan = &s->attend.plan;
  plan->chunk = plan->first = 0;
  plan->section =
      mla_sm90_prefill_section(c->plan->limits.max_query_len, plan->heads);
  mla_status st = project(c, *s, &s->all.kv_c, &s->all.k_pe, NULL);
  plan->chunk = (int)size;
  plan->section = mla_sm90_prefill_section(size, plan->heads);
  for (int64_t i = (longest - 1) / size; i >= 0 && st == MLA_OK; i--) {
    plan->first = (int)(i * size);
    st = chunk(c, *s);
  }
  return st;
}

/* Where the workspace's parts lie, and what all sections have alike. */
static parts_step step_of(const mla_gpu_call *c, const mla_prefill_cut &cut) {
  parts_step s = {};
  s.attend = mla_sm90_prefill_args(c);
  s.gather = mla_prefill_gathers(c);
  s.attend.plan.seq_lens = s.gather.seq_lens;
  s.attend.plan.seq_lens_step = s.gather.seq_lens_step;
  unsigned char *at = c->workspace + MLA_SM90_COUNTER_BYTES +
                      mla_sm90_prefill_even(c->p, &c->plan->limits);
  s.live = (int *)at;
  at += live_bytes(cut);
  s.latents = (uint16_t *)at;
  s.up = at + cut.latents;
  s.attend.kept = (float *)(s.up + 2 * cut.keys);
  s.width = cut.width;
  return s;
}

/* The step's tensors from head h on, `heads` of them. */
static void section(const mla_gpu_call *c, int64_t h, int64_t heads,
                    parts_step *s) {
  mla_prefill_sm90_args all = mla_sm90_prefill_args(c), *a = &s->attend;
  a->plan.heads = (int)heads;
  a->out = (unsigned char *)all.out +
           h * all.o_head * (mla_dtype_bits(all.out_dtype) / 8);
  if (all.lse) a->lse = all.lse + h * all.lse_head;
  if (all.sink) a->sink = all.sink + h * all.sink_step;
  s->q = s->all.q;
  s->q.data = (uint16_t *)s->q.data + h * s->q.stride[1];
  s->q.shape[1] = heads;
  s->w = s->all.w;
  s->w.data = (uint16_t *)s->w.data + h * MLA_SM90_UP * s->w.stride[0];
  s->w.shape[0] = heads * MLA_SM90_UP;
}

static mla_status run(const mla_gpu_call *c) {
  const mla_prefill_cut cut = mla_prefill_cut_of(c->p, &c->plan->limits, SIZES);
  parts_step s = step_of(c, cut);
  if (!s.gather.requests || !s.gather.tokens) return MLA_OK;
  mla_status st = mla_sm90_prefill_inputs_of(
      c, c->workspace + MLA_SM90_COUNTER_BYTES, &s.all);
  for (int64_t h = 0; h < c->p->num_heads && st == MLA_OK; h += cut.heads) {
    const int64_t rest = c->p->num_heads - h;
    section(c, h, rest < cut.heads ? rest : cut.heads, &s);
    st = parts(c, &s, cut.chunk);
  }
  return st;
}

const mla_gpu_fast MLA_SM90_NAME(mla_cuda_prefill_parts) = {
    serves, workspace, mla_sm90_prefill_describe, mla_sm90_prefill_takes, run};
