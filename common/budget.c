#include "budget.h"

#include "dmath.h"
#include "dtype.h"

#define LAMBDA 6.0 /* independent roundings, in standard deviations */
#define MU 3.0     /* roundings of P and of up-projected K and V */
#define F32_ROUNDOFF 0x1p-24
#define F32_NORMAL 0x1p-126 /* the smallest */

static double or_f32(double u) {
  return u > 0 ? u : F32_ROUNDOFF;
}

mla_roundoffs mla_roundoffs_of(const mla_numerics *numerics) {
  mla_roundoffs u;
  u.acc = or_f32(numerics->u_acc);
  u.p = or_f32(numerics->u_p);
  u.mid = or_f32(numerics->u_mid);
  u.p_is_f16 = u.p == mla_unit_roundoff(MLA_F16);
  u.flushes = numerics->flushes_subnormals != 0;
  u.rounded_denominator = numerics->rounded_denominator != 0;
  return u;
}

double mla_smallest_normal(int32_t dtype) {
  double u = mla_unit_roundoff(dtype);
  return u > 0 ? mla_half_subnormal(dtype) / u : 0;
}

/* The absolute error of storing a number near zero. */
static double eta(int32_t dtype, const mla_roundoffs *u) {
  return u->flushes ? mla_smallest_normal(dtype) : mla_half_subnormal(dtype);
}

/* A sum of so many terms whose partial sums are subnormal in f32: each rounds
   to a multiple of 2^-149, or is flushed. */
static double underflow(double terms, const mla_roundoffs *u) {
  if (u->flushes) return terms * F32_NORMAL;
  return (LAMBDA * mla_sqrt(terms) + terms / 8) * u->acc * F32_NORMAL;
}

/* Subnormal P: rounded to a multiple of its least number (in f16 2^-24, in
   bf16 and f32 by their bits below 2^-126), or flushed. */
static double p_range(const mla_roundoffs *u) {
  double normal = u->p_is_f16 ? 0x1p-14 : F32_NORMAL;
  return u->flushes ? normal : u->p * normal;
}

static double wide(const mla_row_sink *rows, int which, int64_t at) {
  return rows->wide[which] ? rows->wide[which][at] : 0;
}

/* A sink so far above the row that 1 / (1 + e^(sink - lse)) is no f32. */
static double sunk(const mla_row_sink *rows, const mla_row_terms *t, int64_t at,
                   const mla_roundoffs *u) {
  if (!(t->keep < 1 && t->keep > 0)) return 0;
  double least = u->acc / F32_ROUNDOFF * F32_NORMAL;
  return least * wide(rows, MLA_WIDE_M, at) / t->keep;
}

static double out_element(const mla_row_sink *rows, const mla_row_terms *t,
                          int64_t at, int prefill, int32_t dtype,
                          const mla_roundoffs *u) {
  double out = mla_fabs(wide(rows, MLA_WIDE_OUT, at));
  double a = wide(rows, MLA_WIDE_A, at), root_n = mla_sqrt(t->n);
  double x = LAMBDA * u->acc * mla_sqrt(t->d) *
             (wide(rows, MLA_WIDE_B, at) + out * t->keep * t->c);
  x += t->d / 8 * u->acc * wide(rows, MLA_WIDE_F, at) + MU * u->p * a;
  x += 2 * u->acc * root_n * (wide(rows, MLA_WIDE_M, at) + out);
  x += LAMBDA * u->acc * (t->rise * a + t->sink * out) + sunk(rows, t, at, u);
  x += (u->p + mla_unit_roundoff(dtype) + 4 * u->acc) * out + eta(dtype, u);
  x += p_range(u) * wide(rows, MLA_WIDE_G, at) + underflow(t->n, u);
  if (u->flushes) x += wide(rows, MLA_WIDE_Z, at);
  if (!prefill) return x;
  double r1 = wide(rows, MLA_WIDE_R1, at) + out * t->keep * t->r1;
  double r2 = wide(rows, MLA_WIDE_R2, at) + out * t->keep * t->r2;
  x += MU * u->mid * (r1 + a);
  return x + LAMBDA * u->acc * (r2 + wide(rows, MLA_WIDE_NU, at));
}

void mla_budget_out(const mla_row_sink *rows, int64_t count, int prefill,
                    int32_t out_dtype, const mla_roundoffs *u, double *budget) {
  for (int64_t r = 0; r < count; r++) {
    const mla_row_terms *t = &rows->terms[r];
    for (int64_t d = 0; d < rows->width; d++) {
      int64_t at = r * rows->width + d;
      budget[at] =
          t->n > 0 ? out_element(rows, t, at, prefill, out_dtype, u) : 0;
    }
  }
}

static double lse_element(const mla_row_terms *t, const mla_roundoffs *u) {
  double x = LAMBDA * u->acc * mla_sqrt(t->d) * t->c;
  x += t->d / 8 * u->acc * t->e + 2 * u->acc * mla_sqrt(t->n);
  x += 4 * u->acc * (1 + mla_fabs(t->lse) + mla_fabs(t->m));
  x += MU * u->mid * t->r1 + LAMBDA * u->acc * t->r2;
  if (u->flushes) x += t->z;
  return u->rounded_denominator ? x + u->p : x;
}

void mla_budget_lse(const mla_row_sink *rows, int64_t count, int base2,
                    int32_t lse_dtype, const mla_roundoffs *u, double *budget) {
  double stored = mla_unit_roundoff(lse_dtype);
  for (int64_t r = 0; r < count; r++) {
    const mla_row_terms *t = &rows->terms[r];
    double x = lse_element(t, u), lse = mla_fabs(t->lse);
    if (base2) {
      x *= MLA_LOG2_E;
      lse *= MLA_LOG2_E;
    }
    /* The terms above hold one rounding to the accumulator's type. */
    if (base2 || stored > u->acc) x += stored * lse + eta(lse_dtype, u);
    budget[r] = t->n > 0 ? x : 0;
  }
}

double mla_budget_product(double y, double norm, double flushed, int64_t depth,
                          int32_t out_dtype, const mla_roundoffs *u) {
  double k = (double)depth;
  double x = LAMBDA * u->acc * mla_sqrt(k) * norm;
  x += k / 8 * u->acc * mla_fabs(y);
  x += (mla_unit_roundoff(out_dtype) + 4 * u->acc) * mla_fabs(y);
  x += eta(out_dtype, u) + underflow(k, u);
  return u->flushes ? x + flushed : x;
}

double mla_budget_logit(const mla_logit_terms *t, int32_t dtype,
                        const mla_roundoffs *u) {
  double d = (double)t->dim, h = (double)t->heads, size = mla_fabs(t->value);
  if (mla_isinf(t->value)) return 0;
  double x = mla_sqrt(d) * t->scores + mla_sqrt(h) * t->sums;
  x = LAMBDA * u->acc * x + (d + h) / 8 * u->acc * size;
  x += (mla_unit_roundoff(dtype) + 4 * u->acc) * size + eta(dtype, u);
  x += underflow(h, u) + t->weight * underflow(d, u);
  return u->flushes ? x + t->flushed : x;
}

double mla_budget_move(double y, int32_t from, int32_t to,
                       const mla_roundoffs *u) {
  double x = from == to ? 0 : mla_unit_roundoff(to) * mla_fabs(y) + eta(to, u);
  double normal = mla_smallest_normal(from);
  return u->flushes && mla_fabs(y) < normal ? x + normal : x;
}
