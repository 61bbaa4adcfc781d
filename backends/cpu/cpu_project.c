/*
 * q_absorb, v_expand, matmul: each one batch of products.
 */
#include "cpu_gemm.h"
#include "tensor.h"

static mla_cpu_matrix heads_of(const mla_tensor *t) {
  /* [N,H,width]: a matrix a head */
  mla_cpu_matrix m = {t->data, mla_cpu_type_of(t->dtype), t->stride[0], 1,
                      t->stride[1]};
  return m;
}

static const char *project_refuse(const mla_problem *p) {
  return mla_cpu_refuse_types(p, 1);
}

static void set_out(mla_cpu_gemm *g, const mla_tensor *out) {
  g->out = out->data;
  g->out_type = mla_cpu_type_of(out->dtype);
  g->out_row = out->stride[0];
  g->out_batch = out->rank == 3 ? out->stride[1] : 0;
}

/* q_latent[n,h,l] = sum over p of q_nope[n,h,p] w_uk[h,p,l] */
static void q_absorb_run(const mla_cpu_context *c, const mla_args *args,
                         void *workspace) {
  const mla_tensor *x = mla_arg(args, MLA_T_Q_NOPE);
  const mla_tensor *w = mla_arg(args, MLA_T_W_UK);
  mla_cpu_gemm g = {0};
  g.batch = x->shape[1];
  g.n = x->shape[0];
  g.m = w->shape[2];
  g.k = w->shape[1];
  g.x = heads_of(x);
  g.y.data = w->data;
  g.y.type = mla_cpu_type_of(w->dtype);
  g.y.row = 1;
  g.y.col = w->stride[1];
  g.y.batch = w->stride[0];
  set_out(&g, mla_arg(args, MLA_T_Q_LATENT));
  mla_cpu_gemm_run(c, &g, workspace);
}

/* out[n,h,v] = sum over l of o_latent[n,h,l] w_uv[h,v,l] */
static void v_expand_run(const mla_cpu_context *c, const mla_args *args,
                         void *workspace) {
  const mla_tensor *x = mla_arg(args, MLA_T_O_LATENT);
  const mla_tensor *w = mla_arg(args, MLA_T_W_UV);
  mla_cpu_gemm g = {0};
  g.batch = x->shape[1];
  g.n = x->shape[0];
  g.m = w->shape[1];
  g.k = w->shape[2];
  g.x = heads_of(x);
  g.y.data = w->data;
  g.y.type = mla_cpu_type_of(w->dtype);
  g.y.row = w->stride[1];
  g.y.col = 1;
  g.y.batch = w->stride[0];
  set_out(&g, mla_arg(args, MLA_T_OUT));
  mla_cpu_gemm_run(c, &g, workspace);
}

static void matmul_run(const mla_cpu_context *c, const mla_args *args,
                       void *workspace) {
  const mla_tensor *a = mla_arg(args, MLA_T_A), *b = mla_arg(args, MLA_T_B);
  mla_cpu_gemm g = {0};
  g.batch = 1;
  g.n = a->shape[0];
  g.m = b->shape[0];
  g.k = a->shape[1];
  g.x.data = a->data;
  g.x.type = mla_cpu_type_of(a->dtype);
  g.x.row = a->stride[0];
  g.x.col = 1;
  g.y.data = b->data;
  g.y.type = mla_cpu_type_of(b->dtype);
  g.y.row = b->stride[0];
  g.y.col = 1;
  set_out(&g, mla_arg(args, MLA_T_OUT));
  mla_cpu_gemm_run(c, &g, workspace);
}

const mla_cpu_op mla_cpu_op_q_absorb = {MLA_OP_Q_ABSORB, "q_absorb",
                                        project_refuse, mla_cpu_gemm_workspace,
                                        q_absorb_run};
const mla_cpu_op mla_cpu_op_v_expand = {MLA_OP_V_EXPAND, "v_expand",
                                        project_refuse, mla_cpu_gemm_workspace,
                                        v_expand_run};
const mla_cpu_op mla_cpu_op_matmul = {MLA_OP_MATMUL, "matmul", project_refuse,
                                      mla_cpu_gemm_workspace, matmul_run};
