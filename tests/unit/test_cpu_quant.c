/* Codes with a scale, each level of this machine, to the bit as the reference
   has them: every code, numbers of every kind, and every quotient of some
   scales. */
#include <math.h>
#include <string.h>

#include "check_main.h"
#include "cpu_kernel_fixture.h"
#include "dtype.h"

#define COUNT 4099

static const int32_t dtypes[MLA_CPU_CODES] = {MLA_FP8_E4M3, MLA_FP8_E4M3FNUZ,
                                              MLA_FP8_E5M2, MLA_I8, MLA_I4};

static int same(float a, float b) {
  return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

/* Code i from a byte on. */
static uint32_t code_at(const uint8_t *byte, int type, int i) {
  return type == MLA_CPU_I4 ? byte[i / 2] >> (i % 2 ? 4 : 0) & 0xFu : byte[i];
}

/* Odd counts and places reach every tail. */
START_TEST(codes_are_read) {
  static const float scales[] = {1.0f, 0x1.8p-7f, 0x1p-126f, 3e38f, 0x1p-149f};
  const mla_cpu_table *t = table_of(_i);
  uint8_t code[270];
  float got[500];
  if (!t) return;
  for (int i = 0; i < 270; i++) code[i] = (uint8_t)i;
  for (int type = 0; type < MLA_CPU_CODES; type++)
    for (int s = 0; s < 5; s++)
      for (int from = 0; from < 10; from++) {
        int n = type == MLA_CPU_I4 ? 480 + from : 240 + from;
        got[n] = 4711.0f;
        t->decode[type](got, code + from, n, scales[s]);
        for (int i = 0; i < n; i++) {
          uint32_t one = code_at(code + from, type, i);
          float value = (float)mla_decode(dtypes[type], one);
          REQUIRE(same(got[i], value * scales[s]), "%s %02x times %a: %a",
                  mla_dtype_name(dtypes[type]), one, (double)scales[s],
                  (double)got[i]);
        }
        ck_assert(got[n] == 4711.0f);
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
    if (i % 256 > 200 && isnan(x[i])) x[i] = -0.0f; /* whole steps without */
  }
  x[5] = INFINITY;
  x[6] = -INFINITY;
  x[7] = NAN;
  x[COUNT - 70] = INFINITY;
  x[COUNT - 71] = -INFINITY;
}

/* Tiles of all sizes: some end amid a vector, the last is short. */
static void check_tiles(const mla_cpu_table *t, int code_type, const void *from,
                        int type, const float *x, int n, int tile,
                        const float *scale) {
  static uint8_t code[COUNT + 1];
  int bytes = code_type == MLA_CPU_I4 ? (n + 1) / 2 : n;
  code[bytes] = 0x5A;
  t->encode[code_type](code, from, type, n, tile, scale, NULL);
  for (int i = 0; i < n; i++) {
    float y = x[i] / scale[i / tile];
    uint32_t want = mla_encode(dtypes[code_type], (double)y);
    uint32_t got = code_at(code, code_type, i);
    REQUIRE(got == want, "%s of %a / %a = %a: %02x, not %02x",
            mla_dtype_name(dtypes[code_type]), (double)x[i],
            (double)scale[i / tile], (double)y, got, want);
  }
  ck_assert(code[bytes] == 0x5A);
}

static float largest_of(const float *x, int n) {
  float most = 0.0f;
  for (int i = 0; i < n; i++)
    if (fabsf(x[i]) > most) most = fabsf(x[i]);
  return most;
}

static void check_codes(const mla_cpu_table *t, int type, const float *x, int n,
                        float scale) {
  check_tiles(t, type, x, MLA_CPU_F32, x, n, n, &scale);
}

/* Scales on either side of those that are multiplied by reciprocals. */
static const float scales[] = {
    1.0f,      0x1.6p-3f, 0x1.fffffep-1f, 0x1p-60f,  0x1.fffffep-61f,
    0x1.2p60f, 0x1p60f,   0x1p-126f,      0x1p-149f, 0x1p127f};

START_TEST(codes_are_written) {
  static float x[COUNT], y[COUNT];
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  fill_all_kinds(x);
  for (int s = 0; s < (int)(sizeof scales / sizeof *scales); s++) {
    for (int i = 0; i < COUNT; i++)
      y[i] = i % 4 == 0 || i % 4 == 3 ? x[i] : x[i] * scales[s];
    for (int type = 0; type < MLA_CPU_CODES; type++)
      for (int n = COUNT - 5; n <= COUNT; n++)
        check_codes(t, type, y, n, scales[s]);
  }
}
END_TEST

/* Of 16-bit floats, with a scale of its own for each tile. */
START_TEST(halves_are_written) {
  static float x[COUNT], back[COUNT], tops[COUNT];
  static uint16_t half[COUNT];
  static const int tiles[] = {32, 50, 64, 128, 576, COUNT};
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  fill_all_kinds(x);
  for (int type = MLA_CPU_F16; type <= MLA_CPU_BF16; type++) {
    t->store[type](half, x, COUNT);
    t->load[type](back, half, COUNT);
    for (int k = 0; k < (int)(sizeof tiles / sizeof *tiles); k++) {
      t->amax(tops, half, type, COUNT, tiles[k]);
      for (int i = 0; i * tiles[k] < COUNT; i++) {
        float want = largest_of(
            back + i * tiles[k],
            COUNT - i * tiles[k] < tiles[k] ? COUNT - i * tiles[k] : tiles[k]);
        REQUIRE(same(tops[i], want), "tile %d of %d: %a, not %a", i, tiles[k],
                (double)tops[i], (double)want);
        tops[i] = 0x1.4p-3f * (float)(i + 1);
      }
      for (int code = 0; code < MLA_CPU_CODES; code++)
        check_tiles(t, code, half, type, back, COUNT, tiles[k], tops);
    }
  }
}
END_TEST

/* Numbers next to those whose quotient is the middle between two codes. */
static int near_middles(float *x, int32_t dtype, float scale) {
  int n = 0, top = dtype == MLA_I8 ? 127 : dtype == MLA_I4 ? 7 : 0x7E;
  for (int code = 0; code < top; code++) {
    double low = mla_decode(dtype, (uint32_t)code),
           high = mla_decode(dtype, (uint32_t)code + 1);
    if (!isfinite(high)) break;
    float middle = (float)((low + high) / 2 * (double)scale);
    uint32_t bits;
    memcpy(&bits, &middle, sizeof bits);
    for (uint32_t step = 0; step < 16; step++) {
      uint32_t near = bits + step - 8;
      memcpy(&x[n], &near, sizeof near);
      x[n] = step % 2 ? -x[n] : x[n];
      n++;
    }
  }
  return n;
}

START_TEST(middles_are_written) {
  static float x[COUNT];
  const mla_cpu_table *t = table_of(_i);
  mla_rng rng = mla_rng_named(23, "scales");
  if (!t) return;
  for (int s = 0; s < 400; s++) {
    float scale =
        0x1p-9f *
        (1.0f +
         0x1p-23f * (float)(int)(mla_rng_bits(rng, (uint64_t)s) & 0x7FFFFF));
    for (int type = 0; type < MLA_CPU_CODES; type++) {
      int n = near_middles(x, dtypes[type], scale);
      check_codes(t, type, x, n, scale);
    }
  }
}
END_TEST

START_TEST(largest_magnitudes) {
  static float x[COUNT];
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  for (int n = 0; n < 70; n++) {
    float top = 0.0f;
    for (int i = 0; i < n; i++) {
      x[i] = (float)((i * 37 + n) % 71 - 35) * 1e-40f;
      if (i % 13 == 3) x[i] = NAN;
    }
    t->amax(&top, x, MLA_CPU_F32, n, n + 1);
    REQUIRE(same(top, largest_of(x, n)), "%d numbers", n);
  }
  fill_all_kinds(x);
  t->amax(x, x, MLA_CPU_F32, COUNT, COUNT);
  ck_assert(x[0] == INFINITY);
}
END_TEST

int main(void) {
  Suite *s = suite_create("cpu codes");
  TCase *t = tcase_create("codes");
  tcase_add_loop_test(t, codes_are_read, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, codes_are_written, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, halves_are_written, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, middles_are_written, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, largest_magnitudes, 0, MLA_CPU_ISA_COUNT);
  suite_add_tcase(s, t);
  return check_main(s);
}
