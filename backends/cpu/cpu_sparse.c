/*
 * Sparse decode: every token attends to its own list of slots, of one cache
 * or two. A task is a token and some panels of its heads; it gathers the
 * listed entries a block at a time, as dense decode does those of a table.
 */
#include "cpu_sparse.h"

#include <string.h>

#include "cpu_attend.h"
#include "cpu_entry.h"
#include "cpu_parallel.h"
#include "tensor.h"

#define LANES MLA_CPU_LANES
#define MOST_PANELS 4 /* of a task: they share what it gathers */

/* One of the caches, and the lists into it. */
typedef struct listed {
  const mla_tensor *cache, *list, *length;
  mla_cpu_entries entries; /* where they have scales */
} listed;

typedef struct sparse {
  const mla_cpu_context *c;
  const mla_tensor *q, *sink, *out, *lse;
  listed main, extra; /* extra.cache NULL: none */
  int panels;         /* of a task, at most */
  int64_t groups;     /* tasks of a token */
  unsigned char *scratch;
  uint64_t scratch_bytes;
} sparse;

/* What one thread works in. */
typedef struct scratch {
  mla_cpu_tile tile;
  int64_t *key; /* slots of the first cache; ~slot: of the second */
  int64_t keys;
  float *k; /* [BLOCK][ld]: a block, whose front is the values */
  int64_t ld;
  float *part; /* of all panels */
  float *rows; /* [LANES][width]: queries on the way to a panel */
  float *line; /* [v_dim] */
} scratch;

/* ----------------------------------------------------------------- memory */

static int64_t most_keys(const mla_problem *p) {
  int64_t extra = p->flags & MLA_EXTRA_CACHE ? p->extra_topk : 0;
  return (int64_t)p->topk + extra;
}

static int most_panels(const mla_problem *p) {
  return (int)mla_cpu_min(mla_cpu_ceil(p->num_heads, LANES), MOST_PANELS);
}

static scratch scratch_take(mla_cpu_arena *arena, const mla_problem *p) {
  int panels = most_panels(p);
  uint64_t width = (uint64_t)p->head_dim;
  uint64_t parts = (uint64_t)panels * (uint64_t)mla_cpu_part_floats(p->v_dim);
  scratch s;
  memset(&s, 0, sizeof s);
  mla_cpu_tile_take(arena, &s.tile, panels, p->head_dim, p->v_dim);
  s.tile.soft_cap = (float)p->logits_soft_cap;
  s.ld = mla_cpu_stride(p->head_dim);
  s.key = mla_cpu_take(arena, (uint64_t)most_keys(p), sizeof *s.key);
  s.k = mla_cpu_take(arena, MLA_CPU_BLOCK * (uint64_t)s.ld, sizeof(float));
  s.part = mla_cpu_take(arena, parts, sizeof(float));
  s.rows = mla_cpu_take(arena, LANES * width, sizeof(float));
  s.line = mla_cpu_take(arena, (uint64_t)p->v_dim, sizeof(float));
  return s;
}

static uint64_t sparse_take(mla_cpu_arena *arena, sparse *x) {
  mla_cpu_arena one = {NULL, 0};
  scratch_take(&one, &x->c->problem);
  x->scratch_bytes = one.used;
  x->scratch = mla_cpu_take(arena, (uint64_t)x->c->threads, one.used);
  return arena->used;
}

static scratch scratch_of(const sparse *x, int thread) {
  mla_cpu_arena arena = {x->scratch + (uint64_t)thread * x->scratch_bytes, 0};
  return scratch_take(&arena, &x->c->problem);
}

/* ------------------------------------------------------------------- lists */

/* Appends what names an entry of the cache; all else is skipped unread. */
static void add_list(const listed *from, int64_t token, int second,
                     scratch *s) {
  const int32_t *slot =
      (const int32_t *)from->list->data + mla_at1(from->list, token);
  int64_t capacity = from->cache->shape[0] * from->cache->shape[1];
  int64_t count = from->list->shape[1];
  if (from->length) {
    const int32_t *length = from->length->data;
    count = mla_cpu_min(count, length[mla_at1(from->length, token)]);
  }
  for (int64_t i = 0; i < count; i++)
    if (slot[i] >= 0 && slot[i] < capacity)
      s->key[s->keys++] = second ? ~(int64_t)slot[i] : slot[i];
}

