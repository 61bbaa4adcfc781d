/*
 * mpfr_ulp.h - the error of a binary64 in units of the exact result's last
 * place.
 */
#ifndef MLA_MPFR_ULP_H
#define MLA_MPFR_ULP_H

#include <math.h>
#include <mpfr.h>

/*
 * |got - exact| / ulp(exact); a unit is never below 2^-1074. Infinity when
 * one is NaN or infinite and the other is not (what rounds beyond the largest
 * number counts as infinite) or the sign of an infinity differs.
 */
static inline double mpfr_ulp_error(mpfr_srcptr exact, double got) {
  double nearest = mpfr_get_d(exact, MPFR_RNDN);
  if (isnan(nearest) || isnan(got)) {
    return isnan(nearest) && isnan(got) ? 0 : INFINITY;
  }
  if (isinf(nearest) || isinf(got)) return nearest == got ? 0 : INFINITY;
  mpfr_exp_t unit = -1074;
  if (!mpfr_zero_p(exact) && mpfr_get_exp(exact) - 53 > unit) {
    unit = mpfr_get_exp(exact) - 53;
  }
  mpfr_t error;
  mpfr_init2(error, mpfr_get_prec(exact));
  mpfr_sub_d(error, exact, got, MPFR_RNDN);
  mpfr_mul_2si(error, error, (long)-unit, MPFR_RNDN);
  double units = fabs(mpfr_get_d(error, MPFR_RNDU));
  mpfr_clear(error);
  return units;
}

#endif
