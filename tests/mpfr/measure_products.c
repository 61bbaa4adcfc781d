#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "dtype.h"
#include "measured.h"
#include "oracle.h"
#include "tensor.h"

/* depth elements, step apart. */
typedef struct line {
  const mla_tensor *t;
  int64_t at, step;
} line;

static double element(line x, int64_t k) {
  return mla_get(x.t->data, x.t->dtype, x.at + k * x.step);
}

static void measure_sum(error_stats *stats, line a, line b, int64_t depth,
                        double got) {
  double sum_abs = 0, sum_square = 0;
  mpfr_t y, product, factor;
  mpfr_inits2(EXACT_BITS, y, product, (mpfr_ptr)0);
  mpfr_init2(factor, DOUBLE_BITS);
  mpfr_set_zero(y, 1);
  for (int64_t k = 0; k < depth; k++) {
    double left = element(a, k), right = element(b, k), x = left * right;
    mpfr_set_d(product, left, MPFR_RNDN);
    mpfr_set_d(factor, right, MPFR_RNDN);
    mpfr_mul(product, product, factor, MPFR_RNDN);
    mpfr_add(y, y, product, MPFR_RNDN);
    sum_abs += fabs(x);
    sum_square += x * x;
  }
  error_law law =
      error_law_product(depth, sum_abs, sum_square, mpfr_get_d(y, MPFR_RNDN));
  error_stats_add(stats, got, y, &law);
  mpfr_clears(y, product, factor, (mpfr_ptr)0);
}

static double result(const fixed_case *c, int slot, int64_t i) {
  const mla_tensor *t = &c->tensor[slot];
  return mla_get(t->data, t->dtype, fixed_case_at(t, i));
}

/* out[m][n] = a[m] . b[n] */
static void matmul_rows(const fixed_case *c, error_stats *stats) {
  const mla_tensor *a = &c->tensor[MLA_T_A], *b = &c->tensor[MLA_T_B];
  for (int64_t m = 0; m < a->shape[0]; m++)
    for (int64_t n = 0; n < b->shape[0]; n++) {
      line x = {a, mla_at1(a, m), 1}, y = {b, mla_at1(b, n), 1};
      measure_sum(stats, x, y, a->shape[1],
                  result(c, MLA_T_OUT, m * b->shape[0] + n));
    }
}

/* q_latent[t][h][l] = sum_p q_nope[t][h][p] w_uk[h][p][l] */
static void q_absorb_rows(const fixed_case *c, error_stats *stats) {
  const mla_tensor *q = &c->tensor[MLA_T_Q_NOPE], *w = &c->tensor[MLA_T_W_UK];
  const mla_tensor *to = &c->tensor[MLA_T_Q_LATENT];
  int64_t heads = to->shape[1], latent = to->shape[2];
  for (int64_t i = 0; i < mla_tensor_count(to); i++) {
    int64_t h = i / latent % heads, token = i / latent / heads;
    line x = {q, mla_at2(q, token, h), 1};
    line y = {w, mla_at3(w, h, 0, i % latent), w->stride[1]};
    measure_sum(stats, x, y, q->shape[2], result(c, MLA_T_Q_LATENT, i));
  }
}

/* out[t][h][v] = o_latent[t][h] . w_uv[h][v] */
static void v_expand_rows(const fixed_case *c, error_stats *stats) {
  const mla_tensor *o = &c->tensor[MLA_T_O_LATENT];
  const mla_tensor *w = &c->tensor[MLA_T_W_UV], *to = &c->tensor[MLA_T_OUT];
  int64_t heads = to->shape[1], width = to->shape[2];
  for (int64_t i = 0; i < mla_tensor_count(to); i++) {
    int64_t h = i / width % heads, token = i / width / heads;
    line x = {o, mla_at2(o, token, h), 1}, y = {w, mla_at2(w, h, i % width), 1};
    measure_sum(stats, x, y, o->shape[2], result(c, MLA_T_OUT, i));
  }
}

/*
 * w_q_uk[i][h][l] = sum_p q_b[h (P+R) + p][i] W_UK[h][p][l]
 * w_uv_o[h][l][i] = sum_v W_UV[h][v][l] o_proj[i][h V + v]
 * W_UK and W_UV being rows of kv_b_proj.
 */
