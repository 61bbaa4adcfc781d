/*
 * absorb, q_absorb, v_expand and matmul of the reference against the sums that
 * docs/spec.md writes down, element by element.
 */
#include <math.h>
#include <stdlib.h>

#include "check_main.h"
#include "dtype.h"
#include "oracle_fixture.h"

#define HEADS 3
#define NOPE 5
#define ROPE 4
#define VALUE 6
#define LATENT 19
#define LQ 11
#define HIDDEN 13
#define TOKENS 7
#define DEPTH 600 /* more than a panel of the product is deep */
#define EACH (NOPE + VALUE)

static void setup(fixture *f, mla_op op, uint64_t flags) {
  fixture_init(f, op);
  f->problem.flags = flags;
  f->problem.num_heads = HEADS;
  f->problem.kv_lora_rank = LATENT;
  f->problem.qk_nope_head_dim = NOPE;
  f->problem.qk_rope_head_dim = ROPE;
  f->problem.v_head_dim = VALUE;
  f->problem.q_lora_rank = op == MLA_OP_MATMUL ? DEPTH : LQ;
  f->problem.hidden_size = HIDDEN;
}

static void setup_absorb(fixture *f, int64_t pad) {
  setup(f, MLA_OP_ABSORB, MLA_FUSED_Q | MLA_FUSED_O);
  fixture_tensor(f, MLA_T_KV_B_PROJ, MLA_F64, pad, HEADS * EACH, LATENT, 0, 0);
  fixture_tensor(f, MLA_T_Q_B_PROJ, MLA_F64, pad, HEADS * (NOPE + ROPE), LQ, 0,
                 0);
  fixture_tensor(f, MLA_T_O_PROJ, MLA_F64, pad, HIDDEN, HEADS * VALUE, 0, 0);
  fixture_bell(f, MLA_T_KV_B_PROJ, 1);
  fixture_bell(f, MLA_T_Q_B_PROJ, 1);
  fixture_bell(f, MLA_T_O_PROJ, 1);
  fixture_tensor(f, MLA_T_W_UK, MLA_F64, pad, HEADS, NOPE, LATENT, 0);
  fixture_tensor(f, MLA_T_W_UV, MLA_F64, pad, HEADS, VALUE, LATENT, 0);
  fixture_tensor(f, MLA_T_W_Q_UK, MLA_F64, pad, LQ, HEADS, LATENT, 0);
  fixture_tensor(f, MLA_T_W_QR, MLA_F64, pad, LQ, HEADS, ROPE, 0);
  fixture_tensor(f, MLA_T_W_UV_O, MLA_F64, pad, HEADS, LATENT, HIDDEN, 0);
}

static double kv_b(const fixture *f, int64_t h, int64_t row, int64_t l) {
  return fixture_get(f, MLA_T_KV_B_PROJ, (h * EACH + row) * LATENT + l);
}

static double q_b(const fixture *f, int64_t h, int64_t row, int64_t i) {
  return fixture_get(f, MLA_T_Q_B_PROJ, (h * (NOPE + ROPE) + row) * LQ + i);
}

static void near(const fixture *f, int slot, int64_t i, double want) {
  ck_assert_double_eq_tol(fixture_get(f, slot, i), want, 1e-13);
}

START_TEST(absorb_splits_and_fuses) {
  fixture f;
  setup_absorb(&f, _i);
  fixture_run(&f);
  for (int64_t h = 0; h < HEADS; h++)
    for (int64_t l = 0; l < LATENT; l++) {
      for (int64_t p = 0; p < NOPE; p++)
        ck_assert(fixture_get(&f, MLA_T_W_UK, (h * NOPE + p) * LATENT + l) ==
                  kv_b(&f, h, p, l));
      for (int64_t v = 0; v < VALUE; v++)
        ck_assert(fixture_get(&f, MLA_T_W_UV, (h * VALUE + v) * LATENT + l) ==
                  kv_b(&f, h, NOPE + v, l));
      for (int64_t i = 0; i < LQ; i++) {
        double sum = 0;
        for (int64_t p = 0; p < NOPE; p++)
          sum += q_b(&f, h, p, i) * kv_b(&f, h, p, l);
        near(&f, MLA_T_W_Q_UK, (i * HEADS + h) * LATENT + l, sum);
      }
      for (int64_t o = 0; o < HIDDEN; o++) {
        double sum = 0;
        for (int64_t v = 0; v < VALUE; v++)
          sum +=
              fixture_get(&f, MLA_T_O_PROJ, o * HEADS * VALUE + h * VALUE + v) *
              kv_b(&f, h, NOPE + v, l);
        near(&f, MLA_T_W_UV_O, (h * LATENT + l) * HIDDEN + o, sum);
      }
    }
  for (int64_t i = 0; i < LQ * HEADS * ROPE; i++)
    ck_assert(fixture_get(&f, MLA_T_W_QR, i) ==
              q_b(&f, i / ROPE % HEADS, NOPE + i % ROPE, i / ROPE / HEADS));
  fixture_free(&f);
}
END_TEST

