#include "cpu_tiles.h"

#include <string.h>

#define LANES MLA_CPU_LANES
#define DEPTH MLA_CPU_TILE_DEPTH
#define BLOCK MLA_CPU_TILE_BLOCK

void mla_cpu_tiles_take(mla_cpu_arena *arena, mla_cpu_tiles *t, int panels,
                        int64_t width, int64_t v_dim) {
  t->width = mla_cpu_round_up(width, DEPTH);
  /* An odd number of cache lines: rows of a tile fall into different sets. */
  t->ld = t->width / DEPTH % 2 ? t->width : t->width + DEPTH;
  t->queries = mla_cpu_take(arena, (uint64_t)panels * LANES,
                            (uint64_t)t->width * sizeof(uint16_t));
  t->keys = mla_cpu_take(arena, BLOCK, (uint64_t)t->ld * sizeof(uint16_t));
  t->values = mla_cpu_take(arena, BLOCK, (uint64_t)v_dim * sizeof(uint16_t));
  for (int i = 0; i < 2; i++) {
    t->weights[i] = mla_cpu_take(arena, BLOCK, LANES * sizeof(uint16_t));
    t->scores[i] = mla_cpu_take(arena, BLOCK, LANES * sizeof(float));
  }
}

void mla_cpu_tiles_pad(mla_cpu_tiles *t, int64_t n, int64_t width) {
  int64_t rows = mla_cpu_round_up(n, 16);
  size_t tail = (size_t)(t->width - width) * sizeof(uint16_t);
  for (int64_t j = 0; j < n && tail; j++)
    memset(t->keys + j * t->ld + width, 0, tail);
  for (int64_t j = n; j < rows; j++)
    memset(t->keys + j * t->ld, 0, (size_t)t->width * sizeof(uint16_t));
}

/* How many keys of the block each lane sees; the most and the least of them. */
typedef struct sight {
  int32_t visible[LANES];
  int32_t most, least;
} sight;

static sight look(const int64_t *limit, const mla_cpu_tile_block *b) {
  sight s;
  s.most = 0;
  s.least = BLOCK;
  for (int x = 0; x < LANES; x++) {
    int64_t v = mla_cpu_min(mla_cpu_max(limit[x] - b->first, 0), b->n);
    s.visible[x] = (int32_t)v;
    s.most = s.visible[x] > s.most ? s.visible[x] : s.most;
    s.least = s.visible[x] < s.least ? s.visible[x] : s.least;
  }
  return s;
}

static int is_finite_block(const mla_cpu_tile_block *b, int64_t v_dim) {
  unsigned found = 0;
  for (int j = 0; j < b->n; j++)
    for (int64_t c = 0; c < v_dim; c++)
      found |= (b->v[j * b->v_ld + c] & 0x7F80u) == 0x7F80u;
  return !found;
}

/* From products to probabilities, in both forms; accumulators are made
   ready. */
static void weigh(const mla_cpu_table *table, mla_cpu_tile *tile,
                  mla_cpu_tiles *t, const mla_cpu_tile_block *b, int which,
                  int n, const sight *s, mla_cpu_part part) {
  float times[LANES], beta[LANES];
  float *scores = t->scores[which];
  int scaled = 0;
  for (int x = 0; x < LANES; x++) times[x] = t->scale;
  table->scale(n, scores, times);
  if (tile->soft_cap > 0.0f) table->softcap(n, scores, tile->soft_cap);
  table->softmax(n, scores, s->least < n ? s->visible : NULL, part.m, part.l,
                 beta);
  for (int x = 0; x < LANES; x++) scaled |= beta[x] != 1.0f;
  if (scaled && !b->fresh) table->scale(tile->v_dim, part.acc, beta);
  table->tile_weights(t->weights[which], scores, n);
}

/*
 * Values of keys that a lane does not see are infinite or NaN: 0 times them
 * would leak. So the lanes that see equally much are done on their own, with
 * zeros for the values that they do not see.
 */
