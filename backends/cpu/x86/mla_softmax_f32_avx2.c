/*
 * Online softmax with AVX2 and FMA, written out: exp is most of it, and the
 * sixteen lanes are two registers. Soft cap and folding are the plain loops of
 * cpu_softmax.h at this level.
 */
#include <immintrin.h>

#include "cpu_softmax.h"

mla_cpu_softmax_fn mla_softmax_f32_avx2, mla_softmax_half_f32_avx2;
mla_cpu_softcap_fn mla_softcap_f32_avx2;
mla_cpu_fold_fn mla_fold_f32_avx2;
mla_cpu_softmax_row_fn mla_softmax_row_f32_avx2;

#define LANES MLA_CPU_LANES

/* Of eight numbers, 2^whole, in t's low bits, and the rest of exp. */
static inline __m256 exp_parts(__m256 y, __m256 *t) {
  const __m256 magic = _mm256_set1_ps(12582912.0f);
  *t = _mm256_fmadd_ps(y, _mm256_set1_ps(1.44269504f), magic);
  __m256 whole = _mm256_sub_ps(*t, magic);
  __m256 r = _mm256_fnmadd_ps(whole, _mm256_set1_ps(0.693359375f), y);
  r = _mm256_fnmadd_ps(whole, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 q = _mm256_set1_ps(0x1.6a23cep-10f);
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0x1.123a20p-7f));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0x1.5558f2p-5f));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0x1.555492p-3f));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0x1.fffffcp-2f));
  q = _mm256_fmadd_ps(q, _mm256_mul_ps(r, r), r);
  return _mm256_add_ps(q, _mm256_set1_ps(1.0f));
}

/* mla_cpu_expf of eight numbers, none above 0. */
static inline __m256 exp_8(__m256 x) {
  /* The second operand is kept where one is NaN. */
  __m256 t, q = exp_parts(_mm256_max_ps(_mm256_set1_ps(-104.0f), x), &t);
  __m256i n = _mm256_sub_epi32(
      _mm256_castps_si256(t), _mm256_castps_si256(_mm256_set1_ps(12582912.0f)));
  __m256i half = _mm256_srai_epi32(n, 1), one = _mm256_set1_epi32(127);
  __m256i scale0 = _mm256_slli_epi32(_mm256_add_epi32(half, one), 23);
  __m256i scale1 =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(n, half), one), 23);
  q = _mm256_mul_ps(q, _mm256_castsi256_ps(scale0));
  return _mm256_mul_ps(q, _mm256_castsi256_ps(scale1));
}

/* The same bits where the result is normal: none below PLAIN. */
#define PLAIN (-87.0f)
static inline __m256 exp_plain_8(__m256 x) {
  __m256 t, q = exp_parts(x, &t); /* the shift leaves n + 127 of t's bits */
  __m256i n = _mm256_add_epi32(_mm256_castps_si256(t), _mm256_set1_epi32(127));
  return _mm256_mul_ps(q, _mm256_castsi256_ps(_mm256_slli_epi32(n, 23)));
}

static inline __m256 nothing(void) {
  return _mm256_castsi256_ps(_mm256_set1_epi32((int)0xFF800000u));
}

/* Hides scores from visible[lane] on, eight lanes at a time. */
static void hide_8(int64_t n, float *s, const int32_t *visible) {
  __m256i sees = _mm256_loadu_si256((const __m256i *)(const void *)visible);
  for (int32_t j = 0; j < n; j++, s += LANES) {
    __m256i seen = _mm256_cmpgt_epi32(sees, _mm256_set1_epi32(j));
    _mm256_store_ps(s, _mm256_blendv_ps(nothing(), _mm256_load_ps(s),
                                        _mm256_castsi256_ps(seen)));
  }
}

/* The largest of eight lanes' scores and `top`, and the smallest; NaN is passed
   over. */
static inline __m256 maximum_8(int64_t n, const float *s, __m256 top,
                               __m256 *least) {
  __m256 other = top, low = _mm256_set1_ps(0x1.fffffep127f);
  int64_t j = 0;
  for (; j + 2 <= n; j += 2, s += 2 * LANES) {
    __m256 a = _mm256_load_ps(s), b = _mm256_load_ps(s + LANES);
    top = _mm256_max_ps(a, top);
    other = _mm256_max_ps(b, other);
    low = _mm256_min_ps(a, low);
    low = _mm256_min_ps(b, low);
  }
  if (j < n) {
    top = _mm256_max_ps(_mm256_load_ps(s), top);
    low = _mm256_min_ps(_mm256_load_ps(s), low);
  }
  *least = low;
  return _mm256_max_ps(other, top);
}

