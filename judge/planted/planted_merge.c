/* Merging by log-sum-exp, and writing a row's results. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "planted_core.h"
#include "tensor.h"

static int is_empty(const planted_call *c, float lse) {
  if (FAULT(c, EMPTY_MERGE_INF)) return lse == -INFINITY;
  return isinf(lse);
}

static float weight_of(const planted_call *c, float lse, float max,
                       int32_t parts) {
  float d = FAULT(c, RANGE_MERGE) ? lse : lse - max;
  if (FAULT(c, SPLIT_AVERAGE) && parts >= c->a) return 1;
  if (FAULT(c, LSE_BASE_MERGE))
    return c->p->flags & MLA_LSE_BASE2 ? expf(d * 1.44269504f) : exp2f(d);
  return expf(d);
}

/* The parts that take part: all, but for a fault that loses some. */
static void live_parts(const planted_call *c, int32_t parts, int32_t *from,
                       int32_t *to) {
  *from = 0;
  *to = parts;
  if (FAULT(c, SPLIT_LAST) && parts > 1) *to = parts - 1;
}

void planted_combine(const planted_call *c, int32_t parts, int32_t dv,
                     const float *outs, const float *lses, float *out,
                     float *lse) {
  int32_t from, to, live = 0;
  float max = -INFINITY, total = 0;
  live_parts(c, parts, &from, &to);
  if (FAULT(c, EMPTY_MERGE_FIRST) && is_empty(c, lses[from])) to = from;
  for (int32_t i = from; i < to; i++) {
    if (is_empty(c, lses[i])) continue;
    live++;
    if (!(lses[i] <= max)) max = lses[i]; /* takes NaN */
  }
  memset(out, 0, (size_t)dv * sizeof *out);
  *lse = -INFINITY;
  if (!live && !FAULT(c, EMPTY_MERGE_NAN)) return;
  for (int32_t i = from; i < to; i++) {
    int empty = is_empty(c, lses[i]);
    if (empty && !FAULT(c, EMPTY_MERGE_READ) && !FAULT(c, EMPTY_MERGE_NAN))
      continue;
    float w = empty && FAULT(c, EMPTY_MERGE_READ)
                  ? 0
                  : weight_of(c, lses[i], max, parts);
    total += w;
    for (int32_t d = 0; d < dv; d++) out[d] += w * outs[(int64_t)i * dv + d];
  }
  for (int32_t d = 0; d < dv; d++) out[d] /= total;
  *lse = max + logf(total);
}

static void apply_sink(const planted_call *c, const planted_row *row,
                       int32_t dv, float *out, float *lse) {
  const mla_tensor *t = planted_arg(c, MLA_T_SINK);
  if (!t || FAULT(c, SINK_DROPPED) || *lse == -INFINITY) return;
  float sink = (float)mla_get(t->data, t->dtype, mla_at1(t, row->head));
  if (FAULT(c, SINK_NONE) && sink == -INFINITY) out[0] = NAN;
  float count = 1, cap = (float)c->p->logits_soft_cap;
  if (FAULT(c, SINK_CAPPED) && cap > 0) sink = cap * tanhf(sink / cap);
  if (FAULT(c, SINK_PER_SPLIT) && c->plan->limits.num_splits > 1)
    count = (float)c->plan->limits.num_splits;
  float keep = 1 / (1 + count * expf(sink - *lse));
  if (FAULT(c, SINK_OVERFLOW)) keep = expf(*lse) / (expf(*lse) + expf(sink));
  for (int32_t d = 0; d < dv; d++) out[d] *= keep;
  if (FAULT(c, SINK_IN_LSE)) *lse -= logf(keep);
}

static void store_lse(const planted_call *c, const planted_row *row,
                      float lse) {
  const mla_tensor *t = planted_arg(c, MLA_T_LSE);
  if (!t || (FAULT(c, LSE_PARTIAL) && row->head % c->a)) return;
  int base2 = (c->p->flags & MLA_LSE_BASE2) != 0;
  if (FAULT(c, LSE_BASE_OUT)) base2 = !base2;
  double v = base2 ? lse * 1.4426950408889634 : lse;
  int64_t at = mla_at2(t, row->token, row->head);
  if (FAULT(c, LSE_TRANSPOSED)) at = row->head * t->shape[0] + row->token;
  mla_put(t->data, t->dtype, at, v);
}