static const void *entry_of(const sparse *x, int64_t key) {
  const mla_tensor *cache = key < 0 ? x->extra.cache : x->main.cache;
  int64_t slot = key < 0 ? ~key : key, size = cache->shape[1];
  return mla_cpu_at(cache->data, mla_cpu_type_of(cache->dtype),
                    mla_at2(cache, slot / size, slot % size));
}

/* Keys of a block, or of the one after it. */
typedef struct run {
  const sparse *x;
  const int64_t *key;
  int n;
} run;

static void fetch_keys(const void *state, int part, int parts) {
  const run *r = state;
  const mla_cpu_context *c = r->x->c;
  if (r->x->main.entries.layout.quantised) return; /* arithmetic, not memory */
  int type = mla_cpu_type_of(r->x->main.cache->dtype);
  int64_t bytes = c->problem.head_dim * mla_cpu_type_bytes(type);
  for (int j = r->n * part / parts; j < r->n * (part + 1) / parts; j++)
    c->table.fetch(entry_of(r->x, r->key[j]), bytes);
}

static void load_scaled(const listed *from, int64_t slot, float *to) {
  int64_t size = from->cache->shape[1];
  mla_cpu_entry_load(&from->entries, slot / size, slot % size, 0, 0,
                     from->entries.layout.width, to);
}

static void gather(const run *r, scratch *s) {
  const sparse *x = r->x;
  for (int j = 0; j < r->n && x->main.entries.layout.quantised; j++) {
    int64_t key = r->key[j];
    load_scaled(key < 0 ? &x->extra : &x->main, key < 0 ? ~key : key,
                s->k + j * s->ld);
  }
  if (x->main.entries.layout.quantised) return;
  int type = mla_cpu_type_of(x->main.cache->dtype);
  mla_cpu_load_fn *load = x->c->table.load[type];
  for (int j = 0; j < r->n; j++)
    load(s->k + j * s->ld, entry_of(x, r->key[j]), s->tile.width);
}

/* -------------------------------------------------------------------- rows */

/* Lanes without a head are copies of the last one. */
static void load_queries(const sparse *x, int64_t token, int64_t head,
                         int64_t heads, scratch *s) {
  int type = mla_cpu_type_of(x->q->dtype);
  int64_t width = s->tile.width;
  s->tile.panels = (int)mla_cpu_ceil(heads, LANES);
  s->tile.rows = (int)heads;
  for (int p = 0; p < s->tile.panels; p++) {
    for (int64_t lane = 0; lane < LANES; lane++) {
      int64_t h = head + mla_cpu_min(p * LANES + lane, heads - 1);
      const void *q = mla_cpu_at(x->q->data, type, mla_at3(x->q, token, h, 0));
      s->tile.limit[p * LANES + lane] = s->keys;
      x->c->table.load[type](s->rows + lane * width, q, width);
    }
    x->c->table.pack(s->tile.q + p * width * LANES, s->rows, width, width,
                     (float)x->c->problem.scale);
  }
}

static void attend(const sparse *x, scratch *s) {
  int64_t v_dim = s->tile.v_dim;
  mla_cpu_block b;
  run now = {x, s->key, 0}, next = {x, s->key, 0};
  memset(&b, 0, sizeof b);
  b.k = b.v = s->k;
  b.k_ld = b.v_ld = s->ld;
  b.ahead = fetch_keys;
  b.ahead_state = &next;
  s->tile.parts = s->part;
  for (int p = 0; p < s->tile.panels; p++)
    mla_cpu_part_clear(
        mla_cpu_part_at(s->part + p * mla_cpu_part_floats(v_dim), v_dim),
        v_dim);
  for (int64_t at = 0; at < s->keys; at += MLA_CPU_BLOCK) {
    b.first = at;
    now.key = s->key + at;
    now.n = b.n = (int)mla_cpu_min(MLA_CPU_BLOCK, s->keys - at);
    next.key = now.key + now.n;
    next.n = (int)mla_cpu_min(MLA_CPU_BLOCK, s->keys - at - now.n);
    gather(&now, s);
    mla_cpu_attend_block(&x->c->table, &s->tile, &b);
  }
}

