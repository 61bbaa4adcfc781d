/*
 * emu_faults.cpp - the emulator judged: kernels with one mistake each, which
 * it must report with that line, and their right twins, which it must let
 * pass; for both widths of a wave, in several orders.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_port.h"
#include "hip_mfma.h"

enum { LANES = 256, ORDERS = 8 };

/* Follows the line that the report must name; line_of() looks for it. */
#define FAULT(kernel)

/* Each lane takes what its mirror image has put down. */
MLA_KERNEL mirror(float *out, int faulty) {
  MLA_SHARED_TILE(float, kept, 1, LANES);
  kept[0][MLA_TID] = (float)MLA_TID;
  if (!faulty) MLA_BARRIER();
  out[MLA_TID] = kept[0][LANES - 1 - MLA_TID];
  FAULT(mirror)
}

/* A tile used again before all have read it. */
MLA_KERNEL again(float *out, int faulty) {
  MLA_DYNAMIC_SHARED(float, kept);
  float sum = 0;
  for (int i = 0; i < 2; i++) {
    kept[MLA_TID] = (float)(i + MLA_TID);
    MLA_BARRIER();
    sum += kept[LANES - 1 - MLA_TID];
    FAULT(again)
    if (!faulty) MLA_BARRIER();
  }
  out[MLA_TID] = sum;
}

MLA_KERNEL half_a_wave(float *out, int faulty) {
  float v = 1;
  if (!faulty || MLA_LANE < 7) v = mla_wave_sum(v);
  FAULT(half_a_wave)
  out[MLA_TID] = v;
}

/* Two operations alike, in two places. */
MLA_KERNEL two_places(float *out, int faulty) {
  float v = (float)MLA_LANE;
  if (faulty && MLA_LANE % 2) v = MLA_SHFL_XOR(v, 1) + 1;
  FAULT(two_places)
  else v = MLA_SHFL_XOR(v, 1);
  out[MLA_TID] = v;
}

MLA_KERNEL two_masks(float *out, int faulty) {
  float v = (float)MLA_LANE;
  v = MLA_SHFL_XOR(v, faulty && MLA_LANE < 2 ? 3 : 1);
  FAULT(two_masks)
  out[MLA_TID] = v;
}

MLA_KERNEL beyond_wave(float *out, int faulty) {
  float v = (float)MLA_LANE;
  const int past = faulty && MLA_LANE == 3 ? 64 : 0;
  v = MLA_SHFL(v, (MLA_LANE + 1) % MLA_WAVE + past);
  FAULT(beyond_wave)
  out[MLA_TID] = v;
}

MLA_KERNEL some_at_barrier(float *out, int faulty) {
  out[MLA_TID] = 1;
  if (!faulty || MLA_TID < LANES / 2) MLA_BARRIER();
  FAULT(some_at_barrier)
}

MLA_KERNEL some_return(float *out, int faulty) {
  out[MLA_TID] = 1;
  if (faulty && MLA_TID == 17) return;
  MLA_BARRIER();
  FAULT(some_return)
}

MLA_KERNEL behind_tile(float *out, int faulty) {
  MLA_SHARED_TILE(float, kept, 2, LANES);
  kept[1][MLA_TID + (faulty && MLA_TID == LANES - 1)] = 1;
  FAULT(behind_tile)
  MLA_BARRIER();
  out[MLA_TID] = kept[1][MLA_TID / 2];
}

MLA_KERNEL behind_dynamic(float *out, int faulty) {
  MLA_DYNAMIC_SHARED(float, kept);
  kept[MLA_TID] = 1;
  MLA_BARRIER();
  out[MLA_TID] = kept[(MLA_TID + (faulty ? 1 : 0)) % (LANES + 1)];
  FAULT(behind_dynamic)
}

MLA_KERNEL behind_memory(float *out, int faulty) {
  out[MLA_TID + (faulty && MLA_TID == LANES - 1)] = 1;
  FAULT(behind_memory)
}

/* Two numbers at once, to where one begins. */
MLA_KERNEL misaligned(float *out, int faulty) {
  typedef float pair __attribute__((vector_size(8), may_alias));
  const int at = MLA_TID + (faulty && MLA_TID == 8);
  if (MLA_TID % 4 == 0) *reinterpret_cast<pair *>(out + at) = pair{1, 1};
  FAULT(misaligned)
  if (MLA_TID % 4 > 1) out[MLA_TID] = 1;
}

/* What nobody wrote is NaN: it shows in the result. */
MLA_KERNEL unwritten(float *out, int faulty) {
  MLA_SHARED_TILE(float, kept, 1, LANES);
  if (!faulty || MLA_TID != 5) kept[0][MLA_TID] = 1;
  MLA_BARRIER();
  out[MLA_TID] = kept[0][LANES - 1 - MLA_TID];
}

/* A wave may exchange through shared memory when it says so. */
MLA_KERNEL within_wave(float *out, int faulty) {
  MLA_SHARED_TILE(float, kept, 1, LANES);
  kept[0][MLA_TID] = (float)MLA_TID;
  if (!faulty) MLA_WAVE_SYNC();
  out[MLA_TID] = kept[0][MLA_TID ^ 1];
  FAULT(within_wave)
}

