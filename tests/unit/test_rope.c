/*
 * test_rope.c - rotary tables against values computed elsewhere, and what the
 * rotation must do whatever the table.
 */
#include "rope.h"

#include <string.h>

#include "check_main.h"
#include "dmath.h"
#include "dtype.h"
#include "mla/mla.h"
#include "rng.h"
#include "rope_constants.h"

#define MAX_PAIRS 64

static int near(double a, double b, double tolerance) {
  return mla_fabs(a - b) <= tolerance;
}

static mla_rope plain(int32_t dim, int half_split) {
  mla_rope rope;
  memset(&rope, 0, sizeof rope);
  rope.dim = dim;
  rope.theta = 10000;
  rope.half_split = half_split;
  return rope;
}

/* ------------------------------------------------------------------ tables */

START_TEST(table_is_right) {
  const rope_case *c = &rope_cases[_i];
  double f[MAX_PAIRS], cosine[MAX_PAIRS], sine[MAX_PAIRS];
  ck_assert_int_eq(mla_rope_check(&c->rope, NULL), MLA_OK);
  ck_assert(near(mla_rope_attention_factor(&c->rope), c->attention_factor,
                 4e-16 * c->attention_factor));
  ck_assert(near(mla_rope_softmax_factor(&c->rope), c->softmax_factor,
                 1e-15 * c->softmax_factor));
  mla_rope_frequencies(&c->rope, f);
  for (int k = 0; k < 3; k++) {
    ck_assert_msg(near(f[c->pair[k]], c->frequency[k], 4e-16 * c->frequency[k]),
                  "%s: f[%d] is %.17g, not %.17g", c->name, c->pair[k],
                  f[c->pair[k]], c->frequency[k]);
  }
  for (int p = 0; p < 4; p++) {
    mla_rope_angles(&c->rope, f, rope_positions[p], cosine, sine);
    for (int k = 0; k < 3; k++) {
      /* 4 roundings of an angle of up to 2^20, and of a value of up to 2. */
      double tolerance =
          4 * 0x1p-53 * (2 + (double)rope_positions[p] * c->frequency[k]);
      REQUIRE(near(cosine[c->pair[k]], c->cosine[p][k], 2 * tolerance),
              "%s: cosine at %d of pair %d is %.17g, not %.17g", c->name, p,
              c->pair[k], cosine[c->pair[k]], c->cosine[p][k]);
      REQUIRE(near(sine[c->pair[k]], c->sine[p][k], 2 * tolerance),
              "%s: sine at %d of pair %d is %.17g, not %.17g", c->name, p,
              c->pair[k], sine[c->pair[k]], c->sine[p][k]);
    }
  }
}
END_TEST

/* f32: every step rounded, so every number is one of f32 and the steps can be
   redone from the exact table. */
START_TEST(f32_table_rounds_each_step) {
  const rope_case *c = &rope_cases[_i];
  mla_rope rope = c->rope;
  double exact[MAX_PAIRS], f[MAX_PAIRS], cosine[MAX_PAIRS], sine[MAX_PAIRS];
  mla_rope_frequencies(&rope, exact);
  rope.table = MLA_ROPE_TABLE_F32;
  mla_rope_frequencies(&rope, f);
  float factor = (float)mla_rope_attention_factor(&rope);
  mla_rope_angles(&rope, f, 2011, cosine, sine);
  for (int i = 0; i < rope.dim / 2; i++) {
    REQUIRE(f[i] == (double)(float)exact[i], "f[%d] is not rounded", i);
    float angle = (float)((double)2011 * f[i]);
    float c32 = (float)mla_cos((double)angle);
    float s32 = (float)mla_sin((double)angle);
    REQUIRE(cosine[i] == (double)(float)((double)c32 * (double)factor),
            "cosine %d", i);
    REQUIRE(sine[i] == (double)(float)((double)s32 * (double)factor), "sine %d",
            i);
  }
}
END_TEST