static void absorb_rows(const fixed_case *c, error_stats *stats) {
  const mla_problem *p = &c->problem;
  const mla_tensor *kv = &c->tensor[MLA_T_KV_B_PROJ];
  const mla_tensor *q = &c->tensor[MLA_T_Q_B_PROJ];
  const mla_tensor *o = &c->tensor[MLA_T_O_PROJ];
  int64_t nope = p->qk_nope_head_dim, value = p->v_head_dim;
  int64_t latent = p->kv_lora_rank, heads = p->num_heads, hidden = o->shape[0];
  for (int64_t i = 0; i < q->shape[1] * heads * latent; i++) {
    int64_t h = i / latent % heads, row = i / latent / heads;
    line x = {q, mla_at2(q, h * (nope + p->qk_rope_head_dim), row),
              q->stride[0]};
    line y = {kv, mla_at2(kv, h * (nope + value), i % latent), kv->stride[0]};
    measure_sum(stats, x, y, nope, result(c, MLA_T_W_Q_UK, i));
  }
  for (int64_t i = 0; i < heads * latent * hidden; i++) {
    int64_t h = i / hidden / latent, l = i / hidden % latent;
    line x = {kv, mla_at2(kv, h * (nope + value) + nope, l), kv->stride[0]};
    line y = {o, mla_at2(o, i % hidden, h * value), 1};
    measure_sum(stats, x, y, value, result(c, MLA_T_W_UV_O, i));
  }
}

static mla_problem problem_of(mla_op op, int32_t depth) {
  mla_problem p = mla_problem_init(op);
  p.q_dtype = p.out_dtype = p.weight_dtype = MLA_F64;
  p.num_heads = 2;
  p.kv_lora_rank = op == MLA_OP_V_EXPAND ? depth : 24;
  p.qk_nope_head_dim = op == MLA_OP_V_EXPAND ? 24 : depth;
  p.qk_rope_head_dim = 4;
  p.v_head_dim = op == MLA_OP_ABSORB ? depth : 9;
  p.q_lora_rank = op == MLA_OP_MATMUL ? depth : 7;
  p.hidden_size = 11;
  if (op == MLA_OP_ABSORB) p.flags = MLA_FUSED_Q | MLA_FUSED_O;
  return p;
}

typedef void (*measure_fn)(const fixed_case *c, error_stats *stats);

/* offset 0: signs mixed; 5: all terms positive. */
static void product_case(mla_op op, int32_t depth, double offset,
                         measure_fn measure, error_stats *stats) {
  mla_problem p = problem_of(op, depth);
  const mla_op_spec *spec = mla_op_spec_of(op);
  fixed_case c = fixed_case_of(&p, 51 + (uint64_t)depth);
  mla_error err = mla_error_init();
  c.size[MLA_S_N] = c.limits.tokens = 5;
  fixed_case_alloc(&c);
  for (int32_t i = 0; i < spec->slot_count; i++)
    if (spec->slots[i].role == MLA_ROLE_IN)
      fixed_case_fill(&c, spec->slots[i].slot, offset, 0.7);
  mla_args args = fixed_case_args(&c);
  if (mla_oracle_run(&p, &c.limits, &args, &err) != MLA_OK) {
    fprintf(stderr, "oracle_error: %s\n", err.message);
    exit(1);
  }
  measure(&c, stats);
  fixed_case_free(&c);
}

int64_t measure_products(void) {
  static const struct {
    mla_op op;
    measure_fn measure;
  } kinds[] = {{MLA_OP_MATMUL, matmul_rows},
               {MLA_OP_Q_ABSORB, q_absorb_rows},
               {MLA_OP_V_EXPAND, v_expand_rows},
               {MLA_OP_ABSORB, absorb_rows}};
  static const int32_t depths[] = {1, 2, 3, 17, 128, 512, 1536};
  int64_t refused = 0;
  for (int k = 0; k < 4; k++) {
    error_stats stats = {0};
    for (int i = 0; i < 7; i++) {
      product_case(kinds[k].op, depths[i], 0, kinds[k].measure, &stats);
      product_case(kinds[k].op, depths[i], 5, kinds[k].measure, &stats);
    }
    if (kinds[k].op == MLA_OP_MATMUL)
      product_case(MLA_OP_MATMUL, 7168, 0, matmul_rows, &stats);
    refused += error_stats_print(&stats, mla_op_name(kinds[k].op), "out");
    error_stats_free(&stats);
  }
  return refused;
}
