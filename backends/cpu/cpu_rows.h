/*
 * cpu_rows.h - attention of few rows (cpu_kernels.h): as cpu_attend.h, with
 * keys read where they lie.
 *
 * A part's acc holds one row after the other, [LANES][v_dim], in the order of
 * columns that the kernels of the values' type want.
 */
#ifndef MLA_CPU_ROWS_H
#define MLA_CPU_ROWS_H

#include "cpu_attend.h"
#include "cpu_internal.h"

/* What one thread works in, beside an mla_cpu_tile. */
typedef struct mla_cpu_rows {
  int rows;           /* of the tile */
  int k_type, v_type; /* mla_cpu_type */
  int64_t ld;         /* of q */
  float *q;           /* [rows][ld], times the softmax scale */
  float *scores;      /* [8][BLOCK]; then weights */
} mla_cpu_rows;

void mla_cpu_rows_take(mla_cpu_arena *arena, mla_cpu_rows *rows, int panels,
                       int64_t width);

/* Row i's queries; line: of tile->width numbers in their own order. */
void mla_cpu_rows_query(const mla_cpu_table *table, mla_cpu_rows *rows,
                        int64_t i, const float *line, int64_t width,
                        float scale);

/* A part of the first `rows` rows: m, l of all lanes, acc of those alone. */
void mla_cpu_rows_clear(mla_cpu_part part, int64_t v_dim, int64_t rows);

/* Up to MLA_CPU_BLOCK keys and values, of one request. */
typedef struct mla_cpu_rows_block {
  const void *const *k, *const *v;
  int64_t first; /* position of the first key */
  int n;
  const void *const *next; /* n keys that come then; NULL: not so many */
} mla_cpu_rows_block;

void mla_cpu_rows_attend(const mla_cpu_table *table, const mla_cpu_tile *tile,
                         const mla_cpu_rows *rows,
                         const mla_cpu_rows_block *block);

/* part := part and other, of one panel. */
void mla_cpu_rows_fold(int64_t v_dim, mla_cpu_part part, mla_cpu_part other);

/* The first `rows` rows of a part as cpu_attend.h has them, acc in
   tile->spare. */
mla_cpu_part mla_cpu_rows_turn(const mla_cpu_tile *tile, int v_type, int rows,
                               mla_cpu_part part);

#endif
