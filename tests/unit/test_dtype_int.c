/* Integer types, nibbles, power-of-two scales. */
#include <math.h>
#include <string.h>

#include "check_main.h"
#include "dtype.h"

/* What reading back x gives, as value and, for negatives, mirrored. */
static void becomes(int32_t dtype, double x, double expected) {
  ck_assert_double_eq(mla_round_to(dtype, x), expected);
}

START_TEST(integers_round_to_nearest_even) {
  static const int32_t dtypes[] = {MLA_I8, MLA_I4, MLA_I32, MLA_I64};
  static const double cases[][2] = {{0, 0},
                                    {0.25, 0},
                                    {0.5, 0},
                                    {0.75, 1},
                                    {1.5, 2},
                                    {2.5, 2},
                                    {3.5, 4},
                                    {4.5, 4},
                                    {5.5, 6},
                                    {6.5, 6},
                                    {0x1p-60, 0},
                                    {0x1p-1074, 0},
                                    {0x1.0000000000001p-1, 1},
                                    {0x1.fffffffffffffp-2, 0},
                                    {0x1.4000000000001p1, 3},
                                    {0x1.3ffffffffffffp1, 2}};
  for (int t = 0; t < 4; t++) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
      becomes(dtypes[t], cases[i][0], cases[i][1]);
      becomes(dtypes[t], -cases[i][0], -cases[i][1]);
    }
    becomes(dtypes[t], NAN, 0);
  }
}
END_TEST

START_TEST(integers_are_clipped) {
  static const struct {
    int32_t dtype;
    double low, high;
  } range[] = {{MLA_I8, -127, 127},
               {MLA_I4, -7, 7},
               {MLA_U8, 0, 255},
               {MLA_I32, -2147483648.0, 2147483647.0},
               {MLA_I64, -0x1p63, 0x1p63}};
  for (int i = 0; i < 5; i++) {
    double low = range[i].low, high = range[i].high;
    becomes(range[i].dtype, high, high);
    becomes(range[i].dtype, low, low);
    becomes(range[i].dtype, high + 0.5, high);
    becomes(range[i].dtype, low - 0.75, low);
    becomes(range[i].dtype, 1e300, high);
    becomes(range[i].dtype, -1e300, low);
    becomes(range[i].dtype, INFINITY, high);
    becomes(range[i].dtype, -INFINITY, low);
  }
  becomes(MLA_I64, 0x1.fffffffffffffp62, 0x1.fffffffffffffp62);
  becomes(MLA_I64, 0x1.0000000000001p53, 0x1.0000000000001p53);
}
END_TEST

START_TEST(every_code_is_read) {
  for (int i = -128; i < 128; i++) {
    uint32_t code = (uint32_t)(i < 0 ? i + 256 : i);
    ck_assert_double_eq(mla_decode(MLA_I8, code), i);
    ck_assert_double_eq(mla_decode(MLA_U8, code), i < 0 ? i + 256 : i);
    if (i >= -127) ck_assert_uint_eq(mla_encode(MLA_I8, i), code);
  }
  for (int i = -8; i < 8; i++) {
    uint32_t code = (uint32_t)(i < 0 ? i + 16 : i);
    ck_assert_double_eq(mla_decode(MLA_I4, code), i);
    if (i >= -7) ck_assert_uint_eq(mla_encode(MLA_I4, i), code);
  }
  ck_assert_double_eq(mla_decode(MLA_I32, 0xFFFFFFFF), -1);
  ck_assert_double_eq(mla_decode(MLA_I32, 0x80000000), -2147483648.0);
}
END_TEST

START_TEST(nibbles_are_packed_low_first) {
  unsigned char bytes[3] = {0xFF, 0xFF, 0xFF};
  mla_put(bytes, MLA_I4, 2, 5);
  ck_assert_uint_eq(bytes[0], 0xFF);
  ck_assert_uint_eq(bytes[1], 0xF5);
  ck_assert_uint_eq(bytes[2], 0xFF);
  mla_put(bytes, MLA_I4, 3, -3);
  ck_assert_uint_eq(bytes[1], 0xD5);
  mla_put_int(bytes, MLA_I4, 2, -8);
  ck_assert_uint_eq(bytes[1], 0xD8);
  ck_assert_double_eq(mla_get(bytes, MLA_I4, 2), -8);
  ck_assert_int_eq(mla_get_int(bytes, MLA_I4, 3), -3);
  ck_assert_int_eq(mla_get_int(bytes, MLA_I4, 4), -1);
}
END_TEST

