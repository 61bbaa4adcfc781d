/*
 * decode: absorbed attention over a paged cache. Keys are gathered and
 * widened to f32 a block at a time, once for all rows of a tile.
 */
#include <string.h>

#include "cpu_attend.h"
#include "cpu_codes.h"
#include "cpu_convert.h"
#include "cpu_entry.h"
#include "cpu_pages.h"
#include "cpu_parallel.h"
#include "cpu_rows.h"
#include "cpu_schedule.h"
#include "cpu_sparse.h"
#include "cpu_tiles.h"
#include "dtype.h"
#include "tensor.h"

#define LANES MLA_CPU_LANES

enum { fold_slices = 8 }; /* of a panel's values */

/* What one thread works in. */
typedef struct scratch {
  mla_cpu_tile tile;
  mla_cpu_tiles tiles;  /* where a matrix unit serves; k to rows absent */
  mla_cpu_rows few;     /* where rows walk along the keys; k and v absent */
  mla_cpu_codes codes;  /* where scores come from codes; k absent */
  float *k, *v;         /* a block; v is k where values are part of keys */
  int64_t k_ld, v_ld;   /* row strides, in floats */
  float *whole, *split; /* parts of all panels: of all splits, of one */
  float *rows;          /* [LANES][width]: queries on the way to a panel */
  float *line;          /* [v_dim] */
  float *a, *b;         /* [splits][LANES]: of a fold of tiles */
  const float **acc;    /* [splits] */
} scratch;

typedef struct decode {
  const mla_cpu_context *c;
  const mla_tensor *q, *cache, *v_cache, *table, *seq_lens, *starts, *sink,
      *out, *lse;
  mla_cpu_entries k_entries, v_entries; /* where entries have scales */
  int far; /* few rows: are keys worth hints (cpu_convert.h)? */
  mla_cpu_schedule schedule;
  unsigned char *scratch;
  uint64_t scratch_bytes;
} decode;

int mla_cpu_decode_by_tiles(const mla_cpu_context *c) {
  const mla_problem *p = &c->problem;
  return c->table.tile_scores && p->op == MLA_OP_DECODE &&
         p->q_dtype == MLA_BF16 && p->cache_format == MLA_CACHE_BF16 &&
         !(p->flags & (MLA_SEPARATE_V | MLA_SPARSE)) && p->v_dim % 32 == 0 &&
         !mla_cpu_decode_by_rows(c);
}

/* ----------------------------------------------------------------- memory */

static void codes_take(mla_cpu_arena *arena, const mla_problem *p, int panels,
                       scratch *s) {
  mla_cpu_codes_take(arena, &s->codes, panels, p->head_dim);
  s->codes.times = (float)p->scale;
  s->v_ld = mla_cpu_stride(p->v_dim);
  s->v = mla_cpu_take(arena, MLA_CPU_BLOCK * (uint64_t)s->v_ld, sizeof(float));
  s->rows = mla_cpu_take(arena, (uint64_t)p->head_dim, sizeof(float));
}

static void blocks_take(mla_cpu_arena *arena, const mla_problem *p,
                        scratch *s) {
  s->k_ld = s->v_ld = mla_cpu_stride(p->head_dim);
  s->k = s->v =
      mla_cpu_take(arena, MLA_CPU_BLOCK * (uint64_t)s->k_ld, sizeof(float));
  if (p->flags & MLA_SEPARATE_V) {
    s->v_ld = mla_cpu_stride(p->v_dim);
    s->v =
        mla_cpu_take(arena, MLA_CPU_BLOCK * (uint64_t)s->v_ld, sizeof(float));
  }
  s->rows = mla_cpu_take(arena, LANES * (uint64_t)p->head_dim, sizeof(float));
}

static void fold_take(mla_cpu_arena *arena, const mla_cpu_context *c,
                      scratch *s) {
  uint64_t splits = (uint64_t)mla_cpu_most_splits(c);
  s->a = mla_cpu_take(arena, splits, LANES * sizeof(float));
  s->b = mla_cpu_take(arena, splits, LANES * sizeof(float));
  s->acc = mla_cpu_take(arena, splits, sizeof *s->acc);
}

