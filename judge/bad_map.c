/*
 * bad_map.c - counting wrong values in a grid.
 */
#include "bad_map.h"

#include <string.h>

/* Rows and columns of the tensor, at least 1 each. */
static void extents(int32_t rank, const int64_t *shape, int64_t *rows,
                    int64_t *cols) {
  *rows = 1;
  for (int32_t a = 0; a + 1 < rank; a++) *rows *= shape[a];
  *cols = rank > 0 ? shape[rank - 1] : 1;
  if (*rows < 1) *rows = 1;
  if (*cols < 1) *cols = 1;
}

static int32_t cells(int64_t n, int32_t most) {
  return n < most ? (int32_t)n : most;
}

/* The first of n things that cell i of m stands for. */
static int64_t first_of(int64_t n, int32_t m, int32_t i) {
  return (n * i + m - 1) / m;
}

void mla_bad_mark(mla_bad_count *c, int32_t rank, const int64_t *shape,
                  const int64_t *index) {
  int64_t rows, cols, row = 0;
  extents(rank, shape, &rows, &cols);
  for (int32_t a = 0; a + 1 < rank; a++) row = row * shape[a] + index[a];
  int64_t col = rank > 0 ? index[rank - 1] : 0;
  c->count[row * cells(rows, MLA_MAP_ROWS) / rows]
          [col * cells(cols, MLA_MAP_COLS) / cols]++;
}

static char shade(int64_t bad, int64_t all) {
  if (bad <= 0) return '0';
  if (bad >= all) return '9';
  return (char)('1' + bad * 8 / all);
}

void mla_bad_draw(const mla_bad_count *c, int32_t rank, const int64_t *shape,
                  mla_bad_map *map) {
  int64_t rows, cols;
  memset(map, 0, sizeof *map);
  extents(rank, shape, &rows, &cols);
  int32_t m = cells(rows, MLA_MAP_ROWS), n = cells(cols, MLA_MAP_COLS);
  int any = 0;
  for (int32_t i = 0; i < m; i++) {
    int64_t high = first_of(rows, m, i + 1) - first_of(rows, m, i);
    for (int32_t k = 0; k < n; k++) {
      int64_t wide = first_of(cols, n, k + 1) - first_of(cols, n, k);
      map->cell[i][k] = shade(c->count[i][k], high * wide);
      any |= map->cell[i][k] != '0';
    }
  }
  map->rows = any ? m : 0;
  map->cols = any ? n : 0;
}

void mla_map_index(const mla_bad_map *map, int32_t row, int32_t rank,
                   const int64_t *shape, int64_t *index) {
  int64_t rows, cols;
  extents(rank, shape, &rows, &cols);
  int64_t first = map->rows > 0 ? first_of(rows, map->rows, row) : 0;
  if (rank > 0) index[rank - 1] = 0;
  for (int32_t a = rank - 2; a >= 0; a--) {
    index[a] = first % shape[a];
    first /= shape[a];
  }
}
