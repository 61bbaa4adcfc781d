/*
 * dmath.h - exp, log and friends in binary64, the same bits everywhere.
 *
 * Plain C arithmetic in a fixed order, no libm, no contraction. Needs the
 * rounding mode every process starts with, to nearest. NaN in gives NaN out.
 */
#ifndef MLA_DMATH_H
#define MLA_DMATH_H

/*
 * The largest errors, in units of the last place of the exact result,
 * subnormal results included. Reasons stand in the .c files; test_dmath_mpfr
 * measures. A result below 2^-1022 is rounded twice: up to a quarter more.
 */
#define MLA_EXP_ULPS 0.77
#define MLA_LOG_ULPS 0.501
#define MLA_LOG1P_ULPS 0.501
#define MLA_TANH_ULPS 0.7
#define MLA_SIN_ULPS 0.81
#define MLA_COS_ULPS 0.81
#define MLA_SQRT_ULPS 0.5
#define MLA_POW_ULPS 0.77

double mla_exp(double x);   /* +inf above 709.78.., 0 below -745.13.. */
double mla_log(double x);   /* -inf at 0, NaN below */
double mla_log1p(double x); /* -inf at -1, NaN below */
double mla_tanh(double x);
double mla_sin(double x);           /* |x| up to 2^31; beyond it NaN */
double mla_cos(double x);           /* likewise */
double mla_sqrt(double x);          /* correctly rounded; NaN below 0 */
double mla_pow(double x, double y); /* NaN for x < 0; 0^y is 0, 1 or inf */
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