START_TEST(query_scale_is_right) {
  mla_rope rope = plain(8, 0);
  rope.llama_4_beta = query_cases[_i].beta;
  rope.original_max_position = query_cases[_i].original;
  ck_assert_int_eq(mla_rope_check(&rope, NULL), MLA_OK);
  ck_assert(near(mla_rope_query_scale(&rope, query_cases[_i].position),
                 query_cases[_i].factor, 4e-16));
}
END_TEST

START_TEST(factors_can_be_given) {
  mla_rope rope = rope_cases[3].rope;
  rope.attention_factor = 1.25;
  ck_assert(mla_rope_attention_factor(&rope) == 1.25);
  rope.attention_factor = 0;
  ck_assert(mla_rope_attention_factor(&rope) == 1);
}
END_TEST

/* Not made whole, the bounds of the ramp move less than one dimension. */
START_TEST(ramp_without_truncation) {
  mla_rope rope = rope_cases[3].rope;
  double whole[MAX_PAIRS], real[MAX_PAIRS];
  int differ = 0;
  mla_rope_frequencies(&rope, whole);
  rope.no_truncation = 1;
  mla_rope_frequencies(&rope, real);
  for (int i = 0; i < rope.dim / 2; i++) differ += whole[i] != real[i];
  ck_assert_int_gt(differ, 2);
  ck_assert(whole[0] == real[0] && whole[31] == real[31]);
}
END_TEST

/* ---------------------------------------------------------------- rotation */

static void turn(const mla_rope *rope, int64_t position, double *x) {
  double f[MAX_PAIRS], cosine[MAX_PAIRS], sine[MAX_PAIRS];
  mla_rope_frequencies(rope, f);
  mla_rope_angles(rope, f, position, cosine, sine);
  mla_rope_rotate(rope, cosine, sine, x, MLA_F64, 0);
}

/* (x, y) becomes (x cos - y sin, y cos + x sin) in the places of the pair. */
START_TEST(pairs_are_where_they_say) {
  for (int half_split = 0; half_split < 2; half_split++) {
    mla_rope rope = plain(4, half_split);
    double x[4] = {1, 2, 3, 4};
    int second = half_split ? 2 : 1;
    turn(&rope, 1, x);
    ck_assert(near(x[0], mla_cos(1) - (second + 1) * mla_sin(1), 1e-15));
    ck_assert(near(x[second], (second + 1) * mla_cos(1) + mla_sin(1), 1e-15));
    double first = half_split ? 2 : 3; /* of the other pair, f = 0.01 */
    ck_assert(near(x[half_split ? 1 : 2],
                   first * mla_cos(0.01) - 4 * mla_sin(0.01), 1e-15));
    ck_assert(near(x[3], 4 * mla_cos(0.01) + first * mla_sin(0.01), 1e-15));
  }
}
END_TEST

/* What rotary positions are for: a score depends on the distance alone. */
START_TEST(scores_depend_on_distance) {
  mla_rng rng = mla_rng_named(1, "rope");
  for (int half_split = 0; half_split < 2; half_split++) {
    mla_rope rope = plain(64, half_split);
    double near_dot = 0, far_dot = 0, q[2][64], k[2][64];
    for (int i = 0; i < 64; i++) {
      q[0][i] = q[1][i] = mla_rng_bell(rng, (uint64_t)i);
      k[0][i] = k[1][i] = mla_rng_bell(rng, (uint64_t)i + 64);
    }
    turn(&rope, 17, q[0]);
    turn(&rope, 5, k[0]);
    turn(&rope, 4017, q[1]);
    turn(&rope, 4005, k[1]);
    for (int i = 0; i < 64; i++) {
      near_dot += q[0][i] * k[0][i];
      far_dot += q[1][i] * k[1][i];
    }
    ck_assert(near(near_dot, far_dot, 1e-10));
    turn(&rope, 1, k[1]);
    far_dot = 0;
    for (int i = 0; i < 64; i++) far_dot += q[1][i] * k[1][i];
    ck_assert(!near(near_dot, far_dot, 1e-3));
  }
}
END_TEST

