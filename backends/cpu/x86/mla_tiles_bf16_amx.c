/*
 * Products of bf16 tiles with AMX. Sums are f32; the unit reads and writes
 * subnormals as zero.
 *
 * Five of the eight tile registers are in use, not more: two threads of a core
 * share what registers are renamed to, and with all eight in use a load waits
 * for the products that still read what it replaces. Two or three sums, one
 * register for rows and one for pairs are twice as fast there as two by two
 * with four sums, and no slower on a core of one's own.
 */
#ifndef MLA_AMX_EMULATED /* tests bring the instructions in plain C */
#include <immintrin.h>
#endif

#include "cpu_kernels.h"

mla_cpu_tile_begin_fn mla_tile_begin_bf16_amx;
mla_cpu_tile_end_fn mla_tile_end_bf16_amx;
mla_cpu_tile_scores_fn mla_tile_scores_bf16_amx;
mla_cpu_tile_product_fn mla_tile_product_bf16_amx;

#define LANES MLA_CPU_LANES
#define DEPTH MLA_CPU_TILE_DEPTH
#define TILE (LANES * DEPTH) /* numbers of bf16; f32: half as many */
#define PANEL (MLA_CPU_TILE_BLOCK * LANES) /* of scores */

enum { row_bytes = 64 }; /* of every tile here: 16 f32 or 32 bf16 */

/* All tiles 16 rows of 64 bytes. */
void mla_tile_begin_bf16_amx(void) {
  static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } all = {1,
           0,
           {0},
           {64, 64, 64, 64, 64, 64, 64, 64},
           {16, 16, 16, 16, 16, 16, 16, 16}};
  _tile_loadconfig(&all);
}

void mla_tile_end_bf16_amx(void) {
  _tile_release();
}

/* ----------------------------------------------------------------- scores */

/* One panel, three tiles of keys. */
static inline void three_tiles(int64_t steps, const mla_cpu_tile_rows *keys,
                               const uint16_t *queries, float *c) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  for (int64_t at = 0; at < steps * DEPTH; at += DEPTH, queries += TILE) {
    _tile_loadd(4, queries, row_bytes);
    _tile_loadd(3, keys[0].at + at, keys[0].ld * 2);
    _tile_dpbf16ps(0, 3, 4);
    _tile_loadd(3, keys[1].at + at, keys[1].ld * 2);
    _tile_dpbf16ps(1, 3, 4);
    _tile_loadd(3, keys[2].at + at, keys[2].ld * 2);
    _tile_dpbf16ps(2, 3, 4);
  }
  _tile_stored(0, c, row_bytes);
  _tile_stored(1, c + TILE / 2, row_bytes);
  _tile_stored(2, c + TILE, row_bytes);
}

/* One tile of keys, three panels. */
static inline void three_panels(int64_t steps, const mla_cpu_tile_rows *keys,
                                const uint16_t *queries, float *c) {
  const uint16_t *second = queries + steps * TILE;
  const uint16_t *third = second + steps * TILE;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  for (int64_t s = 0; s < steps; s++) {
    _tile_loadd(3, keys->at + s * DEPTH, keys->ld * 2);
    _tile_loadd(4, queries + s * TILE, row_bytes);
    _tile_dpbf16ps(0, 3, 4);
    _tile_loadd(4, second + s * TILE, row_bytes);
    _tile_dpbf16ps(1, 3, 4);
    _tile_loadd(4, third + s * TILE, row_bytes);
    _tile_dpbf16ps(2, 3, 4);
  }
  _tile_stored(0, c, row_bytes);
  _tile_stored(1, c + PANEL, row_bytes);
  _tile_stored(2, c + 2 * PANEL, row_bytes);
}

static inline void two_panels(int64_t steps, const mla_cpu_tile_rows *keys,
                              const uint16_t *queries, float *c) {
  const uint16_t *second = queries + steps * TILE;
  _tile_zero(0);
  _tile_zero(1);
  for (int64_t s = 0; s < steps; s++) {
    _tile_loadd(3, keys->at + s * DEPTH, keys->ld * 2);
    _tile_loadd(4, queries + s * TILE, row_bytes);
    _tile_dpbf16ps(0, 3, 4);
    _tile_loadd(4, second + s * TILE, row_bytes);
    _tile_dpbf16ps(1, 3, 4);
  }
  _tile_stored(0, c, row_bytes);
  _tile_stored(1, c + PANEL, row_bytes);
}

static inline void one_panel(int64_t steps, const mla_cpu_tile_rows *keys,
                             const uint16_t *queries, float *c) {
  _tile_zero(0);
  for (int64_t s = 0; s < steps; s++) {
    _tile_loadd(3, keys->at + s * DEPTH, keys->ld * 2);
    _tile_loadd(4, queries + s * TILE, row_bytes);
    _tile_dpbf16ps(0, 3, 4);
  }
  _tile_stored(0, c, row_bytes);
}

/* One tile of keys, which stays in the nearest cache, and the panels that see
   any of it. */
static void panels_of_tile(int64_t steps, const mla_cpu_tile_rows *keys,
                           int64_t first, int panels, const int64_t *n16,
                           const uint16_t *queries, float *c) {
  for (int p = 0; p < panels;) {
    int left = panels - p, now = left == 3 || left > 4 ? 3 : left > 1 ? 2 : 1;
    const uint16_t *q = queries + p * steps * TILE;
    if (n16[p] <= first) {
      p++;
      continue;
    }
    if (now == 3)
      three_panels(steps, keys, q, c + p * PANEL);
    else if (now == 2)
      two_panels(steps, keys, q, c + p * PANEL);
    else
      one_panel(steps, keys, q, c + p * PANEL);
    p += now;
  }
}

void mla_tile_scores_bf16_amx(int64_t k32, const mla_cpu_tile_rows *keys,
                              int panels, const int64_t *n16,
                              const uint16_t *queries, float *scores) {
  int64_t steps = k32 / DEPTH, most = 0, t = 0;
  for (int p = 0; p < panels; p++) most = n16[p] > most ? n16[p] : most;
  for (; panels == 1 && t + 3 <= most / 16; t += 3)
    three_tiles(steps, keys + t, queries, scores + t * TILE / 2);
  for (; t < most / 16; t++)
    panels_of_tile(steps, keys + t, t * 16, panels, n16, queries,
                   scores + t * TILE / 2);
}

/* ---------------------------------------------------------------- product */

void mla_tile_product_bf16_amx(int64_t n32, const uint16_t *values,
                               const uint16_t *weights, int add, float *acc) {
  if (add) {
    _tile_loadd(0, acc, row_bytes);
    _tile_loadd(1, acc + TILE / 2, row_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
  }
  for (int64_t j = 0; j < n32;
       j += DEPTH, weights += TILE, values += 2 * TILE) {
    _tile_loadd(3, weights, row_bytes);
    _tile_loadd(4, values, row_bytes);
    _tile_dpbf16ps(0, 3, 4);
    _tile_loadd(4, values + TILE, row_bytes);
    _tile_dpbf16ps(1, 3, 4);
  }
  _tile_stored(0, acc, row_bytes);
  _tile_stored(1, acc + TILE / 2, row_bytes);
}
