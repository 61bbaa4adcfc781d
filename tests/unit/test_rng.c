/* Deterministic data (docs/spec.md, section 7), and the digest. */
#include <string.h>

#include "check_main.h"
#include "digest.h"
#include "rng.h"

#define SEED 20261129

START_TEST(bell_gives_the_values_of_the_specification) {
  static const double expected[] = {-1.08917236328125, -0.859466552734375,
                                    -0.9896240234375, -0.16729736328125};
  mla_rng rng = mla_rng_named(SEED, "hidden_states");
  for (int i = 0; i < 4; i++) {
    ck_assert_double_eq(mla_rng_bell(rng, (uint64_t)i), expected[i]);
  }
}
END_TEST

/* The published check values of 64-bit FNV-1a. */
START_TEST(names_are_hashed_by_fnv1a) {
  ck_assert(mla_fnv1a64("", 0) == UINT64_C(0xCBF29CE484222325));
  ck_assert(mla_fnv1a64("a", 1) == UINT64_C(0xAF63DC4C8601EC8C));
  ck_assert(mla_fnv1a64("foobar", 6) == UINT64_C(0x85944171F73967E8));
}
END_TEST

START_TEST(elements_are_functions_of_seed_name_and_index) {
  mla_rng rng = mla_rng_named(SEED, "q"), same = mla_rng_named(SEED, "q");
  mla_rng renamed = mla_rng_named(SEED, "k");
  mla_rng reseeded = mla_rng_named(SEED + 1, "q");
  for (uint64_t i = 1000; i-- > 0;) { /* downwards: no hidden state */
    ck_assert(mla_rng_bits(rng, i) == mla_rng_bits(same, i));
    ck_assert(mla_rng_bits(rng, i) != mla_rng_bits(renamed, i));
    ck_assert(mla_rng_bits(rng, i) != mla_rng_bits(reseeded, i));
  }
}
END_TEST

START_TEST(bell_has_its_shape) {
  mla_rng rng = mla_rng_named(SEED, "shape");
  const int n = 200000;
  double sum = 0, squares = 0;
  for (int i = 0; i < n; i++) {
    double x = mla_rng_bell(rng, (uint64_t)i);
    REQUIRE(x >= -4 && x < 4 && (double)(float)x == x, "%a", x);
    sum += x;
    squares += x * x;
  }
  /* Five standard errors: 1.1547 / sqrt(n), and of the variance 4/3. */
  ck_assert_double_lt(sum / n, 0.013);
  ck_assert_double_gt(sum / n, -0.013);
  ck_assert_double_lt(squares / n, 4.0 / 3 + 0.019);
  ck_assert_double_gt(squares / n, 4.0 / 3 - 0.019);
}
END_TEST

START_TEST(below_covers_its_range_evenly) {
  mla_rng rng = mla_rng_named(SEED, "below");
  int seen[7] = {0};
  for (uint64_t i = 0; i < 70000; i++) {
    uint32_t x = mla_rng_below(rng, i, 7);
    REQUIRE(x < 7, "%u", (unsigned)x);
    seen[x]++;
    REQUIRE(mla_rng_below(rng, i, 1) == 0, "one value");
    REQUIRE(mla_rng_below(rng, i, UINT32_MAX) < UINT32_MAX, "the top");
  }
  for (int k = 0; k < 7; k++) { /* 10000 each, five deviations of 93 */
    ck_assert_int_gt(seen[k], 9535);
    ck_assert_int_lt(seen[k], 10465);
  }
}
END_TEST

START_TEST(digest_is_fnv1a_of_little_endian_values) {
  const unsigned char bytes[16] = {8, 7, 6, 5, 4, 3, 2,    1,     /* integer */
                                   0, 0, 0, 0, 0, 0, 0xF8, 0x3F}; /* 1.5 */
  uint64_t digest = mla_digest_start();
  digest = mla_digest_u64(digest, UINT64_C(0x0102030405060708));
  digest = mla_digest_f64(digest, 1.5);
  ck_assert(digest == mla_fnv1a64(bytes, sizeof bytes));
}
END_TEST

START_TEST(digest_sees_signs_of_zero_but_one_nan) {
  static const uint64_t nans[2] = {UINT64_C(0x7FF0000000000001),
                                   UINT64_C(0xFFF8000000000123)};
  double nan[2];
  memcpy(nan, nans, sizeof nan);
  uint64_t start = mla_digest_start();
  ck_assert(mla_digest_f64(start, nan[0]) == mla_digest_f64(start, nan[1]));
  ck_assert(mla_digest_f64(start, 0.0) != mla_digest_f64(start, -0.0));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rng");
  TCase *tests = tcase_create("rng");
  tcase_add_test(tests, bell_gives_the_values_of_the_specification);
  tcase_add_test(tests, names_are_hashed_by_fnv1a);
  tcase_add_test(tests, elements_are_functions_of_seed_name_and_index);
  tcase_add_test(tests, bell_has_its_shape);
  tcase_add_test(tests, below_covers_its_range_evenly);
  tcase_add_test(tests, digest_is_fnv1a_of_little_endian_values);
  tcase_add_test(tests, digest_sees_signs_of_zero_but_one_nan);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