static scratch scratch_take(mla_cpu_arena *arena, const mla_cpu_context *c) {
  const mla_problem *p = &c->problem;
  int panels = mla_cpu_max_panels(c);
  uint64_t parts = (uint64_t)panels * (uint64_t)mla_cpu_part_floats(p->v_dim);
  scratch s;
  memset(&s, 0, sizeof s);
  if (mla_cpu_decode_by_tiles(c)) {
    mla_cpu_tile_take(arena, &s.tile, panels, 0, p->v_dim);
    mla_cpu_tiles_take(arena, &s.tiles, panels, p->head_dim);
    fold_take(arena, c, &s);
    s.tiles.scale = (float)p->scale;
  } else if (mla_cpu_decode_by_rows(c)) {
    mla_cpu_tile_take(arena, &s.tile, panels, 0, p->v_dim);
    mla_cpu_rows_take(arena, &s.few, panels, p->head_dim);
    s.tile.width = p->head_dim;
    s.rows = mla_cpu_take(arena, (uint64_t)p->head_dim, sizeof(float));
  } else if (mla_cpu_decode_by_codes(c)) {
    mla_cpu_tile_take(arena, &s.tile, panels, 0, p->v_dim);
    codes_take(arena, p, panels, &s);
    s.tile.width = p->head_dim;
  } else {
    mla_cpu_tile_take(arena, &s.tile, panels, p->head_dim, p->v_dim);
    blocks_take(arena, p, &s);
  }
  s.tile.soft_cap = (float)p->logits_soft_cap;
  s.whole = mla_cpu_take(arena, parts, sizeof(float));
  s.split = mla_cpu_take(arena, parts, sizeof(float));
  s.line = mla_cpu_take(arena, (uint64_t)p->v_dim, sizeof(float));
  return s;
}

static uint64_t decode_take(mla_cpu_arena *arena, decode *d) {
  mla_cpu_arena one = {NULL, 0};
  mla_cpu_schedule_take(arena, &d->schedule, d->c);
  scratch_take(&one, d->c);
  d->scratch_bytes = one.used;
  d->scratch = mla_cpu_take(arena, (uint64_t)d->c->threads, one.used);
  return arena->used;
}

static scratch scratch_of(const decode *d, int thread) {
  mla_cpu_arena arena = {d->scratch + (uint64_t)thread * d->scratch_bytes, 0};
  return scratch_take(&arena, d->c);
}

/* ------------------------------------------------------------------- rows */

/* Token of the step and head of row r of a unit's request. */
static int64_t token_of(const decode *d, const mla_cpu_unit *u, int64_t row) {
  const int32_t *starts = d->starts->data;
  return starts[u->request] + row / mla_cpu_group(&d->c->problem);
}

static int64_t head_of(const decode *d, const mla_cpu_unit *u, int64_t row) {
  int64_t group = mla_cpu_group(&d->c->problem);
  return u->kv_head * group + row % group;
}

static int64_t limit_of(const decode *d, const mla_cpu_unit *u, int64_t row) {
  if (!(d->c->problem.flags & MLA_CAUSAL)) return u->length;
  int64_t t = row / mla_cpu_group(&d->c->problem);
  return mla_cpu_max(0, u->length - u->query_len + t + 1);
}

/* As below, for a matrix unit. */
static void load_tile_queries(const decode *d, const mla_cpu_unit *u,
                              scratch *s) {
  int64_t width = s->tiles.width;
  const uint16_t *rows[LANES];
  s->tile.panels = (int)mla_cpu_ceil(u->rows, LANES);
  for (int p = 0; p < s->tile.panels; p++) {
    for (int64_t x = 0; x < LANES; x++) {
      int64_t row = u->row + mla_cpu_min(p * LANES + x, u->rows - 1);
      int64_t at = mla_at3(d->q, token_of(d, u, row), head_of(d, u, row), 0);
      s->tile.limit[p * LANES + x] = limit_of(d, u, row);
      rows[x] = (const uint16_t *)d->q->data + at;
    }
    d->c->table.tile_queries(s->tiles.queries + p * width * LANES, rows,
                             d->c->problem.head_dim);
  }
}

