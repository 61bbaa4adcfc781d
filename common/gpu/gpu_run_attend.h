/*
 * gpu_run_attend.h - decode, prefill and merge on the host side: arguments
 * gathered, workspace cut, kernels enqueued.
 *
 * Tokens are processed in slices, so that the workspace is bounded whatever
 * the step's size; a slice's bits do not depend on where it is cut.
 */
#ifndef MLA_GPU_RUN_ATTEND_H
#define MLA_GPU_RUN_ATTEND_H

#include "gpu_host_attend.h"
#include "gpu_merge_few.h"
#include "gpu_run_product.h"

/* The most f32 a slice's partial results may take: 1 GiB. */
static const int64_t MLA_GPU_PARTIAL_FLOATS = (int64_t)1 << 28;

/* f32 a token needs: partial results and, in prefill, absorbed queries. */
static inline int64_t mla_gpu_token_floats(const mla_problem *p,
                                           const mla_limits *l) {
  int64_t h = p->num_heads, latent = p->kv_lora_rank;
  int prefill = p->op == MLA_OP_PREFILL;
  int64_t dv = prefill ? latent : mla_problem_v_dim(p);
  int64_t floats = h * mla_gpu_splits(p, l) * (dv + 1);
  if (prefill) floats += h * (2 * latent + p->qk_rope_head_dim + 1);
  return floats;
}

static inline int64_t mla_gpu_slice(const mla_problem *p, const mla_limits *l) {
  int64_t n = MLA_GPU_PARTIAL_FLOATS / mla_gpu_token_floats(p, l);
  if (n < 1) n = 1;
  if (n > 32768) n = 32768;
  return n < l->tokens ? n : (l->tokens > 0 ? l->tokens : 1);
}

/* Keys a tile holds: what fits beside the queries in shared memory. */
static inline int mla_gpu_tile(int dk, int dv_apart, int *bytes) {
  const int waves = MLA_ATTEND_THREADS / MLA_LEAST_WAVE;
  const int limit = 60 << 10;
  const int row = (MLA_TILE_STEP(dk) + dv_apart) * (int)sizeof(float);
  const int fixed = waves * (dk + MLA_TILE_KEYS) * (int)sizeof(float);
  int tile = (limit - fixed) / row;
  if (tile > MLA_TILE_KEYS) tile = MLA_TILE_KEYS;
  if (tile < 1) tile = 1;
  *bytes = fixed + tile * row;
  return tile;
}

template <int DT, int C>
static mla_status mla_gpu_attend_launch(const mla_gpu_call *c,
                                        mla_attend_args a, int tokens) {
  int bytes, waves = MLA_ATTEND_THREADS / c->plan->handle->wave;
  int group = a.heads / a.kv_heads;
  a.tile = mla_gpu_tile(a.dk, a.v_cache ? a.dv : 0, &bytes);
  mla_status st = mla_gpu_shared(c, (const void *)mla_attend_partial<DT, C>,
                                 bytes, "attend_partial");
  if (st != MLA_OK) return st;
  dim3 grid((unsigned)tokens,
            (unsigned)(a.kv_heads * ((group + waves - 1) / waves)),
            (unsigned)a.splits);
  MLA_LAUNCH((mla_attend_partial<DT, C>), grid, dim3(MLA_ATTEND_THREADS),
             (size_t)bytes, c->stream, a);
  return mla_gpu_launched(c, "attend_partial");
}

template <int DT>
static mla_status mla_gpu_attend_width(const mla_gpu_call *c,
                                       const mla_attend_args &a, int tokens) {
  const int lanes = c->plan->handle->wave;
  if (a.dv <= 4 * lanes) return mla_gpu_attend_launch<DT, 4>(c, a, tokens);
  if (a.dv <= 16 * lanes) return mla_gpu_attend_launch<DT, 16>(c, a, tokens);
  return mla_gpu_attend_launch<DT, 1024 / MLA_LEAST_WAVE>(c, a, tokens);
}

