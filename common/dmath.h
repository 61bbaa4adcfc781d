/*
 * dmath.h - exp, log and friends in binary64, the same bits everywhere.
 *
 * Plain C arithmetic in a fixed order, no libm, no contraction. Errors in
 * units of the last place are measured against MPFR in tests/unit.
 */
#ifndef MLA_DMATH_H
#define MLA_DMATH_H

double mla_exp(double x); /* +inf above 709.78.., 0 below -745.13.. */
double mla_log(double x); /* -inf at 0, NaN below */
double mla_log1p(double x);
double mla_tanh(double x);
double mla_sin(double x); /* |x| up to 2^31 */
double mla_cos(double x);
double mla_sqrt(double x);          /* correctly rounded */
double mla_pow(double x, double y); /* x > 0 */
double mla_floor(double x);
double mla_fabs(double x);
/* NaN and infinity without libm's macros, by bits. */
int mla_isnan(double x);
int mla_isinf(double x); /* -1, 0, 1 */
double mla_nan(void);
double mla_inf(void);
/* x * 2^e, exact when the result is normal. */
double mla_ldexp(double x, int e);

#endif
