#include "cpu_attend.h"

#include <string.h>

#include "cpu_exp.h"
#include "cpu_internal.h"
#include "dmath.h"

#define LANES MLA_CPU_LANES
#define LOG2_E 1.4426950408889634

static float minus_infinity(void) {
  return mla_f32_of_bits(0xFF800000u);
}

/* ------------------------------------------------------------------ parts */

int64_t mla_cpu_part_floats(int64_t v_dim) {
  return (v_dim + 2) * LANES;
}

mla_cpu_part mla_cpu_part_at(float *memory, int64_t v_dim) {
  mla_cpu_part part = {memory + v_dim * LANES, memory + (v_dim + 1) * LANES,
                       memory};
  return part;
}

void mla_cpu_part_clear(mla_cpu_part part, int64_t v_dim) {
  for (int x = 0; x < LANES; x++) {
    part.m[x] = minus_infinity();
    part.l[x] = 0.0f;
  }
  memset(part.acc, 0, (size_t)(v_dim * LANES) * sizeof(float));
}

void mla_cpu_part_fold(const mla_cpu_table *table, int64_t v_dim,
                       mla_cpu_part part, mla_cpu_part other) {
  table->fold(v_dim, part.m, part.l, part.acc, other.m, other.l, other.acc);
}

void mla_cpu_tile_take(mla_cpu_arena *arena, mla_cpu_tile *tile, int panels,
                       int64_t width, int64_t v_dim) {
  uint64_t lanes = (uint64_t)panels * LANES;
  tile->width = width;
  tile->v_dim = v_dim;
  tile->q = mla_cpu_take(arena, lanes * (uint64_t)width, sizeof(float));
  tile->limit = mla_cpu_take(arena, lanes, sizeof(int64_t));
  tile->scores = mla_cpu_take(arena, MLA_CPU_BLOCK * LANES, sizeof(float));
  tile->spare = mla_cpu_take(arena, (uint64_t)v_dim * LANES, sizeof(float));
}

/* ------------------------------------------------------------------ block */

static const float ones[LANES] = {1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1};

/* scores (+)= keys x queries over `width` columns, in chains of equal length
   within what one call may add up. */
static void add_scores(const mla_cpu_table *table, int n, const float *k,
                       int64_t ld, int64_t width, const float *q, float *scores,
                       int first) {
  int64_t chains = mla_cpu_ceil(width, MLA_CPU_CHAIN);
  int64_t chain = chains ? mla_cpu_ceil(width, chains) : 0;
  for (int64_t at = 0; at < width; at += chain) {
    int64_t here = mla_cpu_min(chain, width - at);
    table->product(n, here, k + at, ld, 1, q + at * LANES,
                   first && at == 0 ? NULL : ones, scores);
  }
}

/* How many keys of the block each lane sees; returns the most of them. Keys
   past that need no work. *mixed: some lane sees less. */
static int find_visible(const int64_t *limit, int64_t first, int n,
                        int32_t *visible, int *mixed) {
  int32_t most = 0, least = MLA_CPU_BLOCK;
  for (int x = 0; x < LANES; x++) {
    int64_t v = limit[x] - first;
    visible[x] = (int32_t)(v < 0 ? 0 : v > n ? n : v);
    most = visible[x] > most ? visible[x] : most;
    least = visible[x] < least ? visible[x] : least;
  }
  *mixed = least < most;
  return most;
}

static int is_finite_block(const mla_cpu_block *b, int64_t v_dim) {
  float sum = 0.0f; /* x * 0 is 0 or, for infinity and NaN, NaN */
  for (int j = 0; j < b->n; j++)
    for (int64_t c = 0; c < v_dim; c++) sum += b->v[j * b->v_ld + c] * 0.0f;
  return sum == 0.0f;
}

/*
 * Values of keys that a lane does not see are infinite or NaN: 0 times them
 * would leak. So the lanes that see equally much are done on their own, by the
 * same kernel, on the keys they see.
 */
