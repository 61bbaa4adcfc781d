/*
 * emu_mma_faults.cpp - what kernels for sm_80 stand on, judged: the registers
 * of products and of loaded matrices, copies that go on by themselves, and
 * mistakes that a kernel can make with them, which must show.
 */
#include <stdio.h>
#include <string.h>

#include "sm80_mma.h"

enum { LANES = 64, ORDERS = 4 };

/* What a kernel gets wrong. */
enum {
  RIGHT,
  NOT_TURNED,      /* V loaded as K is */
  HALVES_TOGETHER, /* the second 8 of k for the first */
  ROWS_TOGETHER,   /* D's row g + 8 taken for g */
  SOME_LANES,      /* the others are elsewhere */
  NO_WAIT,         /* for a copy */
  WAIT_FOR_OTHERS, /* for an older group only */
  NO_BARRIER,      /* between a copy that one waited for and another's use */
  NO_BARRIER_BACK, /* between use and the next copy */
  OFF_ALIGNMENT,   /* a row of a matrix at 8 bytes */
  OVERRUN,         /* a copy behind the tile */
  MISTAKES
};
static const char *const mistakes[MISTAKES] = {"nothing",
                                               "not turned",
                                               "halves of k",
                                               "rows of D",
                                               "in divergent code",
                                               "no wait",
                                               "a wait too short",
                                               "no barrier behind the wait",
                                               "no barrier before",
                                               "off its alignment",
                                               "overrun"};

enum { STRIDE = 3, A_AT = 0, B_AT = 16 * STRIDE, CHUNKS = 32 * STRIDE };

/* D = A B, 16 x 8 x 16, A by rows, B as it lies [k][n] or, given its
   transpose, [n][k]: x is A, B (as given, 16 x 16, eight of n used), then D
   (16 x 8), from B turned, then from its transpose. */
MLA_KERNEL multiply(float *x, int mistake) {
  MLA_DYNAMIC_SHARED(sm80_chunk, pool);
  if (MLA_TID >= 32) return;
  uint32_t *tile = (uint32_t *)pool;
  for (int i = MLA_LANE; i < 384; i += 32) {
    const int part = i / 128, row = i % 128 / 8, pair = i % 8;
    const float *from = x + part * 256 + row * 16 + 2 * pair;
    tile[((part * 16 + row) * STRIDE + pair / 4) * 4 + pair % 4] =
        sm80_pair<MLA_BF16>(from[0], from[1]);
  }
  MLA_WAVE_SYNC();
  uint32_t a[4], turned[4], straight[4];
  SM80_LOAD4(sm80_a_row(pool, STRIDE, 0, 0), a);
  if (mistake == NOT_TURNED)
    SM80_LOAD4(sm80_turned_row(pool, STRIDE, 16, 0), turned);
  else
    SM80_LOAD4_TURNED(sm80_turned_row(pool, STRIDE, 16, 0), turned);
  SM80_LOAD4(sm80_b_row(pool, STRIDE, 32, 0), straight);
  float d[2][4] = {};
  const int other = mistake == HALVES_TOGETHER;
  const uint32_t b[2] = {turned[other], turned[1 - other]};
  if (mistake != SOME_LANES || MLA_LANE < 20) SM80_MMA(MLA_BF16, a, b, d[0]);
  SM80_MMA(MLA_BF16, a, straight, d[1]);
  for (int i = 0; i < 8; i++) {
    const int r = i % 4, half = mistake == ROWS_TOGETHER ? 1 - r / 2 : r / 2;
    const int row = MLA_LANE / 4 + 8 * half;
    x[768 + i / 4 * 128 + row * 8 + MLA_LANE % 4 * 2 + r % 2] = d[i / 4][r];
  }
}

/* Two stages, each brought while the other is used: x is in, 4 x 64 x 4
   words; then, of every lane, the sum of what its mirror image brought. */
