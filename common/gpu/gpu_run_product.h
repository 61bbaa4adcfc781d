/*
 * gpu_run_product.h - the products on the host side: strides for one kernel.
 */
#ifndef MLA_GPU_RUN_PRODUCT_H
#define MLA_GPU_RUN_PRODUCT_H

#include "gpu_host.h"
#include "gpu_product.h"
#include "gpu_run_copy.h"

static mla_status mla_gpu_product(const mla_gpu_call *c,
                                  const mla_product_args &p, int64_t batch) {
  const int64_t tile = MLA_PRODUCT_TILE, rows = 65535 * tile;
  if (!p.m || !p.n || !batch) return MLA_OK;
  for (int64_t m = 0; m < p.m; m += rows) {
    mla_product_args part = p;
    part.m = p.m - m < rows ? p.m - m : rows;
    part.a_offset += m * p.a_m;
    part.out_offset += m * p.o_m;
    part.limit_base += m;
    dim3 grid((unsigned)((p.n + tile - 1) / tile),
              (unsigned)((part.m + tile - 1) / tile), (unsigned)batch);
    MLA_LAUNCH(mla_product_tile, grid, dim3(MLA_PRODUCT_THREADS), 0, c->stream,
               part);
    mla_status st = mla_gpu_launched(c, "product_tile");
    if (st != MLA_OK) return st;
  }
  return MLA_OK;
}

/* a[m,h,k] x w[h,n,k] -> out[m,h,n], each side's k where it lies. */
static mla_product_args mla_gpu_per_head(const mla_tensor *a,
                                         const mla_tensor *w, int w_transposed,
                                         const mla_tensor *out) {
  mla_product_args p = {};
  p.a = a->data;
  p.a_dtype = a->dtype;
  p.w = w->data;
  p.w_dtype = w->dtype;
  p.out = out->data;
  p.out_dtype = out->dtype;
  p.a_batch = a->stride[1];
  p.a_m = a->stride[0];
  p.a_k = a->stride[2];
  p.w_batch = w->stride[0];
  p.w_n = w->stride[w_transposed ? 2 : 1];
  p.w_k = w->stride[w_transposed ? 1 : 2];
  p.o_batch = out->stride[1];
  p.o_m = out->stride[0];
  p.o_n = out->stride[2];
  p.m = a->shape[0];
  p.n = out->shape[2];
  p.k = a->shape[2];
  return p;
}

static mla_status mla_gpu_q_absorb(const mla_gpu_call *c) {
  const mla_tensor *q = mla_arg(c->args, MLA_T_Q_NOPE);
  return mla_gpu_product(c,
                         mla_gpu_per_head(q, mla_arg(c->args, MLA_T_W_UK), 1,
                                          mla_arg(c->args, MLA_T_Q_LATENT)),
                         q->shape[1]);
}

static mla_status mla_gpu_v_expand(const mla_gpu_call *c) {
  const mla_tensor *o = mla_arg(c->args, MLA_T_O_LATENT);
  return mla_gpu_product(c,
                         mla_gpu_per_head(o, mla_arg(c->args, MLA_T_W_UV), 0,
                                          mla_arg(c->args, MLA_T_OUT)),
                         o->shape[1]);
}

static mla_status mla_gpu_matmul(const mla_gpu_call *c) {
  const mla_tensor *a = mla_arg(c->args, MLA_T_A);
  const mla_tensor *b = mla_arg(c->args, MLA_T_B);
  const mla_tensor *out = mla_arg(c->args, MLA_T_OUT);
  mla_product_args p = {};
  p.a = a->data;
  p.a_dtype = a->dtype;
  p.w = b->data;
  p.w_dtype = b->dtype;
  p.out = out->data;
  p.out_dtype = out->dtype;
  p.a_m = a->stride[0];
  p.a_k = a->stride[1];
  p.w_n = b->stride[0];
  p.w_k = b->stride[1];
  p.o_m = out->stride[0];
  p.o_n = out->stride[1];
  p.m = out->shape[0];
  p.n = out->shape[1];
  p.k = a->shape[1];
  return mla_gpu_product(c, p, 1);
}

/* Rows [first, first + to->shape[1]) of each head of kv_b_proj. */
static mla_status mla_gpu_split_weights(const mla_gpu_call *c,
                                        const mla_tensor *to, int64_t first) {
  const mla_tensor *w = mla_arg(c->args, MLA_T_KV_B_PROJ);
  const int64_t head = c->p->qk_nope_head_dim + c->p->v_head_dim;
  mla_copy_args x = {};
  x.in = w->data;
  x.in_dtype = w->dtype;
  x.in_offset = first * w->stride[0];
  x.in_i = head * w->stride[0];
  x.in_j = w->stride[0];
  x.in_k = w->stride[1];
  x.out = to->data;
  x.out_dtype = to->dtype;
  x.out_i = to->stride[0];
  x.out_j = to->stride[1];
  x.out_k = to->stride[2];
  x.count = to->shape[2];
  return mla_gpu_copy(c, x, to->shape[0], to->shape[1]);
}