/* Partial results of a slice of tokens. */
static mla_status mla_gpu_attend(const mla_gpu_call *c,
                                 const mla_attend_args &a, int dtype,
                                 int tokens) {
  if (dtype == MLA_F32) return mla_gpu_attend_width<MLA_F32>(c, a, tokens);
  if (dtype == MLA_BF16) return mla_gpu_attend_width<MLA_BF16>(c, a, tokens);
  return mla_gpu_attend_width<MLA_F16>(c, a, tokens);
}

/* Whether parts and results can be taken by 16 bytes of a part. */
static int mla_gpu_merge_whole(const mla_merge_args &m) {
  const int n = m.parts_dtype == MLA_F32 ? 4 : 8;
  const int out = n == 4 && m.out_dtype != MLA_F32 ? 8 : 16;
  return (uintptr_t)m.parts % 16 == 0 && (uintptr_t)m.out % out == 0 &&
         (m.p_part | m.p_token | m.p_head | m.o_token | m.o_head | m.dv) % n ==
             0;
}

template <int DT, int N>
static mla_status mla_gpu_merge_launch(const mla_gpu_call *c, mla_merge_args m,
                                       int64_t tokens) {
  const int wave = c->plan->handle->wave;
  m.waves = (m.dv + wave * N - 1) / (wave * N);
  if (m.waves > MLA_MERGE_THREADS / wave) m.waves = MLA_MERGE_THREADS / wave;
  MLA_LAUNCH((mla_merge_rows<DT, N>), dim3((unsigned)tokens, (unsigned)m.heads),
             dim3((unsigned)(m.waves * wave)), 0, c->stream, m);
  return mla_gpu_launched(c, "merge_rows");
}

template <int DT, int N, int P>
static mla_status mla_gpu_merge_few(const mla_gpu_call *c, mla_merge_args m,
                                    int64_t tokens) {
  const int rows = MLA_MERGE_LOADS / P, wave = c->plan->handle->wave;
  const int stretches = (m.dv + wave * N - 1) / (wave * N);
  int groups = MLA_MERGE_THREADS / wave / stretches;
  if (groups > (m.heads + rows - 1) / rows)
    groups = (m.heads + rows - 1) / rows;
  if (!groups) return mla_gpu_merge_launch<DT, N>(c, m, tokens);
  m.waves = groups * stretches;
  const int heads = groups * rows;
  MLA_LAUNCH((mla_merge_few<DT, N, P>),
             dim3((unsigned)tokens, (unsigned)((m.heads + heads - 1) / heads)),
             dim3((unsigned)(m.waves * wave)), 0, c->stream, m, stretches);
  return mla_gpu_launched(c, "merge_few");
}

template <int DT, int N>
static mla_status mla_gpu_merge_parts(const mla_gpu_call *c,
                                      const mla_merge_args &m, int64_t tokens) {
  if (m.count <= 2) return mla_gpu_merge_few<DT, N, 2>(c, m, tokens);
  if (m.count <= MLA_MERGE_FEW)
    return mla_gpu_merge_few<DT, N, MLA_MERGE_FEW>(c, m, tokens);
  return mla_gpu_merge_launch<DT, N>(c, m, tokens);
}

static mla_status mla_gpu_merge(const mla_gpu_call *c, const mla_merge_args &m,
                                int64_t tokens) {
  if (!mla_gpu_merge_whole(m))
    return mla_gpu_merge_launch<MLA_F32, 1>(c, m, tokens);
  if (m.parts_dtype == MLA_F32)
    return mla_gpu_merge_parts<MLA_F32, 4>(c, m, tokens);
  if (m.parts_dtype == MLA_BF16)
    return mla_gpu_merge_parts<MLA_BF16, 8>(c, m, tokens);
  return mla_gpu_merge_parts<MLA_F16, 8>(c, m, tokens);
}

