/*
 * sm90_prefill_host.h - what the host sides of sm_90a's prefill share, with
 * context and without: what they serve, the map of heads, the launch.
 */
#ifndef MLA_SM90_PREFILL_HOST_H
#define MLA_SM90_PREFILL_HOST_H

#include <stdio.h>

#include "cuda_fast.h"
#include "mla_prefill_bf16_sm90.cuh"
#include "sm90_even.h"
#include "sm90_launch.h"
#include "sm90_product.h"

/* Up-projected: [slots][heads][128 of key, 128 of value]. */
enum { MLA_SM90_UP = 256, MLA_SM90_COUNTER_BYTES = 256 };

static inline int mla_sm90_prefills(const mla_handle *h, const mla_problem *p) {
  const uint64_t taken = MLA_CAUSAL | MLA_RETURN_LSE | MLA_LSE_BASE2 |
                         MLA_HAS_SINK | MLA_BATCH_INVARIANT | MLA_CONTEXT;
  return h->major == 9 && h->minor == 0 && p->op == MLA_OP_PREFILL &&
         !(p->flags & ~taken) && p->q_dtype == SM90_TYPE &&
         p->weight_dtype == SM90_TYPE && p->qk_nope_head_dim == 128 &&
         p->qk_rope_head_dim == 64 && p->v_head_dim == 128 &&
         p->kv_lora_rank % 64 == 0 && p->logits_soft_cap == 0 &&
         mla_tensor_map_encoder() != NULL;
}

static inline void mla_sm90_prefill_describe(const mla_problem *p,
                                             mla_answer *answer) {
  snprintf(answer->kernel, sizeof answer->kernel,
           "prefill_" MLA_SM90_TEXT "_sm90");
  mla_sm90_even_promise(p, answer);
  answer->numerics.u_p = answer->numerics.u_mid = SM90_U;
  answer->numerics.flushes_subnormals = 1; /* of P, by ex2.approx.ftz */
}

static inline int mla_sm90_prefill_takes(const mla_gpu_call *c) {
  static const int inputs[] = {MLA_T_Q, MLA_T_KV_C, MLA_T_K_PE,
                               MLA_T_KV_B_PROJ};
  if (c->p->flags & MLA_BATCH_INVARIANT) return 1;
  for (int slot : inputs)
    if (!mla_sm90_even_walk(mla_arg(c->args, slot))) return 0;
  return 1;
}

/* What is read by the copy engine, which wants 16-byte steps. */
typedef struct mla_sm90_prefill_inputs {
  mla_tensor q, kv_c, k_pe, w;
} mla_sm90_prefill_inputs;

/* Bytes of the workspace for copies of inputs. */
static inline uint64_t mla_sm90_prefill_even(const mla_problem *p,
                                             const mla_limits *l) {
  const int64_t heads = p->num_heads;
  if (!(p->flags & MLA_BATCH_INVARIANT)) return 0;
  return mla_sm90_even_bytes(l->tokens, heads * 192) +
         mla_sm90_even_bytes(l->tokens, p->kv_lora_rank) +
         mla_sm90_even_bytes(l->tokens, 64) +
         mla_sm90_even_bytes(heads * MLA_SM90_UP, p->kv_lora_rank);
}

static inline mla_status mla_sm90_prefill_inputs_of(
    const mla_gpu_call *c, unsigned char *at, mla_sm90_prefill_inputs *x) {
  mla_status st = mla_sm90_even_tensor(c, MLA_T_Q, &at, &x->q);
  if (st == MLA_OK) st = mla_sm90_even_tensor(c, MLA_T_KV_C, &at, &x->kv_c);
  if (st == MLA_OK) st = mla_sm90_even_tensor(c, MLA_T_K_PE, &at, &x->k_pe);
  if (st == MLA_OK) st = mla_sm90_even_tensor(c, MLA_T_KV_B_PROJ, &at, &x->w);
  return st;
}

