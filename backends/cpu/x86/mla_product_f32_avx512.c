/*
 * The product with AVX-512: sixteen lanes are one register, so a row costs one
 * multiply-add whose number comes straight from memory, broadcast. Twenty-four
 * rows take 24 of 32 registers and 25 loads a step: two multiply-adds a cycle
 * on a core that loads twice a cycle, to within 4 %.
 */
#include <immintrin.h>

#include "cpu_kernels.h"
#include "transpose_avx512.h"

mla_cpu_product_fn mla_product_f32_avx512;
mla_cpu_pack_fn mla_pack_f32_avx512;

#define LANES MLA_CPU_LANES

/* Rows by number, with the pointer they count from and their distance to it:
   five share one, since an address takes no more of 1, 2, 3 and 4 times. */
#define ROWS_8(X)   \
  X(0, a0, 0)       \
  X(1, a0, row)     \
  X(2, a0, 2 * row) \
  X(3, a0, 3 * row) \
  X(4, a0, 4 * row) X(5, a1, 0) X(6, a1, row) X(7, a1, 2 * row)
#define ROWS_16(X)  \
  ROWS_8(X)         \
  X(8, a1, 3 * row) \
  X(9, a1, 4 * row) \
  X(10, a2, 0)      \
  X(11, a2, row)    \
  X(12, a2, 2 * row) X(13, a2, 3 * row) X(14, a2, 4 * row) X(15, a3, 0)
#define ROWS_24(X)   \
  ROWS_16(X)         \
  X(16, a3, row)     \
  X(17, a3, 2 * row) \
  X(18, a3, 3 * row) \
  X(19, a3, 4 * row) \
  X(20, a4, 0) X(21, a4, row) X(22, a4, 2 * row) X(23, a4, 3 * row)

#define ZERO(i, from, away) __m512 s##i = _mm512_setzero_ps();
#define STEP(i, from, away) \
  s##i = _mm512_fmadd_ps(_mm512_set1_ps((from)[away]), x, s##i);
#define PUT(i, from, away) put(s##i, beta, c + (i)*LANES);

static inline void put(__m512 s, const float *beta, float *c) {
  if (beta) s = _mm512_fmadd_ps(_mm512_loadu_ps(beta), _mm512_load_ps(c), s);
  _mm512_store_ps(c, s);
}

/* Where `row` is known to be 1 the addresses are one pointer and constants. */
static inline void rows_24(int64_t k, const float *a, int64_t row, int64_t col,
                           const float *b, const float *beta, float *c) {
  const float *a0 = a, *a1 = a + 5 * row, *a2 = a + 10 * row;
  const float *a3 = a + 15 * row, *a4 = a + 20 * row;
  ROWS_24(ZERO)
  for (int64_t p = 0; p < k; p++, b += LANES) {
    __m512 x = _mm512_load_ps(b);
    ROWS_24(STEP)
    a0 += col;
    a1 += col;
    a2 += col;
    a3 += col;
    a4 += col;
  }
  ROWS_24(PUT)
}

static inline void rows_16(int64_t k, const float *a, int64_t row, int64_t col,
                           const float *b, const float *beta, float *c) {
  const float *a0 = a, *a1 = a + 5 * row, *a2 = a + 10 * row,
              *a3 = a + 15 * row;
  ROWS_16(ZERO)
  for (int64_t p = 0; p < k; p++, b += LANES) {
    __m512 x = _mm512_load_ps(b);
    ROWS_16(STEP)
    a0 += col;
    a1 += col;
    a2 += col;
    a3 += col;
  }
  ROWS_16(PUT)
}

static inline void rows_8(int64_t k, const float *a, int64_t row, int64_t col,
                          const float *b, const float *beta, float *c) {
  const float *a0 = a, *a1 = a + 5 * row;
  ROWS_8(ZERO)
  for (int64_t p = 0; p < k; p++, b += LANES, a0 += col, a1 += col) {
    __m512 x = _mm512_load_ps(b);
    ROWS_8(STEP)
  }
  ROWS_8(PUT)
}

static inline void two_rows(int64_t k, const float *a, int64_t row, int64_t col,
                            const float *b, const float *beta, float *c) {
  __m512 s0 = _mm512_setzero_ps(), s1 = s0;
  for (int64_t p = 0; p < k; p++, b += LANES, a += col) {
    __m512 x = _mm512_load_ps(b);
    s0 = _mm512_fmadd_ps(_mm512_set1_ps(a[0]), x, s0);
    s1 = _mm512_fmadd_ps(_mm512_set1_ps(a[row]), x, s1);
  }
  put(s0, beta, c);
  put(s1, beta, c + LANES);
}

static inline void one_row(int64_t k, const float *a, int64_t col,
                           const float *b, const float *beta, float *c) {
  __m512 s = _mm512_setzero_ps();
  for (int64_t p = 0; p < k; p++, b += LANES, a += col)
    s = _mm512_fmadd_ps(_mm512_set1_ps(*a), _mm512_load_ps(b), s);
  put(s, beta, c);
}

static inline void all_rows(int64_t m, int64_t k, const float *a, int64_t row,
                            int64_t col, const float *b, const float *beta,
                            float *c) {
  int64_t i = 0;
  for (; i + 24 <= m; i += 24)
    rows_24(k, a + i * row, row, col, b, beta, c + i * LANES);
  for (; i + 16 <= m; i += 16)
    rows_16(k, a + i * row, row, col, b, beta, c + i * LANES);
  for (; i + 8 <= m; i += 8)
    rows_8(k, a + i * row, row, col, b, beta, c + i * LANES);
  for (; i + 2 <= m; i += 2)
    two_rows(k, a + i * row, row, col, b, beta, c + i * LANES);
  if (i < m) one_row(k, a + i * row, col, b, beta, c + i * LANES);
}

/* Values are walked along rows, keys along columns: one stride is 1. */
void mla_product_f32_avx512(int64_t m, int64_t k, const float *a, int64_t row,
                            int64_t col, const float *b, const float *beta,
                            float *c) {
  if (row == 1)
    all_rows(m, k, a, 1, col, b, beta, c);
  else
    all_rows(m, k, a, row, col, b, beta, c);
}

/* Sixteen rows of sixteen to as many columns. */
static inline void transpose_16(const float *from, int64_t ld, __m512 scale,
                                float *to) {
  __m512 r[16];
  for (int i = 0; i < 16; i++)
    r[i] = _mm512_mul_ps(scale, _mm512_loadu_ps(from + i * ld));
  mla_transpose_avx512(r);
  for (int i = 0; i < 16; i++) _mm512_store_ps(to + i * LANES, r[i]);
}

void mla_pack_f32_avx512(float *panel, const float *rows, int64_t ld, int64_t k,
                         float scale) {
  int64_t p = 0;
  __m512 times = _mm512_set1_ps(scale);
  for (; p + 16 <= k; p += 16)
    transpose_16(rows + p, ld, times, panel + p * LANES);
  for (; p < k; p++)
    for (int x = 0; x < LANES; x++)
      panel[p * LANES + x] = scale * rows[x * ld + p];
}
