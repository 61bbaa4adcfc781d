/* Prefill: context and new tokens up-projected, chunk by chunk. */
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "planted_core.h"
#include "tensor.h"

typedef struct prefill_state {
  const planted_call *c;
  float *latent; /* [rows][L + R]: context, then new tokens */
  float *k, *v;  /* [rows][P + R], [rows][V] of one head */
  float *w;      /* [P + V][L] of one head */
  float *q, *scores;
  planted_range *ranges;
  int32_t l, r, p, v_dim;
  int64_t longest; /* context, where it comes in chunks; else 0 */
} prefill_state;

static int64_t context_of(const planted_call *c, int64_t b) {
  int64_t queries = planted_query_start(c, b + 1) - planted_query_start(c, b);
  int64_t n = planted_seq_len(c, b) - queries;
  return n > 0 ? n : 0;
}

/* How much context a (faulty) kernel takes. */
static int64_t context_used(const planted_call *c, int64_t b) {
  int64_t n = context_of(c, b), chunk = c->plan->limits.context_chunk;
  if (!(c->p->flags & MLA_CONTEXT) || FAULT(c, PREFIX_CONTEXT)) return 0;
  if (FAULT(c, CHUNK_LAST) && chunk > 0 && n > chunk) n -= n % chunk;
  if (FAULT(c, CHUNK_SHARED)) {
    int64_t requests = planted_arg(c, MLA_T_SEQ_LENS)->shape[0];
    for (int64_t i = 0; i < requests; i++)
      if (context_of(c, i) > n) n = context_of(c, i);
  }
  if (FAULT(c, PAGE_TAIL) && n > c->p->block_size) n -= n % c->p->block_size;
  return n;
}

/* Rows behind the new tokens that a fault takes with them: the next request's,
   as far as there are any. */
static int64_t rows_behind(const planted_call *c, int64_t b) {
  const mla_tensor *start = planted_arg(c, MLA_T_QUERY_START_LOC);
  int64_t live = planted_query_start(c, start->shape[0] - 1);
  int64_t rest = live - planted_query_start(c, b + 1);
  if (!FAULT(c, TAIL_NEIGHBOUR)) return 0;
  return rest < c->a ? rest : c->a;
}

static void load_latents(prefill_state *s, int64_t b, int64_t context) {
  const planted_call *c = s->c;
  const mla_tensor *kv = planted_arg(c, MLA_T_KV_C);
  const mla_tensor *pe = planted_arg(c, MLA_T_K_PE);
  const mla_tensor *cache = planted_arg(c, MLA_T_CACHE);
  int64_t width = s->l + s->r, from = planted_query_start(c, b);
  int64_t to = planted_query_start(c, b + 1) + rows_behind(c, b);
  for (int64_t j = 0; j < context; j++)
    planted_gather_row(c, cache, b, j, 0, width, s->latent + j * width);
  for (int64_t t = from; t < to; t++) {
    float *row = s->latent + (context + t - from) * width;
    for (int64_t d = 0; d < s->l; d++)
      row[d] = (float)mla_get(kv->data, kv->dtype, mla_at2(kv, t, d));
    for (int64_t d = 0; d < s->r; d++)
      row[s->l + d] = (float)mla_get(pe->data, pe->dtype, mla_at2(pe, t, d));
  }
}

static void load_weights(prefill_state *s, int64_t head) {
  const mla_tensor *w = planted_arg(s->c, MLA_T_KV_B_PROJ);
  for (int64_t i = 0; i < s->p + s->v_dim; i++)
    for (int64_t d = 0; d < s->l; d++)
      s->w[i * s->l + d] = (float)mla_get(
          w->data, w->dtype, mla_at2(w, planted_weight_row(s->c, head, i), d));
}

static float project(const float *w, const float *latent, int32_t n) {
  float lane[16] = {0}, sum = 0;
  int32_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int32_t l = 0; l < 16; l++) lane[l] += w[i + l] * latent[i + l];
  for (; i < n; i++) lane[i % 16] += w[i] * latent[i];
  for (int32_t l = 0; l < 16; l++) sum += lane[l];
  return sum;
}

static void up_project(prefill_state *s, int64_t rows) {
  int64_t width = s->l + s->r, kd = s->p + s->r;
  for (int64_t j = 0; j < rows; j++) {
    const float *latent = s->latent + j * width;
    for (int64_t i = 0; i < s->p; i++)
      s->k[j * kd + i] = project(s->w + i * s->l, latent, s->l);
    memcpy(s->k + j * kd + s->p, latent + s->l, (size_t)s->r * sizeof(float));
    for (int64_t i = 0; i < s->v_dim; i++)
      s->v[j * s->v_dim + i] = project(s->w + (s->p + i) * s->l, latent, s->l);
  }
}