/* As below, row after row. */
static void load_few_queries(const decode *d, const mla_cpu_unit *u,
                             scratch *s) {
  int type = mla_cpu_type_of(d->q->dtype);
  int64_t width = s->tile.width;
  s->tile.panels = (int)mla_cpu_ceil(u->rows, LANES);
  s->few.rows = u->rows;
  s->few.k_type = s->few.v_type = mla_cpu_type_of(d->cache->dtype);
  for (int64_t x = 0; x < s->tile.panels * LANES; x++) {
    int64_t row = u->row + mla_cpu_min(x, u->rows - 1);
    int64_t at = mla_at3(d->q, token_of(d, u, row), head_of(d, u, row), 0);
    s->tile.limit[x] = limit_of(d, u, row);
    if (x >= u->rows) continue;
    d->c->table.load[type](s->rows, mla_cpu_at(d->q->data, type, at), width);
    mla_cpu_rows_query(&s->few, x, s->rows, width, (float)d->c->problem.scale);
  }
}

/* As below, as codes. */
static void load_code_queries(const decode *d, const mla_cpu_unit *u,
                              scratch *s) {
  int type = mla_cpu_type_of(d->q->dtype);
  s->tile.panels = (int)mla_cpu_ceil(u->rows, LANES);
  s->tile.rows = u->rows;
  s->tile.codes = &s->codes;
  for (int x = 0; x < s->tile.panels * LANES; x++) {
    int64_t row = u->row + mla_cpu_min(x, u->rows - 1);
    int64_t at = mla_at3(d->q, token_of(d, u, row), head_of(d, u, row), 0);
    s->tile.limit[x] = limit_of(d, u, row);
    d->c->table.load[type](s->rows, mla_cpu_at(d->q->data, type, at),
                           s->tile.width);
    mla_cpu_codes_query(&s->codes, x / LANES, x % LANES, s->rows,
                        s->tile.width);
  }
}

/* A panel's queries, and how far each sees. Lanes without a row are copies of
   the last one that has: they change neither what is skipped nor masked. */
static void load_queries(const decode *d, const mla_cpu_unit *u, scratch *s) {
  if (s->tiles.queries) {
    load_tile_queries(d, u, s);
    return;
  }
  if (s->few.q) {
    load_few_queries(d, u, s);
    return;
  }
  if (s->codes.q) {
    load_code_queries(d, u, s);
    return;
  }
  int type = mla_cpu_type_of(d->q->dtype);
  int64_t width = s->tile.width;
  s->tile.panels = (int)mla_cpu_ceil(u->rows, LANES);
  s->tile.rows = u->rows;
  for (int p = 0; p < s->tile.panels; p++) {
    for (int64_t x = 0; x < LANES; x++) {
      int64_t row = u->row + mla_cpu_min(p * LANES + x, u->rows - 1);
      int64_t at = mla_at3(d->q, token_of(d, u, row), head_of(d, u, row), 0);
      s->tile.limit[p * LANES + x] = limit_of(d, u, row);
      d->c->table.load[type](s->rows + x * width,
                             mla_cpu_at(d->q->data, type, at), width);
    }
    d->c->table.pack(s->tile.q + p * width * LANES, s->rows, width, width,
                     (float)d->c->problem.scale);
  }
}

