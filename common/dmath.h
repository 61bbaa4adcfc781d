/*
 * dmath.h - exp, log and friends in binary64, the same bits everywhere.
 *
 * Plain C arithmetic in a fixed order, no libm, no contraction. Needs the
 * rounding mode every process starts with, to nearest. NaN in gives NaN out.
 *
 * The bound behind each function is its largest error in units of the last
 * place of the exact result, subnormal results included; test_dmath measures
 * it against MPFR.
 */
#ifndef MLA_DMATH_H
#define MLA_DMATH_H

double mla_exp(double x);   /* 0.76; +inf above 709.78, 0 below -745.13 */
double mla_log(double x);   /* 0.51; -inf at 0, NaN below */
double mla_log1p(double x); /* 0.51; -inf at -1, NaN below */
double mla_tanh(double x);  /* 1.6 */
double mla_sin(double x);   /* 0.8; |x| up to 2^31, beyond it NaN */
double mla_cos(double x);   /* 0.8; likewise */
double mla_sqrt(double x);  /* 0.5: correctly rounded; NaN below 0 */
/* 0.76; x >= 0; 0 to a negative power is +inf; NaN below. */
double mla_pow(double x, double y);
/* The largest integer not above x, exactly; keeps the sign of zero. */
double mla_floor(double x);
double mla_fabs(double x);
/* NaN and infinity without libm's macros, by bits. */
int mla_isnan(double x);
int mla_isinf(double x); /* -1, 0, 1 */
double mla_nan(void);
double mla_inf(void);
/* x * 2^e, rounded once; exact when the result is normal. */
double mla_ldexp(double x, int e);

#endif
