#include "cpu_gemm.h"

#include "cpu_onednn.h"
#include "cpu_parallel.h"

#define LANES MLA_CPU_LANES
#define PANELS 8 /* of x, in a task */
#define ROWS_N (PANELS * LANES)
#define ROWS_M 512           /* of y, in a task, where tasks are many */
#define ROWS_Y 64            /* of y, widened at once */
#define CHAIN 128            /* of k: rows of y and a panel of x in L1 */
#define LD_ROWS (CHAIN + 16) /* of y where k is contiguous: odd lines */
#define LD_COLS (ROWS_Y + 16)

/* What one thread works in. */
typedef struct scratch {
  float *x;    /* [PANELS][CHAIN][LANES] */
  float *y;    /* [ROWS_Y][LD_ROWS] or [CHAIN][LD_COLS] */
  float *c;    /* [PANELS][ROWS_M][LANES] */
  float *rows; /* [LANES][CHAIN] */
  float *line; /* [ROWS_M] */
} scratch;

typedef struct run {
  const mla_cpu_context *context;
  const mla_cpu_gemm *g;
  unsigned char *scratch;
  uint64_t scratch_bytes;
  int64_t tiles_n, tiles_m, rows_m;
} run;

/* One task: a tile of a batch. */
typedef struct tile {
  int64_t batch, n0, n, m0, m;
} tile;

static scratch scratch_take(mla_cpu_arena *arena) {
  scratch s;
  s.x = mla_cpu_take(arena, PANELS * CHAIN * LANES, sizeof(float));
  s.y = mla_cpu_take(arena, CHAIN * LD_COLS, sizeof(float));
  s.c = mla_cpu_take(arena, PANELS * ROWS_M * LANES, sizeof(float));
  s.rows = mla_cpu_take(arena, LANES * CHAIN, sizeof(float));
  s.line = mla_cpu_take(arena, ROWS_M, sizeof(float));
  return s;
}

/* x[n0 + lane][k0 ..] into a panel; lanes without a row are 0. */
static void pack_rows(const run *r, const tile *t, int64_t n0, int64_t lanes,
                      int64_t k0, int64_t k, float *panel, float *rows) {
  const mla_cpu_matrix *x = &r->g->x;
  mla_cpu_load_fn *load = r->context->table.load[x->type];
  for (int64_t lane = 0; lane < LANES; lane++) {
    int64_t at = t->batch * x->batch + (n0 + lane) * x->row + k0;
    if (lane < lanes)
      load(rows + lane * k, mla_cpu_at(x->data, x->type, at), k);
    else
      for (int64_t p = 0; p < k; p++) rows[lane * k + p] = 0.0f;
  }
  r->context->table.pack(panel, rows, k, k, 1.0f);
}

static void pack_columns(const run *r, const tile *t, int64_t n0, int64_t lanes,
                         int64_t k0, int64_t k, float *panel) {
  const mla_cpu_matrix *x = &r->g->x;
  mla_cpu_load_fn *load = r->context->table.load[x->type];
  for (int64_t p = 0; p < k; p++, panel += LANES) {
    int64_t at = t->batch * x->batch + n0 * x->row + (k0 + p) * x->col;
    load(panel, mla_cpu_at(x->data, x->type, at), lanes);
    for (int64_t lane = lanes; lane < LANES; lane++) panel[lane] = 0.0f;
  }
}

static void pack_x(const run *r, const tile *t, int64_t k0, int64_t k,
                   scratch *s) {
  for (int64_t at = 0; at < t->n; at += LANES) {
    int64_t lanes = mla_cpu_min(LANES, t->n - at);
    float *panel = s->x + at * CHAIN;
    if (r->g->x.col == 1)
      pack_rows(r, t, t->n0 + at, lanes, k0, k, panel, s->rows);
    else
      pack_columns(r, t, t->n0 + at, lanes, k0, k, panel);
  }
}

