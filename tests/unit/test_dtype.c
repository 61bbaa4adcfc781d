/*
 * Float types narrower than binary64: what every code means, and that what is
 * written is the nearest, to even between two. f32 by samples, others all.
 */
#include <string.h>

#include "check_main.h"
#include "digest.h"
#include "dtype.h"
#include "float_bits.h"
#include "float_types.h"
#include "rng.h"

static uint32_t code_count(const narrow_type *type) {
  return type->dtype == MLA_F32 ? 0 : 2 * narrow_sign(type);
}

/* Equal with the sign of zero, or both NaN. */
static int same(double a, double b) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  return mla_f64_bits(a) == mla_f64_bits(b);
}

/* Codes to try of a type with too many: edges of every binade, and some. */
static uint32_t f32_sample(int i) {
  static const uint32_t fractions[] = {0,        1,        2,        0x3FFFFF,
                                       0x400000, 0x400001, 0x7FFFFE, 0x7FFFFF};
  uint32_t exponent = (uint32_t)i / 16;
  mla_rng rng = mla_rng_named(1, "f32");
  uint32_t fraction = mla_rng_below(rng, (uint64_t)i, 0x800000);
  if (i % 16 < 8) fraction = fractions[i % 16];
  return exponent << 23 | fraction;
}
#define F32_SAMPLES (255 * 16) /* finite and positive */

START_TEST(codes_mean_what_the_specification_says) {
  const narrow_type *type = &narrow_types[_i];
  for (uint32_t code = 0; code < code_count(type); code++) {
    double value = narrow_value(type, code);
    REQUIRE(same(mla_decode(type->dtype, code), value), "%s 0x%x", type->name,
            (unsigned)code);
  }
  ck_assert_double_eq(mla_decode(type->dtype, type->max_code), type->max);
  ck_assert(isnan(mla_decode(type->dtype, type->written_nan)));
}
END_TEST

START_TEST(f32_codes_mean_what_the_processor_says) {
  mla_rng rng = mla_rng_named(1, "f32 codes");
  for (uint64_t i = 0; i < 1000000; i++) {
    uint32_t code = (uint32_t)mla_rng_bits(rng, i);
    double value = (double)mla_f32_of_bits(code);
    REQUIRE(same(mla_decode(MLA_F32, code), value), "0x%x", (unsigned)code);
  }
  for (int i = 0; i < F32_SAMPLES; i++) {
    double value = narrow_value(&narrow_types[0], f32_sample(i));
    ck_assert(same(mla_decode(MLA_F32, f32_sample(i)), value));
  }
}
END_TEST

START_TEST(codes_round_trip) {
  const narrow_type *type = &narrow_types[_i];
  for (uint32_t code = 0; code < code_count(type); code++) {
    uint32_t expected = code, rest = code & (narrow_sign(type) - 1);
    if (type->infinity && rest == type->infinity) {
      expected = type->beyond | (code & narrow_sign(type));
    }
    if (isnan(narrow_value(type, code))) expected = type->written_nan;
    uint32_t back = mla_encode(type->dtype, mla_decode(type->dtype, code));
    REQUIRE(back == expected, "%s 0x%x became 0x%x", type->name, (unsigned)code,
            (unsigned)back);
  }
}
END_TEST

/* x > 0 and -x are written as code, with its sign. */
static void written_as(const narrow_type *type, double x, uint32_t code) {
  uint32_t negative = code | narrow_sign(type);
  if (type->one_zero && code == 0) negative = 0;
  REQUIRE(mla_encode(type->dtype, x) == code, "%s: %a gives 0x%x, not 0x%x",
          type->name, x, (unsigned)mla_encode(type->dtype, x), (unsigned)code);
  REQUIRE(mla_encode(type->dtype, -x) == negative,
          "%s: %a gives 0x%x, not 0x%x", type->name, -x,
          (unsigned)mla_encode(type->dtype, -x), (unsigned)negative);
}

/* Around the middle of a code and its successor. */
static void check_middle(const narrow_type *type, uint32_t code) {
  double low = narrow_value(type, code), high = narrow_value(type, code + 1);
  double middle = low + (high - low) / 2;
  written_as(type, low, code);
  written_as(type, nextafter(middle, 0), code);
  written_as(type, middle, code & 1 ? code + 1 : code);
  written_as(type, nextafter(middle, INFINITY), code + 1);
  written_as(type, nextafter(high, 0), code + 1);
  if (code > 0) written_as(type, nextafter(low, 0), code);
}

START_TEST(rounding_is_to_nearest_even) {
  const narrow_type *type = &narrow_types[_i];
  if (type->dtype == MLA_F32) {
    for (int i = 0; i < F32_SAMPLES; i++) {
      if (f32_sample(i) < type->max_code) check_middle(type, f32_sample(i));
    }
  } else {
    for (uint32_t code = 0; code < type->max_code; code++) {
      check_middle(type, code);
    }
  }
}
END_TEST

START_TEST(overflow_and_specials) {
  const narrow_type *type = &narrow_types[_i];
  double step = type->max - narrow_value(type, type->max_code - 1);
  double edge = type->max + step / 2;
  written_as(type, type->max, type->max_code);
  written_as(type, nextafter(edge, 0), type->max_code);
  written_as(type, edge, type->beyond);
  written_as(type, nextafter(edge, INFINITY), type->beyond);
  written_as(type, 2 * type->max, type->beyond);
  written_as(type, 0x1.fffffffffffffp1023, type->beyond);
  written_as(type, INFINITY, type->beyond);
  written_as(type, 0.0, 0);
  written_as(type, 0x1p-1074, 0);
  written_as(type, 0x1p-1022, 0);
  ck_assert_uint_eq(mla_encode(type->dtype, NAN), type->written_nan);
  ck_assert_uint_eq(mla_encode(type->dtype, -NAN), type->written_nan);
}
END_TEST

