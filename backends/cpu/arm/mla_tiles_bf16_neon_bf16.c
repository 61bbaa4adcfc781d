/*
 * Products of bf16 tiles with BFDOT: each instruction adds, to four lanes (or
 * columns), the products of two numbers. Sixteen sums stand in registers, four
 * rows by sixteen lanes. Sums are f32 and rounded to odd: an error of twice
 * that of rounding to nearest, once for two products, so a chain of n errs as
 * n roundings do. The instruction reads and writes subnormals as zero.
 */
#include <arm_neon.h>

#include "cpu_kernels.h"

mla_cpu_tile_begin_fn mla_tile_begin_bf16_neon_bf16;
mla_cpu_tile_end_fn mla_tile_end_bf16_neon_bf16;
mla_cpu_tile_scores_fn mla_tile_scores_bf16_neon_bf16;
mla_cpu_tile_product_fn mla_tile_product_bf16_neon_bf16;

#define LANES MLA_CPU_LANES
#define DEPTH MLA_CPU_TILE_DEPTH
#define TILE (LANES * DEPTH) /* numbers of bf16; f32: half as many */

enum { ROWS = 4, QUADS = LANES / 4 };

typedef float32x4_t sums[ROWS][QUADS];

/* Nothing to prepare: there is no state but registers. */
void mla_tile_begin_bf16_neon_bf16(void) {}
void mla_tile_end_bf16_neon_bf16(void) {}

static inline bfloat16x8_t eight(const uint16_t *from) {
  return vreinterpretq_bf16_u16(vld1q_u16(from));
}

/* The p-th pair of each row's eight numbers with sixteen lanes' pairs. */
#define ADD_PAIR(c, rows, lanes, p)                                     \
  do {                                                                  \
    for (int i = 0; i < QUADS; i++) {                                   \
      const bfloat16x8_t four = eight((lanes) + 8 * i);                 \
      for (int r = 0; r < ROWS; r++)                                    \
        (c)[r][i] = vbfdotq_laneq_f32((c)[r][i], four, (rows)[r], (p)); \
    }                                                                   \
  } while (0)

/* Eight numbers of each of four rows with as many of sixteen lanes, which are
   pairs, lane by lane. */
static inline void add_eight(sums c, const uint16_t *const row[ROWS],
                             const uint16_t *lanes) {
  bfloat16x8_t a[ROWS];
  for (int r = 0; r < ROWS; r++) a[r] = eight(row[r]);
  ADD_PAIR(c, a, lanes, 0);
  ADD_PAIR(c, a, lanes + 2 * LANES, 1);
  ADD_PAIR(c, a, lanes + 4 * LANES, 2);
  ADD_PAIR(c, a, lanes + 6 * LANES, 3);
}

static inline void no_sums(sums c) {
  for (int r = 0; r < ROWS; r++)
    for (int i = 0; i < QUADS; i++) c[r][i] = vdupq_n_f32(0.0f);
}

static inline void load_sums(sums c, const float *from) {
  for (int r = 0; r < ROWS; r++)
    for (int i = 0; i < QUADS; i++) c[r][i] = vld1q_f32(from + 16 * r + 4 * i);
}

static inline void store_sums(float *to, sums c) {
  for (int r = 0; r < ROWS; r++)
    for (int i = 0; i < QUADS; i++) vst1q_f32(to + 16 * r + 4 * i, c[r][i]);
}

/* Four keys against one panel. */
static void scores_of_four(int64_t k32, const uint16_t *keys, int64_t ld,
                           const uint16_t *queries, float *scores) {
  const uint16_t *row[ROWS];
  sums c;
  for (int r = 0; r < ROWS; r++) row[r] = keys + r * ld;
  no_sums(c);
  for (int64_t k = 0; k < k32; k += 8, queries += 8 * LANES) {
    add_eight(c, row, queries);
    for (int r = 0; r < ROWS; r++) row[r] += 8;
  }
  store_sums(scores, c);
}

void mla_tile_scores_bf16_neon_bf16(int64_t k32, const mla_cpu_tile_rows *keys,
                                    int panels, const int64_t *n16,
                                    const uint16_t *queries, float *scores) {
  int64_t most = 0;
  for (int p = 0; p < panels; p++) most = n16[p] > most ? n16[p] : most;
  for (int64_t j = 0; j < most; j += ROWS) {
    const mla_cpu_tile_rows *tile = &keys[j / 16];
    for (int p = 0; p < panels; p++)
      if (j < n16[p])
        scores_of_four(k32, tile->at + j % 16 * tile->ld, tile->ld,
                       queries + p * k32 * LANES,
                       scores + (p * MLA_CPU_TILE_BLOCK + j) * LANES);
  }
}

/* Four lanes' weights with sixteen columns of values, steps of 32 keys. */
static void product_of_four(int64_t n32, const uint16_t *weights,
                            const uint16_t *values, int add, float *acc) {
  sums c;
  if (add)
    load_sums(c, acc);
  else
    no_sums(c);
  for (int64_t j = 0; j < n32; j += DEPTH, weights += TILE, values += 2 * TILE)
    for (int part = 0; part < DEPTH; part += 8) {
      const uint16_t *row[ROWS];
      for (int r = 0; r < ROWS; r++) row[r] = weights + r * DEPTH + part;
      add_eight(c, row, values + part * 16);
    }
  store_sums(acc, c);
}

void mla_tile_product_bf16_neon_bf16(int64_t n32, const uint16_t *values,
                                     const uint16_t *weights, int add,
                                     float *acc) {
  for (int half = 0; half < 2; half++, values += TILE)
    for (int lane = 0; lane < LANES; lane += ROWS, acc += 16 * ROWS)
      product_of_four(n32, weights + lane * DEPTH, values, add, acc);
}
