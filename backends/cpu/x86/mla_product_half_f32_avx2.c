/*
 * The product for a panel whose first eight lanes are all that is in use: one
 * register a row. Twelve rows are twelve sums, one register holds the lanes of
 * b, one a row's number: thirteen loads against twelve FMAs.
 */
#include <immintrin.h>

#include "cpu_kernels.h"

mla_cpu_product_fn mla_product_half_f32_avx2;

#define LANES MLA_CPU_LANES

/* Two rows of c, the first eight lanes of each. */
typedef struct pair {
  __m256 first, second;
} pair;

static inline pair zero(void) {
  pair s = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  return s;
}

static inline pair add(pair s, const float *a, int64_t row, __m256 b) {
  s.first = _mm256_fmadd_ps(_mm256_broadcast_ss(a), b, s.first);
  s.second = _mm256_fmadd_ps(_mm256_broadcast_ss(a + row), b, s.second);
  return s;
}

static inline void put_row(__m256 s, const float *beta, float *c) {
  if (beta) s = _mm256_fmadd_ps(_mm256_loadu_ps(beta), _mm256_load_ps(c), s);
  _mm256_store_ps(c, s);
}

static inline void put(pair s, const float *beta, float *c) {
  put_row(s.first, beta, c);
  put_row(s.second, beta, c + LANES);
}

static void twelve_rows(int64_t k, const float *a, int64_t row, int64_t col,
                        const float *b, const float *beta, float *c) {
  pair s0 = zero(), s1 = zero(), s2 = zero();
  pair s3 = zero(), s4 = zero(), s5 = zero();
  const float *a4 = a + 4 * row, *a8 = a + 8 * row;
  for (int64_t p = 0; p < k; p++) {
    __m256 x = _mm256_load_ps(b);
    s0 = add(s0, a, row, x);
    s1 = add(s1, a + 2 * row, row, x);
    s2 = add(s2, a4, row, x);
    s3 = add(s3, a4 + 2 * row, row, x);
    s4 = add(s4, a8, row, x);
    s5 = add(s5, a8 + 2 * row, row, x);
    a += col;
    a4 += col;
    a8 += col;
    b += LANES;
  }
  put(s0, beta, c);
  put(s1, beta, c + 2 * LANES);
  put(s2, beta, c + 4 * LANES);
  put(s3, beta, c + 6 * LANES);
  put(s4, beta, c + 8 * LANES);
  put(s5, beta, c + 10 * LANES);
}

/* Eight chains still fill both units. */
static void eight_rows(int64_t k, const float *a, int64_t row, int64_t col,
                       const float *b, const float *beta, float *c) {
  pair s0 = zero(), s1 = zero(), s2 = zero(), s3 = zero();
  const float *a4 = a + 4 * row;
  for (int64_t p = 0; p < k; p++, a += col, a4 += col, b += LANES) {
    __m256 x = _mm256_load_ps(b);
    s0 = add(s0, a, row, x);
    s1 = add(s1, a + 2 * row, row, x);
    s2 = add(s2, a4, row, x);
    s3 = add(s3, a4 + 2 * row, row, x);
  }
  put(s0, beta, c);
  put(s1, beta, c + 2 * LANES);
  put(s2, beta, c + 4 * LANES);
  put(s3, beta, c + 6 * LANES);
}

static void two_rows(int64_t k, const float *a, int64_t row, int64_t col,
                     const float *b, const float *beta, float *c) {
  pair s = zero();
  for (int64_t p = 0; p < k; p++, a += col, b += LANES)
    s = add(s, a, row, _mm256_load_ps(b));
  put(s, beta, c);
}

static void one_row(int64_t k, const float *a, int64_t col, const float *b,
                    const float *beta, float *c) {
  __m256 s = _mm256_setzero_ps();
  for (int64_t p = 0; p < k; p++, a += col, b += LANES)
    s = _mm256_fmadd_ps(_mm256_broadcast_ss(a), _mm256_load_ps(b), s);
  put_row(s, beta, c);
}

void mla_product_half_f32_avx2(int64_t m, int64_t k, const float *a,
                               int64_t row, int64_t col, const float *b,
                               const float *beta, float *c) {
  int64_t i = 0;
  for (; i + 12 <= m && m - i != 16; i += 12) /* 16 are twice 8 */
    twelve_rows(k, a + i * row, row, col, b, beta, c + i * LANES);
  for (; i + 8 <= m; i += 8)
    eight_rows(k, a + i * row, row, col, b, beta, c + i * LANES);
  for (; i + 2 <= m; i += 2)
    two_rows(k, a + i * row, row, col, b, beta, c + i * LANES);
  if (i < m) one_row(k, a + i * row, col, b, beta, c + i * LANES);
}
