/*
 * The host side of prefill without context on sm_90a: keys and values are
 * up-projected into the workspace, then attended.
 */
#include "sm90_prefill_host.h"

static int serves(const mla_handle *h, const mla_problem *p,
                  const mla_limits *l) {
  (void)l;
  return mla_sm90_prefills(h, p) && !(p->flags & MLA_CONTEXT);
}

static uint64_t workspace(const mla_handle *h, const mla_problem *p,
                          const mla_limits *l) {
  (void)h;
  return MLA_SM90_COUNTER_BYTES + mla_sm90_prefill_even(p, l) +
         (uint64_t)l->tokens * (uint64_t)p->num_heads * MLA_SM90_UP * 2;
}

static mla_status run(const mla_gpu_call *c) {
  mla_sm90_prefill_inputs x;
  unsigned char *at = c->workspace + MLA_SM90_COUNTER_BYTES;
  mla_status st = mla_sm90_prefill_inputs_of(c, at, &x);
  if (st != MLA_OK) return st;
  at += mla_sm90_prefill_even(c->p, &c->plan->limits);
  const int64_t heads = c->p->num_heads, tokens = x.kv_c.shape[0];
  const int64_t flat[2] = {tokens, x.w.shape[0]};
  const int64_t shape[3] = {tokens, heads, MLA_SM90_UP};
  const mla_tensor rows = mla_tensor_dense(at, SM90_TYPE, 2, flat);
  const mla_tensor up = mla_tensor_dense(at, SM90_TYPE, 3, shape);
  const mla_prefill_sm90_args a = mla_sm90_prefill_args(c);
  st = MLA_SM90_NAME(mla_launch_product)(
      c, mla_sm90_product_of(&x.kv_c, &x.w, &rows), a.counter, NULL);
  if (st != MLA_OK) return st;
  return mla_sm90_prefill_attend<0>(c, a, &x.q, &up, &x.k_pe);
}

const mla_gpu_fast MLA_SM90_NAME(mla_cuda_prefill) = {
    serves, workspace, mla_sm90_prefill_describe, mla_sm90_prefill_takes, run};
