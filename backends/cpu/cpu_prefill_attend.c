/*
 * Prefill's attention: tiles of queries, one head each, against a wave's keys.
 */
#include "cpu_prefill.h"

#include <string.h>

#include "tensor.h"

#define LANES MLA_CPU_LANES

static const mla_cpu_chunk *chunk_of_task(const mla_cpu_prefill *f,
                                          int64_t task) {
  const mla_cpu_chunk *k = f->wave;
  while (task >= k->task + mla_cpu_prefill_tiles(k->query)) k++;
  return k;
}

/* Tile `t` of a chunk's queries, of one head; lanes without a query repeat the
   last one. */
static void load_queries(const mla_cpu_prefill *f, const mla_cpu_chunk *k,
                         int64_t t, int64_t head, mla_cpu_prefill_scratch *s) {
  const int32_t *starts = f->starts->data;
  int64_t width = s->tile.width, first = t * MLA_CPU_PREFILL_PANELS * LANES;
  int causal = (f->c->problem.flags & MLA_CAUSAL) != 0;
  s->tile.panels = (int)mla_cpu_min(MLA_CPU_PREFILL_PANELS,
                                    mla_cpu_ceil(k->query - first, LANES));
  s->tile.rows = (int)mla_cpu_min(k->query - first, s->tile.panels * LANES);
  for (int panel = 0; panel < s->tile.panels; panel++) {
    const uint16_t *rows[LANES];
    for (int64_t x = 0; x < LANES; x++) {
      int64_t row = mla_cpu_min(first + panel * LANES + x, k->query - 1);
      int64_t sees = causal ? k->length - k->query + row + 1 : k->length;
      int64_t at = mla_at3(f->q, starts[k->request] + row, head, 0);
      s->tile.limit[panel * LANES + x] = mla_cpu_max(0, sees);
      if (f->by_tiles)
        rows[x] = (const uint16_t *)f->q->data + at;
      else
        mla_cpu_prefill_load(f, f->q, at, width, s->rows + x * width);
    }
    if (f->by_tiles)
      mla_cpu_prefill_tiles_queries(f, panel, rows, s);
    else
      f->c->table.pack(s->tile.q + panel * width * LANES, s->rows, width, width,
                       (float)f->c->problem.scale);
  }
}

/* Rows of the buffers that hold the next block of one head. */
typedef struct row_range {
  const mla_cpu_prefill *f;
  const float *kv;
  int64_t n;
} row_range;

static void fetch_rows(const void *state, int part, int parts) {
  const row_range *r = state;
  const mla_cpu_prefill *f = r->f;
  for (int64_t j = r->n * part / parts; j < r->n * (part + 1) / parts; j++)
    f->c->table.fetch(r->kv + j * f->ld_kv, f->ld_kv * (int64_t)sizeof(float));
}

static void attend_chunk(const mla_cpu_prefill *f, const mla_cpu_chunk *k,
                         int64_t head, mla_cpu_prefill_scratch *s) {
  int64_t end = mla_cpu_min(k->first + k->count,
                            s->tile.limit[s->tile.panels * LANES - 1]);
  row_range next = {f, NULL, 0};
  mla_cpu_block b;
  if (f->by_tiles) {
    mla_cpu_prefill_tiles_attend(f, k, head, end, s);
    return;
  }
  memset(&b, 0, sizeof b);
  b.k_ld = b.v_ld = f->ld_kv;
  b.ahead = fetch_rows;
  b.ahead_state = &next;
  for (int64_t key = k->first; key < end; key += MLA_CPU_WIDE_BLOCK) {
    int64_t at = k->at + key - k->first;
    b.first = key;
    b.n = (int)mla_cpu_min(MLA_CPU_WIDE_BLOCK, end - key);
    b.k = f->kv + (head * f->capacity + at) * f->ld_kv;
    b.v = b.k + s->tile.width;
    next.kv = b.k + b.n * f->ld_kv;
    next.n = mla_cpu_min(MLA_CPU_WIDE_BLOCK, end - key - b.n);
    mla_cpu_attend_block(&f->c->table, &s->tile, &b);
  }
}

static void write_rows(const mla_cpu_prefill *f, const mla_cpu_chunk *k,
                       int64_t row, int64_t head, mla_cpu_part part,
                       float *line) {
  const int32_t *starts = f->starts->data;
  mla_cpu_rows_out r;
  memset(&r, 0, sizeof r);
  r.out_type = mla_cpu_type_of(f->out->dtype);
  r.tiles = f->by_tiles;
  r.base2 = (f->c->problem.flags & MLA_LSE_BASE2) != 0;
  r.rows = (int)mla_cpu_min(LANES, k->query - row);
  for (int x = 0; x < r.rows; x++) {
    int64_t token = starts[k->request] + row + x;
    r.out[x] = mla_cpu_at_mut(f->out->data, r.out_type,
                              mla_at3(f->out, token, head, 0));
    if (f->lse) r.lse[x] = (float *)f->lse->data + mla_at2(f->lse, token, head);
    if (f->sink)
      r.sink[x] = (const float *)f->sink->data + mla_at1(f->sink, head);
  }
  mla_cpu_part_finish(&f->c->table, f->c->problem.v_head_dim, part, &r, line);
}

/* What a panel's part is after this chunk: kept for the next, or written. */
static void settle_panel(const mla_cpu_prefill *f, const mla_cpu_chunk *k,
                         int64_t row, int64_t head, float *fresh, float *line) {
  int64_t v_dim = f->c->problem.v_head_dim;
  int64_t floats = mla_cpu_part_floats(v_dim);
  mla_cpu_part part = mla_cpu_part_at(fresh, v_dim);
  float *kept = f->state + (head * f->state_panels + row / LANES) * floats;
  if (k->first == 0 && !k->last) {
    memcpy(kept, fresh, (size_t)floats * sizeof(float));
    return;
  }
  if (k->first > 0) {
    mla_cpu_part so_far = mla_cpu_part_at(kept, v_dim);
    if (f->by_tiles)
      mla_cpu_tiles_fold(&f->c->table, v_dim, so_far, part);
    else
      mla_cpu_part_fold(&f->c->table, v_dim, so_far, part);
    part = so_far;
  }
  if (k->last) write_rows(f, k, row, f->first_head + head, part, line);
}

/* One tile of queries of one head against one chunk. */
void mla_cpu_prefill_attend(void *state, int64_t index, int thread) {
  const mla_cpu_prefill *f = state;
  /* The last tiles first, since they see the most, and head after head, so that
     its keys stay in cache. */
  int64_t head = index / f->tasks, task = f->tasks - 1 - index % f->tasks;
  const mla_cpu_chunk *k = chunk_of_task(f, task);
  int64_t tile = task - k->task, v_dim = f->c->problem.v_head_dim;
  int64_t floats = mla_cpu_part_floats(v_dim);
  mla_cpu_prefill_scratch s = mla_cpu_prefill_scratch_of(f, thread);
  load_queries(f, k, tile, f->first_head + head, &s);
  for (int p = 0; p < s.tile.panels; p++) {
    mla_cpu_part part = mla_cpu_part_at(s.parts + p * floats, v_dim);
    if (f->by_tiles)
      mla_cpu_tiles_clear(part);
    else
      mla_cpu_part_clear(part, v_dim);
  }
  attend_chunk(f, k, head, &s);
  for (int p = 0; p < s.tile.panels; p++)
    settle_panel(f, k, (tile * MLA_CPU_PREFILL_PANELS + p) * LANES, head,
                 s.parts + p * floats, s.line);
}