MLA_KERNEL copy(float *x, int mistake) {
  MLA_DYNAMIC_SHARED(sm80_chunk, pool);
  const int behind = mistake == OVERRUN && MLA_TID == LANES - 1 ? 2 * LANES : 0;
  float sum = 0;
  SM80_COPY(pool + MLA_TID, x + 4 * MLA_TID, 16);
  SM80_COMMIT();
  for (int i = 0; i < 4; i++) {
    const int to = (i + 1) % 2 * LANES + MLA_TID + behind;
    if (mistake != NO_BARRIER_BACK && i > 0) MLA_BARRIER();
    if (i < 3) SM80_COPY(pool + to, x + 4 * ((i + 1) * LANES + MLA_TID), 16);
    SM80_COMMIT();
    if (mistake == WAIT_FOR_OTHERS)
      SM80_WAIT(2);
    else if (mistake != NO_WAIT)
      SM80_WAIT(1);
    if (mistake != NO_BARRIER) MLA_BARRIER();
    const sm80_chunk *from = pool + i % 2 * LANES + LANES - 1 - MLA_TID;
    for (int k = 0; k < 4; k++) sum += __uint_as_float(from->word[k]);
  }
  x[4 * 4 * LANES + MLA_TID] = sum;
}

/* A copy that reads nothing is zeros; matrices lie at 16 bytes. */
MLA_KERNEL zeros(float *x, int mistake) {
  MLA_DYNAMIC_SHARED(sm80_chunk, pool);
  uint32_t v[4];
  if (MLA_TID >= 32) return;
  SM80_COPY(pool + MLA_LANE, x, 0);
  SM80_COMMIT();
  SM80_WAIT(0);
  MLA_WAVE_SYNC();
  SM80_LOAD4((const char *)(pool + MLA_LANE) +
                 (mistake == OFF_ALIGNMENT && MLA_LANE == 3 ? 8 : 0),
             v);
  x[MLA_LANE] = (float)(v[0] | v[1] | v[2] | v[3]);
}

/* 1 where a warp's votes and both warps' counts are right. */
MLA_KERNEL votes(float *x, int mistake) {
  MLA_SHARED_TILE(uint32_t, counts, 1, 1);
  if (MLA_TID == 0) counts[0][0] = 0;
  MLA_BARRIER();
  const uint32_t before = SM80_COUNT(counts[0]);
  uint32_t bits = 0;
  if (mistake != SOME_LANES || MLA_LANE < 20)
    bits = SM80_BALLOT(MLA_LANE % 3 == MLA_WAVE_ID);
  MLA_BARRIER();
  const uint32_t wanted = MLA_WAVE_ID ? 0x92492492u : 0x49249249u;
  x[MLA_TID] =
      bits == wanted && before < LANES && counts[0][0] == LANES ? 1.0f : 0.0f;
}

/* Small whole numbers, so that every sum is exact. */
static float small(int i) {
  return (float)(i * 37 % 19 - 9);
}

typedef void lane_kernel(float *, int);

/* Runs a block over n numbers; false: the emulator reports, in emu_failure()
   too. */
static bool run(lane_kernel *kernel, int mistake, uint64_t seed, float *x,
                size_t n) {
  float *memory = NULL;
  emu_configure(32, seed);
  if (emuMalloc((void **)&memory, n * sizeof *x) != emuSuccess) return false;
  (void)emuMemcpyAsync(memory, x, n * sizeof *x, emuMemcpyHostToDevice, NULL);
  MLA_LAUNCH(kernel, dim3(1), dim3(LANES), CHUNKS * 2 * sizeof(sm80_chunk),
             NULL, memory, mistake);
  (void)emuMemcpyAsync(x, memory, n * sizeof *x, emuMemcpyDeviceToHost, NULL);
  const bool fine = emuStreamSynchronize(NULL) == emuSuccess;
  (void)emuFree(memory);
  return fine;
}

