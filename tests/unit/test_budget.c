/*
 * The budget of docs/tolerance.md, against a slow computation of the same
 * formulas that shares nothing with the reference but tensors; and declared
 * arithmetic in, allowed error out.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "budget_direct.h"
#include "check_main.h"
#include "dtype.h"
#include "oracle_fixture.h"

static const int64_t seqs[] = {40, 3, 9}, queries[] = {2, 3, 0};
static const requests ragged = {3, seqs, queries};
#define HEADS 2

static const struct variant {
  mla_op op;
  uint64_t flags;
  double cap;
  double u_p;
} variants[] = {
    {MLA_OP_DECODE, MLA_CAUSAL, 0, 0x1p-8},
    {MLA_OP_DECODE, MLA_CAUSAL | MLA_HAS_SINK, 0, 0x1p-11},
    {MLA_OP_DECODE, MLA_LSE_BASE2, 2, 0x1p-24},
    {MLA_OP_PREFILL, MLA_CAUSAL | MLA_CONTEXT, 0, 0x1p-8},
    {MLA_OP_PREFILL, MLA_CAUSAL | MLA_CONTEXT | MLA_HAS_SINK, 1.5, 0x1p-11},
    {MLA_OP_PREFILL, MLA_CAUSAL | MLA_CONTEXT | MLA_LSE_BASE2, 0, 0x1p-24},
};
#define VARIANTS ((int)(sizeof variants / sizeof variants[0]))

static void build(fixture *f, const struct variant *v) {
  fixture_init(f, v->op);
  f->problem.flags = v->flags;
  f->problem.num_heads = HEADS;
  f->problem.qk_nope_head_dim = 7;
  f->problem.qk_rope_head_dim = 4;
  f->problem.v_head_dim = 6;
  f->problem.kv_lora_rank = 10;
  f->problem.block_size = 4;
  f->problem.out_dtype = MLA_BF16;
  f->problem.logits_soft_cap = v->cap;
  f->problem.scale = 0.7;
  if (v->op == MLA_OP_PREFILL)
    fixture_prefill(f, ragged, 0);
  else
    fixture_decode(f, ragged, 0);
  /* The first page holds one key four times: a bin with company. */
  int64_t first = 4 * (int64_t)fixture_get(f, MLA_T_BLOCK_TABLE, 0) * 14;
  for (int64_t e = 14; e < 4 * 14 && v->op == MLA_OP_DECODE; e++)
    fixture_set(f, MLA_T_CACHE, first + e,
                fixture_get(f, MLA_T_CACHE, first + e % 14));
}

/* The fixture with weights and latents squared: its keys and values are the
   sums that nu and r'' want. */
static void build_squared(fixture *f, const struct variant *v) {
  static const int slots[] = {MLA_T_KV_B_PROJ, MLA_T_KV_C, MLA_T_CACHE};
  build(f, v);
  for (int i = 0; i < 3 && v->op == MLA_OP_PREFILL; i++)
    for (int64_t j = 0; j < fixture_count(f, slots[i]); j++) {
      double x = fixture_get(f, slots[i], j);
      fixture_set(f, slots[i], j, x * x);
    }
}

typedef struct budgets {
  mla_expected *expected;
  double *out, *lse;
} budgets;

static budgets budgets_of(fixture *f, const mla_numerics *numerics) {
  budgets x;
  x.expected = fixture_expect(f, NULL);
  mla_expected_view v = mla_expected_at(x.expected, 0);
  x.out = malloc((size_t)(v.rows * v.width) * sizeof *x.out);
  x.lse = malloc((size_t)v.rows * sizeof *x.lse);
  mla_expected_budget(x.expected, 0, numerics, x.out);
  mla_expected_budget(x.expected, 1, numerics, x.lse);
  return x;
}

static void budgets_free(budgets *x) {
  mla_expected_free(x->expected);
  free(x->out);
  free(x->lse);
}

static void near(double got, double want) {
  ck_assert_msg(fabs(got - want) <= 1e-9 * want, "%.17g is not %.17g", got,
                want);
}

