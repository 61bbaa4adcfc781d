/*
 * avx512_emulated.h - the intrinsics of AVX-512 that kernels use, in plain C on
 * the compiler's own vectors, so that those kernels are tested on a machine
 * without it. Included before their first line. What they use and this lacks
 * does not compile. Faults at masked-out addresses are not emulated: memory is
 * touched element by element, as the instructions do.
 */
#ifndef MLA_TEST_AVX512_EMULATED_H
#define MLA_TEST_AVX512_EMULATED_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "half.h"

typedef signed char emu_bytes __attribute__((vector_size(64)));
typedef signed char emu_half_bytes __attribute__((vector_size(32)));
typedef signed char emu_few_bytes __attribute__((vector_size(16)));
typedef short emu_words __attribute__((vector_size(64)));
typedef short emu_half_words __attribute__((vector_size(32)));
typedef int emu_ints __attribute__((vector_size(64)));
typedef unsigned emu_bits __attribute__((vector_size(64)));

#define EMU static inline __attribute__((always_inline))
#define EACH(count) for (int i = 0; i < (count); i++)
#define ON(k) ((k) >> i & 1u)

/* ------------------------------------------------------------------ memory */

EMU __m512 emu_load_ps(const void *from) {
  __m512 x;
  memcpy(&x, from, sizeof x);
  return x;
}
EMU void emu_store_ps(void *to, __m512 x) {
  memcpy(to, &x, sizeof x);
}
EMU __m512i emu_load_si512(const void *from) {
  return (__m512i)emu_load_ps(from);
}
EMU void emu_store_si512(void *to, __m512i x) {
  memcpy(to, &x, sizeof x);
}
EMU __m512 emu_mask_loadu_ps(__m512 x, __mmask16 k, const float *from) {
  EACH(16) if (ON(k)) x[i] = from[i];
  return x;
}
EMU void emu_mask_storeu_ps(float *to, __mmask16 k, __m512 x) {
  EACH(16) if (ON(k)) to[i] = x[i];
}
EMU __m512i emu_maskz_loadu_epi16(__mmask32 k, const void *from) {
  emu_words x = {0};
  EACH(32) if (ON(k)) memcpy((short *)&x + i, (const short *)from + i, 2);
  return (__m512i)x;
}
EMU __m256i emu_maskz_loadu_half(__mmask16 k, const void *from) {
  emu_half_words x = {0};
  EACH(16) if (ON(k)) memcpy((short *)&x + i, (const short *)from + i, 2);
  return (__m256i)x;
}
EMU void emu_mask_storeu_half(void *to, __mmask16 k, __m256i x) {
  EACH(16) if (ON(k)) memcpy((short *)to + i, (short *)&x + i, 2);
}

/* ------------------------------------------------------------- arithmetic */

EMU __m512 emu_set1_ps(float x) {
  return x - (__m512){0}; /* keeps a -0 */
}
EMU __m512 emu_fmadd(__m512 a, __m512 b, __m512 c) {
  EACH(16) c[i] = fmaf(a[i], b[i], c[i]);
  return c;
}
/* The second where the first is not larger, or one is NaN. */
EMU __m512 emu_max_ps(__m512 a, __m512 b) {
  EACH(16) b[i] = a[i] > b[i] ? a[i] : b[i];
  return b;
}
/* The second where the first is not smaller, or one is NaN. */
EMU __m512 emu_min_ps(__m512 a, __m512 b) {
  EACH(16) b[i] = a[i] < b[i] ? a[i] : b[i];
  return b;
}
EMU __m512 emu_scalef_ps(__m512 x, __m512 y) {
  EACH(16) {
    float e = fminf(fmaxf(floorf(y[i]), -1000.0f), 1000.0f);
    x[i] = isnan(y[i]) ? y[i] : scalbnf(x[i], (int)e);
  }
  return x;
}
/* What is above the next lower whole number. */
EMU __m512 emu_reduce_ps(__m512 x, int how) {
  EACH(16) x[i] = how == 1 ? isinf(x[i]) ? 0.0f : x[i] - floorf(x[i]) : NAN;
  return x;
}

/* Of the two the one of least magnitude, with the sign of x or, how's bit 3,
   none. */
