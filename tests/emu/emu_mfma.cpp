/*
 * emu_mfma.cpp - matrix instructions, by their definition.
 */
#include "emu_mfma.h"

#include <math.h>
#include <string.h>

#include "emu_lanes.h"
#include "emu_where.h"

static bool wrong_layout = false, flushes = false;

void emu_mfma_flushes(bool as_gfx90a) {
  flushes = as_gfx90a;
}

void emu_mfma_plant(bool wrong) {
  wrong_layout = wrong;
}

static float flushed(float v) {
  return flushes && fabsf(v) < 0x1p-126f ? 0.0f : v;
}

static float from_bf16(unsigned bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float v;
  memcpy(&v, &wide, sizeof v);
  return flushed(v);
}

static float from_f16(unsigned bits) {
  const int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
  float v = exponent == 0 ? ldexpf(flushes ? 0.0f : (float)fraction, -24)
                          : ldexpf((float)(1024 + fraction), exponent - 25);
  if (exponent == 31) v = fraction ? NAN : INFINITY;
  return bits & 0x8000 ? -v : v;
}

float emu_element(const uint32_t *registers, int j, int is_bf16) {
  const unsigned bits = registers[j / 2] >> j % 2 * 16 & 0xffff;
  return is_bf16 ? from_bf16(bits) : from_f16(bits);
}

/* What lanes give each other: their elements, as f32. */
struct operands {
  float a[4], b[4];
};

/* The row of D in register r of a lane. */
static int row_of(int size, int group, int r) {
  if (size == 16) return wrong_layout ? 4 * r + group : 4 * group + r;
  return wrong_layout ? 16 * group + r : r / 4 * 8 + 4 * group + r % 4;
}

/* size x size in size^2 / 64 registers; 64 / size groups of four k each. */
static void multiply(int size, const uint32_t give[4], float *d, int is_bf16,
                     const char *file, int line, const void *pc) {
  if (emu_wave_width() != 64)
    emu_stop("a matrix instruction in a wave of %d, %s", emu_wave_width(),
             emu_where(pc, file, line).c_str());
  operands own;
  for (int j = 0; j < 4; j++) {
    own.a[j] = emu_element(give, j, is_bf16);
    own.b[j] = emu_element(give + 2, j, is_bf16);
  }
  const emu_payload *all = emu_gather(
      &own, sizeof own, is_bf16 ? "mfma bf16" : "mfma f16", file, line, pc);
  const int lane = emu_current.lane % 64, n = lane % size;
  for (int group = 0; group < 64 / size; group++) { /* k = 4 group + j */
    operands column, row;
    memcpy(&column, all[group * size + n], sizeof column);
    for (int r = 0; r < size * size / 64; r++) {
      const int m = row_of(size, lane / size, r);
      memcpy(&row, all[group * size + m], sizeof row);
      for (int j = 0; j < 4; j++) d[r] += row.a[j] * column.b[j];
    }
  }
  for (int r = 0; r < size * size / 64; r++) d[r] = flushed(d[r]);
}

void emu_mfma_16(const uint32_t give[4], float d[4], int is_bf16,
                 const char *file, int line) {
  multiply(16, give, d, is_bf16, file, line, __builtin_return_address(0));
}

void emu_mfma_32(const uint32_t give[4], float d[16], int is_bf16,
                 const char *file, int line) {
  multiply(32, give, d, is_bf16, file, line, __builtin_return_address(0));
}

int emu_any(int x, const char *file, int line) {
  const int truth = x != 0;
  const emu_payload *all = emu_gather(&truth, sizeof truth, "any", file, line,
                                      __builtin_return_address(0));
  for (int i = 0; i < emu_lanes_of_wave(); i++) {
    int theirs;
    memcpy(&theirs, all[i], sizeof theirs);
    if (theirs) return 1;
  }
  return 0;
}
