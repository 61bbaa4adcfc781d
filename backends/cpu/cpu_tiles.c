#include "cpu_tiles.h"

#include <string.h>

#include "float_bits.h"

#define LANES MLA_CPU_LANES
#define DEPTH MLA_CPU_TILE_DEPTH
#define BLOCK MLA_CPU_TILE_BLOCK
#define PANELS MLA_CPU_TILES_PANELS

void mla_cpu_tiles_take(mla_cpu_arena *arena, mla_cpu_tiles *t, int panels,
                        int64_t width) {
  uint64_t lanes = (uint64_t)panels * LANES, number = sizeof(uint16_t);
  t->width = mla_cpu_round_up(width, DEPTH);
  t->queries = mla_cpu_take(arena, lanes, (uint64_t)t->width * number);
  t->keys = mla_cpu_take(arena, BLOCK, (uint64_t)t->width * number);
  t->values = mla_cpu_take(arena, BLOCK, 32 * number);
  t->weights = mla_cpu_take(arena, lanes, BLOCK * number);
  t->scores = mla_cpu_take(arena, lanes, BLOCK * sizeof(float));
}

void mla_cpu_tiles_clear(mla_cpu_part part) {
  for (int x = 0; x < LANES; x++) {
    part.m[x] = mla_f32_of_bits(0xFF800000u);
    part.l[x] = 0.0f;
  }
}

void mla_cpu_tiles_fold(const mla_cpu_table *table, int64_t v_dim,
                        mla_cpu_part part, mla_cpu_part other) {
  float a[2 * LANES], b[2 * LANES];
  const float *acc[2] = {part.acc, other.acc};
  table->tile_join(part.m, part.l, other.m, other.l, a + LANES, b + LANES);
  table->tile_blend(v_dim / 16, 2, acc, a, b, 0, part.acc);
}

/* Sixteen rows from key j on, with zeros where they end short of a tile. */
static void copy_keys(mla_cpu_tiles *t, int64_t j, int64_t n, int64_t width,
                      const void *const *k) {
  uint16_t *to = t->keys + j * t->width;
  t->rows[j / 16].at = to;
  t->rows[j / 16].ld = t->width;
  for (int64_t end = j + 16; j < end; j++, to += t->width) {
    int64_t some = j < n ? width : 0;
    if (some) memcpy(to, k[j], (size_t)width * sizeof(uint16_t));
    memset(to + some, 0, (size_t)(t->width - some) * sizeof(uint16_t));
  }
}

void mla_cpu_tiles_keys(mla_cpu_tiles *t, int64_t n, int64_t width,
                        const void *const *k, int64_t ld) {
  for (int64_t j = 0; j < n; j += 16) {
    if (!ld || j + 16 > n || t->width != width) {
      copy_keys(t, j, n, width, k);
      continue;
    }
    t->rows[j / 16].at = k[j];
    t->rows[j / 16].ld = ld;
  }
}

/* ------------------------------------------------------------------ state */

/* How many keys of the block each lane sees; the most and the least of them. */
typedef struct sight {
  int32_t visible[LANES];
  int32_t most, least;
} sight;

/* One block on its way through a tile. */
typedef struct work {
  const mla_cpu_table *table;
  mla_cpu_tile *tile;
  mla_cpu_tiles *t;
  const mla_cpu_tile_block *b;
  sight sight[PANELS];
  int mixed; /* some lane has a weight of 0 for a key that is there */
} work;

static mla_cpu_part part_of(const work *w, int panel) {
  int64_t floats = mla_cpu_part_floats(w->tile->v_dim);
  return mla_cpu_part_at(w->tile->parts + panel * floats, w->tile->v_dim);
}

static void look(work *w, int panel) {
  const mla_cpu_tile_block *b = w->b;
  const int64_t *limit = w->tile->limit + panel * LANES;
  sight *s = &w->sight[panel];
  s->most = 0;
  s->least = BLOCK;
  for (int x = 0; x < LANES; x++) {
    int64_t v = mla_cpu_min(mla_cpu_max(limit[x] - b->first, 0), b->n);
    s->visible[x] = (int32_t)v;
    s->most = s->visible[x] > s->most ? s->visible[x] : s->most;
    s->least = s->visible[x] < s->least ? s->visible[x] : s->least;
  }
  int64_t used = mla_cpu_min(mla_cpu_round_up(s->most, DEPTH), b->n);
  w->mixed |= s->least < used;
}

/* ---------------------------------------------------------------- weights */

/* From products to a panel's weights; its acc is made ready. */
static void weigh(work *w, int panel) {
  mla_cpu_part part = part_of(w, panel);
  const sight *s = &w->sight[panel];
  float times[LANES], beta[LANES], scale = w->t->scale;
  float *scores = w->t->scores + panel * BLOCK * LANES;
  int n = s->most, scaled = 0;
  if (w->tile->soft_cap > 0.0f || !(scale > 0.0f)) {
    for (int x = 0; x < LANES; x++) times[x] = scale;
    w->table->scale(n, scores, times);
    if (w->tile->soft_cap > 0.0f)
      w->table->softcap(n, scores, w->tile->soft_cap);
    scale = 1.0f;
  }
  w->table->tile_softmax(n, scores, scale, s->least < n ? s->visible : NULL,
                         part.m, part.l, beta,
                         w->t->weights + panel * BLOCK * LANES);
  for (int x = 0; x < LANES; x++) scaled |= beta[x] != 1.0f;
  if (scaled && !w->b->fresh)
    w->table->tile_scale(w->tile->v_dim / 16, part.acc, beta);
}

