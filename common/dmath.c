/*
 * dmath.c - the parts of binary64 arithmetic that need its bits.
 */
#include "dmath.h"

#include "float_bits.h"

#define SIGN UINT64_C(0x8000000000000000)
#define INFINITE UINT64_C(0x7FF0000000000000)
#define HIDDEN UINT64_C(0x0010000000000000)

int mla_isnan(double x) {
  return (mla_f64_bits(x) & ~SIGN) > INFINITE;
}

int mla_isinf(double x) {
  if ((mla_f64_bits(x) & ~SIGN) != INFINITE) return 0;
  return mla_f64_bits(x) & SIGN ? -1 : 1;
}

double mla_nan(void) {
  return mla_f64_of_bits(UINT64_C(0x7FF8000000000000));
}

double mla_inf(void) {
  return mla_f64_of_bits(INFINITE);
}

double mla_fabs(double x) {
  return mla_f64_of_bits(mla_f64_bits(x) & ~SIGN);
}

double mla_floor(double x) {
  if (!(mla_fabs(x) < 0x1p52)) return x; /* an integer, infinite or NaN */
  double toward_zero = (double)(int64_t)x;
  if (toward_zero == x) return x; /* keeps the sign of zero */
  return toward_zero > x ? toward_zero - 1 : toward_zero;
}

/* 2^e, normal. */
static double power_of_two(int e) {
  return mla_f64_of_bits((uint64_t)(e + 1023) << 52);
}

double mla_ldexp(double x, int e) {
  /* Steps up are exact or saturate. Steps down stop 53 bits above the
     subnormals, so that only the last multiplication rounds. */
  for (int i = 0; e > 1023 && i < 2; i++, e -= 1023) x *= 0x1p1023;
  for (int i = 0; e < -1022 && i < 2; i++, e += 969) x *= 0x1p-969;
  if (e > 1023) e = 1023;
  if (e < -1022) e = -1022;
  return x * power_of_two(e);
}

/* About 1 / sqrt(x) for x in [1, 4): Newton from a guess by exponent. */
static double inverse_root(double x) {
  double y =
      mla_f64_of_bits(UINT64_C(0x5FE6EB50C7B537A9) - (mla_f64_bits(x) >> 1));
  for (int i = 0; i < 4; i++) y = y * (1.5 - 0.5 * x * y * y);
  return y;
}

double mla_sqrt(double x) {
  if (x == 0 || mla_isinf(x) > 0) return x;
  if (!(x > 0)) return mla_nan();
  int scale = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    scale = -27;
  }
  uint64_t bits = mla_f64_bits(x);
  int exponent = (int)(bits >> 52) - 1023;
  int odd = exponent & 1;
  uint64_t mantissa = ((bits & (HIDDEN - 1)) | HIDDEN) << odd;
  /* root = floor(sqrt(mantissa * 2^52)), 53 bits. The estimate is right to a
     few units, so the remainder is small and modulo 2^64 loses nothing. */
  double estimate = (double)(int64_t)mantissa * 0x1p-52;
  uint64_t root = (uint64_t)(estimate * inverse_root(estimate) * 0x1p52);
  int64_t rest = (int64_t)((mantissa << 52) - root * root);
  for (; rest < 0; root--) rest += (int64_t)(2 * root - 1);
  for (; rest > (int64_t)(2 * root); root++) rest -= (int64_t)(2 * root + 1);
  root += rest > (int64_t)root; /* beyond the middle; it is never on it */
  return mla_ldexp((double)(int64_t)root, (exponent - odd) / 2 - 52 + scale);
}