static void accumulate_apart(const mla_cpu_table *table, mla_cpu_tile *tile,
                             const mla_cpu_block *b, const int32_t *visible,
                             const float *beta, float *acc) {
  int32_t done = -1; /* ascending */
  for (;;) {
    int32_t next = MLA_CPU_BLOCK + 1;
    for (int x = 0; x < LANES; x++)
      if (visible[x] > done && visible[x] < next) next = visible[x];
    if (next > MLA_CPU_BLOCK) return;
    memcpy(tile->spare, acc, (size_t)(tile->v_dim * LANES) * sizeof(float));
    table->product(tile->v_dim, next, b->v, 1, b->v_ld, tile->scores, beta,
                   tile->spare);
    for (int x = 0; x < LANES; x++)
      for (int64_t c = 0; visible[x] == next && c < tile->v_dim; c++)
        acc[c * LANES + x] = tile->spare[c * LANES + x];
    done = next;
  }
}

static void fetch_ahead(const mla_cpu_tile *tile, const mla_cpu_block *b,
                        int part) {
  if (b->ahead) b->ahead(b->ahead_state, part, 2 * tile->panels);
}

static void attend_panel(const mla_cpu_table *table, mla_cpu_tile *tile,
                         int panel, const mla_cpu_block *b, int *finite) {
  int32_t visible[LANES];
  float beta[LANES];
  int mixed;
  const float *q = tile->q + panel * tile->width * LANES;
  int n = find_visible(tile->limit + panel * LANES, b->first, b->n, visible,
                       &mixed);
  fetch_ahead(tile, b, 2 * panel);
  if (n == 0) return;
  add_scores(table, n, b->k, b->k_ld, b->k_width, q, tile->scores, 1);
  add_scores(table, n, b->k2, b->k2_ld, b->k2_width, q + b->k_width * LANES,
             tile->scores, b->k_width == 0);
  if (tile->soft_cap > 0.0f) table->softcap(n, tile->scores, tile->soft_cap);
  mla_cpu_part part = mla_cpu_part_at(
      tile->parts + panel * mla_cpu_part_floats(tile->v_dim), tile->v_dim);
  table->softmax(n, tile->scores, mixed ? visible : NULL, part.m, part.l, beta);
  fetch_ahead(tile, b, 2 * panel + 1);
  if (mixed && *finite < 0) *finite = is_finite_block(b, tile->v_dim);
  if (mixed && !*finite)
    accumulate_apart(table, tile, b, visible, beta, part.acc);
  else
    table->product(tile->v_dim, n, b->v, 1, b->v_ld, tile->scores, beta,
                   part.acc);
}

void mla_cpu_attend_block(const mla_cpu_table *table, mla_cpu_tile *tile,
                          const mla_cpu_block *block) {
  int finite = -1; /* not looked at yet */
  for (int p = 0; p < tile->panels; p++)
    attend_panel(table, tile, p, block, &finite);
}

/* ----------------------------------------------------------------- finish */

/* What to multiply a row's accumulator by; the sink joins the denominator. */
static void row_weights(float m, float l, const float *sink, float *times,
                        float *over) {
  *times = 1.0f;
  *over = l;
  if (!sink) return;
  float top = *sink > m ? *sink : m;
  float shift = top == minus_infinity() ? 0.0f : top;
  *times = mla_cpu_expf(m - shift);
  *over = l * *times + mla_cpu_expf(*sink - shift);
}

static float row_lse(float m, float l, int base2) {
  double lse = (double)m + mla_log((double)l);
  return (float)(base2 ? lse * LOG2_E : lse);
}

void mla_cpu_part_finish(const mla_cpu_table *table, int64_t v_dim,
                         mla_cpu_part part, const mla_cpu_rows_out *rows,
                         float *line) {
  for (int x = 0; x < rows->rows; x++) {
    float m = part.m[x], l = part.l[x], times, over;
    int empty = l == 0.0f;
    row_weights(m, l, rows->sink[x], &times, &over);
    for (int64_t c = 0; c < v_dim; c++)
      line[c] = empty ? 0.0f : part.acc[c * LANES + x] * times / over;
    table->store[rows->out_type](rows->out[x], line, v_dim);
    if (rows->lse[x])
      *rows->lse[x] = empty ? minus_infinity() : row_lse(m, l, rows->base2);
  }
}
