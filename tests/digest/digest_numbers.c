/*
 * digest_numbers.c - functions and number types over sweeps of arguments.
 */
#include "digest_group.h"
#include "dmath.h"
#include "dtype.h"
#include "float_bits.h"
#include "rng.h"

#define SWEEP 20000

/* Arguments of every sign and size: bits drawn at random, NaN among them. */
static double any_double(mla_rng rng, uint64_t i) {
  return mla_f64_of_bits(mla_rng_bits(rng, i));
}

static void sweep(const char *name, double (*f)(double), double low,
                  double high) {
  mla_rng rng = mla_rng_named(1, name);
  double step = (high - low) * 0x1p-32;
  digest_begin();
  for (uint64_t i = 0; i < SWEEP; i++) {
    double x = low + step * (double)(mla_rng_bits(rng, i) >> 32);
    digest_double(f(x));
    digest_double(f(any_double(rng, i)));
  }
  digest_end(name);
}

/* sin and cos promise nothing above 2^31. */
static void sweep_angles(const char *name, double (*f)(double)) {
  mla_rng rng = mla_rng_named(2, name);
  digest_begin();
  for (uint64_t i = 0; i < SWEEP; i++) {
    uint64_t bits = mla_rng_bits(rng, i);
    double x = mla_ldexp((double)(int64_t)bits, -(int)(i % 96) - 32);
    digest_double(f(x));
  }
  digest_end(name);
}

static void sweep_pow(void) {
  mla_rng rng = mla_rng_named(3, "pow");
  digest_begin();
  for (uint64_t i = 0; i < SWEEP; i++) {
    double base = 1 + mla_fabs(mla_rng_bell(rng, 2 * i)) * 25000;
    digest_double(mla_pow(base, mla_rng_bell(rng, 2 * i + 1)));
  }
  digest_end("dmath.pow");
}

static void sweep_scaling(void) {
  mla_rng rng = mla_rng_named(4, "ldexp");
  digest_begin();
  for (uint64_t i = 0; i < SWEEP; i++) {
    double x = any_double(rng, i);
    digest_double(mla_ldexp(x, (int)(i % 4200) - 2100));
    digest_double(mla_floor(x));
    digest_double(mla_fabs(x));
    digest_bits((uint64_t)(mla_isnan(x) + 2 * (mla_isinf(x) + 1)));
  }
  digest_end("dmath.scaling");
}

void digest_dmath(void) {
  sweep("dmath.exp", mla_exp, -760, 720);
  sweep("dmath.log", mla_log, 0, 4);
  sweep("dmath.log1p", mla_log1p, -1, 3);
  sweep("dmath.tanh", mla_tanh, -25, 25);
  sweep("dmath.sqrt", mla_sqrt, 0, 4);
  sweep_angles("dmath.sin", mla_sin);
  sweep_angles("dmath.cos", mla_cos);
  sweep_pow();
  sweep_scaling();
}

/* Every code of at most 16 bits; as many of 32 bits. */
static void decode_all(int32_t dtype) {
  int bits = mla_dtype_bits(dtype);
  mla_rng rng = mla_rng_named(5, "codes");
  for (uint32_t i = 0; i < 65536; i++) {
    if (bits < 16 && i >> bits) break;
    uint32_t code = bits == 32 ? (uint32_t)mla_rng_bits(rng, i) : i;
    digest_double(mla_decode(dtype, code));
  }
}

/* Around the codes, halfway between them, and anywhere. */
static void encode_many(int32_t dtype) {
  mla_rng rng = mla_rng_named(6, "values");
  int bits = mla_dtype_bits(dtype);
  for (uint64_t i = 0; i < SWEEP; i++) {
    uint32_t code = (uint32_t)mla_rng_bits(rng, i);
    if (bits < 32) code &= ((uint32_t)1 << bits) - 1;
    double x = mla_decode(dtype, code), half = mla_unit_roundoff(dtype) * x;
    digest_bits(mla_encode(dtype, x));
    digest_bits(mla_encode(dtype, x + half));
    digest_bits(mla_encode(dtype, x + half * (1 + 0x1p-40)));
    digest_bits(mla_encode(dtype, any_double(rng, i)));
    digest_bits(mla_encode(dtype, 40 * mla_rng_bell(rng, i)));
  }
}

void digest_dtypes(void) {
  static const struct {
    int32_t dtype;
    const char *name;
  } types[] = {
      {MLA_F32, "dtype.f32"},
      {MLA_F16, "dtype.f16"},
      {MLA_BF16, "dtype.bf16"},
      {MLA_FP8_E4M3, "dtype.fp8_e4m3"},
      {MLA_FP8_E4M3FNUZ, "dtype.fp8_e4m3fnuz"},
      {MLA_FP8_E5M2, "dtype.fp8_e5m2"},
      {MLA_E8M0, "dtype.e8m0"},
      {MLA_I8, "dtype.i8"},
      {MLA_I4, "dtype.i4"},
  };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    digest_begin();
    decode_all(types[i].dtype);
    encode_many(types[i].dtype);
    digest_end(types[i].name);
  }
}
