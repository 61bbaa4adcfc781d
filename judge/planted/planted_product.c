/* Absorption and the plain products. */
#include "dtype.h"
#include "planted_core.h"
#include "tensor.h"

static double at(const mla_tensor *t, int64_t offset) {
  return mla_get(t->data, t->dtype, offset);
}

/* So many products are summed apart: no long chain of additions. */
static int64_t block_of(const planted_call *c, int64_t rows) {
  return FAULT(c, INVARIANCE_ROWS) && rows > 1 ? 32 : 64;
}

static float product(const mla_tensor *a, int64_t a0, int64_t a_step,
                     const mla_tensor *b, int64_t b0, int64_t b_step, int64_t n,
                     int64_t apart) {
  float sum = 0, block = 0;
  for (int64_t i = 0; i < n; i++) {
    block += (float)at(a, a0 + i * a_step) * (float)at(b, b0 + i * b_step);
    if (i % apart == apart - 1 || i == n - 1) {
      sum += block;
      block = 0;
    }
  }
  return sum;
}

int64_t planted_weight_row(const planted_call *c, int64_t head, int64_t i) {
  int64_t h = c->p->num_heads, p = c->p->qk_nope_head_dim;
  int64_t v = c->p->v_head_dim;
  if (FAULT(c, ABSORB_HEAD)) head = (head + c->a) % h;
  if (FAULT(c, ABSORB_ORDER)) i = i < p ? v + i : i - p;
  if (FAULT(c, ABSORB_FLAT))
    return i < p ? head * p + i : h * p + head * v + i - p;
  return head * (p + v) + i;
}

static void copy_weights(const planted_call *c, const mla_tensor *to,
                         int64_t first) {
  const mla_tensor *w = planted_arg(c, MLA_T_KV_B_PROJ);
  for (int64_t h = 0; h < to->shape[0]; h++)
    for (int64_t i = 0; i < to->shape[1]; i++) {
      int64_t row = planted_weight_row(c, h, first + i);
      for (int64_t d = 0; d < to->shape[2]; d++)
        mla_put(to->data, to->dtype, mla_at3(to, h, i, d),
                planted_weight(c, MLA_T_KV_B_SCALE, at(w, mla_at2(w, row, d)),
                               row, d));
    }
}

static void fuse_q(const planted_call *c) {
  const mla_tensor *kv = planted_arg(c, MLA_T_KV_B_PROJ);
  const mla_tensor *q = planted_arg(c, MLA_T_Q_B_PROJ);
  const mla_tensor *out = planted_arg(c, MLA_T_W_Q_UK);
  const mla_tensor *rope = planted_arg(c, MLA_T_W_QR);
  int64_t p = c->p->qk_nope_head_dim, r = c->p->qk_rope_head_dim;
  for (int64_t i = 0; i < out->shape[0]; i++)
    for (int64_t h = 0; h < out->shape[1]; h++) {
      for (int64_t d = 0; d < out->shape[2]; d++)
        mla_put(out->data, out->dtype, mla_at3(out, i, h, d),
                (double)product(q, mla_at2(q, h * (p + r), i), q->stride[0], kv,
                                mla_at2(kv, planted_weight_row(c, h, 0), d),
                                kv->stride[0], p, 64));
      for (int64_t d = 0; d < r; d++)
        mla_put(rope->data, rope->dtype, mla_at3(rope, i, h, d),
                at(q, mla_at2(q, h * (p + r) + p + d, i)));
    }
}

static void fuse_o(const planted_call *c) {
  const mla_tensor *kv = planted_arg(c, MLA_T_KV_B_PROJ);
  const mla_tensor *o = planted_arg(c, MLA_T_O_PROJ);
  const mla_tensor *out = planted_arg(c, MLA_T_W_UV_O);
  int64_t p = c->p->qk_nope_head_dim, v = c->p->v_head_dim;
  for (int64_t h = 0; h < out->shape[0]; h++)
    for (int64_t d = 0; d < out->shape[1]; d++)
      for (int64_t x = 0; x < out->shape[2]; x++)
        mla_put(out->data, out->dtype, mla_at3(out, h, d, x),
                (double)product(o, mla_at2(o, x, h * v), 1, kv,
                                mla_at2(kv, planted_weight_row(c, h, p), d),
                                kv->stride[0], v, 64));
}