/* ... but not with another wave. */
MLA_KERNEL across_waves(float *out, int faulty) {
  MLA_SHARED_TILE(float, kept, 1, LANES);
  kept[0][MLA_TID] = (float)MLA_TID;
  MLA_WAVE_SYNC();
  out[MLA_TID] = kept[0][faulty ? MLA_TID ^ 64 : MLA_TID ^ 1];
  FAULT(across_waves)
}

/* Read by all and again by all, then written: not before they have met. */
MLA_KERNEL known_to_all(float *out, int faulty) {
  MLA_SHARED_TILE(float, kept, 1, LANES);
  float sum = 0;
  kept[0][MLA_TID] = 1;
  MLA_BARRIER();
  for (int i = 0; i < 3 * LANES; i++) sum += kept[0][i % LANES];
  if (!faulty) MLA_BARRIER();
  kept[0][MLA_TID] = sum;
  FAULT(known_to_all)
  MLA_BARRIER();
  out[MLA_TID] = kept[0][LANES - 1 - MLA_TID];
}

/* The same within a wave, which goes on to read what was written. */
MLA_KERNEL known_to_wave(float *out, int faulty) {
  MLA_SHARED_TILE(float, kept, 1, LANES);
  float *own = &kept[0][MLA_WAVE_ID * MLA_WAVE], sum = 0;
  own[MLA_LANE] = 1;
  MLA_BARRIER();
  for (int i = 0; i < 3 * MLA_WAVE; i++) sum += own[i % MLA_WAVE];
  MLA_WAVE_SYNC();
  own[MLA_LANE] = sum;
  if (!faulty) MLA_WAVE_SYNC();
  out[MLA_TID] = own[MLA_LANE ^ 1];
  FAULT(known_to_wave)
}

/* Matrix instructions are of waves of 64; the right twin has none in others. */
MLA_KERNEL half_a_product(float *out, int faulty) {
  const mla_u32x2 ones = {0x3f803f80, 0x3f803f80};
  mla_f32x4 d = {0, 0, 0, 0};
  if (faulty ? MLA_LANE < 20 : MLA_WAVE == 64)
    d = MLA_MFMA_16(MLA_BF16, ones, ones, d);
  FAULT(half_a_product)
  out[MLA_TID] = d[0];
}

/* A product as hip_mfma.h says that registers lie; x is A, then B, then D. */
MLA_KERNEL product(float *x, int unused) {
  (void)unused;
  const int n = MLA_LANE % 16, g = MLA_LANE / 16;
  uint32_t a[4], b[4];
  for (int j = 0; j < 4; j++) {
    a[j] = mla_float_to_bf16(x[n * 16 + 4 * g + j]);
    b[j] = mla_float_to_bf16(x[256 + (4 * g + j) * 16 + n]);
  }
  const mla_u32x2 first = {a[0] | a[1] << 16, a[2] | a[3] << 16};
  const mla_u32x2 second = {b[0] | b[1] << 16, b[2] | b[3] << 16};
  const mla_f32x4 zero = {0, 0, 0, 0};
  const mla_f32x4 d = MLA_MFMA_16(MLA_BF16, first, second, zero);
  for (int r = 0; r < 4; r++) x[512 + (4 * g + r) * 16 + n] = d[r];
}

struct fault {
  const char *name, *mark;
  void (*kernel)(float *, int);
  const char *report; /* NULL: the result is NaN, nothing is reported */
};

static const struct fault faults[] = {
    {"a missing barrier", "FAULT(mirror)", mirror, "no barrier between"},
    {"a missing barrier at the end of a loop", "FAULT(again)", again,
     "no barrier between"},
    {"a shuffle in divergent code", "FAULT(half_a_wave)", half_a_wave,
     "divergent wave operation"},
    {"a shuffle that meets another", "FAULT(two_places)", two_places,
     "divergent wave operation"},
    {"a shuffle with two masks", "FAULT(two_masks)", two_masks,
     "divergent wave operation"},
    {"a shuffle beyond the wave", "FAULT(beyond_wave)", beyond_wave,
     "shuffles with lane"},
    {"a barrier in divergent code", "FAULT(some_at_barrier)", some_at_barrier,
     "divergent code"},
    {"a lane that returned early", "FAULT(some_return)", some_return,
     "divergent code"},
    {"a tile overrun", "FAULT(behind_tile)", behind_tile,
     "shared memory overrun"},
    {"dynamic shared memory overrun", "FAULT(behind_dynamic)", behind_dynamic,
     "shared memory overrun"},
    {"memory overrun", "FAULT(behind_memory)", behind_memory,
     "no memory of the device"},
    {"two numbers where one begins", "FAULT(misaligned)", misaligned,
     "misaligned"},
    {"shared memory nobody wrote", "FAULT(unwritten)", unwritten, NULL},
    {"a missing wave synchronisation", "FAULT(within_wave)", within_wave,
     "no barrier between"},
    {"a matrix instruction in divergent code", "FAULT(half_a_product)",
     half_a_product, "wave"},
    {"writing what all have read", "FAULT(known_to_all)", known_to_all,
     "no barrier between"},
    {"reading what the wave knew before", "FAULT(known_to_wave)", known_to_wave,
     "no barrier between"},
    {"a wave synchronisation for a barrier", "FAULT(across_waves)",
     across_waves, "no barrier between"},
};

