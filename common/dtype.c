/*
 * dtype.c - every number type to and from binary64, by integer arithmetic.
 *
 * One description of a float type serves decoding and encoding; no
 * conversion instruction of the processor takes part, so rounding modes,
 * flush-to-zero and excess precision cannot reach the result.
 */
#include "dtype.h"

#include "float_bits.h"

#define F64_NAN UINT64_C(0x7FF8000000000000)
#define F64_INF UINT64_C(0x7FF0000000000000)
#define F64_SIGN UINT64_C(0x8000000000000000)
#define F64_HIDDEN UINT64_C(0x0010000000000000)

/* A float type narrower than binary64. Codes are without the sign bit. */
typedef struct float_type {
  int width;         /* bits of a code */
  int mantissa;      /* stored bits of it */
  int bias;          /* of the exponent */
  uint32_t largest;  /* the largest finite code */
  uint32_t overflow; /* what finite values beyond it, and infinities, become */
  uint32_t infinity; /* its code; 0: the type has none */
  uint32_t nan;      /* the code written, sign bit included */
  int nuz;           /* NaN is the code of negative zero, there is no other */
} float_type;

static const float_type f32_type = {
    32, 23, 127, 0x7F7FFFFF, 0x7F800000, 0x7F800000, 0x7FC00000, 0};
static const float_type f16_type = {16,     10,     15,     0x7BFF,
                                    0x7C00, 0x7C00, 0x7E00, 0};
static const float_type bf16_type = {16,     7,      127,    0x7F7F,
                                     0x7F80, 0x7F80, 0x7FC0, 0};
static const float_type e4m3_type = {8, 3, 7, 0x7E, 0x7E, 0, 0x7F, 0};
static const float_type e4m3fnuz_type = {8, 3, 8, 0x7F, 0x7F, 0, 0x80, 1};
static const float_type e5m2_type = {8, 2, 15, 0x7B, 0x7B, 0x7C, 0x7E, 0};

static const float_type *float_type_of(int32_t dtype) {
  switch (dtype) {
    case MLA_F32: return &f32_type;
    case MLA_F16: return &f16_type;
    case MLA_BF16: return &bf16_type;
    case MLA_FP8_E4M3: return &e4m3_type;
    case MLA_FP8_E4M3FNUZ: return &e4m3fnuz_type;
    case MLA_FP8_E5M2: return &e5m2_type;
    default: return NULL;
  }
}

/* 2^e for a normal result. */
static double power_of_two(int e) {
  return mla_f64_of_bits((uint64_t)(e + 1023) << 52);
}

static inline double decode_float(const float_type *type, uint32_t code) {
  uint32_t sign_bit = (uint32_t)1 << (type->width - 1);
  uint64_t sign = code & sign_bit ? F64_SIGN : 0;
  uint32_t magnitude = code & (sign_bit - 1);
  if (type->nuz && code == sign_bit) return mla_f64_of_bits(F64_NAN);
  if (magnitude > type->largest) {
    int infinite = magnitude == type->infinity;
    return mla_f64_of_bits(infinite ? sign | F64_INF : F64_NAN);
  }
  uint32_t exponent = magnitude >> type->mantissa;
  uint64_t bits;
  if (exponent == 0) {
    double quantum = power_of_two(1 - type->bias - type->mantissa);
    bits = mla_f64_bits((double)(int32_t)magnitude * quantum);
  } else {
    bits = ((uint64_t)magnitude << (52 - type->mantissa)) +
           ((uint64_t)(1023 - type->bias) << 52);
  }
  return mla_f64_of_bits(sign | bits);
}

/* mantissa / 2^shift to the nearest integer, ties to even; shift >= 1. */
static inline uint64_t shift_to_nearest(uint64_t mantissa, int shift) {
  if (shift > 53) return 0; /* below a half */
  uint64_t quotient = mantissa >> shift;
  uint64_t rest = mantissa & (((uint64_t)1 << shift) - 1);
  uint64_t half = (uint64_t)1 << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1)));
}

static inline uint32_t encode_float(const float_type *type, double value) {
  uint64_t bits = mla_f64_bits(value);
  uint64_t magnitude = bits & ~F64_SIGN;
  uint32_t sign = (uint32_t)(bits >> 63) << (type->width - 1);
  if (magnitude > F64_INF) return type->nan;
  if (magnitude == F64_INF) return sign | type->overflow;
  /* Binary64's own subnormals are below half of any narrow type's smallest,
     so the hidden bit they lack does not matter. */
  int exponent = (int)(magnitude >> 52) - 1023;
  uint64_t mantissa = (magnitude & (F64_HIDDEN - 1)) | F64_HIDDEN;
  int lowest = 1 - type->bias;
  int quantum = exponent > lowest ? exponent : lowest;
  /* The hidden bit of a normal result adds the one that is subtracted from
     its exponent field; a carry out of the mantissa moves the exponent. */
  uint64_t code =
      shift_to_nearest(mantissa, 52 - type->mantissa + (quantum - exponent));
  code += (uint64_t)(quantum - lowest) << type->mantissa;
  if (code > type->largest) return sign | type->overflow;
  if (type->nuz && code == 0) return 0;
  return sign | (uint32_t)code;
}

