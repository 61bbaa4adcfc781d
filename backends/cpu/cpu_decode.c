/*
 * decode: absorbed attention over a paged cache.
 */
#include "cpu_decode.h"

#include <string.h>

#include "cpu_arena.h"
#include "cpu_parallel.h"
#include "cpu_sparse.h"

#define LANES MLA_CPU_LANES

int mla_cpu_decode_by_tiles(const mla_cpu_context *c) {
  const mla_problem *p = &c->problem;
  return c->table.tile_scores && p->op == MLA_OP_DECODE &&
         p->q_dtype == MLA_BF16 && p->cache_format == MLA_CACHE_BF16 &&
         !(p->flags & (MLA_SEPARATE_V | MLA_SPARSE)) && p->v_dim % 32 == 0 &&
         !mla_cpu_decode_by_rows(c);
}

/* ----------------------------------------------------------------- memory */

static void codes_take(mla_cpu_arena *arena, const mla_problem *p, int panels,
                       mla_cpu_decode_scratch *s) {
  mla_cpu_codes_take(arena, &s->codes, panels, p->head_dim);
  s->codes.times = (float)p->scale;
  s->v_ld = mla_cpu_stride(p->v_dim);
  s->v = mla_cpu_take(arena, MLA_CPU_BLOCK * (uint64_t)s->v_ld, sizeof(float));
  s->rows = mla_cpu_take(arena, (uint64_t)p->head_dim, sizeof(float));
}

static void blocks_take(mla_cpu_arena *arena, const mla_problem *p,
                        mla_cpu_decode_scratch *s) {
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
                      mla_cpu_decode_scratch *s) {
  uint64_t splits = (uint64_t)mla_cpu_most_splits(c);
  s->a = mla_cpu_take(arena, splits, LANES * sizeof(float));
  s->b = mla_cpu_take(arena, splits, LANES * sizeof(float));
  s->acc = mla_cpu_take(arena, splits, sizeof *s->acc);
}

static mla_cpu_decode_scratch scratch_take(mla_cpu_arena *arena,
                                           const mla_cpu_context *c) {
  const mla_problem *p = &c->problem;
  int panels = mla_cpu_max_panels(c);
  uint64_t parts = (uint64_t)panels * (uint64_t)mla_cpu_part_floats(p->v_dim);
  mla_cpu_decode_scratch s;
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

static uint64_t decode_take(mla_cpu_arena *arena, mla_cpu_decode *d) {
  mla_cpu_arena one = {NULL, 0};
  mla_cpu_schedule_take(arena, &d->schedule, d->c);
  scratch_take(&one, d->c);
  d->scratch_bytes = one.used;
  d->scratch = mla_cpu_take(arena, (uint64_t)d->c->threads, one.used);
  return arena->used;
}

mla_cpu_decode_scratch mla_cpu_decode_scratch_of(const mla_cpu_decode *d,
                                                 int thread) {
  mla_cpu_arena arena = {d->scratch + (uint64_t)thread * d->scratch_bytes, 0};
  return scratch_take(&arena, d->c);
}

/* ------------------------------------------------------------------ tasks */

static void attend_whole(const mla_cpu_decode *d, const mla_cpu_unit *u,
                         mla_cpu_decode_scratch *s) {
  int64_t v_dim = s->tile.v_dim, floats = mla_cpu_part_floats(v_dim);
  int64_t splits = mla_cpu_splits(u->length, d->c->limits.num_splits);
  mla_cpu_decode_split(d, u, 0, s->whole, s);
  for (int64_t k = 1; k < splits; k++) {
    mla_cpu_decode_split(d, u, k, s->split, s);
    for (int p = 0; p < s->tile.panels; p++)
      mla_cpu_decode_fold_panel(d,
                                mla_cpu_part_at(s->whole + p * floats, v_dim),
                                mla_cpu_part_at(s->split + p * floats, v_dim));
  }
  for (int p = 0; p < s->tile.panels; p++)
    mla_cpu_decode_write_panel(
        d, u, p, mla_cpu_part_at(s->whole + p * floats, v_dim), s);
}

/* Some panels of a unit. */
static mla_cpu_unit rows_of_work(const mla_cpu_unit *u, const mla_cpu_work *w) {
  mla_cpu_unit some = *u;
  some.row += w->panel * LANES;
  some.rows =
      (int32_t)mla_cpu_min(w->panels * LANES, u->rows - w->panel * LANES);
  some.panels = w->panels;
  return some;
}

static void attend_task(void *state, int64_t index, int thread) {
  const mla_cpu_decode *d = state;
  const mla_cpu_work *w = &d->schedule.work[index];
  const mla_cpu_unit *whole = &d->schedule.unit[w->unit];
  mla_cpu_unit u = rows_of_work(whole, w);
  mla_cpu_decode_scratch s = mla_cpu_decode_scratch_of(d, thread);
  mla_cpu_decode_queries(d, &u, &s);
  if (w->split < 0) {
    attend_whole(d, &u, &s);
    return;
  }
  mla_cpu_decode_split(d, &u, w->split,
                       mla_cpu_decode_slot(d, whole, w->split, w->panel), &s);
  mla_cpu_finish(&d->schedule.progress[w->unit], w->panels);
}

/* Attention, then folding: in one loop, so that who is done with the one goes
   on to the other, for which only the splits of its own unit must be there. */
static void decode_task(void *state, int64_t index, int thread) {
  const mla_cpu_decode *d = state;
  if (index < d->schedule.works)
    attend_task(state, index, thread);
  else
    mla_cpu_decode_fold(state, index - d->schedule.works, thread);
}

/* Do a matrix unit's keys come from memory? Hints for what the last-level cache
   keeps from step to step cost its products more than they gain. */
static int is_far(const mla_cpu_decode *d) {
  enum { kept = 96 << 20 };
  const int32_t *length = d->seq_lens->data;
  int64_t keys = 0;
  if (!mla_cpu_decode_by_tiles(d->c)) return 0;
  for (int64_t i = 0; i < d->seq_lens->shape[0]; i++) keys += length[i];
  keys *= d->c->problem.num_kv_heads;
  return keys * d->c->problem.head_dim * (int64_t)sizeof(uint16_t) > kept;
}

static void decode_run(const mla_cpu_context *c, const mla_args *args,
                       void *workspace) {
  if (c->problem.flags & MLA_SPARSE) {
    mla_cpu_sparse_run(c, args, workspace);
    return;
  }
  mla_cpu_arena arena = {workspace, 0};
  mla_cpu_decode d;
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
  mla_cpu_parallel(c->threads, d.schedule.works + mla_cpu_decode_folds(&d),
                   decode_task, &d);
}

static uint64_t decode_workspace(const mla_cpu_context *c) {
  if (c->problem.flags & MLA_SPARSE) return mla_cpu_sparse_workspace(c);
  mla_cpu_arena arena = {NULL, 0};
  mla_cpu_decode d;
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
