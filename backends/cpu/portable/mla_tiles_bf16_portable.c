/* What tiles of bf16 are filled with, at the compiler's baseline. */
#include "cpu_kernels.h"
#include "half.h"

mla_cpu_tile_queries_fn mla_tile_queries_bf16_portable;
mla_cpu_tile_values_fn mla_tile_values_bf16_portable;
mla_cpu_tile_weights_fn mla_tile_weights_bf16_portable;

#define LANES MLA_CPU_LANES
#define DEPTH MLA_CPU_TILE_DEPTH

static int64_t up(int64_t n) {
  return (n + DEPTH - 1) / DEPTH * DEPTH;
}

void mla_tile_queries_bf16_portable(uint16_t *queries,
                                    const uint16_t *const *rows, int64_t k) {
  for (int64_t p = 0; p < up(k); p++)
    for (int x = 0; x < LANES; x++)
      queries[(p / 2 * LANES + x) * 2 + p % 2] = p < k ? rows[x][p] : 0;
}

void mla_tile_values_bf16_portable(uint16_t *values, const uint16_t *rows,
                                   int64_t ld, int64_t n, int64_t v_dim) {
  for (int64_t c = 0; c < v_dim; c++) {
    uint16_t *tile = values + c / 16 * 16 * MLA_CPU_TILE_BLOCK + c % 16 * DEPTH;
    for (int64_t j = 0; j < up(n); j++)
      tile[j / DEPTH * 16 * DEPTH + j % DEPTH] = j < n ? rows[j * ld + c] : 0;
  }
}

void mla_tile_weights_bf16_portable(uint16_t *weights, const float *s,
                                    int64_t n) {
  for (int64_t j = 0; j < up(n); j++)
    for (int x = 0; x < LANES; x++)
      weights[(j / 2 * LANES + x) * 2 + j % 2] =
          j < n ? mla_f32_to_bf16(s[j * LANES + x]) : 0;
}
