/*
 * Decode of the reference against direct loops, and every rule of docs/spec.md
 * that a page, a mask, a sink or a split can break.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "check_main.h"
#include "dtype.h"
#include "oracle_fixture.h"
#include "tensor.h"

#define CLOSE 2e-15

static const int64_t seqs[] = {7, 2, 33, 0, 16};
static const int64_t queries[] = {1, 3, 2, 2, 0};
static const requests ragged = {5, seqs, queries};

static void sizes(fixture *f, uint64_t flags) {
  f->problem.flags = flags;
  f->problem.num_heads = 6;
  f->problem.kv_lora_rank = 12;
  f->problem.qk_rope_head_dim = 5;
  f->problem.block_size = 4;
}

typedef struct variant {
  uint64_t flags;
  int32_t kv_heads, block_size, v_dim;
  double cap;
} variant;

static const variant variants[] = {
    {MLA_CAUSAL, 1, 4, 0, 0},
    {0, 1, 1, 0, 0},
    {MLA_CAUSAL | MLA_HAS_SINK, 1, 16, 7, 0},
    {MLA_CAUSAL | MLA_LSE_BASE2, 1, 53, 17, 1.5},
    {MLA_HAS_SINK | MLA_LSE_BASE2, 1, 2, 0, 0.25},
    {MLA_CAUSAL | MLA_SEPARATE_V, 3, 4, 9, 0},
    {MLA_SEPARATE_V | MLA_HAS_SINK, 2, 5, 20, 3},
    {MLA_CAUSAL | MLA_SEPARATE_V | MLA_LSE_BASE2, 6, 3, 1, 0},
};
#define VARIANTS ((int)(sizeof variants / sizeof variants[0]))
static const int32_t splits[] = {0, 1, 2, 7, 33, 64, 1000};

static void vary(fixture *f, const variant *v, int64_t pad) {
  sizes(f, v->flags);
  f->problem.num_kv_heads = v->kv_heads;
  f->problem.block_size = v->block_size;
  f->problem.v_dim = v->v_dim;
  f->problem.logits_soft_cap = v->cap;
  fixture_decode(f, ragged, pad);
}

static void compare(const fixture *f, const direct *x, double bound) {
  double *out = fixture_values(f, MLA_T_OUT);
  double *lse = fixture_values(f, MLA_T_LSE);
  ck_assert_double_le(largest_difference(out, x->out, x->rows * x->width),
                      bound);
  ck_assert_double_le(largest_difference(lse, x->lse, x->rows), bound);
  for (int64_t i = x->rows * x->width; i < fixture_count(f, MLA_T_OUT); i++)
    ck_assert_msg(isnan(out[i]), "a padding row was written");
  for (int64_t i = x->rows; i < fixture_count(f, MLA_T_LSE); i++)
    ck_assert_msg(isnan(lse[i]), "lse of a padding row was written");
  free(out);
  free(lse);
}

START_TEST(every_variant_in_any_number_of_parts_is_the_direct_answer) {
  fixture f;
  fixture_init(&f, MLA_OP_DECODE);
  vary(&f, &variants[_i], _i % 3);
  direct x = direct_attention(&f);
  for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
    f.limits.num_splits = splits[i];
    fixture_run(&f);
    compare(&f, &x, 4 * CLOSE);
  }
  direct_free(&x);
  fixture_free(&f);
}
END_TEST

START_TEST(rows_without_keys_are_exactly_nothing) {
  fixture f;
  fixture_init(&f, MLA_OP_DECODE);
  sizes(&f, MLA_CAUSAL | MLA_HAS_SINK);
  fixture_decode(&f, ragged, 0);
  for (f.limits.num_splits = 0; f.limits.num_splits < 3;
       f.limits.num_splits++) {
    fixture_run(&f);
    /* Token 1 is the first of three of a request with two keys; tokens 6 and 7
       belong to a request without any. */
    static const int64_t empty[] = {1, 6, 7};
    for (int i = 0; i < 3; i++)
      for (int64_t h = 0; h < 6; h++) {
        int64_t row = empty[i] * 6 + h;
        ck_assert(fixture_get(&f, MLA_T_LSE, row) == -INFINITY);
        for (int64_t d = 0; d < 12; d++)
          ck_assert(fixture_get(&f, MLA_T_OUT, row * 12 + d) == 0);
      }
  }
  fixture_free(&f);
}
END_TEST