/* Writes `count` numbers of each row of a panel from the first on. */
static void write_rows(const decode *d, const mla_cpu_unit *u, int panel,
                       mla_cpu_part part, int64_t first, int64_t count,
                       float *line) {
  mla_cpu_rows_out r;
  memset(&r, 0, sizeof r);
  r.out_type = mla_cpu_type_of(d->out->dtype);
  r.base2 = (d->c->problem.flags & MLA_LSE_BASE2) != 0;
  r.rows = (int)mla_cpu_min(LANES, u->rows - (int64_t)panel * LANES);
  r.tiles = mla_cpu_decode_by_tiles(d->c);
  for (int x = 0; x < r.rows; x++) {
    int64_t row = u->row + (int64_t)panel * LANES + x;
    int64_t token = token_of(d, u, row), head = head_of(d, u, row);
    r.out[x] = mla_cpu_at_mut(d->out->data, r.out_type,
                              mla_at3(d->out, token, head, 0) + first);
    if (d->lse && first == 0)
      r.lse[x] = (float *)d->lse->data + mla_at2(d->lse, token, head);
    if (d->sink)
      r.sink[x] = (const float *)d->sink->data + mla_at1(d->sink, head);
  }
  mla_cpu_part_finish(&d->c->table, count, part, &r, line);
}

/* ------------------------------------------------------------------- keys */

/* Keys of one unit's request, and where the cache holds them. */
typedef struct key_list {
  const decode *d;
  const mla_cpu_unit *u;
  int64_t first;
  int n;
  const void *k[MLA_CPU_TILE_BLOCK], *v[MLA_CPU_TILE_BLOCK];
} key_list;

static const int32_t *blocks_of(const decode *d, const mla_cpu_unit *u) {
  return (const int32_t *)d->table->data + mla_at1(d->table, u->request);
}

/* Lists up to `most` keys from `first` on. */
static void list_keys(key_list *l, int64_t first, int64_t last, int most) {
  const decode *d = l->d;
  const int32_t *blocks = blocks_of(d, l->u);
  l->first = first;
  l->n = (int)mla_cpu_max(mla_cpu_min(most, last - first), 0);
  if (d->k_entries.layout.side_bytes) return; /* found one by one */
  mla_cpu_pages_list(d->cache, blocks, l->u->kv_head, first, l->n, l->k);
  if (d->v_cache)
    mla_cpu_pages_list(d->v_cache, blocks, l->u->kv_head, first, l->n, l->v);
  else
    memcpy(l->v, l->k, (size_t)l->n * sizeof l->k[0]);
}

static void load_scaled(const key_list *l, const mla_cpu_entries *entries,
                        int64_t j, float *to) {
  int64_t key = l->first + j, size = l->d->c->problem.block_size;
  mla_cpu_entry_load(entries, blocks_of(l->d, l->u)[key / size], key % size,
                     l->u->kv_head, 0, entries->layout.width, to);
}

static void gather_codes(const key_list *l, scratch *s) {
  const decode *d = l->d;
  const mla_cache_layout *k = &d->k_entries.layout;
  const mla_cache_layout *v = d->v_cache ? &d->v_entries.layout : k;
  for (int j = 0; j < l->n; j++) {
    mla_cpu_codes_key(&s->codes, &d->c->table, k, l->k[j], j);
    mla_cpu_codes_value(&d->c->table, v, l->v[j], s->tile.v_dim,
                        s->v + j * s->v_ld);
  }
}

static void gather_scaled(const key_list *l, scratch *s) {
  for (int j = 0; j < l->n; j++) {
    load_scaled(l, &l->d->k_entries, j, s->k + j * s->k_ld);
    if (l->d->v_cache) load_scaled(l, &l->d->v_entries, j, s->v + j * s->v_ld);
  }
}

static void gather(const key_list *l, scratch *s) {
  const decode *d = l->d;
  if (s->codes.q) {
    gather_codes(l, s);
    return;
  }
  if (d->k_entries.layout.quantised) {
    gather_scaled(l, s);
    return;
  }
  mla_cpu_load_fn *load = d->c->table.load[mla_cpu_type_of(d->cache->dtype)];
  for (int j = 0; j < l->n; j++) {
    load(s->k + j * s->k_ld, l->k[j], s->tile.width);
    if (d->v_cache) load(s->v + j * s->v_ld, l->v[j], s->tile.v_dim);
  }
}

static int64_t entry_bytes(const mla_tensor *cache,
                           const mla_cache_layout *layout) {
  return layout->row_bytes * (mla_dtype_bits(cache->dtype) / 8);
}

