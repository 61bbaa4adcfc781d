/*
 * exp, log and the rest: special values, exact results, symmetries, and one
 * digest for all machines. How accurate they are: test_dmath_mpfr.
 */
#include <float.h>
#include <math.h>

#include "check_main.h"
#include "digest.h"
#include "dmath.h"
#include "float_bits.h"
#include "rng.h"

/* The same bits: zeros have signs, NaN is the one of mla_nan(). */
static void is(double got, double expected) {
  ck_assert_msg(mla_f64_bits(got) == mla_f64_bits(expected), "%a, not %a", got,
                expected);
}

static void is_nan(double got) {
  is(got, mla_nan());
}

START_TEST(classes) {
  ck_assert(mla_isnan(mla_nan()));
  ck_assert(mla_isnan(-mla_nan()));
  ck_assert(mla_isnan(mla_f64_of_bits(UINT64_C(0x7FF0000000000001))));
  ck_assert(!mla_isnan(INFINITY));
  ck_assert(!mla_isnan(DBL_MAX));
  ck_assert_int_eq(mla_isinf(INFINITY), 1);
  ck_assert_int_eq(mla_isinf(-INFINITY), -1);
  ck_assert_int_eq(mla_isinf(DBL_MAX), 0);
  ck_assert_int_eq(mla_isinf(mla_nan()), 0);
  is(mla_inf(), INFINITY);
  is(mla_fabs(-0.0), 0.0);
  is(mla_fabs(-2.5), 2.5);
  is(mla_fabs(-INFINITY), INFINITY);
}
END_TEST

START_TEST(floor_is_libm_s) {
  static const double edges[] = {0.0,
                                 0.5,
                                 1.0,
                                 1.5,
                                 0x1p31,
                                 0x1p51,
                                 0x1p52,
                                 0x1p53,
                                 1e300,
                                 0x1p-1074,
                                 INFINITY,
                                 0x1.fffffffffffffp51,
                                 0x1.fffffffffffffp-1};
  for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
    is(mla_floor(edges[i]), floor(edges[i]));
    is(mla_floor(-edges[i]), floor(-edges[i]));
  }
  mla_rng rng = mla_rng_named(1, "floor");
  for (uint64_t i = 0; i < 200000; i++) {
    double x = ldexp(mla_rng_bell(rng, i), (int)(i % 60));
    REQUIRE(mla_floor(x) == floor(x), "%a", x);
  }
  ck_assert(mla_isnan(mla_floor(mla_nan())));
}
END_TEST

START_TEST(ldexp_is_libm_s) {
  static const double mantissas[] = {1.0,
                                     0x1.fffffffffffffp0,
                                     1.5,
                                     0x1.0000000000001p0,
                                     0x1.8000000000001p0,
                                     0x1p-1074,
                                     0x1.5p-1060,
                                     0x1p1000};
  for (size_t i = 0; i < sizeof mantissas / sizeof mantissas[0]; i++) {
    for (int e = -2300; e <= 2300; e++) {
      double x = mantissas[i];
      REQUIRE(mla_ldexp(x, e) == ldexp(x, e), "%a 2^%d", x, e);
      REQUIRE(mla_ldexp(-x, e) == ldexp(-x, e), "-%a 2^%d", x, e);
    }
    is(mla_ldexp(mantissas[i], 100000000), INFINITY);
    is(mla_ldexp(-mantissas[i], -100000000), -0.0);
  }
  mla_rng rng = mla_rng_named(1, "subnormal results");
  for (uint64_t i = 0; i < 200000; i++) {
    double x = mla_ldexp(mla_rng_bell(rng, i) + 0x1p-52, (int)(i % 200) - 100);
    int e = -1020 - (int)(i % 61) - (int)(i % 200) + 100;
    REQUIRE(mla_ldexp(x, e) == ldexp(x, e), "%a 2^%d", x, e);
  }
  is(mla_ldexp(0.0, 5000), 0.0);
  is(mla_ldexp(-INFINITY, -5000), -INFINITY);
}
END_TEST