START_TEST(integers_are_kept_exactly) {
  static const struct {
    int32_t dtype;
    int64_t low, high;
  } range[] = {{MLA_I8, -128, 127},
               {MLA_I4, -8, 7},
               {MLA_U8, 0, 255},
               {MLA_I32, INT32_MIN, INT32_MAX},
               {MLA_I64, INT64_MIN, INT64_MAX}};
  unsigned char bytes[64];
  for (int i = 0; i < 5; i++) {
    const int64_t values[] = {range[i].low,  range[i].low + 1, 0, 1,
                              range[i].high, range[i].high - 1};
    for (int v = 0; v < 6; v++) {
      memset(bytes, 0x5A, sizeof bytes);
      mla_put_int(bytes + 1, range[i].dtype, 3, values[v]); /* unaligned */
      ck_assert_int_eq(mla_get_int(bytes + 1, range[i].dtype, 3), values[v]);
      ck_assert_double_eq(mla_get(bytes + 1, range[i].dtype, 3),
                          (double)values[v]);
      ck_assert_uint_eq(bytes[0], 0x5A);
      ck_assert_uint_eq(bytes[1 + 4 * 8], 0x5A);
    }
  }
}
END_TEST

START_TEST(scales_are_powers_of_two) {
  for (uint32_t code = 0; code < 255; code++) {
    double value = ldexp(1, (int)code - 127), middle = 1.5 * value;
    uint32_t next = code < 254 ? code + 1 : 254;
    ck_assert_double_eq(mla_decode(MLA_E8M0, code), value);
    ck_assert_uint_eq(mla_encode(MLA_E8M0, value), code);
    ck_assert_uint_eq(mla_encode(MLA_E8M0, nextafter(middle, 0)), code);
    ck_assert_uint_eq(mla_encode(MLA_E8M0, middle), code & 1 ? next : code);
    ck_assert_uint_eq(mla_encode(MLA_E8M0, nextafter(middle, INFINITY)), next);
  }
  ck_assert(isnan(mla_decode(MLA_E8M0, 255)));
  ck_assert_uint_eq(mla_encode(MLA_E8M0, NAN), 255);
  ck_assert_uint_eq(mla_encode(MLA_E8M0, -1.0), 255);
  ck_assert_uint_eq(mla_encode(MLA_E8M0, -INFINITY), 255);
  ck_assert_uint_eq(mla_encode(MLA_E8M0, INFINITY), 254);
  ck_assert_uint_eq(mla_encode(MLA_E8M0, 0.0), 0);
  ck_assert_uint_eq(mla_encode(MLA_E8M0, -0.0), 0);
  ck_assert_uint_eq(mla_encode(MLA_E8M0, 0x1p-1074), 0);
}
END_TEST

START_TEST(plain_formats_have_element_types) {
  ck_assert_int_eq(mla_format_dtype(MLA_CACHE_F64), MLA_F64);
  ck_assert_int_eq(mla_format_dtype(MLA_CACHE_F32), MLA_F32);
  ck_assert_int_eq(mla_format_dtype(MLA_CACHE_F16), MLA_F16);
  ck_assert_int_eq(mla_format_dtype(MLA_CACHE_BF16), MLA_BF16);
  ck_assert_int_eq(mla_format_dtype(MLA_CACHE_FP8_E4M3), MLA_FP8_E4M3);
  ck_assert_int_eq(mla_format_dtype(MLA_CACHE_FP8_E4M3FNUZ), MLA_FP8_E4M3FNUZ);
  ck_assert_int_eq(mla_format_dtype(MLA_CACHE_FP8_E5M2), MLA_FP8_E5M2);
  for (int32_t f = MLA_CACHE_FP8_DS_MLA; f <= MLA_CACHE_INT4_TOKEN; f++) {
    ck_assert_int_eq(mla_format_dtype(f), MLA_DTYPE_NONE);
  }
  ck_assert_int_eq(mla_format_dtype(MLA_CACHE_NONE), MLA_DTYPE_NONE);
}
END_TEST

START_TEST(unknown_types_read_as_nan) {
  ck_assert(isnan(mla_decode(99, 1)));
  ck_assert_uint_eq(mla_encode(99, 1.0), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("dtype_int");
  TCase *tests = tcase_create("dtype_int");
  tcase_add_test(tests, integers_round_to_nearest_even);
  tcase_add_test(tests, integers_are_clipped);
  tcase_add_test(tests, every_code_is_read);
  tcase_add_test(tests, nibbles_are_packed_low_first);
  tcase_add_test(tests, integers_are_kept_exactly);
  tcase_add_test(tests, scales_are_powers_of_two);
  tcase_add_test(tests, plain_formats_have_element_types);
  tcase_add_test(tests, unknown_types_read_as_nan);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
