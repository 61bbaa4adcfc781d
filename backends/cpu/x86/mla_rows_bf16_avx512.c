/*
 * Few rows against keys of bf16 with AVX-512: as mla_rows_bf16_avx2.c, 32
 * columns at a time. Sixteen sums are in registers, of eight rows with two keys
 * as of two with eight. One row has eight: more would not do, since what binds
 * it is conversions, and sixteen keys' addresses have no room in registers.
 */
#include <immintrin.h>

#include "cpu_kernels.h"
#include "few_rows.h"
#include "half.h"

mla_cpu_dots_fn mla_dots_bf16_avx512;
mla_cpu_mix_fn mla_mix_bf16_avx512;
mla_cpu_spread_fn mla_spread_bf16_avx512;

/* Sums are in registers only where the number of rows is known: gcc thinks
   these too long to be copied for each. */
#define INLINE static inline __attribute__((always_inline))

enum { sums = 16, most_keys = 8 };

/* Keys that so many rows meet at a time. */
INLINE int keys_of(int rows) {
  return rows == 1 ? most_keys : sums / rows;
}

/* Even columns and odd ones of 32, or of 16 and zeros. */
typedef struct split {
  __m512 even, odd;
} split;

INLINE split columns(const void *row, int64_t i, int whole) {
  const uint16_t *at = (const uint16_t *)row + i;
  __m512i x =
      whole ? _mm512_loadu_si512(at) : _mm512_maskz_loadu_epi16(0xFFFF, at);
  __m512i odd = _mm512_and_si512(x, _mm512_set1_epi32((int)0xFFFF0000u));
  split s = {_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)),
             _mm512_castsi512_ps(odd)};
  return s;
}

/* The same of a query in this file's order. */
INLINE split taken(const float *from, int whole) {
  split s = {_mm512_loadu_ps(from),
             _mm512_maskz_loadu_ps(whole ? 0xFFFF : 0, from + 16)};
  if (!whole) { /* eight even ones, eight odd ones */
    s.odd = _mm512_shuffle_f32x4(s.even, s.odd, 0xEE);
    s.even = _mm512_shuffle_f32x4(s.even, _mm512_setzero_ps(), 0x44);
  }
  return s;
}

/* To the order of acc, even and odd by eight. */
INLINE void add_up(split s, __m512 beta, int whole, float *to) {
  __m512 a = _mm512_shuffle_f32x4(s.even, s.odd, 0x44);
  __m512 b = _mm512_shuffle_f32x4(s.even, s.odd, 0xEE);
  _mm512_storeu_ps(to, _mm512_fmadd_ps(beta, _mm512_loadu_ps(to), a));
  if (whole)
    _mm512_storeu_ps(to + 16,
                     _mm512_fmadd_ps(beta, _mm512_loadu_ps(to + 16), b));
}

static inline float one(const void *row, int64_t i) {
  return mla_bf16_to_f32(((const uint16_t *)row)[i]);
}

/* ----------------------------------------------------------------- queries */

/* So many even ones, then as many odd ones. */
INLINE void apart(float *q, const float *line, int pairs, float scale) {
  for (int k = 0; k < pairs; k++) {
    q[k] = scale * line[2 * k];
    q[pairs + k] = scale * line[2 * k + 1];
  }
}

void mla_spread_bf16_avx512(float *q, const float *line, int64_t n,
                            float scale) {
  int64_t c = 0;
  for (; c + 32 <= n; c += 32) apart(q + c, line + c, 16, scale);
  if (c + 16 <= n) {
    apart(q + c, line + c, 8, scale);
    c += 16;
  }
  for (; c < n; c++) q[c] = scale * line[c];
}

/* ------------------------------------------------------------------ scores */

INLINE void dots_step(int64_t c, int whole, const void *const *key,
                      const float *const *q, int rows, const void *const *next,
                      __m512 s[sums]) {
  int keys = keys_of(rows);
  hint_keys(next, keys, rows, 2 * c);
  split y[most_keys];
  for (int j = 0; rows > 1 && j < keys; j++) y[j] = columns(key[j], c, whole);
  for (int i = 0; i < rows; i++) {
    split x = taken(q[i] + c, whole);
    for (int j = 0; j < keys; j++) {
      split k = rows > 1 ? y[j] : columns(key[j], c, whole);
      __m512 *to = &s[i * keys + j];
      *to = _mm512_fmadd_ps(k.even, x.even, *to);
      *to = _mm512_fmadd_ps(k.odd, x.odd, *to);
    }
  }
}

/* Word i: the sum of s[i], by halves: each step leaves half as many registers,
   with the sums of both beside each other. */
INLINE __m512 add_across(__m512 s[sums]) {
  for (int i = 0; i < 8; i++) /* words in pairs: of s[2 i] and s[2 i + 1] */
    s[i] = _mm512_add_ps(_mm512_unpacklo_ps(s[2 * i], s[2 * i + 1]),
                         _mm512_unpackhi_ps(s[2 * i], s[2 * i + 1]));
  for (int i = 0; i < 4; i++) /* a quarter: a word of each of four */
    s[i] = _mm512_add_ps(_mm512_shuffle_ps(s[2 * i], s[2 * i + 1], 0x44),
                         _mm512_shuffle_ps(s[2 * i], s[2 * i + 1], 0xEE));
  for (int i = 0; i < 2; i++)
    s[i] = _mm512_add_ps(_mm512_shuffle_f32x4(s[2 * i], s[2 * i + 1], 0x88),
                         _mm512_shuffle_f32x4(s[2 * i], s[2 * i + 1], 0xDD));
  s[0] = _mm512_add_ps(_mm512_shuffle_f32x4(s[0], s[1], 0x88),
                       _mm512_shuffle_f32x4(s[0], s[1], 0xDD));
  return s[0];
}

