/* Probabilities to tiles of bf16: rounded by the processor, two keys at a
   time. */
#include <immintrin.h>

#include "cpu_kernels.h"

mla_cpu_tile_weights_fn mla_tile_weights_bf16_avx512_bf16;

#define LANES MLA_CPU_LANES
#define DEPTH MLA_CPU_TILE_DEPTH

void mla_tile_weights_bf16_avx512_bf16(uint16_t *weights, const float *s,
                                       int64_t n) {
  /* Word x of the result: lane x of both keys. */
  static const uint16_t pairs[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                     21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                     11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i order = _mm512_loadu_si512(pairs);
  int64_t n32 = (n + DEPTH - 1) / DEPTH * DEPTH;
  for (int64_t j = 0; j < n32; j += 2, weights += 2 * LANES) {
    __m512 a = _mm512_setzero_ps(), b = a;
    if (j < n) a = _mm512_load_ps(s + j * LANES);
    if (j + 1 < n) b = _mm512_load_ps(s + (j + 1) * LANES);
    __m512i both = (__m512i)_mm512_cvtne2ps_pbh(b, a);
    _mm512_store_si512(weights, _mm512_permutexvar_epi16(order, both));
  }
}