/* Merging the splits of gpu_attend.h into out and lse. */
static inline mla_merge_args mla_gpu_merge_args(const mla_gpu_call *c,
                                                const mla_attend_args &a) {
  mla_merge_args m = {};
  m.parts = a.part_out;
  m.parts_dtype = MLA_F32;
  m.p_part = a.dv;
  m.p_head = (int64_t)a.splits * a.dv;
  m.p_token = m.p_head * a.heads;
  m.lses = a.part_lse;
  m.l_part = 1;
  m.l_head = a.splits;
  m.l_token = (int64_t)a.splits * a.heads;
  m.lse = (float *)mla_gpu_data(c, MLA_T_LSE);
  m.lse_token = mla_gpu_stride(c, MLA_T_LSE, 0);
  m.lse_head = mla_gpu_stride(c, MLA_T_LSE, 1);
  m.sink = (const float *)mla_gpu_data(c, MLA_T_SINK);
  m.sink_step = mla_gpu_stride(c, MLA_T_SINK, 0);
  m.start = a.start;
  m.start_step = a.start_step;
  m.requests = a.requests;
  m.token0 = a.token0;
  m.count = a.splits;
  m.heads = a.heads;
  m.dv = a.dv;
  m.out_base2 = (c->p->flags & MLA_LSE_BASE2) != 0;
  return m;
}

static inline void mla_gpu_out(const mla_gpu_call *c, mla_merge_args *m) {
  m->out = (void *)mla_gpu_data(c, MLA_T_OUT);
  m->o_token = mla_gpu_stride(c, MLA_T_OUT, 0);
  m->o_head = mla_gpu_stride(c, MLA_T_OUT, 1);
  m->out_dtype = c->p->out_dtype;
}

/* The splits of a slice of tokens into out and lse. */
static mla_status mla_gpu_merge_out(const mla_gpu_call *c,
                                    const mla_attend_args &a, int64_t tokens) {
  mla_merge_args m = mla_gpu_merge_args(c, a);
  mla_gpu_out(c, &m);
  return mla_gpu_merge(c, m, tokens);
}

static mla_status mla_gpu_decode(const mla_gpu_call *c) {
  mla_attend_args a = mla_gpu_attend_args(c);
  a.q = mla_gpu_data(c, MLA_T_Q);
  a.q_token = mla_gpu_stride(c, MLA_T_Q, 0);
  a.q_head = mla_gpu_stride(c, MLA_T_Q, 1);
  a.q_dtype = c->p->q_dtype;
  a.dk = mla_problem_head_dim(c->p);
  a.dv = mla_problem_v_dim(c->p);
  if (c->p->flags & MLA_SEPARATE_V) {
    a.k_head = mla_gpu_stride(c, MLA_T_CACHE, 2);
    a.v_cache = mla_gpu_data(c, MLA_T_V_CACHE);
    a.v_entry = mla_gpu_entry(c, MLA_T_V_CACHE);
    a.v_block = mla_gpu_stride(c, MLA_T_V_CACHE, 0);
    a.v_row = mla_gpu_stride(c, MLA_T_V_CACHE, 1);
    a.v_head = mla_gpu_stride(c, MLA_T_V_CACHE, 2);
  }
  const int64_t slice = mla_gpu_slice(c->p, &c->plan->limits);
  a.part_out = (float *)c->workspace;
  a.part_lse = a.part_out + slice * a.heads * a.splits * a.dv;
  /* Scaled entries are read by what they are; the type is then nothing. */
  const int cache_dtype =
      a.k_entry.scaled ? c->p->q_dtype : mla_format_dtype(c->p->cache_format);
  for (int64_t t = 0; t < a.tokens; t += slice) {
    const int n = (int)(a.tokens - t < slice ? a.tokens - t : slice);
    a.token0 = (int)t;
    mla_status st = mla_gpu_attend(c, a, cache_dtype, n);
    if (st == MLA_OK) st = mla_gpu_merge_out(c, a, n);
    if (st != MLA_OK) return st;
  }
  return MLA_OK;
}

