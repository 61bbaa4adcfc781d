/*
 * Codes with a scale, AVX-512: as mla_quant_all_avx2.c, 64 numbers at a time.
 * Sixteen quotients take ten cycles of the divider and two of the multipliers,
 * so none is divided.
 */
#include <immintrin.h>

#include "quant_loops.h"

mla_cpu_amax_fn mla_amax_all_avx512;
mla_cpu_encode_fn mla_encode_e4m3_avx512, mla_encode_e4m3fnuz_avx512,
    mla_encode_e5m2_avx512, mla_encode_i8_avx512, mla_encode_i4_avx512;
mla_cpu_decode_fn mla_decode_e4m3_avx512, mla_decode_e4m3fnuz_avx512,
    mla_decode_e5m2_avx512, mla_decode_i8_avx512;

enum { AT_ONCE = 64, HALVES = 32 };

typedef __m512 vector;

INLINE vector all_of(float x) {
  return _mm512_set1_ps(x);
}

INLINE __m512 magnitude(__m512 x) {
  return _mm512_castsi512_ps(
      _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF)));
}

/* Quarters, then halves of them. */
INLINE float largest_of(__m512 x) {
  x = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0x4E));
  x = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0xB1));
  x = _mm512_max_ps(x, _mm512_shuffle_ps(x, x, 0x4E));
  x = _mm512_max_ps(x, _mm512_shuffle_ps(x, x, 0xB1));
  return _mm512_cvtss_f32(x);
}

/* The second of two where one is NaN: the larger of all others so far. */
INLINE float amax_f32(const float *x, int64_t n) {
  __m512 top[4];
  int64_t i = 0;
  for (int k = 0; k < 4; k++) top[k] = _mm512_setzero_ps();
  for (; i + AT_ONCE <= n; i += AT_ONCE)
    for (int k = 0; k < 4; k++)
      top[k] =
          _mm512_max_ps(magnitude(_mm512_loadu_ps(x + i + 16 * k)), top[k]);
  float one = largest_of(_mm512_max_ps(_mm512_max_ps(top[0], top[1]),
                                       _mm512_max_ps(top[2], top[3])));
  float rest = i < n ? mla_cpu_amax(x + i, MLA_CPU_F32, n - i) : 0.0f;
  return one > rest ? one : rest;
}

INLINE float amax_16(const uint16_t *x, int type, int64_t n) {
  __m512i top[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  int64_t i = 0;
  for (; i + AT_ONCE <= n; i += AT_ONCE)
    for (int k = 0; k < 2; k++)
      top[k] = _mm512_max_epu16(
          top[k], _mm512_and_si512(_mm512_loadu_si512(x + i + 32 * k),
                                   _mm512_set1_epi16(0x7FFF)));
  top[0] = _mm512_max_epu16(top[0], top[1]);
  uint32_t most = largest_word(_mm256_max_epu16(
      _mm512_castsi512_si256(top[0]), _mm512_extracti64x4_epi64(top[0], 1)));
  for (; i < n; i++) {
    uint32_t size = x[i] & 0x7FFFu;
    most = size > most ? size : most;
  }
  return amax_of_codes(x, type, n, most);
}

MLA_QUANT_AMAX(avx512)

/* ---------------------------------------------------------------- encoding */

typedef struct divisor {
  __m512 by, high, low;
} divisor;

INLINE divisor divisor_of(float scale) {
  const __m512 one = _mm512_set1_ps(1.0f);
  divisor d = {_mm512_set1_ps(scale), one, one};
  d.high = _mm512_div_ps(one, d.by);
  d.low = _mm512_mul_ps(_mm512_fnmadd_ps(d.high, d.by, one), d.high);
  return d;
}

/* cpu_quant.h says why this is x / by; `exact`: high is, and so is the product,
   or its code that of zero. */
INLINE __m512 quotient(__m512 x, divisor d, int exact) {
  if (exact) return _mm512_mul_ps(x, d.high);
  __m512 q = _mm512_fmadd_ps(x, d.high, _mm512_mul_ps(x, d.low));
  return _mm512_fmadd_ps(_mm512_fnmadd_ps(q, d.by, x), d.high, q);
}

INLINE void numbers_of(const void *x, int type, __m512 *to) {
  for (int k = 0; k < 4; k++) {
    const __m256i *at = mla_cpu_number(x, type, 16 * k);
    if (type == MLA_CPU_F32)
      to[k] = _mm512_loadu_ps(at);
    else if (type == MLA_CPU_F16)
      to[k] = _mm512_cvtph_ps(_mm256_loadu_si256(at));
    else
      to[k] = _mm512_castsi512_ps(
          _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(at)), 16));
  }
}

