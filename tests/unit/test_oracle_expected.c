/*
 * Expectations: sampled rows, what is kept in files, what is emulated.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "oracle_fixture.h"

static const int64_t seqs[] = {3, 11, 4, 9};
static const int64_t queries[] = {3, 2, 0, 9};
static const requests ragged = {4, seqs, queries};
#define HEADS 3
#define ROWS (14 * HEADS)

static void setup(fixture *f, mla_op op) {
  fixture_init(f, op);
  f->problem.flags = MLA_CAUSAL | MLA_CONTEXT | MLA_HAS_SINK;
  f->problem.num_heads = HEADS;
  f->problem.qk_nope_head_dim = 7;
  f->problem.qk_rope_head_dim = 4;
  f->problem.v_head_dim = 6;
  f->problem.kv_lora_rank = 10;
  f->problem.block_size = 4;
  if (op == MLA_OP_PREFILL) {
    fixture_prefill(f, ragged, 1);
  } else {
    f->problem.flags &= ~MLA_CONTEXT;
    fixture_decode(f, ragged, 1);
  }
}

static const mla_op ops[] = {MLA_OP_DECODE, MLA_OP_PREFILL};

START_TEST(all_rows_are_those_of_a_run) {
  fixture f;
  setup(&f, ops[_i]);
  mla_expected *x = fixture_expect(&f, NULL);
  ck_assert_int_eq(mla_expected_count(x), 2);
  fixture_run(&f);
  for (int32_t i = 0; i < 2; i++) {
    mla_expected_view v = mla_expected_at(x, i);
    ck_assert_int_eq(v.rows, ROWS); /* padding tokens left out */
    ck_assert(v.row_index == NULL);
    for (int64_t j = 0; j < v.rows * v.width; j++)
      ck_assert(v.value[j] == fixture_get(&f, v.slot, j));
  }
  mla_expected_free(x);
  fixture_free(&f);
}
END_TEST

static double *budget_of(const mla_expected *x, int32_t i) {
  mla_expected_view v = mla_expected_at(x, i);
  double *budget = malloc((size_t)(v.rows * v.width + 1) * sizeof *budget);
  mla_expected_budget(x, i, NULL, budget);
  return budget;
}

START_TEST(sampled_rows_have_the_bits_of_all) {
  static const int64_t rows[] = {1, 2, 9, 13, 14, 40, 42, 43, 5000};
  const mla_selection some = {9, rows};
  fixture f;
  setup(&f, ops[_i]);
  mla_expected *all = fixture_expect(&f, NULL);
  mla_expected *x = fixture_expect(&f, &some);
  for (int32_t i = 0; i < 2; i++) {
    mla_expected_view a = mla_expected_at(all, i), b = mla_expected_at(x, i);
    double *full = budget_of(all, i), *part = budget_of(x, i);
    ck_assert_int_eq(b.rows, 6); /* 42 and on are padding or beyond */
    for (int64_t r = 0; r < b.rows; r++)
      for (int64_t d = 0; d < b.width; d++) {
        int64_t at = b.row_index[r] * b.width + d;
        ck_assert(b.value[r * b.width + d] == a.value[at]);
        ck_assert(part[r * b.width + d] == full[at]);
      }
    free(full);
    free(part);
  }
  mla_expected_free(all);
  mla_expected_free(x);
  fixture_free(&f);
}
END_TEST

START_TEST(arrays_carry_the_whole_expectation) {
  fixture f;
  setup(&f, ops[_i]);
  mla_expected *x = fixture_expect(&f, NULL), *y = NULL;
  ck_assert_int_eq(mla_expected_alloc(&f.problem, &f.args, NULL, &y, NULL),
                   MLA_OK);
  int32_t k = 0;
  for (;; k++) {
    mla_expected_array from = mla_expected_array_at(x, k);
    mla_expected_array to = mla_expected_array_at(y, k);
    if (!from.data) break;
    ck_assert_str_eq(from.name, to.name);
    ck_assert_int_eq(from.count, to.count);
    memcpy(to.data, from.data, (size_t)from.count * sizeof(double));
  }
  ck_assert_int_gt(k, 3);
  ck_assert(mla_expected_array_at(y, k).data == NULL);
  for (int32_t i = 0; i < 2; i++) {
    mla_expected_view v = mla_expected_at(x, i), w = mla_expected_at(y, i);
    size_t bytes = (size_t)(v.rows * v.width) * sizeof(double);
    double *a = budget_of(x, i), *b = budget_of(y, i);
    ck_assert_mem_eq(v.value, w.value, bytes);
    ck_assert_mem_eq(a, b, bytes);
    free(a);
    free(b);
  }
  mla_expected_free(x);
  mla_expected_free(y);
  fixture_free(&f);
}
END_TEST

/* q in steps of amax / 127: the same as handing in that q. */
START_TEST(int8_queries_are_emulated) {
  fixture f;
  mla_numerics emulate = {0};
  mla_expected *x = NULL;
  setup(&f, ops[_i]);
  emulate.q_round = MLA_Q_ROUND_INT8_ROW;
  ck_assert_int_eq(mla_expect(&f.problem, &f.args, NULL, &emulate, &x, NULL),
                   MLA_OK);
  int64_t width = f.tensor[MLA_T_Q].shape[2];
  for (int64_t row = 0; row < ROWS; row++) {
    double amax = 0;
    for (int64_t e = 0; e < width; e++)
      amax = fmax(amax, fabs(fixture_get(&f, MLA_T_Q, row * width + e)));
    double scale = (double)(float)(amax / 127);
    for (int64_t e = 0; e < width; e++) {
      double q = fixture_get(&f, MLA_T_Q, row * width + e);
      fixture_set(&f, MLA_T_Q, row * width + e,
                  nearbyint((double)(float)(q / scale)) * scale);
    }
  }
  fixture_run(&f);
  mla_expected_view v = mla_expected_at(x, 0);
  for (int64_t j = 0; j < v.rows * v.width; j++)
    ck_assert(v.value[j] == fixture_get(&f, v.slot, j));
  mla_expected_free(x);
  fixture_free(&f);
}
END_TEST

START_TEST(rows_without_keys_have_no_budget) {
  static const int64_t none[] = {0}, one[] = {2};
  requests r = {1, none, one};
  fixture f;
  fixture_init(&f, MLA_OP_DECODE);
  f.problem.num_heads = 1;
  f.problem.kv_lora_rank = 3;
  f.problem.block_size = 1;
  fixture_decode(&f, r, 0);
  mla_expected *x = fixture_expect(&f, NULL);
  double *out = budget_of(x, 0), *lse = budget_of(x, 1);
  for (int i = 0; i < 6; i++) ck_assert(out[i] == 0);
  ck_assert(lse[0] == 0 && lse[1] == 0);
  ck_assert(mla_expected_at(x, 1).value[0] == -INFINITY);
  free(out);
  free(lse);
  mla_expected_free(x);
  fixture_free(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("oracle_expected");
  TCase *tests = tcase_create("expected");
  tcase_add_loop_test(tests, all_rows_are_those_of_a_run, 0, 2);
  tcase_add_loop_test(tests, sampled_rows_have_the_bits_of_all, 0, 2);
  tcase_add_loop_test(tests, arrays_carry_the_whole_expectation, 0, 2);
  tcase_add_loop_test(tests, int8_queries_are_emulated, 0, 2);
  tcase_add_test(tests, rows_without_keys_have_no_budget);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
