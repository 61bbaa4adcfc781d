/*
 * The k largest of a row, against counting who is larger.
 */
#include "cpu_topk.h"

#include <math.h>
#include <string.h>

#include "check_main.h"
#include "rng.h"

enum { MOST = 300, GUARD = 77 };

/* How many of n are chosen before position i. */
static int64_t rank_of(const float *value, int64_t n, int64_t i) {
  int64_t rank = 0;
  for (int64_t j = 0; j < n; j++) {
    int above = value[j] > value[i] || (isnan(value[i]) && !isnan(value[j]));
    int equal = value[j] == value[i] || (isnan(value[i]) && isnan(value[j]));
    rank += above || (equal && j < i);
  }
  return rank;
}

static void check(const float *value, int64_t n, int64_t k) {
  int32_t got[MOST + 1];
  int64_t at = 0;
  for (int64_t i = 0; i <= k; i++) got[i] = GUARD;
  mla_cpu_topk(value, n, k, got);
  for (int64_t i = 0; i < n; i++)
    if (rank_of(value, n, i) < k) ck_assert_int_eq(got[at++], (int)i);
  while (at < k) ck_assert_int_eq(got[at++], -1);
  ck_assert_int_eq(got[k], GUARD);
}

/* Spread widely; of few values; of one; of small steps. */
static float draw(int kind, mla_rng rng, uint64_t i) {
  double x = mla_rng_bell(rng, i);
  switch (kind) {
    case 0: return (float)(x * exp(20 * x));
    case 1: return (float)mla_rng_below(rng, i, 5) - 2;
    case 2: return -3;
    default: return nextafterf(1, mla_rng_below(rng, i, 2) ? 0.0f : 2.0f);
  }
}

START_TEST(the_largest_are_chosen) {
  static const int64_t ks[] = {1, 2, 16, 255, 256, MOST};
  float value[MOST];
  mla_rng rng = mla_rng_named(5, "topk");
  for (uint64_t i = 0; i < MOST; i++) value[i] = draw(_i, rng, i);
  for (int64_t n = 0; n <= MOST; n += n < 20 ? 1 : 37)
    for (size_t k = 0; k < sizeof ks / sizeof ks[0]; k++)
      check(value, n, ks[k]);
}
END_TEST

/* Zeros of both signs are one number; infinities and NaN have their places. */
START_TEST(odd_numbers_have_their_places) {
  static const float value[] = {-0.0f, 0.0f,      NAN,   -INFINITY, 1e-45f,
                                0.0f,  -1e-45f,   -0.0f, INFINITY,  NAN,
                                -NAN,  -INFINITY, 3e38f, -3e38f,    0.0f};
  int64_t n = (int64_t)(sizeof value / sizeof value[0]);
  for (int64_t k = 1; k <= n + 2; k++) check(value, n, k);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cpu_topk");
  TCase *tests = tcase_create("cpu_topk");
  tcase_add_loop_test(tests, the_largest_are_chosen, 0, 4);
  tcase_add_test(tests, odd_numbers_have_their_places);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