/* Where entries with scales are widened one number at a time, that is what
   takes long, not memory. */
static void fetch_keys(const void *state, int part, int parts) {
  const key_list *l = state;
  const decode *d = l->d;
  const mla_cpu_context *c = d->c;
  if (d->k_entries.layout.quantised && !mla_cpu_decode_by_codes(c)) return;
  int64_t key = entry_bytes(d->cache, &d->k_entries.layout), value = 0;
  if (d->v_cache) value = entry_bytes(d->v_cache, &d->v_entries.layout);
  for (int j = l->n * part / parts; j < l->n * (part + 1) / parts; j++) {
    c->table.fetch(l->k[j], key);
    if (d->v_cache) c->table.fetch(l->v[j], value);
  }
}

/*
 * Can a block of keys be read where it lies: f32, in one page, and rows that do
 * not all fall into a few sets of the cache?
 */
static int lies_ready(const decode *d) {
  const mla_tensor *t = d->cache;
  return t->dtype == MLA_F32 && !d->v_cache &&
         d->c->problem.block_size % MLA_CPU_BLOCK == 0 &&
         t->stride[1] % (8 * 16) != 0;
}

/* Two lists that take turns: keys in hand, and those that come next. */
typedef struct key_lists {
  key_list list[2], *now, *next;
  int64_t last;
  int most;
} key_lists;

static void start_keys(key_lists *l, const decode *d, const mla_cpu_unit *u,
                       int64_t first, int64_t last, int most) {
  for (int i = 0; i < 2; i++) {
    l->list[i].d = d;
    l->list[i].u = u;
  }
  l->now = &l->list[0];
  l->next = &l->list[1];
  l->last = last;
  l->most = most;
  list_keys(l->now, first, last, most);
  list_keys(l->next, first + l->now->n, last, most);
}

/* Now the next ones; nothing is left once n is 0. */
static void turn_keys(key_lists *l) {
  key_list *done = l->now;
  l->now = l->next;
  l->next = done;
  list_keys(done, l->now->first + l->now->n, l->last, l->most);
}

/* What sixteen keys of a page lie apart; 0: they may lie in several. */
static int64_t tile_stride(const decode *d) {
  return d->c->problem.block_size % 16 == 0 ? d->cache->stride[1] : 0;
}

/* As below, for a matrix unit: keys where they lie, in larger blocks. */
static void attend_key_tiles(const decode *d, const mla_cpu_unit *u,
                             int64_t first, int64_t last, scratch *s) {
  mla_cpu_tile_block b;
  key_list keys;
  memset(&b, 0, sizeof b);
  b.fresh = 1;
  keys.d = d;
  keys.u = u;
  do { /* no keys at all: what is fresh gets its zeros */
    list_keys(&keys, first, last, MLA_CPU_TILE_BLOCK);
    b.first = first;
    b.n = keys.n;
    mla_cpu_tiles_keys(&s->tiles, b.n, d->c->problem.head_dim, keys.k,
                       tile_stride(d));
    mla_cpu_tiles_attend(&d->c->table, &s->tile, &s->tiles, &b);
    first += b.n;
    b.fresh = 0;
  } while (b.n > 0 && first < last);
}

/* As below, with keys read where they lie. */
static void attend_key_rows(const decode *d, const mla_cpu_unit *u,
                            int64_t first, int64_t last, scratch *s) {
  mla_cpu_rows_block b;
  key_lists keys;
  b.ahead = d->far ? fetch_keys : NULL;
  start_keys(&keys, d, u, first, last, MLA_CPU_BLOCK);
  for (; keys.now->n > 0; turn_keys(&keys)) {
    b.first = keys.now->first;
    b.n = keys.now->n;
    b.k = keys.now->k;
    b.v = keys.now->v;
    b.ahead_state = keys.next;
    mla_cpu_rows_attend(&d->c->table, &s->tile, &s->few, &b);
  }
}

