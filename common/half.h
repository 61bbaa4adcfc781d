/*
 * half.h - 16-bit and 8-bit floats to and from f32, inline, for backends.
 *
 * Exact to the bit, subnormals, infinities and NaN included, whatever the
 * processor's flush-to-zero mode: all by integer arithmetic. Narrowing rounds
 * once, to nearest even, and writes NaN as the code of docs/spec.md section
 * 1. Branches are few, so that loops over these vectorise.
 */
#ifndef MLA_HALF_H
#define MLA_HALF_H

#include "float_bits.h"

static inline float mla_bf16_to_f32(uint16_t code) {
  return mla_f32_of_bits((uint32_t)code << 16);
}

static inline uint16_t mla_f32_to_bf16(float x) {
  uint32_t bits = mla_f32_bits(x);
  uint32_t even = (bits >> 16) & 1;
  uint32_t rounded = (bits + 0x7FFFu + even) >> 16;
  int is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  return (uint16_t)(is_nan ? 0x7FC0u : rounded);
}

static inline float mla_f16_to_f32(uint16_t code) {
  uint32_t sign = (uint32_t)(code & 0x8000u) << 16;
  uint32_t magnitude = (uint32_t)(code & 0x7FFFu) << 13;
  /* The exponent bias grows from 15 to 127; infinity and NaN go to the top. */
  uint32_t bias = magnitude >= 0x0F800000u ? 224u << 23 : 112u << 23;
  float subnormal = (float)(int32_t)(code & 0x3FFu) * 0x1p-24f;
  uint32_t bits =
      magnitude < 0x00800000u ? mla_f32_bits(subnormal) : magnitude + bias;
  return mla_f32_of_bits(sign | bits);
}

static inline uint16_t mla_f32_to_f16(float x) {
  uint32_t bits = mla_f32_bits(x);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7FFFFFFFu;
  uint32_t code;
  if (magnitude > 0x7F800000u) return 0x7E00u;
  if (magnitude >= 0x477FF000u) { /* 65520 and more */
    code = 0x7C00u;
  } else if (magnitude >= 0x38800000u) { /* normal: 2^-14 and more */
    code = (magnitude - (112u << 23) + 0xFFFu + ((magnitude >> 13) & 1)) >> 13;
  } else if (magnitude >= 0x33000000u) { /* 2^-25 and more */
    uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    uint32_t shift = 126 - (magnitude >> 23);
    uint32_t half = 1u << (shift - 1);
    code = (mantissa + half - 1 + ((mantissa >> shift) & 1)) >> shift;
  } else {
    code = 0;
  }
  return (uint16_t)(sign | code);
}

/* e4m3fn: max 448, NaN 0x7f and 0xff. */
static inline float mla_e4m3_to_f32(uint8_t code) {
  uint32_t sign = (uint32_t)(code & 0x80u) << 24;
  uint32_t magnitude = code & 0x7Fu;
  float subnormal = (float)(int32_t)magnitude * 0x1p-9f;
  uint32_t bits = (magnitude << 20) + (120u << 23);
  if (magnitude < 8) bits = mla_f32_bits(subnormal);
  if (magnitude == 0x7F) bits = 0x7FC00000u;
  return mla_f32_of_bits(sign | bits);
}

/* Saturates to 448, infinities too. */
static inline uint8_t mla_f32_to_e4m3(float x) {
  uint32_t bits = mla_f32_bits(x);
  uint32_t sign = (bits >> 24) & 0x80u;
  uint32_t magnitude = bits & 0x7FFFFFFFu;
  uint32_t code;
  if (magnitude > 0x7F800000u) return 0x7Fu;
  if (magnitude >= 0x43E00000u) { /* 448 and more */
    code = 0x7Eu;
  } else if (magnitude >= 0x3C800000u) { /* normal: 2^-6 and more */
    code =
        (magnitude - (120u << 23) + 0x7FFFFu + ((magnitude >> 20) & 1)) >> 20;
  } else if (magnitude >= 0x3A800000u) { /* 2^-10 and more */
    uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    uint32_t shift = 141 - (magnitude >> 23);
    uint32_t half = 1u << (shift - 1);
    code = (mantissa + half - 1 + ((mantissa >> shift) & 1)) >> shift;
  } else {
    code = 0;
  }
  return (uint8_t)(sign | code);
}

#endif
