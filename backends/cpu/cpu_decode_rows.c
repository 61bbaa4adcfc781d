/*
 * Decode's rows: queries on their way in, as the kernels in use take them, and
 * attention on its way out.
 */
#include "cpu_decode.h"

#include <string.h>

#include "tensor.h"

#define LANES MLA_CPU_LANES

/* Token of the step and head of row r of a unit's request. */
static int64_t token_of(const mla_cpu_decode *d, const mla_cpu_unit *u,
                        int64_t row) {
  const int32_t *starts = d->starts->data;
  return starts[u->request] + row / mla_cpu_group(&d->c->problem);
}

static int64_t head_of(const mla_cpu_decode *d, const mla_cpu_unit *u,
                       int64_t row) {
  int64_t group = mla_cpu_group(&d->c->problem);
  return u->kv_head * group + row % group;
}

static int64_t limit_of(const mla_cpu_decode *d, const mla_cpu_unit *u,
                        int64_t row) {
  if (!(d->c->problem.flags & MLA_CAUSAL)) return u->length;
  int64_t t = row / mla_cpu_group(&d->c->problem);
  return mla_cpu_max(0, u->length - u->query_len + t + 1);
}

/* As below, for a matrix unit. */
static void load_tile_queries(const mla_cpu_decode *d, const mla_cpu_unit *u,
                              mla_cpu_decode_scratch *s) {
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
static void load_few_queries(const mla_cpu_decode *d, const mla_cpu_unit *u,
                             mla_cpu_decode_scratch *s) {
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
    mla_cpu_rows_query(&d->c->table, &s->few, x, s->rows, width,
                       (float)d->c->problem.scale);
  }
}

/* As below, as codes. */
static void load_code_queries(const mla_cpu_decode *d, const mla_cpu_unit *u,
                              mla_cpu_decode_scratch *s) {
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
    mla_cpu_codes_query(&s->codes, &d->c->table, x / LANES, x % LANES, s->rows,
                        s->tile.width);
  }
}

void mla_cpu_decode_queries(const mla_cpu_decode *d, const mla_cpu_unit *u,
                            mla_cpu_decode_scratch *s) {
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

void mla_cpu_decode_write(const mla_cpu_decode *d, const mla_cpu_unit *u,
                          int panel, mla_cpu_part part, int64_t first,
                          int64_t count, float *line) {
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
