/*
 * absorb: kv_b_proj taken apart into W_UK and W_UV, and the fused forms, which
 * are products with the query's up-projection and with the output projection.
 */
#include "cpu_convert.h"
#include "cpu_gemm.h"
#include "cpu_parallel.h"
#include "cpu_weights.h"
#include "tensor.h"

typedef struct absorb {
  const mla_cpu_context *c;
  const mla_tensor *from, *w_uk, *w_uv, *q_b, *w_qr;
} absorb;

/* Row `index` of kv_b_proj: of head h, P key rows, then V value rows. */
static void split_task(void *state, int64_t index, int thread) {
  const absorb *a = state;
  const mla_problem *p = &a->c->problem;
  int64_t nope = p->qk_nope_head_dim, rows = nope + p->v_head_dim;
  int64_t h = index / rows, r = index % rows;
  (void)thread;
  if (r < nope)
    mla_cpu_convert(&a->c->table, a->from, mla_at1(a->from, index), a->w_uk,
                    mla_at2(a->w_uk, h, r), p->kv_lora_rank, 0);
  else
    mla_cpu_convert(&a->c->table, a->from, mla_at1(a->from, index), a->w_uv,
                    mla_at2(a->w_uv, h, r - nope), p->kv_lora_rank, 0);
}

/* w_qr[lq,h,r] = q_b_proj[h * (P + R) + P + r][lq]: a transposition, in
   squares of 16. */
static void rope_square(const absorb *a, int64_t h, int64_t lq, int64_t r) {
  const mla_problem *p = &a->c->problem;
  int in = mla_cpu_type_of(a->q_b->dtype),
      out = mla_cpu_type_of(a->w_qr->dtype);
  int64_t head = p->qk_nope_head_dim + p->qk_rope_head_dim;
  int64_t n = mla_cpu_min(16, p->q_lora_rank - lq);
  int64_t m = mla_cpu_min(16, p->qk_rope_head_dim - r);
  float square[16][16], line[16];
  for (int64_t j = 0; j < m; j++)
    a->c->table.load[in](
        square[j],
        mla_cpu_at(a->q_b->data, in,
                   mla_at2(a->q_b, h * head + p->qk_nope_head_dim + r + j, lq)),
        n);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < m; j++) line[j] = square[j][i];
    a->c->table.store[out](
        mla_cpu_at_mut(a->w_qr->data, out, mla_at3(a->w_qr, lq + i, h, r)),
        line, m);
  }
}

static void rope_task(void *state, int64_t h, int thread) {
  const absorb *a = state;
  (void)thread;
  for (int64_t lq = 0; lq < a->c->problem.q_lora_rank; lq += 16)
    for (int64_t r = 0; r < a->c->problem.qk_rope_head_dim; r += 16)
      rope_square(a, h, lq, r);
}

static mla_cpu_matrix matrix(const mla_tensor *t, int64_t first_row) {
  mla_cpu_matrix m = {NULL, mla_cpu_type_of(t->dtype), 0, 0, 0};
  m.data = mla_cpu_at(t->data, m.type, mla_at1(t, first_row));
  return m;
}

/* w_q_uk[lq,h,l] = sum over p of q_b_proj[h(P+R)+p][lq] kv_b[h(P+V)+p][l] */
static void fuse_q(const absorb *a, const mla_tensor *out, void *workspace) {
  const mla_problem *p = &a->c->problem;
  int64_t nope = p->qk_nope_head_dim;
  mla_cpu_gemm g = {0};
  g.batch = p->num_heads;
  g.n = p->q_lora_rank;
  g.m = p->kv_lora_rank;
  g.k = nope;
  g.x = matrix(a->q_b, 0);
  g.x.row = 1;
  g.x.col = a->q_b->stride[0];
  g.x.batch = (nope + p->qk_rope_head_dim) * a->q_b->stride[0];
  g.y = matrix(a->from, 0);
  g.y.row = 1;
  g.y.col = a->from->stride[0];
  g.y.batch = (nope + p->v_head_dim) * a->from->stride[0];
  g.out = out->data;
  g.out_type = mla_cpu_type_of(out->dtype);
  g.out_row = out->stride[0];
  g.out_batch = out->stride[1];
  mla_cpu_gemm_run(a->c, &g, workspace);
}

