#include "oracle_product.h"

#include "tensor.h"

static mla_operand operand(const mla_tensor *t, int64_t offset, int64_t row,
                           int64_t column) {
  mla_operand x = {t->data, t->dtype, offset, row, column};
  return x;
}

/* w[head][row][l] = kv_b_proj[head * (P + V) + first + row][l]. */
static mla_product_output kv_b_rows(const mla_problem *p, const mla_args *args,
                                    int32_t slot, int64_t first, int64_t rows) {
  const mla_tensor *w = mla_arg(args, MLA_T_KV_B_PROJ);
  int64_t step = w->stride[0], each = p->qk_nope_head_dim + p->v_head_dim;
  mla_product_output x = {0};
  x.slot = slot;
  x.outer_count = p->num_heads;
  x.inner_count = rows;
  x.width = p->kv_lora_rank;
  x.b = operand(w, first * step, 1, 0);
  x.a_head = each * step;
  x.b_head = step;
  return x;
}

/* w_q_uk[lq][h][l] = sum_p q_b_proj[h * (P + R) + p][lq] w_uk[h][p][l]. */
static mla_product_output fused_q(const mla_problem *p, const mla_args *args) {
  const mla_tensor *q = mla_arg(args, MLA_T_Q_B_PROJ);
  const mla_tensor *w = mla_arg(args, MLA_T_KV_B_PROJ);
  int64_t nope = p->qk_nope_head_dim;
  mla_product_output x = {0};
  x.slot = MLA_T_W_Q_UK;
  x.outer_count = p->q_lora_rank;
  x.inner_count = p->num_heads;
  x.head_is_inner = 1;
  x.width = p->kv_lora_rank;
  x.depth = nope;
  x.a = operand(q, 0, 1, q->stride[0]);
  x.a_head = (nope + p->qk_rope_head_dim) * q->stride[0];
  x.b = operand(w, 0, 1, w->stride[0]);
  x.b_head = (nope + p->v_head_dim) * w->stride[0];
  return x;
}

/* w_qr[lq][h][r] = q_b_proj[h * (P + R) + P + r][lq]. */
static mla_product_output rope_q(const mla_problem *p, const mla_args *args) {
  const mla_tensor *q = mla_arg(args, MLA_T_Q_B_PROJ);
  int64_t nope = p->qk_nope_head_dim, rope = p->qk_rope_head_dim;
  mla_product_output x = {0};
  x.slot = MLA_T_W_QR;
  x.outer_count = p->q_lora_rank;
  x.inner_count = p->num_heads;
  x.width = rope;
  x.b = operand(q, nope * q->stride[0], q->stride[0], 0);
  x.a_head = 1;
  x.b_head = (nope + rope) * q->stride[0];
  return x;
}

/* w_uv_o[h][l][o] = sum_v w_uv[h][v][l] o_proj[o][h * V + v]. */
static mla_product_output fused_o(const mla_problem *p, const mla_args *args) {
  const mla_tensor *w = mla_arg(args, MLA_T_KV_B_PROJ);
  const mla_tensor *o = mla_arg(args, MLA_T_O_PROJ);
  int64_t nope = p->qk_nope_head_dim, v = p->v_head_dim;
  mla_product_output x = {0};
  x.slot = MLA_T_W_UV_O;
  x.outer_count = p->num_heads;
  x.inner_count = p->kv_lora_rank;
  x.width = p->hidden_size;
  x.depth = v;
  x.a = operand(w, nope * w->stride[0], 1, w->stride[0]);
  x.a_head = (nope + v) * w->stride[0];
  x.b = operand(o, 0, o->stride[0], 1);
  x.b_head = v;
  return x;
}

static int absorb(const mla_problem *p, const mla_args *args,
                  mla_product_output *list) {
  int64_t nope = p->qk_nope_head_dim, v = p->v_head_dim;
  int count = 0;
  list[count++] = kv_b_rows(p, args, MLA_T_W_UK, 0, nope);
  list[count++] = kv_b_rows(p, args, MLA_T_W_UV, nope, v);
  if (p->flags & MLA_FUSED_Q) {
    list[count++] = fused_q(p, args);
    list[count++] = rope_q(p, args);
  }
  if (p->flags & MLA_FUSED_O) list[count++] = fused_o(p, args);
  return count;
}

/* out[n][h][.] of an input [n][h][depth] and weights of a head. */
static mla_product_output by_head(const mla_problem *p, const mla_tensor *in,
                                  int32_t slot, const mla_tensor *w) {
  mla_product_output x = {0};
  x.slot = slot;
  x.outer_count = in->shape[0];
  x.inner_count = p->num_heads;
  x.head_is_inner = 1;
  x.depth = in->shape[2];
  x.a = operand(in, 0, in->stride[0], 1);
  x.a_head = in->stride[1];
  x.b_head = w->stride[0];
  return x;
}

/* q_latent[n][h][l] = sum_p q_nope[n][h][p] w_uk[h][p][l]. */
static mla_product_output q_absorb(const mla_problem *p, const mla_args *args) {
  const mla_tensor *w = mla_arg(args, MLA_T_W_UK);
  mla_product_output x =
      by_head(p, mla_arg(args, MLA_T_Q_NOPE), MLA_T_Q_LATENT, w);
  x.width = p->kv_lora_rank;
  x.b = operand(w, 0, 1, w->stride[1]);
  return x;
}

/* out[n][h][v] = sum_l o_latent[n][h][l] w_uv[h][v][l]. */
static mla_product_output v_expand(const mla_problem *p, const mla_args *args) {
  const mla_tensor *w = mla_arg(args, MLA_T_W_UV);
  mla_product_output x =
      by_head(p, mla_arg(args, MLA_T_O_LATENT), MLA_T_OUT, w);
  x.width = p->v_head_dim;
  x.b = operand(w, 0, w->stride[1], 1);
  return x;
}

static mla_product_output matmul(const mla_args *args) {
  const mla_tensor *a = mla_arg(args, MLA_T_A), *b = mla_arg(args, MLA_T_B);
  mla_product_output x = {0};
  x.slot = MLA_T_OUT;
  x.outer_count = a->shape[0];
  x.inner_count = 1;
  x.head_is_inner = 1;
  x.width = b->shape[0];
  x.depth = a->shape[1];
  x.a = operand(a, 0, a->stride[0], 1);
  x.b = operand(b, 0, b->stride[0], 1);
  return x;
}

int mla_product_outputs(const mla_problem *p, const mla_args *args,
                        mla_product_output *list) {
  switch (p->op) {
    case MLA_OP_ABSORB: return absorb(p, args, list);
    case MLA_OP_Q_ABSORB: list[0] = q_absorb(p, args); return 1;
    case MLA_OP_V_EXPAND: list[0] = v_expand(p, args); return 1;
    case MLA_OP_MATMUL: list[0] = matmul(args); return 1;
    default: return 0;
  }
}
