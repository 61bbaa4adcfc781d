/* Few rows against keys of f32, read where they lie. */
#include <immintrin.h>

#include "cpu_kernels.h"
#include "few_rows.h"

mla_cpu_dots_fn mla_dots_f32_avx2;
mla_cpu_mix_fn mla_mix_f32_avx2;

static inline void two(const void *row, int64_t i, __m256 *a, __m256 *b) {
  *a = _mm256_loadu_ps((const float *)row + i);
  *b = _mm256_loadu_ps((const float *)row + i + 8);
}

static inline float one(const void *row, int64_t i) {
  return ((const float *)row)[i];
}

#define BYTES 4
#define ONE_ROW_SUMS most_sums
#define DOTS mla_dots_f32_avx2
#define MIX mla_mix_f32_avx2
#include "rows_avx2.h"