/* Feeds keys first .. last - 1 to the tile's parts. */
static void attend_keys(const decode *d, const mla_cpu_unit *u, int64_t first,
                        int64_t last, scratch *s) {
  mla_cpu_block b;
  key_lists keys;
  int ready = lies_ready(d);
  memset(&b, 0, sizeof b);
  b.k = s->k;
  b.k_ld = ready ? d->cache->stride[1] : s->k_ld;
  b.v = s->v;
  b.v_ld = ready ? b.k_ld : s->v_ld;
  b.ahead = fetch_keys;
  start_keys(&keys, d, u, first, last, MLA_CPU_BLOCK);
  for (; keys.now->n > 0; turn_keys(&keys)) {
    b.first = keys.now->first;
    b.n = keys.now->n;
    b.ahead_state = keys.next;
    if (ready) /* splits begin at whole blocks */
      b.k = b.v = keys.now->k[0];
    else
      gather(keys.now, s);
    mla_cpu_attend_block(&d->c->table, &s->tile, &b);
  }
}

/* Computes split k of the unit into parts, one a panel. */
static void attend_split(const decode *d, const mla_cpu_unit *u, int64_t k,
                         float *parts, scratch *s) {
  int64_t v_dim = s->tile.v_dim;
  int64_t keys = mla_cpu_split_keys(u->length, d->c->limits.num_splits);
  /* The last row of a tile sees farthest. */
  int64_t end = s->tile.limit[s->tile.panels * LANES - 1];
  s->tile.parts = parts;
  for (int p = 0; p < s->tile.panels; p++) {
    mla_cpu_part part =
        mla_cpu_part_at(parts + p * mla_cpu_part_floats(v_dim), v_dim);
    if (s->few.q)
      mla_cpu_rows_clear(part, v_dim, s->few.rows - p * LANES);
    else if (s->tiles.queries)
      mla_cpu_tiles_clear(part);
    else
      mla_cpu_part_clear(part, v_dim);
  }
  end = mla_cpu_min((k + 1) * keys, end);
  if (s->tiles.queries)
    attend_key_tiles(d, u, k * keys, end, s);
  else if (s->few.q)
    attend_key_rows(d, u, k * keys, end, s);
  else
    attend_keys(d, u, k * keys, end, s);
}

/* ------------------------------------------------------------------ tasks */

static void fold_panel(const decode *d, mla_cpu_part part, mla_cpu_part other) {
  if (mla_cpu_decode_by_rows(d->c))
    mla_cpu_rows_fold(d->c->problem.v_dim, part, other);
  else if (mla_cpu_decode_by_tiles(d->c))
    mla_cpu_tiles_fold(&d->c->table, d->c->problem.v_dim, part, other);
  else
    mla_cpu_part_fold(&d->c->table, d->c->problem.v_dim, part, other);
}

static void write_panel(const decode *d, const mla_cpu_unit *u, int panel,
                        mla_cpu_part part, scratch *s) {
  if (s->few.q)
    part = mla_cpu_rows_turn(
        &s->tile, mla_cpu_type_of(d->cache->dtype),
        (int)mla_cpu_min(LANES, u->rows - (int64_t)panel * LANES), part);
  write_rows(d, u, panel, part, 0, s->tile.v_dim, s->line);
}

static void attend_whole(const decode *d, const mla_cpu_unit *u, scratch *s) {
  int64_t v_dim = s->tile.v_dim, floats = mla_cpu_part_floats(v_dim);
  int64_t splits = mla_cpu_splits(u->length, d->c->limits.num_splits);
  attend_split(d, u, 0, s->whole, s);
  for (int64_t k = 1; k < splits; k++) {
    attend_split(d, u, k, s->split, s);
    for (int p = 0; p < s->tile.panels; p++)
      fold_panel(d, mla_cpu_part_at(s->whole + p * floats, v_dim),
                 mla_cpu_part_at(s->split + p * floats, v_dim));
  }
  for (int p = 0; p < s->tile.panels; p++)
    write_panel(d, u, p, mla_cpu_part_at(s->whole + p * floats, v_dim), s);
}

