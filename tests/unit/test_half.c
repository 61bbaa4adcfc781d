/*
 * The inline conversions of half.h against dtype.c (which test_dtype checks),
 * in the processor's usual mode and, where one can be set, flushing mode.
 */
#include <math.h>

#include "check_main.h"
#include "dtype.h"
#include "half.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#define FLUSHING_MODES 2
static void set_mode(int flush) {
  _mm_setcsr((_mm_getcsr() & ~0x8040u) | (flush ? 0x8040u : 0));
}
#else
#define FLUSHING_MODES 1
static void set_mode(int flush) {
  (void)flush;
}
#endif

/* The code of a type read by an inline function and by mla_decode; compared
   as bits, since a flushing processor also flushes comparisons. */
static void check_read(float got, int32_t dtype, uint32_t code) {
  uint64_t wide = mla_f64_bits(mla_decode(dtype, code));
  uint32_t bits = mla_f32_bits(got);
  int is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  uint32_t expected = mla_encode(MLA_F32, mla_f64_of_bits(wide));
  if (is_nan) bits = 0x7FC00000u;
  REQUIRE(bits == expected, "%s 0x%x: bits 0x%x, not 0x%x",
          mla_dtype_name(dtype), (unsigned)code, (unsigned)bits,
          (unsigned)expected);
}

START_TEST(every_code_is_read) {
  set_mode(_i);
  for (uint32_t code = 0; code < 65536; code++) {
    check_read(mla_bf16_to_f32((uint16_t)code), MLA_BF16, code);
    check_read(mla_f16_to_f32((uint16_t)code), MLA_F16, code);
  }
  for (uint32_t code = 0; code < 256; code++) {
    check_read(mla_e4m3_to_f32((uint8_t)code), MLA_FP8_E4M3, code);
    check_read(mla_e4m3fnuz_to_f32((uint8_t)code), MLA_FP8_E4M3FNUZ, code);
    check_read(mla_e5m2_to_f32((uint8_t)code), MLA_FP8_E5M2, code);
  }
  set_mode(0);
}
END_TEST

static void check_write(uint32_t f32_code) {
  float x = mla_f32_of_bits(f32_code);
  double wide = mla_decode(MLA_F32, f32_code);
  REQUIRE(mla_f32_to_bf16(x) == mla_encode(MLA_BF16, wide), "bf16 %a", wide);
  REQUIRE(mla_f32_to_f16(x) == mla_encode(MLA_F16, wide), "f16 %a", wide);
  REQUIRE(mla_f32_to_e4m3(x) == mla_encode(MLA_FP8_E4M3, wide), "e4m3 %a",
          wide);
  REQUIRE(mla_f32_to_e4m3fnuz(x) == mla_encode(MLA_FP8_E4M3FNUZ, wide),
          "e4m3fnuz %a", wide);
  REQUIRE(mla_f32_to_e5m2(x) == mla_encode(MLA_FP8_E5M2, wide), "e5m2 %a",
          wide);
}

START_TEST(every_upper_half_is_written) {
  static const uint32_t lower[] = {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
  set_mode(_i);
  for (uint32_t upper = 0; upper < 65536; upper++) {
    for (int i = 0; i < 6; i++) check_write(upper << 16 | lower[i]);
  }
  set_mode(0);
}
END_TEST

/* Middles of f16 codes, whose lowest bits are below the upper half of f32. */
START_TEST(every_middle_is_written) {
  set_mode(_i);
  for (uint32_t code = 0; code < 0x7C00; code++) {
    double low = mla_decode(MLA_F16, code),
           high = mla_decode(MLA_F16, code + 1);
    if (isinf(high)) high = 65536;
    uint32_t middle = mla_encode(MLA_F32, low + (high - low) / 2);
    for (uint32_t sign = 0; sign < 2; sign++) {
      check_write(sign << 31 | (middle - 1));
      check_write(sign << 31 | middle);
      check_write(sign << 31 | (middle + 1));
    }
  }
  set_mode(0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("half");
  TCase *tests = tcase_create("half");
  tcase_add_loop_test(tests, every_code_is_read, 0, FLUSHING_MODES);
  tcase_add_loop_test(tests, every_upper_half_is_written, 0, FLUSHING_MODES);
  tcase_add_loop_test(tests, every_middle_is_written, 0, FLUSHING_MODES);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
