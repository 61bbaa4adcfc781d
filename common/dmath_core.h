/*
 * dmath_core.h - what the files of dmath share: sums and products with their
 * rounding error kept, and exp and log as unrounded pairs.
 */
#ifndef MLA_DMATH_CORE_H
#define MLA_DMATH_CORE_H

/* The unevaluated sum hi + lo, |lo| at most half a unit of hi. */
typedef struct mla_pair {
  double hi, lo;
} mla_pair;

extern const double mla_exp2_table[64][2];
extern const double mla_log_table[128][3];

/* a + b exactly, for |a| >= |b| or a = 0. */
static inline mla_pair mla_sum_ordered(double a, double b) {
  double sum = a + b;
  mla_pair pair = {sum, b - (sum - a)};
  return pair;
}

/* a + b exactly. */
static inline mla_pair mla_sum(double a, double b) {
  double sum = a + b;
  double b_part = sum - a;
  double a_part = sum - b_part;
  mla_pair pair = {sum, (a - a_part) + (b - b_part)};
  return pair;
}

/* The upper 26 bits of a and the rest, in hi and lo; |a| < 2^996. */
static inline mla_pair mla_halves(double a) {
  double scaled = 134217729.0 * a; /* 2^27 + 1 */
  double hi = scaled - (scaled - a);
  mla_pair pair = {hi, a - hi};
  return pair;
}

/* a * b exactly, unless the lower part underflows. */
static inline mla_pair mla_product(double a, double b) {
  double product = a * b;
  mla_pair x = mla_halves(a), y = mla_halves(b);
  double rest =
      ((x.hi * y.hi - product) + x.hi * y.lo + x.lo * y.hi) + x.lo * y.lo;
  mla_pair pair = {product, rest};
  return pair;
}

/* exp(hi + lo) = (result.hi + result.lo) * 2^*exponent; |hi| <= 1000. */
mla_pair mla_exp_pair(double hi, double lo, int *exponent);
/* log(hi + lo) to about 2^-66, relative; hi positive and finite. */
mla_pair mla_log_pair(double hi, double lo);

#endif
