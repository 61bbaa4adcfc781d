/*
 * Products of bf16 tiles with AMX. Four of the eight tile registers hold sums,
 * two by two: each step of 32 takes four loads and gives four products. Sums
 * are f32; the unit reads and writes subnormals as zero.
 */
#ifndef MLA_AMX_EMULATED /* tests bring the instructions in plain C */
#include <immintrin.h>
#endif

#include "cpu_kernels.h"

mla_cpu_tile_scores_fn mla_tile_scores_bf16_amx;
mla_cpu_tile_product_fn mla_tile_product_bf16_amx;

#define LANES MLA_CPU_LANES
#define DEPTH MLA_CPU_TILE_DEPTH

enum { row_bytes = 64 }; /* of every tile here: 16 f32 or 32 bf16 */

/* All tiles 16 rows of 64 bytes. */
static void configure(void) {
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

/* Two tiles of rows (a, below it a_next) against two panels. */
static inline void four_sums(int64_t steps, const uint16_t *a,
                             const uint16_t *a_next, int64_t a_ld,
                             int64_t a_step, const uint16_t *b0,
                             const uint16_t *b1) {
  for (int64_t s = 0; s < steps; s++) {
    _tile_loadd(4, a, a_ld * 2);
    _tile_loadd(6, b0, row_bytes);
    _tile_loadd(7, b1, row_bytes);
    _tile_loadd(5, a_next, a_ld * 2);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    a += a_step;
    a_next += a_step;
    b0 += LANES * DEPTH;
    b1 += LANES * DEPTH;
  }
}

/* One tile of rows against two panels. */
static inline void two_sums(int64_t steps, const uint16_t *a, int64_t a_ld,
                            int64_t a_step, const uint16_t *b0,
                            const uint16_t *b1) {
  for (int64_t s = 0; s < steps; s++) {
    _tile_loadd(4, a, a_ld * 2);
    _tile_loadd(6, b0, row_bytes);
    _tile_loadd(7, b1, row_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    a += a_step;
    b0 += LANES * DEPTH;
    b1 += LANES * DEPTH;
  }
}

/* One tile of rows, or two, against one panel: sums 0 and 2. */
static inline void one_panel(int64_t steps, const uint16_t *a,
                             const uint16_t *a_next, int64_t a_ld,
                             int64_t a_step, const uint16_t *b) {
  for (int64_t s = 0; s < steps; s++) {
    _tile_loadd(6, b, row_bytes);
    _tile_loadd(4, a, a_ld * 2);
    _tile_dpbf16ps(0, 4, 6);
    if (a_next) {
      _tile_loadd(5, a_next, a_ld * 2);
      _tile_dpbf16ps(2, 5, 6);
      a_next += a_step;
    }
    a += a_step;
    b += LANES * DEPTH;
  }
}

/* Sums of tiles at rows i and i + 16 of every panel: begun, and put back. */
static inline void begin(int add, int panels, int both, float *const *c,
                         int64_t at) {
  if (!add) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    return;
  }
  _tile_loadd(0, c[0] + at, row_bytes);
  if (both) _tile_loadd(2, c[0] + at + 16 * LANES, row_bytes);
  if (panels < 2) return;
  _tile_loadd(1, c[1] + at, row_bytes);
  if (both) _tile_loadd(3, c[1] + at + 16 * LANES, row_bytes);
}

static inline void finish(int panels, int both, float *const *c, int64_t at) {
  _tile_stored(0, c[0] + at, row_bytes);
  if (both) _tile_stored(2, c[0] + at + 16 * LANES, row_bytes);
  if (panels < 2) return;
  _tile_stored(1, c[1] + at, row_bytes);
  if (both) _tile_stored(3, c[1] + at + 16 * LANES, row_bytes);
}

/*
 * c[panel][m][LANES] (+)= a x b[panel]. Tiles of a begin a_tile numbers apart,
 * have rows a_ld apart, and steps of 32 along them a_step.
 */
static void product(int64_t m, int64_t k, const uint16_t *a, int64_t a_tile,
                    int64_t a_ld, int64_t a_step, int panels,
                    const uint16_t *const *b, int add, float *const *c) {
  int64_t steps = k / DEPTH;
  configure();
  for (int64_t i = 0; i < m; i += 32, a += 2 * a_tile) {
    int both = i + 16 < m;
    const uint16_t *next = both ? a + a_tile : (const uint16_t *)0;
    begin(add, panels, both, c, i * LANES);
    if (panels < 2)
      one_panel(steps, a, next, a_ld, a_step, b[0]);
    else if (both)
      four_sums(steps, a, next, a_ld, a_step, b[0], b[1]);
    else
      two_sums(steps, a, a_ld, a_step, b[0], b[1]);
    finish(panels, both, c, i * LANES);
  }
  _tile_release();
}

void mla_tile_scores_bf16_amx(int64_t n16, int64_t k32, const uint16_t *keys,
                              int64_t ld, int panels,
                              const uint16_t *const *queries,
                              float *const *scores) {
  product(n16, k32, keys, 16 * ld, ld, DEPTH, panels, queries, 0, scores);
}

void mla_tile_product_bf16_amx(int64_t v_dim, int64_t n32,
                               const uint16_t *values, int panels,
                               const uint16_t *const *weights, int add,
                               float *const *acc) {
  product(v_dim, n32, values, 16 * MLA_CPU_TILE_BLOCK, DEPTH, 16 * DEPTH,
          panels, weights, add, acc);
}
