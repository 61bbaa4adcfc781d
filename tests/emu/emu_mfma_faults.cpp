/*
 * emu_mfma_faults.cpp - what the kernels on matrix cores stand on, judged: the
 * registers of both instructions, codes of 8 bits widened, and mistakes that a
 * kernel can make with them, which must show.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpu_entry.h"
#include "mla_keys_mfma_cdna.h"
#include "mla_prefill_mfma_cdna.h"

enum { LANES = 64, ORDERS = 4 };

/* What a kernel gets wrong. */
enum {
  RIGHT,
  OPERANDS_EXCHANGED, /* A for B */
  ROWS_AS_16,         /* D read as that of the smaller instruction */
  HALVES_EXCHANGED,   /* k of one operand in another order */
  KEYS_AS_THEY_LIE,   /* rows of K not put in the order that V is read by */
  SOME_LANES,         /* the others are elsewhere */
  MISTAKES
};
static const char *const mistakes[MISTAKES] = {
    "nothing",
    "A given for B",
    "the rows of D as those of 16 x 16",
    "k of one operand in another order",
    "keys as they lie in memory",
    "in divergent code"};

/* D = A B of 32 x 8 and 8 x 32: x is A, then B, then D. */
MLA_KERNEL multiply(float *x, int mistake) {
  const int n = MLA_LANE % 32, g = MLA_LANE / 32;
  const int other = mistake == HALVES_EXCHANGED ? 1 - g : g;
  float a[4], b[4];
  for (int j = 0; j < 4; j++) {
    a[j] = x[n * 8 + 4 * g + j];
    b[j] = x[256 + (4 * other + j) * 32 + n];
  }
  const mla_u32x2 first = {mla_pair_of<MLA_BF16>(a[0], a[1]),
                           mla_pair_of<MLA_BF16>(a[2], a[3])};
  const mla_u32x2 second = {mla_pair_of<MLA_BF16>(b[0], b[1]),
                            mla_pair_of<MLA_BF16>(b[2], b[3])};
  const int swapped = mistake == OPERANDS_EXCHANGED;
  mla_f32x16 d = {};
  MLA_MFMA_32(MLA_BF16, swapped ? second : first, swapped ? first : second, &d);
  for (int r = 0; r < 16; r++) {
    const int row = mistake == ROWS_AS_16 ? r / 4 * 8 + r % 4 * 2 + g
                                          : r / 4 * 8 + 4 * g + r % 4;
    x[512 + row * 32 + n] = d[r];
  }
}

/* O[row][column] = sum of S[row][key] V[key][column] over 32 keys, S = q k: x
   is K (32 of one column), then V (32 x 32), then O (32 x 32); q is 1. By the
   prefill kernel's order of keys. */
MLA_KERNEL two_products(float *x, int mistake) {
  const int n = MLA_LANE % 32, g = MLA_LANE / 32;
  const int key = mistake == KEYS_AS_THEY_LIE ? n : mla_prefill_place(n);
  const uint32_t k = g == 0 ? mla_pair_of<MLA_BF16>(x[key], 0) : 0;
  const uint32_t one = g == 0 ? mla_pair_of<MLA_BF16>(1, 0) : 0;
  mla_f32x16 s = {}, o = {};
  MLA_MFMA_32(MLA_BF16, (mla_u32x2{k, 0}), (mla_u32x2{one, 0}), &s);
  for (int i = 0; i < 4; i++) {
    const int from = i / 2 * 16 + g * 8 + i % 2 * 4;
    const float *v = x + 32 + from * 32 + n;
    MLA_MFMA_32(MLA_BF16,
                (mla_u32x2{mla_pair_of<MLA_BF16>(v[0], v[32]),
                           mla_pair_of<MLA_BF16>(v[64], v[96])}),
                (mla_u32x2{mla_pair_of<MLA_BF16>(s[4 * i], s[4 * i + 1]),
                           mla_pair_of<MLA_BF16>(s[4 * i + 2], s[4 * i + 3])}),
                &o);
  }
  for (int r = 0; r < 16; r++)
    x[1056 + n * 32 + r / 4 * 8 + 4 * g + r % 4] = o[r];
}

MLA_KERNEL half_a_wave(float *x, int mistake) {
  mla_f32x16 d = {};
  const mla_u32x2 ones = {0x3f803f80, 0x3f803f80};
  if (mistake != SOME_LANES || MLA_LANE < 20)
    MLA_MFMA_32(MLA_BF16, ones, ones, &d);
  x[MLA_LANE] = d[0];
}

/* Small whole numbers, so that every sum is exact. */
static float small(int i) {
  return (float)(i * 37 % 19 - 9);
}

typedef void lane_kernel(float *, int);