static float *slot_of(const decode *d, const mla_cpu_unit *u, int64_t split,
                      int64_t panel) {
  int64_t at = u->slot + split * d->schedule.panels + panel;
  return d->schedule.slots + at * mla_cpu_part_floats(d->c->problem.v_dim);
}

static void attend_task(void *state, int64_t index, int thread) {
  const decode *d = state;
  const mla_cpu_work *w = &d->schedule.work[index];
  const mla_cpu_unit *u = &d->schedule.unit[w->unit];
  scratch s = scratch_of(d, thread);
  load_queries(d, u, &s);
  if (w->split < 0)
    attend_whole(d, u, &s);
  else
    attend_split(d, u, w->split, slot_of(d, u, w->split, 0), &s);
}

/* Few rows: all of a panel at once. */
static void fold_few(const decode *d, const mla_cpu_unit *u, int panel,
                     scratch *s) {
  int64_t v_dim = d->c->problem.v_dim;
  int64_t splits = mla_cpu_splits(u->length, d->c->limits.num_splits);
  mla_cpu_part part = mla_cpu_part_at(slot_of(d, u, 0, panel), v_dim);
  for (int64_t k = 1; k < splits; k++)
    fold_panel(d, part, mla_cpu_part_at(slot_of(d, u, k, panel), v_dim));
  write_panel(d, u, panel, part, s);
}

/*
 * A slice of a panel of a shared unit, by tiles: each part is read once, 32
 * columns of all parts at a time.
 */
static void fold_tiles(const decode *d, const mla_cpu_unit *u, int panel,
                       int64_t first, int64_t count, scratch *s) {
  int64_t splits = mla_cpu_splits(u->length, d->c->limits.num_splits);
  int64_t v_dim = d->c->problem.v_dim;
  mla_cpu_part part = mla_cpu_part_at(slot_of(d, u, 0, panel), v_dim);
  float m[LANES], l[LANES];
  mla_cpu_part whole = {m, l, s->tile.spare};
  memcpy(m, part.m, sizeof m);
  memcpy(l, part.l, sizeof l);
  s->acc[0] = part.acc + first * LANES;
  for (int64_t k = 1; k < splits; k++) {
    part = mla_cpu_part_at(slot_of(d, u, k, panel), v_dim);
    s->acc[k] = part.acc + first * LANES;
    d->c->table.tile_join(m, l, part.m, part.l, s->a + k * LANES,
                          s->b + k * LANES);
  }
  for (int64_t c = first; c < first + count; c += 32) {
    int64_t ahead = c + 32 < first + count ? 32 * LANES : 0;
    d->c->table.tile_blend(2, splits, s->acc, s->a, s->b, ahead, whole.acc);
    write_rows(d, u, panel, whole, c, 32, s->line);
    for (int64_t k = 0; k < splits; k++) s->acc[k] += 32 * LANES;
  }
}

/*
 * Folds a slice of the parts of one panel of a shared unit, in order. A panel's
 * maximum and denominator are found anew for each slice: few panels and many
 * threads are the usual case.
 */
static void fold_task(void *state, int64_t index, int thread) {
  const decode *d = state;
  int64_t v_dim = d->c->problem.v_dim, slice = index % fold_slices;
  int64_t step = mla_cpu_decode_by_tiles(d->c) ? 32 : 1;
  int64_t first = v_dim / step * slice / fold_slices * step;
  int64_t count = v_dim / step * (slice + 1) / fold_slices * step - first;
  index /= fold_slices;
  const mla_cpu_unit *u = &d->schedule.unit[index / d->schedule.panels];
  int panel = (int)(index % d->schedule.panels);
  int64_t splits = mla_cpu_splits(u->length, d->c->limits.num_splits);
  scratch s = scratch_of(d, thread);
  if ((int64_t)panel * LANES >= u->rows || count == 0) return;
  if (s.few.q) {
    if (first == 0) fold_few(d, u, panel, &s);
    return;
  }
  if (s.tiles.queries) {
    fold_tiles(d, u, panel, first, count, &s);
    return;
  }
  float m[LANES], l[LANES];
  mla_cpu_part part = mla_cpu_part_at(slot_of(d, u, 0, panel), v_dim);
  memcpy(m, part.m, sizeof m);
  memcpy(l, part.l, sizeof l);
  float *acc = part.acc + first * LANES;
  for (int64_t k = 1; k < splits; k++) {
    mla_cpu_part next = mla_cpu_part_at(slot_of(d, u, k, panel), v_dim);
    d->c->table.fold(count, m, l, acc, next.m, next.l,
                     next.acc + first * LANES);
  }
  mla_cpu_part whole = {m, l, acc};
  write_rows(d, u, panel, whole, first, count, s.line);
}