START_TEST(rotation_rounds_once) {
  mla_rope rope = plain(8, 0);
  double f[4], cosine[4], sine[4], exact[8];
  float narrow[10];
  mla_rng rng = mla_rng_named(2, "rope");
  for (int i = 0; i < 8; i++) {
    exact[i] = mla_rng_bell(rng, (uint64_t)i);
    narrow[i + 1] = (float)exact[i];
  }
  narrow[0] = narrow[9] = 7;
  mla_rope_frequencies(&rope, f);
  mla_rope_angles(&rope, f, 3, cosine, sine);
  mla_rope_rotate(&rope, cosine, sine, exact, MLA_F64, 0);
  mla_rope_rotate(&rope, cosine, sine, narrow, MLA_F32, 1);
  for (int i = 0; i < 8; i++) ck_assert(narrow[i + 1] == (float)exact[i]);
  ck_assert(narrow[0] == 7 && narrow[9] == 7);
}
END_TEST

/* ---------------------------------------------------------------- refusals */

static void refused(const mla_rope *rope, const char *field, const char *word) {
  mla_error err = mla_error_init();
  ck_assert_int_eq(mla_rope_check(rope, &err), MLA_INVALID_ARGUMENT);
  ck_assert_str_eq(err.field, field);
  ck_assert_msg(strstr(err.message, word) != NULL, "\"%s\" lacks \"%s\"",
                err.message, word);
}

START_TEST(odd_widths_are_refused) {
  static const int32_t dims[] = {7, 3, 1, 0, -2};
  static const char *const words[] = {"7", "3", "1", "0", "-2"};
  mla_rope rope = plain(dims[_i], 0);
  refused(&rope, "qk_rope_head_dim", words[_i]);
}
END_TEST

START_TEST(bad_numbers_are_refused) {
  mla_rope rope = plain(8, 0);
  rope.theta = mla_nan();
  refused(&rope, "rope_theta", "nan");
  rope.theta = 0;
  refused(&rope, "rope_theta", "0");
  rope = plain(8, 0);
  rope.type = 9;
  refused(&rope, "rope_type", "9");
  rope = plain(8, 0);
  rope.table = 5;
  refused(&rope, "rope_table", "5");
  rope = plain(8, 0);
  rope.llama_4_beta = 0.1;
  refused(&rope, "original_max_position", "0");
  rope.llama_4_beta = -1;
  refused(&rope, "llama_4_scaling_beta", "-1");
}
END_TEST

START_TEST(bad_yarn_is_refused) {
  mla_rope rope = rope_cases[3].rope;
  rope.factor = 0;
  refused(&rope, "factor", "0");
  rope = rope_cases[3].rope;
  rope.beta_slow = 0;
  refused(&rope, "beta_fast", "beta_slow 0");
  rope = rope_cases[3].rope;
  rope.mscale = -1;
  refused(&rope, "mscale", "-1");
  rope = rope_cases[3].rope;
  rope.attention_factor = mla_inf();
  refused(&rope, "attention_factor", "inf");
  rope = rope_cases[3].rope;
  rope.theta = 1;
  refused(&rope, "rope_theta", "above 1");
  rope = rope_cases[3].rope;
  rope.original_max_position = 0;
  refused(&rope, "original_max_position", "0");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rope");
  TCase *tests = tcase_create("rope");
  tcase_add_loop_test(tests, table_is_right, 0, ROPE_CASES);
  tcase_add_loop_test(tests, f32_table_rounds_each_step, 0, ROPE_CASES);
  tcase_add_loop_test(tests, query_scale_is_right, 0, QUERY_CASES);
  tcase_add_test(tests, factors_can_be_given);
  tcase_add_test(tests, ramp_without_truncation);
  tcase_add_test(tests, pairs_are_where_they_say);
  tcase_add_test(tests, scores_depend_on_distance);
  tcase_add_test(tests, rotation_rounds_once);
  tcase_add_loop_test(tests, odd_widths_are_refused, 0, 5);
  tcase_add_test(tests, bad_numbers_are_refused);
  tcase_add_test(tests, bad_yarn_is_refused);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
