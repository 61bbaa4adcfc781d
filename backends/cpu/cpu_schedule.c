#include "cpu_schedule.h"

#include "cpu_attend.h"

#define LANES MLA_CPU_LANES

enum {
  least_split = 256,   /* keys: below, folding costs more than it gains */
  most_split = 16384,  /* keep the chains of additions short */
  usual_splits = 16,   /* parts of a long request, unless asked */
  usual_split = 2048,  /* keys at most: a task is to be short, */
  many_splits = 64,    /* while there are not more: folding too */
  slots_a_thread = 16, /* full tiles whose parts may wait */
  tasks_a_thread = 3,  /* enough to even out what tasks differ in */
  tasks_by_tiles = 2,  /* the same, where each interleaves its values */
  shares_a_thread = 8  /* a unit above 1/8 of a thread's share is split */
};

int64_t mla_cpu_split_keys(int64_t length, int32_t wanted_splits) {
  int64_t splits = wanted_splits > 0 ? wanted_splits : usual_splits;
  int64_t keys = mla_cpu_round_up(mla_cpu_ceil(length, splits), MLA_CPU_BLOCK);
  if (wanted_splits <= 0) {
    int64_t few =
        mla_cpu_round_up(mla_cpu_ceil(length, many_splits), MLA_CPU_BLOCK);
    keys = mla_cpu_min(keys, mla_cpu_max(few, usual_split));
    keys = mla_cpu_max(keys, least_split);
  }
  keys = mla_cpu_min(keys, most_split);
  return mla_cpu_max(keys, MLA_CPU_BLOCK);
}

int64_t mla_cpu_splits(int64_t length, int32_t wanted_splits) {
  return mla_cpu_ceil(length, mla_cpu_split_keys(length, wanted_splits));
}

/* At least mla_cpu_splits(l) for every l <= length; splits do not grow
   steadily with the length, since each is a whole number of blocks. */
static int64_t most_splits(int64_t length, int32_t wanted_splits) {
  int64_t splits = wanted_splits, least = MLA_CPU_BLOCK;
  if (wanted_splits <= 0) {
    splits = mla_cpu_min(mla_cpu_ceil(length, usual_split), many_splits);
    splits = mla_cpu_max(splits, usual_splits);
    least = least_split;
  }
  return mla_cpu_min(mla_cpu_ceil(length, least),
                     mla_cpu_max(splits, mla_cpu_ceil(length, most_split)));
}

int64_t mla_cpu_most_splits(const mla_cpu_context *c) {
  return most_splits(c->limits.max_seq_len, c->limits.num_splits);
}

int64_t mla_cpu_group(const mla_problem *p) {
  return p->num_heads / p->num_kv_heads;
}

int mla_cpu_max_panels(const mla_cpu_context *c) {
  int64_t query = mla_cpu_min(c->limits.max_query_len, c->limits.tokens);
  int64_t rows = mla_cpu_group(&c->problem) * query;
  return (int)mla_cpu_max(
      1, mla_cpu_min(mla_cpu_ceil(rows, LANES), MLA_CPU_TILE_PANELS));
}

void mla_cpu_schedule_take(mla_cpu_arena *arena, mla_cpu_schedule *s,
                           const mla_cpu_context *c) {
  int64_t rows = c->limits.tokens * mla_cpu_group(&c->problem);
  /* Each request and kv head may leave one panel half full. */
  int64_t panels = c->problem.num_kv_heads *
                   (mla_cpu_ceil(rows, LANES) + c->limits.requests);
  int64_t splits = most_splits(c->limits.max_seq_len, c->limits.num_splits);
  int64_t room = mla_cpu_max((int64_t)slots_a_thread * c->threads, splits);
  room *= MLA_CPU_TILE_PANELS;
  int64_t floats = mla_cpu_part_floats(c->problem.v_dim);
  if (splits < 2 || c->threads == 1)
    room = 0;
  else if (panels < room / splits)
    room = panels * splits;
  s->slot_panels = room;
  s->unit = mla_cpu_take(arena, (uint64_t)panels, sizeof *s->unit);
  s->work = mla_cpu_take(arena, (uint64_t)(panels + room), sizeof *s->work);
  s->progress = mla_cpu_take(arena, (uint64_t)mla_cpu_min(panels, room / 2),
                             sizeof *s->progress);
  s->slots =
      mla_cpu_take(arena, (uint64_t)room, (uint64_t)floats * sizeof(float));
}

/* ------------------------------------------------------------------ units */

typedef struct batch {
  const mla_cpu_context *context;
  int64_t requests;
  const int32_t *seq_lens, *query_start_loc;
} batch;

static int64_t rows_of(const batch *b, int64_t request) {
  int64_t query =
      (int64_t)b->query_start_loc[request + 1] - b->query_start_loc[request];
  return query * mla_cpu_group(&b->context->problem);
}

/* Of tiles so high; requests of several splits are cut up later. */
static int64_t count_tasks(const batch *b, int panels) {
  int64_t tasks = 0;
  for (int64_t i = 0; i < b->requests; i++) {
    int64_t splits =
        mla_cpu_splits(b->seq_lens[i], b->context->limits.num_splits);
    int64_t height = splits > 1 ? 1 : panels;
    tasks +=
        mla_cpu_ceil(rows_of(b, i), height * LANES) * mla_cpu_max(1, splits);
  }
  return tasks * b->context->problem.num_kv_heads;
}

