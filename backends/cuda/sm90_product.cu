/*
 * The host side of mla_product_bf16_sm90, and matmul by it.
 */
#include <stdio.h>

#include "sm90_product.h"

#include "cuda_fast.h"
#include "mla_product_bf16_sm90.cuh"
#include "sm90_launch.h"

mla_status mla_sm90_map_rows(const mla_tensor *t, uint32_t rows,
                             CUtensorMap *map, mla_error *err) {
  const uint64_t size[2] = {(uint64_t)t->shape[1], (uint64_t)t->shape[0]};
  const uint64_t stride[1] = {(uint64_t)t->stride[0] * 2};
  const uint32_t box[2] = {64, rows};
  return mla_tensor_map(map, t->data, 2, size, stride, box, err);
}

int mla_sm90_even_walk(const mla_tensor *t) {
  for (int axis = 0; axis + 1 < t->rank; axis++)
    if (t->stride[axis] % 8) return 0;
  return (uintptr_t)t->data % 16 == 0;
}

mla_status mla_sm90_product(const mla_gpu_call *c, const mla_tensor *a,
                            const mla_tensor *b, const mla_tensor *out,
                            int *counter, const int *live) {
  CUtensorMap a_map, b_map, out_map;
  mla_status st = mla_sm90_map_rows(a, 128, &a_map, c->err);
  if (st == MLA_OK) st = mla_sm90_map_rows(b, 128, &b_map, c->err);
  if (st == MLA_OK) st = mla_sm90_map_rows(out, 64, &out_map, c->err);
  if (st == MLA_OK)
    st = mla_gpu_shared(c, (const void *)mla_product_bf16_sm90, PRODUCT_BYTES,
                        "product_bf16_sm90");
  if (st != MLA_OK) return st;
  const mla_product_sm90_args args = {(int)out->shape[0], (int)out->shape[1],
                                      (int)a->shape[1], counter, live};
  const unsigned units = (unsigned)c->plan->handle->units;
  mla_product_bf16_sm90<<<units, PRODUCT_THREADS, PRODUCT_BYTES, c->stream>>>(
      a_map, b_map, out_map, args);
  return mla_gpu_launched(c, "product_bf16_sm90");
}

/* ----------------------------------------------------------------- matmul */

static int serves(const mla_handle *h, const mla_problem *p,
                  const mla_limits *l) {
  (void)l;
  return h->major == 9 && h->minor == 0 && p->op == MLA_OP_MATMUL &&
         p->q_dtype == MLA_BF16 && p->weight_dtype == MLA_BF16 &&
         p->out_dtype == MLA_BF16 && p->q_lora_rank % 64 == 0 &&
         p->hidden_size % 8 == 0 && mla_tensor_map_encoder() != NULL;
}

static uint64_t workspace(const mla_handle *h, const mla_problem *p,
                          const mla_limits *l) {
  (void)h, (void)p, (void)l;
  return 0;
}

static void describe(const mla_problem *p, mla_answer *answer) {
  (void)p;
  snprintf(answer->kernel, sizeof answer->kernel, "product_bf16_sm90");
  answer->determinism = MLA_DETERMINISM_BATCH_INVARIANT;
}

static int takes(const mla_gpu_call *c) {
  return mla_sm90_even_walk(mla_arg(c->args, MLA_T_A)) &&
         mla_sm90_even_walk(mla_arg(c->args, MLA_T_B)) &&
         mla_sm90_even_walk(mla_arg(c->args, MLA_T_OUT));
}

static mla_status run(const mla_gpu_call *c) {
  return mla_sm90_product(c, mla_arg(c->args, MLA_T_A),
                          mla_arg(c->args, MLA_T_B),
                          mla_arg(c->args, MLA_T_OUT), NULL, NULL);
}

const mla_gpu_fast mla_cuda_product_sm90 = {serves, workspace, describe, takes,
                                            run};