mla_status planted_absorb(const planted_call *c) {
  copy_weights(c, planted_arg(c, MLA_T_W_UK), 0);
  copy_weights(c, planted_arg(c, MLA_T_W_UV), c->p->qk_nope_head_dim);
  if (c->p->flags & MLA_FUSED_Q) fuse_q(c);
  if (c->p->flags & MLA_FUSED_O) fuse_o(c);
  return MLA_OK;
}

static int64_t head_used(const planted_call *c, int64_t h) {
  if (FAULT(c, ABSORB_HEAD)) return (h + c->a) % c->p->num_heads;
  if (FAULT(c, HEADS_WRAP)) return h % c->a;
  return h;
}

static int planted_computes(const planted_call *c, int64_t n, int64_t h) {
  int64_t heads = c->p->num_heads;
  if (FAULT(c, HEADS_DROP) && heads > c->a && h >= heads - heads % c->a)
    return 0;
  return planted_wants(c, n, h);
}

/* Where number j of row i of a head's weights lies; a fault may recompute the
   strides, or exchange rows and columns. */
static int64_t weight_at(const planted_call *c, const mla_tensor *w, int64_t h,
                         int64_t i, int64_t j) {
  int64_t rows = w->shape[1], columns = w->shape[2];
  if (FAULT(c, STRIDES_WEIGHT)) return (h * rows + i) * columns + j;
  if (!FAULT(c, ABSORB_TURNED)) return mla_at3(w, h, i, j);
  int64_t flat = j * rows + i;
  return mla_at3(w, h, flat / columns, flat % columns);
}

/* out[n,h,d] = sum over i of x[n,h,i] times a weight of (d, i). */
static void headed_product(const planted_call *c, const mla_tensor *x,
                           const mla_tensor *w, const mla_tensor *out,
                           int down) {
  int64_t width = x->shape[2], apart = block_of(c, out->shape[0]);
  if (FAULT(c, HEADDIM_TAIL)) width -= width % c->a;
  for (int64_t n = 0; n < out->shape[0]; n++)
    for (int64_t h = 0; h < out->shape[1]; h++)
      for (int64_t d = 0; planted_computes(c, n, h) && d < out->shape[2]; d++) {
        float sum = 0, block = 0;
        int64_t from = head_used(c, h);
        for (int64_t i = 0; i < width; i++) {
          int64_t k =
              down ? weight_at(c, w, from, i, d) : weight_at(c, w, from, d, i);
          block += (float)at(x, mla_at3(x, n, h, i)) * (float)at(w, k);
          if (i % apart < apart - 1 && i < width - 1) continue;
          sum += block;
          block = 0;
        }
        mla_put(out->data, out->dtype, mla_at3(out, n, h, d), (double)sum);
      }
}

mla_status planted_q_absorb(const planted_call *c) {
  headed_product(c, planted_arg(c, MLA_T_Q_NOPE), planted_arg(c, MLA_T_W_UK),
                 planted_arg(c, MLA_T_Q_LATENT), 1);
  return MLA_OK;
}

mla_status planted_v_expand(const planted_call *c) {
  headed_product(c, planted_arg(c, MLA_T_O_LATENT), planted_arg(c, MLA_T_W_UV),
                 planted_arg(c, MLA_T_OUT), 0);
  return MLA_OK;
}

mla_status planted_matmul(const planted_call *c) {
  const mla_tensor *a = planted_arg(c, MLA_T_A);
  const mla_tensor *b = planted_arg(c, MLA_T_B);
  const mla_tensor *out = planted_arg(c, MLA_T_OUT);
  int64_t k = a->shape[1], b_row = b->stride[0];
  int64_t apart = block_of(c, out->shape[0]);
  if (FAULT(c, HEADDIM_TAIL)) k -= k % c->a;
  if (FAULT(c, STRIDES_WEIGHT)) b_row = b->shape[1];
  for (int64_t m = 0; m < out->shape[0]; m++)
    for (int64_t n = 0; n < out->shape[1]; n++) {
      if (c->wanted && !c->wanted[m]) continue;
      mla_put(
          out->data, out->dtype, mla_at2(out, m, n),
          (double)product(a, mla_at2(a, m, 0), 1, b, n * b_row, 1, k, apart));
    }
  return MLA_OK;
}