/* IEEE 754 leaves no choice, so the processor's is a second opinion. */
START_TEST(sqrt_is_correctly_rounded) {
  mla_rng rng = mla_rng_named(1, "sqrt");
  for (uint64_t i = 0; i < 500000; i++) {
    double x = mla_f64_of_bits(mla_rng_bits(rng, i) >> 1);
    if (mla_isnan(x)) continue;
    REQUIRE(mla_sqrt(x) == sqrt(x), "%a", x);
    double y = 1 + (double)(int64_t)(mla_rng_bits(rng, i) >> 11) * 0x1p-52;
    REQUIRE(mla_sqrt(y) == sqrt(y), "%a", y);
  }
  for (int e = -1074; e < 1024; e++) {
    const double x = ldexp(1, e);
    is(mla_sqrt(x), sqrt(x));
    is(mla_sqrt(nextafter(x, INFINITY)), sqrt(nextafter(x, INFINITY)));
    is(mla_sqrt(nextafter(x, 0)), sqrt(nextafter(x, 0)));
  }
  is(mla_sqrt(DBL_MAX), sqrt(DBL_MAX));
  is(mla_sqrt(0.0), 0.0);
  is(mla_sqrt(-0.0), -0.0);
  is(mla_sqrt(INFINITY), INFINITY);
  is_nan(mla_sqrt(-1));
  is_nan(mla_sqrt(-INFINITY));
  is_nan(mla_sqrt(mla_nan()));
}
END_TEST

START_TEST(exp_at_its_ends) {
  is(mla_exp(0), 1);
  is(mla_exp(-0.0), 1);
  is(mla_exp(INFINITY), INFINITY);
  is(mla_exp(-INFINITY), 0);
  is(mla_exp(710), INFINITY);
  is(mla_exp(1e300), INFINITY);
  is(mla_exp(-746), 0);
  is(mla_exp(-1e300), 0);
  is(mla_exp(0x1p-60), 1);
  is(mla_exp(-0x1p-60), 1);
  is(mla_exp(-745), 0x1p-1074);
  is_nan(mla_exp(mla_nan()));
}
END_TEST

START_TEST(log_at_its_ends) {
  is(mla_log(1), 0);
  is(mla_log(0), -INFINITY);
  is(mla_log(-0.0), -INFINITY);
  is(mla_log(INFINITY), INFINITY);
  is_nan(mla_log(-1));
  is_nan(mla_log(-INFINITY));
  is_nan(mla_log(mla_nan()));
  is(mla_log1p(0), 0);
  is(mla_log1p(-0.0), -0.0);
  is(mla_log1p(0x1p-1074), 0x1p-1074);
  is(mla_log1p(-1), -INFINITY);
  is(mla_log1p(INFINITY), INFINITY);
  is_nan(mla_log1p(-1.5));
  is_nan(mla_log1p(mla_nan()));
}
END_TEST

START_TEST(tanh_at_its_ends) {
  is(mla_tanh(0.0), 0.0);
  is(mla_tanh(-0.0), -0.0);
  is(mla_tanh(0x1p-1074), 0x1p-1074);
  is(mla_tanh(25), 1);
  is(mla_tanh(-25), -1);
  is(mla_tanh(INFINITY), 1);
  is(mla_tanh(-INFINITY), -1);
  is_nan(mla_tanh(mla_nan()));
}
END_TEST

START_TEST(angles_at_their_ends) {
  is(mla_sin(0.0), 0.0);
  is(mla_sin(-0.0), -0.0);
  is(mla_sin(0x1p-1074), 0x1p-1074);
  is(mla_cos(0.0), 1);
  is(mla_cos(-0x1p-1074), 1);
  ck_assert(!mla_isnan(mla_sin(0x1p31)));
  ck_assert(!mla_isnan(mla_cos(-0x1p31)));
  is_nan(mla_sin(nextafter(0x1p31, INFINITY)));
  is_nan(mla_cos(1e300));
  is_nan(mla_sin(INFINITY));
  is_nan(mla_cos(-INFINITY));
  is_nan(mla_sin(mla_nan()));
  is_nan(mla_cos(mla_nan()));
}
END_TEST