/* Tall tiles convert the keys less often, low ones give more tasks. */
static int choose_panels(const batch *b) {
  int panels = mla_cpu_max_panels(b->context);
  int64_t wanted =
      mla_cpu_decode_by_tiles(b->context) ? tasks_by_tiles : tasks_a_thread;
  wanted = mla_cpu_min(wanted * b->context->threads, count_tasks(b, 1));
  while (panels > 1 && count_tasks(b, panels) < wanted)
    panels = (panels + 1) / 2;
  return panels;
}

static void add_units(mla_cpu_schedule *s, const batch *b, int64_t request) {
  int64_t rows = rows_of(b, request), tile = (int64_t)s->panels * LANES;
  mla_cpu_unit u = {0};
  u.request = (int32_t)request;
  u.length = b->seq_lens[request];
  u.query_len =
      (int32_t)(b->query_start_loc[request + 1] - b->query_start_loc[request]);
  u.slot = -1;
  for (int32_t g = 0; g < b->context->problem.num_kv_heads; g++)
    for (int64_t row = 0; row < rows; row += tile) {
      u.kv_head = g;
      u.row = row;
      u.rows = (int32_t)mla_cpu_min(tile, rows - row);
      u.panels = (int32_t)mla_cpu_ceil(u.rows, LANES);
      u.work = u.rows * (u.length + MLA_CPU_BLOCK);
      s->unit[s->units++] = u;
    }
}

/* Heap sort, the most work first: libc's qsort may allocate. */
static void sift_down(mla_cpu_unit *u, int64_t at, int64_t count) {
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) return;
    if (child + 1 < count && u[child + 1].work < u[child].work) child++;
    if (u[at].work <= u[child].work) return;
    mla_cpu_unit t = u[at];
    u[at] = u[child];
    u[child] = t;
    at = child;
  }
}

static void sort_by_work(mla_cpu_unit *u, int64_t count) {
  for (int64_t i = count / 2; i-- > 0;) sift_down(u, i, count);
  for (int64_t last = count - 1; last > 0; last--) {
    mla_cpu_unit t = u[0];
    u[0] = u[last];
    u[last] = t;
    sift_down(u, 0, last);
  }
}

static void add_work(mla_cpu_schedule *s, int64_t unit, int64_t split,
                     int64_t panel, int64_t panels) {
  mla_cpu_work w = {(int32_t)unit, (int32_t)split, (int32_t)panel,
                    (int32_t)panels};
  s->work[s->works++] = w;
}

static void add_whole(mla_cpu_schedule *s, int64_t unit) {
  add_work(s, unit, -1, 0, s->unit[unit].panels);
}

/*
 * The splits of shared units, the highest tasks first, as many splits at a time
 * as there are threads: each goes on with the split that it began with. `left`:
 * keys x panels of all that have no task yet. A task is five eighths of a
 * thread's share of them at most, since threads differ in speed and are to end
 * together; for a matrix unit six, and two panels at least, since interleaving
 * the values takes it as long as a panel's products.
 */
static void add_splits(mla_cpu_schedule *s, const mla_cpu_context *c,
                       int64_t left) {
  int by_tiles = mla_cpu_decode_by_tiles(c);
  int64_t eighths = by_tiles ? 6 : 5, least = by_tiles ? 2 : 1;
  for (int64_t i = 0; i < s->shared_units; i++) {
    const mla_cpu_unit *u = &s->unit[i];
    int64_t keys = mla_cpu_split_keys(u->length, c->limits.num_splits);
    int64_t splits = mla_cpu_splits(u->length, c->limits.num_splits);
    for (int64_t k = 0, n; k < splits; k += n) {
      n = mla_cpu_min(splits - k, c->threads);
      for (int64_t p = 0, h; p < u->panels; p += h, left -= n * h * keys) {
        h = mla_cpu_ceil(eighths * left, 8 * c->threads * keys);
        h = mla_cpu_min(mla_cpu_max(h, least), u->panels - p);
        for (int64_t x = k; x < k + n; x++) add_work(s, i, x, p, h);
      }
    }
  }
}

/*
 * The largest units are shared out split by split, while slots last and until
 * that evens out the others: these come first, and a thread of half the speed
 * that began with one last of all is done before the splits are. The small ones
 * come last.
 */
static void share_out(mla_cpu_schedule *s, const mla_cpu_context *c) {
  int64_t total = 0, used = 0, shared = 0, left = 0, i = 0;
  for (int64_t k = 0; k < s->units; k++) total += s->unit[k].work;
  int64_t large = total / c->threads / shares_a_thread;
  for (; i < s->units; i++) {
    mla_cpu_unit *u = &s->unit[i];
    int64_t splits = mla_cpu_splits(u->length, c->limits.num_splits);
    int64_t need = splits * u->panels;
    if (c->threads == 1 || splits < 2 || used + need > s->slot_panels) break;
    if (u->work < large || shared >= 2 * c->threads * u->work) break;
    u->slot = used;
    shared += u->work;
    left += u->panels * u->length;
    s->progress[i].done = 0;
    used += need;
  }
  s->shared_units = i;
  for (; i < s->units && s->unit[i].work >= large; i++) add_whole(s, i);
  add_splits(s, c, left);
  for (; i < s->units; i++) add_whole(s, i);
}

void mla_cpu_schedule_make(mla_cpu_schedule *s, const mla_cpu_context *c,
                           int64_t requests, const int32_t *seq_lens,
                           const int32_t *query_start_loc) {
  batch b = {c, requests, seq_lens, query_start_loc};
  s->units = s->works = 0;
  s->panels = choose_panels(&b);
  for (int64_t i = 0; i < requests; i++) add_units(s, &b, i);
  sort_by_work(s->unit, s->units);
  share_out(s, c);
}
