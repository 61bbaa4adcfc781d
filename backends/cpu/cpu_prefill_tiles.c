/*
 * Prefill where a matrix unit multiplies bf16: up-projected keys and values are
 * rounded to bf16, keys as rows, values in pairs of keys, as the next product
 * takes them.
 */
#include <string.h>

#include "cpu_prefill.h"
#include "tensor.h"

#define LANES MLA_CPU_LANES
#define DEPTH MLA_CPU_TILE_DEPTH
#define BLOCK MLA_CPU_TILE_BLOCK

int mla_cpu_prefill_by_tiles(const mla_cpu_context *c) {
  const mla_problem *p = &c->problem;
  return c->table.tile_scores && p->op == MLA_OP_PREFILL &&
         p->q_dtype == MLA_BF16 && p->weight_dtype == MLA_BF16 &&
         (!(p->flags & MLA_CONTEXT) || p->cache_format == MLA_CACHE_BF16) &&
         p->qk_nope_head_dim % LANES == 0 && p->v_head_dim % 32 == 0;
}

/* Rows of a head's weights, in panels. */
static int64_t panels_of(const mla_cpu_prefill *f) {
  const mla_problem *p = &f->c->problem;
  return ((int64_t)p->qk_nope_head_dim + p->v_head_dim) / LANES;
}

static uint16_t *panel_at(const mla_cpu_prefill *f, int64_t head,
                          int64_t panel) {
  int64_t size = f->ld16_latent * LANES;
  return f->weight16 + (head * panels_of(f) + panel) * size;
}

void mla_cpu_prefill_tiles_take(mla_cpu_arena *arena, mla_cpu_prefill *f) {
  const mla_problem *p = &f->c->problem;
  uint64_t rows = (uint64_t)f->capacity, heads = (uint64_t)f->heads;
  uint64_t number = sizeof(uint16_t);
  int64_t key = (int64_t)p->qk_nope_head_dim + p->qk_rope_head_dim;
  f->ld16_latent = mla_cpu_round_up(p->kv_lora_rank, DEPTH);
  f->ld16_key = mla_cpu_round_up(key, DEPTH);
  f->latent16 = mla_cpu_take(arena, rows, (uint64_t)f->ld16_latent * number);
  f->rope16 = mla_cpu_take(arena, rows, (uint64_t)p->qk_rope_head_dim * number);
  f->weight16 = mla_cpu_take(arena, heads * (uint64_t)panels_of(f),
                             (uint64_t)f->ld16_latent * LANES * number);
  f->key16 = mla_cpu_take(arena, heads * rows, (uint64_t)f->ld16_key * number);
  f->value16 =
      mla_cpu_take(arena, heads * rows, (uint64_t)p->v_head_dim * number);
  f->progress = mla_cpu_take(arena, heads, sizeof *f->progress);
}

void mla_cpu_prefill_tiles_gather(const mla_cpu_prefill *f, int64_t at,
                                  const uint16_t *latent,
                                  const uint16_t *rope) {
  const mla_problem *p = &f->c->problem;
  uint16_t *to = f->latent16 + at * f->ld16_latent;
  uint16_t *pe = f->rope16 + at * p->qk_rope_head_dim;
  int64_t n = latent ? p->kv_lora_rank : 0;
  size_t bytes = (size_t)p->qk_rope_head_dim * sizeof *to;
  if (latent) memcpy(to, latent, (size_t)n * sizeof *to);
  memset(to + n, 0, (size_t)(f->ld16_latent - n) * sizeof *to);
  if (rope)
    memcpy(pe, rope, bytes);
  else
    memset(pe, 0, bytes);
}

/* ------------------------------------------------------------- up-project */

/* Row of the head's weights that lane x of a panel stands for: values' columns
   have an order of their own. */
static int64_t row_of(const mla_cpu_prefill *f, int64_t panel, int64_t x) {
  int64_t nope = f->c->problem.qk_nope_head_dim, row = panel * LANES;
  if (row < nope) return row + x;
  int64_t half = (row - nope) / LANES % 2;
  return row - half * LANES + x / 4 * 8 + half * 4 + x % 4;
}

static void pack_panel(const mla_cpu_prefill *f, int64_t head, int64_t panel) {
  const uint16_t *rows[LANES];
  for (int64_t x = 0; x < LANES; x++) {
    int64_t row = (f->first_head + head) * panels_of(f) * LANES;
    row += row_of(f, panel, x);
    rows[x] = (const uint16_t *)f->weight->data + mla_at1(f->weight, row);
  }
  f->c->table.tile_queries(panel_at(f, head, panel), rows,
                           f->c->problem.kv_lora_rank);
}

/* The part of keys that all heads share, and zeros up to whole tiles. */
static void place_rope(const mla_cpu_prefill *f, int64_t head, int64_t at,
                       int64_t n) {
  int64_t nope = f->c->problem.qk_nope_head_dim;
  int64_t rope = f->c->problem.qk_rope_head_dim, ld = f->ld16_key;
  uint16_t *to = f->key16 + (head * f->capacity + at) * ld + nope;
  for (int64_t i = at; i < at + n; i++, to += ld) {
    memcpy(to, f->rope16 + i * rope, (size_t)rope * sizeof *to);
    memset(to + rope, 0, (size_t)(ld - nope - rope) * sizeof *to);
  }
}

