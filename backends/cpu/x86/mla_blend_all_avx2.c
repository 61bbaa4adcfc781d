/*
 * Weighted sums of rows with AVX2 and FMA, one for each type of them. What
 * limits them is memory: 64 columns of every part at a time give as many
 * streams as there are parts, and the next row's lines are asked for while
 * this one's are added up.
 */
#include <immintrin.h>

#include "cpu_kernels.h"
#include "half.h"

mla_cpu_blend_fn mla_blend_f32_avx2, mla_blend_f16_avx2, mla_blend_bf16_avx2;

enum { registers = 8, columns = 8 * registers, line = 64 };

static inline __m128i load_8(const uint16_t *from) {
  return _mm_loadu_si128((const __m128i *)(const void *)from);
}

static inline __m256 eight_f32(const float *x) {
  return _mm256_loadu_ps(x);
}

static inline __m256 eight_f16(const uint16_t *x) {
  return _mm256_cvtph_ps(load_8(x));
}

static inline __m256 eight_bf16(const uint16_t *x) {
  __m256i wide = _mm256_cvtepu16_epi32(load_8(x));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

static inline float same(float x) {
  return x;
}

static inline float one_more(float s, float weight, float x) {
  __m128 sum = _mm_fmadd_ss(_mm_set_ss(weight), _mm_set_ss(x), _mm_set_ss(s));
  return _mm_cvtss_f32(sum);
}

#define BLEND(name, type, eight, one)                                  \
  void name(int64_t n, int64_t parts, const void *const *part,         \
            const float *weight, int64_t ahead, int add, float *sum) { \
    int64_t c = 0;                                                     \
    for (; c + columns <= n; c += columns) {                           \
      __m256 s[registers];                                             \
      for (int k = 0; k < registers; k++) s[k] = _mm256_setzero_ps();  \
      for (int64_t i = 0; i < parts; i++) {                            \
        const type *x = (const type *)part[i] + c;                     \
        const char *next = (const char *)x + ahead;                    \
        __m256 w = _mm256_broadcast_ss(weight + i);                    \
        for (int at = 0; at < columns * (int)sizeof(type); at += line) \
          _mm_prefetch(next + at, _MM_HINT_T1);                        \
        for (int k = 0; k < registers; k++)                            \
          s[k] = _mm256_fmadd_ps(w, eight(x + 8 * k), s[k]);           \
      }                                                                \
      for (int k = 0; k < registers; k++) {                            \
        float *to = sum + c + 8 * k;                                   \
        if (add) s[k] = _mm256_add_ps(_mm256_loadu_ps(to), s[k]);      \
        _mm256_storeu_ps(to, s[k]);                                    \
      }                                                                \
    }                                                                  \
    for (; c < n; c++) {                                               \
      float s = 0.0f;                                                  \
      for (int64_t i = 0; i < parts; i++)                              \
        s = one_more(s, weight[i], one(((const type *)part[i])[c]));   \
      sum[c] = add ? sum[c] + s : s;                                   \
    }                                                                  \
  }

BLEND(mla_blend_f32_avx2, float, eight_f32, same)
BLEND(mla_blend_f16_avx2, uint16_t, eight_f16, mla_f16_to_f32)
BLEND(mla_blend_bf16_avx2, uint16_t, eight_bf16, mla_bf16_to_f32)
