/*
 * cpu_tiles.h - attention where a matrix unit multiplies bf16 (cpu_kernels.h):
 * as cpu_attend.h, with blocks of more keys, and with probabilities rounded to
 * bf16 before they meet the values.
 */
#ifndef MLA_CPU_TILES_H
#define MLA_CPU_TILES_H

#include "cpu_attend.h"
#include "cpu_internal.h"

/* What one thread works in, beside an mla_cpu_tile. */
typedef struct mla_cpu_tiles {
  float scale;       /* of scores: queries stay as they are */
  int64_t width;     /* of a key, rounded up to whole tiles */
  int64_t ld;        /* of keys, in numbers */
  uint16_t *queries; /* [panels] of width * LANES */
  uint16_t *keys;    /* [TILE_BLOCK][ld] */
  uint16_t *values;  /* v_dim * TILE_BLOCK */
  uint16_t *weights[2];
  float *scores[2]; /* [TILE_BLOCK][LANES] */
} mla_cpu_tiles;

/* Keys and values that lie in mla_cpu_tiles. */
typedef struct mla_cpu_tile_block {
  const uint16_t *v; /* [n][v_ld]: values by rows, as they came */
  int64_t v_ld;
  int64_t first; /* position of the first key */
  int n;
  int fresh; /* the parts are as cleared: nothing to add to */
  mla_cpu_ahead_fn *ahead;
  const void *ahead_state;
} mla_cpu_tile_block;

void mla_cpu_tiles_take(mla_cpu_arena *arena, mla_cpu_tiles *tiles, int panels,
                        int64_t width, int64_t v_dim);

/* Zeros where keys end short of whole tiles: rows from n on, columns from
   `width` on. */
void mla_cpu_tiles_pad(mla_cpu_tiles *tiles, int64_t n, int64_t width);

/* Feeds a block to every panel's part. */
void mla_cpu_tiles_attend(const mla_cpu_table *table, mla_cpu_tile *tile,
                          mla_cpu_tiles *tiles,
                          const mla_cpu_tile_block *block);

#endif
