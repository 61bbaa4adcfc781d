/*
 * The host side of mla_decode_bf16_sm90: what it serves, and the launch.
 */
#include <stdio.h>

#include "cuda_fast.h"
#include "mla_decode_bf16_sm90.cuh"
#include "sm90_launch.h"
#include "sm90_tensor_map.h"

/* Rows of a request at most: more is prefill's business. */
enum { MAX_ROWS = 2048 };

static int m_blocks_of(const mla_problem *p, const mla_limits *l) {
  const int64_t rows = (int64_t)p->num_heads * l->max_query_len;
  return (int)((rows + MLA_SM90_ROWS - 1) / MLA_SM90_ROWS);
}

static int parts_of(const mla_handle *h, int m_blocks) {
  const int parts = h->units / m_blocks;
  return parts > 0 ? parts : 1;
}

static int page_serves(int page) {
  return page % MLA_SM90_BLOCK == 0 ||
         (page >= 8 && MLA_SM90_BLOCK % page == 0);
}

static int serves(const mla_handle *h, const mla_problem *p,
                  const mla_limits *l) {
  const uint64_t refused = MLA_SEPARATE_V | MLA_BATCH_INVARIANT | MLA_SPARSE |
                           MLA_ALIBI | MLA_OUTPUT_SCALE;
  return h->major == 9 && h->minor == 0 && p->op == MLA_OP_DECODE &&
         !(p->flags & refused) && p->q_dtype == MLA_BF16 &&
         p->cache_format == MLA_CACHE_BF16 && mla_problem_head_dim(p) == 576 &&
         mla_problem_v_dim(p) == 512 && mla_problem_kv_heads(p) == 1 &&
         p->logits_soft_cap == 0 && page_serves(p->block_size) &&
         l->max_query_len >= 1 &&
         (int64_t)p->num_heads * l->max_query_len <= MAX_ROWS &&
         mla_tensor_map_encoder() != NULL;
}

static int64_t scratch_rows(const mla_handle *h, const mla_problem *p,
                            const mla_limits *l) {
  const int m = m_blocks_of(p, l);
  return 2 * (int64_t)parts_of(h, m) * m * MLA_SM90_ROWS;
}

static uint64_t workspace(const mla_handle *h, const mla_problem *p,
                          const mla_limits *l) {
  const int parts = parts_of(h, m_blocks_of(p, l));
  return (uint64_t)scratch_rows(h, p, l) * 513 * sizeof(float) +
         (uint64_t)parts * sizeof(mla_plan_split);
}

/* The copy engine wants 16-byte steps and rows of q in one even walk. */
static int takes(const mla_gpu_call *c) {
  const mla_tensor *q = mla_arg(c->args, MLA_T_Q);
  const mla_tensor *cache = mla_arg(c->args, MLA_T_CACHE);
  const mla_tensor *out = mla_arg(c->args, MLA_T_OUT);
  const int64_t width = q->stride[1];
  if ((uintptr_t)q->data % 16 || (uintptr_t)cache->data % 16) return 0;
  if (q->shape[0] > 1 && q->stride[0] != q->shape[1] * width) return 0;
  if (width % 8 || cache->stride[0] % 8 || cache->stride[1] % 8) return 0;
  return out->stride[0] % 4 == 0 && out->stride[1] % 4 == 0 &&
         (uintptr_t)out->data % 16 == 0 && q->shape[0] > 0;
}

static mla_status make_maps(const mla_gpu_call *c, CUtensorMap *q_map,
                            CUtensorMap *k_map) {
  const mla_tensor *q = mla_arg(c->args, MLA_T_Q);
  const mla_tensor *k = mla_arg(c->args, MLA_T_CACHE);
  const uint64_t q_size[2] = {576, (uint64_t)(q->shape[0] * q->shape[1])};
  const uint64_t q_stride[1] = {(uint64_t)q->stride[1] * 2};
  const uint32_t q_box[2] = {64, MLA_SM90_ROWS};
  const uint64_t k_size[3] = {576, (uint64_t)k->shape[1],
                              (uint64_t)k->shape[0]};
  const uint64_t k_stride[2] = {(uint64_t)k->stride[1] * 2,
                                (uint64_t)k->stride[0] * 2};
  const uint32_t rows =
      k->shape[1] < MLA_SM90_BLOCK ? (uint32_t)k->shape[1] : MLA_SM90_BLOCK;
  const uint32_t k_box[3] = {64, rows, 1};
  mla_status st =
      mla_tensor_map(q_map, q->data, 2, q_size, q_stride, q_box, c->err);
  if (st != MLA_OK) return st;
  return mla_tensor_map(k_map, k->data, 3, k_size, k_stride, k_box, c->err);
}

