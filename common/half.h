/*
 * half.h - 16-bit and 8-bit floats to and from f32, inline, for backends.
 *
 * Exact to the bit, subnormals, infinities and NaN included, whatever the
 * processor's flush-to-zero mode. Narrowing rounds once, to nearest even, and
 * writes NaN as the code of docs/spec.md section 1. No branches: loops over
 * these vectorise.
 */
#ifndef MLA_HALF_H
#define MLA_HALF_H

#include "float_bits.h"

/* yes where the condition holds, no elsewhere; compilers turn this into the
   blend that they will not make of a branch around float arithmetic. */
static inline uint32_t mla_choose(int condition, uint32_t yes, uint32_t no) {
  uint32_t mask = 0u - (uint32_t)(condition != 0);
  return (yes & mask) | (no & ~mask);
}

/* value / 2^shift to the nearest integer, ties to even. */
static inline uint32_t mla_shift_even(uint32_t value, int shift) {
  uint32_t below_half = (1u << (shift - 1)) - 1;
  return (value + below_half + ((value >> shift) & 1)) >> shift;
}

static inline float mla_bf16_to_f32(uint16_t code) {
  return mla_f32_of_bits((uint32_t)code << 16);
}

static inline uint16_t mla_f32_to_bf16(float x) {
  uint32_t bits = mla_f32_bits(x);
  int is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  return (uint16_t)mla_choose(is_nan, 0x7FC0u, mla_shift_even(bits, 16));
}

static inline float mla_f16_to_f32(uint16_t code) {
  uint32_t sign = (uint32_t)(code & 0x8000u) << 16;
  uint32_t magnitude = (uint32_t)(code & 0x7FFFu) << 13;
  /* The exponent bias grows from 15 to 127; infinity and NaN go to the top. */
  uint32_t bias = mla_choose(magnitude >= 0x0F800000u, 224u << 23, 112u << 23);
  float subnormal = (float)(int32_t)(code & 0x3FFu) * 0x1p-24f;
  uint32_t bits = mla_choose(magnitude < 0x00800000u, mla_f32_bits(subnormal),
                             magnitude + bias);
  return mla_f32_of_bits(sign | bits);
}

static inline uint16_t mla_f32_to_f16(float x) {
  uint32_t bits = mla_f32_bits(x);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7FFFFFFFu;
  /* Next to 1/2 a unit is 2^-24, that of f16's subnormals: the addition
     rounds to it. */
  float aligned = mla_f32_of_bits(magnitude) + 0.5f;
  uint32_t subnormal = mla_f32_bits(aligned) - 0x3F000000u;
  uint32_t normal = mla_shift_even(magnitude - (112u << 23), 13);
  uint32_t code = mla_choose(magnitude < 0x38800000u, subnormal, normal);
  code = mla_choose(magnitude >= 0x477FF000u, 0x7C00u, code); /* 65520 */
  code = mla_choose(magnitude > 0x7F800000u, 0x7E00u, sign | code);
  return (uint16_t)code;
}

/* e4m3fn: max 448, NaN 0x7f and 0xff. */
static inline float mla_e4m3_to_f32(uint8_t code) {
  uint32_t sign = (uint32_t)(code & 0x80u) << 24;
  uint32_t magnitude = code & 0x7Fu;
  float subnormal = (float)(int32_t)magnitude * 0x1p-9f;
  uint32_t bits = mla_choose(magnitude < 8, mla_f32_bits(subnormal),
                             (magnitude << 20) + (120u << 23));
  bits = mla_choose(magnitude == 0x7F, 0x7FC00000u, bits);
  return mla_f32_of_bits(sign | bits);
}

/* The 8-bit code of a type with so many bits of mantissa, this bias and this
   largest code, to which infinities saturate; NaN apart. */
static inline uint32_t mla_f32_to_fp8(float x, int mantissa, int bias,
                                      uint32_t largest) {
  uint32_t magnitude = mla_f32_bits(x) & 0x7FFFFFFFu;
  /* Next to this a unit is that of the type's subnormals. */
  uint32_t magic = (uint32_t)(151 - bias - mantissa) << 23;
  float aligned = mla_f32_of_bits(magnitude) + mla_f32_of_bits(magic);
  uint32_t least = (uint32_t)(128 - bias) << 23; /* the smallest normal one */
  uint32_t normal = mla_shift_even(magnitude - least, 23 - mantissa);
  uint32_t code = mla_choose(magnitude < least, mla_f32_bits(aligned) - magic,
                             normal + (1u << mantissa));
  return mla_choose(code > largest, largest, code);
}

static inline uint32_t mla_sign_of_fp8(float x) {
  return (mla_f32_bits(x) >> 24) & 0x80u;
}

static inline int mla_f32_is_nan(float x) {
  return (mla_f32_bits(x) & 0x7FFFFFFFu) > 0x7F800000u;
}

/* Saturates to 448, infinities too. */
static inline uint8_t mla_f32_to_e4m3(float x) {
  uint32_t code = mla_sign_of_fp8(x) | mla_f32_to_fp8(x, 3, 7, 0x7E);
  return (uint8_t)mla_choose(mla_f32_is_nan(x), 0x7Fu, code);
}

/* e4m3fnuz: max 240, NaN 0x80, which is why zero has no sign. */
static inline float mla_e4m3fnuz_to_f32(uint8_t code) {
  uint32_t sign = (uint32_t)(code & 0x80u) << 24;
  uint32_t magnitude = code & 0x7Fu;
  float subnormal = (float)(int32_t)magnitude * 0x1p-10f;
  uint32_t bits = mla_choose(magnitude < 8, mla_f32_bits(subnormal),
                             (magnitude << 20) + (119u << 23));
  bits = mla_choose(code == 0x80u, 0x7FC00000u, sign | bits);
  return mla_f32_of_bits(bits);
}

static inline uint8_t mla_f32_to_e4m3fnuz(float x) {
  uint32_t size = mla_f32_to_fp8(x, 3, 8, 0x7F);
  uint32_t code = mla_choose(size == 0, 0, mla_sign_of_fp8(x) | size);
  return (uint8_t)mla_choose(mla_f32_is_nan(x), 0x80u, code);
}

/* e5m2: the upper half of an f16; max 57344, infinities are only read. */
static inline float mla_e5m2_to_f32(uint8_t code) {
  return mla_f16_to_f32((uint16_t)(code << 8));
}

static inline uint8_t mla_f32_to_e5m2(float x) {
  uint32_t code = mla_sign_of_fp8(x) | mla_f32_to_fp8(x, 2, 15, 0x7B);
  return (uint8_t)mla_choose(mla_f32_is_nan(x), 0x7Eu, code);
}

#endif