static void check_row(const fixture *f, direct_row *x, int64_t id,
                      const direct_declared *u, const budgets *got) {
  double *q = malloc((size_t)x->d * sizeof *q);
  for (int64_t e = 0; e < x->d; e++)
    q[e] = fixture_get(f, MLA_T_Q, id * x->d + e);
  x->q = q;
  for (int64_t j = 0; j < x->n; j++) direct_score(x, j);
  direct_softmax(x);
  for (int64_t e = 0; e < x->dv; e++)
    near(got->out[id * x->dv + e], direct_out_budget(x, e, u));
  double lse = direct_lse_budget(x, u, 1);
  if (f->problem.flags & MLA_LSE_BASE2)
    lse = lse / log(2) + 0x1p-53 * fabs(x->lse / log(2));
  near(got->lse[id], lse);
  free(q);
}

static void check_head(const fixture *f, const fixture *sq, int64_t b,
                       int64_t head, const direct_declared *u,
                       const budgets *got) {
  double *k, *v, *kap2, *nu2;
  direct_row x = {0};
  int64_t seq = seqs[b], first = b ? queries[0] : 0;
  if (b == 2) first += queries[1];
  direct_keys(f, b, head, &k, &x.d, &v, &x.dv);
  direct_keys(sq, b, head, &kap2, &x.d, &nu2, &x.dv);
  double *memory = malloc((size_t)seq * 5 * sizeof *memory);
  x.s = memory;
  x.p = x.s + seq;
  x.r = x.p + seq;
  x.r1 = x.r + seq;
  x.r2 = x.r1 + seq;
  x.k = k;
  x.v = v;
  x.kap2 = kap2;
  x.nu2 = nu2;
  x.latent = f->problem.kv_lora_rank;
  x.nope = u->prefill ? f->problem.qk_nope_head_dim : 0;
  x.scale = f->problem.scale;
  x.cap = f->problem.logits_soft_cap;
  x.sink = f->problem.flags & MLA_HAS_SINK ? fixture_get(f, MLA_T_SINK, head)
                                           : -INFINITY;
  for (int64_t t = 0; t < queries[b]; t++) {
    x.n = f->problem.flags & MLA_CAUSAL ? seq - queries[b] + t + 1 : seq;
    check_row(f, &x, (first + t) * HEADS + head, u, got);
  }
  free(memory);
  free(k);
  free(v);
  free(kap2);
  free(nu2);
}

START_TEST(attention_budgets_are_the_formula) {
  const struct variant *v = &variants[_i];
  mla_numerics numerics = {0};
  direct_declared u = {0x1p-24, v->u_p, 0x1p-8, 0x1p-8, 0x1p-134, 0, 0};
  fixture f, sq;
  numerics.u_acc = u.acc;
  numerics.u_p = u.p;
  numerics.u_mid = u.mid;
  numerics.rounded_denominator = 1;
  u.p_is_f16 = u.p == 0x1p-11;
  u.prefill = v->op == MLA_OP_PREFILL;
  build(&f, v);
  build_squared(&sq, v);
  budgets got = budgets_of(&f, &numerics);
  for (int64_t b = 0; b < 3; b++)
    for (int64_t head = 0; head < HEADS; head++)
      check_head(&f, &sq, b, head, &u, &got);
  budgets_free(&got);
  fixture_free(&f);
  fixture_free(&sq);
}
END_TEST

START_TEST(product_budgets_are_the_formula) {
  enum { M = 5, N = 9, K = 300 };
  mla_numerics numerics = {0};
  double budget[M * N];
  fixture f;
  fixture_init(&f, MLA_OP_MATMUL);
  f.problem.out_dtype = MLA_F16;
  f.problem.q_lora_rank = K;
  f.problem.hidden_size = N;
  fixture_tensor(&f, MLA_T_A, MLA_F64, 0, M, K, 0, 0);
  fixture_tensor(&f, MLA_T_B, MLA_F64, 0, N, K, 0, 0);
  fixture_tensor(&f, MLA_T_OUT, MLA_F16, 0, M, N, 0, 0);
  fixture_bell(&f, MLA_T_A, 1);
  fixture_bell(&f, MLA_T_B, 1);
  mla_expected *x = fixture_expect(&f, NULL);
  mla_expected_budget(x, 0, &numerics, budget); /* zeros read as f32 */
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) {
      double y = 0, squares = 0, u = 0x1p-24;
      for (int k = 0; k < K; k++) {
        double t = fixture_get(&f, MLA_T_A, m * K + k) *
                   fixture_get(&f, MLA_T_B, n * K + k);
        y += t;
        squares += t * t;
      }
      near(budget[m * N + n], 6 * u * sqrt(K) * sqrt(squares) +
                                  K / 8.0 * u * fabs(y) +
                                  (0x1p-11 + 4 * u) * fabs(y) + 0x1p-25);
    }
  mla_expected_free(x);
  fixture_free(&f);
}
END_TEST