/* What all requests read of the caches. One row's products with a key take
   little longer than the hints for it, which near memory does not need. */
static int is_far(const decode *d) {
  int64_t keys = 0, bytes = entry_bytes(d->cache, &d->k_entries.layout);
  const int32_t *seq_lens = d->seq_lens->data;
  if (d->v_cache) bytes += entry_bytes(d->v_cache, &d->v_entries.layout);
  for (int64_t b = 0; b < d->seq_lens->shape[0]; b++) keys += seq_lens[b];
  return keys * bytes > MLA_CPU_FAR;
}

static void decode_run(const mla_cpu_context *c, const mla_args *args,
                       void *workspace) {
  if (c->problem.flags & MLA_SPARSE) {
    mla_cpu_sparse_run(c, args, workspace);
    return;
  }
  mla_cpu_arena arena = {workspace, 0};
  decode d;
  memset(&d, 0, sizeof d);
  d.c = c;
  d.q = mla_arg(args, MLA_T_Q);
  d.cache = mla_arg(args, MLA_T_CACHE);
  if (c->problem.flags & MLA_SEPARATE_V)
    d.v_cache = mla_arg(args, MLA_T_V_CACHE);
  d.table = mla_arg(args, MLA_T_BLOCK_TABLE);
  d.seq_lens = mla_arg(args, MLA_T_SEQ_LENS);
  d.starts = mla_arg(args, MLA_T_QUERY_START_LOC);
  if (c->problem.flags & MLA_HAS_SINK) d.sink = mla_arg(args, MLA_T_SINK);
  d.out = mla_arg(args, MLA_T_OUT);
  if (c->problem.flags & MLA_RETURN_LSE) d.lse = mla_arg(args, MLA_T_LSE);
  int compute = mla_cpu_type_of(c->problem.q_dtype);
  d.k_entries = mla_cpu_entries_of(c, args, MLA_T_CACHE, compute);
  if (d.v_cache)
    d.v_entries = mla_cpu_entries_of(c, args, MLA_T_V_CACHE, compute);
  d.far = is_far(&d);
  decode_take(&arena, &d);
  mla_cpu_schedule_make(&d.schedule, c, d.seq_lens->shape[0], d.seq_lens->data,
                        d.starts->data);
  mla_cpu_parallel(c->threads, d.schedule.works, attend_task, &d);
  mla_cpu_parallel(c->threads,
                   d.schedule.shared_units * d.schedule.panels * fold_slices,
                   fold_task, &d);
}

static uint64_t decode_workspace(const mla_cpu_context *c) {
  if (c->problem.flags & MLA_SPARSE) return mla_cpu_sparse_workspace(c);
  mla_cpu_arena arena = {NULL, 0};
  decode d;
  memset(&d, 0, sizeof d);
  d.c = c;
  return decode_take(&arena, &d);
}

static const char *decode_refuse(const mla_problem *p) {
  const char *why = mla_cpu_refuse_types(p, 0);
  if (!why) why = mla_cpu_refuse_cache(p);
  if (!why) why = mla_cpu_refuse_attention(p);
  return why;
}

const mla_cpu_op mla_cpu_op_decode = {MLA_OP_DECODE, "decode", decode_refuse,
                                      decode_workspace, decode_run};
