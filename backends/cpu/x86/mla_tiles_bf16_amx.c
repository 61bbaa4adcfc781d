/*
 * Products of bf16 tiles with AMX. Four of the eight tile registers hold sums,
 * so that each waits for the unit, not for the one before it. Sums are f32; the
 * unit reads and writes subnormals as zero.
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

static inline void no_sums(void) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

/* Two tiles of rows a against two of pairs b, steps of 32. */
static inline void two_by_two(int64_t steps, const uint16_t *a0, int64_t ld0,
                              const uint16_t *a1, int64_t ld1, int64_t a_step,
                              const uint16_t *b0, const uint16_t *b1,
                              int64_t b_step) {
  for (int64_t s = 0; s < steps; s++) {
    _tile_loadd(4, a0, ld0 * 2);
    _tile_loadd(6, b0, row_bytes);
    _tile_loadd(7, b1, row_bytes);
    _tile_loadd(5, a1, ld1 * 2);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    a0 += a_step;
    a1 += a_step;
    b0 += b_step;
    b1 += b_step;
  }
}

/* ----------------------------------------------------------------- scores */

/* Two tiles of keys or one, two panels. */
static inline void scores_of_two(int64_t steps, const mla_cpu_tile_rows *keys,
                                 int both, const uint16_t *const *queries,
                                 float *c0, float *c1) {
  const mla_cpu_tile_rows *other = both ? keys + 1 : keys;
  no_sums();
  two_by_two(steps, keys->at, keys->ld, other->at, other->ld, DEPTH, queries[0],
             queries[1], TILE);
  _tile_stored(0, c0, row_bytes);
  _tile_stored(1, c1, row_bytes);
  if (!both) return;
  _tile_stored(2, c0 + TILE / 2, row_bytes);
  _tile_stored(3, c1 + TILE / 2, row_bytes);
}

/* Four tiles of keys, one panel. */
static inline void scores_of_one(int64_t steps, const mla_cpu_tile_rows *keys,
                                 const uint16_t *queries, float *c) {
  no_sums();
  for (int64_t s = 0; s < steps; s++, queries += TILE) {
    _tile_loadd(6, queries, row_bytes);
    _tile_loadd(4, keys[0].at + s * DEPTH, keys[0].ld * 2);
    _tile_loadd(5, keys[1].at + s * DEPTH, keys[1].ld * 2);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, keys[2].at + s * DEPTH, keys[2].ld * 2);
    _tile_dpbf16ps(1, 5, 6);
    _tile_loadd(4, keys[3].at + s * DEPTH, keys[3].ld * 2);
    _tile_dpbf16ps(2, 7, 6);
    _tile_dpbf16ps(3, 4, 6);
  }
  _tile_stored(0, c, row_bytes);
  _tile_stored(1, c + TILE / 2, row_bytes);
  _tile_stored(2, c + TILE, row_bytes);
  _tile_stored(3, c + TILE / 2 * 3, row_bytes);
}

static inline void scores_of_tile(int64_t steps, const mla_cpu_tile_rows *keys,
                                  const uint16_t *queries, float *c) {
  _tile_zero(0);
  for (int64_t s = 0; s < steps; s++, queries += TILE) {
    _tile_loadd(6, queries, row_bytes);
    _tile_loadd(4, keys->at + s * DEPTH, keys->ld * 2);
    _tile_dpbf16ps(0, 4, 6);
  }
  _tile_stored(0, c, row_bytes);
}

void mla_tile_scores_bf16_amx(int64_t n16, int64_t k32,
                              const mla_cpu_tile_rows *keys, int panels,
                              const uint16_t *const *queries,
                              float *const *scores) {
  int64_t steps = k32 / DEPTH, tiles = n16 / 16, t = 0;
  if (panels == 2) {
    for (; t < tiles; t += 2)
      scores_of_two(steps, keys + t, t + 1 < tiles, queries,
                    scores[0] + t * TILE / 2, scores[1] + t * TILE / 2);
    return;
  }
  for (; t + 4 <= tiles; t += 4)
    scores_of_one(steps, keys + t, queries[0], scores[0] + t * TILE / 2);
  for (; t < tiles; t++)
    scores_of_tile(steps, keys + t, queries[0], scores[0] + t * TILE / 2);
}