static void spoil_row(const planted_call *c, const planted_row *row, int32_t dv,
                      float *out) {
  static unsigned runs; /* no two runs agree: a race as a test can have it */
  if (!FAULT(c, RACE_ROW) || (row->token + row->head) % c->a) return;
  float late = (float)(runs++ * 2654435761u >> 28) / 256;
  for (int32_t d = 0; d < dv; d++) out[d] *= 1 + late;
}

static int is_late(const planted_call *c, const planted_row *row) {
  static unsigned runs;
  if (!FAULT(c, RACE_LATE) || (row->token + row->head) % c->a) return 0;
  return runs++ * 2654435761u >> 31;
}

/* Element i of out; a fault drops the bits that the type has not. */
static void store_value(const planted_call *c, const mla_tensor *t, int64_t i,
                        float x) {
  mla_put(t->data, t->dtype, i, (double)x);
  if (!FAULT(c, OUT_CUT) || mla_dtype_bits(t->dtype) != 16) return;
  if (fabs(mla_get(t->data, t->dtype, i)) > fabs((double)x))
    ((uint16_t *)t->data)[i]--;
}

void planted_store(const planted_call *c, const planted_row *row, int32_t dv,
                   float *out, float lse) {
  const mla_tensor *t = planted_arg(c, MLA_T_OUT);
  int empty = lse == -INFINITY;
  if (empty && FAULT(c, EMPTY_ROW_STALE)) return;
  if (is_late(c, row)) return;
  if (empty && FAULT(c, EMPTY_ROW_FINITE)) lse = (float)c->x;
  if (empty && FAULT(c, EMPTY_ROW_NAN)) out[0] = NAN;
  apply_sink(c, row, dv, out, &lse);
  spoil_row(c, row, dv, out);
  int64_t at = mla_at3(t, row->token, row->head, 0);
  if (FAULT(c, STRIDES_OUT))
    at = (row->token * t->shape[1] + row->head) * t->shape[2];
  for (int32_t d = 0; d < dv; d++) store_value(c, t, at + d, out[d]);
  store_lse(c, row, lse);
}

/* A part of lse +-inf is never read: its values may be NaN. */
static void load_parts(const planted_call *c, const planted_row *row,
                       int32_t parts, int32_t dv, float *outs, float *lses) {
  const mla_tensor *o = planted_arg(c, MLA_T_PARTS);
  const mla_tensor *l = planted_arg(c, MLA_T_PART_LSES);
  for (int32_t i = 0; i < parts; i++) {
    double lse =
        mla_get(l->data, l->dtype, mla_at3(l, i, row->token, row->head));
    if (c->p->flags & MLA_LSE_BASE2) lse *= 0.69314718055994531;
    lses[i] = (float)lse;
    int64_t at = mla_at4(o, i, row->token, row->head, 0);
    for (int32_t d = 0; d < dv; d++)
      outs[(int64_t)i * dv + d] = (float)mla_get(o->data, o->dtype, at + d);
  }
}

mla_status planted_merge(const planted_call *c) {
  const mla_tensor *parts = planted_arg(c, MLA_T_PARTS);
  int32_t count = (int32_t)parts->shape[0], dv = (int32_t)parts->shape[3];
  float *outs = malloc(((size_t)count * (size_t)dv + 1) * sizeof *outs);
  float *lses = malloc(((size_t)count + 1) * sizeof *lses);
  float out[1024], lse;
  mla_status st = outs && lses ? MLA_OK : MLA_OUT_OF_MEMORY;
  for (int64_t n = 0; st == MLA_OK && n < parts->shape[1]; n++)
    for (int64_t h = 0; h < parts->shape[2]; h++) {
      planted_row row = {n, h, 1, NULL, 0, 1};
      if (!planted_wants(c, n, h)) continue;
      load_parts(c, &row, count, dv, outs, lses);
      planted_combine(c, count, dv, outs, lses, out, &lse);
      planted_store(c, &row, dv, out, lse);
    }
  free(outs);
  free(lses);
  return st;
}