static void fill_outputs(const mla_gpu_call *c, mla_sm90_args *a) {
  const mla_tensor *out = mla_arg(c->args, MLA_T_OUT);
  const mla_tensor *lse = mla_arg(c->args, MLA_T_LSE);
  const mla_tensor *sink = mla_arg(c->args, MLA_T_SINK);
  a->out = out->data;
  a->o_token = out->stride[0];
  a->o_head = out->stride[1];
  a->out_dtype = out->dtype;
  if (lse) {
    a->lse = (float *)lse->data;
    a->lse_token = lse->stride[0];
    a->lse_head = lse->stride[1];
    a->lse_base2 = (c->p->flags & MLA_LSE_BASE2) != 0;
  }
  if (sink) {
    a->sink = (const float *)sink->data;
    a->sink_step = sink->stride[0];
  }
}

static mla_sm90_args make_args(const mla_gpu_call *c) {
  const mla_tensor *lens = mla_arg(c->args, MLA_T_SEQ_LENS);
  const mla_tensor *start = mla_arg(c->args, MLA_T_QUERY_START_LOC);
  const mla_tensor *table = mla_arg(c->args, MLA_T_BLOCK_TABLE);
  mla_sm90_args a = {};
  a.plan.seq_lens = (const int32_t *)lens->data;
  a.plan.seq_lens_step = lens->stride[0];
  a.plan.start = (const int32_t *)start->data;
  a.plan.start_step = start->stride[0];
  a.plan.requests = (int)lens->shape[0];
  a.plan.parts = parts_of(c->plan->handle, m_blocks_of(c->p, &c->plan->limits));
  a.plan.min_blocks = 2;
  a.table = (const int32_t *)table->data;
  a.table_row = table->stride[0];
  a.heads = c->p->num_heads;
  a.page = c->p->block_size;
  a.causal = (c->p->flags & MLA_CAUSAL) != 0;
  a.scale = (float)(c->p->scale * 1.4426950408889634);
  a.part_out = (float *)c->workspace;
  a.part_lse =
      a.part_out + 512 * scratch_rows(c->plan->handle, c->p, &c->plan->limits);
  a.splits = (mla_plan_split *)(a.part_lse + scratch_rows(c->plan->handle, c->p,
                                                          &c->plan->limits));
  fill_outputs(c, &a);
  return a;
}

static mla_status launch(const mla_gpu_call *c, const mla_sm90_args &a,
                         const CUtensorMap &q_map, const CUtensorMap &k_map) {
  const int m_blocks = m_blocks_of(c->p, &c->plan->limits);
  const int rows = (int)(c->p->num_heads * c->plan->limits.max_query_len);
  const unsigned parts = (unsigned)a.plan.parts;
  cudaLaunchAttribute early;
  cudaLaunchConfig_t config = mla_sm90_early(c, dim3((unsigned)m_blocks, parts),
                                             256, SM90_BYTES, &early);
  mla_status st = mla_gpu_check(
      c->err,
      cudaLaunchKernelEx(&config, mla_decode_bf16_sm90, q_map, k_map, a),
      "decode_bf16_sm90");
  if (st != MLA_OK) return st;
  /* Few requests: many pieces each, so more warps a row. */
  const int wide = a.plan.parts >= 4 * a.plan.requests;
  const unsigned entries =
      a.plan.requests < a.plan.parts ? (unsigned)a.plan.requests : parts;
  config =
      mla_sm90_early(c, dim3((unsigned)(wide ? rows : (rows + 7) / 8), entries),
                     256, 0, &early);
  return mla_gpu_check(
      c->err,
      cudaLaunchKernelEx(&config, mla_decode_merge_sm90, a, m_blocks, wide),
      "decode_merge_sm90");
}

static void describe(const mla_problem *p, mla_answer *answer) {
  (void)p;
  snprintf(answer->kernel, sizeof answer->kernel, "decode_bf16_sm90");
  answer->determinism = MLA_DETERMINISM_RUN_TO_RUN;
  answer->numerics.u_p = 0x1p-8;
  answer->numerics.flushes_subnormals = 1; /* of P, by ex2.approx.ftz */
}

static mla_status run(const mla_gpu_call *c) {
  CUtensorMap q_map, k_map;
  mla_status st = make_maps(c, &q_map, &k_map);
  if (st == MLA_OK)
    st = mla_gpu_shared(c, (const void *)mla_decode_bf16_sm90, SM90_BYTES,
                        "decode_bf16_sm90");
  return st == MLA_OK ? launch(c, make_args(c), q_map, k_map) : st;
}

const mla_gpu_fast mla_cuda_decode_sm90 = {serves, workspace, describe, takes,
                                           run};
