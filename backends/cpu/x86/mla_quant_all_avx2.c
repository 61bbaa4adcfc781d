/*
 * Codes with a scale, AVX2: 32 numbers at a time, what is left by the loops of
 * cpu_quant.h. e4m3 is read by way of f16, which differs in the exponent's bias
 * alone.
 */
#include <immintrin.h>

#include "cpu_quant.h"

mla_cpu_amax_fn mla_amax_f32_avx2;
mla_cpu_encode_fn mla_encode_e4m3_avx2, mla_encode_i8_avx2, mla_encode_i4_avx2;
mla_cpu_scale_codes_fn mla_decode_e4m3_avx2, mla_decode_i4_avx2;

enum { AT_ONCE = 32 };

static inline __m256i magnitude(__m256i bits) {
  return _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF));
}

/* As unsigned numbers magnitudes are in order. */
float mla_amax_f32_avx2(const float *x, int64_t n) {
  const __m256i infinite = _mm256_set1_epi32(0x7F800000);
  __m256i top[4];
  int64_t i = 0;
  for (int k = 0; k < 4; k++) top[k] = _mm256_setzero_si256();
  for (; i + AT_ONCE <= n; i += AT_ONCE)
    for (int k = 0; k < 4; k++) {
      __m256i size =
          magnitude(_mm256_castps_si256(_mm256_loadu_ps(x + i + 8 * k)));
      __m256i nan = _mm256_cmpgt_epi32(size, infinite);
      top[k] = _mm256_max_epi32(top[k], _mm256_andnot_si256(nan, size));
    }
  __m256i all = _mm256_max_epi32(_mm256_max_epi32(top[0], top[1]),
                                 _mm256_max_epi32(top[2], top[3]));
  float line[8];
  _mm256_storeu_ps(line, _mm256_castsi256_ps(all));
  float one = mla_cpu_amax(line, 8), rest = mla_cpu_amax(x + i, n - i);
  return one > rest ? one : rest;
}

/* ---------------------------------------------------------------- encoding */

/* The low bytes of 32 words, each of 0 to 127 or, with a sign, of -128 on. */
static inline __m256i bytes_of(const __m256i *word) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  __m256i low = _mm256_packs_epi32(word[0], word[1]);
  __m256i high = _mm256_packs_epi32(word[2], word[3]);
  return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
}

/*
 * 448 at most; a NaN stays. Next to 2^(e + 20) a unit is 2^(e - 3), that of
 * e4m3's numbers of exponent e, or of its subnormals where e is -6: adding it
 * rounds, and leaves a count of units in the low bits, 8 of which the exponent
 * above -7 stands for.
 */
static inline __m256i e4m3_of(__m256 x) {
  const __m256 most = _mm256_set1_ps(448.0f);
  const __m256i least = _mm256_set1_epi32(121 << 23); /* of 2^-6 */
  /* 1.5 times a power, so that the exponent's share can be taken off first. */
  const __m256i magic = _mm256_set1_epi32((20 << 23) + (1 << 22) - (121 << 3));
  __m256i bits = magnitude(_mm256_castps_si256(x));
  __m256 size = _mm256_min_ps(_mm256_castsi256_ps(bits), most);
  __m256i power = _mm256_and_si256(_mm256_castps_si256(size),
                                   _mm256_set1_epi32(0x7F800000));
  power = _mm256_max_epi32(power, least);
  __m256 unit = _mm256_castsi256_ps(_mm256_add_epi32(power, magic));
  __m256i count = _mm256_castps_si256(_mm256_add_ps(size, unit));
  count = _mm256_add_epi32(count, _mm256_srli_epi32(power, 20));
  return _mm256_and_si256(count, _mm256_set1_epi32(0x7F));
}

static inline int any_nan(const __m256 *x) {
  __m256 a = _mm256_cmp_ps(x[0], x[1], _CMP_UNORD_Q);
  __m256 b = _mm256_cmp_ps(x[2], x[3], _CMP_UNORD_Q);
  return _mm256_movemask_ps(_mm256_or_ps(a, b)) != 0;
}

