/*
 * Scores of int8 codes with AVX2. vpmaddwd multiplies sixteen pairs of 16-bit
 * numbers and adds each pair: with the additions twice as many products a cycle
 * as f32 has, and exact. (vpmaddubsw takes bytes, but one operand unsigned, so
 * that signs cost as much as it saves.) Six keys by sixteen lanes are what
 * sixteen registers hold.
 */
#include <immintrin.h>
#include <string.h>

#include "cpu_kernels.h"

mla_cpu_codes_fn mla_codes_i8_avx2, mla_codes_half_i8_avx2;
mla_cpu_widen_codes_fn mla_widen_codes_i8_avx2;

#define LANES MLA_CPU_LANES

/* What scales a sum: of the lanes, low and high eight, and of all. */
typedef struct scales {
  __m256 low, high, times;
} scales;

/* One key: sums of the low and the high eight lanes. */
typedef struct key_sum {
  __m256i low, high;
} key_sum;

static inline __m256i load_16(const int16_t *from) {
  return _mm256_load_si256((const __m256i *)(const void *)from);
}

static inline __m256i pair_of(const int16_t *key) {
  int32_t pair;
  memcpy(&pair, key, sizeof pair);
  return _mm256_set1_epi32(pair);
}

static inline __m256i add_one(__m256i sum, const int16_t *key, __m256i q) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pair_of(key), q));
}

static inline key_sum zero(void) {
  key_sum s = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  return s;
}

static inline key_sum add(key_sum s, const int16_t *key, __m256i low,
                          __m256i high) {
  __m256i x = pair_of(key);
  s.low = _mm256_add_epi32(s.low, _mm256_madd_epi16(x, low));
  s.high = _mm256_add_epi32(s.high, _mm256_madd_epi16(x, high));
  return s;
}

static inline void put_one(__m256i sum, __m256 lanes, __m256 times, float key,
                           float *c) {
  __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), lanes);
  x = _mm256_mul_ps(x, times);
  _mm256_store_ps(c, _mm256_mul_ps(x, _mm256_set1_ps(key)));
}

static inline void put(key_sum s, const scales *by, float key, float *c) {
  put_one(s.low, by->low, by->times, key, c);
  put_one(s.high, by->high, by->times, key, c + 8);
}

static void six_keys(int64_t pairs, const int16_t *a, int64_t row,
                     const float *key, const int16_t *q, const scales *by,
                     float *c) {
  key_sum s0 = zero(), s1 = zero(), s2 = zero();
  key_sum s3 = zero(), s4 = zero(), s5 = zero();
  const int16_t *a3 = a + 3 * row;
  for (int64_t p = 0; p < pairs; p++) {
    __m256i low = load_16(q), high = load_16(q + LANES);
    s0 = add(s0, a, low, high);
    s1 = add(s1, a + row, low, high);
    s2 = add(s2, a + 2 * row, low, high);
    s3 = add(s3, a3, low, high);
    s4 = add(s4, a3 + row, low, high);
    s5 = add(s5, a3 + 2 * row, low, high);
    a += 2;
    a3 += 2;
    q += 2 * LANES;
  }
  put(s0, by, key[0], c);
  put(s1, by, key[1], c + LANES);
  put(s2, by, key[2], c + 2 * LANES);
  put(s3, by, key[3], c + 3 * LANES);
  put(s4, by, key[4], c + 4 * LANES);
  put(s5, by, key[5], c + 5 * LANES);
}

static void four_keys(int64_t pairs, const int16_t *a, int64_t row,
                      const float *key, const int16_t *q, const scales *by,
                      float *c) {
  key_sum s0 = zero(), s1 = zero(), s2 = zero(), s3 = zero();
  const int16_t *a2 = a + 2 * row;
  for (int64_t p = 0; p < pairs; p++, a += 2, a2 += 2, q += 2 * LANES) {
    __m256i low = load_16(q), high = load_16(q + LANES);
    s0 = add(s0, a, low, high);
    s1 = add(s1, a + row, low, high);
    s2 = add(s2, a2, low, high);
    s3 = add(s3, a2 + row, low, high);
  }
  put(s0, by, key[0], c);
  put(s1, by, key[1], c + LANES);
  put(s2, by, key[2], c + 2 * LANES);
  put(s3, by, key[3], c + 3 * LANES);
}