INLINE int any_nan(const __m512 *x) {
  __mmask16 a = _mm512_cmp_ps_mask(x[0], x[1], _CMP_UNORD_Q);
  __mmask16 b = _mm512_cmp_ps_mask(x[2], x[3], _CMP_UNORD_Q);
  return !_mm512_kortestz(a, b);
}

/* 64 words as bytes in order: of 0 to 255, or of -128 to 127 with a sign. */
INLINE __m512i bytes_of(const __m512i *word, int with_sign) {
  const __m512i order =
      _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  __m512i low = _mm512_packs_epi32(word[0], word[1]);
  __m512i high = _mm512_packs_epi32(word[2], word[3]);
  return _mm512_permutexvar_epi32(order, with_sign
                                             ? _mm512_packs_epi16(low, high)
                                             : _mm512_packus_epi16(low, high));
}

/*
 * Codes of magnitudes that the type has room for. Next to 2^(e + 23 - m) a unit
 * is 2^(e - m), that of numbers of exponent e with m bits of mantissa, or of
 * subnormals where e is the least: adding it rounds, and leaves a count of
 * units in the low bits. Of these 2^m stand for each exponent above the least,
 * which are added with it, so that the low bits are the code: an even number,
 * as rounding to even wants. All of it is found by the exponent's low bits.
 */
#define ABOVE(i, bias, of) (((i) - (128 - (bias))) & ((of)-1))
#define UNIT(i, m, bias, of)                           \
  (((ABOVE(i, bias, of) + 151 - (bias) - (m)) << 23) + \
   (ABOVE(i, bias, of) << (m)))
#define UNITS(i, m, bias, of)                                               \
  UNIT(i, m, bias, of), UNIT(i + 1, m, bias, of), UNIT(i + 2, m, bias, of), \
      UNIT(i + 3, m, bias, of)
#define UNITS_16(i, m, bias, of)                                               \
  UNITS(i, m, bias, of), UNITS(i + 4, m, bias, of), UNITS(i + 8, m, bias, of), \
      UNITS(i + 12, m, bias, of)

static const int32_t units_e4m3[] = {UNITS_16(0, 3, 7, 16)};
static const int32_t units_e4m3fnuz[] = {UNITS_16(0, 3, 8, 16)};
static const int32_t units_e5m2[] = {UNITS_16(0, 2, 15, 32),
                                     UNITS_16(16, 2, 15, 32)};

INLINE __m512 unit_of(__m512i exponent, int m, int bias) {
  if (m == 2)
    return _mm512_permutex2var_ps(_mm512_loadu_ps(units_e5m2), exponent,
                                  _mm512_loadu_ps(units_e5m2 + 16));
  return _mm512_permutexvar_ps(
      exponent, _mm512_loadu_ps(bias == 7 ? units_e4m3 : units_e4m3fnuz));
}

/* The sign of x included. */
INLINE __m512i code_of(__m512 x, __m512 size, int m, int bias) {
  const __m512 least =
      _mm512_castsi512_ps(_mm512_set1_epi32((128 - bias) << 23));
  __m512i exponent =
      _mm512_srli_epi32(_mm512_castps_si512(_mm512_max_ps(size, least)), 23);
  __m512 count = _mm512_add_ps(size, unit_of(exponent, m, bias));
  __m512i sign = _mm512_srli_epi32(_mm512_castps_si512(x), 24);
  return _mm512_ternarylogic_epi32(_mm512_set1_epi32(0x7F),
                                   _mm512_castps_si512(count), sign, 0xCA);
}

