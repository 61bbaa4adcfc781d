/*
 * Decode's keys: found by the block table and fed to a tile block by block. For
 * kernels on lanes they are gathered and widened to f32 once for all rows.
 */
#include "cpu_decode.h"

#include <string.h>

#include "cpu_convert.h"
#include "cpu_pages.h"
#include "dtype.h"
#include "tensor.h"

#define LANES MLA_CPU_LANES

/* Keys of one unit's request, and where the cache holds them. */
typedef struct key_list {
  const mla_cpu_decode *d;
  const mla_cpu_unit *u;
  int64_t first;
  int n;
  const void *k[MLA_CPU_TILE_BLOCK], *v[MLA_CPU_TILE_BLOCK];
} key_list;

static const int32_t *blocks_of(const mla_cpu_decode *d,
                                const mla_cpu_unit *u) {
  return (const int32_t *)d->table->data + mla_at1(d->table, u->request);
}

/* Lists up to `most` keys from `first` on. */
static void list_keys(key_list *l, int64_t first, int64_t last, int most) {
  const mla_cpu_decode *d = l->d;
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

static void gather_codes(const key_list *l, mla_cpu_decode_scratch *s) {
  const mla_cpu_decode *d = l->d;
  const mla_cache_layout *k = &d->k_entries.layout;
  const mla_cache_layout *v = d->v_cache ? &d->v_entries.layout : k;
  for (int j = 0; j < l->n; j++) {
    mla_cpu_codes_key(&s->codes, &d->c->table, k, l->k[j], j);
    mla_cpu_codes_value(&d->c->table, v, l->v[j], s->tile.v_dim,
                        s->v + j * s->v_ld);
  }
}

static void gather_scaled(const key_list *l, mla_cpu_decode_scratch *s) {
  for (int j = 0; j < l->n; j++) {
    load_scaled(l, &l->d->k_entries, j, s->k + j * s->k_ld);
    if (l->d->v_cache) load_scaled(l, &l->d->v_entries, j, s->v + j * s->v_ld);
  }
}

static void gather(const key_list *l, mla_cpu_decode_scratch *s) {
  const mla_cpu_decode *d = l->d;
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
  const mla_cpu_decode *d = l->d;
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
static int lies_ready(const mla_cpu_decode *d) {
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

static void start_keys(key_lists *l, const mla_cpu_decode *d,
                       const mla_cpu_unit *u, int64_t first, int64_t last,
                       int most) {
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
static int64_t tile_stride(const mla_cpu_decode *d) {
  return d->c->problem.block_size % 16 == 0 ? d->cache->stride[1] : 0;
}

/* As below, for a matrix unit: keys where they lie, in larger blocks. */
static void attend_key_tiles(const mla_cpu_decode *d, const mla_cpu_unit *u,
                             int64_t first, int64_t last,
                             mla_cpu_decode_scratch *s) {
  mla_cpu_tile_block b;
  key_list keys, next;
  memset(&b, 0, sizeof b);
  b.fresh = 1;
  b.ahead = d->far ? fetch_keys : NULL;
  b.ahead_state = &next;
  keys.d = next.d = d;
  keys.u = next.u = u;
  /* Where one thread has all splits, the next one's keys come next. */
  int64_t end = u->slot < 0 ? s->tile.limit[s->tile.panels * LANES - 1] : last;
  do { /* no keys at all: what is fresh gets its zeros */
    list_keys(&keys, first, last, MLA_CPU_TILE_BLOCK);
    if (d->far) list_keys(&next, first + keys.n, end, MLA_CPU_TILE_BLOCK);
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
static void attend_key_rows(const mla_cpu_decode *d, const mla_cpu_unit *u,
                            int64_t first, int64_t last,
                            mla_cpu_decode_scratch *s) {
  mla_cpu_rows_block b;
  key_lists keys;
  int one = mla_cpu_group(&d->c->problem) == 1;
  start_keys(&keys, d, u, first, last, one ? MLA_CPU_ONE_BLOCK : MLA_CPU_BLOCK);
  for (; keys.now->n > 0; turn_keys(&keys)) {
    b.first = keys.now->first;
    b.n = keys.now->n;
    b.k = keys.now->k;
    b.v = keys.now->v;
    b.next = keys.next->n >= b.n ? keys.next->k : NULL;
    mla_cpu_rows_attend(&d->c->table, &s->tile, &s->few, &b);
  }
}

/* Feeds keys first .. last - 1 to the tile's parts. */
static void attend_keys(const mla_cpu_decode *d, const mla_cpu_unit *u,
                        int64_t first, int64_t last,
                        mla_cpu_decode_scratch *s) {
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

void mla_cpu_decode_split(const mla_cpu_decode *d, const mla_cpu_unit *u,
                          int64_t k, float *parts, mla_cpu_decode_scratch *s) {
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
