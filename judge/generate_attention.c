/*
 * generate_attention.c - keys, values, queries and sinks.
 *
 * Scores: a key has entries of variance 4/3, a query the same times a factor
 * chosen so that scores have the standard deviation `amp`. Distributions that
 * need a chosen key (onehot, needle) add a multiple of that key to the query.
 */
#include "case_sparse.h"
#include "dmath.h"
#include "dtype.h"
#include "generate.h"
#include "spoiled.h"
#include "tensor.h"

#define VARIANCE (4.0 / 3.0)

/* What the keys of one request are made of. */
typedef struct key_source {
  mla_rng rng;
  int64_t kv_heads, width; /* numbers a token has: kv_heads * width */
  int64_t rope;            /* the last columns, which are no values */
  int spoiled;             /* NaN throughout */
} key_source;

static key_source keys_of(const mla_gen *g, int64_t b) {
  const mla_problem *p = &g->v->problem;
  key_source k = {mla_gen_stream_of(g, "k", b), mla_problem_kv_heads(p),
                  (int64_t)p->kv_lora_rank + p->qk_rope_head_dim,
                  p->qk_rope_head_dim, mla_case_is_spoiled(g->c, b)};
  if (g->c->op == MLA_OP_DECODE || g->c->op == MLA_OP_INDEX)
    k.width = mla_problem_head_dim(p);
  if (k.rope > k.width) k.rope = 0;
  return k;
}

/* The token whose numbers position j has. */
static int64_t token_at(const mla_gen *g, int64_t j) {
  switch (g->c->num[MLA_K_DIST]) {
    case MLA_DIST_REPEAT: return j % 4;
    case MLA_DIST_EQUAL: return 0;
    default: return j;
  }
}

/* Of a key's column: prefill's new keys are no entries, and follow those. */
static double amplitude(const mla_gen *g, int64_t j, int64_t head, int64_t d) {
  if (!g->rows.cache) return 1;
  return mla_gen_amplitude(g, MLA_T_CACHE, token_at(g, j) + head, d);
}

static void key_row(const mla_gen *g, const key_source *k, int64_t j,
                    int64_t head, double *row) {
  int64_t dist = g->c->num[MLA_K_DIST];
  int64_t first = (token_at(g, j) * k->kv_heads + head) * k->width;
  for (int64_t d = 0; d < k->width; d++) {
    int is_rope = d >= k->width - k->rope;
    if (is_rope && dist == MLA_DIST_EXACT)
      row[d] = 0;
    else if (is_rope && dist == MLA_DIST_TINY)
      row[d] = mla_rng_bell(k->rng, (uint64_t)(first + d));
    else
      row[d] = mla_gen_value(g, k->rng, first + d, d);
    row[d] *= amplitude(g, j, head, d);
    if (k->spoiled) row[d] = mla_nan();
  }
}

static void value_row(const mla_gen *g, const key_source *k, mla_rng rng,
                      int64_t j, int64_t head, double *row) {
  int64_t width = mla_problem_v_dim(&g->v->problem);
  int64_t first = (token_at(g, j) * k->kv_heads + head) * width;
  for (int64_t d = 0; d < width; d++) {
    row[d] = mla_gen_value(g, rng, first + d, d) *
             mla_gen_amplitude(g, MLA_T_V_CACHE, token_at(g, j) + head, d);
    if (k->spoiled) row[d] = mla_nan();
  }
}

/* ----------------------------------------------------------------- caches */

/* The slot of position j of request b. */
static int64_t slot_of(const mla_gen *g, int64_t b, int64_t j) {
  const mla_tensor *table = &g->v->tensor[MLA_T_BLOCK_TABLE];
  if (!table->data) return mla_gen_listed_slot(g, b, j);
  int64_t page = g->v->problem.block_size;
  int64_t block =
      mla_get_int(table->data, table->dtype, mla_at2(table, b, j / page));
  return block * page + j % page;
}

static void fill_separate(mla_gen *g, const key_source *k, int64_t b,
                          int64_t j) {
  mla_rng rng = mla_gen_stream_of(g, "v", b);
  int64_t at = slot_of(g, b, j), token = token_at(g, j);
  for (int64_t head = 0; head < k->kv_heads; head++) {
    key_row(g, k, j, head, g->row);
    mla_gen_put_entry(g, MLA_T_CACHE, at, head, token + head, g->row);
    value_row(g, k, rng, j, head, g->row);
    mla_gen_put_entry(g, MLA_T_V_CACHE, at, head, token + head, g->row);
  }
}