EMU __m512 emu_range_ps(__m512 x, __m512 y, int how) {
  EACH(16) {
    float least = fminf(fabsf(x[i]), fabsf(y[i]));
    x[i] = (how & 3) != 2 ? NAN : how & 8 ? least : copysignf(least, x[i]);
  }
  return x;
}

/* ------------------------------------------------------------------ masks */

EMU __mmask16 emu_cmp_ps_mask(__m512 a, __m512 b, int how) {
  unsigned k = 0;
  EACH(16) {
    unsigned apart = isnan(a[i]) || isnan(b[i]);
    k |= (apart || (how == _CMP_NEQ_UQ && a[i] != b[i])) << i;
  }
  return (__mmask16)k;
}
EMU __mmask16 emu_cmpgt_epi32_mask(__m512i a, __m512i b) {
  unsigned k = 0;
  EACH(16) k |= (unsigned)(((emu_ints)a)[i] > ((emu_ints)b)[i]) << i;
  return (__mmask16)k;
}
EMU __mmask32 emu_cmpeq_epi16_mask(__m512i a, __m512i b) {
  unsigned k = 0;
  EACH(32) k |= (unsigned)(((emu_words)a)[i] == ((emu_words)b)[i]) << i;
  return k;
}
EMU __mmask64 emu_cmpeq_epi8_mask(__m512i a, __m512i b) {
  __mmask64 k = 0;
  EACH(64) k |= (__mmask64)(((emu_bytes)a)[i] == ((emu_bytes)b)[i]) << i;
  return k;
}
EMU __m512i emu_mask_mov_epi8(__m512i x, __mmask64 k, __m512i y) {
  emu_bytes to = (emu_bytes)x, from = (emu_bytes)y;
  EACH(64) if (ON(k)) to[i] = from[i];
  return (__m512i)to;
}
EMU __m512 emu_mask_mov_ps(__m512 x, __mmask16 k, __m512 y) {
  EACH(16) if (ON(k)) x[i] = y[i];
  return x;
}
EMU __m256i emu_mask_mov_half(__m256i x, __mmask16 k, __m256i y) {
  emu_half_words to = (emu_half_words)x, from = (emu_half_words)y;
  EACH(16) if (ON(k)) to[i] = from[i];
  return (__m256i)to;
}

/* --------------------------------------------------------------- integers */

EMU __m512i emu_set1_epi32(int x) {
  return (__m512i)(x + (emu_ints){0});
}
EMU __m512i emu_set1_epi16(int x) {
  return (__m512i)((short)x + (emu_words){0});
}
EMU __m512i emu_set1_epi8(int x) {
  return (__m512i)((signed char)x + (emu_bytes){0});
}
EMU __m512i emu_max_epi32(__m512i a, __m512i b) {
  emu_ints x = (emu_ints)a, y = (emu_ints)b;
  EACH(16) x[i] = x[i] > y[i] ? x[i] : y[i];
  return (__m512i)x;
}
EMU __m512i emu_srli_epi16(__m512i x, int n) {
  emu_words to = (emu_words)x;
  EACH(32) to[i] = (short)((uint16_t)to[i] >> n);
  return (__m512i)to;
}
EMU __m512i emu_slli_epi16(__m512i x, int n) {
  emu_words to = (emu_words)x;
  EACH(32) to[i] = (short)((uint16_t)to[i] << n);
  return (__m512i)to;
}
/* The second where the first has a bit, else the third. */
EMU __m512i emu_logic_0xCA(__m512i a, __m512i b, __m512i c) {
  return (a & b) | (~a & c);
}
EMU __m512i emu_max_epu16(__m512i x, __m512i y) {
  emu_words a = (emu_words)x, b = (emu_words)y;
  EACH(32) a[i] = (uint16_t)b[i] > (uint16_t)a[i] ? b[i] : a[i];
  return (__m512i)a;
}
EMU __m512i emu_min_epi32(__m512i a, __m512i b) {
  emu_ints x = (emu_ints)a, y = (emu_ints)b;
  EACH(16) x[i] = x[i] < y[i] ? x[i] : y[i];
  return (__m512i)x;
}

/* --------------------------------------------------------- moving elements */