/* Context in chunks, then the new tokens. */
static int32_t make_ranges(prefill_state *s, int64_t context, int64_t rows) {
  const planted_call *c = s->c;
  int64_t chunk = c->plan->limits.context_chunk, lo = 0;
  int empties = FAULT(c, EMPTY_SPLIT) || FAULT(c, EMPTY_SPLIT_ZERO);
  int32_t count = 0;
  if (chunk <= 0) chunk = context > 0 ? context : 1;
  for (; lo < context; lo += chunk) {
    int64_t hi = lo + chunk < context ? lo + chunk : context;
    if (FAULT(c, CHUNK_ONLY)) count = 0;
    s->ranges[count++] = (planted_range){lo, hi};
  }
  /* Chunks of longer contexts, in which this request has no key. */
  for (; empties && lo < s->longest; lo += chunk)
    s->ranges[count++] = (planted_range){context, context};
  s->ranges[count++] = (planted_range){context, rows};
  return count;
}

static int skip_head(const planted_call *c, int64_t head) {
  int64_t heads = c->p->num_heads;
  return FAULT(c, HEADS_DROP) && heads > c->a && head >= heads - heads % c->a;
}

static void request_head(prefill_state *s, int64_t b, int64_t head,
                         int64_t context, int64_t queries) {
  const planted_call *c = s->c;
  int64_t rows = context + queries, from = planted_query_start(c, b);
  int wanted = 0;
  for (int64_t t = 0; t < queries; t++)
    wanted |= planted_wants(c, from + t, head);
  if (!wanted) return;
  load_weights(s, head);
  int64_t over = rows_behind(c, b);
  up_project(s, rows + over);
  planted_keys keys = {s->k,     s->v, s->p + s->r, s->v_dim, s->p + s->r,
                       s->v_dim, 0};
  for (int64_t t = 0; t < queries; t++) {
    int64_t seen = planted_visible(c, rows, queries, t);
    if (!planted_wants(c, from + t, head)) continue;
    if (seen > rows) seen = rows;
    planted_query_row(c, from + t, head, s->p + s->r, s->q);
    keys.over = seen == rows ? over : 0;
    planted_row row = {from + t, head, seen, s->q, 0, seen};
    int32_t count = make_ranges(s, context, rows);
    planted_attend(c, &row, &keys, s->ranges, count, s->scores);
  }
}

static mla_status allocate(prefill_state *s, const planted_call *c) {
  int64_t requests = planted_arg(c, MLA_T_SEQ_LENS)->shape[0], rows = 1;
  s->longest = 0;
  for (int64_t b = 0; b < requests; b++) {
    int64_t used = c->plan->limits.context_chunk > 0 ? context_used(c, b) : 0;
    if (used > s->longest) s->longest = used;
    int64_t n = context_used(c, b) + planted_query_start(c, b + 1) -
                planted_query_start(c, b) + rows_behind(c, b);
    if (n > rows) rows = n;
  }
  s->c = c;
  s->l = c->p->kv_lora_rank;
  s->r = c->p->qk_rope_head_dim;
  s->p = c->p->qk_nope_head_dim;
  s->v_dim = c->p->v_head_dim;
  int64_t parts = planted_max_parts(c->p, &c->plan->limits) + rows;
  s->latent = malloc((size_t)(rows * (s->l + s->r)) * sizeof(float));
  s->k = malloc((size_t)(rows * (s->p + s->r)) * sizeof(float));
  s->v = malloc((size_t)(rows * s->v_dim) * sizeof(float));
  s->w = malloc((size_t)((s->p + s->v_dim) * s->l) * sizeof(float));
  s->q = malloc((size_t)(s->p + s->r) * sizeof(float));
  s->scores = malloc((size_t)rows * sizeof(float));
  s->ranges = malloc((size_t)parts * sizeof(planted_range));
  int ok = s->latent && s->k && s->v && s->w && s->q && s->scores && s->ranges;
  return ok ? MLA_OK : MLA_OUT_OF_MEMORY;
}

static void release(prefill_state *s) {
  free(s->latent);
  free(s->k);
  free(s->v);
  free(s->w);
  free(s->q);
  free(s->scores);
  free(s->ranges);
}

mla_status planted_prefill(const planted_call *c) {
  prefill_state s;
  memset(&s, 0, sizeof s);
  mla_status st = allocate(&s, c);
  int64_t requests = planted_arg(c, MLA_T_SEQ_LENS)->shape[0];
  for (int64_t b = 0; st == MLA_OK && b < requests; b++) {
    int64_t context = context_used(c, b);
    int64_t queries = planted_query_start(c, b + 1) - planted_query_start(c, b);
    if (!queries) continue;
    load_latents(&s, b, context);
    for (int64_t h = 0; h < c->p->num_heads; h++)
      if (!skip_head(c, h)) request_head(&s, b, h, context, queries);
  }
  if (st == MLA_OK) planted_spoil_padding(c);
  release(&s);
  return st;
}