static void fill_entry(mla_gen *g, const key_source *k, int64_t b, int64_t j) {
  int edge = g->c->num[MLA_K_DIST] == MLA_DIST_EDGE;
  if (edge && g->rows.layout.quantised) {
    mla_gen_edge_entry(g, slot_of(g, b, j), k->rng, j);
    return;
  }
  key_row(g, k, j, 0, g->row);
  mla_gen_put_entry(g, MLA_T_CACHE, slot_of(g, b, j), 0, token_at(g, j),
                    g->row);
}

static void fill_cache(mla_gen *g, int64_t b) {
  key_source k = keys_of(g, b);
  int64_t start =
      g->c->op == MLA_OP_KV_READ ? mla_case_at(g->c, MLA_K_START, b) : 0;
  int64_t n = mla_case_cached(g->c, b);
  for (int64_t j = start + mla_case_shared(g->c, b); j < start + n; j++)
    if (g->v->problem.flags & MLA_SEPARATE_V)
      fill_separate(g, &k, b, j);
    else
      fill_entry(g, &k, b, j);
}

/* The second cache is nobody's own: its keys follow from their slots. */
static void fill_extra(mla_gen *g) {
  const mla_tensor *t = &g->v->tensor[MLA_T_EXTRA_CACHE];
  if (!t->data) return;
  key_source k = keys_of(g, 0);
  k.rng = mla_gen_stream(g, "x");
  for (int64_t j = 0; j < t->shape[0] * t->shape[1]; j++) {
    key_row(g, &k, j, 0, g->row);
    mla_gen_put_entry(g, MLA_T_EXTRA_CACHE, j, 0, token_at(g, j), g->row);
  }
}

/* prefill: the new tokens' keys, positions context_len and on. */
static void fill_new_keys(mla_gen *g, int64_t b, int64_t token) {
  const mla_tensor *c = &g->v->tensor[MLA_T_KV_C];
  const mla_tensor *pe = &g->v->tensor[MLA_T_K_PE];
  key_source k = keys_of(g, b);
  int64_t context = mla_case_cached(g->c, b), latent = k.width - k.rope;
  for (int64_t t = 0; t < mla_case_at(g->c, MLA_K_Q, b); t++) {
    key_row(g, &k, context + t, 0, g->row);
    mla_gen_put_row(g, MLA_T_KV_C, mla_at2(c, token + t, 0), g->row, latent);
    mla_gen_put_row(g, MLA_T_K_PE, mla_at2(pe, token + t, 0), g->row + latent,
                    k.rope);
  }
}

/* ---------------------------------------------------------------- queries */

static int64_t row_sees(const mla_gen *g, int64_t b, int64_t t) {
  int64_t len = mla_case_seq_len(g->c, b);
  if (mla_case_is_sparse(g->c))
    return mla_case_list_row(g->c, MLA_LIST_MAIN, b, t, NULL);
  if (g->c->num[MLA_K_FULL]) return len;
  int64_t n = len - mla_case_at(g->c, MLA_K_Q, b) + t + 1;
  return n < 0 ? 0 : n;
}

/* The key that row (t, head) is aimed at: each row has its own, spread over
   what it sees, the newest first. */
static int64_t chosen_key(const mla_gen *g, int64_t b, int64_t t, int64_t head,
                          int64_t visible) {
  int64_t heads = g->v->problem.num_heads;
  int64_t rows = heads * mla_case_at(g->c, MLA_K_Q, b);
  int64_t step = visible / rows > 1 ? visible / rows : 1;
  return visible - 1 - ((t * heads + head) * step) % visible;
}

static double aim_of(const mla_gen *g, int64_t visible) {
  switch (g->c->num[MLA_K_DIST]) {
    case MLA_DIST_ONEHOT: return g->c->op == MLA_OP_DECODE ? 320 : 600;
    case MLA_DIST_NEEDLE: return mla_log((double)visible) + 2;
    default: return 0;
  }
}

/* Columns of q that take part in the scores under this distribution, as
   [first, width). */
static int64_t first_column(const mla_gen *g, int64_t width, int64_t rope) {
  int64_t dist = g->c->num[MLA_K_DIST];
  if (dist == MLA_DIST_EXACT || dist == MLA_DIST_TINY) return width - rope;
  return 0;
}

/* How much smaller a key's column is than the key: tiles, not tokens, and only
   where q has the key's columns. */
static double share(const mla_gen *g, int64_t d) {
  const mla_cache_layout *x = &g->rows.layout;
  if (g->c->op != MLA_OP_DECODE || !x->scale || x->tile == x->codes) return 1;
  return mla_gen_amplitude(g, MLA_T_CACHE, 0, d);
}