static void write_panel(const sparse *x, int64_t token, int64_t head,
                        int64_t heads, int panel, scratch *s) {
  int64_t v_dim = s->tile.v_dim;
  mla_cpu_rows_out r;
  memset(&r, 0, sizeof r);
  r.out_type = mla_cpu_type_of(x->out->dtype);
  r.base2 = (x->c->problem.flags & MLA_LSE_BASE2) != 0;
  r.rows = (int)mla_cpu_min(LANES, heads - (int64_t)panel * LANES);
  for (int lane = 0; lane < r.rows; lane++) {
    int64_t h = head + (int64_t)panel * LANES + lane;
    r.out[lane] =
        mla_cpu_at_mut(x->out->data, r.out_type, mla_at3(x->out, token, h, 0));
    if (x->lse) r.lse[lane] = (float *)x->lse->data + mla_at2(x->lse, token, h);
    if (x->sink)
      r.sink[lane] = (const float *)x->sink->data + mla_at1(x->sink, h);
  }
  mla_cpu_part part =
      mla_cpu_part_at(s->part + panel * mla_cpu_part_floats(v_dim), v_dim);
  mla_cpu_part_finish(&x->c->table, v_dim, part, &r, s->line);
}

static void token_task(void *state, int64_t index, int thread) {
  const sparse *x = state;
  int64_t token = index / x->groups;
  int64_t head = index % x->groups * x->panels * LANES;
  int64_t heads =
      mla_cpu_min((int64_t)x->panels * LANES, x->c->problem.num_heads - head);
  scratch s = scratch_of(x, thread);
  add_list(&x->main, token, 0, &s);
  if (x->extra.cache) add_list(&x->extra, token, 1, &s);
  load_queries(x, token, head, heads, &s);
  attend(x, &s);
  for (int p = 0; p < s.tile.panels; p++)
    write_panel(x, token, head, heads, p, &s);
}

/* ------------------------------------------------------------------ the run */

/* As many panels a task as leaves every thread one. */
static void share_out(sparse *x) {
  int64_t panels = mla_cpu_ceil(x->c->problem.num_heads, LANES);
  x->panels = most_panels(&x->c->problem);
  while (x->panels > 1 && x->q->shape[0] * mla_cpu_ceil(panels, x->panels) <
                              (int64_t)x->c->threads)
    x->panels--;
  x->groups = mla_cpu_ceil(panels, x->panels);
}

void mla_cpu_sparse_run(const mla_cpu_context *c, const mla_args *args,
                        void *workspace) {
  mla_cpu_arena arena = {workspace, 0};
  uint64_t flags = c->problem.flags;
  sparse x;
  memset(&x, 0, sizeof x);
  x.c = c;
  x.q = mla_arg(args, MLA_T_Q);
  x.main.cache = mla_arg(args, MLA_T_CACHE);
  x.main.entries = mla_cpu_entries_of(c, args, MLA_T_CACHE,
                                      mla_cpu_type_of(c->problem.q_dtype));
  x.main.list = mla_arg(args, MLA_T_INDICES);
  x.main.length = mla_arg(args, MLA_T_TOPK_LEN);
  if (flags & MLA_EXTRA_CACHE) {
    x.extra.entries = mla_cpu_entries_of(c, args, MLA_T_EXTRA_CACHE,
                                         mla_cpu_type_of(c->problem.q_dtype));
    x.extra.cache = mla_arg(args, MLA_T_EXTRA_CACHE);
    x.extra.list = mla_arg(args, MLA_T_EXTRA_INDICES);
    x.extra.length = mla_arg(args, MLA_T_EXTRA_TOPK_LEN);
  }
  if (flags & MLA_HAS_SINK) x.sink = mla_arg(args, MLA_T_SINK);
  x.out = mla_arg(args, MLA_T_OUT);
  if (flags & MLA_RETURN_LSE) x.lse = mla_arg(args, MLA_T_LSE);
  sparse_take(&arena, &x);
  share_out(&x);
  mla_cpu_parallel(c->threads, x.q->shape[0] * x.groups, token_task, &x);
}

uint64_t mla_cpu_sparse_workspace(const mla_cpu_context *c) {
  mla_cpu_arena arena = {NULL, 0};
  sparse x;
  memset(&x, 0, sizeof x);
  x.c = c;
  return sparse_take(&arena, &x);
}