static void setup_head(fixture *f, int absorb, int64_t pad) {
  setup(f, absorb ? MLA_OP_Q_ABSORB : MLA_OP_V_EXPAND, 0);
  int in = absorb ? MLA_T_Q_NOPE : MLA_T_O_LATENT;
  int w = absorb ? MLA_T_W_UK : MLA_T_W_UV;
  int64_t rows = absorb ? NOPE : VALUE;
  fixture_tensor(f, in, MLA_F64, pad, TOKENS, HEADS, absorb ? NOPE : LATENT, 0);
  fixture_tensor(f, w, MLA_F64, pad, HEADS, rows, LATENT, 0);
  fixture_tensor(f, absorb ? MLA_T_Q_LATENT : MLA_T_OUT, MLA_F64, pad, TOKENS,
                 HEADS, absorb ? LATENT : VALUE, 0);
  fixture_bell(f, in, 1);
  fixture_bell(f, w, 1);
}

START_TEST(queries_are_absorbed) {
  fixture f;
  setup_head(&f, 1, _i);
  fixture_run(&f);
  for (int64_t row = 0; row < TOKENS * HEADS; row++)
    for (int64_t l = 0; l < LATENT; l++) {
      double sum = 0;
      for (int64_t p = 0; p < NOPE; p++)
        sum +=
            fixture_get(&f, MLA_T_Q_NOPE, row * NOPE + p) *
            fixture_get(&f, MLA_T_W_UK, (row % HEADS * NOPE + p) * LATENT + l);
      near(&f, MLA_T_Q_LATENT, row * LATENT + l, sum);
    }
  fixture_free(&f);
}
END_TEST

START_TEST(values_are_expanded) {
  fixture f;
  setup_head(&f, 0, _i);
  fixture_run(&f);
  for (int64_t row = 0; row < TOKENS * HEADS; row++)
    for (int64_t v = 0; v < VALUE; v++) {
      double sum = 0;
      for (int64_t l = 0; l < LATENT; l++)
        sum +=
            fixture_get(&f, MLA_T_O_LATENT, row * LATENT + l) *
            fixture_get(&f, MLA_T_W_UV, (row % HEADS * VALUE + v) * LATENT + l);
      near(&f, MLA_T_OUT, row * VALUE + v, sum);
    }
  fixture_free(&f);
}
END_TEST

static const int32_t dtypes[] = {MLA_F64, MLA_F32, MLA_F16, MLA_BF16};

START_TEST(matmul_adds_in_order_and_rounds_once) {
  fixture f;
  setup(&f, MLA_OP_MATMUL, 0);
  int32_t dtype = dtypes[_i];
  fixture_tensor(&f, MLA_T_A, dtype, _i, TOKENS, DEPTH, 0, 0);
  fixture_tensor(&f, MLA_T_B, dtype, 2, HIDDEN, DEPTH, 0, 0);
  fixture_tensor(&f, MLA_T_OUT, dtype, 1, TOKENS, HIDDEN, 0, 0);
  f.problem.q_dtype = f.problem.weight_dtype = f.problem.out_dtype = dtype;
  fixture_bell(&f, MLA_T_A, 0.5);
  fixture_bell(&f, MLA_T_B, 0.5);
  fixture_run(&f);
  for (int64_t m = 0; m < TOKENS; m++)
    for (int64_t n = 0; n < HIDDEN; n++) {
      double sum = 0;
      for (int64_t k = 0; k < DEPTH; k++)
        sum += fixture_get(&f, MLA_T_A, m * DEPTH + k) *
               fixture_get(&f, MLA_T_B, n * DEPTH + k);
      ck_assert(fixture_get(&f, MLA_T_OUT, m * HIDDEN + n) ==
                mla_round_to(dtype, sum));
    }
  fixture_free(&f);
}
END_TEST

/* Some rows of every output, and what their budgets are made of. */
START_TEST(sampled_rows_are_the_rows) {
  static const int64_t rows[] = {0, 3, 4, 10, 17, 1000};
  const mla_selection some = {6, rows};
  mla_numerics exact = {0};
  fixture f;
  setup_absorb(&f, 1);
  fixture_run(&f);
  exact.u_acc = 0x1p-53;
  mla_expected *x = fixture_expect(&f, &some);
  ck_assert_int_eq(mla_expected_count(x), 5);
  for (int32_t i = 0; i < 5; i++) {
    mla_expected_view v = mla_expected_at(x, i);
    double *budget = malloc((size_t)(v.rows * v.width) * sizeof *budget);
    mla_expected_budget(x, i, &exact, budget);
    ck_assert_int_ge(v.rows, 4);
    ck_assert_int_lt(v.row_index[v.rows - 1],
                     fixture_count(&f, v.slot) / v.width);
    int is_move =
        v.slot == MLA_T_W_UK || v.slot == MLA_T_W_UV || v.slot == MLA_T_W_QR;
    for (int64_t j = 0; j < v.rows * v.width; j++) {
      int64_t at = v.row_index[j / v.width] * v.width + j % v.width;
      ck_assert(v.value[j] == fixture_get(&f, v.slot, at));
      ck_assert(is_move ? budget[j] == 0 : budget[j] > 0);
      ck_assert_double_lt(budget[j], 1e-13);
    }
    free(budget);
  }
  mla_expected_free(x);
  fixture_free(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("oracle_product");
  TCase *tests = tcase_create("product");
  tcase_add_loop_test(tests, absorb_splits_and_fuses, 0, 2);
  tcase_add_loop_test(tests, queries_are_absorbed, 0, 2);
  tcase_add_loop_test(tests, values_are_expanded, 0, 2);
  tcase_add_loop_test(tests, matmul_adds_in_order_and_rounds_once, 0, 4);
  tcase_add_test(tests, sampled_rows_are_the_rows);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