void mla_encode_e4m3_avx2(void *to, const float *x, int64_t n, float scale) {
  const __m256 by = _mm256_set1_ps(scale);
  uint8_t *code = to;
  int64_t i = 0;
  for (; i + AT_ONCE <= n; i += AT_ONCE) {
    __m256 y[4];
    __m256i size[4], sign[4];
    for (int k = 0; k < 4; k++)
      y[k] = _mm256_div_ps(_mm256_loadu_ps(x + i + 8 * k), by);
    if (any_nan(y)) {
      mla_cpu_encode_e4m3(code + i, x + i, AT_ONCE, scale);
      continue;
    }
    for (int k = 0; k < 4; k++) {
      size[k] = e4m3_of(y[k]);
      sign[k] = _mm256_castps_si256(y[k]);
    }
    __m256i minus =
        _mm256_and_si256(bytes_of(sign), _mm256_set1_epi8((char)0x80));
    _mm256_storeu_si256((__m256i *)(void *)(code + i),
                        _mm256_or_si256(minus, bytes_of(size)));
  }
  mla_cpu_encode_e4m3(code + i, x + i, n - i, scale);
}

/* 32 quotients to the nearest integers of -top to top; NaN: 0. */
static inline __m256i integers(const float *x, __m256 by, float top) {
  const __m256 most = _mm256_set1_ps(top), least = _mm256_set1_ps(-top);
  __m256i word[4];
  for (int k = 0; k < 4; k++) {
    __m256 y = _mm256_div_ps(_mm256_loadu_ps(x + 8 * k), by);
    y = _mm256_and_ps(y, _mm256_cmp_ps(y, y, _CMP_ORD_Q));
    y = _mm256_min_ps(_mm256_max_ps(y, least), most);
    word[k] = _mm256_cvtps_epi32(y);
  }
  return bytes_of(word);
}

void mla_encode_i8_avx2(void *to, const float *x, int64_t n, float scale) {
  const __m256 by = _mm256_set1_ps(scale);
  int8_t *code = to;
  int64_t i = 0;
  for (; i + AT_ONCE <= n; i += AT_ONCE)
    _mm256_storeu_si256((__m256i *)(void *)(code + i),
                        integers(x + i, by, 127.0f));
  mla_cpu_encode_i8(code + i, x + i, n - i, scale);
}

/* The first of two in the low half of a byte. */
void mla_encode_i4_avx2(void *to, const float *x, int64_t n, float scale) {
  const __m256 by = _mm256_set1_ps(scale);
  const __m256i half = _mm256_set1_epi16(0x0F), low = _mm256_set1_epi16(0xFF);
  uint8_t *byte = to;
  int64_t i = 0;
  for (; i + AT_ONCE <= n; i += AT_ONCE) {
    __m256i code = integers(x + i, by, 7.0f);
    __m256i second = _mm256_srli_epi16(code, 8);
    second = _mm256_and_si256(_mm256_slli_epi16(second, 4), low);
    code = _mm256_or_si256(_mm256_and_si256(code, half), second);
    _mm_storeu_si128((__m128i *)(void *)(byte + i / 2),
                     _mm_packus_epi16(_mm256_castsi256_si128(code),
                                      _mm256_extracti128_si256(code, 1)));
  }
  mla_cpu_encode_i4(byte + i / 2, x + i, n - i, scale);
}

/* ---------------------------------------------------------------- decoding */

/* Eight codes times 2^-8, subnormals included. */
static inline __m256 decode_8(const uint8_t *code) {
  const __m128i low = _mm_set1_epi16(0x7F);
  __m128i word =
      _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)code));
  __m128i size = _mm_and_si128(word, low);
  __m128i sign = _mm_slli_epi16(_mm_andnot_si128(low, word), 8);
  __m128i nan = _mm_cmpeq_epi16(size, low);
  __m128i half = _mm_or_si128(sign, _mm_slli_epi16(size, 7));
  return _mm256_cvtph_ps(_mm_blendv_epi8(half, _mm_set1_epi16(0x7E00), nan));
}

void mla_decode_e4m3_avx2(float *to, const void *from, int64_t n, float scale) {
  const uint8_t *code = from;
  const __m256 bias = _mm256_set1_ps(0x1p8f), times = _mm256_set1_ps(scale);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(
        to + i, _mm256_mul_ps(_mm256_mul_ps(decode_8(code + i), bias), times));
  mla_cpu_decode_e4m3(to + i, code + i, n - i, scale);
}

void mla_decode_i4_avx2(float *to, const void *from, int64_t n, float scale) {
  mla_cpu_decode_i4(to, from, n, scale);
}