EMU __m512 emu_permutex2var_ps(__m512 a, __m512i index, __m512 b) {
  __m512 to;
  EACH(16) {
    int from = ((emu_ints)index)[i] & 31;
    to[i] = from < 16 ? a[from] : b[from - 16];
  }
  return to;
}
EMU __m512i emu_permutexvar_epi32(__m512i index, __m512i x) {
  emu_ints to, from = (emu_ints)x;
  EACH(16) to[i] = from[((emu_ints)index)[i] & 15];
  return (__m512i)to;
}
/* Within each quarter, first a's, then b's, to what low and high allow. */
EMU int emu_between(int x, int low, int high) {
  return x < low ? low : x > high ? high : x;
}
EMU __m512i emu_pack_epi32(__m512i a, __m512i b, int low, int high) {
  emu_words to;
  EACH(32) {
    emu_ints from = (emu_ints)(i & 4 ? b : a);
    to[i] = (short)emu_between(from[i / 8 * 4 + (i & 3)], low, high);
  }
  return (__m512i)to;
}
EMU __m512i emu_pack_epi16(__m512i a, __m512i b, int low, int high) {
  emu_bytes to;
  EACH(64) {
    emu_words from = (emu_words)(i & 8 ? b : a);
    to[i] = (signed char)emu_between(from[i / 16 * 8 + (i & 7)], low, high);
  }
  return (__m512i)to;
}
EMU __m256i emu_extracti64x4(__m512i x, int at) {
  __m256i to;
  memcpy(&to, (char *)&x + 32 * at, sizeof to);
  return to;
}
EMU __m512i emu_permutexvar_epi16(__m512i index, __m512i x) {
  emu_words to, from = (emu_words)x;
  EACH(32) to[i] = from[((emu_words)index)[i] & 31];
  return (__m512i)to;
}
/* Within each quarter: elements `at` and behind, one of a, one of b. */
EMU __m512 emu_unpack_ps(__m512 a, __m512 b, int at) {
  __m512 to;
  EACH(16) to[i] = (i & 1 ? b : a)[(i & 12) + at + (i >> 1 & 1)];
  return to;
}
EMU __m512i emu_unpack_epi16(__m512i a, __m512i b, int at) {
  emu_words to, x = (emu_words)a, y = (emu_words)b;
  EACH(32) to[i] = (i & 1 ? y : x)[(i & 24) + at + (i >> 1 & 3)];
  return (__m512i)to;
}
EMU __m512 emu_shuffle_ps(__m512 a, __m512 b, int how) {
  __m512 to;
  EACH(16) to[i] = (i & 2 ? b : a)[(i & 12) + (how >> 2 * (i & 3) & 3)];
  return to;
}
EMU __m512 emu_shuffle_f32x4(__m512 a, __m512 b, int how) {
  __m512 to;
  EACH(16) to[i] = (i & 8 ? b : a)[4 * (how >> i / 4 * 2 & 3) + (i & 3)];
  return to;
}

/* ------------------------------------------------------------ conversions */