static void one_key(int64_t pairs, const int16_t *a, float key,
                    const int16_t *q, const scales *by, float *c) {
  key_sum s = zero();
  for (int64_t p = 0; p < pairs; p++, a += 2, q += 2 * LANES)
    s = add(s, a, load_16(q), load_16(q + LANES));
  put(s, by, key, c);
}

void mla_codes_i8_avx2(int64_t m, int64_t pairs, const int16_t *keys,
                       int64_t row, const float *key_scale, const int16_t *q,
                       const float *q_scale, float times, float *c) {
  const scales by = {_mm256_loadu_ps(q_scale), _mm256_loadu_ps(q_scale + 8),
                     _mm256_set1_ps(times)};
  int64_t i = 0;
  for (; i + 6 <= m && m - i != 8; i += 6)
    six_keys(pairs, keys + i * row, row, key_scale + i, q, &by, c + i * LANES);
  for (; i + 4 <= m; i += 4)
    four_keys(pairs, keys + i * row, row, key_scale + i, q, &by, c + i * LANES);
  for (; i < m; i++)
    one_key(pairs, keys + i * row, key_scale[i], q, &by, c + i * LANES);
}

/* The low eight lanes of six keys: six sums wait for no addition, which takes
   one cycle. */
static void six_halves(int64_t pairs, const int16_t *a, int64_t row,
                       const float *key, const int16_t *q, const scales *by,
                       float *c) {
  key_sum s0 = zero(), s1 = zero(), s2 = zero();
  const int16_t *a3 = a + 3 * row;
  for (int64_t p = 0; p < pairs; p++, a += 2, a3 += 2, q += 2 * LANES) {
    __m256i x = load_16(q);
    s0.low = add_one(s0.low, a, x);
    s0.high = add_one(s0.high, a + row, x);
    s1.low = add_one(s1.low, a + 2 * row, x);
    s1.high = add_one(s1.high, a3, x);
    s2.low = add_one(s2.low, a3 + row, x);
    s2.high = add_one(s2.high, a3 + 2 * row, x);
  }
  put_one(s0.low, by->low, by->times, key[0], c);
  put_one(s0.high, by->low, by->times, key[1], c + LANES);
  put_one(s1.low, by->low, by->times, key[2], c + 2 * LANES);
  put_one(s1.high, by->low, by->times, key[3], c + 3 * LANES);
  put_one(s2.low, by->low, by->times, key[4], c + 4 * LANES);
  put_one(s2.high, by->low, by->times, key[5], c + 5 * LANES);
}

void mla_codes_half_i8_avx2(int64_t m, int64_t pairs, const int16_t *keys,
                            int64_t row, const float *key_scale,
                            const int16_t *q, const float *q_scale, float times,
                            float *c) {
  const scales by = {_mm256_loadu_ps(q_scale), _mm256_setzero_ps(),
                     _mm256_set1_ps(times)};
  int64_t i = 0;
  for (; i + 6 <= m; i += 6)
    six_halves(pairs, keys + i * row, row, key_scale + i, q, &by,
               c + i * LANES);
  for (; i < m; i++) {
    __m256i s = _mm256_setzero_si256();
    for (int64_t p = 0; p < pairs; p++)
      s = add_one(s, keys + i * row + 2 * p, load_16(q + 2 * LANES * p));
    put_one(s, by.low, by.times, key_scale[i], c + i * LANES);
  }
}

void mla_widen_codes_i8_avx2(int16_t *to, const void *from, int64_t n) {
  const signed char *code = from;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(code + i));
    _mm256_storeu_si256((__m256i *)(void *)(to + i), _mm256_cvtepi8_epi16(x));
  }
  for (; i < n; i++) to[i] = code[i];
}
