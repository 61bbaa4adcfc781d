/*
 * exact_values.c - shows at run time that the build evaluates what is
 * written: no fused multiply-add, floats in float, subnormals alive. Inputs
 * are volatile, or the compiler would fold the answers by its own rules.
 */
#include <float.h>
#include <stdint.h>
#include <stdio.h>

#include "mla/mla.h"

static int failures;

static void expect(int holds, const char *what) {
  printf("%s %s\n", holds ? "ok  " : "FAIL", what);
  failures += !holds;
}

/* (1 + e)(1 - e) = 1 - e^2 rounds to 1; fused, minus 1, it is -e^2. */
static void check_contraction(void) {
  volatile double a = 1 + 0x1p-30, b = 1 - 0x1p-30, c = -1;
  volatile float fa = 1 + 0x1p-13f, fb = 1 - 0x1p-13f, fc = -1;
  double x = a, y = b, z = c;
  float fx = fa, fy = fb, fz = fc;
  expect(x * y + z == 0.0, "double products are rounded before the sum");
  expect(fx * fy + fz == 0.0f, "float products are rounded before the sum");
}

/* 1 + 2^-24 rounds to 1 in float; kept in double it does not. */
static void check_excess_precision(void) {
  volatile float one = 1, half_ulp = 0x1p-24f;
  float a = one, b = half_ulp;
  expect(a + b - a == 0.0f, "float sums are rounded to float");
}

static void check_association(void) {
  volatile double big = 0x1p60, one = 1;
  double a = big, b = one;
  expect((a + b) - a == 0.0, "sums are not re-associated");
}

static void check_subnormals(void) {
  volatile float smallest = FLT_MIN;
  volatile double dsmallest = DBL_MIN;
  volatile float half = smallest / 2;
  volatile double dhalf = dsmallest / 2;
  expect(half > 0 && half * 2 == smallest, "float subnormals survive");
  expect(dhalf > 0 && dhalf * 2 == dsmallest, "double subnormals survive");
}

static void check_infinity_and_nan(void) {
  volatile double zero = 0;
  double z = zero, inf = 1 / z, nan = z / z;
  expect(inf > DBL_MAX && nan != nan, "infinity and NaN are what they are");
  expect(1 / -z == -inf, "zero has a sign");
}

int main(void) {
  /* A library linked in could have changed the mode of the process. */
  expect(mla_backend_count() > 0, "libmla is linked in");
  check_contraction();
  check_excess_precision();
  check_association();
  check_subnormals();
  check_infinity_and_nan();
  return failures != 0;
}
