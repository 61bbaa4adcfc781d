/*
 * What tiles of bf16 are filled with, and what comes of them: pairs of 16-bit
 * numbers are 32-bit words, and sixteen rows of sixteen words are transposed in
 * registers.
 */
#include <immintrin.h>

#include "cpu_kernels.h"
#include "exp_avx512.h"
#include "transpose_avx512.h"

mla_cpu_tile_queries_fn mla_tile_queries_bf16_avx512;
mla_cpu_tile_values_fn mla_tile_values_bf16_avx512;
mla_cpu_tile_finite_fn mla_tile_finite_bf16_avx512;
mla_cpu_tile_join_fn mla_tile_join_f32_avx512;
mla_cpu_tile_blend_fn mla_tile_blend_f32_avx512;
mla_cpu_tile_scale_fn mla_tile_scale_f32_avx512;
mla_cpu_tile_line_fn mla_tile_line_f32_avx512;

#define LANES MLA_CPU_LANES
#define DEPTH MLA_CPU_TILE_DEPTH
#define TILE (LANES * DEPTH)

static inline __mmask32 first_of(int64_t n) {
  return n < DEPTH ? (__mmask32)((1u << n) - 1u) : (__mmask32)0xFFFFFFFFu;
}

void mla_tile_queries_bf16_avx512(uint16_t *queries,
                                  const uint16_t *const *rows, int64_t k) {
  for (int64_t p = 0; p < k; p += DEPTH) {
    __mmask32 some = first_of(k - p);
    __m512 r[16];
    for (int x = 0; x < LANES; x++)
      r[x] = _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(some, rows[x] + p));
    mla_transpose_avx512(r);
    for (int i = 0; i < 16; i++)
      _mm512_store_si512(queries + (p + 2 * i) * LANES,
                         _mm512_castps_si512(r[i]));
  }
}

/* Two keys, pair by pair, into row `pair` of two tiles. */
static inline void put_pairs(__m512i a, __m512i b, uint16_t *to) {
  _mm512_store_si512(to, _mm512_unpacklo_epi16(a, b));
  _mm512_store_si512(to + TILE, _mm512_unpackhi_epi16(a, b));
}

void mla_tile_values_bf16_avx512(uint16_t *values,
                                 const mla_cpu_tile_rows *rows, int64_t n,
                                 int64_t first) {
  int64_t n32 = (n + DEPTH - 1) / DEPTH * DEPTH;
  __m512i none = _mm512_setzero_si512();
  for (int64_t j = 0; j < n32; j += 16) {
    const uint16_t *from = rows[j / 16].at + first;
    int64_t ld = rows[j / 16].ld;
    uint16_t *to = values + j / DEPTH * 2 * TILE + j % DEPTH / 16 * TILE / 2;
    for (int64_t i = 0; i < 16; i += 2, to += 2 * LANES) {
      __m512i a = none, b = none;
      if (j + i < n) a = _mm512_loadu_si512(from + i * ld);
      if (j + i + 1 < n) b = _mm512_loadu_si512(from + (i + 1) * ld);
      put_pairs(a, b, to);
    }
  }
}

static inline __m512 nothing(void) {
  return _mm512_castsi512_ps(_mm512_set1_epi32((int)0xFF800000u));
}

void mla_tile_join_f32_avx512(float *m, float *l, const float *m2,
                              const float *l2, float *a, float *b) {
  __m512 old = _mm512_loadu_ps(m), other = _mm512_loadu_ps(m2);
  __m512 top = _mm512_max_ps(other, old); /* NaN in m2: the old one */
  __mmask16 seen = _mm512_cmp_ps_mask(top, nothing(), _CMP_NEQ_UQ);
  __m512 shift = _mm512_maskz_mov_ps(seen, top);
  __m512 x = mla_exp_avx512(_mm512_sub_ps(old, shift));
  __m512 y = mla_exp_avx512(_mm512_sub_ps(other, shift));
  _mm512_storeu_ps(a, x);
  _mm512_storeu_ps(b, y);
  x = _mm512_mul_ps(x, _mm512_loadu_ps(l));
  _mm512_storeu_ps(l, _mm512_fmadd_ps(y, _mm512_loadu_ps(l2), x));
  _mm512_storeu_ps(m, top);
}

/* Two lanes' numbers at a time: their chains over the parts run side by side.
 */
void mla_tile_blend_f32_avx512(int64_t tiles, int64_t parts,
                               const float *const *acc, const float *a,
                               const float *b, int64_t ahead, float *sum) {
  for (int64_t i = 0; i < tiles * LANES; i += 2) {
    int64_t x = i % LANES, at = i * 16;
    __m512 s = _mm512_load_ps(acc[0] + at);
    __m512 t = _mm512_load_ps(acc[0] + at + 16);
    for (int64_t k = 1; k < parts; k++) {
      const float *from = acc[k] + at, *ak = a + k * LANES, *bk = b + k * LANES;
      if (ahead) {
        _mm_prefetch((const char *)(from + ahead), _MM_HINT_T0);
        _mm_prefetch((const char *)(from + ahead + 16), _MM_HINT_T0);
      }
      s = _mm512_mul_ps(_mm512_set1_ps(ak[x]), s);
      t = _mm512_mul_ps(_mm512_set1_ps(ak[x + 1]), t);
      s = _mm512_fmadd_ps(_mm512_set1_ps(bk[x]), _mm512_load_ps(from), s);
      t = _mm512_fmadd_ps(_mm512_set1_ps(bk[x + 1]), _mm512_load_ps(from + 16),
                          t);
    }
    _mm512_store_ps(sum + at, s);
    _mm512_store_ps(sum + at + 16, t);
  }
}

void mla_tile_scale_f32_avx512(int64_t tiles, float *acc, const float *times) {
  for (int64_t t = 0; t < tiles; t++)
    for (int i = 0; i < LANES; i++, acc += 16)
      _mm512_store_ps(
          acc, _mm512_mul_ps(_mm512_set1_ps(times[i]), _mm512_load_ps(acc)));
}

void mla_tile_line_f32_avx512(float *line, const float *acc, int64_t lane,
                              int64_t n, float times) {
  const __m512i low =
      _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  const __m512 by = _mm512_set1_ps(times);
  acc += lane * 16;
  for (int64_t c = 0; c < n; c += 32, acc += 32 * LANES) {
    __m512 x = _mm512_mul_ps(by, _mm512_load_ps(acc));
    __m512 y = _mm512_mul_ps(by, _mm512_load_ps(acc + 16 * LANES));
    _mm512_storeu_ps(line + c, _mm512_permutex2var_ps(x, low, y));
    _mm512_storeu_ps(line + c + 16, _mm512_permutex2var_ps(x, high, y));
  }
}

int mla_tile_finite_bf16_avx512(const uint16_t *x, int64_t n) {
  const __m512i top = _mm512_set1_epi16(0x7F80);
  __mmask32 found = 0;
  for (int64_t i = 0; i < n; i += 32) {
    __m512i some = _mm512_maskz_loadu_epi16(first_of(n - i), x + i);
    found |= _mm512_cmpeq_epi16_mask(_mm512_and_si512(some, top), top);
  }
  return !found;
}