/* s becomes exp(s - shift), eight lanes of n scores; their sums. */
static inline __m256 exp_scores(int64_t n, float *s, __m256 shift, int plain) {
  __m256 sum = _mm256_setzero_ps();
  for (int64_t j = 0; j < n; j++, s += LANES) {
    __m256 x = _mm256_sub_ps(_mm256_load_ps(s), shift);
    __m256 p = plain ? exp_plain_8(x) : exp_8(x);
    _mm256_store_ps(s, p);
    sum = _mm256_add_ps(sum, p);
  }
  return sum;
}

static void softmax_8(int64_t n, float *s, float *m, float *l, float *beta) {
  __m256 old = _mm256_loadu_ps(m), low, top = maximum_8(n, s, old, &low);
  /* 0 where nothing was seen: -infinity less itself would be NaN. */
  __m256 unseen = _mm256_cmp_ps(top, nothing(), _CMP_EQ_OQ);
  __m256 shift = _mm256_andnot_ps(unseen, top);
  __m256 factor = exp_8(_mm256_sub_ps(old, shift));
  __m256 small = _mm256_cmp_ps(_mm256_sub_ps(low, shift), _mm256_set1_ps(PLAIN),
                               _CMP_NGE_UQ);
  __m256 sum = _mm256_movemask_ps(small) ? exp_scores(n, s, shift, 0)
                                         : exp_scores(n, s, shift, 1);
  _mm256_storeu_ps(m, top);
  _mm256_storeu_ps(beta, factor);
  _mm256_storeu_ps(l, _mm256_fmadd_ps(factor, _mm256_loadu_ps(l), sum));
}

void mla_softmax_f32_avx2(int64_t n, float *s, const int32_t *visible, float *m,
                          float *l, float *beta) {
  for (int x = 0; x < LANES; x += 8) {
    if (visible) hide_8(n, s + x, visible + x);
    softmax_8(n, s + x, m + x, l + x, beta + x);
  }
}

void mla_softmax_half_f32_avx2(int64_t n, float *s, const int32_t *visible,
                               float *m, float *l, float *beta) {
  if (visible) hide_8(n, s, visible);
  softmax_8(n, s, m, l, beta);
}

void mla_softcap_f32_avx2(int64_t n, float *s, float cap) {
  mla_cpu_softcap(n, s, cap);
}

void mla_fold_f32_avx2(int64_t n, float *m, float *l, float *acc,
                       const float *m2, const float *l2, const float *acc2) {
  mla_cpu_fold(n, m, l, acc, m2, l2, acc2);
}

/* The largest and the sum of eight numbers, in every place. */
static inline __m256 largest_of(__m256 x) {
  x = _mm256_max_ps(x, _mm256_permute2f128_ps(x, x, 1));
  x = _mm256_max_ps(x, _mm256_permute_ps(x, 0x4E));
  return _mm256_max_ps(x, _mm256_permute_ps(x, 0xB1));
}

static inline __m256 sum_of(__m256 x) {
  x = _mm256_add_ps(x, _mm256_permute2f128_ps(x, x, 1));
  x = _mm256_add_ps(x, _mm256_permute_ps(x, 0x4E));
  return _mm256_add_ps(x, _mm256_permute_ps(x, 0xB1));
}

float mla_softmax_row_f32_avx2(int64_t n, float *s, float *m, float *l) {
  __m256 old = _mm256_set1_ps(*m), top = old, sum = _mm256_setzero_ps();
  float beta, total;
  for (int64_t j = n; j % 8; j++)
    _mm_store_ss(s + j, _mm256_castps256_ps128(nothing()));
  for (int64_t j = 0; j < n; j += 8)
    top = _mm256_max_ps(_mm256_load_ps(s + j), top);
  top = largest_of(top);
  __m256 unseen = _mm256_cmp_ps(top, nothing(), _CMP_EQ_OQ);
  __m256 shift = _mm256_andnot_ps(unseen, top);
  for (int64_t j = 0; j < n; j += 8) {
    __m256 p = exp_8(_mm256_sub_ps(_mm256_load_ps(s + j), shift));
    _mm256_store_ps(s + j, p);
    sum = _mm256_add_ps(sum, p);
  }
  beta = _mm256_cvtss_f32(exp_8(_mm256_sub_ps(old, shift)));
  total = _mm256_cvtss_f32(sum_of(sum));
  *m = _mm256_cvtss_f32(top);
  *l = beta * *l + total;
  return beta;
}