static void accumulate_apart(const mla_cpu_table *table, mla_cpu_tile *tile,
                             mla_cpu_tiles *t, const mla_cpu_tile_block *b,
                             int which, const sight *s, float *acc) {
  const uint16_t *weights = t->weights[which];
  int32_t done = 0; /* ascending; who sees nothing gets nothing */
  for (;;) {
    int32_t next = BLOCK + 1;
    for (int x = 0; x < LANES; x++)
      if (s->visible[x] > done && s->visible[x] < next) next = s->visible[x];
    if (next > BLOCK) break;
    table->tile_values(t->values, b->v, b->v_ld, next, tile->v_dim);
    memcpy(tile->spare, acc, (size_t)(tile->v_dim * LANES) * sizeof(float));
    table->tile_product(tile->v_dim, mla_cpu_round_up(next, DEPTH), t->values,
                        1, &weights, !b->fresh, &tile->spare);
    for (int x = 0; x < LANES; x++)
      for (int64_t c = 0; s->visible[x] == next && c < tile->v_dim; c++)
        acc[c * LANES + x] = tile->spare[c * LANES + x];
    done = next;
  }
  table->tile_values(t->values, b->v, b->v_ld, b->n, tile->v_dim);
}

static void fetch_ahead(const mla_cpu_tile *tile, const mla_cpu_tile_block *b,
                        int panel) {
  if (b->ahead) b->ahead(b->ahead_state, panel / 2, (tile->panels + 1) / 2);
}

/* Two panels side by side, or the last one: fewer loads a product. */
static void attend_pair(const mla_cpu_table *table, mla_cpu_tile *tile,
                        mla_cpu_tiles *t, int panel,
                        const mla_cpu_tile_block *b, int *finite) {
  int panels = tile->panels - panel < 2 ? 1 : 2, in_use = 0, n = 0;
  int64_t floats = mla_cpu_part_floats(tile->v_dim);
  const uint16_t *queries[2], *weights[2];
  float *acc[2];
  sight s[2];
  for (int i = 0; i < panels; i++) {
    s[i] = look(tile->limit + (panel + i) * LANES, b);
    queries[i] = t->queries + (panel + i) * t->width * LANES;
    n = s[i].most > n ? s[i].most : n;
  }
  if (n == 0) return;
  table->tile_scores(mla_cpu_round_up(n, 16), t->width, t->keys, t->ld, panels,
                     queries, t->scores);
  fetch_ahead(tile, b, panel);
  int64_t n32 = mla_cpu_round_up(n, DEPTH);
  for (int i = 0; i < panels; i++) {
    mla_cpu_part part =
        mla_cpu_part_at(tile->parts + (panel + i) * floats, tile->v_dim);
    if (s[i].most == 0) continue;
    weigh(table, tile, t, b, i, n, &s[i], part);
    if (s[i].least < mla_cpu_min(n32, b->n) && *finite < 0)
      *finite = is_finite_block(b, tile->v_dim);
    if (s[i].least < mla_cpu_min(n32, b->n) && !*finite) {
      accumulate_apart(table, tile, t, b, i, &s[i], part.acc);
      continue;
    }
    weights[in_use] = t->weights[i];
    acc[in_use++] = part.acc;
  }
  if (in_use > 0)
    table->tile_product(tile->v_dim, n32, t->values, in_use, weights, !b->fresh,
                        acc);
}

void mla_cpu_tiles_attend(const mla_cpu_table *table, mla_cpu_tile *tile,
                          mla_cpu_tiles *tiles,
                          const mla_cpu_tile_block *block) {
  int finite = -1; /* not looked at yet */
  table->tile_values(tiles->values, block->v, block->v_ld, block->n,
                     tile->v_dim);
  for (int p = 0; p < tile->panels; p += 2)
    attend_pair(table, tile, tiles, p, block, &finite);
}
