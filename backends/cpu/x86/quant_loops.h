/*
 * quant_loops.h - the loops round the kernels of mla_quant_all_*.c: blocks of
 * a level's vectors, and by the loops of cpu_quant.h what is left, what holds
 * NaN, and scales that are out of the ordinary.
 *
 * Before it is used a file names its `vector` and all_of(x), one in every lane,
 * divisor_of(scale), and of AT_ONCE numbers in four vectors numbers_of(x, type,
 * to) and any_nan(numbers).
 */
#ifndef MLA_QUANT_LOOPS_H
#define MLA_QUANT_LOOPS_H

#include <immintrin.h>

#include "cpu_quant.h"

#define INLINE static inline __attribute__((always_inline))

/* Numbers that come next, asked for block by block: many lines at once would
   wait for each other. */
INLINE void hint_numbers(const void *next, int type, int64_t i, int64_t n) {
  if (!next) return;
  const char *at = mla_cpu_number(next, type, i);
  for (int64_t k = 0; k < n * (type == MLA_CPU_F32 ? 4 : 2); k += 64)
    _mm_prefetch(at + k, _MM_HINT_T1);
}

/* The largest of sixteen words: complements', by what finds the least. */
INLINE uint32_t largest_word(__m256i x) {
  __m128i half =
      _mm_max_epu16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  half = _mm_minpos_epu16(_mm_xor_si128(half, _mm_set1_epi16(-1)));
  return 0xFFFFu ^ (uint32_t)_mm_extract_epi16(half, 0);
}

/* The largest magnitude of 16-bit floats is that of their codes; where NaN,
   which is above infinity, is among them, they are looked at one by one. */
INLINE float amax_of_codes(const uint16_t *x, int type, int64_t n,
                           uint32_t top) {
  uint32_t inf = type == MLA_CPU_BF16 ? 0x7F80 : 0x7C00;
  if (top > inf) return mla_cpu_amax(x, type, n);
  return type == MLA_CPU_BF16 ? mla_bf16_to_f32((uint16_t)top)
                              : mla_f16_to_f32((uint16_t)top);
}

/* block(byte, numbers, divisor, most, exact) encodes AT_ONCE numbers; `most` is
   the largest one that there is a code for, `exact` that the scale is a power
   of two, `in_byte` how many codes a byte has. */
#define MLA_QUANT_BLOCKS(code, in_byte, block, exact)            \
  for (; i <= usual; i += AT_ONCE) {                             \
    const void *at = mla_cpu_number(x, type, i);                 \
    vector numbers[4];                                           \
    numbers_of(at, type, numbers);                               \
    hint_numbers(next, type, i, AT_ONCE);                        \
    if (any_nan(numbers))                                        \
      rest_##code(byte + i / in_byte, at, type, AT_ONCE, scale); \
    else                                                         \
      block(byte + i / in_byte, numbers, d, most, exact);        \
  }

#define MLA_QUANT_ENCODE(code, level, in_byte, largest, block)                 \
  static __attribute__((noinline)) void rest_##code(                           \
      uint8_t *byte, const void *x, int type, int64_t n, float scale) {        \
    mla_cpu_encode_##code(byte, x, type, n, scale);                            \
  }                                                                            \
  INLINE void tile_##code(uint8_t *byte, const void *x, int type, int64_t n,   \
                          float scale, const void *next) {                     \
    const divisor d = divisor_of(scale);                                       \
    const vector most = all_of(largest * scale);                               \
    int64_t i = 0, usual = mla_cpu_quant_usual(scale) ? n - AT_ONCE : -1;      \
    if (mla_f32_bits(scale) << 9 == 0)                                         \
      MLA_QUANT_BLOCKS(code, in_byte, block, 1)                                \
    else                                                                       \
      MLA_QUANT_BLOCKS(code, in_byte, block, 0)                                \
    if (i < n)                                                                 \
      rest_##code(byte + i / in_byte, mla_cpu_number(x, type, i), type, n - i, \
                  scale);                                                      \
  }                                                                            \
  INLINE void tiles_##code(uint8_t *byte, const void *x, int type, int64_t n,  \
                           int64_t tile, const float *scale,                   \
                           const void *next) {                                 \
    for (int64_t i = 0; i < n; i += tile)                                      \
      tile_##code(byte + i / in_byte, mla_cpu_number(x, type, i), type,        \
                  n - i < tile ? n - i : tile, *scale++,                       \
                  next ? mla_cpu_number(next, type, i) : NULL);                \
  }                                                                            \
  void mla_encode_##code##_##level(void *to, const void *x, int type,          \
                                   int64_t n, int64_t tile,                    \
                                   const float *scale, const void *next) {     \
    if (type == MLA_CPU_BF16)                                                  \
      tiles_##code(to, x, MLA_CPU_BF16, n, tile, scale, next);                 \
    else if (type == MLA_CPU_F16)                                              \
      tiles_##code(to, x, MLA_CPU_F16, n, tile, scale, next);                  \
    else                                                                       \
      tiles_##code(to, x, MLA_CPU_F32, n, tile, scale, next);                  \
  }

#define MLA_QUANT_AMAX(level)                                                 \
  void mla_amax_all_##level(float *top, const void *x, int type, int64_t n,   \
                            int64_t tile) {                                   \
    for (int64_t i = 0; i < n; i += tile) {                                   \
      const void *at = mla_cpu_number(x, type, i);                            \
      int64_t here = n - i < tile ? n - i : tile;                             \
      *top++ =                                                                \
          type == MLA_CPU_F32 ? amax_f32(at, here) : amax_16(at, type, here); \
    }                                                                         \
  }

/* Floats of 8 bits: a kernel that knows what follows from the type. */
#define MLA_QUANT_ENCODE_FLOAT(code, level, m, bias, largest)          \
  INLINE void encode_##code(uint8_t *byte, const vector *x, divisor d, \
                            vector most, int exact) {                  \
    encode_float(byte, x, d, most, exact, m, bias);                    \
  }                                                                    \
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