/* Workspace of a prefill slice, in f32. */
struct mla_prefill_space {
  float *q;      /* [slice][H][L + R]: queries absorbed, rope part behind */
  float *latent; /* [slice][H][L]: merged */
  float *part_out, *part_lse;
};

static inline mla_prefill_space mla_gpu_prefill_space(const mla_gpu_call *c,
                                                      int64_t slice,
                                                      int splits) {
  const int64_t rows = slice * c->p->num_heads, l = c->p->kv_lora_rank;
  mla_prefill_space s;
  s.q = (float *)c->workspace;
  s.latent = s.q + rows * (l + c->p->qk_rope_head_dim);
  s.part_out = s.latent + rows * l;
  s.part_lse = s.part_out + rows * splits * l;
  return s;
}

/* q_nope x W_UK into the latent part, the rope part copied behind it. */
static mla_status mla_gpu_prefill_queries(const mla_gpu_call *c, int64_t t,
                                          int64_t n, float *to) {
  const mla_problem *p = c->p;
  const int64_t l = p->kv_lora_rank, r = p->qk_rope_head_dim;
  const int64_t nope = p->qk_nope_head_dim, width = l + r;
  const mla_tensor *q = mla_arg(c->args, MLA_T_Q);
  const mla_tensor *w = mla_arg(c->args, MLA_T_KV_B_PROJ);
  mla_product_args m = {};
  m.a = q->data;
  m.a_dtype = q->dtype;
  m.w = w->data;
  m.w_dtype = w->dtype;
  m.out = to;
  m.out_dtype = MLA_F32;
  m.a_batch = q->stride[1];
  m.a_m = q->stride[0];
  m.a_k = 1;
  m.w_batch = (nope + p->v_head_dim) * w->stride[0];
  m.w_n = 1;
  m.w_k = w->stride[0];
  m.o_batch = width;
  m.o_m = width * p->num_heads;
  m.o_n = 1;
  m.m = n;
  m.n = l;
  m.k = nope;
  m.a_offset = t * q->stride[0];
  mla_status st = mla_gpu_product(c, m, p->num_heads);
  if (st != MLA_OK || r == 0) return st;
  mla_copy_args x = {};
  x.in = q->data;
  x.in_dtype = q->dtype;
  x.in_offset = t * q->stride[0] + nope;
  x.in_i = q->stride[0];
  x.in_j = q->stride[1];
  x.in_k = 1;
  x.out = to + l;
  x.out_dtype = MLA_F32;
  x.out_i = width * p->num_heads;
  x.out_j = width;
  x.out_k = 1;
  x.count = r;
  return mla_gpu_copy(c, x, n, p->num_heads);
}

/* Rows of requests only: padding rows are written by nobody. */
static mla_status mla_gpu_prefill_values(const mla_gpu_call *c,
                                         const mla_attend_args &a, int64_t n,
                                         const float *latent) {
  const mla_problem *p = c->p;
  const mla_tensor *w = mla_arg(c->args, MLA_T_KV_B_PROJ);
  const mla_tensor *out = mla_arg(c->args, MLA_T_OUT);
  const int64_t l = p->kv_lora_rank, rows = p->qk_nope_head_dim;
  mla_product_args m = {};
  m.a = latent;
  m.a_dtype = MLA_F32;
  m.w = w->data;
  m.w_dtype = w->dtype;
  m.w_offset = rows * w->stride[0];
  m.out = out->data;
  m.out_dtype = out->dtype;
  m.out_offset = a.token0 * out->stride[0];
  m.a_batch = l;
  m.a_m = l * p->num_heads;
  m.a_k = 1;
  m.w_batch = (rows + p->v_head_dim) * w->stride[0];
  m.w_n = w->stride[0];
  m.w_k = 1;
  m.o_batch = out->stride[1];
  m.o_m = out->stride[0];
  m.o_n = 1;
  m.m = n;
  m.n = p->v_head_dim;
  m.k = l;
  m.limit = a.start + (int64_t)a.requests * a.start_step;
  m.limit_base = a.token0;
  return mla_gpu_product(c, m, p->num_heads);
}

