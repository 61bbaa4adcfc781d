/* 16-bit floats to and from f32: F16C for f16, shifts for bf16. */
#include <immintrin.h>
#include <string.h>

#include "cpu_kernels.h"
#include "half.h"

mla_cpu_load_fn mla_load_f16_avx2, mla_load_bf16_avx2;
mla_cpu_fetch_fn mla_fetch_all_avx2;
mla_cpu_stream_fn mla_stream_all_avx2;
mla_cpu_settle_fn mla_settle_all_avx2;
mla_cpu_store_fn mla_store_f16_avx2, mla_store_bf16_avx2;

static inline __m128i load_8(const uint16_t *from) {
  return _mm_loadu_si128((const __m128i *)(const void *)from);
}

static inline void store_8(uint16_t *to, __m128i x) {
  _mm_storeu_si128((__m128i *)(void *)to, x);
}

void mla_load_f16_avx2(float *to, const void *from, int64_t n) {
  const uint16_t *code = from;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(load_8(code + i)));
  for (; i < n; i++) to[i] = mla_f16_to_f32(code[i]);
}

static inline void load_bf16(float *to, const uint16_t *code) {
  __m256i wide = _mm256_cvtepu16_epi32(load_8(code));
  _mm256_storeu_ps(to, _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
}

void mla_load_bf16_avx2(float *to, const void *from, int64_t n) {
  const uint16_t *code = from;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    load_bf16(to + i, code + i);
    load_bf16(to + i + 8, code + i + 8);
  }
  for (; i < n; i++) to[i] = mla_bf16_to_f32(code[i]);
}

/* The processor keeps a NaN's payload; ours is one code. */
void mla_store_f16_avx2(void *to, const float *from, int64_t n) {
  uint16_t *code = to;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256 x = _mm256_loadu_ps(from + i);
    __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    __m128i is_nan =
        _mm_packs_epi32(_mm256_castsi256_si128(_mm256_castps_si256(nan)),
                        _mm256_extracti128_si256(_mm256_castps_si256(nan), 1));
    __m128i half = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
    store_8(code + i, _mm_blendv_epi8(half, _mm_set1_epi16(0x7E00), is_nan));
  }
  for (; i < n; i++) code[i] = mla_f32_to_f16(from[i]);
}

/* Eight f32, no NaN, to bf16 codes in 32-bit words. */
static inline __m256i round_bf16(__m256 x) {
  __m256i bits = _mm256_castps_si256(x);
  __m256i even =
      _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i sum = _mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF));
  return _mm256_srli_epi32(_mm256_add_epi32(sum, even), 16);
}

static inline void store_bf16(uint16_t *to, const float *from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = mla_f32_to_bf16(from[i]);
}

void mla_store_bf16_avx2(void *to, const float *from, int64_t n) {
  uint16_t *code = to;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    __m256 x = _mm256_loadu_ps(from + i), y = _mm256_loadu_ps(from + i + 8);
    if (_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q))) {
      store_bf16(code + i, from + i, 16);
      continue;
    }
    __m256i quarters = _mm256_packus_epi32(round_bf16(x), round_bf16(y));
    _mm256_storeu_si256((__m256i *)(void *)(code + i),
                        _mm256_permute4x64_epi64(quarters, 0xD8));
  }
  store_bf16(code + i, from + i, n - i);
}

void mla_fetch_all_avx2(const void *from, int64_t bytes) {
  const char *at = from;
  for (int64_t i = 0; i < bytes; i += 64) _mm_prefetch(at + i, _MM_HINT_T1);
}

/* Whole lines only: a part of one would be fetched after all, and slower. */
void mla_stream_all_avx2(void *to, const void *from, int64_t bytes) {
  enum { line = 64 };
  unsigned char *out = to;
  const unsigned char *in = from;
  int64_t head = (int64_t)(-(uintptr_t)to % line);
  if (head > bytes) head = bytes;
  memmove(out, in, (size_t)head);
  int64_t i = head;
  for (; i + line <= bytes; i += line) {
    __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(in + i));
    __m256i b =
        _mm256_loadu_si256((const __m256i *)(const void *)(in + i + 32));
    _mm256_stream_si256((__m256i *)(void *)(out + i), a);
    _mm256_stream_si256((__m256i *)(void *)(out + i + 32), b);
  }
  memmove(out + i, in + i, (size_t)(bytes - i));
}

void mla_settle_all_avx2(void) {
  _mm_sfence();
}