/* A panel's products with n latents to where they belong. */
static void place_panel(const mla_cpu_prefill *f, int64_t head, int64_t at,
                        int64_t n, int64_t panel, const float *c) {
  int64_t keys = f->c->problem.qk_nope_head_dim / LANES;
  if (panel < keys) {
    uint16_t *to = f->key16 + (head * f->capacity + at) * f->ld16_key;
    f->c->table.tile_narrow(to + panel * LANES, f->ld16_key, c, n);
    return;
  }
  panel -= keys;
  uint16_t *to = f->value16 + head * f->capacity * f->c->problem.v_head_dim;
  to += panel / 2 * 32 * f->capacity + at * 32 + panel % 2 * LANES * DEPTH;
  f->c->table.tile_pairs(to, c, n);
}

static int64_t blocks_of(const mla_cpu_prefill *f) {
  return mla_cpu_ceil(f->tokens, BLOCK);
}

/* Tasks of a head and a block of tokens: small ones, since threads that share
   a core with others are half as fast. */
static int64_t shares_of(const mla_cpu_prefill *f) {
  return mla_cpu_ceil(panels_of(f), MLA_CPU_PREFILL_PANELS);
}

/* A share of one head's keys and values of a block of tokens. */
static void project_share(const mla_cpu_prefill *f, int64_t head, int64_t index,
                          int thread) {
  int64_t p = index % shares_of(f) * MLA_CPU_PREFILL_PANELS;
  int64_t at = index / shares_of(f) * BLOCK;
  int now = (int)mla_cpu_min(MLA_CPU_PREFILL_PANELS, panels_of(f) - p);
  int64_t n = mla_cpu_min(BLOCK, mla_cpu_round_up(f->tokens - at, DEPTH));
  mla_cpu_prefill_scratch s = mla_cpu_prefill_scratch_of(f, thread);
  mla_cpu_tile_rows rows[BLOCK / 16];
  int64_t n16[MLA_CPU_PREFILL_PANELS];
  for (int i = 0; i < MLA_CPU_PREFILL_PANELS; i++) n16[i] = n;
  for (int64_t i = 0; i < n / 16; i++) {
    rows[i].at = f->latent16 + (at + 16 * i) * f->ld16_latent;
    rows[i].ld = f->ld16_latent;
  }
  if (p == 0) place_rope(f, head, at, n);
  f->c->table.tile_begin();
  f->c->table.tile_scores(f->ld16_latent, rows, now, n16, panel_at(f, head, p),
                          s.tiles.scores);
  f->c->table.tile_end();
  for (int i = 0; i < now; i++)
    place_panel(f, head, at, n, p + i, s.tiles.scores + i * BLOCK * LANES);
}

/* ----------------------------------------------------------------- attend */

void mla_cpu_prefill_tiles_queries(const mla_cpu_prefill *f, int panel,
                                   const uint16_t *const *rows,
                                   mla_cpu_prefill_scratch *s) {
  f->c->table.tile_queries(s->tiles.queries + panel * s->tiles.width * LANES,
                           rows, s->tile.width);
}

void mla_cpu_prefill_tiles_attend(const mla_cpu_prefill *f,
                                  const mla_cpu_chunk *k, int64_t head,
                                  int64_t end, mla_cpu_prefill_scratch *s) {
  int64_t ld = f->ld16_key, v_dim = f->c->problem.v_head_dim;
  const uint16_t *keys = f->key16 + (head * f->capacity + k->at) * ld;
  const uint16_t *values = f->value16 + head * f->capacity * v_dim + k->at * 32;
  mla_cpu_tile_block b;
  memset(&b, 0, sizeof b);
  b.values_ld = f->capacity * 32;
  b.fresh = 1;
  b.first = k->first;
  do { /* no keys at all: what is fresh gets its zeros */
    b.n = (int)mla_cpu_max(0, mla_cpu_min(BLOCK, end - b.first));
    b.values = values + (b.first - k->first) * 32;
    for (int64_t i = 0; i < mla_cpu_ceil(b.n, 16); i++) {
      s->tiles.rows[i].at = keys + (b.first - k->first + 16 * i) * ld;
      s->tiles.rows[i].ld = ld;
    }
    mla_cpu_tiles_attend(&f->c->table, &s->tile, &s->tiles, &b);
    b.first += b.n;
    b.fresh = 0;
  } while (b.n > 0 && b.first < end);
}

/* -------------------------------------------------------------------- run */

/* Where the tasks of a head end that pack its weights, up-project, attend. */
static void stages_of(const mla_cpu_prefill *f, int64_t ends[3]) {
  ends[0] = f->tokens > 0 ? panels_of(f) : 0;
  ends[1] = ends[0] + blocks_of(f) * shares_of(f);
  ends[2] = ends[1] + f->tasks;
}

static void head_task(void *state, int64_t index, int thread) {
  mla_cpu_prefill *f = state;
  int64_t ends[3];
  stages_of(f, ends);
  int64_t head = index / ends[2], i = index % ends[2];
  if (i < ends[0])
    pack_panel(f, head, i);
  else if (i < ends[1])
    project_share(f, head, i - ends[0], thread);
  else
    mla_cpu_prefill_attend(f, head * f->tasks + i - ends[1], thread);
}

void mla_cpu_prefill_tiles_run(mla_cpu_prefill *f) {
  int64_t ends[3];
  stages_of(f, ends);
  if (ends[2] > 0)
    mla_cpu_parallel_stages(f->c->threads, f->group, 3, ends, f->progress,
                            head_task, f);
}
