/*
 * Decode's parts: what several tasks found of the same rows becomes one, in the
 * order of the keys whoever did which.
 */
#include "cpu_decode.h"

#include <string.h>

#define LANES MLA_CPU_LANES

enum { most_slices = 16 }; /* of a panel's values */

void mla_cpu_decode_fold_panel(const mla_cpu_decode *d, mla_cpu_part part,
                               mla_cpu_part other) {
  if (mla_cpu_decode_by_rows(d->c))
    mla_cpu_rows_fold(d->c->problem.v_dim, part, other);
  else if (mla_cpu_decode_by_tiles(d->c))
    mla_cpu_tiles_fold(&d->c->table, d->c->problem.v_dim, part, other);
  else
    mla_cpu_part_fold(&d->c->table, d->c->problem.v_dim, part, other);
}

void mla_cpu_decode_write_panel(const mla_cpu_decode *d, const mla_cpu_unit *u,
                                int panel, mla_cpu_part part,
                                mla_cpu_decode_scratch *s) {
  if (s->few.q)
    part = mla_cpu_rows_turn(
        &s->tile, mla_cpu_type_of(d->cache->dtype),
        (int)mla_cpu_min(LANES, u->rows - (int64_t)panel * LANES), part);
  mla_cpu_decode_write(d, u, panel, part, 0, s->tile.v_dim, s->line);
}

float *mla_cpu_decode_slot(const mla_cpu_decode *d, const mla_cpu_unit *u,
                           int64_t split, int64_t panel) {
  int64_t at = u->slot + split * u->panels + panel;
  return d->schedule.slots + at * mla_cpu_part_floats(d->c->problem.v_dim);
}

/* As many of a panel as give every thread one. */
static int64_t slices_of(const mla_cpu_decode *d) {
  int64_t panels = d->schedule.shared_units * d->schedule.panels;
  if (panels == 0) return 1;
  return mla_cpu_min(mla_cpu_ceil(d->c->threads, panels), most_slices);
}

int64_t mla_cpu_decode_folds(const mla_cpu_decode *d) {
  return d->schedule.shared_units * d->schedule.panels * slices_of(d);
}

/* Few rows: all of a panel at once. */
static void fold_few(const mla_cpu_decode *d, const mla_cpu_unit *u, int panel,
                     mla_cpu_decode_scratch *s) {
  int64_t v_dim = d->c->problem.v_dim;
  int64_t splits = mla_cpu_splits(u->length, d->c->limits.num_splits);
  mla_cpu_part part =
      mla_cpu_part_at(mla_cpu_decode_slot(d, u, 0, panel), v_dim);
  for (int64_t k = 1; k < splits; k++)
    mla_cpu_decode_fold_panel(
        d, part, mla_cpu_part_at(mla_cpu_decode_slot(d, u, k, panel), v_dim));
  mla_cpu_decode_write_panel(d, u, panel, part, s);
}

/*
 * A slice of a panel of a shared unit, by tiles: each part is read once, 32
 * columns of all parts at a time.
 */
static void fold_tiles(const mla_cpu_decode *d, const mla_cpu_unit *u,
                       int panel, int64_t first, int64_t count,
                       mla_cpu_decode_scratch *s) {
  int64_t splits = mla_cpu_splits(u->length, d->c->limits.num_splits);
  int64_t v_dim = d->c->problem.v_dim;
  mla_cpu_part part =
      mla_cpu_part_at(mla_cpu_decode_slot(d, u, 0, panel), v_dim);
  float m[LANES], l[LANES];
  mla_cpu_part whole = {m, l, s->tile.spare};
  memcpy(m, part.m, sizeof m);
  memcpy(l, part.l, sizeof l);
  s->acc[0] = part.acc + first * LANES;
  for (int64_t k = 1; k < splits; k++) {
    part = mla_cpu_part_at(mla_cpu_decode_slot(d, u, k, panel), v_dim);
    s->acc[k] = part.acc + first * LANES;
    d->c->table.tile_join(m, l, part.m, part.l, s->a + k * LANES,
                          s->b + k * LANES);
  }
  for (int64_t c = first; c < first + count; c += 32) {
    int64_t ahead = c + 32 < first + count ? 32 * LANES : 0;
    d->c->table.tile_blend(2, splits, s->acc, s->a, s->b, ahead, whole.acc);
    mla_cpu_decode_write(d, u, panel, whole, c, 32, s->line);
    for (int64_t k = 0; k < splits; k++) s->acc[k] += 32 * LANES;
  }
}

/*
 * Folds a slice of the parts of one panel of a shared unit, in order, once all
 * are there. A panel's maximum and denominator are found anew for each slice:
 * few panels and many threads are the usual case.
 */
void mla_cpu_decode_fold(void *state, int64_t index, int thread) {
  const mla_cpu_decode *d = state;
  int64_t v_dim = d->c->problem.v_dim;
  int64_t slices = slices_of(d), slice = index % slices;
  int64_t step = mla_cpu_decode_by_tiles(d->c) ? 32 : 1;
  int64_t first = v_dim / step * slice / slices * step;
  int64_t count = v_dim / step * (slice + 1) / slices * step - first;
  index /= slices;
  int64_t unit = index / d->schedule.panels;
  const mla_cpu_unit *u = &d->schedule.unit[unit];
  int panel = (int)(index % d->schedule.panels);
  int64_t splits = mla_cpu_splits(u->length, d->c->limits.num_splits);
  mla_cpu_decode_scratch s = mla_cpu_decode_scratch_of(d, thread);
  if ((int64_t)panel * LANES >= u->rows || count == 0) return;
  mla_cpu_wait_for(&d->schedule.progress[unit], splits * u->panels);
  if (s.few.q) {
    if (first == 0) fold_few(d, u, panel, &s);
    return;
  }
  if (s.tiles.queries) {
    fold_tiles(d, u, panel, first, count, &s);
    return;
  }
  float m[LANES], l[LANES];
  mla_cpu_part part =
      mla_cpu_part_at(mla_cpu_decode_slot(d, u, 0, panel), v_dim);
  memcpy(m, part.m, sizeof m);
  memcpy(l, part.l, sizeof l);
  float *acc = part.acc + first * LANES;
  for (int64_t k = 1; k < splits; k++) {
    mla_cpu_part next =
        mla_cpu_part_at(mla_cpu_decode_slot(d, u, k, panel), v_dim);
    d->c->table.fold(count, m, l, acc, next.m, next.l,
                     next.acc + first * LANES);
  }
  mla_cpu_part whole = {m, l, acc};
  mla_cpu_decode_write(d, u, panel, whole, first, count, s.line);
}