/* Parts are keys: scores lse, r = 1 + |lse| + distance from the largest,
   D = 1. */
START_TEST(merge_budgets_are_the_formula) {
  enum { S = 6, W = 4 };
  static const double lses[S] = {1.5, -2, INFINITY, 1.5 - 0x1p-11, 0.25, 1.75};
  mla_numerics numerics = {0};
  direct_declared u = {0x1p-24, 0x1p-24, 0, 0x1p-24, 0x1p-150, 0, 0};
  int base2 = _i & 1, sink = _i >> 1;
  fixture f;
  fixture_init(&f, MLA_OP_MERGE);
  f.problem.flags =
      MLA_RETURN_LSE | (base2 ? MLA_LSE_BASE2 : 0) | (sink ? MLA_HAS_SINK : 0);
  f.problem.num_heads = 1;
  f.problem.v_head_dim = W;
  f.problem.out_dtype = MLA_F32;
  fixture_tensor(&f, MLA_T_PARTS, MLA_F64, 0, S, 1, 1, W);
  fixture_tensor(&f, MLA_T_PART_LSES, MLA_F64, 0, S, 1, 1, 0);
  fixture_tensor(&f, MLA_T_OUT, MLA_F32, 0, 1, 1, W, 0);
  fixture_tensor(&f, MLA_T_LSE, MLA_F64, 0, 1, 1, 0, 0);
  fixture_bell(&f, MLA_T_PARTS, 1);
  double s[S], p[S], r[S], v[S * W], ln = base2 ? log(2) : 1;
  direct_row x = {0};
  x.s = s;
  x.p = p;
  x.r = r;
  x.v = v;
  x.d = 1;
  x.dv = W;
  x.sink = sink ? 4.5 : -INFINITY;
  if (sink) {
    fixture_tensor(&f, MLA_T_SINK, MLA_F64, 0, 1, 0, 0, 0);
    fixture_set(&f, MLA_T_SINK, 0, x.sink);
  }
  for (int i = 0; i < S; i++) {
    fixture_set(&f, MLA_T_PART_LSES, i, lses[i]);
    if (isinf(lses[i])) continue;
    for (int e = 0; e < W; e++)
      v[x.n * W + e] = fixture_get(&f, MLA_T_PARTS, i * W + e);
    r[x.n] = 1 + (fabs(lses[i]) + 1.75 - lses[i]) * ln;
    s[x.n++] = lses[i] * ln;
  }
  direct_softmax(&x);
  budgets got = budgets_of(&f, &numerics);
  for (int e = 0; e < W; e++) near(got.out[e], direct_out_budget(&x, e, &u));
  double lse = direct_lse_budget(&x, &u, 0);
  near(got.lse[0], base2 ? lse / ln + 0x1p-53 * fabs(x.lse / ln) : lse);
  budgets_free(&got);
  fixture_free(&f);
}
END_TEST

