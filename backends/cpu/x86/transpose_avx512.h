/* transpose_avx512.h - sixteen rows of sixteen 32-bit words, in registers. */
#ifndef MLA_CPU_TRANSPOSE_AVX512_H
#define MLA_CPU_TRANSPOSE_AVX512_H

#include <immintrin.h>

/* r[i] word j becomes r[j] word i: pairs, fours, then quarters. */
static inline void mla_transpose_avx512(__m512 r[16]) {
  __m512 t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) { /* quarter q of r[i + j]: column 4 q + j */
    r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xEE);
    r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
  }
  for (int j = 0; j < 4; j++) {
    __m512 a = _mm512_shuffle_f32x4(r[j], r[j + 4], 0x88);
    __m512 b = _mm512_shuffle_f32x4(r[j], r[j + 4], 0xDD);
    __m512 c = _mm512_shuffle_f32x4(r[j + 8], r[j + 12], 0x88);
    __m512 d = _mm512_shuffle_f32x4(r[j + 8], r[j + 12], 0xDD);
    t[j] = _mm512_shuffle_f32x4(a, c, 0x88);
    t[j + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
    t[j + 8] = _mm512_shuffle_f32x4(a, c, 0xDD);
    t[j + 12] = _mm512_shuffle_f32x4(b, d, 0xDD);
  }
  for (int i = 0; i < 16; i++) r[i] = t[i];
}

#endif
