/*
 * bad_map.h - where in a tensor the wrong values lie, as a small picture.
 *
 * Columns are the last axis, rows all others together in order. When there
 * are more than fit, a cell stands for a part of them.
 */
#ifndef MLA_BAD_MAP_H
#define MLA_BAD_MAP_H

#include <stdint.h>

#define MLA_MAP_ROWS 16
#define MLA_MAP_COLS 64

/* Plain data, part of a verdict. A cell: '0' nothing is wrong, '9' all of it,
   between them in steps. rows is 0 when nothing was marked. */
typedef struct mla_bad_map {
  int32_t rows, cols;
  char cell[MLA_MAP_ROWS][MLA_MAP_COLS];
} mla_bad_map;

/* Collects marks; zeroed first. */
typedef struct mla_bad_count {
  int64_t count[MLA_MAP_ROWS][MLA_MAP_COLS];
} mla_bad_count;

void mla_bad_mark(mla_bad_count *c, int32_t rank, const int64_t *shape,
                  const int64_t *index);
void mla_bad_draw(const mla_bad_count *c, int32_t rank, const int64_t *shape,
                  mla_bad_map *map);

/* The index of the first row that a row of the map stands for: all axes but
   the last, whose index is 0. */
void mla_map_index(const mla_bad_map *map, int32_t row, int32_t rank,
                   const int64_t *shape, int64_t *index);

#endif
