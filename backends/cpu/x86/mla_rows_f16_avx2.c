/* Few rows against keys of f16. */
#include <immintrin.h>

#include "cpu_kernels.h"
#include "few_rows.h"
#include "half.h"

mla_cpu_dots_fn mla_dots_f16_avx2;
mla_cpu_mix_fn mla_mix_f16_avx2;

static inline void two(const void *row, int64_t i, __m256 *a, __m256 *b) {
  const uint16_t *at = (const uint16_t *)row + i;
  *a = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)at));
  at += 8;
  *b = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)at));
}

static inline float one(const void *row, int64_t i) {
  return mla_f16_to_f32(((const uint16_t *)row)[i]);
}

#define BYTES 2
#define ONE_ROW_SUMS most_sums
#define DOTS mla_dots_f16_avx2
#define MIX mla_mix_f16_avx2
#include "rows_avx2.h"