/* The line of this file before the mark; 0: none. */
static int line_of(const char *mark) {
  FILE *source = fopen(__FILE__, "r");
  char text[200];
  int line = 0;
  if (!source) return 0;
  while (fgets(text, sizeof text, source)) {
    if (!strchr(text, '"') && strstr(text, mark)) break;
    line++;
  }
  const int found = !feof(source);
  fclose(source);
  return found ? line : 0;
}

/* Whether a launch says what it should: nothing, NaN or that report. */
static int judge(const struct fault &f, int faulty, float *memory) {
  float result[LANES];
  char place[40];
  MLA_LAUNCH(f.kernel, dim3(1), dim3(LANES), LANES * sizeof(float), NULL,
             memory, faulty);
  const emuError_t code = emuStreamSynchronize(NULL);
  if (!faulty) {
    if (code == emuSuccess) return 1;
    printf("  the right kernel fails: %s\n", emuGetErrorString(code));
    return 0;
  }
  if (f.report) {
    const char *said = code == emuSuccess ? "nothing" : emuGetErrorString(code);
    snprintf(place, sizeof place, "emu_faults.cpp:%d", line_of(f.mark));
    if (code != emuSuccess && strstr(said, f.report) && strstr(said, place))
      return 1;
    printf("  reported: %s (wanted \"%s\" and %s)\n", said, f.report, place);
    return 0;
  }
  (void)emuMemcpyAsync(result, memory, sizeof result, emuMemcpyDeviceToHost,
                       NULL);
  (void)emuStreamSynchronize(NULL);
  for (int i = 0; i < LANES; i++)
    if (isnan(result[i])) return 1;
  printf("  no NaN in the result\n");
  return 0;
}

/* Small whole numbers, so that every sum is exact; how many of D differ. */
static int wrong_of_product(bool planted) {
  float x[768], *memory = NULL;
  int wrong = 0;
  for (int i = 0; i < 512; i++) x[i] = (float)(i * 37 % 19 - 9);
  (void)emuMalloc((void **)&memory, sizeof x);
  (void)emuMemcpyAsync(memory, x, sizeof x, emuMemcpyHostToDevice, NULL);
  emu_configure(64, 1);
  emu_mfma_plant(planted);
  MLA_LAUNCH(product, dim3(1), dim3(64), 0, NULL, memory, 0);
  (void)emuMemcpyAsync(x, memory, sizeof x, emuMemcpyDeviceToHost, NULL);
  if (emuStreamSynchronize(NULL) != emuSuccess) return -1;
  emu_mfma_plant(false);
  (void)emuFree(memory);
  for (int i = 0; i < 256; i++) {
    float sum = 0;
    for (int k = 0; k < 16; k++)
      sum += x[i / 16 * 16 + k] * x[256 + k * 16 + i % 16];
    wrong += x[512 + i] != sum;
  }
  return wrong;
}

/* A thread has no device until it sets one, and what is one device's is not
   another's: whether each slip was an error. */
static bool devices_are_kept_apart() {
  void *memory = NULL;
  emuStream_t stream = NULL;
  bool kept = emuMalloc(&memory, 4) == emuErrorInvalidContext &&
              emuStreamSynchronize(NULL) == emuErrorInvalidContext &&
              emuSetDevice(2) == emuErrorInvalidDevice &&
              emuSetDevice(1) == emuSuccess &&
              emuStreamCreate(&stream) == emuSuccess &&
              emuSetDevice(0) == emuSuccess &&
              emuStreamBeginCapture(stream, emuStreamCaptureModeThreadLocal) ==
                  emuErrorInvalidContext;
  (void)emuGetLastError();
  return kept && emuStreamDestroy(stream) == emuSuccess;
}

int main() {
  void *memory = NULL;
  int failures = 0, count = 0;
  if (!devices_are_kept_apart()) {
    printf("emu_faults: a call on no device, or on another's\n");
    failures++;
  }
  if (emuMalloc(&memory, LANES * sizeof(float)) != emuSuccess) return 2;
  for (const struct fault &f : faults)
    for (int wave = 32; wave <= 64; wave *= 2)
      for (int seed = 1; seed <= ORDERS; seed++)
        for (int faulty = 0; faulty < 2; faulty++) {
          emu_configure(wave, (uint64_t)seed);
          count++;
          if (judge(f, faulty, static_cast<float *>(memory))) continue;
          printf("emu_faults: %s, waves of %d, seed %d: %s\n", f.name, wave,
                 seed, faulty ? "not caught" : "a false report");
          failures++;
        }
  (void)emuFree(memory);
  if (wrong_of_product(false) != 0 || wrong_of_product(true) < 100) {
    printf("emu_faults: the layout of a matrix instruction's D\n");
    failures++;
  }
  printf("emu_faults: %d launches, %d judged wrongly\n", count, failures);
  return failures != 0;
}