/* ---------------------------------------------------------------- product */

/* Two panels, 32 columns. */
static inline void product_of_two(int64_t steps, const uint16_t *values,
                                  const uint16_t *const *weights, int add,
                                  float *c0, float *c1) {
  if (add) {
    _tile_loadd(0, c0, row_bytes);
    _tile_loadd(1, c0 + TILE / 2, row_bytes);
    _tile_loadd(2, c1, row_bytes);
    _tile_loadd(3, c1 + TILE / 2, row_bytes);
  } else {
    no_sums();
  }
  two_by_two(steps, weights[0], DEPTH, weights[1], DEPTH, TILE, values,
             values + TILE, 2 * TILE);
  _tile_stored(0, c0, row_bytes);
  _tile_stored(1, c0 + TILE / 2, row_bytes);
  _tile_stored(2, c1, row_bytes);
  _tile_stored(3, c1 + TILE / 2, row_bytes);
}

/* One panel, 64 columns. */
static inline void product_of_one(int64_t steps, const uint16_t *values,
                                  int64_t next, const uint16_t *weights,
                                  int add, float *c) {
  if (add) {
    _tile_loadd(0, c, row_bytes);
    _tile_loadd(1, c + TILE / 2, row_bytes);
    _tile_loadd(2, c + TILE, row_bytes);
    _tile_loadd(3, c + TILE / 2 * 3, row_bytes);
  } else {
    no_sums();
  }
  for (int64_t s = 0; s < steps; s++) {
    const uint16_t *v = values + s * 2 * TILE;
    _tile_loadd(4, weights + s * TILE, row_bytes);
    _tile_loadd(5, v, row_bytes);
    _tile_loadd(6, v + TILE, row_bytes);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(7, v + next, row_bytes);
    _tile_dpbf16ps(1, 4, 6);
    _tile_loadd(5, v + next + TILE, row_bytes);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_stored(0, c, row_bytes);
  _tile_stored(1, c + TILE / 2, row_bytes);
  _tile_stored(2, c + TILE, row_bytes);
  _tile_stored(3, c + TILE / 2 * 3, row_bytes);
}

/* One panel, 32 columns. */
static inline void product_of_half(int64_t steps, const uint16_t *values,
                                   const uint16_t *weights, int add, float *c) {
  no_sums();
  if (add) {
    _tile_loadd(0, c, row_bytes);
    _tile_loadd(1, c + TILE / 2, row_bytes);
  }
  for (int64_t s = 0; s < steps; s++, values += 2 * TILE) {
    _tile_loadd(4, weights + s * TILE, row_bytes);
    _tile_loadd(5, values, row_bytes);
    _tile_loadd(6, values + TILE, row_bytes);
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 6);
  }
  _tile_stored(0, c, row_bytes);
  _tile_stored(1, c + TILE / 2, row_bytes);
}

void mla_tile_product_bf16_amx(int64_t columns, int64_t n32,
                               const uint16_t *values, int64_t next, int panels,
                               const uint16_t *const *weights, int add,
                               float *const *acc) {
  int64_t steps = n32 / DEPTH;
  if (panels == 1 && columns == 64) {
    product_of_one(steps, values, next, weights[0], add, acc[0]);
    return;
  }
  for (int64_t c = 0; c < columns; c += 32, values += next) {
    float *c0 = acc[0] + c * LANES;
    if (panels == 2)
      product_of_two(steps, values, weights, add, c0, acc[1] + c * LANES);
    else
      product_of_half(steps, values, weights[0], add, c0);
  }
}
