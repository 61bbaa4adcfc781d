#include "cpu_rows.h"

#include <string.h>

#include "cpu_exp.h"

#define LANES MLA_CPU_LANES
#define BLOCK MLA_CPU_BLOCK

enum {
  most_rows = 8,          /* half the lanes; above, lanes are cheaper */
  most_beside_a_unit = 2, /* where a matrix unit would serve instead */
  group_rows = 4          /* that one kernel call takes */
};

int mla_cpu_decode_by_rows(const mla_cpu_context *c) {
  const mla_problem *p = &c->problem;
  int type = mla_cpu_type_of_format(p->cache_format);
  int64_t rows = p->num_heads / p->num_kv_heads;
  if (p->op != MLA_OP_DECODE || (p->flags & MLA_SPARSE)) return 0;
  if (type < 0 || !c->table.dots[type]) return 0;
  return rows <= (c->table.tile_scores && type == MLA_CPU_BF16
                      ? most_beside_a_unit
                      : most_rows);
}

void mla_cpu_rows_take(mla_cpu_arena *arena, mla_cpu_rows *r, int panels,
                       int64_t width) {
  r->ld = mla_cpu_round_up(width, 16);
  r->q = mla_cpu_take(arena, (uint64_t)panels * LANES,
                      (uint64_t)r->ld * sizeof(float));
  r->scores = mla_cpu_take(arena, group_rows * BLOCK, sizeof(float));
}

/* Where column i of `width` stands. */
static int64_t place(int type, int64_t i, int64_t width) {
  if (type != MLA_CPU_BF16 || i >= width / 16 * 16) return i;
  return i / 16 * 16 + i % 16 / 2 + i % 2 * 8;
}

void mla_cpu_rows_query(mla_cpu_rows *r, int64_t i, const float *line,
                        int64_t width, float scale) {
  for (int64_t c = 0; c < width; c++)
    r->q[i * r->ld + place(r->k_type, c, width)] = scale * line[c];
}

/* -------------------------------------------------------------- one block */

/* Rows that one kernel call takes, and what it works on. */
typedef struct group {
  int rows;
  int32_t visible[group_rows];
  float beta[group_rows];
  const float *q[group_rows], *weights[group_rows];
  float *scores[group_rows], *acc[group_rows], *m[group_rows], *l[group_rows];
} group;

static group group_at(const mla_cpu_tile *tile, const mla_cpu_rows *r, int at,
                      const mla_cpu_rows_block *b) {
  group g;
  int left = r->rows - at;
  g.rows = left >= 4 ? 4 : left >= 2 ? 2 : 1;
  for (int i = 0; i < g.rows; i++) {
    int row = at + i;
    mla_cpu_part part = mla_cpu_part_at(
        tile->parts + row / LANES * mla_cpu_part_floats(tile->v_dim),
        tile->v_dim);
    int64_t sees = tile->limit[row] - b->first;
    g.visible[i] = (int32_t)mla_cpu_min(mla_cpu_max(sees, 0), b->n);
    g.q[i] = r->q + row * r->ld;
    g.weights[i] = g.scores[i] = r->scores + i * BLOCK;
    g.acc[i] = part.acc + row % LANES * tile->v_dim;
    g.m[i] = part.m + row % LANES;
    g.l[i] = part.l + row % LANES;
  }
  return g;
}

static void weigh(const mla_cpu_table *table, const mla_cpu_tile *tile,
                  group *g) {
  for (int i = 0; i < g->rows; i++) {
    int64_t n = g->visible[i];
    if (n == 0) continue;
    if (tile->soft_cap > 0.0f) /* a room of whole lanes */
      table->softcap(mla_cpu_ceil(n, LANES), g->scores[i], tile->soft_cap);
    g->beta[i] = table->softmax_row(n, g->scores[i], g->m[i], g->l[i]);
  }
}

/*
 * Where hints are given, products are done a few keys and a few columns at a
 * time, and between them a share of what comes next is fetched: all hints at
 * once would wait for each other, and the products for them.
 */
enum { keys_at_once = 12, columns_at_once = 64 };

typedef struct pace {
  const mla_cpu_rows_block *b;
  int part, parts; /* so far, of all groups */
} pace;

static void fetch_share(pace *p) {
  if (p->part < p->parts) p->b->ahead(p->b->ahead_state, p->part++, p->parts);
}