EMU __m512i emu_cvtepu16_epi32(__m256i x) {
  emu_ints to;
  EACH(16) to[i] = (uint16_t)((emu_half_words)x)[i];
  return (__m512i)to;
}
EMU __m256i emu_cvtepi32_epi16(__m512i x) {
  emu_half_words to;
  EACH(16) to[i] = (short)((emu_ints)x)[i];
  return (__m256i)to;
}
EMU __m256i emu_cvtepi16_epi8(__m512i x) {
  emu_half_bytes to;
  EACH(32) to[i] = (signed char)((emu_words)x)[i];
  return (__m256i)to;
}
EMU __m512i emu_cvtepi8_epi16(__m256i x) {
  emu_words to;
  EACH(32) to[i] = ((emu_half_bytes)x)[i];
  return (__m512i)to;
}
EMU __m512i emu_cvtepi8_epi32(__m128i x) {
  emu_ints to;
  EACH(16) to[i] = ((emu_few_bytes)x)[i];
  return (__m512i)to;
}
EMU __m512 emu_cvtepi32_ps(__m512i x) {
  __m512 to;
  EACH(16) to[i] = (float)((emu_ints)x)[i];
  return to;
}
/* To nearest even; what does not fit has the least. */
EMU __m512i emu_cvtps_epi32(__m512 x) {
  emu_ints to;
  EACH(16) to[i] = fabsf(x[i]) < 0x1p31f ? (int)rintf(x[i]) : INT32_MIN;
  return (__m512i)to;
}
EMU __m512 emu_cvtph_ps(__m256i x) {
  __m512 to;
  EACH(16) to[i] = mla_f16_to_f32((uint16_t)((emu_half_words)x)[i]);
  return to;
}
EMU __m256i emu_cvtps_ph(__m512 x, int how) {
  emu_half_words to;
  (void)how; /* to nearest even */
  EACH(16) to[i] = (short)mla_f32_to_f16(x[i]);
  return (__m256i)to;
}
/* The instruction takes subnormals for zeros. */
EMU short emu_bf16(float x) {
  return (short)mla_f32_to_bf16(fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x);
}
EMU __m256i emu_cvtneps_pbh(__m512 x) {
  emu_half_words to;
  EACH(16) to[i] = emu_bf16(x[i]);
  return (__m256i)to;
}
EMU __m512i emu_cvtne2ps_pbh(__m512 high, __m512 low) {
  emu_words to;
  EACH(32) to[i] = emu_bf16(i < 16 ? low[i] : high[i - 16]);
  return (__m512i)to;
}

/* ------------------------------------------------------------------- names */

#undef _mm512_cmp_ps_mask
#undef _mm512_cmpeq_epi8_mask
#undef _mm512_extracti64x4_epi64
#undef _mm512_slli_epi16
#undef _mm512_srli_epi16
#undef _mm512_ternarylogic_epi32
#undef _mm512_cmpeq_epi16_mask
#undef _mm512_cmpgt_epi32_mask
#undef _mm512_cmple_epi32_mask
#undef _mm512_cvtps_ph
#undef _mm512_range_ps
#undef _mm512_reduce_ps
#undef _mm512_setr_epi32
#undef _mm512_shuffle_f32x4
#undef _mm512_shuffle_ps
#define _mm512_load_ps emu_load_ps
#define _mm512_loadu_ps emu_load_ps
#define _mm512_store_ps emu_store_ps
#define _mm512_storeu_ps emu_store_ps
#define _mm512_loadu_si512 emu_load_si512
#define _mm512_store_si512 emu_store_si512
#define _mm512_storeu_si512 emu_store_si512
#define _mm512_mask_loadu_ps emu_mask_loadu_ps
#define _mm512_maskz_loadu_ps(k, from) emu_mask_loadu_ps((__m512){0}, k, from)
#define _mm512_mask_storeu_ps emu_mask_storeu_ps
#define _mm512_maskz_loadu_epi16 emu_maskz_loadu_epi16
#define _mm256_maskz_loadu_epi16 emu_maskz_loadu_half
#define _mm256_mask_storeu_epi16 emu_mask_storeu_half
#define _mm512_setzero_ps() ((__m512){0})
#define _mm512_setzero_si512() ((__m512i){0})
#define _mm512_set1_ps emu_set1_ps
#define _mm512_add_ps(a, b) ((a) + (b))
#define _mm512_sub_ps(a, b) ((a) - (b))
#define _mm512_mul_ps(a, b) ((a) * (b))
#define _mm512_div_ps(a, b) ((a) / (b))
#define _mm512_cvtss_f32(x) ((x)[0])
#define _mm512_fmadd_ps emu_fmadd
#define _mm512_fnmadd_ps(a, b, c) emu_fmadd(-(a), b, c)
#define _mm512_fmsub_ps(a, b, c) emu_fmadd(a, b, -(c))
#define _mm512_max_ps emu_max_ps
#define _mm512_min_ps emu_min_ps
#define _mm512_scalef_ps emu_scalef_ps
#define _mm512_range_ps emu_range_ps
#define _mm512_reduce_ps emu_reduce_ps
#define _mm512_cmp_ps_mask emu_cmp_ps_mask
#define _mm512_kortestz(a, b) (((a) | (b)) == 0)
#define _mm512_cmpgt_epi32_mask emu_cmpgt_epi32_mask
#define _mm512_cmple_epi32_mask(a, b) ((__mmask16)~emu_cmpgt_epi32_mask(a, b))
#define _mm512_cmpeq_epi16_mask emu_cmpeq_epi16_mask
#define _mm512_mask_mov_ps emu_mask_mov_ps
#define _mm512_maskz_mov_ps(k, x) emu_mask_mov_ps((__m512){0}, k, x)
#define _mm512_mask_mov_epi32(x, k, y) \
  ((__m512i)emu_mask_mov_ps((__m512)(x), k, (__m512)(y)))