/* One request of one token whose keys and query the test sets itself. */
static void tiny(fixture *f, uint64_t flags, int64_t keys) {
  static const int64_t one = 1;
  requests r = {1, &keys, &one};
  f->problem.flags = flags;
  f->problem.num_heads = 1;
  f->problem.kv_lora_rank = 2;
  f->problem.qk_rope_head_dim = 1;
  f->problem.block_size = 1;
  f->problem.scale = 0.5;
  fixture_decode(f, r, 0);
}

static void set_key(fixture *f, int64_t j, double a, double b, double rope) {
  int64_t row = (int64_t)fixture_get(f, MLA_T_BLOCK_TABLE, j);
  fixture_set(f, MLA_T_CACHE, row * 3, a);
  fixture_set(f, MLA_T_CACHE, row * 3 + 1, b);
  fixture_set(f, MLA_T_CACHE, row * 3 + 2, rope);
}

static void set_query(fixture *f, double a, double b, double rope) {
  fixture_set(f, MLA_T_Q, 0, a);
  fixture_set(f, MLA_T_Q, 1, b);
  fixture_set(f, MLA_T_Q, 2, rope);
}

static double out_of(const fixture *f, int64_t i) {
  return fixture_get(f, MLA_T_OUT, i);
}

START_TEST(one_key_gives_its_value_and_its_score) {
  fixture f;
  fixture_init(&f, MLA_OP_DECODE);
  tiny(&f, MLA_CAUSAL, 1);
  set_query(&f, 1, 2, 3);
  set_key(&f, 0, 5, -7, 2);
  fixture_run(&f);
  ck_assert_double_eq(out_of(&f, 0), 5);
  ck_assert_double_eq(out_of(&f, 1), -7);
  ck_assert_double_eq(fixture_get(&f, MLA_T_LSE, 0), -1.5); /* .5 (5-14+6) */
  fixture_free(&f);
}
END_TEST

/* Scores 0 and ln 3: weights 1/4 and 3/4, lse ln 4. */
static void two_keys(fixture *f, uint64_t flags) {
  tiny(f, flags, 2);
  set_query(f, 0, 0, 2);
  set_key(f, 0, 8, 0, 0);
  set_key(f, 1, 0, 4, log(3));
}

START_TEST(two_keys_by_hand) {
  fixture f;
  fixture_init(&f, MLA_OP_DECODE);
  two_keys(&f, 0);
  fixture_run(&f);
  ck_assert_double_eq_tol(out_of(&f, 0), 2, CLOSE);
  ck_assert_double_eq_tol(out_of(&f, 1), 3, CLOSE);
  ck_assert_double_eq_tol(fixture_get(&f, MLA_T_LSE, 0), log(4), CLOSE);
  f.problem.flags |= MLA_LSE_BASE2;
  fixture_run(&f);
  ck_assert_double_eq_tol(fixture_get(&f, MLA_T_LSE, 0), 2, CLOSE);
  fixture_free(&f);
}
END_TEST

START_TEST(a_sink_takes_its_share_and_leaves_lse_alone) {
  static const double sinks[] = {-INFINITY, -800, 0, 1.25, 800};
  fixture f;
  fixture_init(&f, MLA_OP_DECODE);
  two_keys(&f, MLA_HAS_SINK);
  for (int i = 0; i < 5; i++)
    for (f.limits.num_splits = 1; f.limits.num_splits < 4;
         f.limits.num_splits++) {
      double share = 1 / (1 + exp(sinks[i] - log(4)));
      fixture_set(&f, MLA_T_SINK, 0, sinks[i]);
      fixture_run(&f);
      ck_assert_double_eq_tol(out_of(&f, 0), 2 * share, CLOSE);
      ck_assert_double_eq_tol(out_of(&f, 1), 3 * share, CLOSE);
      ck_assert_double_eq_tol(fixture_get(&f, MLA_T_LSE, 0), log(4), CLOSE);
    }
  fixture_free(&f);
}
END_TEST

