/* 16-bit floats to and from f32, sixteen at a time, the last ones masked. */
#include <immintrin.h>

#include "cpu_kernels.h"

mla_cpu_load_fn mla_load_f16_avx512, mla_load_bf16_avx512;
mla_cpu_store_fn mla_store_f16_avx512, mla_store_bf16_avx512;

static inline __mmask16 first(int64_t n) {
  return n < 16 ? (__mmask16)((1u << n) - 1u) : (__mmask16)0xFFFF;
}

void mla_load_f16_avx512(float *to, const void *from, int64_t n) {
  const uint16_t *code = from;
  for (int64_t i = 0; i < n; i += 16) {
    __mmask16 some = first(n - i);
    __m256i half = _mm256_maskz_loadu_epi16(some, code + i);
    _mm512_mask_storeu_ps(to + i, some, _mm512_cvtph_ps(half));
  }
}

void mla_load_bf16_avx512(float *to, const void *from, int64_t n) {
  const uint16_t *code = from;
  for (int64_t i = 0; i < n; i += 16) {
    __mmask16 some = first(n - i);
    __m512i wide =
        _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, code + i));
    _mm512_mask_storeu_ps(to + i, some,
                          _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16)));
  }
}

/* The processor keeps a NaN's payload; ours is one code. */
void mla_store_f16_avx512(void *to, const float *from, int64_t n) {
  uint16_t *code = to;
  for (int64_t i = 0; i < n; i += 16) {
    __mmask16 some = first(n - i);
    __m512 x = _mm512_maskz_loadu_ps(some, from + i);
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    __m256i half = _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
    half = _mm256_mask_mov_epi16(half, nan, _mm256_set1_epi16(0x7E00));
    _mm256_mask_storeu_epi16(code + i, some, half);
  }
}

/* Sixteen f32 to bf16 codes in 32-bit words; NaN as others. */
static inline __m512i round_bf16(__m512 x) {
  __m512i bits = _mm512_castps_si512(x);
  __m512i even =
      _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i sum = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF));
  return _mm512_srli_epi32(_mm512_add_epi32(sum, even), 16);
}

static inline void store_bf16(uint16_t *to, const float *from, __mmask16 some) {
  __m512 x = _mm512_maskz_loadu_ps(some, from);
  __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  __m512i code =
      _mm512_mask_mov_epi32(round_bf16(x), nan, _mm512_set1_epi32(0x7FC0));
  _mm256_mask_storeu_epi16(to, some, _mm512_cvtepi32_epi16(code));
}

void mla_store_bf16_avx512(void *to, const float *from, int64_t n) {
  const __m512i order =
      _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
  uint16_t *code = to;
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    __m512 x = _mm512_loadu_ps(from + i), y = _mm512_loadu_ps(from + i + 16);
    if (_mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q)) {
      store_bf16(code + i, from + i, first(16));
      store_bf16(code + i + 16, from + i + 16, first(16));
      continue;
    }
    __m512i eighths = _mm512_packus_epi32(round_bf16(x), round_bf16(y));
    _mm512_storeu_si512(code + i, _mm512_permutexvar_epi32(order, eighths));
  }
  for (; i < n; i += 16) store_bf16(code + i, from + i, first(n - i));
}