#define _mm256_mask_mov_epi16 emu_mask_mov_half
#define _mm512_castps_si512(x) ((__m512i)(x))
#define _mm512_castsi512_ps(x) ((__m512)(x))
#define _mm512_set1_epi32 emu_set1_epi32
#define _mm512_set1_epi16 emu_set1_epi16
#define _mm512_setr_epi32(...) ((__m512i)(emu_ints){__VA_ARGS__})
#define _mm512_add_epi32(a, b) ((__m512i)((emu_bits)(a) + (emu_bits)(b)))
#define _mm512_and_si512(a, b) ((__m512i)((a) & (b)))
#define _mm512_srli_epi32(x, n) ((__m512i)((emu_bits)(x) >> (n)))
#define _mm512_slli_epi32(x, n) ((__m512i)((emu_bits)(x) << (n)))
#define _mm512_min_epi32 emu_min_epi32
#define _mm512_max_epi32 emu_max_epi32
#define _mm512_set1_epi8 emu_set1_epi8
#define _mm512_max_epu16 emu_max_epu16
#define _mm512_srli_epi16 emu_srli_epi16
#define _mm512_slli_epi16 emu_slli_epi16
#define _mm512_ternarylogic_epi32(a, b, c, how) emu_logic_##how(a, b, c)
#define _mm512_cmpeq_epi8_mask emu_cmpeq_epi8_mask
#define _mm512_mask_mov_epi8 emu_mask_mov_epi8
#define _mm512_permutexvar_epi32 emu_permutexvar_epi32
#define _mm512_permutexvar_ps(index, x) \
  ((__m512)emu_permutexvar_epi32(index, (__m512i)(x)))
#define _mm512_packs_epi32(a, b) emu_pack_epi32(a, b, -32768, 32767)
#define _mm512_packus_epi32(a, b) emu_pack_epi32(a, b, 0, 65535)
#define _mm512_packs_epi16(a, b) emu_pack_epi16(a, b, -128, 127)
#define _mm512_packus_epi16(a, b) emu_pack_epi16(a, b, 0, 255)
#define _mm512_extracti64x4_epi64 emu_extracti64x4
#define _mm512_castsi512_si256(x) emu_extracti64x4(x, 0)
#define _mm512_cvtepi16_epi8 emu_cvtepi16_epi8
#define _mm512_cvtepi8_epi16 emu_cvtepi8_epi16
#define _mm512_cvtepi8_epi32 emu_cvtepi8_epi32
#define _mm512_cvtepi32_ps emu_cvtepi32_ps
#define _mm512_cvtps_epi32 emu_cvtps_epi32
#define _mm512_permutex2var_ps emu_permutex2var_ps
#define _mm512_permutexvar_epi16 emu_permutexvar_epi16
#define _mm512_unpacklo_ps(a, b) emu_unpack_ps(a, b, 0)
#define _mm512_unpackhi_ps(a, b) emu_unpack_ps(a, b, 2)
#define _mm512_unpacklo_epi16(a, b) emu_unpack_epi16(a, b, 0)
#define _mm512_unpackhi_epi16(a, b) emu_unpack_epi16(a, b, 4)
#define _mm512_shuffle_ps emu_shuffle_ps
#define _mm512_shuffle_f32x4 emu_shuffle_f32x4
#define _mm512_cvtepu16_epi32 emu_cvtepu16_epi32
#define _mm512_cvtepi32_epi16 emu_cvtepi32_epi16
#define _mm512_cvtph_ps emu_cvtph_ps
#define _mm512_cvtps_ph emu_cvtps_ph
#define _mm512_cvtneps_pbh emu_cvtneps_pbh
#define _mm512_cvtne2ps_pbh emu_cvtne2ps_pbh

#endif
