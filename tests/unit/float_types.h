/*
 * float_types.h - the narrow float types as tests know them: written down
 * anew from docs/spec.md section 1, not taken from the code under test.
 */
#ifndef MLA_FLOAT_TYPES_H
#define MLA_FLOAT_TYPES_H

#include <math.h>
#include <stdint.h>

#include "mla/mla.h"

typedef struct narrow_type {
  const char *name;
  int32_t dtype;
  int exponent_bits, mantissa_bits, bias;
  double max;           /* the largest finite value */
  uint32_t max_code;    /* its code */
  uint32_t beyond;      /* what larger values become, without sign */
  uint32_t infinity;    /* 0: none */
  uint32_t first_nan;   /* this and all above, without sign */
  uint32_t written_nan; /* the whole code */
  int one_zero;         /* the code of negative zero is NaN */
} narrow_type;

#define NARROW_TYPES 6
static const narrow_type narrow_types[NARROW_TYPES] = {
    {"f32", MLA_F32, 8, 23, 127, 0x1.fffffep127, 0x7F7FFFFF, 0x7F800000,
     0x7F800000, 0x7F800001, 0x7FC00000, 0},
    {"f16", MLA_F16, 5, 10, 15, 65504, 0x7BFF, 0x7C00, 0x7C00, 0x7C01, 0x7E00,
     0},
    {"bf16", MLA_BF16, 8, 7, 127, 0x1.FEp127, 0x7F7F, 0x7F80, 0x7F80, 0x7F81,
     0x7FC0, 0},
    {"e4m3", MLA_FP8_E4M3, 4, 3, 7, 448, 0x7E, 0x7E, 0, 0x7F, 0x7F, 0},
    {"e4m3fnuz", MLA_FP8_E4M3FNUZ, 4, 3, 8, 240, 0x7F, 0x7F, 0, 0x80, 0x80, 1},
    {"e5m2", MLA_FP8_E5M2, 5, 2, 15, 57344, 0x7B, 0x7B, 0x7C, 0x7D, 0x7E, 0},
};

static inline uint32_t narrow_sign(const narrow_type *type) {
  return (uint32_t)1 << (type->exponent_bits + type->mantissa_bits);
}

/* What a code means, by the definition of a binary float. */
static inline double narrow_value(const narrow_type *type, uint32_t code) {
  uint32_t sign = code & narrow_sign(type);
  uint32_t rest = code & (narrow_sign(type) - 1);
  double size;
  if (rest >= type->first_nan || (type->one_zero && sign && !rest)) return NAN;
  if (type->infinity && rest == type->infinity)
    return sign ? -INFINITY : INFINITY;
  int exponent = (int)(rest >> type->mantissa_bits);
  double fraction = rest & (((uint32_t)1 << type->mantissa_bits) - 1);
  fraction = ldexp(fraction, -type->mantissa_bits);
  if (exponent == 0) {
    size = ldexp(fraction, 1 - type->bias);
  } else {
    size = ldexp(1 + fraction, exponent - type->bias);
  }
  return sign ? -size : size;
}

#endif