/* w_q_uk[i,h,l] = sum_p q_b[h,p,i] * w_uk[h,p,l]; w_qr: rope rows of q_b. */
static mla_status mla_gpu_fuse_q(const mla_gpu_call *c) {
  const mla_tensor *kv = mla_arg(c->args, MLA_T_KV_B_PROJ);
  const mla_tensor *q = mla_arg(c->args, MLA_T_Q_B_PROJ);
  const mla_tensor *out = mla_arg(c->args, MLA_T_W_Q_UK);
  const mla_tensor *rope = mla_arg(c->args, MLA_T_W_QR);
  const int64_t nope = c->p->qk_nope_head_dim, r = c->p->qk_rope_head_dim;
  const int64_t head = nope + c->p->v_head_dim;
  mla_product_args p = {};
  p.a = q->data;
  p.a_dtype = q->dtype;
  p.a_batch = (nope + r) * q->stride[0];
  p.a_m = q->stride[1];
  p.a_k = q->stride[0];
  p.w = kv->data;
  p.w_dtype = kv->dtype;
  p.w_batch = head * kv->stride[0];
  p.w_n = kv->stride[1];
  p.w_k = kv->stride[0];
  p.out = out->data;
  p.out_dtype = out->dtype;
  p.o_batch = out->stride[1];
  p.o_m = out->stride[0];
  p.o_n = out->stride[2];
  p.m = out->shape[0];
  p.n = out->shape[2];
  p.k = nope;
  mla_status st = mla_gpu_product(c, p, out->shape[1]);
  if (st != MLA_OK) return st;
  mla_copy_args x = {};
  x.in = q->data;
  x.in_dtype = q->dtype;
  x.in_offset = nope * q->stride[0];
  x.in_i = q->stride[1];
  x.in_j = (nope + r) * q->stride[0];
  x.in_k = q->stride[0];
  x.out = rope->data;
  x.out_dtype = rope->dtype;
  x.out_i = rope->stride[0];
  x.out_j = rope->stride[1];
  x.out_k = rope->stride[2];
  x.count = r;
  return mla_gpu_copy(c, x, rope->shape[0], rope->shape[1]);
}

/* w_uv_o[h,l,x] = sum_v w_uv[h,v,l] * o_proj[x,h*V+v]. */
static mla_status mla_gpu_fuse_o(const mla_gpu_call *c) {
  const mla_tensor *kv = mla_arg(c->args, MLA_T_KV_B_PROJ);
  const mla_tensor *o = mla_arg(c->args, MLA_T_O_PROJ);
  const mla_tensor *out = mla_arg(c->args, MLA_T_W_UV_O);
  const int64_t nope = c->p->qk_nope_head_dim, v = c->p->v_head_dim;
  mla_product_args p = {};
  p.a = kv->data;
  p.a_dtype = kv->dtype;
  p.a_offset = nope * kv->stride[0];
  p.a_batch = (nope + v) * kv->stride[0];
  p.a_m = kv->stride[1];
  p.a_k = kv->stride[0];
  p.w = o->data;
  p.w_dtype = o->dtype;
  p.w_batch = v * o->stride[1];
  p.w_n = o->stride[0];
  p.w_k = o->stride[1];
  p.out = out->data;
  p.out_dtype = out->dtype;
  p.o_batch = out->stride[0];
  p.o_m = out->stride[1];
  p.o_n = out->stride[2];
  p.m = out->shape[1];
  p.n = out->shape[2];
  p.k = v;
  return mla_gpu_product(c, p, out->shape[0]);
}

static mla_status mla_gpu_absorb(const mla_gpu_call *c) {
  mla_status st = mla_gpu_split_weights(c, mla_arg(c->args, MLA_T_W_UK), 0);
  if (st == MLA_OK)
    st = mla_gpu_split_weights(c, mla_arg(c->args, MLA_T_W_UV),
                               c->p->qk_nope_head_dim);
  if (st == MLA_OK && (c->p->flags & MLA_FUSED_Q)) st = mla_gpu_fuse_q(c);
  if (st == MLA_OK && (c->p->flags & MLA_FUSED_O)) st = mla_gpu_fuse_o(c);
  return st;
}

#endif