START_TEST(a_soft_cap_bends_scores) {
  fixture f;
  fixture_init(&f, MLA_OP_DECODE);
  two_keys(&f, 0);
  f.problem.logits_soft_cap = 0.5;
  double w = exp(0.5 * tanh(log(3) / 0.5));
  fixture_run(&f);
  ck_assert_double_eq_tol(out_of(&f, 0), 8 / (1 + w), CLOSE);
  ck_assert_double_eq_tol(out_of(&f, 1), 4 * w / (1 + w), CLOSE);
  ck_assert_double_eq_tol(fixture_get(&f, MLA_T_LSE, 0), log(1 + w), CLOSE);
  fixture_free(&f);
}
END_TEST

START_TEST(the_mask_is_bottom_right_and_only_if_asked) {
  static const int64_t seq = 3, query = 2;
  requests r = {1, &seq, &query};
  fixture f;
  fixture_init(&f, MLA_OP_DECODE);
  sizes(&f, MLA_CAUSAL);
  f.problem.num_heads = 1;
  fixture_decode(&f, r, 0);
  fixture_bell(&f, MLA_T_Q, 0); /* all scores 0: lse is ln of the count */
  fixture_run(&f);
  ck_assert_double_eq_tol(fixture_get(&f, MLA_T_LSE, 0), log(2), CLOSE);
  ck_assert_double_eq_tol(fixture_get(&f, MLA_T_LSE, 1), log(3), CLOSE);
  f.problem.flags &= ~MLA_CAUSAL;
  fixture_run(&f);
  ck_assert_double_eq_tol(fixture_get(&f, MLA_T_LSE, 0), log(3), CLOSE);
  fixture_free(&f);
}
END_TEST

/* The same requests twice, in other memory: not one bit may differ. */
static void same_bits(fixture *a, fixture *b) {
  int64_t rows = 8 * 6;
  fixture_run(a);
  fixture_run(b);
  double *x = fixture_values(a, MLA_T_OUT), *y = fixture_values(b, MLA_T_OUT);
  ck_assert_mem_eq(x, y, (size_t)(rows * 12) * sizeof *x);
  free(x);
  free(y);
  x = fixture_values(a, MLA_T_LSE);
  y = fixture_values(b, MLA_T_LSE);
  ck_assert_mem_eq(x, y, (size_t)rows * sizeof *x);
  free(x);
  free(y);
}

START_TEST(pages_and_strides_leave_the_bits_alone) {
  static const int32_t blocks[] = {1, 2, 5, 64};
  fixture a, b;
  fixture_init(&a, MLA_OP_DECODE);
  sizes(&a, MLA_CAUSAL);
  fixture_decode(&a, ragged, 0);
  fixture_init(&b, MLA_OP_DECODE);
  sizes(&b, MLA_CAUSAL);
  b.problem.block_size = blocks[_i];
  fixture_decode(&b, ragged, _i);
  same_bits(&a, &b);
  fixture_free(&a);
  fixture_free(&b);
}
END_TEST

#ifdef _OPENMP
/* Enough work for the oracle to take threads, several requests and heads. */
static void large(fixture *f) {
  static const int64_t long_seqs[] = {150, 301}, long_queries[] = {3, 2};
  requests r = {2, long_seqs, long_queries};
  fixture_init(f, MLA_OP_DECODE);
  sizes(f, MLA_CAUSAL);
  f->problem.kv_lora_rank = 60;
  fixture_decode(f, r, 0);
}

START_TEST(threads_leave_the_bits_alone) {
  fixture a, b;
  large(&a);
  large(&b);
  omp_set_num_threads(1);
  fixture_run(&a);
  omp_set_num_threads(2 + _i);
  fixture_run(&b);
  ck_assert_mem_eq(a.memory[MLA_T_OUT], b.memory[MLA_T_OUT], 5 * 6 * 60 * 8);
  fixture_free(&a);
  fixture_free(&b);
}
END_TEST
#endif

