/* Codes with a scale: the loops of cpu_quant.h, as compiled for AVX2; e4m3 is
   read by way of f16, which differs in the exponent's bias alone. */
#include <immintrin.h>

#include "cpu_quant.h"

mla_cpu_amax_fn mla_amax_f32_avx2;
mla_cpu_encode_fn mla_encode_e4m3_avx2, mla_encode_i8_avx2, mla_encode_i4_avx2;
mla_cpu_scale_codes_fn mla_decode_e4m3_avx2, mla_decode_i4_avx2;

float mla_amax_f32_avx2(const float *x, int64_t n) {
  return mla_cpu_amax(x, n);
}

void mla_encode_e4m3_avx2(void *to, const float *x, int64_t n, float scale) {
  mla_cpu_encode_e4m3(to, x, n, scale);
}

void mla_encode_i8_avx2(void *to, const float *x, int64_t n, float scale) {
  mla_cpu_encode_i8(to, x, n, scale);
}

void mla_encode_i4_avx2(void *to, const float *x, int64_t n, float scale) {
  mla_cpu_encode_i4(to, x, n, scale);
}

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
