/* Few rows against keys of bf16: a 32-bit word holds two, the odd one as its
   upper half and so an f32 once the even one is masked away. */
#include <immintrin.h>

#include "cpu_kernels.h"
#include "few_rows.h"
#include "half.h"

mla_cpu_dots_fn mla_dots_bf16_avx2;
mla_cpu_mix_fn mla_mix_bf16_avx2;
mla_cpu_spread_fn mla_spread_bf16_avx2;

/* Even ones by a byte shuffle: a shift would want the units that multiply. */
static inline void two(const void *row, int64_t i, __m256 *a, __m256 *b) {
  const __m256i up = _mm256_setr_epi8(-1, -1, 0, 1, -1, -1, 4, 5, -1, -1, 8, 9,
                                      -1, -1, 12, 13, -1, -1, 0, 1, -1, -1, 4,
                                      5, -1, -1, 8, 9, -1, -1, 12, 13);
  const uint16_t *at = (const uint16_t *)row + i;
  __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)at);
  __m256i odd = _mm256_and_si256(x, _mm256_set1_epi32((int)0xFFFF0000u));
  *a = _mm256_castsi256_ps(_mm256_shuffle_epi8(x, up));
  *b = _mm256_castsi256_ps(odd);
}

static inline float one(const void *row, int64_t i) {
  return mla_bf16_to_f32(((const uint16_t *)row)[i]);
}

#define BYTES 2
#define ONE_ROW_SUMS few_sums
#define DOTS mla_dots_bf16_avx2
#define MIX mla_mix_bf16_avx2
#include "rows_avx2.h"

void mla_spread_bf16_avx2(float *q, const float *line, int64_t n, float scale) {
  int64_t c = 0;
  for (; c + 16 <= n; c += 16)
    for (int k = 0; k < 8; k++) {
      q[c + k] = scale * line[c + 2 * k];
      q[c + 8 + k] = scale * line[c + 2 * k + 1];
    }
  for (; c < n; c++) q[c] = scale * line[c];
}
