/*
 * The product with AVX2 and FMA: six rows by sixteen lanes are twelve of the
 * sixteen registers, two hold the lanes of b, one the row's number. Twelve
 * FMAs a step against eight loads: two FMAs a cycle on any core with as many
 * units and two load ports or more.
 */
#include <immintrin.h>

#include "cpu_kernels.h"

mla_cpu_product_fn mla_product_f32_avx2;
mla_cpu_pack_fn mla_pack_f32_avx2;

#define LANES MLA_CPU_LANES

/* One row of c: sums of the low and the high eight lanes. */
typedef struct row_sum {
  __m256 low, high;
} row_sum;

static inline row_sum zero(void) {
  row_sum s = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  return s;
}

static inline row_sum add(row_sum s, const float *a, __m256 low, __m256 high) {
  __m256 x = _mm256_broadcast_ss(a);
  s.low = _mm256_fmadd_ps(x, low, s.low);
  s.high = _mm256_fmadd_ps(x, high, s.high);
  return s;
}

static inline void put(row_sum s, const float *beta, float *c) {
  if (beta) {
    s.low = _mm256_fmadd_ps(_mm256_loadu_ps(beta), _mm256_load_ps(c), s.low);
    s.high = _mm256_fmadd_ps(_mm256_loadu_ps(beta + 8), _mm256_load_ps(c + 8),
                             s.high);
  }
  _mm256_store_ps(c, s.low);
  _mm256_store_ps(c + 8, s.high);
}

static void six_rows(int64_t k, const float *a, int64_t row, int64_t col,
                     const float *b, const float *beta, float *c) {
  row_sum s0 = zero(), s1 = zero(), s2 = zero();
  row_sum s3 = zero(), s4 = zero(), s5 = zero();
  const float *a3 = a + 3 * row;
  for (int64_t p = 0; p < k; p++) {
    __m256 low = _mm256_load_ps(b), high = _mm256_load_ps(b + 8);
    s0 = add(s0, a, low, high);
    s1 = add(s1, a + row, low, high);
    s2 = add(s2, a + 2 * row, low, high);
    s3 = add(s3, a3, low, high);
    s4 = add(s4, a3 + row, low, high);
    s5 = add(s5, a3 + 2 * row, low, high);
    a += col;
    a3 += col;
    b += LANES;
  }
  put(s0, beta, c);
  put(s1, beta, c + LANES);
  put(s2, beta, c + 2 * LANES);
  put(s3, beta, c + 3 * LANES);
  put(s4, beta, c + 4 * LANES);
  put(s5, beta, c + 5 * LANES);
}

/* The tail of a block of 64: eight chains still fill both units. */
static void four_rows(int64_t k, const float *a, int64_t row, int64_t col,
                      const float *b, const float *beta, float *c) {
  row_sum s0 = zero(), s1 = zero(), s2 = zero(), s3 = zero();
  const float *a2 = a + 2 * row;
  for (int64_t p = 0; p < k; p++, a += col, a2 += col, b += LANES) {
    __m256 low = _mm256_load_ps(b), high = _mm256_load_ps(b + 8);
    s0 = add(s0, a, low, high);
    s1 = add(s1, a + row, low, high);
    s2 = add(s2, a2, low, high);
    s3 = add(s3, a2 + row, low, high);
  }
  put(s0, beta, c);
  put(s1, beta, c + LANES);
  put(s2, beta, c + 2 * LANES);
  put(s3, beta, c + 3 * LANES);
}

static void two_rows(int64_t k, const float *a, int64_t row, int64_t col,
                     const float *b, const float *beta, float *c) {
  row_sum s0 = zero(), s1 = zero();
  for (int64_t p = 0; p < k; p++, a += col, b += LANES) {
    __m256 low = _mm256_load_ps(b), high = _mm256_load_ps(b + 8);
    s0 = add(s0, a, low, high);
    s1 = add(s1, a + row, low, high);
  }
  put(s0, beta, c);
  put(s1, beta, c + LANES);
}

static void one_row(int64_t k, const float *a, int64_t col, const float *b,
                    const float *beta, float *c) {
  row_sum s = zero();
  for (int64_t p = 0; p < k; p++, a += col, b += LANES)
    s = add(s, a, _mm256_load_ps(b), _mm256_load_ps(b + 8));
  put(s, beta, c);
}

void mla_product_f32_avx2(int64_t m, int64_t k, const float *a, int64_t row,
                          int64_t col, const float *b, const float *beta,
                          float *c) {
  int64_t i = 0;
  for (; i + 6 <= m && m - i != 8; i += 6) /* 8 are twice 4: 2 are slow */
    six_rows(k, a + i * row, row, col, b, beta, c + i * LANES);
  for (; i + 4 <= m; i += 4)
    four_rows(k, a + i * row, row, col, b, beta, c + i * LANES);
  for (; i + 2 <= m; i += 2)
    two_rows(k, a + i * row, row, col, b, beta, c + i * LANES);
  if (i < m) one_row(k, a + i * row, col, b, beta, c + i * LANES);
}

/* Eight rows of eight to eight columns. */
static inline void transpose_8(const float *from, int64_t ld, __m256 scale,
                               float *to) {
  __m256 r[8], t[8];
  for (int i = 0; i < 8; i++)
    r[i] = _mm256_mul_ps(scale, _mm256_loadu_ps(from + i * ld));
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; i++) {
    _mm256_store_ps(to + i * LANES,
                    _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_store_ps(to + (i + 4) * LANES,
                    _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

void mla_pack_f32_avx2(float *panel, const float *rows, int64_t ld, int64_t k,
                       float scale) {
  int64_t p = 0;
  __m256 times = _mm256_set1_ps(scale);
  for (; p + 8 <= k; p += 8) {
    transpose_8(rows + p, ld, times, panel + p * LANES);
    transpose_8(rows + 8 * ld + p, ld, times, panel + p * LANES + 8);
  }
  for (; p < k; p++)
    for (int x = 0; x < LANES; x++)
      panel[p * LANES + x] = scale * rows[x * ld + p];
}