START_TEST(pow_at_its_ends) {
  is(mla_pow(2, 0), 1);
  is(mla_pow(mla_nan(), 0), 1);
  is(mla_pow(1, mla_nan()), 1);
  is(mla_pow(1, INFINITY), 1);
  is(mla_pow(0, 2), 0);
  is(mla_pow(0, -2), INFINITY);
  is(mla_pow(INFINITY, 2), INFINITY);
  is(mla_pow(INFINITY, -2), 0);
  is(mla_pow(2, INFINITY), INFINITY);
  is(mla_pow(2, -INFINITY), 0);
  is(mla_pow(0.5, INFINITY), 0);
  is(mla_pow(0.5, -INFINITY), INFINITY);
  is(mla_pow(2, 1024), INFINITY);
  is(mla_pow(2, -1100), 0);
  is(mla_pow(1 + DBL_EPSILON, DBL_MAX), INFINITY);
  is(mla_pow(1 - DBL_EPSILON, DBL_MAX), 0);
  is(mla_pow(3, 0x1p-1074), 1);
  is_nan(mla_pow(-2, 2));
  is_nan(mla_pow(2, mla_nan()));
  is_nan(mla_pow(mla_nan(), 2));
}
END_TEST

START_TEST(exact_powers_are_exact) {
  for (int e = -1022; e < 1024; e++) is(mla_pow(2, e), ldexp(1, e));
  for (int e = -1074; e < -1022; e++) is(mla_pow(2, e), ldexp(1, e));
  for (int base = 3; base < 200; base++) {
    double power = base;
    for (int n = 1; power < 0x1p53; n++, power *= base) {
      is(mla_pow(base, n), power);
      is(mla_pow(power, 1), power);
    }
    is(mla_pow((double)base * base, 0.5), base);
  }
}
END_TEST

START_TEST(symmetries_hold_to_the_bit) {
  mla_rng rng = mla_rng_named(1, "symmetry");
  for (uint64_t i = 0; i < 100000; i++) {
    double x = ldexp(mla_rng_bell(rng, i), (int)(i % 40) - 12);
    REQUIRE(mla_sin(-x) == -mla_sin(x), "sin %a", x);
    REQUIRE(mla_cos(-x) == mla_cos(x), "cos %a", x);
    REQUIRE(mla_tanh(-x) == -mla_tanh(x), "tanh %a", x);
  }
}
END_TEST

/* Every function over its range, to the bit, on every machine. A change of
   these bits is a change of the reference: it needs a reason. */
START_TEST(bits_are_the_same_everywhere) {
  mla_rng rng = mla_rng_named(20261129, "dmath");
  uint64_t digest = mla_digest_start();
  for (uint64_t i = 0; i < 20000; i++) {
    double x = mla_rng_bell(rng, i);
    double wide = mla_ldexp(x, (int)(i % 100) - 50);
    double any = mla_f64_of_bits(mla_rng_bits(rng, i) >> 1);
    digest = mla_digest_f64(digest, mla_exp(x * 180));
    digest = mla_digest_f64(digest, mla_exp(x));
    digest = mla_digest_f64(digest, mla_log(any));
    digest = mla_digest_f64(digest, mla_log1p(wide));
    digest = mla_digest_f64(digest, mla_tanh(x));
    digest = mla_digest_f64(digest, mla_sin(wide));
    digest = mla_digest_f64(digest, mla_cos(wide));
    digest = mla_digest_f64(digest, mla_sqrt(any));
    digest = mla_digest_f64(digest, mla_pow(mla_fabs(wide), x));
    digest = mla_digest_f64(digest, mla_floor(wide));
  }
  ck_assert_msg(digest == UINT64_C(0x282321FB56EE6A3D), "digest 0x%016llx",
                (unsigned long long)digest);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("dmath");
  TCase *tests = tcase_create("dmath");
  tcase_add_test(tests, classes);
  tcase_add_test(tests, floor_is_libm_s);
  tcase_add_test(tests, ldexp_is_libm_s);
  tcase_add_test(tests, sqrt_is_correctly_rounded);
  tcase_add_test(tests, exp_at_its_ends);
  tcase_add_test(tests, log_at_its_ends);
  tcase_add_test(tests, tanh_at_its_ends);
  tcase_add_test(tests, angles_at_their_ends);
  tcase_add_test(tests, pow_at_its_ends);
  tcase_add_test(tests, exact_powers_are_exact);
  tcase_add_test(tests, symmetries_hold_to_the_bit);
  tcase_add_test(tests, bits_are_the_same_everywhere);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
