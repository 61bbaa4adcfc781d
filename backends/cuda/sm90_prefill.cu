/*
 * The host side of prefill on sm_90a: keys and values are up-projected into
 * the workspace, then attended.
 */
#include <stdio.h>

#include "cuda_fast.h"
#include "mla_prefill_bf16_sm90.cuh"
#include "sm90_launch.h"
#include "sm90_product.h"

extern "C" {
#include "tensor.h"
}

/* The workspace: a counter, then [tokens][heads][128 of key, 128 of value]. */
enum { UP_WIDTH = 256, COUNTER_BYTES = 256, SECTION_BYTES = 32 << 20 };

static unsigned char *up_of(const mla_gpu_call *c) {
  return c->workspace + COUNTER_BYTES;
}

static int serves(const mla_handle *h, const mla_problem *p,
                  const mla_limits *l) {
  const uint64_t taken = MLA_CAUSAL | MLA_RETURN_LSE | MLA_LSE_BASE2 |
                         MLA_HAS_SINK | MLA_BATCH_INVARIANT;
  (void)l;
  return h->major == 9 && h->minor == 0 && p->op == MLA_OP_PREFILL &&
         !(p->flags & ~taken) && p->q_dtype == MLA_BF16 &&
         p->weight_dtype == MLA_BF16 && p->qk_nope_head_dim == 128 &&
         p->qk_rope_head_dim == 64 && p->v_head_dim == 128 &&
         p->kv_lora_rank % 64 == 0 && p->logits_soft_cap == 0 &&
         mla_tensor_map_encoder() != NULL;
}

static uint64_t workspace(const mla_handle *h, const mla_problem *p,
                          const mla_limits *l) {
  (void)h;
  return COUNTER_BYTES +
         (uint64_t)l->tokens * (uint64_t)p->num_heads * UP_WIDTH * 2;
}

static void describe(const mla_problem *p, mla_answer *answer) {
  (void)p;
  snprintf(answer->kernel, sizeof answer->kernel, "prefill_bf16_sm90");
  answer->determinism = MLA_DETERMINISM_BATCH_INVARIANT;
  answer->workspace_alignment = 256;
  answer->numerics.u_p = answer->numerics.u_mid = 0x1p-8;
  answer->numerics.flushes_subnormals = 1; /* of P, by ex2.approx.ftz */
}

/* The copy engine wants 16-byte steps. */
static int takes(const mla_gpu_call *c) {
  static const int inputs[] = {MLA_T_Q, MLA_T_KV_C, MLA_T_K_PE,
                               MLA_T_KV_B_PROJ};
  const mla_tensor *out = mla_arg(c->args, MLA_T_OUT);
  for (int slot : inputs)
    if (!mla_sm90_even_walk(mla_arg(c->args, slot))) return 0;
  return out->stride[0] % 2 == 0 && out->stride[1] % 2 == 0 &&
         (uintptr_t)out->data % 8 == 0 && (uintptr_t)c->workspace % 16 == 0;
}

/* [tokens][heads][width]: 128 tokens of a head. */
static mla_status map_heads(const void *data, int64_t width, int64_t heads,
                            int64_t tokens, int64_t head_step,
                            int64_t token_step, CUtensorMap *map,
                            mla_error *err) {
  const uint64_t size[3] = {(uint64_t)width, (uint64_t)heads, (uint64_t)tokens};
  const uint64_t stride[2] = {(uint64_t)head_step * 2,
                              (uint64_t)token_step * 2};
  const uint32_t box[3] = {64, 1, 128};
  return mla_tensor_map(map, data, 3, size, stride, box, err);
}

/* keys and values = kv_c x kv_b_proj^T. */
static mla_status up_project(const mla_gpu_call *c) {
  const mla_tensor *kv_c = mla_arg(c->args, MLA_T_KV_C);
  const mla_tensor *w = mla_arg(c->args, MLA_T_KV_B_PROJ);
  const int64_t shape[2] = {kv_c->shape[0], w->shape[0]};
  const mla_tensor up = mla_tensor_dense(up_of(c), MLA_BF16, 2, shape);
  return mla_sm90_product(c, kv_c, w, &up, (int *)c->workspace);
}

/* Heads whose keys and values stay in the second-level cache together. */
static int section_of(const mla_gpu_call *c) {
  const int64_t head = c->plan->limits.max_query_len * (UP_WIDTH + 64) * 2;
  int section = 1;
  while (2 * section <= c->p->num_heads &&
         2 * section * head <= (int64_t)SECTION_BYTES)
    section *= 2;
  return section;
}

static mla_prefill_sm90_args make_args(const mla_gpu_call *c) {
  const mla_tensor *start = mla_arg(c->args, MLA_T_QUERY_START_LOC);
  mla_prefill_sm90_args a = {};
  a.plan.start = (const int32_t *)start->data;
  a.plan.start_step = start->stride[0];
  a.plan.requests = (int)start->shape[0] - 1;
  a.plan.heads = c->p->num_heads;
  a.plan.section = section_of(c);
  a.counter = (int *)c->workspace;
  a.causal = (c->p->flags & MLA_CAUSAL) != 0;
  a.scale = (float)(c->p->scale * 1.4426950408889634);
  mla_sm90_outputs(c, &a);
  return a;
}

static mla_status attend(const mla_gpu_call *c) {
  const mla_tensor *q = mla_arg(c->args, MLA_T_Q);
  const mla_tensor *rope = mla_arg(c->args, MLA_T_K_PE);
  const int64_t heads = c->p->num_heads, tokens = q->shape[0];
  CUtensorMap q_map, up_map, rope_map;
  mla_status st = map_heads(q->data, q->shape[2], heads, tokens, q->stride[1],
                            q->stride[0], &q_map, c->err);
  if (st == MLA_OK)
    st = map_heads(up_of(c), UP_WIDTH, heads, tokens, UP_WIDTH,
                   UP_WIDTH * heads, &up_map, c->err);
  if (st == MLA_OK) st = mla_sm90_map_rows(rope, 128, &rope_map, c->err);
  if (st == MLA_OK)
    st = mla_gpu_shared(c, (const void *)mla_prefill_bf16_sm90, PREFILL_BYTES,
                        "prefill_bf16_sm90");
  if (st != MLA_OK) return st;
  cudaLaunchAttribute early;
  const cudaLaunchConfig_t config =
      mla_sm90_early(c, dim3((unsigned)c->plan->handle->units), PREFILL_THREADS,
                     PREFILL_BYTES, &early);
  return mla_gpu_check(c->err,
                       cudaLaunchKernelEx(&config, mla_prefill_bf16_sm90, q_map,
                                          up_map, rope_map, make_args(c)),
                       "prefill_bf16_sm90");
}

static mla_status run(const mla_gpu_call *c) {
  mla_status st = up_project(c);
  return st == MLA_OK ? attend(c) : st;
}

const mla_gpu_fast mla_cuda_prefill_sm90 = {serves, workspace, describe, takes,
                                            run};
