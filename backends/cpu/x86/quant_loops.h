/*
 * quant_loops.h - the loops round the kernels of mla_quant_all_*.c: blocks of
 * a level's vectors, and by the loops of cpu_quant.h what is left, what holds
 * NaN, and scales that are out of the ordinary.
 *
 * Before it is used a file names its `vector` and all_of(x), one in every lane,
 * divisor_of(scale) and any_nan(x) of AT_ONCE numbers.
 */
#ifndef MLA_QUANT_LOOPS_H
#define MLA_QUANT_LOOPS_H

#include "cpu_quant.h"

#define INLINE static inline __attribute__((always_inline))

/* block(byte, x, divisor, most, exact) encodes AT_ONCE numbers; `most` is the
   largest one that there is a code for, `exact` that the scale is a power of
   two, `in_byte` how many codes a byte has. */
#define MLA_QUANT_BLOCKS(code, in_byte, block, exact)                   \
  for (; i <= usual; i += AT_ONCE)                                      \
    if (any_nan(x + i))                                                 \
      mla_cpu_encode_##code(byte + i / in_byte, x + i, AT_ONCE, scale); \
    else                                                                \
      block(byte + i / in_byte, x + i, d, most, exact)

#define MLA_QUANT_ENCODE(code, level, in_byte, largest, block)                 \
  void mla_encode_##code##_##level(void *to, const float *x, int64_t n,        \
                                   float scale) {                              \
    const divisor d = divisor_of(scale);                                       \
    const vector most = all_of(largest * scale);                               \
    uint8_t *byte = to;                                                        \
    int64_t i = 0, usual = mla_cpu_quant_usual(scale) ? n - AT_ONCE : -1;      \
    if (mla_f32_bits(scale) << 9 == 0)                                         \
      MLA_QUANT_BLOCKS(code, in_byte, block, 1);                               \
    else                                                                       \
      MLA_QUANT_BLOCKS(code, in_byte, block, 0);                               \
    if (i < n) mla_cpu_encode_##code(byte + i / in_byte, x + i, n - i, scale); \
  }

/* Floats of 8 bits: a kernel that knows what follows from the type. */
#define MLA_QUANT_ENCODE_FLOAT(code, level, m, bias, largest)         \
  INLINE void encode_##code(uint8_t *byte, const float *x, divisor d, \
                            vector most, int exact) {                 \
    encode_float(byte, x, d, most, exact, m, bias);                   \
  }                                                                   \
  MLA_QUANT_ENCODE(code, level, 1, largest, encode_##code)

/* By way of f16, which is 2^(15 - bias) times as much, an exact factor of the
   scale; codes that are `nan`, whatever bits are not in `of`, apart. */
#define MLA_QUANT_DECODE_FLOAT(code, level, m, of, nan, factor)            \
  void mla_decode_##code##_##level(float *to, const void *from, int64_t n, \
                                   float scale) {                          \
    const uint8_t *byte = from;                                            \
    const vector times = all_of(factor * scale);                           \
    int64_t i = 0, usual = scale <= MLA_CPU_QUANT_MOST ? n - HALVES : -1;  \
    for (; i <= usual; i += HALVES)                                        \
      if (of && any_code(byte + i, of, nan))                               \
        mla_cpu_decode_##code(to + i, byte + i, HALVES, scale);            \
      else                                                                 \
        decode_halves(to + i, half_of(byte + i, m), times);                \
    mla_cpu_decode_##code(to + i, byte + i, n - i, scale);                 \
  }

#endif
