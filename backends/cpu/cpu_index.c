/*
 * index: logits of all positions that a token sees, then the largest of them.
 * A task scores a run of one token's keys; when a round of tokens is scored,
 * a task a token chooses.
 */
#include <string.h>

#include "cpu_internal.h"
#include "cpu_keys.h"
#include "cpu_parallel.h"
#include "cpu_topk.h"
#include "float_bits.h"
#include "tensor.h"

#define LANES MLA_CPU_LANES
#define RUN 1024 /* keys of a task */

/* What one thread works in. */
typedef struct scratch {
  float *k; /* [BLOCK][ld] */
  int64_t ld;
  float *q;      /* [panels][width][LANES] */
  float *rows;   /* [LANES][width] */
  float *weight; /* [panels][LANES] */
  float *scores; /* [BLOCK][LANES] */
  float *sums;   /* [BLOCK][LANES] */
} scratch;

typedef struct index_call {
  const mla_cpu_context *c;
  const mla_tensor *q, *weights, *lens, *starts, *positions, *logits;
  mla_cpu_keys keys;
  int64_t panels, width, tokens;
  int64_t first;  /* token of the round */
  int64_t runs;   /* of a token in this round */
  int64_t row_ld; /* floats of a row of logits */
  int64_t rows;   /* tokens of a round */
  float *row;     /* [rows][row_ld] */
  unsigned char *scratch;
  uint64_t scratch_bytes;
} index_call;

/* ----------------------------------------------------------------- memory */

static scratch scratch_take(mla_cpu_arena *arena, const mla_problem *p) {
  uint64_t panels = (uint64_t)mla_cpu_ceil(p->num_heads, LANES);
  uint64_t width = (uint64_t)p->head_dim;
  scratch s;
  s.ld = mla_cpu_stride(p->head_dim);
  s.k = mla_cpu_take(arena, MLA_CPU_BLOCK * (uint64_t)s.ld, sizeof(float));
  s.q = mla_cpu_take(arena, panels * LANES * width, sizeof(float));
  s.rows = mla_cpu_take(arena, LANES * width, sizeof(float));
  s.weight = mla_cpu_take(arena, panels * LANES, sizeof(float));
  s.scores = mla_cpu_take(arena, MLA_CPU_BLOCK * LANES, sizeof(float));
  s.sums = mla_cpu_take(arena, MLA_CPU_BLOCK * LANES, sizeof(float));
  return s;
}

/* Rows of logits for some tokens a thread: what is kept at a time. */
static uint64_t index_take(mla_cpu_arena *arena, index_call *x) {
  const mla_limits *l = &x->c->limits;
  mla_cpu_arena one = {NULL, 0};
  scratch_take(&one, &x->c->problem);
  x->rows = mla_cpu_min(l->tokens, 4 * (int64_t)x->c->threads);
  x->row_ld = mla_cpu_round_up(l->max_seq_len, LANES);
  x->row = mla_cpu_take(arena, (uint64_t)x->rows * (uint64_t)x->row_ld,
                        sizeof(float));
  x->scratch_bytes = one.used;
  x->scratch = mla_cpu_take(arena, (uint64_t)x->c->threads, one.used);
  return arena->used;
}

static scratch scratch_of(const index_call *x, int thread) {
  mla_cpu_arena arena = {x->scratch + (uint64_t)thread * x->scratch_bytes, 0};
  return scratch_take(&arena, &x->c->problem);
}

/* ----------------------------------------------------------------- scoring */

/* The request of a token, and how many positions it sees. */
static int64_t seen_by(const index_call *x, int64_t token, int64_t *request) {
  const int32_t *starts = x->starts->data;
  int64_t low = 0, high = x->lens->shape[0] - 1;
  while (low < high) { /* the last request that begins no later */
    int64_t middle = low + (high - low + 1) / 2;
    if (starts[middle] <= token)
      low = middle;
    else
      high = middle - 1;
  }
  *request = low;
  int64_t n = ((const int32_t *)x->lens->data)[low] - starts[low + 1] +
              (int64_t)token + 1;
  return mla_cpu_max(n, 0);
}

/* Lanes without a head weigh nothing. */
static void load_token(const index_call *x, int64_t token, scratch *s) {
  int type = mla_cpu_type_of(x->q->dtype);
  int64_t heads = x->c->problem.num_heads;
  const float *weights =
      (const float *)x->weights->data + mla_at1(x->weights, token);
  for (int64_t p = 0; p < x->panels; p++) {
    for (int64_t lane = 0; lane < LANES; lane++) {
      int64_t h = mla_cpu_min(p * LANES + lane, heads - 1);
      x->c->table.load[type](
          s->rows + lane * x->width,
          mla_cpu_at(x->q->data, type, mla_at3(x->q, token, h, 0)), x->width);
      s->weight[p * LANES + lane] = p * LANES + lane < heads ? weights[h] : 0;
    }
    x->c->table.pack(s->q + p * x->width * LANES, s->rows, x->width, x->width,
                     1.0f);
  }
}

/* sums += weight * relu(scores), lane by lane. */
static void add_heads(int64_t n, const float *scores, const float *weight,
                      float *sums) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t lane = 0; lane < LANES; lane++) {
      float s = scores[j * LANES + lane];
      sums[j * LANES + lane] += weight[lane] * (s > 0.0f ? s : 0.0f);
    }
}