/* 64 numbers, no NaN among them. What is beyond `most` has the largest code. */
INLINE void encode_float(uint8_t *code, const __m512 *x, divisor d, __m512 most,
                         int exact, int m, int bias) {
  __m512i word[4];
  for (int k = 0; k < 4; k++) {
    __m512 size = _mm512_range_ps(x[k], most, 0x0A); /* the least, above 0 */
    word[k] = code_of(x[k], quotient(size, d, exact), m, bias);
  }
  __m512i byte = bytes_of(word, 0);
  if (bias == 8) { /* zero has no sign */
    __mmask64 zero = _mm512_cmpeq_epi8_mask(byte, _mm512_set1_epi8(-128));
    byte = _mm512_mask_mov_epi8(byte, zero, _mm512_setzero_si512());
  }
  _mm512_storeu_si512(code, byte);
}

MLA_QUANT_ENCODE_FLOAT(e4m3, avx512, 3, 7, 448.0f)
MLA_QUANT_ENCODE_FLOAT(e4m3fnuz, avx512, 3, 8, 240.0f)
MLA_QUANT_ENCODE_FLOAT(e5m2, avx512, 2, 15, 57344.0f)

/* 64 quotients to the nearest integers, of numbers of -most to most. */
INLINE __m512i integers(const __m512 *x, divisor d, __m512 most, int exact) {
  __m512i word[4];
  for (int k = 0; k < 4; k++) { /* the least magnitude, with the sign of x */
    __m512 y = _mm512_range_ps(x[k], most, 0x02);
    word[k] = _mm512_cvtps_epi32(quotient(y, d, exact));
  }
  return bytes_of(word, 1);
}

INLINE void encode_i8(uint8_t *byte, const __m512 *x, divisor d, vector most,
                      int exact) {
  _mm512_storeu_si512(byte, integers(x, d, most, exact));
}
MLA_QUANT_ENCODE(i8, avx512, 1, 127.0f, encode_i8)

/* The first of two in the low half of a byte: in words of both, the second is
   four bits too high. */
INLINE __m256i halves(__m512i code) {
  return _mm512_cvtepi16_epi8(_mm512_ternarylogic_epi32(
      _mm512_set1_epi16(0x0F), code, _mm512_srli_epi16(code, 4), 0xCA));
}

INLINE void encode_i4(uint8_t *byte, const __m512 *x, divisor d, vector most,
                      int exact) {
  _mm256_storeu_si256((__m256i *)(void *)byte,
                      halves(integers(x, d, most, exact)));
}
MLA_QUANT_ENCODE(i4, avx512, 2, 7.0f, encode_i4)

/* ---------------------------------------------------------------- decoding */

INLINE void decode_halves(float *to, __m512i half, __m512 times) {
  __m512 low = _mm512_cvtph_ps(_mm512_castsi512_si256(half));
  __m512 high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(half, 1));
  _mm512_storeu_ps(to, _mm512_mul_ps(low, times));
  _mm512_storeu_ps(to + 16, _mm512_mul_ps(high, times));
}

INLINE __m256i load_32(const uint8_t *code) {
  return _mm256_loadu_si256((const __m256i *)(const void *)code);
}

/* As in mla_quant_all_avx2.c. */
INLINE __m512i half_of(const uint8_t *code, int m) {
  __m512i word = _mm512_slli_epi16(_mm512_cvtepi8_epi16(load_32(code)), 10 - m);
  return m == 3 ? _mm512_and_si512(word, _mm512_set1_epi16((short)0xBFFF))
                : word;
}

INLINE int any_code(const uint8_t *code, int of, int nan) {
  __m256i x = _mm256_and_si256(load_32(code), _mm256_set1_epi8((char)of));
  return _mm256_movemask_epi8(
             _mm256_cmpeq_epi8(x, _mm256_set1_epi8((char)nan))) != 0;
}

MLA_QUANT_DECODE_FLOAT(e4m3, avx512, 3, 0x7F, 0x7F, 0x1p8f)
MLA_QUANT_DECODE_FLOAT(e4m3fnuz, avx512, 3, 0xFF, 0x80, 0x1p7f)
MLA_QUANT_DECODE_FLOAT(e5m2, avx512, 2, 0, 0, 1.0f)

void mla_decode_i8_avx512(float *to, const void *from, int64_t n, float scale) {
  const uint8_t *code = from;
  const __m512 times = _mm512_set1_ps(scale);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(code + i));
    __m512 wide = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x));
    _mm512_storeu_ps(to + i, _mm512_mul_ps(wide, times));
  }
  mla_cpu_decode_i8(to + i, code + i, n - i, scale);
}