static double decode_e8m0(uint32_t code) {
  if (code == 0xFF) return mla_f64_of_bits(F64_NAN);
  return power_of_two((int)code - 127);
}

/* A scale: what is below the smallest becomes the smallest, zero included;
   a negative one is NaN. */
static uint32_t encode_e8m0(double value) {
  uint64_t bits = mla_f64_bits(value);
  if (bits == F64_SIGN) return 0;
  if (bits > F64_INF) return 0xFF; /* NaN, or negative */
  int code = (int)(bits >> 52) - 1023 + 127;
  uint64_t rest = bits & (F64_HIDDEN - 1);
  uint64_t half = F64_HIDDEN >> 1;
  if (code < 0) return 0;
  code += rest > half || (rest == half && (code & 1));
  return code > 0xFE ? 0xFE : (uint32_t)code;
}

/* The integer nearest to value (ties to even) within [low, high]; NaN: 0. */
static int64_t nearest_integer(double value, int64_t low, int64_t high) {
  uint64_t magnitude = mla_f64_bits(value) & ~F64_SIGN;
  int negative = (int)(mla_f64_bits(value) >> 63);
  if (magnitude > F64_INF) return 0;
  int exponent = (int)(magnitude >> 52) - 1023;
  if (exponent >= 63) return negative ? low : high;
  uint64_t mantissa = (magnitude & (F64_HIDDEN - 1)) | F64_HIDDEN;
  uint64_t integer = exponent >= 52 ? mantissa << (exponent - 52)
                                    : shift_to_nearest(mantissa, 52 - exponent);
  int64_t result = negative ? -(int64_t)integer : (int64_t)integer;
  if (result < low) return low;
  return result > high ? high : result;
}

/* Writers never use the lowest code of int8 and int4. */
static int64_t integer_of(int32_t dtype, double value) {
  switch (dtype) {
    case MLA_I8: return nearest_integer(value, -127, 127);
    case MLA_I4: return nearest_integer(value, -7, 7);
    case MLA_U8: return nearest_integer(value, 0, UINT8_MAX);
    case MLA_I32: return nearest_integer(value, INT32_MIN, INT32_MAX);
    case MLA_I64: return nearest_integer(value, INT64_MIN, INT64_MAX);
    default: return 0;
  }
}

/* Two's complement of `width` bits, without relying on how casts wrap. */
static int64_t sign_extend(uint32_t code, int width) {
  int64_t sign = (int64_t)1 << (width - 1);
  int64_t value = (int64_t)(code & (uint32_t)(2 * sign - 1));
  return value >= sign ? value - 2 * sign : value;
}

double mla_decode(int32_t dtype, uint32_t code) {
  const float_type *type = float_type_of(dtype);
  if (type) return decode_float(type, code);
  switch (dtype) {
    case MLA_E8M0: return decode_e8m0(code & 0xFF);
    case MLA_I8: return (double)sign_extend(code, 8);
    case MLA_I4: return (double)sign_extend(code, 4);
    case MLA_I32: return (double)sign_extend(code, 32);
    case MLA_U8: return (double)(code & 0xFF);
    default: return mla_f64_of_bits(F64_NAN);
  }
}

uint32_t mla_encode(int32_t dtype, double value) {
  const float_type *type = float_type_of(dtype);
  if (type) return encode_float(type, value);
  switch (dtype) {
    case MLA_E8M0: return encode_e8m0(value);
    case MLA_I4: return (uint32_t)integer_of(dtype, value) & 0xF;
    case MLA_I8:
    case MLA_U8: return (uint32_t)integer_of(dtype, value) & 0xFF;
    case MLA_I32: return (uint32_t)integer_of(dtype, value);
    default: return 0;
  }
}

static inline uint8_t load8(const void *data, int64_t index) {
  return ((const uint8_t *)data)[index];
}

static inline uint16_t load16(const void *data, int64_t index) {
  uint16_t code;
  memcpy(&code, (const char *)data + index * 2, sizeof code);
  return code;
}

static inline uint32_t load32(const void *data, int64_t index) {
  uint32_t code;
  memcpy(&code, (const char *)data + index * 4, sizeof code);
  return code;
}

static inline uint64_t load64(const void *data, int64_t index) {
  uint64_t code;
  memcpy(&code, (const char *)data + index * 8, sizeof code);
  return code;
}

static inline uint32_t load4(const void *data, int64_t index) {
  return (uint32_t)load8(data, index >> 1) >> (index & 1 ? 4 : 0) & 0xF;
}

