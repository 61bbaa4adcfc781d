/*
 * The host side of mla_product_bf16_sm90.cuh, and matmul by it.
 */
#include <stdio.h>

#include "cuda_fast.h"
#include "mla_product_bf16_sm90.cuh"
#include "sm90_even.h"
#include "sm90_launch.h"
#include "sm90_product.h"

mla_status MLA_SM90_NAME(mla_launch_product)(const mla_gpu_call *c,
                                             const mla_tensor *a,
                                             const mla_tensor *b,
                                             const mla_tensor *out,
                                             int *counter, const int *live) {
  const auto kernel = MLA_SM90_NAME(mla_product);
  static const char name[] = "product_" MLA_SM90_TEXT "_sm90";
  CUtensorMap a_map, b_map, out_map;
  mla_status st = mla_sm90_map_rows(a, 128, &a_map, c->err);
  if (st == MLA_OK) st = mla_sm90_map_rows(b, 128, &b_map, c->err);
  if (st == MLA_OK) st = mla_sm90_map_rows(out, 64, &out_map, c->err);
  if (st == MLA_OK)
    st = mla_gpu_shared(c, (const void *)kernel, PRODUCT_BYTES, name);
  if (st != MLA_OK) return st;
  const mla_product_sm90_args args = {(int)out->shape[0], (int)out->shape[1],
                                      (int)a->shape[1], counter, live};
  const unsigned units = (unsigned)c->plan->handle->units;
  kernel<<<units, PRODUCT_THREADS, PRODUCT_BYTES, c->stream>>>(a_map, b_map,
                                                               out_map, args);
  return mla_gpu_launched(c, name);
}

/* ----------------------------------------------------------------- matmul */

static int serves(const mla_handle *h, const mla_problem *p,
                  const mla_limits *l) {
  (void)l;
  return h->major == 9 && h->minor == 0 && p->op == MLA_OP_MATMUL &&
         p->q_dtype == SM90_TYPE && p->weight_dtype == SM90_TYPE &&
         p->out_dtype == SM90_TYPE && p->q_lora_rank % 64 == 0 &&
         p->hidden_size % 8 == 0 && mla_tensor_map_encoder() != NULL;
}

static uint64_t workspace(const mla_handle *h, const mla_problem *p,
                          const mla_limits *l) {
  const int64_t m = l->tokens, n = p->hidden_size, k = p->q_lora_rank;
  (void)h;
  if (!(p->flags & MLA_BATCH_INVARIANT)) return 0;
  return mla_sm90_even_bytes(m, k) + mla_sm90_even_bytes(n, k) +
         mla_sm90_even_bytes(m, n);
}

static void describe(const mla_problem *p, mla_answer *answer) {
  snprintf(answer->kernel, sizeof answer->kernel,
           "product_" MLA_SM90_TEXT "_sm90");
  mla_sm90_even_promise(p, answer);
}

static int takes(const mla_gpu_call *c) {
  return (c->p->flags & MLA_BATCH_INVARIANT) ||
         (mla_sm90_even_walk(mla_arg(c->args, MLA_T_A)) &&
          mla_sm90_even_walk(mla_arg(c->args, MLA_T_B)) &&
          mla_sm90_even_walk(mla_arg(c->args, MLA_T_OUT)));
}

static mla_status run(const mla_gpu_call *c) {
  const mla_tensor *out = mla_arg(c->args, MLA_T_OUT);
  unsigned char *at = c->workspace;
  mla_tensor a, b;
  mla_status st = mla_sm90_even_tensor(c, MLA_T_A, &at, &a);
  if (st == MLA_OK) st = mla_sm90_even_tensor(c, MLA_T_B, &at, &b);
  if (st != MLA_OK) return st;
  const mla_tensor to = mla_sm90_even_place(*out, &at);
  st = MLA_SM90_NAME(mla_launch_product)(c, &a, &b, &to, NULL, NULL);
  if (st != MLA_OK || to.data == out->data) return st;
  return mla_sm90_copy_tensor(c, to, *out);
}

const mla_gpu_fast MLA_SM90_NAME(mla_cuda_product) = {serves, workspace,
                                                      describe, takes, run};