/* sum[i * keys + j]: row i of q times key j; zeros behind them. */
INLINE void dots_some(int64_t k, const void *const *key, const float *const *q,
                      int rows, const void *const *next, float *sum) {
  int keys = keys_of(rows);
  int64_t c = 0;
  __m512 s[sums];
  for (int i = 0; i < sums; i++) s[i] = _mm512_setzero_ps();
  for (; c + 32 <= k; c += 32) dots_step(c, 1, key, q, rows, next, s);
  if (c + 16 <= k) dots_step(c, 0, key, q, rows, next, s);
  c = k / 16 * 16;
  __m512 t[sums]; /* else all of s would live in memory */
  for (int i = 0; i < sums; i++) t[i] = s[i];
  _mm512_storeu_ps(sum, add_across(t));
  for (; c < k; c++)
    for (int i = 0; i < keys * rows; i++)
      sum[i] += one(key[i % keys], c) * q[i / keys][c];
}

INLINE void dots_rows(int64_t n, int64_t k, const void *const *key,
                      const float *const *q, float *const *scores, int rows,
                      const void *const *next) {
  int keys = keys_of(rows);
  float sum[sums];
  for (int64_t j = 0; j < n; j += keys) {
    const void *here[most_keys];
    for (int x = 0; x < keys; x++) here[x] = key[j + x < n ? j + x : n - 1];
    dots_some(k, here, q, rows, next && j + keys <= n ? next + j / 2 : NULL,
              sum);
    for (int i = 0; i < rows; i++)
      for (int x = 0; x < keys && j + x < n; x++)
        scores[i][j + x] = sum[i * keys + x];
  }
}

void mla_dots_bf16_avx512(int64_t n, int64_t k, const void *const *keys,
                          int rows, const float *const *q, float *const *scores,
                          const void *const *next) {
  if (rows == 8)
    dots_rows(n, k, keys, q, scores, 8, next);
  else if (rows == 4)
    dots_rows(n, k, keys, q, scores, 4, next);
  else if (rows == 2)
    dots_rows(n, k, keys, q, scores, 2, next);
  else
    dots_rows(n, k, keys, q, scores, 1, next);
}

/* ------------------------------------------------------------------ values */

/* 32 * groups columns from c on, or 16, of `rows` rows; rows * groups is 8 or
   less. */
INLINE void mix_some(int64_t n, const void *const *value, int64_t c, int groups,
                     int whole, const float *w, const float *beta,
                     float *const *acc, int rows, const void *const *next) {
  split s[8];
  for (int i = 0; i < groups * rows; i++)
    s[i].even = s[i].odd = _mm512_setzero_ps();
  for (int64_t j = 0; j < n; j++) {
    hint_values(next, n, j, c / (32 * groups), 16 / groups, rows, 1024);
    for (int g = 0; g < groups; g++) {
      split x = columns(value[j], c + 32 * g, whole);
      for (int i = 0; i < rows; i++) {
        __m512 p = _mm512_set1_ps(w[i * MLA_CPU_BLOCK + j]);
        split *to = &s[i * groups + g];
        to->even = _mm512_fmadd_ps(p, x.even, to->even);
        to->odd = _mm512_fmadd_ps(p, x.odd, to->odd);
      }
    }
  }
  for (int i = 0; i < rows; i++)
    for (int g = 0; g < groups; g++)
      add_up(s[i * groups + g], _mm512_set1_ps(beta[i]), whole,
             acc[i] + c + 32 * g);
}

INLINE void mix_rows(int64_t end, int64_t n, const void *const *value,
                     const float *w, const float *beta, float *const *acc,
                     int rows, const void *const *next) {
  int groups = rows > 2 ? 8 / rows : 4;
  int64_t c = 0;
  for (; c + 32 * groups <= end; c += 32 * groups)
    mix_some(n, value, c, groups, 1, w, beta, acc, rows, next);
  for (; groups > 1 && c + 32 <= end; c += 32)
    mix_some(n, value, c, 1, 1, w, beta, acc, rows, next);
  if (c + 16 <= end) {
    mix_some(n, value, c, 1, 0, w, beta, acc, rows, next);
    c += 16;
  }
  for (; c < end; c++)
    for (int i = 0; i < rows; i++) {
      float s = 0.0f;
      for (int64_t j = 0; j < n; j++)
        s += w[i * MLA_CPU_BLOCK + j] * one(value[j], c);
      acc[i][c] = beta[i] * acc[i][c] + s;
    }
}

void mla_mix_bf16_avx512(int64_t columns, int64_t n, const void *const *values,
                         int rows, const float *weights, const float *beta,
                         float *const *acc, const void *const *next) {
  if (rows == 8)
    mix_rows(columns, n, values, weights, beta, acc, 8, next);
  else if (rows == 4)
    mix_rows(columns, n, values, weights, beta, acc, 4, next);
  else if (rows == 2)
    mix_rows(columns, n, values, weights, beta, acc, 2, next);
  else
    mix_rows(columns, n, values, weights, beta, acc, 1, next);
}