/* Sums that are subnormal in f32 round to multiples of 2^-149, each time. */
START_TEST(subnormal_sums_round_each_time) {
  enum { K = 66, N = 400 };
  mla_numerics numerics = {0};
  double budget[N], worst = 0;
  fixture f;
  fixture_init(&f, MLA_OP_MATMUL);
  f.problem.out_dtype = MLA_F32;
  f.problem.q_lora_rank = K;
  f.problem.hidden_size = N;
  fixture_tensor(&f, MLA_T_A, MLA_F32, 0, 1, K, 0, 0);
  fixture_tensor(&f, MLA_T_B, MLA_F32, 0, N, K, 0, 0);
  fixture_tensor(&f, MLA_T_OUT, MLA_F32, 0, 1, N, 0, 0);
  fixture_bell(&f, MLA_T_A, 0x1p-131);
  fixture_bell(&f, MLA_T_B, 0x1p-3);
  mla_expected *x = fixture_expect(&f, NULL);
  mla_expected_budget(x, 0, &numerics, budget);
  for (int n = 0; n < N; n++) {
    float sum = 0;
    for (int k = 0; k < K; k++)
      sum = fmaf((float)fixture_get(&f, MLA_T_A, k),
                 (float)fixture_get(&f, MLA_T_B, n * K + k), sum);
    double error = fabs((double)sum - mla_expected_at(x, 0).value[n]);
    worst = fmax(worst, error / budget[n]);
    ck_assert_double_le(budget[n], 64 * 0x1p-150);
  }
  ck_assert_double_le(worst, 1);
  ck_assert_double_gt(worst, 0.1);
  mla_expected_free(x);
  fixture_free(&f);
}
END_TEST

/* Every second entry weighs e^-110 of the others, which are 0: what is left of
   1e30 then, a kernel in f32 loses. One that loses normal numbers fails. */
START_TEST(weights_below_f32_may_be_lost) {
  mla_numerics numerics = {0};
  static const struct variant v = {MLA_OP_DECODE, 0, 0, 0};
  fixture f;
  int lost = 0;
  build(&f, &v);
  for (int64_t i = 0; i < fixture_count(&f, MLA_T_Q); i++)
    fixture_set(&f, MLA_T_Q, i, i % 14 == 13);
  for (int64_t i = 0; i < fixture_count(&f, MLA_T_CACHE); i++) {
    int odd = (int)(i / 14 % 2);
    double deep = _i ? -80 : -110;
    fixture_set(&f, MLA_T_CACHE, i,
                !odd ? 0 : (i % 14 == 13 ? deep / f.problem.scale : 1e30));
  }
  budgets got = budgets_of(&f, &numerics);
  mla_expected_view want = mla_expected_at(got.expected, 0);
  for (int64_t i = 0; i < want.rows * want.width; i++) {
    double x = want.value[i];
    if (x == 0 || x > 1) continue; /* no key of one kind */
    ck_assert_msg((x <= got.out[i]) == (_i == 0), "%g %g", x, got.out[i]);
    ck_assert_double_le(got.out[i], 1e-2 * x + 1e-14);
    lost++;
  }
  ck_assert_int_gt(lost, 0);
  budgets_free(&got);
  fixture_free(&f);
}
END_TEST

/* A kernel in f32 that takes the sink into its maximum: e^(lse - sink) alone
   errs by as much as the rounding of 60.2, which no other term allows; and is
   0 when the sink is higher still. */
START_TEST(a_sink_far_above_the_lse_rounds) {
  static const float lse = 0.1f, sinks[] = {60.3f, 95, 150, 700};
  const float sink = sinks[_i];
  mla_numerics numerics = {0};
  fixture f;
  fixture_init(&f, MLA_OP_MERGE);
  f.problem.flags = MLA_RETURN_LSE | MLA_HAS_SINK;
  f.problem.num_heads = 1;
  f.problem.v_head_dim = 1;
  f.problem.out_dtype = MLA_F32;
  fixture_tensor(&f, MLA_T_PARTS, MLA_F32, 0, 1, 1, 1, 1);
  fixture_tensor(&f, MLA_T_PART_LSES, MLA_F32, 0, 1, 1, 1, 0);
  fixture_tensor(&f, MLA_T_SINK, MLA_F32, 0, 1, 0, 0, 0);
  fixture_tensor(&f, MLA_T_OUT, MLA_F32, 0, 1, 1, 1, 0);
  fixture_tensor(&f, MLA_T_LSE, MLA_F32, 0, 1, 1, 0, 0);
  fixture_set(&f, MLA_T_PARTS, 0, 1);
  fixture_set(&f, MLA_T_PART_LSES, 0, lse);
  fixture_set(&f, MLA_T_SINK, 0, sink);
  budgets got = budgets_of(&f, &numerics);
  double want = mla_expected_at(got.expected, 0).value[0];
  float weight = expf(lse - sink), sum = weight + 1;
  double error = fabs((double)(weight / sum) - want);
  ck_assert_double_gt(error, 8 * 0x1p-24 * want);
  ck_assert_double_le(error, got.out[0]);
  ck_assert_double_le(got.out[0], 1e-4 * want + 0x1p-125);
  budgets_free(&got);
  fixture_free(&f);
}
END_TEST