/* y[m0 .. m0 + m][k0 .. k0 + k] to f32, in its own order. */
static void widen_y(const run *r, const tile *t, int64_t m0, int64_t m,
                    int64_t k0, int64_t k, float *to) {
  const mla_cpu_matrix *y = &r->g->y;
  mla_cpu_load_fn *load = r->context->table.load[y->type];
  int64_t base = t->batch * y->batch + m0 * y->row + k0 * y->col;
  if (y->col == 1)
    for (int64_t i = 0; i < m; i++)
      load(to + i * LD_ROWS, mla_cpu_at(y->data, y->type, base + i * y->row),
           k);
  else
    for (int64_t p = 0; p < k; p++)
      load(to + p * LD_COLS, mla_cpu_at(y->data, y->type, base + p * y->col),
           m);
}

/* Hints for a share of the next rows of y, from (m0, k0), so that they are
   near when they are widened. */
static void fetch_y(const run *r, const tile *t, int64_t m0, int64_t k0,
                    int64_t share, int64_t shares) {
  const mla_cpu_matrix *y = &r->g->y;
  int64_t m = mla_cpu_min(ROWS_Y, t->m - m0);
  int64_t k = mla_cpu_min(CHAIN, r->g->k - k0);
  int64_t base = t->batch * y->batch + (t->m0 + m0) * y->row + k0 * y->col;
  int64_t count = y->col == 1 ? m : k, stride = y->col == 1 ? y->row : y->col;
  int64_t bytes = (y->col == 1 ? k : m) * mla_cpu_type_bytes(y->type);
  int64_t end = count * (share + 1) / shares;
  for (int64_t i = count * share / shares; i < end; i++)
    r->context->table.fetch(mla_cpu_at(y->data, y->type, base + i * stride),
                            bytes);
}

static const float ones[LANES] = {1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1};

/* Rows i .. i + m of y's tile with all panels; meanwhile the next rows come. */
static void multiply_rows(const run *r, const tile *t, int64_t i, int64_t m,
                          int64_t k0, int64_t k, scratch *s) {
  int by_rows = r->g->y.col == 1, last = i + m == t->m;
  int64_t next_m = last ? 0 : i + m, next_k = last ? k0 + k : k0;
  int64_t panels = mla_cpu_ceil(t->n, LANES);
  for (int64_t p = 0; p < panels; p++) {
    if (next_k < r->g->k) fetch_y(r, t, next_m, next_k, p, panels);
    r->context->table.product(m, k, s->y, by_rows ? LD_ROWS : 1,
                              by_rows ? 1 : LD_COLS, s->x + p * CHAIN * LANES,
                              k0 == 0 ? NULL : ones,
                              s->c + (p * ROWS_M + i) * LANES);
  }
}

static void multiply_chain(const run *r, const tile *t, int64_t k0, int64_t k,
                           scratch *s) {
  pack_x(r, t, k0, k, s);
  for (int64_t i = 0; i < t->m; i += ROWS_Y) {
    int64_t m = mla_cpu_min(ROWS_Y, t->m - i);
    widen_y(r, t, t->m0 + i, m, k0, k, s->y);
    multiply_rows(r, t, i, m, k0, k, s);
  }
}

static void store_tile(const run *r, const tile *t, const scratch *s) {
  const mla_cpu_gemm *g = r->g;
  for (int64_t n = 0; n < t->n; n++) {
    const float *c = s->c + n / LANES * LANES * ROWS_M + n % LANES;
    for (int64_t i = 0; i < t->m; i++) s->line[i] = c[i * LANES];
    int64_t at = t->batch * g->out_batch + (t->n0 + n) * g->out_row + t->m0;
    r->context->table.store[g->out_type](
        mla_cpu_at_mut(g->out, g->out_type, at), s->line, t->m);
  }
}