/* w_uv_o[h,l,o] = sum over v of kv_b[h(P+V)+P+v][l] o_proj[o][h*V+v] */
static void fuse_o(const absorb *a, const mla_tensor *o_proj,
                   const mla_tensor *out, void *workspace) {
  const mla_problem *p = &a->c->problem;
  int64_t v = p->v_head_dim;
  mla_cpu_gemm g = {0};
  g.batch = p->num_heads;
  g.n = p->kv_lora_rank;
  g.m = p->hidden_size;
  g.k = v;
  g.x = matrix(a->from, p->qk_nope_head_dim);
  g.x.row = 1;
  g.x.col = a->from->stride[0];
  g.x.batch = (p->qk_nope_head_dim + v) * a->from->stride[0];
  g.y = matrix(o_proj, 0);
  g.y.row = o_proj->stride[0];
  g.y.col = 1;
  g.y.batch = v;
  g.out = out->data;
  g.out_type = mla_cpu_type_of(out->dtype);
  g.out_row = out->stride[1];
  g.out_batch = out->stride[0];
  mla_cpu_gemm_run(a->c, &g, workspace);
}

static void take_apart(const mla_cpu_context *c, const mla_args *args,
                       void *workspace) {
  const mla_problem *p = &c->problem;
  absorb a = {c,
              mla_arg(args, MLA_T_KV_B_PROJ),
              mla_arg(args, MLA_T_W_UK),
              mla_arg(args, MLA_T_W_UV),
              mla_arg(args, MLA_T_Q_B_PROJ),
              mla_arg(args, MLA_T_W_QR)};
  mla_cpu_parallel(
      c->threads, (int64_t)p->num_heads * (p->qk_nope_head_dim + p->v_head_dim),
      split_task, &a);
  if (p->flags & MLA_FUSED_Q) {
    mla_cpu_parallel(c->threads, p->num_heads, rope_task, &a);
    fuse_q(&a, mla_arg(args, MLA_T_W_Q_UK), workspace);
  }
  if (p->flags & MLA_FUSED_O)
    fuse_o(&a, mla_arg(args, MLA_T_O_PROJ), mla_arg(args, MLA_T_W_UV_O),
           workspace);
}

/* Weights with scales become f32 first. */
static void absorb_run(const mla_cpu_context *c, const mla_args *args,
                       void *workspace) {
  mla_cpu_arena arena = {workspace, 0};
  float *memory[3];
  mla_tensor tensor[MLA_T_COUNT];
  mla_args widened = {(uint32_t)sizeof widened, MLA_T_COUNT, tensor};
  uint64_t used = mla_cpu_weights_take(&arena, c, memory);
  if (used == 0) {
    take_apart(c, args, workspace);
    return;
  }
  mla_cpu_weights_widen(c, args, memory, tensor);
  take_apart(c, &widened, (unsigned char *)workspace + used);
}

static uint64_t absorb_workspace(const mla_cpu_context *c) {
  uint64_t fused = c->problem.flags & (MLA_FUSED_Q | MLA_FUSED_O);
  mla_cpu_arena arena = {NULL, 0};
  float *memory[3];
  mla_cpu_weights_take(&arena, c, memory);
  if (fused) mla_cpu_take(&arena, mla_cpu_gemm_workspace(c), 1);
  return arena.used;
}

static const char *absorb_refuse(const mla_problem *p) {
  int scaled = (p->flags & MLA_BLOCK_SCALED) != 0;
  if (!scaled && mla_cpu_type_of(p->weight_dtype) < 0)
    return "weight_dtype: only f32, f16 and bf16 are served";
  if (mla_cpu_type_of(p->out_dtype) < 0)
    return "out_dtype: only f32, f16 and bf16 are served";
  return NULL;
}

const mla_cpu_op mla_cpu_op_absorb = {MLA_OP_ABSORB, "absorb", absorb_refuse,
                                      absorb_workspace, absorb_run};
