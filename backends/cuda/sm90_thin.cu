/*
 * The host side of mla_product_thin_sm90.cuh: matmul of few rows by it, and
 * q_absorb and v_expand of any number.
 */
#include <stdio.h>

#include "cuda_fast.h"
#include "mla_product_thin_sm90.cuh"
#include "sm90_even.h"
#include "sm90_launch.h"
#include "sm90_product.h"

static const char name[] = "product_thin_" MLA_SM90_TEXT "_sm90";

/* CTAs that share K: until there is one for most units, two boxes each at
   least. */
static int splits_of(int64_t tiles, int steps, int units) {
  int splits = 1;
  while (splits < THIN_MOST_SPLITS && 8 * tiles * splits < 7 * units &&
         steps >= 4 * splits)
    splits *= 2;
  return splits;
}

template <int Rows, int Tokens, int Columns>
static mla_status launch(const mla_gpu_call *c, const mla_sm90_product &t) {
  typedef thin_of<Rows, Tokens> of;
  const auto kernel = MLA_SM90_NAME(mla_product_thin)<Rows, Tokens, Columns>;
  const int64_t wide = (t.n + Rows - 1) / Rows;
  const int64_t high = (t.m + Tokens - 1) / Tokens;
  mla_thin_args p = {t.out, t.o_head, t.o_row, (int)t.m, (int)t.n, 0, 0};
  p.steps = (int)((t.k + 63) / 64);
  const int64_t tiles = wide * high * t.heads, units = c->plan->handle->units;
  const int splits = splits_of(tiles, p.steps, (int)units);
  const int most = tiles > 2 * units ? of::FewStages : of::Stages;
  const int each = (p.steps + splits - 1) / splits;
  p.stages = each < most ? each : most;
  const int ring = p.stages * of::Stage;
  const int bytes = (ring > of::Sums ? ring : of::Sums) + 1024;
  cudaLaunchAttribute attribute[2];
  cudaLaunchConfig_t config = mla_sm90_early(
      c, dim3((unsigned)(wide * splits), (unsigned)high, (unsigned)t.heads),
      of::Threads, (size_t)bytes, attribute);
  attribute[1].id = cudaLaunchAttributeClusterDimension;
  attribute[1].val.clusterDim.x = (unsigned)splits;
  attribute[1].val.clusterDim.y = attribute[1].val.clusterDim.z = 1;
  config.numAttrs = 2;
  CUtensorMap w, a;
  mla_status st = mla_sm90_map_weights(t, Rows, MLA_TENSOR_LINES, &w, c->err);
  if (st == MLA_OK)
    st = mla_sm90_map_rows(t.a, t.k, t, t.a_head, t.a_row, Tokens, &a, c->err);
  if (st == MLA_OK) st = mla_gpu_shared(c, (const void *)kernel, bytes, name);
  if (st != MLA_OK) return st;
  return mla_gpu_check(c->err, cudaLaunchKernelEx(&config, kernel, w, a, p),
                       name);
}

/* 128 columns a CTA read rows of a half as often; with few of them there would
   be too few CTAs. */
template <int Columns>
static mla_status launch_for(const mla_gpu_call *c, const mla_sm90_product &t) {
  const int64_t tiles = (t.n + 127) / 128 * ((t.m + 127) / 128) * t.heads;
  if (t.m <= 16) return launch<64, 16, Columns>(c, t);
  if (t.m <= 32) return launch<64, 32, Columns>(c, t);
  if (t.m <= 64) return launch<64, 64, Columns>(c, t);
  return 4 * tiles < c->plan->handle->units ? launch<64, 128, Columns>(c, t)
                                            : launch<128, 128, Columns>(c, t);
}

mla_status MLA_SM90_NAME(mla_launch_thin)(const mla_gpu_call *c,
                                          const mla_sm90_product &t) {
  if (!t.m) return MLA_OK;
  return t.columns ? launch_for<1>(c, t) : launch_for<0>(c, t);
}

/* ---------------------------------------------------- q_absorb and v_expand */

static int absorbs(const mla_problem *p) {
  return p->op == MLA_OP_Q_ABSORB;
}

static int serves(const mla_handle *h, const mla_problem *p,
                  const mla_limits *l) {
  if (p->op != MLA_OP_Q_ABSORB && p->op != MLA_OP_V_EXPAND) return 0;
  const int n = absorbs(p) ? p->kv_lora_rank : p->v_head_dim;
  return h->major == 9 && h->minor == 0 && !(p->flags & MLA_BATCH_INVARIANT) &&
         p->q_dtype == SM90_TYPE && p->weight_dtype == SM90_TYPE &&
         p->out_dtype == SM90_TYPE && n % 8 == 0 && l->tokens <= 1 << 22 &&
         mla_tensor_map_encoder() != NULL;
}

static uint64_t workspace(const mla_handle *h, const mla_problem *p,
                          const mla_limits *l) {
  (void)h, (void)p, (void)l;
  return 0;
}

static void describe(const mla_problem *p, mla_answer *answer) {
  snprintf(answer->kernel, sizeof answer->kernel, "%s_" MLA_SM90_TEXT "_sm90",
           absorbs(p) ? "q_absorb" : "v_expand");
  mla_sm90_even_promise(p, answer);
}

static const mla_tensor *rows_of(const mla_gpu_call *c) {
  return mla_arg(c->args, absorbs(c->p) ? MLA_T_Q_NOPE : MLA_T_O_LATENT);
}
static const mla_tensor *weights_of(const mla_gpu_call *c) {
  return mla_arg(c->args, absorbs(c->p) ? MLA_T_W_UK : MLA_T_W_UV);
}
static const mla_tensor *out_of(const mla_gpu_call *c) {
  return mla_arg(c->args, absorbs(c->p) ? MLA_T_Q_LATENT : MLA_T_OUT);
}

static mla_sm90_product product_of(const mla_gpu_call *c) {
  const mla_tensor *a = rows_of(c), *w = weights_of(c), *out = out_of(c);
  mla_sm90_product t = {};
  t.a = a->data;
  t.w = w->data;
  t.out = out->data;
  t.heads = a->shape[1];
  t.m = a->shape[0];
  t.n = out->shape[2];
  t.k = a->shape[2];
  t.columns = absorbs(c->p);
  t.a_row = a->stride[0];
  t.a_head = a->stride[1];
  t.w_row = w->stride[1];
  t.w_head = w->stride[0];
  t.o_row = out->stride[0];
  t.o_head = out->stride[1];
  return t;
}

static int takes(const mla_gpu_call *c) {
  return mla_sm90_even_walk(rows_of(c)) && mla_sm90_even_walk(weights_of(c)) &&
         mla_sm90_even_walk(out_of(c));
}

/* Whole tiles of many rows. */
static mla_status run(const mla_gpu_call *c) {
  const mla_sm90_product t = product_of(c);
  return t.m >= 256 && t.n >= 256 && t.k % 64 == 0
             ? MLA_SM90_NAME(mla_launch_product)(c, t, NULL, NULL)
             : MLA_SM90_NAME(mla_launch_thin)(c, t);
}

const mla_gpu_fast MLA_SM90_NAME(mla_cuda_heads) = {serves, workspace, describe,
                                                    takes, run};