static void store4(void *data, int64_t index, uint32_t code) {
  uint8_t *byte = (uint8_t *)data + (index >> 1);
  int high = (int)(index & 1);
  uint32_t kept = *byte & (high ? 0x0Fu : 0xF0u);
  *byte = (uint8_t)(kept | (code & 0xF) << (high ? 4 : 0));
}

/* A code of `bits` bits at element `index`. */
static inline void store(void *data, int bits, int64_t index, uint64_t code) {
  uint16_t code16 = (uint16_t)code;
  uint32_t code32 = (uint32_t)code;
  switch (bits) {
    case 4: store4(data, index, code32); break;
    case 8: ((uint8_t *)data)[index] = (uint8_t)code; break;
    case 16: memcpy((char *)data + index * 2, &code16, 2); break;
    case 32: memcpy((char *)data + index * 4, &code32, 4); break;
    case 64: memcpy((char *)data + index * 8, &code, 8); break;
    default: break;
  }
}

/* The frequent types first and apart: each gets a decoder of its own. */
double mla_get(const void *data, int32_t dtype, int64_t index) {
  switch (dtype) {
    case MLA_F64: return mla_f64_of_bits(load64(data, index));
    case MLA_F32: return decode_float(&f32_type, load32(data, index));
    case MLA_F16: return decode_float(&f16_type, load16(data, index));
    case MLA_BF16: return decode_float(&bf16_type, load16(data, index));
    case MLA_I4: return mla_decode(dtype, load4(data, index));
    case MLA_I32: return mla_decode(dtype, load32(data, index));
    case MLA_I64: return (double)mla_get_int(data, dtype, index);
    default: return mla_decode(dtype, load8(data, index));
  }
}

static uint64_t canonical_f64(double value) {
  uint64_t bits = mla_f64_bits(value);
  return (bits & ~F64_SIGN) > F64_INF ? F64_NAN : bits;
}

void mla_put(void *data, int32_t dtype, int64_t index, double value) {
  switch (dtype) {
    case MLA_F64: store(data, 64, index, canonical_f64(value)); break;
    case MLA_F32: store(data, 32, index, encode_float(&f32_type, value)); break;
    case MLA_F16: store(data, 16, index, encode_float(&f16_type, value)); break;
    case MLA_BF16:
      store(data, 16, index, encode_float(&bf16_type, value));
      break;
    case MLA_I64:
      mla_put_int(data, dtype, index, integer_of(dtype, value));
      break;
    default:
      store(data, mla_dtype_bits(dtype), index, mla_encode(dtype, value));
  }
}

/* Reinterprets without relying on implementation-defined casts. */
static int64_t signed_of(uint64_t bits) {
  int64_t value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

int64_t mla_get_int(const void *data, int32_t dtype, int64_t index) {
  switch (dtype) {
    case MLA_I64: return signed_of(load64(data, index));
    case MLA_I32: return sign_extend(load32(data, index), 32);
    case MLA_I8: return sign_extend(load8(data, index), 8);
    case MLA_I4: return sign_extend(load4(data, index), 4);
    default: return load8(data, index);
  }
}

void mla_put_int(void *data, int32_t dtype, int64_t index, int64_t value) {
  store(data, mla_dtype_bits(dtype), index, (uint64_t)value);
}

double mla_round_to(int32_t dtype, double value) {
  switch (dtype) {
    case MLA_F64: return value;
    case MLA_F32:
      return decode_float(&f32_type, encode_float(&f32_type, value));
    case MLA_F16:
      return decode_float(&f16_type, encode_float(&f16_type, value));
    case MLA_BF16:
      return decode_float(&bf16_type, encode_float(&bf16_type, value));
    case MLA_I64: return (double)integer_of(dtype, value);
    default: return mla_decode(dtype, mla_encode(dtype, value));
  }
}

double mla_unit_roundoff(int32_t dtype) {
  const float_type *type = float_type_of(dtype);
  if (type) return power_of_two(-1 - type->mantissa);
  return dtype == MLA_F64 ? 0x1p-53 : 0;
}

double mla_half_subnormal(int32_t dtype) {
  const float_type *type = float_type_of(dtype);
  /* Half of binary64's own, 2^-1075, is no binary64 number: 0. */
  return type ? power_of_two(-type->bias - type->mantissa) : 0;
}

int32_t mla_format_dtype(int32_t cache_format) {
  switch (cache_format) {
    case MLA_CACHE_F64: return MLA_F64;
    case MLA_CACHE_F32: return MLA_F32;
    case MLA_CACHE_F16: return MLA_F16;
    case MLA_CACHE_BF16: return MLA_BF16;
    case MLA_CACHE_FP8_E4M3: return MLA_FP8_E4M3;
    case MLA_CACHE_FP8_E4M3FNUZ: return MLA_FP8_E4M3FNUZ;
    case MLA_CACHE_FP8_E5M2: return MLA_FP8_E5M2;
    default: return MLA_DTYPE_NONE;
  }
}
