/*
 * dmath_log.c - log, log1p and pow.
 *
 * x = 2^k * m, m around 1; a table gives a short reciprocal c of m's
 * neighbourhood: log x = k ln 2 - log c + log(1 + r), r = m c - 1 exactly.
 * All is summed as a pair, so that log rounds once and pow can multiply.
 */
#include "dmath.h"
#include "dmath_core.h"
#include "float_bits.h"

/* ln 2 as a multiple of 2^-42, and the rest. */
#define LN2_HI 0x1.62e42fefa38p-1
#define LN2_LO 0x1.ef35793c7673p-45

/* head + log(1 + r.hi + r.lo), |r| < 2^-6.9, |head| > |r| or 0. */
static mla_pair add_log_of_one_plus(mla_pair head, mla_pair r) {
  double x = r.hi;
  mla_pair square = mla_product(x, x);
  double series =
      1.0 / 7 + x * (-1.0 / 8 + x * (1.0 / 9 + x * (-1.0 / 10 + x / 11)));
  series =
      1.0 / 3 + x * (-1.0 / 4 + x * (1.0 / 5 + x * (-1.0 / 6 + x * series)));
  series *= x * square.hi;
  mla_pair first = mla_sum(head.hi, x);
  mla_pair second = mla_sum(first.hi, -0.5 * square.hi);
  double cross = r.lo - x * r.lo - 0.5 * square.lo;
  double lo = first.lo + second.lo + (cross + series + head.lo);
  return mla_sum(second.hi, lo);
}

/* x > 0 as mantissa * 2^*exponent, the mantissa from 1 to 2. */
static double split(double x, int *exponent) {
  int scale = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    scale = -54;
  }
  uint64_t bits = mla_f64_bits(x);
  *exponent = (int)(bits >> 52) - 1023 + scale;
  return mla_f64_of_bits((bits & UINT64_C(0x000FFFFFFFFFFFFF)) |
                         UINT64_C(0x3FF0000000000000));
}

mla_pair mla_log_pair(double hi, double lo) {
  int k;
  double m = split(hi, &k);
  uint64_t bits = mla_f64_bits(m);
  int row = (int)((bits >> 45) & 127);
  const double *entry = mla_log_table[row];
  double upper = mla_f64_of_bits(bits & ~UINT64_C(0x1FFFFF));
  double lower = m - upper;
  double tail = lo == 0 ? 0 : mla_ldexp(lo, -k);
  double reciprocal = entry[0];
  if (row >= 53) {
    k++;
    reciprocal *= 0.5;
  }
  /* Two exact products: 32 or 21 bits by 10. */
  mla_pair r = mla_sum(upper * reciprocal - 1, (lower + tail) * reciprocal);
  mla_pair head = {k * LN2_HI + entry[1], k * LN2_LO + entry[2]};
  return add_log_of_one_plus(head, r);
}

double mla_log(double x) {
  if (x == 0) return -mla_inf();
  if (!(x > 0)) return mla_nan();
  if (mla_isinf(x)) return x;
  return mla_log_pair(x, 0).hi;
}

double mla_log1p(double x) {
  if (x == -1) return -mla_inf();
  if (!(x > -1)) return mla_nan();
  if (mla_isinf(x)) return x;
  if (mla_fabs(x) < 0x1p-54) return x;
  if (mla_fabs(x) < 0x1p-7) {
    mla_pair zero = {0, 0}, r = {x, 0};
    return add_log_of_one_plus(zero, r).hi;
  }
  mla_pair sum = mla_sum(1, x);
  return mla_log_pair(sum.hi, sum.lo).hi;
}

double mla_pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (mla_isnan(y) || !(x >= 0)) return mla_nan();
  if (x == 0) return y > 0 ? 0 : mla_inf();
  if (mla_isinf(x)) return y > 0 ? x : 0;
  mla_pair log = mla_log_pair(x, 0);
  double size = y * log.hi;
  if (size > 800) return mla_inf();
  if (size < -800) return 0;
  mla_pair product = mla_product(y, log.hi);
  int exponent;
  mla_pair e = mla_exp_pair(product.hi, product.lo + y * log.lo, &exponent);
  return mla_ldexp(e.hi + e.lo, exponent);
}
