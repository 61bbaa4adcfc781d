/* Codes with a scale, each level of this machine, to the bit as the reference
   has them: every code, and numbers of every kind. */
#include <math.h>
#include <string.h>

#include "check_main.h"
#include "cpu_kernel_fixture.h"
#include "dtype.h"

#define COUNT 4099

static int same(float a, float b) {
  return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

/* Odd counts and places reach every tail. */
START_TEST(codes_are_read) {
  static const float scales[] = {1.0f, 0x1.8p-7f, 0x1p-126f, 3e38f};
  const mla_cpu_table *t = table_of(_i);
  uint8_t code[260];
  float got[260];
  if (!t) return;
  for (int i = 0; i < 260; i++) code[i] = (uint8_t)i;
  for (int s = 0; s < 4; s++)
    for (int from = 0; from < 9; from++) {
      t->decode_e4m3(got, code + from, 250, scales[s]);
      for (int i = 0; i < 250; i++) {
        double value = mla_decode(MLA_FP8_E4M3, code[from + i]);
        REQUIRE(same(got[i], (float)value * scales[s]), "e4m3 %02x: %a",
                code[from + i], (double)got[i]);
      }
      t->decode_i4(got, code + from * 11, 200 + from, scales[s]);
      for (int i = 0; i < 200 + from; i++) {
        uint32_t four = code[from * 11 + i / 2] >> (i % 2 ? 4 : 0) & 0xFu;
        double value = mla_decode(MLA_I4, four);
        REQUIRE(same(got[i], (float)value * scales[s]), "int4 %x: %a", four,
                (double)got[i]);
      }
    }
}
END_TEST

/* Every kind of f32; a quarter within the codes' range, half of it on ties. */
static void fill_all_kinds(float *x) {
  mla_rng rng = mla_rng_named(17, "quant");
  for (int i = 0; i < COUNT; i++) {
    uint32_t bits = (uint32_t)mla_rng_bits(rng, (uint64_t)i);
    memcpy(&x[i], &bits, sizeof bits);
    if (i % 4 == 1) x[i] = (float)(int)(bits % 1000) / 2.0f - 250.0f;
    if (i % 4 == 2) x[i] = (float)mla_rng_bell(rng, (uint64_t)i);
  }
  x[5] = INFINITY;
  x[6] = -INFINITY;
  x[7] = NAN;
}

START_TEST(codes_are_written) {
  static const float scales[] = {1.0f, 0x1.6p-3f, 0x1p-126f};
  static float x[COUNT];
  static uint8_t fp8[COUNT], i8[COUNT], i4[COUNT];
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  fill_all_kinds(x);
  for (int s = 0; s < 3; s++)
    for (int n = COUNT - 9; n <= COUNT; n++) {
      t->encode_e4m3(fp8, x, n, scales[s]);
      t->encode_i8(i8, x, n, scales[s]);
      t->encode_i4(i4, x, n, scales[s]);
      for (int i = 0; i < n; i++) {
        double y = x[i] / scales[s];
        uint32_t four = i4[i / 2] >> (i % 2 ? 4 : 0) & 0xFu;
        REQUIRE(fp8[i] == mla_encode(MLA_FP8_E4M3, y), "e4m3 of %a", y);
        REQUIRE(i8[i] == (mla_encode(MLA_I8, y) & 0xFF), "int8 of %a", y);
        REQUIRE(four == (mla_encode(MLA_I4, y) & 0xF), "int4 of %a", y);
      }
    }
}
END_TEST

START_TEST(largest_magnitudes) {
  static float x[COUNT];
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  for (int n = 0; n < 70; n++) {
    float want = 0.0f;
    for (int i = 0; i < n; i++) {
      x[i] = (float)((i * 37 + n) % 71 - 35) * 1e-40f;
      if (i % 13 == 3) x[i] = NAN;
      if (fabsf(x[i]) > want) want = fabsf(x[i]);
    }
    REQUIRE(same(t->amax(x, n), want), "%d numbers", n);
  }
  fill_all_kinds(x);
  ck_assert(t->amax(x, COUNT) == INFINITY);
}
END_TEST

int main(void) {
  Suite *s = suite_create("cpu codes");
  TCase *t = tcase_create("codes");
  tcase_add_loop_test(t, codes_are_read, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, codes_are_written, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, largest_magnitudes, 0, MLA_CPU_ISA_COUNT);
  suite_add_tcase(s, t);
  return check_main(s);
}
