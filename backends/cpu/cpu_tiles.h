/*
 * cpu_tiles.h - attention where a matrix unit multiplies bf16 (cpu_kernels.h):
 * as cpu_attend.h, with blocks of more keys, with probabilities rounded to bf16
 * before they meet the values, and with a part's acc in tiles of sixteen lanes
 * and sixteen columns.
 */
#ifndef MLA_CPU_TILES_H
#define MLA_CPU_TILES_H

#include "cpu_attend.h"
#include "cpu_internal.h"

#define MLA_CPU_TILES_PANELS 8 /* of an mla_cpu_tile, at most */

/* What one thread works in, beside an mla_cpu_tile. */
typedef struct mla_cpu_tiles {
  float scale;       /* of scores: queries stay as they are */
  int64_t width;     /* of a key, rounded up to whole tiles */
  uint16_t *queries; /* [panels] of width * LANES */
  uint16_t *keys;    /* [TILE_BLOCK][width]: those that can not stay */
  uint16_t *values;  /* [TILE_BLOCK][32] */
  uint16_t *weights; /* [panels][TILE_BLOCK][LANES] */
  float *scores;     /* [panels][TILE_BLOCK][LANES] */
  mla_cpu_tile_rows rows[MLA_CPU_TILE_BLOCK / 16]; /* the block's keys */
} mla_cpu_tiles;

/* Up to MLA_CPU_TILE_BLOCK keys; where they lie is in mla_cpu_tiles. */
typedef struct mla_cpu_tile_block {
  const uint16_t *values; /* ready, 32 columns after another; NULL: they are
                             the first columns of the keys */
  int64_t values_ld;      /* numbers from 32 columns to the next */
  int64_t first;          /* position of the first key */
  int n;
  int fresh;               /* acc is not cleared: nothing to add to */
  mla_cpu_ahead_fn *ahead; /* NULL: nothing to fetch */
  const void *ahead_state;
} mla_cpu_tile_block;

void mla_cpu_tiles_take(mla_cpu_arena *arena, mla_cpu_tiles *tiles, int panels,
                        int64_t width);

/* A panel's part that has seen nothing; acc stays, see `fresh`. */
void mla_cpu_tiles_clear(mla_cpu_part part);

/* part := part and other, as if one softmax. */
void mla_cpu_tiles_fold(const mla_cpu_table *table, int64_t v_dim,
                        mla_cpu_part part, mla_cpu_part other);

/* Keys at k[0 .. n - 1] become the block's; ld: what they lie apart where 16 of
   them can be read as they are; 0: copy them. */
void mla_cpu_tiles_keys(mla_cpu_tiles *tiles, int64_t n, int64_t width,
                        const void *const *k, int64_t ld);

/* Feeds a block to every panel's part. */
void mla_cpu_tiles_attend(const mla_cpu_table *table, mla_cpu_tile *tile,
                          mla_cpu_tiles *tiles,
                          const mla_cpu_tile_block *block);

#endif
