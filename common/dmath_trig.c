/*
 * dmath_trig.c - sin and cos for |x| <= 2^31, the angles of rotary positions.
 */
#include "dmath.h"
#include "dmath_core.h"
#include "float_bits.h"

/* pi / 2 in four pieces. The first two have at most 22 bits: a multiple n
   below 2^31 of them is exact. Together they reach 2^-157. */
#define TWO_OVER_PI 0x1.45f306dc9c883p-1
#define PIECE_1 0x1.921fbp+0
#define PIECE_2 0x1.5110bp-22
#define PIECE_3 0x1.18469898cc517p-44
#define PIECE_4 0x1.b839a252049c1p-104

#define LARGEST 0x1p31

/* |x| <= LARGEST less a multiple of pi / 2, within pi / 4 and a rounding. */
static mla_pair reduce(double x, unsigned *quadrant) {
  double turns = x * TWO_OVER_PI;
  int32_t n = (int32_t)(turns < 0 ? turns - 0.5 : turns + 0.5);
  *quadrant = (unsigned)n & 3;
  if (n == 0) {
    mla_pair itself = {x, 0};
    return itself;
  }
  double rest = (x - n * PIECE_1) - n * PIECE_2; /* exact */
  mla_pair third = mla_product(n, PIECE_3);
  mla_pair first = mla_sum(rest, -third.hi);
  return mla_sum(first.hi, (first.lo - third.lo) - n * PIECE_4);
}

/*
 * Taylor series: beyond the last term there is less than 2^-58 of the sum.
 * The cube in sin costs most: four roundings of up to a ninth of the result,
 * together 0.3 units besides the last addition's 0.5.
 */
static double kernel_sin(mla_pair r) {
  double x = r.hi, z = x * x;
  double far =
      -1.0 / 39916800 +
      z * (1.0 / 6227020800 + z * (-1.0 / 1307674368000 + z / 355687428096000));
  double near = 1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 + z * far));
  double cube = x * z;
  double slope = r.lo - 0.5 * z * r.lo; /* r.lo * cos x, nearly */
  return x + (slope + cube * (-1.0 / 6 + z * near));
}

static double kernel_cos(mla_pair r) {
  double x = r.hi;
  mla_pair square = mla_product(x, x);
  double z = square.hi;
  double far =
      1.0 / 479001600 + z * (-1.0 / 87178291200 +
                             z * (1.0 / 20922789888000 - z / 6402373705728000));
  double near =
      1.0 / 24 +
      z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z * far)));
  mla_pair head = mla_sum_ordered(1, -0.5 * z);
  return head.hi + (head.lo + (z * z * near - 0.5 * square.lo - x * r.lo));
}

/* sin(x + shift * pi / 2) */
static double shifted_sin(double x, unsigned shift) {
  if (!(mla_fabs(x) <= LARGEST)) return mla_nan();
  unsigned quadrant;
  mla_pair r = reduce(x, &quadrant);
  quadrant = (quadrant + shift) & 3;
  double result = quadrant & 1 ? kernel_cos(r) : kernel_sin(r);
  return quadrant & 2 ? -result : result;
}

double mla_sin(double x) {
  if (mla_fabs(x) < 0x1p-27) return x; /* keeps the sign of zero */
  return shifted_sin(x, 0);
}

double mla_cos(double x) {
  return shifted_sin(x, 1);
}
