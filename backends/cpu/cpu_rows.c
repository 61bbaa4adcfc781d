#include "cpu_rows.h"

#include <string.h>

#include "cpu_exp.h"

#define LANES MLA_CPU_LANES
#define BLOCK MLA_CPU_BLOCK

enum {
  most_rows = 8,          /* half the lanes; above, lanes are cheaper */
  most_beside_a_unit = 2, /* where a matrix unit would serve instead */
  group_rows = 8          /* that one kernel call takes */
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

/* Where column i of `width` stands in acc. */
static int64_t place(int type, int64_t i, int64_t width) {
  if (type != MLA_CPU_BF16 || i >= width / 16 * 16) return i;
  return i / 16 * 16 + i % 16 / 2 + i % 2 * 8;
}

void mla_cpu_rows_query(const mla_cpu_table *table, mla_cpu_rows *r, int64_t i,
                        const float *line, int64_t width, float scale) {
  float *q = r->q + i * r->ld;
  if (table->spread[r->k_type])
    table->spread[r->k_type](q, line, width, scale);
  else
    for (int64_t c = 0; c < width; c++) q[c] = scale * line[c];
}

/* -------------------------------------------------------------- one block */

/* Rows that one kernel call takes, and what it works on. */
typedef struct group {
  int rows;
  int32_t visible[group_rows];
  float beta[group_rows];
  const float *q[group_rows];
  float *scores[group_rows], *acc[group_rows], *m[group_rows], *l[group_rows];
} group;

static group group_at(const mla_cpu_tile *tile, const mla_cpu_rows *r, int at,
                      const mla_cpu_rows_block *b) {
  group g;
  int left = r->rows - at;
  g.rows = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
  for (int i = 0; i < g.rows; i++) {
    int row = at + i;
    mla_cpu_part part = mla_cpu_part_at(
        tile->parts + row / LANES * mla_cpu_part_floats(tile->v_dim),
        tile->v_dim);
    int64_t sees = tile->limit[row] - b->first;
    g.visible[i] = (int32_t)mla_cpu_min(mla_cpu_max(sees, 0), b->n);
    g.q[i] = r->q + row * r->ld;
    g.scores[i] = r->scores + i * BLOCK;
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

/* Products of rows that see alike; next: a hint (mla_cpu_mix_fn). */
static void add_values(const mla_cpu_table *table, const mla_cpu_tile *tile,
                       const mla_cpu_rows *r, const group *g,
                       const mla_cpu_rows_block *b, const void *const *next) {
  int32_t most = 0, least = b->n;
  for (int i = 0; i < g->rows; i++) {
    most = g->visible[i] > most ? g->visible[i] : most;
    least = g->visible[i] < least ? g->visible[i] : least;
  }
  if (least == most) {
    table->mix[r->v_type](tile->v_dim, most, b->v, g->rows, r->scores, g->beta,
                          g->acc, next);
    return;
  }
  /* No row may meet values that it does not see: they may be infinite. */
  for (int i = 0; i < g->rows; i++)
    if (g->visible[i] > 0)
      table->mix[r->v_type](tile->v_dim, g->visible[i], b->v, 1, g->scores[i],
                            g->beta + i, g->acc + i, NULL);
}

static int attend_group(const mla_cpu_table *table, const mla_cpu_tile *tile,
                        const mla_cpu_rows *r, int at,
                        const mla_cpu_rows_block *b) {
  group g = group_at(tile, r, at, b);
  int32_t most = 0;
  for (int i = 0; i < g.rows; i++)
    most = g.visible[i] > most ? g.visible[i] : most;
  if (most == 0) return g.rows;
  const void *const *next = at == 0 && most == b->n ? b->next : NULL;
  table->dots[r->k_type](most, tile->width, b->k, g.rows, g.q, g.scores, next);
  weigh(table, tile, &g);
  add_values(table, tile, r, &g, b, next);
  return g.rows;
}

void mla_cpu_rows_attend(const mla_cpu_table *table, const mla_cpu_tile *tile,
                         const mla_cpu_rows *r, const mla_cpu_rows_block *b) {
  for (int at = 0; at < r->rows;) at += attend_group(table, tile, r, at, b);
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