static void find_scores(const mla_cpu_table *table, const mla_cpu_tile *tile,
                        int type, const group *g, int32_t n, pace *p) {
  int32_t step = p->b->ahead ? keys_at_once : n;
  for (int32_t j = 0; j < n; j += step) {
    float *scores[group_rows];
    for (int i = 0; i < g->rows; i++) scores[i] = g->scores[i] + j;
    if (p->b->ahead) fetch_share(p);
    table->dots[type](mla_cpu_min(step, n - j), tile->width, p->b->k + j,
                      g->rows, g->q, scores);
  }
}

static void add_values(const mla_cpu_table *table, const mla_cpu_tile *tile,
                       int type, const group *g, int32_t n, pace *p) {
  int64_t step = p->b->ahead ? columns_at_once : tile->v_dim;
  for (int64_t c = 0; c < tile->v_dim; c += step) {
    if (p->b->ahead) fetch_share(p);
    table->mix[type](c, mla_cpu_min(c + step, tile->v_dim), n, p->b->v, g->rows,
                     g->weights, g->beta, g->acc);
  }
}

static int attend_group(const mla_cpu_table *table, const mla_cpu_tile *tile,
                        const mla_cpu_rows *r, int at, pace *p) {
  group g = group_at(tile, r, at, p->b);
  int32_t most = 0, least = p->b->n;
  for (int i = 0; i < g.rows; i++) {
    most = g.visible[i] > most ? g.visible[i] : most;
    least = g.visible[i] < least ? g.visible[i] : least;
  }
  if (most == 0) return g.rows;
  find_scores(table, tile, r->k_type, &g, most, p);
  weigh(table, tile, &g);
  if (least == most) {
    add_values(table, tile, r->v_type, &g, most, p);
    return g.rows;
  }
  /* No row may meet values that it does not see: they may be infinite. */
  for (int i = 0; i < g.rows; i++)
    if (g.visible[i] > 0)
      table->mix[r->v_type](0, tile->v_dim, g.visible[i], p->b->v, 1,
                            g.weights + i, g.beta + i, g.acc + i);
  return g.rows;
}

void mla_cpu_rows_attend(const mla_cpu_table *table, const mla_cpu_tile *tile,
                         const mla_cpu_rows *r, const mla_cpu_rows_block *b) {
  int64_t steps = mla_cpu_ceil(b->n, keys_at_once) +
                  mla_cpu_ceil(tile->v_dim, columns_at_once);
  pace p = {b, 0, (int)(mla_cpu_ceil(r->rows, group_rows) * steps)};
  for (int at = 0; at < r->rows;) at += attend_group(table, tile, r, at, &p);
}

/* ------------------------------------------------------------------ parts */

void mla_cpu_rows_clear(mla_cpu_part part, int64_t v_dim, int64_t rows) {
  for (int x = 0; x < LANES; x++) {
    part.m[x] = mla_f32_of_bits(0xFF800000u);
    part.l[x] = 0.0f;
  }
  memset(part.acc, 0,
         (size_t)(v_dim * mla_cpu_min(rows, LANES)) * sizeof(float));
}

static void fold_row(int64_t v_dim, float *m, float *l, float *acc, float m2,
                     float l2, const float *acc2) {
  const float nothing = mla_f32_of_bits(0xFF800000u);
  float top = m2 > *m ? m2 : *m, shift = top == nothing ? 0.0f : top;
  float a = mla_cpu_expf(*m - shift), b = mla_cpu_expf(m2 - shift);
  *l = a * *l + b * l2;
  *m = top;
  for (int64_t c = 0; c < v_dim; c++) acc[c] = a * acc[c] + b * acc2[c];
}

void mla_cpu_rows_fold(int64_t v_dim, mla_cpu_part part, mla_cpu_part other) {
  for (int x = 0; x < LANES; x++)
    if (other.l[x] != 0.0f)
      fold_row(v_dim, part.m + x, part.l + x, part.acc + x * v_dim, other.m[x],
               other.l[x], other.acc + x * v_dim);
}

mla_cpu_part mla_cpu_rows_turn(const mla_cpu_tile *tile, int v_type, int rows,
                               mla_cpu_part part) {
  mla_cpu_part turned = {part.m, part.l, tile->spare};
  for (int x = 0; x < rows; x++)
    for (int64_t c = 0; c < tile->v_dim; c++)
      turned.acc[c * LANES + x] =
          part.acc[x * tile->v_dim + place(v_type, c, tile->v_dim)];
  return turned;
}
