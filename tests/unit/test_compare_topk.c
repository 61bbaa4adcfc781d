/*
 * A choice of the k largest: right in any order and by either side of a tie,
 * wrong by one position that the budgets do not excuse.
 */
#include "compare_topk.h"

#include <math.h>
#include <string.h>

#include "check_main.h"

enum { WIDTH = 9, TOPK = 4 };
static const double logits[WIDTH] = {1, 5,      3,         -2,       4,
                                     3, 3.0001, -INFINITY, -INFINITY};
static const double budgets[WIDTH] = {.001, .001, .001, .001, .001,
                                      .001, .001, 0,    0};

static int judged(const double *logit, const double *budget, int64_t width,
                  const int64_t *chosen, mla_topk_fault *fault) {
  unsigned char taken[WIDTH];
  mla_topk_row row = {logit, budget, width, TOPK, taken};
  int wrong = 0;
  memset(taken, 7, sizeof taken);
  mla_topk_judge(&row, chosen, fault);
  for (int i = 0; i < TOPK; i++) wrong += fault[i].ratio > 1;
  return wrong;
}

static const struct {
  int64_t chosen[TOPK];
  int wrong;
} choices[] = {
    {{1, 4, 6, 2}, 0}, /* the largest */
    {{5, 1, 6, 4}, 0}, /* in another order, by the other side of a tie */
    {{2, 5, 4, 1}, 0}, /* what lies within the budgets of a larger one */
    {{1, 4, 6, 0}, 1}, /* one that is not among them */
    {{1, 4, 3, 0}, 2},  {{1, 4, 6, 6}, 1}, /* one twice */
    {{1, 4, 6, 7}, 1},                     /* one that is not seen */
    {{1, 4, 6, 9}, 1},                     /* beyond the row */
    {{1, 4, 6, -1}, 1},                    /* a hole, though there are more */
    {{-1, 4, 6, 1}, 1}, {{INT64_MIN, INT64_MAX, -2, 100}, 4},
};

START_TEST(choices_are_judged_by_their_logits) {
  mla_topk_fault fault[TOPK];
  ck_assert_int_eq(judged(logits, budgets, WIDTH, choices[_i].chosen, fault),
                   choices[_i].wrong);
}
END_TEST

/* Rows that see fewer: all of them, then -1. */
START_TEST(short_rows_end_in_holes) {
  static const double few[4] = {1, -3, -INFINITY, -INFINITY};
  static const struct {
    int64_t chosen[TOPK];
    int wrong;
  } rows[] = {{{0, 1, -1, -1}, 0}, {{1, 0, -1, -1}, 0}, {{0, -1, 1, -1}, 2},
              {{0, 1, 2, -1}, 1},  {{0, 1, -1, -2}, 1}, {{-1, -1, -1, -1}, 2},
              {{0, 0, -1, -1}, 1}, {{0, 1, 1, -1}, 1}};
  mla_topk_fault fault[TOPK];
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    ck_assert_int_eq(judged(few, budgets, 4, rows[i].chosen, fault),
                     rows[i].wrong);
  static const double none[2] = {-INFINITY, -INFINITY};
  static const int64_t holes[TOPK] = {-1, -1, -1, -1};
  ck_assert_int_eq(judged(none, budgets, 2, holes, fault), 0);
  ck_assert_int_eq(judged(none, budgets, 2, choices[0].chosen, fault), TOPK);
}
END_TEST

/* The fault names the position left out, and how far it is above. */
START_TEST(faults_say_what_was_left_out) {
  static const int64_t chosen[TOPK] = {1, 0, 6, 2}; /* 4 is left out */
  static const double exact[WIDTH] = {0};
  mla_topk_fault fault[TOPK];
  ck_assert_int_eq(judged(logits, budgets, WIDTH, chosen, fault), 3);
  ck_assert(fault[0].ratio == 0);
  ck_assert_int_eq((int)fault[1].instead, 4);
  ck_assert_double_eq_tol(fault[1].ratio, 3 / .002, 1e-6);
  ck_assert_double_eq_tol(fault[1].budget, .002, 1e-15);
  ck_assert_double_eq_tol(fault[3].ratio, 1 / .002, 1e-6);
  static const int64_t tied[TOPK] = {1, 4, 6, 5}, below[TOPK] = {1, 4, 2, 5};
  ck_assert_int_eq(judged(logits, exact, WIDTH, tied, fault), 0);
  ck_assert_int_eq(judged(logits, exact, WIDTH, below, fault), 2);
  ck_assert(isinf(fault[2].ratio));
  ck_assert_int_eq((int)fault[2].instead, 6);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("compare_topk");
  TCase *tests = tcase_create("compare_topk");
  tcase_add_loop_test(tests, choices_are_judged_by_their_logits, 0,
                      (int)(sizeof choices / sizeof choices[0]));
  tcase_add_test(tests, short_rows_end_in_holes);
  tcase_add_test(tests, faults_say_what_was_left_out);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
