/*
 * dmath_exp.c - exp and tanh.
 *
 * exp(x) = 2^k * 2^(j/64) * exp(r), |r| <= ln 2 / 128: two table words and a
 * series of six terms whose rounding stays a hundredth of a unit.
 */
#include "dmath.h"
#include "dmath_core.h"
#include "float_bits.h"

/* 64 / ln 2; ln 2 / 64 in 36 bits, so that products with n are exact, and
   the rest. */
#define STEPS_PER_UNIT 0x1.71547652b82fep+6
#define STEP_HI 0x1.62e42fefap-7
#define STEP_LO 0x1.cf79abc9e3b3ap-46

mla_pair mla_exp_pair(double hi, double lo, int *exponent) {
  double steps = hi * STEPS_PER_UNIT;
  int32_t n = (int32_t)(steps < 0 ? steps - 0.5 : steps + 0.5);
  double r = (hi - n * STEP_HI) - n * STEP_LO + lo;
  int32_t j = n % 64;
  if (j < 0) j += 64;
  *exponent = (n - j) / 64;
  double tail = 1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720)));
  double growth = r + r * r * (0.5 + r * tail); /* exp(r) - 1 */
  const double *power = mla_exp2_table[j];
  mla_pair pair = {power[0], power[1] + power[0] * growth};
  return pair;
}

double mla_exp(double x) {
  if (mla_isnan(x)) return mla_nan();
  if (x > 709.79) return mla_inf();
  if (x < -745.14) return 0;
  int exponent;
  mla_pair pair = mla_exp_pair(x, 0, &exponent);
  return mla_ldexp(pair.hi + pair.lo, exponent);
}

/* a / b with the pairs' lower parts: one division, one correction. */
static double divide(mla_pair a, mla_pair b) {
  double quotient = a.hi / b.hi;
  mla_pair back = mla_product(quotient, b.hi);
  double rest = ((a.hi - back.hi) - back.lo) + a.lo - quotient * b.lo;
  return quotient + rest / b.hi;
}

/* Where (e - 1) would have lost digits: the Taylor series, |x| < 2^-5. */
static double tanh_small(double x) {
  double z = x * x;
  double series = 62.0 / 2835 + z * (-1382.0 / 155925);
  series = -1.0 / 3 + z * (2.0 / 15 + z * (-17.0 / 315 + z * series));
  return x + x * (z * series);
}

/* (e - 1) / (e + 1), e = exp(2 x), for 2^-5 <= x < 20. */
static double tanh_middle(double x) {
  int exponent;
  mla_pair e = mla_exp_pair(2 * x, 0, &exponent);
  e.hi = mla_ldexp(e.hi, exponent);
  e.lo = mla_ldexp(e.lo, exponent);
  mla_pair above = mla_sum(e.hi, -1), below = mla_sum(e.hi, 1);
  above = mla_sum(above.hi, above.lo + e.lo);
  below = mla_sum(below.hi, below.lo + e.lo);
  return divide(above, below);
}

double mla_tanh(double x) {
  double size = mla_fabs(x);
  if (mla_isnan(x)) return mla_nan();
  if (size < 0x1p-28) return x; /* x^3 / 3 is below half a unit */
  if (size < 0x1p-5) return tanh_small(x);
  double result = size < 20 ? tanh_middle(size) : 1;
  return x < 0 ? -result : result;
}