static mla_status mla_gpu_prefill(const mla_gpu_call *c) {
  mla_attend_args a = mla_gpu_attend_args(c);
  const mla_problem *p = c->p;
  a.new_c = mla_gpu_data(c, MLA_T_KV_C);
  a.new_r = mla_gpu_data(c, MLA_T_K_PE);
  a.new_c_row = mla_gpu_stride(c, MLA_T_KV_C, 0);
  a.new_r_row = mla_gpu_stride(c, MLA_T_K_PE, 0);
  a.latent = p->kv_lora_rank;
  a.dk = p->kv_lora_rank + p->qk_rope_head_dim;
  a.dv = p->kv_lora_rank;
  a.q_dtype = MLA_F32;
  a.q_head = a.dk;
  a.q_token = (int64_t)a.dk * a.heads;
  const int64_t slice = mla_gpu_slice(p, &c->plan->limits);
  mla_prefill_space s = mla_gpu_prefill_space(c, slice, a.splits);
  a.part_out = s.part_out;
  a.part_lse = s.part_lse;
  for (int64_t t = 0; t < a.tokens; t += slice) {
    const int64_t n = a.tokens - t < slice ? a.tokens - t : slice;
    a.token0 = (int)t;
    a.q = s.q - t * a.q_token; /* the kernel counts tokens of the step */
    mla_status st = mla_gpu_prefill_queries(c, t, n, s.q);
    if (st == MLA_OK) st = mla_gpu_attend(c, a, p->q_dtype, (int)n);
    if (st != MLA_OK) return st;
    mla_merge_args m = mla_gpu_merge_args(c, a);
    m.o_head = a.dv;
    m.o_token = (int64_t)a.dv * a.heads;
    m.out = s.latent - t * m.o_token;
    m.out_dtype = MLA_F32;
    st = mla_gpu_merge(c, m, n);
    if (st == MLA_OK) st = mla_gpu_prefill_values(c, a, n, s.latent);
    if (st != MLA_OK) return st;
  }
  return MLA_OK;
}

static mla_status mla_gpu_merge_op(const mla_gpu_call *c) {
  const mla_tensor *parts = mla_arg(c->args, MLA_T_PARTS);
  const mla_tensor *lses = mla_arg(c->args, MLA_T_PART_LSES);
  mla_merge_args m = {};
  m.parts = parts->data;
  m.parts_dtype = parts->dtype;
  m.p_part = parts->stride[0];
  m.p_token = parts->stride[1];
  m.p_head = parts->stride[2];
  m.lses = (const float *)lses->data;
  m.l_part = lses->stride[0];
  m.l_token = lses->stride[1];
  m.l_head = lses->stride[2];
  mla_gpu_out(c, &m);
  m.lse = (float *)mla_gpu_data(c, MLA_T_LSE);
  m.lse_token = mla_gpu_stride(c, MLA_T_LSE, 0);
  m.lse_head = mla_gpu_stride(c, MLA_T_LSE, 1);
  m.sink = (const float *)mla_gpu_data(c, MLA_T_SINK);
  m.sink_step = mla_gpu_stride(c, MLA_T_SINK, 0);
  m.count = (int)parts->shape[0];
  m.heads = c->p->num_heads;
  m.dv = c->p->v_head_dim;
  m.in_base2 = m.out_base2 = (c->p->flags & MLA_LSE_BASE2) != 0;
  const int64_t tokens = parts->shape[1];
  return tokens ? mla_gpu_merge(c, m, tokens) : MLA_OK;
}

#endif