/* The lanes of each key added up, in halves. */
static void add_lanes(int64_t n, float *sums, float *logit) {
  for (int64_t j = 0; j < n; j++) {
    float *x = sums + j * LANES;
    for (int half = LANES / 2; half > 0; half /= 2)
      for (int lane = 0; lane < half; lane++) x[lane] += x[lane + half];
    logit[j] = x[0];
  }
}

static void score_block(const index_call *x, int64_t n, scratch *s,
                        float *logit) {
  static const float ones[LANES] = {1, 1, 1, 1, 1, 1, 1, 1,
                                    1, 1, 1, 1, 1, 1, 1, 1};
  memset(s->sums, 0, (size_t)(n * LANES) * sizeof(float));
  for (int64_t p = 0; p < x->panels; p++) {
    const float *q = s->q + p * x->width * LANES;
    for (int64_t at = 0; at < x->width; at += MLA_CPU_CHAIN)
      x->c->table.product(n, mla_cpu_min(MLA_CPU_CHAIN, x->width - at),
                          s->k + at, s->ld, 1, q + at * LANES, at ? ones : NULL,
                          s->scores);
    add_heads(n, s->scores, s->weight + p * LANES, s->sums);
  }
  add_lanes(n, s->sums, logit);
}

static void score_task(void *state, int64_t task, int thread) {
  const index_call *x = state;
  int64_t row = task / x->runs, token = x->first + row, request;
  int64_t n = seen_by(x, token, &request);
  int64_t at = task % x->runs * RUN, end = mla_cpu_min(at + RUN, n);
  float *logit = x->row + row * x->row_ld;
  if (at >= end) return;
  scratch s = scratch_of(x, thread);
  load_token(x, token, &s);
  for (; at < end; at += MLA_CPU_BLOCK) {
    int64_t here = mla_cpu_min(MLA_CPU_BLOCK, end - at);
    mla_cpu_keys_load(&x->keys, request, at, here, s.k, s.ld);
    score_block(x, here, &s, logit + at);
  }
}

/* ---------------------------------------------------------------- choosing */

static void choose_task(void *state, int64_t row, int thread) {
  const index_call *x = state;
  int64_t token = x->first + row, request, n = seen_by(x, token, &request);
  const float *logit = x->row + row * x->row_ld;
  (void)thread;
  mla_cpu_topk(logit, n, x->positions->shape[1],
               (int32_t *)x->positions->data + mla_at1(x->positions, token));
  if (!x->logits) return;
  float *to = (float *)x->logits->data + mla_at1(x->logits, token);
  memcpy(to, logit, (size_t)n * sizeof *to);
  for (int64_t j = n; j < x->logits->shape[1]; j++)
    to[j] = mla_f32_of_bits(0xFF800000u);
}

static int64_t most_runs(const index_call *x, int64_t rows) {
  int64_t most = 1, request;
  for (int64_t r = 0; r < rows; r++)
    most = mla_cpu_max(most,
                       mla_cpu_ceil(seen_by(x, x->first + r, &request), RUN));
  return most;
}

static void index_run(const mla_cpu_context *c, const mla_args *args,
                      void *workspace) {
  mla_cpu_arena arena = {workspace, 0};
  index_call x;
  memset(&x, 0, sizeof x);
  x.c = c;
  x.q = mla_arg(args, MLA_T_Q);
  x.weights = mla_arg(args, MLA_T_INDEX_WEIGHTS);
  x.lens = mla_arg(args, MLA_T_SEQ_LENS);
  x.starts = mla_arg(args, MLA_T_QUERY_START_LOC);
  x.positions = mla_arg(args, MLA_T_POSITIONS);
  if (c->problem.flags & MLA_RETURN_LOGITS)
    x.logits = mla_arg(args, MLA_T_LOGITS);
  x.width = c->problem.head_dim;
  x.panels = mla_cpu_ceil(c->problem.num_heads, LANES);
  x.keys = mla_cpu_keys_of(c, args);
  x.tokens = ((const int32_t *)x.starts->data)[x.lens->shape[0]];
  index_take(&arena, &x);
  for (; x.first < x.tokens; x.first += x.rows) {
    int64_t rows = mla_cpu_min(x.rows, x.tokens - x.first);
    x.runs = most_runs(&x, rows);
    mla_cpu_parallel(c->threads, rows * x.runs, score_task, &x);
    mla_cpu_parallel(c->threads, rows, choose_task, &x);
  }
}

static uint64_t index_workspace(const mla_cpu_context *c) {
  mla_cpu_arena arena = {NULL, 0};
  index_call x;
  memset(&x, 0, sizeof x);
  x.c = c;
  return index_take(&arena, &x);
}

static const char *index_refuse(const mla_problem *p) {
  if (mla_cpu_type_of(p->q_dtype) < 0)
    return "q_dtype: only f32, f16 and bf16 are served";
  if (p->cache_format == MLA_CACHE_FP8_INDEX ||
      mla_cache_one_scale(p->cache_format))
    return NULL;
  return mla_cpu_refuse_cache(p);
}

const mla_cpu_op mla_cpu_op_index = {MLA_OP_INDEX, "index", index_refuse,
                                     index_workspace, index_run};