/* Values that the type holds exactly: the answer is the f64 one, rounded. */
START_TEST(narrow_types_are_read_exactly_and_written_once) {
  static const struct {
    int32_t dtype, format;
  } types[] = {{MLA_F32, MLA_CACHE_F32},
               {MLA_F16, MLA_CACHE_F16},
               {MLA_BF16, MLA_CACHE_BF16},
               {MLA_F32, MLA_CACHE_BF16}};
  fixture wide, narrow;
  fixture_init(&narrow, MLA_OP_DECODE);
  sizes(&narrow, MLA_CAUSAL);
  narrow.problem.q_dtype = types[_i].dtype;
  narrow.problem.cache_format = types[_i].format;
  narrow.problem.out_dtype = types[_i].dtype;
  fixture_decode(&narrow, ragged, 1);
  fixture_init(&wide, MLA_OP_DECODE);
  sizes(&wide, MLA_CAUSAL);
  fixture_decode(&wide, ragged, 0);
  for (int64_t i = 0; i < fixture_count(&wide, MLA_T_Q); i++)
    fixture_set(&wide, MLA_T_Q, i, fixture_get(&narrow, MLA_T_Q, i));
  for (int64_t i = 0; i < fixture_count(&wide, MLA_T_CACHE); i++)
    fixture_set(&wide, MLA_T_CACHE, i, fixture_get(&narrow, MLA_T_CACHE, i));
  fixture_run(&narrow);
  fixture_run(&wide);
  for (int64_t i = 0; i < 8 * 6 * 12; i++)
    ck_assert_double_eq(mla_round_to(types[_i].dtype, out_of(&wide, i)),
                        out_of(&narrow, i));
  for (int64_t i = 0; i < 8 * 6; i++)
    ck_assert(mla_round_to(MLA_F32, fixture_get(&wide, MLA_T_LSE, i)) ==
              fixture_get(&narrow, MLA_T_LSE, i));
  fixture_free(&wide);
  fixture_free(&narrow);
}
END_TEST

START_TEST(what_is_not_served_is_refused_with_the_field) {
  mla_error err = mla_error_init();
  fixture f;
  fixture_init(&f, MLA_OP_DECODE);
  sizes(&f, MLA_CAUSAL);
  fixture_decode(&f, ragged, 0);
  f.problem.q_dtype = MLA_BF16;
  f.problem.cache_format = MLA_CACHE_F16;
  ck_assert_int_eq(mla_oracle_run(&f.problem, &f.limits, &f.args, &err),
                   MLA_UNSUPPORTED);
  ck_assert_str_eq(err.field, "cache_format");
  ck_assert(isnan(out_of(&f, 0)));
  fixture_free(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("oracle_decode");
  TCase *tests = tcase_create("decode");
  tcase_add_loop_test(tests,
                      every_variant_in_any_number_of_parts_is_the_direct_answer,
                      0, VARIANTS);
  tcase_add_test(tests, rows_without_keys_are_exactly_nothing);
  tcase_add_test(tests, one_key_gives_its_value_and_its_score);
  tcase_add_test(tests, two_keys_by_hand);
  tcase_add_test(tests, a_sink_takes_its_share_and_leaves_lse_alone);
  tcase_add_test(tests, a_soft_cap_bends_scores);
  tcase_add_test(tests, the_mask_is_bottom_right_and_only_if_asked);
  tcase_add_loop_test(tests, pages_and_strides_leave_the_bits_alone, 0, 4);
#ifdef _OPENMP
  tcase_add_loop_test(tests, threads_leave_the_bits_alone, 0, 3);
#endif
  tcase_add_loop_test(tests, narrow_types_are_read_exactly_and_written_once, 0,
                      4);
  tcase_add_test(tests, what_is_not_served_is_refused_with_the_field);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
