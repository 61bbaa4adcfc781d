/*
 * cpu_attend.h - softmax attention of a tile of rows over blocks of keys: the
 * part that decode and prefill share.
 *
 * A row is a (query token, head) pair; MLA_CPU_LANES rows make a panel, a few
 * panels a tile. All rows of a tile see the same keys and values, each up to
 * its own limit.
 */
#ifndef MLA_CPU_ATTEND_H
#define MLA_CPU_ATTEND_H

#include "cpu_arena.h"
#include "cpu_table.h"

/* Running softmax of one panel: m[LANES], l[LANES], acc[v_dim][LANES]. */
typedef struct mla_cpu_part {
  float *m, *l, *acc;
} mla_cpu_part;

/* Floats of one panel's part, and its view inside such memory. */
int64_t mla_cpu_part_floats(int64_t v_dim);
mla_cpu_part mla_cpu_part_at(float *memory, int64_t v_dim);
void mla_cpu_part_clear(mla_cpu_part part, int64_t v_dim);

typedef struct mla_cpu_tile {
  int panels;     /* in use */
  int rows;       /* in use, of the panels' lanes; 0: all */
  int64_t width;  /* of a key */
  int64_t v_dim;  /* of a value */
  float soft_cap; /* 0: none */
  float *q;       /* [panels][width][LANES], times the softmax scale */
  const struct mla_cpu_codes *codes; /* what scores come from; NULL: q */
  int64_t *limit; /* [panels * LANES]: keys before this one are seen */
  float *scores;  /* [WIDE_BLOCK][LANES] */
  float *spare;   /* [v_dim][LANES] */
  float *parts;   /* [panels] of mla_cpu_part_floats(v_dim) */
} mla_cpu_tile;

/* Takes a tile's memory for up to `panels` panels; `parts` stays the
   caller's. */
void mla_cpu_tile_take(mla_cpu_arena *arena, mla_cpu_tile *tile, int panels,
                       int64_t width, int64_t v_dim);

/*
 * Fetches share `part` of `parts` of what comes after a block: called now and
 * then while the block is worked on, so that memory and arithmetic overlap.
 */
typedef void mla_cpu_ahead_fn(const void *state, int part, int parts);

/* Up to MLA_CPU_WIDE_BLOCK keys and values in f32. */
typedef struct mla_cpu_block {
  const float *k, *v;
  int64_t k_ld, v_ld;
  int64_t first; /* position of the first key */
  int n;
  mla_cpu_ahead_fn *ahead; /* NULL: nothing to fetch */
  const void *ahead_state;
} mla_cpu_block;

/* Feeds a block to every panel's part. */
void mla_cpu_attend_block(const mla_cpu_table *table, mla_cpu_tile *tile,
                          const mla_cpu_block *block);

/* part := part and other, as if one softmax. */
void mla_cpu_part_fold(const mla_cpu_table *table, int64_t v_dim,
                       mla_cpu_part part, mla_cpu_part other);

/* Where a panel's rows go. */
typedef struct mla_cpu_rows_out {
  int rows; /* lanes in use */
  int out_type;
  int base2; /* lse to base 2 */
  int tiles; /* acc lies in tiles (cpu_tiles.h), not [v_dim][LANES] */
  void *out[MLA_CPU_LANES];
  float *lse[MLA_CPU_LANES];        /* all NULL: not wanted */
  const float *sink[MLA_CPU_LANES]; /* all NULL: none */
} mla_cpu_rows_out;

/* Divides, takes the logarithm and writes. line: v_dim floats of scratch. */
void mla_cpu_part_finish(const mla_cpu_table *table, int64_t v_dim,
                         mla_cpu_part part, const mla_cpu_rows_out *rows,
                         float *line);

#endif