static void gemm_task(void *state, int64_t index, int thread) {
  const run *r = state;
  const mla_cpu_gemm *g = r->g;
  mla_cpu_arena arena = {r->scratch + (uint64_t)thread * r->scratch_bytes, 0};
  scratch s = scratch_take(&arena);
  tile t;
  t.batch = index / (r->tiles_n * r->tiles_m);
  t.m0 = index / r->tiles_n % r->tiles_m * r->rows_m;
  t.n0 = index % r->tiles_n * ROWS_N;
  t.m = mla_cpu_min(r->rows_m, g->m - t.m0);
  t.n = mla_cpu_min(ROWS_N, g->n - t.n0);
  for (int64_t k0 = 0; k0 < g->k; k0 += CHAIN)
    multiply_chain(r, &t, k0, mla_cpu_min(CHAIN, g->k - k0), &s);
  store_tile(r, &t, &s);
}

/* Smaller tiles where there would be too few for all threads; a number's sum
   is the same in any. */
static void cut(run *r) {
  const mla_cpu_gemm *g = r->g;
  r->tiles_n = mla_cpu_ceil(g->n, ROWS_N);
  r->rows_m = ROWS_M;
  while (r->rows_m > ROWS_Y &&
         g->batch * r->tiles_n * mla_cpu_ceil(g->m, r->rows_m) <
             4 * r->context->threads)
    r->rows_m /= 2;
  r->tiles_m = mla_cpu_ceil(g->m, r->rows_m);
}

/* What a problem multiplies; 0: it has no products of this file. */
static int types_of(const mla_problem *p, int *x, int *y) {
  *x = *y = mla_cpu_type_of(p->weight_dtype);
  switch (p->op) {
    case MLA_OP_ABSORB: return (p->flags & (MLA_FUSED_Q | MLA_FUSED_O)) != 0;
    case MLA_OP_Q_ABSORB:
    case MLA_OP_V_EXPAND:
    case MLA_OP_MATMUL: *x = mla_cpu_type_of(p->q_dtype); return 1;
    default: return 0;
  }
}

int mla_cpu_products_flush(const mla_cpu_context *c) {
  int x, y;
  return types_of(&c->problem, &x, &y) &&
         mla_cpu_onednn_flushes(c->onednn, x, y);
}

/* As measured (docs/performance/cpu_products.md): its f32 kernels are faster
   for a product a head, those for a matrix unit always. */
int mla_cpu_by_onednn(const mla_cpu_context *c) {
  int x, y;
  return c->onednn && types_of(&c->problem, &x, &y) &&
         (c->problem.op == MLA_OP_Q_ABSORB ||
          c->problem.op == MLA_OP_V_EXPAND || mla_cpu_products_flush(c));
}

uint64_t mla_cpu_gemm_workspace(const mla_cpu_context *c) {
  mla_cpu_arena one = {NULL, 0}, all = {NULL, 0};
  scratch_take(&one);
  mla_cpu_take(&all, (uint64_t)c->threads, one.used);
  return (uint64_t)mla_cpu_max((int64_t)all.used,
                               (int64_t)mla_cpu_onednn_workspace(c));
}

static void run_ours(const mla_cpu_context *c, const mla_cpu_gemm *g,
                     void *workspace) {
  mla_cpu_arena one = {NULL, 0}, all = {workspace, 0};
  run r = {c, g, NULL, 0, 0, 0, 0};
  scratch_take(&one);
  r.scratch_bytes = one.used;
  r.scratch = mla_cpu_take(&all, (uint64_t)c->threads, one.used);
  cut(&r);
  mla_cpu_parallel(c->threads, g->batch * r.tiles_n * r.tiles_m, gemm_task, &r);
}

void mla_cpu_gemm_run(const mla_cpu_context *c, const mla_cpu_gemm *g,
                      void *workspace) {
  if (!mla_cpu_by_onednn(c) || mla_cpu_onednn_run(c, g, workspace))
    run_ours(c, g, workspace);
}