/* [rows][heads][width]: 128 rows of a head. */
static inline mla_status mla_sm90_map_heads(const mla_tensor *t,
                                            CUtensorMap *map, mla_error *err) {
  const uint64_t size[3] = {(uint64_t)t->shape[2], (uint64_t)t->shape[1],
                            (uint64_t)t->shape[0]};
  const uint64_t stride[2] = {(uint64_t)t->stride[1] * 2,
                              (uint64_t)t->stride[0] * 2};
  const uint32_t box[3] = {64, 1, 128};
  return mla_tensor_map(map, t->data, 3, size, stride, box, MLA_TENSOR_PAIRS,
                        err);
}

/* Heads whose keys and values, so many of a request, stay in the second-level
   cache together. */
static inline int mla_sm90_prefill_section(int64_t keys, int heads) {
  const int64_t head = keys * (MLA_SM90_UP + 64) * 2, most = 32 << 20;
  int section = 1;
  while (2 * section <= heads && 2 * section * head <= most) section *= 2;
  return section;
}

static inline mla_prefill_sm90_args mla_sm90_prefill_args(
    const mla_gpu_call *c) {
  const mla_tensor *start = mla_arg(c->args, MLA_T_QUERY_START_LOC);
  mla_prefill_sm90_args a = {};
  a.plan.start = (const int32_t *)start->data;
  a.plan.start_step = start->stride[0];
  a.plan.requests = (int)start->shape[0] - 1;
  a.plan.heads = c->p->num_heads;
  a.plan.section =
      mla_sm90_prefill_section(c->plan->limits.max_query_len, c->p->num_heads);
  a.counter = (int *)c->workspace;
  a.causal = (c->p->flags & MLA_CAUSAL) != 0;
  a.scale = (float)(c->p->scale * 1.4426950408889634);
  mla_sm90_outputs(c, &a);
  const mla_tensor *out = mla_arg(c->args, MLA_T_OUT);
  const uint64_t walk = (uint64_t)out->stride[0] | (uint64_t)out->stride[1] | 8;
  const int wide = out->dtype == MLA_F32;
  a.out_pairs = walk % 2 == 0 && (uintptr_t)out->data % 8 == 0;
  a.out_chunks = !wide && walk % 8 == 0 && (uintptr_t)out->data % 16 == 0;
  return a;
}

/* 128 rows of 64 columns. */
static inline mla_status mla_sm90_map_rope(const mla_tensor *t,
                                           CUtensorMap *map, mla_error *err) {
  const uint64_t size[2] = {(uint64_t)t->shape[1], (uint64_t)t->shape[0]};
  const uint64_t stride[1] = {(uint64_t)t->stride[0] * 2};
  const uint32_t box[2] = {64, 128};
  return mla_tensor_map(map, t->data, 2, size, stride, box, MLA_TENSOR_PAIRS,
                        err);
}

/* Rows of q over keys and values in `up`, their rope columns in `rope`. */
template <int Parts>
static inline mla_status mla_sm90_prefill_attend(const mla_gpu_call *c,
                                                 const mla_prefill_sm90_args &a,
                                                 const mla_tensor *q,
                                                 const mla_tensor *up,
                                                 const mla_tensor *rope) {
  const auto kernel = MLA_SM90_NAME(mla_prefill)<Parts>;
  static const char name[] = "prefill_" MLA_SM90_TEXT "_sm90";
  CUtensorMap q_map, up_map, rope_map;
  mla_status st = mla_sm90_map_heads(q, &q_map, c->err);
  if (st == MLA_OK) st = mla_sm90_map_heads(up, &up_map, c->err);
  if (st == MLA_OK) st = mla_sm90_map_rope(rope, &rope_map, c->err);
  if (st == MLA_OK)
    st = mla_gpu_shared(c, (const void *)kernel, PREFILL_BYTES, name);
  if (st != MLA_OK) return st;
  cudaLaunchAttribute early;
  const cudaLaunchConfig_t config =
      mla_sm90_early(c, dim3((unsigned)c->plan->handle->units), PREFILL_THREADS,
                     PREFILL_BYTES, &early);
  return mla_gpu_check(
      c->err, cudaLaunchKernelEx(&config, kernel, q_map, up_map, rope_map, a),
      name);
}

#endif
