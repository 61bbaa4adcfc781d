/*
 * The host side of mla_product_bf16_sm90.cuh, and matmul by it.
 */
#include <stdio.h>

#include "cuda_fast.h"
#include "mla_product_bf16_sm90.cuh"
#include "sm90_even.h"
#include "sm90_launch.h"
#include "sm90_product.h"

template <int Columns>
static mla_status launch(const mla_gpu_call *c, const mla_sm90_product &t,
                         int *counter, const int *live) {
  const auto kernel = MLA_SM90_NAME(mla_product)<Columns>;
  static const char name[] = "product_" MLA_SM90_TEXT "_sm90";
  CUtensorMap a, b, out;
  mla_status st =
      mla_sm90_map_rows(t.a, t.k, t, t.a_head, t.a_row, 128, &a, c->err);
  if (st == MLA_OK)
    st = mla_sm90_map_weights(t, 128, MLA_TENSOR_PAIRS, &b, c->err);
  if (st == MLA_OK)
    st = mla_sm90_map_rows(t.out, t.n, t, t.o_head, t.o_row, 64, &out, c->err);
  if (st == MLA_OK)
    st = mla_gpu_shared(c, (const void *)kernel, PRODUCT_BYTES, name);
  if (st != MLA_OK) return st;
  const mla_product_sm90_args args = {(int)t.m,     (int)t.n, (int)t.k,
                                      (int)t.heads, counter,  live};
  const unsigned units = (unsigned)c->plan->handle->units;
  kernel<<<units, PRODUCT_THREADS, PRODUCT_BYTES, c->stream>>>(a, b, out, args);
  return mla_gpu_launched(c, name);
}

mla_status MLA_SM90_NAME(mla_launch_product)(const mla_gpu_call *c,
                                             const mla_sm90_product &t,
                                             int *counter, const int *live) {
  return t.columns ? launch<1>(c, t, counter, live)
                   : launch<0>(c, t, counter, live);
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

/* With few rows weights are all that counts; and where the other kernel would
   leave most of the card idle, this one shares K. Who asks for invariance gets
   one kernel for any number of rows. */
static int is_thin(const mla_gpu_call *c) {
  const mla_tensor *out = mla_arg(c->args, MLA_T_OUT);
  const int64_t tiles = ((out->shape[0] + PRODUCT_M - 1) / PRODUCT_M) *
                        ((out->shape[1] + PRODUCT_N - 1) / PRODUCT_N);
  return !(c->p->flags & MLA_BATCH_INVARIANT) &&
         (out->shape[0] <= 32 || 2 * tiles <= c->plan->handle->units);
}

static mla_status run(const mla_gpu_call *c) {
  const mla_tensor *out = mla_arg(c->args, MLA_T_OUT);
  if (is_thin(c))
    return MLA_SM90_NAME(mla_launch_thin)(
        c, mla_sm90_product_of(mla_arg(c->args, MLA_T_A),
                               mla_arg(c->args, MLA_T_B), out));
  unsigned char *at = c->workspace;
  mla_tensor a, b;
  mla_status st = mla_sm90_even_tensor(c, MLA_T_A, &at, &a);
  if (st == MLA_OK) st = mla_sm90_even_tensor(c, MLA_T_B, &at, &b);
  if (st != MLA_OK) return st;
  const mla_tensor to = mla_sm90_even_place(*out, &at);
  st = MLA_SM90_NAME(mla_launch_product)(c, mla_sm90_product_of(&a, &b, &to),
                                         NULL, NULL);
  if (st != MLA_OK || to.data == out->data) return st;
  return mla_sm90_copy_tensor(c, to, *out);
}

const mla_gpu_fast MLA_SM90_NAME(mla_cuda_product) = {serves, workspace,
                                                      describe, takes, run};
