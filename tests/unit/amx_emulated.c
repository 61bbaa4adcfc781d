#include "amx_emulated.h"

#include <stdlib.h>
#include <string.h>

#include "cpu_isa.h"
#include "float_bits.h"

typedef struct unit {
  int configured;
  unsigned char tile[8][16][64];
} unit;

static _Thread_local unit state;

static void fault_unless(int ok) {
  if (!ok) abort();
}

void amx_loadconfig(const void *config) {
  const unsigned char *byte = config;
  uint16_t width[8];
  memcpy(width, byte + 16, sizeof width);
  fault_unless(byte[0] == 1 && byte[1] == 0);
  for (int i = 2; i < 16; i++) fault_unless(byte[i] == 0);
  for (int i = 0; i < 8; i++)
    fault_unless(width[i] == 64 && byte[48 + i] == 16);
  for (int i = 0; i < 8; i++) fault_unless(byte[56 + i] == 0);
  memset(&state, 0, sizeof state);
  state.configured = 1;
}

void amx_release(void) {
  state.configured = 0;
}

void amx_zero(int tile) {
  fault_unless(state.configured);
  memset(state.tile[tile], 0, sizeof state.tile[tile]);
}

void amx_loadd(int tile, const void *from, int64_t stride) {
  fault_unless(state.configured);
  for (int i = 0; i < 16; i++)
    memcpy(state.tile[tile][i], (const char *)from + i * stride, 64);
}

void amx_stored(int tile, void *to, int64_t stride) {
  fault_unless(state.configured);
  for (int i = 0; i < 16; i++)
    memcpy((char *)to + i * stride, state.tile[tile][i], 64);
}

static float flushed(float x) {
  return x > -0x1p-126f && x < 0x1p-126f ? 0.0f * x : x;
}

typedef float numbers[16][32];

static void widen(int tile, numbers to) {
  for (int i = 0; i < 16; i++)
    for (int k = 0; k < 32; k++) {
      uint16_t code;
      memcpy(&code, state.tile[tile][i] + 2 * k, 2);
      to[i][k] = flushed(mla_f32_of_bits((uint32_t)code << 16));
    }
}

/* Products of bf16 are exact in f32: rounded apart or fused is the same. */
static float one_sum(numbers a, numbers b, int m, int n) {
  float even = 0.0f, odd = 0.0f;
  for (int k = 0; k < 32; k += 2) {
    even = flushed(even + a[m][k] * b[k / 2][2 * n]);
    odd = flushed(odd + a[m][k + 1] * b[k / 2][2 * n + 1]);
  }
  return flushed(even + odd);
}

void amx_dpbf16ps(int sum, int a, int b) {
  numbers x, y;
  float c[16];
  fault_unless(state.configured);
  widen(a, x);
  widen(b, y);
  for (int m = 0; m < 16; m++) {
    memcpy(c, state.tile[sum][m], 64);
    for (int n = 0; n < 16; n++)
      c[n] = flushed(flushed(c[n]) + one_sum(x, y, m, n));
    memcpy(state.tile[sum][m], c, 64);
  }
}

/* The linker sends the question which levels run here to this one: those that
   do, and the emulated one. */
uint32_t __real_mla_cpu_isa_detect(void);
uint32_t __wrap_mla_cpu_isa_detect(void);

uint32_t __wrap_mla_cpu_isa_detect(void) {
  return __real_mla_cpu_isa_detect() | MLA_CPU_BIT(MLA_CPU_AMX);
}