/* Elements of D that differ from the definition; -1: reported. */
static int wrong_of_multiply(int mistake, uint64_t seed) {
  float x[768 + 256] = {};
  int wrong = 0;
  for (int i = 0; i < 512; i++) x[i] = small(i);
  for (int i = 0; i < 256; i++) x[512 + i] = small(256 + i % 16 * 16 + i / 16);
  if (!run(multiply, mistake, seed, x, sizeof x / sizeof *x)) return -1;
  for (int i = 0; i < 256; i++) {
    float sum = 0;
    for (int k = 0; k < 16; k++)
      sum += small(i % 128 / 8 * 16 + k) * small(256 + k * 16 + i % 8);
    wrong += x[768 + i] != sum;
  }
  return wrong;
}

/* Sums that differ; -1: reported, -2: with another sentence. */
static int wrong_of_copy(int mistake, uint64_t seed, const char *report) {
  static float x[17 * LANES];
  int wrong = 0;
  for (int i = 0; i < 16 * LANES; i++) x[i] = small(i);
  if (!run(copy, mistake, seed, x, sizeof x / sizeof *x)) {
    if (strstr(emu_failure(), report)) return -1;
    printf("  reported: %s\n", emu_failure());
    return -2;
  }
  for (int t = 0; t < LANES; t++) {
    float sum = 0;
    for (int i = 0; i < 16; i++)
      sum += small((i / 4 * LANES + LANES - 1 - t) * 4 + i % 4);
    wrong += x[16 * LANES + t] != sum;
  }
  return wrong;
}

static int failures;

static void expect(bool fine, const char *what, int mistake) {
  if (fine) return;
  printf("emu_mma_faults: %s, mistake: %s\n", what, mistakes[mistake]);
  failures++;
}

static void judge_copies(uint64_t seed) {
  static const struct {
    int mistake;
    const char *report;
  } faults[] = {{NO_WAIT, "a copy not waited for"},
                {WAIT_FOR_OTHERS, "a copy not waited for"},
                {NO_BARRIER, ""}, /* a race or a copy on its way: by order */
                {NO_BARRIER_BACK, ""},
                {OVERRUN, "shared memory overrun"}};
  expect(wrong_of_copy(RIGHT, seed, "") == 0, "copies", RIGHT);
  for (const auto &f : faults)
    expect(wrong_of_copy(f.mistake, seed, f.report) == -1, "copies", f.mistake);
  emu_copy_plant(true);
  expect(wrong_of_copy(RIGHT, seed, "a copy not waited for") == -1,
         "a planted wait", RIGHT);
  emu_copy_plant(false);
}

int main() {
  if (emuSetDevice(0) != emuSuccess) return 2;
  float x[LANES];
  for (uint64_t seed = 1; seed <= ORDERS; seed++) {
    expect(wrong_of_multiply(RIGHT, seed) == 0, "16 x 8 x 16", RIGHT);
    for (int m = NOT_TURNED; m <= ROWS_TOGETHER; m++)
      expect(wrong_of_multiply(m, seed) >= 50, "16 x 8 x 16", m);
    expect(wrong_of_multiply(SOME_LANES, seed) == -1, "16 x 8 x 16",
           SOME_LANES);
    emu_mma_plant(true);
    expect(wrong_of_multiply(RIGHT, seed) >= 50, "a planted layout", RIGHT);
    emu_mma_plant(false);
    judge_copies(seed);
    for (int i = 0; i < 32; i++) x[i] = 1;
    expect(run(zeros, RIGHT, seed, x, 32) && x[0] == 0 && x[31] == 0, "zeros",
           RIGHT);
    expect(!run(zeros, OFF_ALIGNMENT, seed, x, 32), "zeros", OFF_ALIGNMENT);
    expect(run(votes, RIGHT, seed, x, LANES), "votes", RIGHT);
    for (int i = 0; i < LANES; i++) expect(x[i] == 1, "votes", RIGHT);
    expect(!run(votes, SOME_LANES, seed, x, LANES), "votes", SOME_LANES);
  }
  printf("emu_mma_faults: %d failures\n", failures);
  return failures != 0;
}
