/*
 * Codes with a scale, AVX2: 32 numbers at a time, what is left by the loops of
 * cpu_quant.h, as are scales that are out of the ordinary. 8-bit floats are
 * read by way of f16, which differs in the exponent's bias alone.
 */
#include <immintrin.h>

#include "quant_loops.h"

mla_cpu_amax_fn mla_amax_all_avx2;
mla_cpu_encode_fn mla_encode_e4m3_avx2, mla_encode_e4m3fnuz_avx2,
    mla_encode_e5m2_avx2, mla_encode_i8_avx2, mla_encode_i4_avx2;
mla_cpu_decode_fn mla_decode_e4m3_avx2, mla_decode_e4m3fnuz_avx2,
    mla_decode_e5m2_avx2, mla_decode_i8_avx2, mla_decode_i4_avx2;

enum { AT_ONCE = 32, HALVES = 16 };

typedef __m256 vector;

INLINE vector all_of(float x) {
  return _mm256_set1_ps(x);
}

INLINE __m256 magnitude(__m256 x) {
  return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

INLINE float largest_of(__m256 x) {
  x = _mm256_max_ps(x, _mm256_permute2f128_ps(x, x, 1));
  x = _mm256_max_ps(x, _mm256_permute_ps(x, 0x4E));
  return _mm256_cvtss_f32(_mm256_max_ps(x, _mm256_permute_ps(x, 0xB1)));
}

/* The second of two where one is NaN: the larger of all others so far. */
INLINE float amax_f32(const float *x, int64_t n) {
  __m256 top[4];
  int64_t i = 0;
  for (int k = 0; k < 4; k++) top[k] = _mm256_setzero_ps();
  for (; i + AT_ONCE <= n; i += AT_ONCE)
    for (int k = 0; k < 4; k++)
      top[k] = _mm256_max_ps(magnitude(_mm256_loadu_ps(x + i + 8 * k)), top[k]);
  float one = largest_of(_mm256_max_ps(_mm256_max_ps(top[0], top[1]),
                                       _mm256_max_ps(top[2], top[3])));
  float rest = i < n ? mla_cpu_amax(x + i, MLA_CPU_F32, n - i) : 0.0f;
  return one > rest ? one : rest;
}

INLINE __m256i load_si256(const void *from) {
  return _mm256_loadu_si256((const __m256i *)from);
}

INLINE float amax_16(const uint16_t *x, int type, int64_t n) {
  __m256i top[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  int64_t i = 0;
  for (; i + AT_ONCE <= n; i += AT_ONCE)
    for (int k = 0; k < 2; k++)
      top[k] =
          _mm256_max_epu16(top[k], _mm256_and_si256(load_si256(x + i + 16 * k),
                                                    _mm256_set1_epi16(0x7FFF)));
  uint32_t most = largest_word(_mm256_max_epu16(top[0], top[1]));
  for (; i < n; i++) {
    uint32_t size = x[i] & 0x7FFFu;
    most = size > most ? size : most;
  }
  return amax_of_codes(x, type, n, most);
}

MLA_QUANT_AMAX(avx2)

/* ---------------------------------------------------------------- encoding */

typedef struct divisor {
  __m256 by, high, low;
} divisor;

INLINE divisor divisor_of(float scale) {
  const __m256 one = _mm256_set1_ps(1.0f);
  divisor d = {_mm256_set1_ps(scale), one, one};
  d.high = _mm256_div_ps(one, d.by);
  d.low = _mm256_mul_ps(_mm256_fnmadd_ps(d.high, d.by, one), d.high);
  return d;
}

/* cpu_quant.h says why this is x / by. A division waits for the divider, this
   for multipliers: half of one and half of the other is faster than either,
   where little else is done. */
INLINE __m256 quotient(__m256 x, divisor d) {
  __m256 q = _mm256_fmadd_ps(x, d.high, _mm256_mul_ps(x, d.low));
  return _mm256_fmadd_ps(_mm256_fnmadd_ps(q, d.by, x), d.high, q);
}

INLINE void numbers_of(const void *x, int type, __m256 *to) {
  for (int k = 0; k < 4; k++) {
    const void *at = mla_cpu_number(x, type, 8 * k);
    if (type == MLA_CPU_F32) {
      to[k] = _mm256_loadu_ps(at);
      continue;
    }
    __m128i half = _mm_loadu_si128((const __m128i *)at);
    to[k] = type == MLA_CPU_F16 ? _mm256_cvtph_ps(half)
                                : _mm256_castsi256_ps(_mm256_slli_epi32(
                                      _mm256_cvtepu16_epi32(half), 16));
  }
}

INLINE int any_nan(const __m256 *x) {
  __m256 a = _mm256_cmp_ps(x[0], x[1], _CMP_UNORD_Q);
  __m256 b = _mm256_cmp_ps(x[2], x[3], _CMP_UNORD_Q);
  return _mm256_movemask_ps(_mm256_or_ps(a, b)) != 0;
}

/* The low bytes of 32 words, each of 0 to 127 or, with a sign, of -128 on. */
INLINE __m256i bytes_of(const __m256i *word) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  __m256i low = _mm256_packs_epi32(word[0], word[1]);
  __m256i high = _mm256_packs_epi32(word[2], word[3]);
  return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
}

/*
 * Codes of magnitudes that the type has room for. Next to 2^(e + 23 - m) a unit
 * is 2^(e - m), that of numbers of exponent e with m bits of mantissa, or of
 * subnormals where e is the least: adding it rounds, and leaves a count of
 * units in the low bits, 2^m of which the exponent above the least less one
 * stands for. What is to be taken from the exponent for that is added as units
 * with the rest: an even number, and modulo the 7 bits of a code.
 */
INLINE __m256i code_of(__m256 size, int m, int bias) {
  const int low = (128 - bias) << 23; /* the smallest normal number */
  const float times =
      1.5f * (float)(1 << (23 - m)) + (float)((bias - 128) & (127 >> m));
  __m256i power = _mm256_and_si256(_mm256_castps_si256(size),
                                   _mm256_set1_epi32(0x7F800000));
  power = _mm256_max_epi32(power, _mm256_set1_epi32(low));
  __m256 count =
      _mm256_fmadd_ps(_mm256_castsi256_ps(power), _mm256_set1_ps(times), size);
  return _mm256_add_epi32(_mm256_castps_si256(count),
                          _mm256_srli_epi32(power, 23 - m));
}

/* 32 numbers, no NaN among them. What is beyond `most` has the largest code. */
INLINE void encode_float(uint8_t *code, const __m256 *x, divisor d, __m256 most,
                         int exact, int m, int bias) {
  const __m256i seven = _mm256_set1_epi32(0x7F);
  __m256i size[4], sign[4];
  for (int k = 0; k < 4; k++) {
    __m256 part = _mm256_min_ps(magnitude(x[k]), most);
    part = exact ? _mm256_mul_ps(part, d.high) : _mm256_div_ps(part, d.by);
    size[k] = _mm256_and_si256(code_of(part, m, bias), seven);
    sign[k] = _mm256_castps_si256(x[k]);
  }
  __m256i minus =
      _mm256_and_si256(bytes_of(sign), _mm256_set1_epi8((char)0x80));
  __m256i byte = bytes_of(size);
  if (bias == 8) /* zero has no sign */
    minus = _mm256_andnot_si256(_mm256_cmpeq_epi8(byte, _mm256_setzero_si256()),
                                minus);
  _mm256_storeu_si256((__m256i *)(void *)code, _mm256_or_si256(minus, byte));
}

MLA_QUANT_ENCODE_FLOAT(e4m3, avx2, 3, 7, 448.0f)
MLA_QUANT_ENCODE_FLOAT(e4m3fnuz, avx2, 3, 8, 240.0f)
MLA_QUANT_ENCODE_FLOAT(e5m2, avx2, 2, 15, 57344.0f)

/* 32 quotients to the nearest integers, of numbers of -most to most. What is
   far below becomes the least integer on its way, also where it ends as NaN. */
INLINE __m256i integers(const __m256 *x, divisor d, __m256 most, int exact,
                        int least) {
  __m256i word[4];
  for (int k = 0; k < 4; k++) {
    __m256 y = _mm256_min_ps(x[k], most);
    y = exact   ? _mm256_mul_ps(y, d.high)
        : k % 2 ? quotient(y, d)
                : _mm256_div_ps(y, d.by);
    word[k] = _mm256_cvtps_epi32(y);
  }
  return _mm256_max_epi8(bytes_of(word), _mm256_set1_epi8((char)least));
}

INLINE void encode_i8(uint8_t *byte, const __m256 *x, divisor d, vector most,
                      int exact) {
  _mm256_storeu_si256((__m256i *)(void *)byte,
                      integers(x, d, most, exact, -127));
}
MLA_QUANT_ENCODE(i8, avx2, 1, 127.0f, encode_i8)

/* The first of two in the low half of a byte. */
INLINE __m128i halves(__m256i code) {
  const __m256i half = _mm256_set1_epi16(0x0F), low = _mm256_set1_epi16(0xFF);
  __m256i second = _mm256_srli_epi16(code, 8);
  second = _mm256_and_si256(_mm256_slli_epi16(second, 4), low);
  code = _mm256_or_si256(_mm256_and_si256(code, half), second);
  return _mm_packus_epi16(_mm256_castsi256_si128(code),
                          _mm256_extracti128_si256(code, 1));
}

INLINE void encode_i4(uint8_t *byte, const __m256 *x, divisor d, vector most,
                      int exact) {
  _mm_storeu_si128((__m128i *)(void *)byte,
                   halves(integers(x, d, most, exact, -7)));
}
MLA_QUANT_ENCODE(i4, avx2, 2, 7.0f, encode_i4)

/* ---------------------------------------------------------------- decoding */

INLINE void decode_halves(float *to, __m256i half, __m256 times) {
  __m256 low = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
  __m256 high = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
  _mm256_storeu_ps(to, _mm256_mul_ps(low, times));
  _mm256_storeu_ps(to + 8, _mm256_mul_ps(high, times));
}

/* Sixteen codes, the sign at the top, m bits of mantissa where f16 has ten;
   both bits of what was the sign and its copy but the upper one go. */
INLINE __m256i half_of(const uint8_t *code, int m) {
  __m256i word = _mm256_cvtepi8_epi16(
      _mm_loadu_si128((const __m128i *)(const void *)code));
  word = _mm256_slli_epi16(word, 10 - m);
  return m == 3 ? _mm256_and_si256(word, _mm256_set1_epi16((short)0xBFFF))
                : word;
}

/* Is one of 16 codes `nan`, whatever bits are not in `of`? */
INLINE int any_code(const uint8_t *code, int of, int nan) {
  __m128i x = _mm_loadu_si128((const __m128i *)(const void *)code);
  x = _mm_and_si128(x, _mm_set1_epi8((char)of));
  return _mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8((char)nan)));
}

MLA_QUANT_DECODE_FLOAT(e4m3, avx2, 3, 0x7F, 0x7F, 0x1p8f)
MLA_QUANT_DECODE_FLOAT(e4m3fnuz, avx2, 3, 0xFF, 0x80, 0x1p7f)
MLA_QUANT_DECODE_FLOAT(e5m2, avx2, 2, 0, 0, 1.0f)

void mla_decode_i8_avx2(float *to, const void *from, int64_t n, float scale) {
  const uint8_t *code = from;
  const __m256 times = _mm256_set1_ps(scale);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)(code + i));
    __m256 wide = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x));
    _mm256_storeu_ps(to + i, _mm256_mul_ps(wide, times));
  }
  mla_cpu_decode_i8(to + i, code + i, n - i, scale);
}

void mla_decode_i4_avx2(float *to, const void *from, int64_t n, float scale) {
  mla_cpu_decode_i4(to, from, n, scale);
}