static void noise_row(const mla_gen *g, mla_rng rng, int64_t row, int64_t width,
                      int64_t rope, double *q) {
  int64_t dist = g->c->num[MLA_K_DIST];
  int64_t first = first_column(g, width, rope);
  double scale = g->v->problem.scale, range = mla_gen_range(g);
  double active = (double)(width - first ? width - first : 1);
  double factor = g->c->real[MLA_K_AMP] / (scale * VARIANCE * mla_sqrt(active));
  if (dist == MLA_DIST_BIG) factor /= range;
  if (dist == MLA_DIST_ONEHOT) factor = 0;
  if (dist == MLA_DIST_NEEDLE) factor *= 0.25;
  for (int64_t d = 0; d < width; d++) {
    double x = mla_rng_bell(rng, (uint64_t)(row * width + d)) * factor;
    if (dist == MLA_DIST_OUTLIER && d % 67 == 5) x *= 0.0625;
    q[d] = d < first ? 0 : x / share(g, d);
  }
}

/* Adds to q what makes its score with the chosen key `aim`. In prefill only
   the rope part is known without the up-projection. */
static void aim_row(const mla_gen *g, const key_source *k, int64_t b, int64_t t,
                    int64_t head, double *q, int64_t width) {
  int64_t visible = row_sees(g, b, t), group, columns;
  double aim = visible > 0 ? aim_of(g, visible) : 0;
  if (aim == 0) return;
  columns = g->c->op == MLA_OP_DECODE ? width : k->rope;
  group = g->v->problem.num_heads / k->kv_heads;
  int64_t at = chosen_key(g, b, t, head, visible);
  if (mla_case_is_sparse(g->c)) at = mla_gen_listed(g, b, t, at);
  key_row(g, k, at, head / group, g->key);
  double factor = aim / (g->v->problem.scale * VARIANCE * (double)columns);
  for (int64_t d = 0; d < columns; d++) {
    int64_t column = k->width - columns + d;
    double size = amplitude(g, at, head / group, column);
    q[width - columns + d] += factor * g->key[column] / (size * size);
  }
}

static void fill_queries(mla_gen *g, int64_t b, int64_t token) {
  const mla_tensor *q = &g->v->tensor[MLA_T_Q];
  mla_rng rng = mla_gen_stream_of(g, "q", b);
  key_source k = keys_of(g, b);
  int64_t heads = q->shape[1], width = q->shape[2];
  for (int64_t t = 0; t < mla_case_at(g->c, MLA_K_Q, b); t++) {
    for (int64_t h = 0; h < heads; h++) {
      noise_row(g, rng, t * heads + h, width, k.rope, g->row);
      aim_row(g, &k, b, t, h, g->row, width);
      mla_gen_put_row(g, MLA_T_Q, mla_at3(q, token + t, h, 0), g->row, width);
    }
  }
}

/* With NaN about, every other head has none: -infinity. */
static void fill_sink(mla_gen *g) {
  const mla_tensor *sink = &g->v->tensor[MLA_T_SINK];
  mla_rng rng = mla_gen_stream(g, "sink");
  if (!sink->data) return;
  for (int64_t h = 0; h < sink->shape[0]; h++) {
    int none = g->c->num[MLA_K_DIST] == MLA_DIST_NAN && h % 2;
    mla_put(sink->data, sink->dtype, mla_at1(sink, h),
            none ? -mla_inf() : mla_rng_bell(rng, (uint64_t)h) + 1);
  }
}

void mla_gen_attention(mla_gen *g) {
  const mla_vector *v = g->v;
  int cached = v->tensor[MLA_T_CACHE].data != NULL &&
               g->c->op != MLA_OP_KV_WRITE && g->c->op != MLA_OP_KV_COPY;
  int64_t token = 0;
  fill_sink(g);
  fill_extra(g);
  if (!cached && g->c->op != MLA_OP_PREFILL) return;
  for (int64_t b = 0; b < g->c->num[MLA_K_REQUESTS]; b++) {
    if (cached) fill_cache(g, b);
    if (g->c->op == MLA_OP_INDEX)
      mla_gen_indexer(g, b, token);
    else if (v->tensor[MLA_T_Q].data)
      fill_queries(g, b, token);
    if (g->c->op == MLA_OP_PREFILL) fill_new_keys(g, b, token);
    token += mla_case_at(g->c, MLA_K_Q, b);
  }
}
