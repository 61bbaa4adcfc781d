/*
 * rows_avx2.h - dots and mix with AVX2 and FMA, for one type of keys: what
 * includes it defines
 *
 *   static inline void two(const void *row, int64_t i, __m256 *a, __m256 *b)
 *     columns i .. i + 15, i a multiple of 16, in the order of cpu_kernels.h
 *   static inline float one(const void *row, int64_t i)
 *   BYTES of a number
 *   ONE_ROW_SUMS: few_sums, if converting takes two registers for constants
 *     and sums would have to leave theirs for them, or most_sums
 *   DOTS, MIX: the names of the two kernels.
 *
 * Eight sums in registers or twelve, whatever the number of rows, and each is
 * added up in the same order: a row's bits do not depend on how many there are.
 * A multiply-add takes four cycles and two start in each, so that eight sums
 * leave no slack where conversions come between.
 */
enum { few_sums = 8, most_sums = 12 };

/* The eight numbers of each of four registers added up. */
static inline __m128 sum_4(const __m256 *s) {
  __m256 a =
      _mm256_hadd_ps(_mm256_hadd_ps(s[0], s[1]), _mm256_hadd_ps(s[2], s[3]));
  return _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
}

/* sum[i * keys + j]: row i of q times key j; rows * keys is few_sums or
   most_sums. */
static inline void dots_some(int64_t k, const void *const *key, int keys,
                             const float *const *q, int rows,
                             const void *const *next, float *sum) {
  __m256 s[most_sums];
  for (int i = 0; i < keys * rows; i++) s[i] = _mm256_setzero_ps();
  for (int64_t c = 0; c + 16 <= k; c += 16) {
    hint_keys(next, keys, rows, BYTES * c);
    for (int j = 0; j < keys; j++) {
      __m256 a, b;
      two(key[j], c, &a, &b);
      for (int i = 0; i < rows; i++) {
        __m256 *to = &s[i * keys + j];
        *to = _mm256_fmadd_ps(a, _mm256_load_ps(q[i] + c), *to);
        *to = _mm256_fmadd_ps(b, _mm256_load_ps(q[i] + c + 8), *to);
      }
    }
  }
  _mm_storeu_ps(sum, sum_4(s));
  _mm_storeu_ps(sum + 4, sum_4(s + 4));
  if (keys * rows == most_sums) _mm_storeu_ps(sum + 8, sum_4(s + 8));
  for (int64_t c = k / 16 * 16; c < k; c++)
    for (int i = 0; i < keys * rows; i++)
      sum[i] += one(key[i % keys], c) * q[i / keys][c];
}

static inline void put_sums(const float *sum, int keys, int rows, int64_t count,
                            int64_t j, float *const *scores) {
  for (int i = 0; i < rows; i++)
    for (int x = 0; x < keys && x < count; x++)
      scores[i][j + x] = sum[i * keys + x];
}

/* Keys at a time while there are as many. */
static inline int more_keys(int rows) {
  return rows == 1 ? ONE_ROW_SUMS : (rows == 2 ? few_sums : most_sums) / rows;
}

static inline void dots_rows(int64_t n, int64_t k, const void *const *key,
                             const float *const *q, float *const *scores,
                             int rows, const void *const *next) {
  int keys = few_sums / rows, more = more_keys(rows);
  float sum[most_sums];
  int64_t j = 0;
  for (; j + more <= n; j += more) {
    dots_some(k, key + j, more, q, rows, next ? next + j / 2 : NULL, sum);
    put_sums(sum, more, rows, more, j, scores);
  }
  for (; j < n; j += keys) {
    const void *here[few_sums];
    for (int x = 0; x < keys; x++) here[x] = key[j + x < n ? j + x : n - 1];
    dots_some(k, here, keys, q, rows, NULL, sum);
    put_sums(sum, keys, rows, n - j, j, scores);
  }
}

void DOTS(int64_t n, int64_t k, const void *const *keys, int rows,
          const float *const *q, float *const *scores,
          const void *const *next) {
  if (rows == 8) { /* more than registers have room for */
    dots_rows(n, k, keys, q, scores, 4, next);
    dots_rows(n, k, keys, q + 4, scores + 4, 4, NULL);
  } else if (rows == 4)
    dots_rows(n, k, keys, q, scores, 4, next);
  else if (rows == 2)
    dots_rows(n, k, keys, q, scores, 2, next);
  else
    dots_rows(n, k, keys, q, scores, 1, next);
}

/* 16 * groups columns from c on of `rows` rows; rows * groups is 4 or less. */
static inline void mix_8(int64_t n, const void *const *value, int64_t c,
                         int groups, const float *w, const float *beta,
                         float *const *acc, int rows, const void *const *next) {
  __m256 s[8];
  for (int i = 0; i < 2 * groups * rows; i++) s[i] = _mm256_setzero_ps();
  for (int64_t j = 0; j < n; j++) {
    hint_values(next, n, j, c / (16 * groups), 32 / groups, rows, 512 * BYTES);
    for (int g = 0; g < groups; g++) {
      __m256 a, b;
      two(value[j], c + 16 * g, &a, &b);
      for (int i = 0; i < rows; i++) {
        __m256 p = _mm256_broadcast_ss(w + i * MLA_CPU_BLOCK + j);
        __m256 *to = &s[2 * (i * groups + g)];
        to[0] = _mm256_fmadd_ps(p, a, to[0]);
        to[1] = _mm256_fmadd_ps(p, b, to[1]);
      }
    }
  }
  for (int i = 0; i < rows; i++)
    for (int x = 0; x < 2 * groups; x++) {
      float *to = acc[i] + c + 8 * x;
      _mm256_storeu_ps(
          to, _mm256_fmadd_ps(_mm256_set1_ps(beta[i]), _mm256_loadu_ps(to),
                              s[2 * i * groups + x]));
    }
}

static inline void mix_rows(int64_t columns, int64_t n,
                            const void *const *value, const float *w,
                            const float *beta, float *const *acc, int rows,
                            const void *const *next) {
  int groups = 4 / rows;
  int64_t c = 0;
  for (; c + 16 * groups <= columns; c += 16 * groups)
    mix_8(n, value, c, groups, w, beta, acc, rows, next);
  for (; groups > 1 && c + 16 <= columns; c += 16)
    mix_8(n, value, c, 1, w, beta, acc, rows, next);
  for (; c < columns; c++)
    for (int i = 0; i < rows; i++) {
      float s = 0.0f;
      for (int64_t j = 0; j < n; j++)
        s += w[i * MLA_CPU_BLOCK + j] * one(value[j], c);
      acc[i][c] = beta[i] * acc[i][c] + s;
    }
}

void MIX(int64_t columns, int64_t n, const void *const *values, int rows,
         const float *weights, const float *beta, float *const *acc,
         const void *const *next) {
  if (rows == 8) {
    mix_rows(columns, n, values, weights, beta, acc, 4, next);
    mix_rows(columns, n, values, weights + 4 * MLA_CPU_BLOCK, beta + 4, acc + 4,
             4, NULL);
  } else if (rows == 4)
    mix_rows(columns, n, values, weights, beta, acc, 4, next);
  else if (rows == 2)
    mix_rows(columns, n, values, weights, beta, acc, 2, next);
  else
    mix_rows(columns, n, values, weights, beta, acc, 1, next);
}
