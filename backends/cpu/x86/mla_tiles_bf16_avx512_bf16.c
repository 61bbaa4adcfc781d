/*
 * What is rounded on its way to tiles of bf16. Softmax of a block: as
 * mla_softmax_f32_avx512.c, with the scale in the first addition, and with
 * weights that leave the registers only as tiles: two keys a lane rounded by
 * the processor, then transposed.
 */
#include <immintrin.h>

#include "cpu_kernels.h"
#include "exp_avx512.h"
#include "transpose_avx512.h"

mla_cpu_tile_narrow_fn mla_tile_narrow_bf16_avx512_bf16;
mla_cpu_tile_pairs_fn mla_tile_pairs_bf16_avx512_bf16;
mla_cpu_tile_softmax_fn mla_tile_softmax_bf16_avx512_bf16;

#define LANES MLA_CPU_LANES
#define DEPTH MLA_CPU_TILE_DEPTH

static inline __m512 nothing(void) {
  return _mm512_castsi512_ps(_mm512_set1_epi32((int)0xFF800000u));
}

/* Word x of the result: lane x of both. */
static inline __m512i pair(__m512 a, __m512 b) {
  static const uint16_t words[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                     21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                     11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_loadu_si512(words),
                                  (__m512i)_mm512_cvtne2ps_pbh(b, a));
}

void mla_tile_narrow_bf16_avx512_bf16(uint16_t *rows, int64_t ld,
                                      const float *c, int64_t n) {
  for (int64_t j = 0; j < n; j++, rows += ld, c += LANES)
    _mm256_storeu_si256((__m256i *)(void *)rows,
                        (__m256i)_mm512_cvtneps_pbh(_mm512_load_ps(c)));
}

void mla_tile_pairs_bf16_avx512_bf16(uint16_t *values, const float *c,
                                     int64_t n) {
  for (int64_t j = 0; j < n; j += 2, c += 2 * LANES)
    _mm512_store_si512(
        values + j / DEPTH * 2 * LANES * DEPTH + j % DEPTH * LANES,
        pair(_mm512_load_ps(c), _mm512_load_ps(c + LANES)));
}

/* Score j of every lane; nothing from n or from what the lane sees on. */
static inline __m512 score(const float *s, int64_t j, __m512i sees) {
  __mmask16 seen = _mm512_cmpgt_epi32_mask(sees, _mm512_set1_epi32((int32_t)j));
  return _mm512_mask_loadu_ps(nothing(), seen, s + j * LANES);
}

/* The largest of each lane's scores; NaN is passed over. */
static inline __m512 largest(int64_t n, const float *s, __m512i sees, int all) {
  __m512 top = nothing(), other = top;
  int64_t j = 0;
  for (; all && j + 2 <= n; j += 2) {
    top = _mm512_max_ps(_mm512_load_ps(s + j * LANES), top);
    other = _mm512_max_ps(_mm512_load_ps(s + (j + 1) * LANES), other);
  }
  for (; j < n; j++) top = _mm512_max_ps(score(s, j, sees), top);
  return _mm512_max_ps(other, top);
}

/* 32 keys from j on to a tile of weights; adds up what they were. */
static inline void weigh(const float *s, int64_t j, __m512i sees, int all,
                         __m512 scale, __m512 shift, __m512 sum[2],
                         uint16_t *weights) {
  __m512 r[16];
  for (int64_t i = 0; i < 16; i++) {
    int64_t key = j + 2 * i;
    __m512 a = all ? _mm512_load_ps(s + key * LANES) : score(s, key, sees);
    __m512 b =
        all ? _mm512_load_ps(s + (key + 1) * LANES) : score(s, key + 1, sees);
    a = mla_exp2_avx512(_mm512_fmsub_ps(a, scale, shift));
    b = mla_exp2_avx512(_mm512_fmsub_ps(b, scale, shift));
    sum[0] = _mm512_add_ps(sum[0], a);
    sum[1] = _mm512_add_ps(sum[1], b);
    r[i] = _mm512_castsi512_ps(pair(a, b));
  }
  mla_transpose_avx512(r);
  for (int i = 0; i < 16; i++)
    _mm512_store_si512(weights + i * DEPTH, _mm512_castps_si512(r[i]));
}

void mla_tile_softmax_bf16_avx512_bf16(int64_t n, const float *s, float scale,
                                       const int32_t *visible, float *m,
                                       float *l, float *beta,
                                       uint16_t *weights) {
  __m512i sees = _mm512_set1_epi32((int32_t)n);
  if (visible) sees = _mm512_min_epi32(sees, _mm512_loadu_si512(visible));
  const __m512 log2_e = _mm512_set1_ps(1.44269504f);
  __m512 old = _mm512_loadu_ps(m), by = _mm512_set1_ps(scale);
  __m512 top = _mm512_mul_ps(by, largest(n, s, sees, !visible));
  top = _mm512_max_ps(top, old);
  /* 0 where nothing was seen: -infinity less itself would be NaN. */
  __mmask16 seen = _mm512_cmp_ps_mask(top, nothing(), _CMP_NEQ_UQ);
  __m512 shift = _mm512_maskz_mov_ps(seen, top);
  __m512 factor = mla_exp_avx512(_mm512_sub_ps(old, shift));
  by = _mm512_mul_ps(by, log2_e);
  shift = _mm512_mul_ps(shift, log2_e);
  __m512 sum[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  for (int64_t j = 0; j < n; j += DEPTH, weights += LANES * DEPTH)
    if (!visible && j + DEPTH <= n)
      weigh(s, j, sees, 1, by, shift, sum, weights);
    else
      weigh(s, j, sees, 0, by, shift, sum, weights);
  __m512 all = _mm512_add_ps(sum[0], sum[1]);
  _mm512_storeu_ps(m, top);
  _mm512_storeu_ps(beta, factor);
  _mm512_storeu_ps(l, _mm512_fmadd_ps(factor, _mm512_loadu_ps(l), all));
}
