#include "cpu_attend.h"

#include <string.h>

#include "cpu_codes.h"
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
  tile->scores = mla_cpu_take(arena, MLA_CPU_WIDE_BLOCK * LANES, sizeof(float));
  tile->spare = mla_cpu_take(arena, (uint64_t)v_dim * LANES, sizeof(float));
}

/* ------------------------------------------------------------------ block */

static const float ones[LANES] = {1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1};

/*
 * A panel's products are done a few rows at a time, and between them a share
 * of what comes next is fetched: many hints at once would wait for each other,
 * and the products for them.
 */
enum { rows_at_once = 24 };

typedef struct pace {
  const mla_cpu_block *b;
  int part, parts; /* so far, of all panels */
  mla_cpu_product_fn *product;
} pace;

static void fetch_share(pace *ahead) {
  if (ahead->b->ahead && ahead->part < ahead->parts)
    ahead->b->ahead(ahead->b->ahead_state, ahead->part++, ahead->parts);
}

static void product(pace *ahead, int64_t m, int64_t k, const float *a,
                    int64_t row, int64_t col, const float *b, const float *beta,
                    float *c) {
  for (int64_t i = 0; i < m; i += rows_at_once) {
    fetch_share(ahead);
    ahead->product(mla_cpu_min(rows_at_once, m - i), k, a + i * row, row, col,
                   b, beta, c + i * LANES);
  }
}

static int64_t chains_of(int64_t width) {
  return mla_cpu_ceil(width, MLA_CPU_CHAIN);
}

/* scores = keys x queries, in chains of equal length within what one call may
   add up. */
static void find_scores(int n, pace *ahead, int64_t width, const float *q,
                        float *scores) {
  const mla_cpu_block *b = ahead->b;
  int64_t chain = mla_cpu_ceil(width, chains_of(width));
  for (int64_t at = 0; at < width; at += chain)
    product(ahead, n, mla_cpu_min(chain, width - at), b->k + at, b->k_ld, 1,
            q + at * LANES, at == 0 ? NULL : ones, scores);
}

/* The same from codes. */
static void find_code_scores(const mla_cpu_table *table, int n, pace *ahead,
                             const mla_cpu_tile *tile, int panel, int half) {
  for (int i = 0; i < n; i += rows_at_once) {
    fetch_share(ahead);
    mla_cpu_codes_scores(tile->codes, table, panel, half, i,
                         mla_cpu_min(rows_at_once, n - i), tile->scores);
  }
}

/* How many keys of the block each lane sees; returns the most of them. Keys
   past that need no work. *mixed: some lane sees less. */
static int find_visible(const int64_t *limit, int64_t first, int n,
                        int32_t *visible, int *mixed) {
  int32_t most = 0, least = n;
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
  enum { sums = 8 };     /* one alone waits for each addition */
  float sum[sums] = {0}; /* x * 0 is 0 or, for infinity and NaN, NaN */
  for (int j = 0; j < b->n; j++) {
    const float *v = b->v + j * b->v_ld;
    int64_t c = 0;
    for (; c + sums <= v_dim; c += sums)
      for (int i = 0; i < sums; i++) sum[i] += v[c + i] * 0.0f;
    for (; c < v_dim; c++) sum[0] += v[c] * 0.0f;
  }
  for (int i = 1; i < sums; i++) sum[0] += sum[i];
  return sum[0] == 0.0f;
}

/*
 * Values of keys that a lane does not see are infinite or NaN: 0 times them
 * would leak. So the lanes that see equally much are done on their own, by the
 * same kernel, on the keys they see.
 */
static void accumulate_apart(mla_cpu_product_fn *by, int lanes,
                             mla_cpu_tile *tile, const mla_cpu_block *b,
                             const int32_t *visible, const float *beta,
                             float *acc) {
  int32_t done = -1; /* ascending */
  for (;;) {
    int32_t next = b->n + 1;
    for (int x = 0; x < lanes; x++)
      if (visible[x] > done && visible[x] < next) next = visible[x];
    if (next > b->n) return;
    memcpy(tile->spare, acc, (size_t)(tile->v_dim * LANES) * sizeof(float));
    by(tile->v_dim, next, b->v, 1, b->v_ld, tile->scores, beta, tile->spare);
    for (int x = 0; x < lanes; x++)
      for (int64_t c = 0; visible[x] == next && c < tile->v_dim; c++)
        acc[c * LANES + x] = tile->spare[c * LANES + x];
    done = next;
  }
}

/* Are half of the panel's lanes enough? A soft cap works on all. */
static int is_half(const mla_cpu_table *table, const mla_cpu_tile *tile,
                   int panel) {
  int rows = tile->rows ? tile->rows - panel * LANES : LANES;
  return table->product_half && rows <= LANES / 2 && tile->soft_cap == 0.0f;
}

static void attend_panel(const mla_cpu_table *table, mla_cpu_tile *tile,
                         int panel, pace *ahead, int *finite) {
  const mla_cpu_block *b = ahead->b;
  int32_t visible[LANES];
  float beta[LANES];
  int mixed, half = is_half(table, tile, panel);
  const float *q = tile->q + panel * tile->width * LANES;
  int n = find_visible(tile->limit + panel * LANES, b->first, b->n, visible,
                       &mixed);
  if (n == 0) return;
  ahead->product = half ? table->product_half : table->product;
  if (tile->codes)
    find_code_scores(table, n, ahead, tile, panel, half);
  else
    find_scores(n, ahead, tile->width, q, tile->scores);
  if (tile->soft_cap > 0.0f) table->softcap(n, tile->scores, tile->soft_cap);
  mla_cpu_part part = mla_cpu_part_at(
      tile->parts + panel * mla_cpu_part_floats(tile->v_dim), tile->v_dim);
  mla_cpu_softmax_fn *softmax = half ? table->softmax_half : table->softmax;
  softmax(n, tile->scores, mixed ? visible : NULL, part.m, part.l, beta);
  if (mixed && *finite < 0) *finite = is_finite_block(b, tile->v_dim);
  if (mixed && !*finite)
    accumulate_apart(ahead->product, half ? LANES / 2 : LANES, tile, b, visible,
                     beta, part.acc);
  else
    product(ahead, tile->v_dim, n, b->v, 1, b->v_ld, tile->scores, beta,
            part.acc);
}

void mla_cpu_attend_block(const mla_cpu_table *table, mla_cpu_tile *tile,
                          const mla_cpu_block *block) {
  int finite = -1; /* not looked at yet */
  int64_t parts = mla_cpu_ceil(block->n, rows_at_once) *
                      (tile->codes ? 1 : chains_of(tile->width)) +
                  mla_cpu_ceil(tile->v_dim, rows_at_once);
  pace ahead = {block, 0, (int)parts * tile->panels, table->product};
  for (int p = 0; p < tile->panels; p++)
    attend_panel(table, tile, p, &ahead, &finite);
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
    float factor = times / over;
    if (rows->tiles && !empty)
      table->tile_line(line, part.acc, x, v_dim, factor);
    else
      for (int64_t c = 0; c < v_dim; c++)
        line[c] = empty ? 0.0f : part.acc[c * LANES + x] * factor;
    table->store[rows->out_type](rows->out[x], line, v_dim);
    if (rows->lse[x])
      *rows->lse[x] = empty ? minus_infinity() : row_lse(m, l, rows->base2);
  }
}
