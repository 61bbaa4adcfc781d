/*
 * cpu_quant.h - codes with a scale to and from f32, without a branch, so that
 * compilers vectorise the loops: the bodies of the portable kernels, and the
 * tails of others.
 */
#ifndef MLA_CPU_QUANT_H
#define MLA_CPU_QUANT_H

#include "cpu_kernels.h"
#include "half.h"

#define MLA_CPU_QUANT_STEP 64 /* codes on their way, at least */

static inline int64_t mla_cpu_quant_some(int64_t n) {
  return n < MLA_CPU_QUANT_STEP ? n : MLA_CPU_QUANT_STEP;
}

/* Number i on. */
static inline const void *mla_cpu_number(const void *x, int type, int64_t i) {
  return (const char *)x + i * (type == MLA_CPU_F32 ? 4 : 2);
}

/* At most STEP numbers as f32: in the line, unless they are. */
static inline const float *mla_cpu_quant_line(const void *x, int type,
                                              int64_t n, float *line) {
  const uint16_t *code = x;
  if (type == MLA_CPU_F32) return x;
  if (type == MLA_CPU_BF16)
    for (int64_t i = 0; i < n; i++) line[i] = mla_bf16_to_f32(code[i]);
  else
    for (int64_t i = 0; i < n; i++) line[i] = mla_f16_to_f32(code[i]);
  return line;
}

static inline float mla_cpu_amax(const void *x, int type, int64_t n) {
  uint32_t top = 0;
  float line[MLA_CPU_QUANT_STEP];
  for (int64_t i = 0; i < n; i += MLA_CPU_QUANT_STEP) {
    int64_t here = mla_cpu_quant_some(n - i);
    const float *at =
        mla_cpu_quant_line(mla_cpu_number(x, type, i), type, here, line);
    for (int64_t k = 0; k < here; k++) {
      uint32_t size = mla_f32_bits(at[k]) & 0x7FFFFFFFu;
      size = mla_choose(size > 0x7F800000u, 0, size);
      top = size > top ? size : top;
    }
  }
  return mla_f32_of_bits(top);
}

/* To the nearest integer of -top to top, ties to even; NaN: 0. */
static inline int32_t mla_cpu_integer(float x, float top) {
  const float magic = 0x1p23f; /* no room for a fraction */
  uint32_t bits = mla_f32_bits(x), size = bits & 0x7FFFFFFFu;
  uint32_t most = mla_f32_bits(top);
  size = mla_choose(size > 0x7F800000u, 0, size);
  size = mla_choose(size > most, most, size);
  uint32_t code = mla_f32_bits(mla_f32_of_bits(size) + magic) & 0xFFu;
  int32_t minus = -(int32_t)(bits >> 31);
  return ((int32_t)code ^ minus) - minus;
}

static inline uint8_t mla_cpu_i8(float x) {
  return (uint8_t)mla_cpu_integer(x, 127.0f);
}

static inline float mla_cpu_of_i8(uint8_t code) {
  return (float)((code ^ 0x80) - 0x80);
}

/* mla_cpu_encode_CODE and mla_cpu_decode_CODE, of a byte each. */
#define MLA_CPU_QUANT(code, encode, decode)                                   \
  static inline void mla_cpu_encode_##code(void *to, const void *x, int type, \
                                           int64_t n, float scale) {          \
    uint8_t *byte = to;                                                       \
    float line[MLA_CPU_QUANT_STEP];                                           \
    for (int64_t i = 0; i < n; i += MLA_CPU_QUANT_STEP) {                     \
      int64_t here = mla_cpu_quant_some(n - i);                               \
      const float *at =                                                       \
          mla_cpu_quant_line(mla_cpu_number(x, type, i), type, here, line);   \
      for (int64_t k = 0; k < here; k++) byte[i + k] = encode(at[k] / scale); \
    }                                                                         \
  }                                                                           \
  static inline void mla_cpu_decode_##code(float *to, const void *from,       \
                                           int64_t n, float scale) {          \
    const uint8_t *byte = from;                                               \
    for (int64_t i = 0; i < n; i++) to[i] = decode(byte[i]) * scale;          \
  }
MLA_CPU_QUANT(e4m3, mla_f32_to_e4m3, mla_e4m3_to_f32)
MLA_CPU_QUANT(e4m3fnuz, mla_f32_to_e4m3fnuz, mla_e4m3fnuz_to_f32)
MLA_CPU_QUANT(e5m2, mla_f32_to_e5m2, mla_e5m2_to_f32)
MLA_CPU_QUANT(i8, mla_cpu_i8, mla_cpu_of_i8)

/* The first of two in the low half of a byte. */
static inline void mla_cpu_encode_i4(void *to, const void *x, int type,
                                     int64_t n, float scale) {
  uint8_t *byte = to, code[MLA_CPU_QUANT_STEP];
  float line[MLA_CPU_QUANT_STEP];
  for (int64_t i = 0; i < n; i += MLA_CPU_QUANT_STEP) {
    int64_t here = mla_cpu_quant_some(n - i);
    const float *at =
        mla_cpu_quant_line(mla_cpu_number(x, type, i), type, here, line);
    for (int64_t k = 0; k < here; k++)
      code[k] = (uint8_t)mla_cpu_integer(at[k] / scale, 7.0f);
    if (here % 2) code[here] = 0;
    for (int64_t k = 0; k < (here + 1) / 2; k++)
      byte[i / 2 + k] = (uint8_t)((code[2 * k] & 0xF) | code[2 * k + 1] << 4);
  }
}

static inline void mla_cpu_decode_i4(float *to, const void *from, int64_t n,
                                     float scale) {
  const uint8_t *byte = from;
  int8_t code[MLA_CPU_QUANT_STEP];
  for (int64_t i = 0; i < n; i += MLA_CPU_QUANT_STEP) {
    int64_t here = mla_cpu_quant_some(n - i);
    for (int64_t k = 0; k < (here + 1) / 2; k++) {
      code[2 * k] = (int8_t)(((byte[i / 2 + k] & 0xF) ^ 8) - 8);
      code[2 * k + 1] = (int8_t)((byte[i / 2 + k] >> 4 ^ 8) - 8);
    }
    for (int64_t k = 0; k < here; k++) to[i + k] = (float)code[k] * scale;
  }
}

/*
 * Dividing by a scale of these without dividing: with high the reciprocal to
 * nearest and low what it lacks, x * high + x * low is within one unit of the
 * quotient's last place, and one step with the exact remainder then rounds as
 * division does (Markstein 1990). What is so small that the remainder, or x *
 * low, is not exact gives the code of zero either way.
 */
#define MLA_CPU_QUANT_LEAST 0x1p-60f
#define MLA_CPU_QUANT_MOST 0x1p60f

static inline int mla_cpu_quant_usual(float scale) {
  return scale >= MLA_CPU_QUANT_LEAST && scale <= MLA_CPU_QUANT_MOST;
}

#endif
