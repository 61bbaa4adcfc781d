/*
 * What tiles of bf16 are filled with: pairs of 16-bit numbers are 32-bit words,
 * and sixteen rows of sixteen words are transposed in registers.
 */
#include <immintrin.h>

#include "cpu_kernels.h"
#include "transpose_avx512.h"

mla_cpu_tile_queries_fn mla_tile_queries_bf16_avx512;
mla_cpu_tile_values_fn mla_tile_values_bf16_avx512;

#define LANES MLA_CPU_LANES
#define DEPTH MLA_CPU_TILE_DEPTH

static inline __mmask32 first(int64_t n) {
  return n < DEPTH ? (__mmask32)((1u << n) - 1u) : (__mmask32)0xFFFFFFFFu;
}

void mla_tile_queries_bf16_avx512(uint16_t *queries,
                                  const uint16_t *const *rows, int64_t k) {
  for (int64_t p = 0; p < k; p += DEPTH) {
    __mmask32 some = first(k - p);
    __m512 r[16];
    for (int x = 0; x < LANES; x++)
      r[x] = _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(some, rows[x] + p));
    mla_transpose_avx512(r);
    for (int i = 0; i < 16; i++)
      _mm512_store_si512(queries + (p + 2 * i) * LANES,
                         _mm512_castps_si512(r[i]));
  }
}

/*
 * Up to 32 keys of 32 numbers, the first of them at from. Interleaving two keys
 * gives pairs, four numbers of every eight in `low`, the others in `high`; so
 * word 4 q + j of a transposed low is number 8 q + j. half: 16 numbers only.
 */
static inline void transpose_keys(const uint16_t *from, int64_t ld, int64_t n,
                                  int half, uint16_t *to) {
  __mmask32 some = half ? 0xFFFFu : 0xFFFFFFFFu;
  __m512 low[16], high[16];
  for (int64_t i = 0; i < 16; i++) {
    const uint16_t *at = from + 2 * i * ld;
    __m512i a = _mm512_setzero_si512(), b = a;
    if (2 * i < n) a = _mm512_maskz_loadu_epi16(some, at);
    if (2 * i + 1 < n) b = _mm512_maskz_loadu_epi16(some, at + ld);
    low[i] = _mm512_castsi512_ps(_mm512_unpacklo_epi16(a, b));
    high[i] = _mm512_castsi512_ps(_mm512_unpackhi_epi16(a, b));
  }
  mla_transpose_avx512(low);
  mla_transpose_avx512(high);
  for (int w = 0; w < (half ? 8 : 16); w++) {
    int c = w / 4 * 8 + w % 4;
    uint16_t *row = to + c / 16 * 16 * MLA_CPU_TILE_BLOCK + c % 16 * DEPTH;
    _mm512_store_si512(row, _mm512_castps_si512(low[w]));
    _mm512_store_si512(row + 4 * DEPTH, _mm512_castps_si512(high[w]));
  }
}

void mla_tile_values_bf16_avx512(uint16_t *values, const uint16_t *rows,
                                 int64_t ld, int64_t n, int64_t v_dim) {
  for (int64_t j = 0; j < n; j += DEPTH)
    for (int64_t c = 0; c < v_dim; c += 32)
      transpose_keys(rows + j * ld + c, ld, n - j, v_dim - c < 32,
                     values + c * MLA_CPU_TILE_BLOCK + j * 16);
}