START_TEST(f32_is_written_as_the_processor_converts) {
  mla_rng rng = mla_rng_named(1, "f64 to f32");
  for (uint64_t i = 0; i < 1000000; i++) {
    /* Exponents a little beyond those of f32 on both sides. */
    uint64_t bits = mla_rng_bits(rng, i);
    uint64_t exponent = 1023 - 152 + (bits >> 52) % 282;
    bits = (bits & UINT64_C(0x800FFFFFFFFFFFFF)) | exponent << 52;
    double x = mla_f64_of_bits(bits);
    REQUIRE(mla_encode(MLA_F32, x) == mla_f32_bits((float)x), "%a", x);
  }
}
END_TEST

/* The two ways in and the two ways out agree; no alignment is needed. */
START_TEST(get_and_put_are_decode_and_encode) {
  const narrow_type *type = &narrow_types[_i];
  int bytes = mla_dtype_bits(type->dtype) / 8;
  mla_rng rng = mla_rng_named(1, "get");
  unsigned char memory[64];
  for (uint64_t i = 0; i < 20000; i++) {
    double x = ldexp(mla_rng_bell(rng, i), (int)(i % 60) - 30);
    uint32_t code = mla_encode(type->dtype, x);
    memset(memory, 0xA5, sizeof memory);
    mla_put(memory + 1, type->dtype, 3, x);
    for (int k = 0; k < 64; k++) {
      int inside = k >= 1 + 3 * bytes && k < 1 + 4 * bytes;
      REQUIRE(inside || memory[k] == 0xA5, "%s: byte %d", type->name, k);
    }
    double back = mla_get(memory + 1, type->dtype, 3);
    REQUIRE(same(back, mla_decode(type->dtype, code)), "%s %a", type->name, x);
    REQUIRE(same(back, mla_round_to(type->dtype, x)), "%s %a", type->name, x);
  }
}
END_TEST

START_TEST(f64_is_kept) {
  double memory[2] = {0, 0};
  const double values[] = {0.1, -0.0, 0x1p-1074, -INFINITY};
  for (int i = 0; i < 4; i++) {
    mla_put(memory, MLA_F64, 1, values[i]);
    ck_assert(same(mla_get(memory, MLA_F64, 1), values[i]));
    ck_assert(same(mla_round_to(MLA_F64, values[i]), values[i]));
  }
  mla_put(memory, MLA_F64, 1, -NAN);
  ck_assert(mla_f64_bits(memory[1]) == UINT64_C(0x7FF8000000000000));
}
END_TEST

START_TEST(roundoff_is_the_edge_of_one) {
  const narrow_type *type = &narrow_types[_i];
  double u = mla_unit_roundoff(type->dtype);
  ck_assert_double_eq(u, ldexp(1, -1 - type->mantissa_bits));
  ck_assert_double_eq(mla_round_to(type->dtype, 1 + u), 1);
  ck_assert_double_eq(mla_round_to(type->dtype, nextafter(1 + u, 2)),
                      1 + 2 * u);
  double eta = mla_half_subnormal(type->dtype);
  ck_assert_double_eq(mla_round_to(type->dtype, eta), 0);
  ck_assert_double_eq(mla_round_to(type->dtype, nextafter(eta, 1)), 2 * eta);
}
END_TEST

START_TEST(roundoff_of_other_types) {
  ck_assert_double_eq(mla_unit_roundoff(MLA_F64), 0x1p-53);
  ck_assert_double_eq(mla_half_subnormal(MLA_F64), 0);
  ck_assert_double_eq(mla_unit_roundoff(MLA_I8), 0);
  ck_assert_double_eq(mla_half_subnormal(MLA_I32), 0);
}
END_TEST

/* One number for all types over many values, on every machine. */
START_TEST(bits_are_the_same_everywhere) {
  mla_rng rng = mla_rng_named(20261129, "dtype");
  uint64_t digest = mla_digest_start();
  for (uint64_t i = 0; i < 20000; i++) {
    double any = mla_f64_of_bits(mla_rng_bits(rng, i));
    double near = mla_rng_bell(rng, i) * (1 + mla_rng_bell(rng, i + 1));
    for (int32_t dtype = MLA_F64; dtype <= MLA_I64; dtype++) {
      digest = mla_digest_f64(digest, mla_round_to(dtype, any));
      digest = mla_digest_f64(digest, mla_round_to(dtype, near));
    }
  }
  ck_assert_msg(digest == UINT64_C(0xD5422A0ED6ADC4FF), "digest 0x%016llx",
                (unsigned long long)digest);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("dtype");
  TCase *tests = tcase_create("dtype");
  const int n = NARROW_TYPES;
  tcase_add_loop_test(tests, codes_mean_what_the_specification_says, 0, n);
  tcase_add_test(tests, f32_codes_mean_what_the_processor_says);
  tcase_add_loop_test(tests, codes_round_trip, 0, n);
  tcase_add_loop_test(tests, rounding_is_to_nearest_even, 0, n);
  tcase_add_loop_test(tests, overflow_and_specials, 0, n);
  tcase_add_test(tests, f32_is_written_as_the_processor_converts);
  tcase_add_loop_test(tests, get_and_put_are_decode_and_encode, 0, n);
  tcase_add_test(tests, f64_is_kept);
  tcase_add_loop_test(tests, roundoff_is_the_edge_of_one, 0, n);
  tcase_add_test(tests, roundoff_of_other_types);
  tcase_add_test(tests, bits_are_the_same_everywhere);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
