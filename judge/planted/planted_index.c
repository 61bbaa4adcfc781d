/* The scorer of sparse attention: logits of positions, with every way to get
   their bounds wrong. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "planted_core.h"
#include "tensor.h"

typedef struct index_state {
  const planted_call *c;
  float *k, *q, *w, *logit;
  int32_t d, heads;
} index_state;

/* One request: its keys, and those of a fault behind them. */
typedef struct index_request {
  int64_t first, queries, seq, gathered;
} index_request;

/* Heads of the wrong axis: tokens stand where heads should. */
static int64_t weight_at(const planted_call *c, const mla_tensor *w,
                         int64_t token, int64_t head) {
  int64_t turned = head * w->shape[0] + token;
  if (!FAULT(c, INDEXER_AXIS)) return mla_at2(w, token, head);
  return mla_at2(w, turned / w->shape[1], turned % w->shape[1]);
}

static void load_row(index_state *s, int64_t token) {
  const mla_tensor *w = planted_arg(s->c, MLA_T_INDEX_WEIGHTS);
  for (int64_t h = 0; h < s->heads; h++) {
    planted_query_row(s->c, token, h, s->d, s->q + h * s->d);
    s->w[h] = (float)mla_get(w->data, w->dtype, weight_at(s->c, w, token, h));
  }
}

static int32_t tokens_of(const planted_call *c) {
  return (int32_t)planted_arg(c, MLA_T_Q)->shape[0];
}

static float logit_of(const index_state *s, const float *k) {
  const planted_call *c = s->c;
  int32_t heads = s->heads, width = s->d;
  float sum = 0;
  if (FAULT(c, INDEXER_HEADS) && heads > c->a) heads -= heads % c->a;
  if (FAULT(c, HEADDIM_TAIL)) width -= width % c->a;
  int32_t turn = FAULT(c, INVARIANCE_BATCH) ? tokens_of(c) % heads : 0;
  for (int32_t i = 0; i < heads; i++) {
    int32_t h = (i + turn) % heads;
    float score = planted_dot(s->q + (int64_t)h * s->d, k, width);
    if (score > 0 || FAULT(c, INDEXER_RELU)) sum += s->w[h] * score;
  }
  return sum;
}

/* Where a row's logits are written; a fault takes the other output's
   stride, as far as that stays inside. */
static int64_t row_at(const planted_call *c, const mla_tensor *t,
                      int64_t token) {
  const mla_tensor *positions = planted_arg(c, MLA_T_POSITIONS);
  int64_t at = token * positions->stride[0];
  int64_t last = mla_at2(t, t->shape[0] - 1, 0);
  return FAULT(c, INDEXER_STRIDE) && at <= last ? at : mla_at2(t, token, 0);
}

static void write_logits(const index_state *s, int64_t token, int64_t n) {
  const mla_tensor *t = planted_arg(s->c, MLA_T_LOGITS);
  if (!t) return;
  int64_t at = row_at(s->c, t, token);
  int stays = FAULT(s->c, INDEXER_MANY) && token >= s->c->a;
  for (int64_t j = 0; j < t->shape[1]; j++) {
    if (j >= n && FAULT(s->c, INDEXER_HIDDEN)) return;
    double x = j < n ? (double)s->logit[j] : -(double)INFINITY;
    if (stays) x = mla_get(t->data, t->dtype, mla_at2(t, token - 1, j));
    mla_put(t->data, t->dtype, at + j, x);
  }
}

/* How many positions token t of a request may choose from. */
static int64_t bound_of(const planted_call *c, const index_request *r,
                        int64_t t) {
  int64_t page = c->p->block_size, full = r->seq - r->seq % page;
  if (FAULT(c, INDEXER_PAIR) && t > 1) t = 1;
  int64_t n = planted_visible(c, r->seq, r->queries, t);
  if (n > r->seq) n = r->seq;
  if (FAULT(c, INDEXER_PAGE) && n > full) n = full;
  if (FAULT(c, INDEXER_OVER) && n == r->seq) n = r->gathered;
  return n;
}

static mla_status token_row(index_state *s, const index_request *r, int64_t t) {
  const planted_call *c = s->c;
  int64_t from = t;
  if (FAULT(c, INDEXER_ODD) && r->queries % 2 && t > 0 && t == r->queries - 1)
    from = t - 1;
  int64_t n = bound_of(c, r, from);
  if (n == 0 && FAULT(c, INDEXER_EMPTY)) return MLA_OK;
  load_row(s, r->first + from);
  for (int64_t j = 0; j < n; j++) s->logit[j] = logit_of(s, s->k + j * s->d);
  write_logits(s, r->first + t, n);
  return planted_choose(c, s->logit, n, r->first + t);
}

static mla_status request_rows(index_state *s, int64_t b) {
  const planted_call *c = s->c;
  int64_t page = c->p->block_size, from = planted_query_start(c, b);
  index_request r = {from, planted_query_start(c, b + 1) - from,
                     planted_seq_len(c, b), 0};
  mla_status st = MLA_OK;
  r.gathered =
      FAULT(c, INDEXER_OVER) ? (r.seq + page - 1) / page * page : r.seq;
  for (int64_t j = 0; r.queries > 0 && j < r.gathered; j++)
    planted_gather_row(c, planted_arg(c, MLA_T_CACHE), b, j, 0, s->d,
                       s->k + j * s->d);
  for (int64_t t = 0; st == MLA_OK && t < r.queries; t++)
    st = token_row(s, &r, t);
  return st;
}

static mla_status allocate(index_state *s, const planted_call *c) {
  const mla_tensor *lens = planted_arg(c, MLA_T_SEQ_LENS);
  int64_t most = 0;
  for (int64_t b = 0; b < lens->shape[0]; b++)
    if (planted_seq_len(c, b) > most) most = planted_seq_len(c, b);
  s->c = c;
  s->d = mla_problem_head_dim(c->p);
  s->heads = c->p->num_heads;
  size_t keys = (size_t)(most + c->p->block_size), d = (size_t)s->d;
  s->k = malloc(keys * d * sizeof *s->k);
  s->q = malloc((size_t)s->heads * d * sizeof *s->q);
  s->w = malloc((size_t)s->heads * sizeof *s->w);
  s->logit = malloc(keys * sizeof *s->logit);
  return s->k && s->q && s->w && s->logit ? MLA_OK : MLA_OUT_OF_MEMORY;
}

mla_status planted_index(const planted_call *c) {
  index_state s;
  memset(&s, 0, sizeof s);
  mla_status st = allocate(&s, c);
  int64_t requests = planted_arg(c, MLA_T_SEQ_LENS)->shape[0];
  for (int64_t b = 0; st == MLA_OK && b < requests; b++)
    st = request_rows(&s, b);
  free(s.k);
  free(s.q);
  free(s.w);
  free(s.logit);
  return st;
}
