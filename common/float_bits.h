/*
 * float_bits.h - the bits of a float as an integer, and back.
 */
#ifndef MLA_FLOAT_BITS_H
#define MLA_FLOAT_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint64_t mla_f64_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline double mla_f64_of_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint32_t mla_f32_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float mla_f32_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

#endif
