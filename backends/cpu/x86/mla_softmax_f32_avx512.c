/*
 * Online softmax with AVX-512, written out: a row of sixteen lanes is one
 * register. Soft cap and folding are the plain loops of cpu_softmax.h at this
 * level.
 */
#include <immintrin.h>
#include <math.h>

#include "cpu_softmax.h"
#include "exp_avx512.h"

mla_cpu_softmax_fn mla_softmax_f32_avx512;
mla_cpu_softmax_row_fn mla_softmax_row_f32_avx512;
mla_cpu_softcap_fn mla_softcap_f32_avx512;
mla_cpu_fold_fn mla_fold_f32_avx512;
mla_cpu_scale_fn mla_scale_f32_avx512;

#define LANES MLA_CPU_LANES

static inline __m512 nothing(void) {
  return _mm512_castsi512_ps(_mm512_set1_epi32((int)0xFF800000u));
}

/* Hides scores from visible[lane] on. */
static void hide_16(int64_t n, float *s, const int32_t *visible) {
  __m512i sees = _mm512_loadu_si512(visible);
  for (int32_t j = 0; j < n; j++, s += LANES) {
    __mmask16 hidden = _mm512_cmple_epi32_mask(sees, _mm512_set1_epi32(j));
    _mm512_store_ps(s,
                    _mm512_mask_mov_ps(_mm512_load_ps(s), hidden, nothing()));
  }
}

/* The largest of each lane's scores and `top`; NaN is passed over. */
static inline __m512 maximum(int64_t n, const float *s, __m512 top) {
  __m512 other = top;
  int64_t j = 0;
  for (; j + 2 <= n; j += 2, s += 2 * LANES) {
    top = _mm512_max_ps(_mm512_load_ps(s), top);
    other = _mm512_max_ps(_mm512_load_ps(s + LANES), other);
  }
  if (j < n) top = _mm512_max_ps(_mm512_load_ps(s), top);
  return _mm512_max_ps(other, top);
}

void mla_softmax_f32_avx512(int64_t n, float *s, const int32_t *visible,
                            float *m, float *l, float *beta) {
  if (visible) hide_16(n, s, visible);
  __m512 old = _mm512_loadu_ps(m), top = maximum(n, s, old);
  /* 0 where nothing was seen: -infinity less itself would be NaN. */
  __mmask16 seen = _mm512_cmp_ps_mask(top, nothing(), _CMP_NEQ_UQ);
  __m512 shift = _mm512_maskz_mov_ps(seen, top);
  __m512 factor = mla_exp_avx512(_mm512_sub_ps(old, shift));
  __m512 sum = _mm512_setzero_ps();
  for (int64_t j = 0; j < n; j++, s += LANES) {
    __m512 p = mla_exp_avx512(_mm512_sub_ps(_mm512_load_ps(s), shift));
    _mm512_store_ps(s, p);
    sum = _mm512_add_ps(sum, p);
  }
  _mm512_storeu_ps(m, top);
  _mm512_storeu_ps(beta, factor);
  _mm512_storeu_ps(l, _mm512_fmadd_ps(factor, _mm512_loadu_ps(l), sum));
}

void mla_softcap_f32_avx512(int64_t n, float *s, float cap) {
  mla_cpu_softcap(n, s, cap);
}

void mla_fold_f32_avx512(int64_t n, float *m, float *l, float *acc,
                         const float *m2, const float *l2, const float *acc2) {
  mla_cpu_fold(n, m, l, acc, m2, l2, acc2);
}

void mla_scale_f32_avx512(int64_t n, float *x, const float *times) {
  mla_cpu_scale(n, x, times);
}

/* The largest of sixteen numbers, and their sum. */
static inline float largest_of(__m512 x) {
  x = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0x4E));
  x = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0xB1));
  x = _mm512_max_ps(x, _mm512_shuffle_ps(x, x, 0x4E));
  return _mm512_cvtss_f32(_mm512_max_ps(x, _mm512_shuffle_ps(x, x, 0xB1)));
}

static inline float sum_of(__m512 x) {
  x = _mm512_add_ps(x, _mm512_shuffle_f32x4(x, x, 0x4E));
  x = _mm512_add_ps(x, _mm512_shuffle_f32x4(x, x, 0xB1));
  x = _mm512_add_ps(x, _mm512_shuffle_ps(x, x, 0x4E));
  return _mm512_cvtss_f32(_mm512_add_ps(x, _mm512_shuffle_ps(x, x, 0xB1)));
}

float mla_softmax_row_f32_avx512(int64_t n, float *s, float *m, float *l) {
  __m512 top = _mm512_set1_ps(*m), sum = _mm512_setzero_ps();
  for (int64_t j = 0; j < n; j += LANES) {
    __mmask16 here = (__mmask16)(n - j < LANES ? (1 << (n - j)) - 1 : 0xFFFF);
    __m512 x = _mm512_mask_mov_ps(nothing(), here, _mm512_load_ps(s + j));
    _mm512_store_ps(s + j, x);
    top = _mm512_max_ps(x, top);
  }
  float most = largest_of(top);
  __m512 shift = _mm512_set1_ps(most == -INFINITY ? 0.0f : most);
  __m512 factor = mla_exp_avx512(_mm512_sub_ps(_mm512_set1_ps(*m), shift));
  for (int64_t j = 0; j < n; j += LANES) {
    __m512 p = mla_exp_avx512(_mm512_sub_ps(_mm512_load_ps(s + j), shift));
    _mm512_store_ps(s + j, p);
    sum = _mm512_add_ps(sum, p);
  }
  float beta = _mm512_cvtss_f32(factor);
  *m = most;
  *l = beta * *l + sum_of(sum);
  return beta;
}
