/*
 * merge: parts of one softmax combined by their log-sum-exp. Weights are
 * binary64: there is one a part and row, against a whole row of values.
 */
#include <string.h>

#include "cpu_convert.h"
#include "cpu_internal.h"
#include "cpu_parallel.h"
#include "dmath.h"
#include "tensor.h"

#define LN_2 0.6931471805599453
#define LOG2_E 1.4426950408889634
#define GROUP                                                                \
  64           /* parts added up before they join the sum: short chains, and \
                  one pass over as many */
#define ROWS 8 /* of a task */

typedef struct merge {
  const mla_cpu_context *c;
  const mla_tensor *parts, *lses, *sink, *out, *lse;
  int far; /* cpu_convert.h */
  unsigned char *scratch;
  uint64_t scratch_bytes;
} merge;

typedef struct scratch {
  float *sum, *line; /* [Dv] each */
  double *weight;    /* [parts] */
} scratch;

static scratch scratch_take(mla_cpu_arena *arena, const mla_cpu_context *c) {
  uint64_t width = (uint64_t)c->problem.v_head_dim;
  scratch s;
  s.sum = mla_cpu_take(arena, width, sizeof(float));
  s.line = mla_cpu_take(arena, width, sizeof(float));
  s.weight = mla_cpu_take(arena, (uint64_t)c->limits.parts, sizeof(double));
  return s;
}

/* Natural log-sum-exp of part i of a row; infinite: nothing there. */
static double lse_of(const merge *g, int64_t i, int64_t n, int64_t h) {
  const float *lse = g->lses->data;
  double x = (double)lse[mla_at3(g->lses, i, n, h)];
  return g->c->problem.flags & MLA_LSE_BASE2 ? x * LN_2 : x;
}

/* The largest finite one; -infinity if all are infinite. NaN is passed over
   here and comes back in the sum of weights. */
static double top_of(const merge *g, int64_t n, int64_t h) {
  double top = -mla_inf();
  for (int64_t i = 0; i < g->lses->shape[0]; i++) {
    double x = lse_of(g, i, n, h);
    if (!mla_isinf(x) && x > top) top = x;
  }
  return top;
}

/* Weights of a row's parts, 0 for those without keys; returns their sum. */
static double weigh_parts(const merge *g, int64_t n, int64_t h, double top,
                          double *weight) {
  double total = 0.0;
  for (int64_t i = 0; i < g->parts->shape[0]; i++) {
    double x = lse_of(g, i, n, h);
    weight[i] = mla_isinf(x) ? 0.0 : mla_isnan(x) ? x : mla_exp(x - top);
    total += weight[i];
  }
  return total;
}

/* sum = the parts, each times its weight and the factor of them all. What lies
   in a part without keys is not read. */
static void add_parts(const merge *g, int64_t n, int64_t h, double factor,
                      scratch *s) {
  int type = mla_cpu_type_of(g->parts->dtype);
  int64_t ahead = g->parts->stride[2] * mla_cpu_type_bytes(type);
  const void *part[GROUP];
  float weight[GROUP];
  int64_t count = g->parts->shape[0];
  for (int64_t first = 0; first < count; first += GROUP) {
    int64_t live = 0;
    for (int64_t i = first; i < mla_cpu_min(first + GROUP, count); i++) {
      if (mla_isinf(lse_of(g, i, n, h))) continue;
      weight[live] = (float)(s->weight[i] * factor);
      part[live++] =
          mla_cpu_at(g->parts->data, type, mla_at4(g->parts, i, n, h, 0));
    }
    g->c->table.blend[type](g->parts->shape[3], live, part, weight, ahead,
                            first > 0, s->sum);
  }
}

static double with_sink(const merge *g, int64_t h, double top, double total,
                        double *times) {
  if (!g->sink) return total;
  double sink = (double)((const float *)g->sink->data)[mla_at1(g->sink, h)];
  double high = sink > top ? sink : top;
  if (mla_isinf(high)) high = 0.0;
  *times = mla_exp(top - high);
  return total * *times + mla_exp(sink - high);
}

static void merge_row(const merge *g, int64_t n, int64_t h, scratch *s) {
  int type = mla_cpu_type_of(g->out->dtype);
  int64_t width = g->parts->shape[3];
  void *out = mla_cpu_at_mut(g->out->data, type, mla_at3(g->out, n, h, 0));
  double top = top_of(g, n, h), times = 1.0;
  double total = weigh_parts(g, n, h, top, s->weight);
  int empty = total == 0.0; /* NaN is not */
  double over = with_sink(g, h, top, total, &times);
  add_parts(g, n, h, empty ? 0.0 : times / over, s);
  g->c->table.store[type](g->far ? s->line : out, s->sum, width);
  if (g->far)
    g->c->table.stream(out, s->line, width * mla_cpu_type_bytes(type));
  if (!g->lse) return;
  double lse = empty ? -mla_inf() : top + mla_log(total);
  if (g->c->problem.flags & MLA_LSE_BASE2) lse *= LOG2_E;
  ((float *)g->lse->data)[mla_at2(g->lse, n, h)] = (float)lse;
}

static void merge_task(void *state, int64_t index, int thread) {
  const merge *g = state;
  int64_t heads = g->out->shape[1], rows = g->out->shape[0] * heads;
  int64_t end = mla_cpu_min(rows, (index + 1) * ROWS);
  mla_cpu_arena arena = {g->scratch + (uint64_t)thread * g->scratch_bytes, 0};
  scratch s = scratch_take(&arena, g->c);
  for (int64_t r = index * ROWS; r < end; r++)
    merge_row(g, r / heads, r % heads, &s);
  g->c->table.settle();
}

static uint64_t merge_take(mla_cpu_arena *arena, merge *g) {
  mla_cpu_arena one = {NULL, 0};
  scratch_take(&one, g->c);
  g->scratch_bytes = one.used;
  g->scratch = mla_cpu_take(arena, (uint64_t)g->c->threads, one.used);
  return arena->used;
}

static void merge_run(const mla_cpu_context *c, const mla_args *args,
                      void *workspace) {
  mla_cpu_arena arena = {workspace, 0};
  merge g;
  memset(&g, 0, sizeof g);
  g.c = c;
  g.parts = mla_arg(args, MLA_T_PARTS);
  g.lses = mla_arg(args, MLA_T_PART_LSES);
  if (c->problem.flags & MLA_HAS_SINK) g.sink = mla_arg(args, MLA_T_SINK);
  g.out = mla_arg(args, MLA_T_OUT);
  if (c->problem.flags & MLA_RETURN_LSE) g.lse = mla_arg(args, MLA_T_LSE);
  merge_take(&arena, &g);
  g.far = mla_tensor_count(g.out) * (mla_dtype_bits(g.out->dtype) / 8) >
          MLA_CPU_FAR;
  mla_cpu_parallel(c->threads,
                   mla_cpu_ceil(g.out->shape[0] * g.out->shape[1], ROWS),
                   merge_task, &g);
}

static uint64_t merge_workspace(const mla_cpu_context *c) {
  mla_cpu_arena arena = {NULL, 0};
  merge g;
  memset(&g, 0, sizeof g);
  g.c = c;
  return merge_take(&arena, &g);
}

static const char *merge_refuse(const mla_problem *p) {
  return mla_cpu_refuse_types(p, 0);
}

const mla_cpu_op mla_cpu_op_merge = {MLA_OP_MERGE, "merge", merge_refuse,
                                     merge_workspace, merge_run};
