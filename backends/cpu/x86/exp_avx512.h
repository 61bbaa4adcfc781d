/* exp_avx512.h - mla_cpu_expf of sixteen numbers, none above 0; and powers of
   two. */
#ifndef MLA_CPU_EXP_AVX512_H
#define MLA_CPU_EXP_AVX512_H

#include <immintrin.h>

static inline __m512 mla_exp_avx512(__m512 x) {
  const __m512 magic = _mm512_set1_ps(12582912.0f);
  /* The second operand is kept where one is NaN. */
  __m512 y = _mm512_max_ps(_mm512_set1_ps(-104.0f), x);
  __m512 t = _mm512_fmadd_ps(y, _mm512_set1_ps(1.44269504f), magic);
  __m512 whole = _mm512_sub_ps(t, magic);
  __m512 r = _mm512_fnmadd_ps(whole, _mm512_set1_ps(0.693359375f), y);
  r = _mm512_fnmadd_ps(whole, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 q = _mm512_set1_ps(0x1.6a23cep-10f);
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.123a20p-7f));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.5558f2p-5f));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.555492p-3f));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.fffffcp-2f));
  q = _mm512_fmadd_ps(q, _mm512_mul_ps(r, r), r);
  q = _mm512_add_ps(q, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(q, whole); /* rounds once, subnormals included */
}

/*
 * 2^x of sixteen numbers: at most 1.5 units in the last place where the result
 * is normal, 1 for 0, 0 for -infinity, NaN for NaN. What is above the next
 * whole number goes into a least-maximum fit of our own, the rest into the
 * exponent.
 */
static inline __m512 mla_exp2_avx512(__m512 x) {
  __m512 r = _mm512_reduce_ps(x, 1); /* 0 for an infinity */
  __m512 q = _mm512_set1_ps(0x1.c54176p-13f);
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.46d64cp-10f));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.3d0b92p-7f));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.c68912p-5f));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.ebfd58p-3f));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.62e42cp-1f));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(q, x); /* by the whole number below */
}

#endif