/* Runs one wave over n numbers; false: the emulator reports. */
static bool run(lane_kernel *kernel, int mistake, uint64_t seed, float *x,
                size_t n) {
  float *memory = NULL;
  emu_configure(LANES, seed);
  if (emuMalloc((void **)&memory, n * sizeof *x) != emuSuccess) return false;
  (void)emuMemcpyAsync(memory, x, n * sizeof *x, emuMemcpyHostToDevice, NULL);
  MLA_LAUNCH(kernel, dim3(1), dim3(LANES), 0, NULL, memory, mistake);
  (void)emuMemcpyAsync(x, memory, n * sizeof *x, emuMemcpyDeviceToHost, NULL);
  const bool fine = emuStreamSynchronize(NULL) == emuSuccess;
  (void)emuFree(memory);
  return fine;
}

/* Elements of D that differ from the definition; -1: reported. */
static int wrong_of_multiply(int mistake, uint64_t seed) {
  float x[512 + 1024] = {};
  int wrong = 0;
  for (int i = 0; i < 512; i++) x[i] = small(i);
  if (!run(multiply, mistake, seed, x, sizeof x / sizeof *x)) return -1;
  for (int i = 0; i < 1024; i++) {
    float sum = 0;
    for (int k = 0; k < 8; k++)
      sum += small(i / 32 * 8 + k) * small(256 + k * 32 + i % 32);
    wrong += x[512 + i] != sum;
  }
  return wrong;
}

static int wrong_of_two_products(int mistake, uint64_t seed) {
  static float x[32 + 1024 + 1024];
  int wrong = 0;
  for (int i = 0; i < 32 + 1024; i++) x[i] = small(i);
  if (!run(two_products, mistake, seed, x, sizeof x / sizeof *x)) return -1;
  for (int i = 0; i < 1024; i++) {
    float sum = 0;
    for (int k = 0; k < 32; k++) sum += small(k) * small(32 + k * 32 + i % 32);
    wrong += x[1056 + i] != sum;
  }
  return wrong;
}

/* Codes that are widened otherwise than gpu_entry.h does. */
template <int KEYS>
static int wrong_codes(int type) {
  int wrong = 0;
  for (uint32_t code = 0; code < 256; code++)
    for (int k = 0; k < 4; k++) {
      const uint32_t word = (0x5a80ff7fu & ~(0xffu << 8 * k)) | code << 8 * k;
      const float got = mla_mfma_code<KEYS>(word, k);
      const float want = mla_code_to_float(type, code);
      wrong += isnan(want) ? !isnan(got) : memcmp(&got, &want, sizeof got) != 0;
    }
  return wrong;
}

static int failures;

static void expect(bool fine, const char *what, int mistake) {
  if (fine) return;
  printf("emu_mfma_faults: %s, mistake: %s\n", what, mistakes[mistake]);
  failures++;
}

int main() {
  if (emuSetDevice(0) != emuSuccess) return 2;
  for (uint64_t seed = 1; seed <= ORDERS; seed++) {
    expect(wrong_of_multiply(RIGHT, seed) == 0, "32 x 32 x 8", RIGHT);
    for (int m = OPERANDS_EXCHANGED; m <= HALVES_EXCHANGED; m++)
      expect(wrong_of_multiply(m, seed) >= 100, "32 x 32 x 8", m);
    expect(wrong_of_two_products(RIGHT, seed) == 0, "two products", RIGHT);
    expect(wrong_of_two_products(KEYS_AS_THEY_LIE, seed) >= 100, "two products",
           KEYS_AS_THEY_LIE);
    emu_mfma_plant(true);
    expect(wrong_of_multiply(RIGHT, seed) >= 100, "a planted layout", RIGHT);
    expect(wrong_of_two_products(RIGHT, seed) >= 100, "a planted layout",
           RIGHT);
    emu_mfma_plant(false);
    float x[LANES] = {};
    expect(run(half_a_wave, RIGHT, seed, x, LANES), "a whole wave", RIGHT);
    expect(!run(half_a_wave, SOME_LANES, seed, x, LANES), "a whole wave",
           SOME_LANES);
  }
  expect(wrong_codes<MLA_KEYS_E4M3>(MLA_FP8_E4M3) == 0, "codes of e4m3", RIGHT);
  expect(wrong_codes<MLA_KEYS_E4M3FNUZ>(MLA_FP8_E4M3FNUZ) == 0,
         "codes of e4m3fnuz", RIGHT);
  expect(wrong_codes<MLA_KEYS_E5M2>(MLA_FP8_E5M2) == 0, "codes of e5m2", RIGHT);
  printf("emu_mfma_faults: %d failures\n", failures);
  return failures != 0;
}