/* Scores of all panels, then their weights. */
static void find_weights(work *w) {
  int64_t n16[PANELS];
  for (int p = 0; p < w->tile->panels; p++) {
    look(w, p);
    n16[p] = mla_cpu_round_up(w->sight[p].most, 16);
  }
  w->table->tile_scores(w->t->width, w->t->rows, w->tile->panels, n16,
                        w->t->queries, w->t->scores);
  for (int p = 0; p < w->tile->panels; p++)
    if (w->sight[p].most > 0) weigh(w, p);
}

/* ----------------------------------------------------------------- values */

static int is_finite_block(const work *w) {
  const mla_cpu_tile_block *b = w->b;
  int64_t v_dim = w->tile->v_dim;
  int finite = 1;
  if (b->values) {
    int64_t size = mla_cpu_round_up(b->n, DEPTH) * 32;
    for (int64_t c = 0; c < v_dim; c += 32)
      finite &= w->table->tile_finite(b->values + c / 32 * b->values_ld, size);
    return finite;
  }
  for (int64_t j = 0; j < b->n; j++) {
    const mla_cpu_tile_rows *r = &w->t->rows[j / 16];
    finite &= w->table->tile_finite(r->at + j % 16 * r->ld, v_dim);
  }
  return finite;
}

/* Values of the first n keys, zeros after them: 32 columns. */
static const uint16_t *values_of(const work *w, int64_t n, int64_t column,
                                 uint16_t *room) {
  const mla_cpu_tile_block *b = w->b;
  if (!b->values) {
    w->table->tile_values(room, w->t->rows, n, column);
    return room;
  }
  const uint16_t *ready = b->values + column / 32 * b->values_ld;
  if (n == b->n) return ready;
  for (int64_t i = 0; i < mla_cpu_round_up(n, DEPTH) * 32; i++) {
    int64_t key = i / (DEPTH * 32) * DEPTH + i / 32 % 16 * 2 + i % 2;
    room[i] = key < n ? ready[i] : 0;
  }
  return room;
}

/* A few columns of the values at a time, which then lie in the nearest cache
   for all panels; and with each product a share of the keys that come next. */
static void accumulate(work *w) {
  int part = 0, parts = (int)(w->tile->v_dim / 32) * w->tile->panels;
  for (int64_t c = 0; c < w->tile->v_dim; c += 32) {
    const uint16_t *values = values_of(w, w->b->n, c, w->t->values);
    for (int p = 0; p < w->tile->panels; p++) {
      float *acc = part_of(w, p).acc + c * LANES;
      int64_t n32 = mla_cpu_round_up(w->sight[p].most, DEPTH);
      if (w->b->ahead) w->b->ahead(w->b->ahead_state, part++, parts);
      if (n32 > 0)
        w->table->tile_product(n32, values, w->t->weights + p * BLOCK * LANES,
                               !w->b->fresh, acc);
      else if (w->b->fresh)
        memset(acc, 0, 32 * LANES * sizeof(float));
    }
  }
}

/* ------------------------------------------------------------------ apart */

/* The lanes of a panel that see exactly `n` keys. */
static void accumulate_some(const work *w, int panel, int32_t n) {
  mla_cpu_part part = part_of(w, panel);
  const uint16_t *weights = w->t->weights + panel * BLOCK * LANES;
  const sight *s = &w->sight[panel];
  float *spare = w->tile->spare;
  for (int64_t c = 0; c < w->tile->v_dim; c += 32) {
    float *acc = part.acc + c * LANES;
    const uint16_t *values = values_of(w, n, c, w->t->values);
    memcpy(spare, acc, 32 * LANES * sizeof(float));
    w->table->tile_product(mla_cpu_round_up(n, DEPTH), values, weights, 1,
                           spare);
    for (int i = 0; i < 2 * LANES; i++)
      if (s->visible[i % LANES] == n)
        memcpy(acc + i * 16, spare + i * 16, 16 * sizeof(float));
  }
}

/*
 * Values of keys that a lane does not see are infinite or NaN: 0 times them
 * would leak. So the lanes that see equally much are done on their own, with
 * zeros for the values that they do not see.
 */
static void accumulate_apart(const work *w) {
  for (int p = 0; p < w->tile->panels; p++) {
    const sight *s = &w->sight[p];
    int32_t done = 0; /* ascending; who sees nothing gets nothing */
    if (w->b->fresh)
      memset(part_of(w, p).acc, 0,
             (size_t)(w->tile->v_dim * LANES) * sizeof(float));
    for (;;) {
      int32_t next = BLOCK + 1;
      for (int x = 0; x < LANES; x++)
        if (s->visible[x] > done && s->visible[x] < next) next = s->visible[x];
      if (next > BLOCK) break;
      accumulate_some(w, p, next);
      done = next;
    }
  }
}

void mla_cpu_tiles_attend(const mla_cpu_table *table, mla_cpu_tile *tile,
                          mla_cpu_tiles *t, const mla_cpu_tile_block *b) {
  work w;
  w.table = table;
  w.tile = tile;
  w.t = t;
  w.b = b;
  w.mixed = 0;
  table->tile_begin();
  find_weights(&w);
  if (w.mixed && !is_finite_block(&w))
    accumulate_apart(&w);
  else
    accumulate(&w);
  table->tile_end();
}