/* Numbers that a type flushes: found, and allowed for only if declared. */
START_TEST(declared_flushing_is_allowed_what_it_may_move) {
  mla_numerics strict = {0}, flushing = {0};
  static const struct variant v = {MLA_OP_DECODE, 0, 0, 0};
  const double small = 0x1.8p-16; /* subnormal in f16 */
  fixture f;
  flushing.flushes_subnormals = 1;
  build(&f, &v);
  f.problem.q_dtype = MLA_F16;
  f.problem.cache_format = MLA_CACHE_F16;
  fixture_decode(&f, ragged, 0);
  budgets a = budgets_of(&f, &strict), b = budgets_of(&f, &flushing);
  double plain = b.out[0] - a.out[0], lse = b.lse[0] - a.lse[0];
  budgets_free(&a);
  budgets_free(&b);
  for (int64_t i = 0; i < fixture_count(&f, MLA_T_Q); i++)
    if (i % 14 == 13) fixture_set(&f, MLA_T_Q, i, small);
  a = budgets_of(&f, &strict);
  b = budgets_of(&f, &flushing);
  ck_assert_double_eq(lse, 0);
  ck_assert_double_le(plain, 0x1p-126); /* out alone may be flushed */
  ck_assert_double_gt(b.lse[0] - a.lse[0], 0);
  ck_assert_double_le(b.lse[0] - a.lse[0], 0.7 * small * 4);
  ck_assert_double_gt(b.out[0] - a.out[0], plain);
  budgets_free(&a);
  budgets_free(&b);
  fixture_free(&f);
}
END_TEST

START_TEST(zeros_read_as_f32) {
  mla_numerics zeros = {0};
  mla_roundoffs u = mla_roundoffs_of(&zeros);
  ck_assert(u.acc == 0x1p-24 && u.p == 0x1p-24 && u.mid == 0x1p-24);
  ck_assert(!u.p_is_f16 && !u.flushes && !u.rounded_denominator);
  ck_assert(mla_smallest_normal(MLA_F16) == 0x1p-14);
  ck_assert(mla_smallest_normal(MLA_BF16) == 0x1p-126);
  ck_assert(mla_smallest_normal(MLA_F32) == 0x1p-126);
}
END_TEST

START_TEST(what_is_moved_is_exact_unless_the_type_changes) {
  mla_numerics zeros = {0};
  mla_roundoffs u = mla_roundoffs_of(&zeros);
  ck_assert(mla_budget_move(3, MLA_BF16, MLA_BF16, &u) == 0);
  ck_assert(mla_budget_move(3, MLA_F32, MLA_BF16, &u) == 3 * 0x1p-8 + 0x1p-134);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("budget");
  TCase *tests = tcase_create("formulas");
  tcase_add_loop_test(tests, attention_budgets_are_the_formula, 0, VARIANTS);
  tcase_add_test(tests, product_budgets_are_the_formula);
  tcase_add_loop_test(tests, merge_budgets_are_the_formula, 0, 4);
  tcase_add_test(tests, subnormal_sums_round_each_time);
  tcase_add_loop_test(tests, a_sink_far_above_the_lse_rounds, 0, 4);
  tcase_add_loop_test(tests, weights_below_f32_may_be_lost, 0, 2);
  tcase_add_test(tests, declared_flushing_is_allowed_what_it_may_move);
  tcase_add_test(tests, zeros_read_as_f32);
  tcase_add_test(tests, what_is_moved_is_exact_unless_the_type_changes);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
