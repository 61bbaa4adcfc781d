/* One query row over its keys, in f32, two passes a range. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <string.h>
#include <time.h>

#include "dtype.h"
#include "planted_core.h"

enum { LANES = 16, BLOCK = 64 };

/* Independent lanes: the compiler vectorises, chains stay short. */
float planted_dot(const float *a, const float *b, int32_t n) {
  float lane[LANES] = {0}, sum = 0;
  int32_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int32_t l = 0; l < LANES; l++) lane[l] += a[i + l] * b[i + l];
  for (; i < n; i++) lane[i % LANES] += a[i] * b[i];
  for (int32_t l = 0; l < LANES; l++) sum += lane[l];
  return sum;
}

/* Rope columns, half-split where pairs are meant. */
static float dot_pairs(const planted_call *c, const float *q, const float *k,
                       int32_t n) {
  int32_t rope = c->p->qk_rope_head_dim, half = rope / 2, from = n - rope;
  float sum = planted_dot(q, k, from);
  for (int32_t i = 0; i < rope; i++) {
    int32_t j = i % 2 ? half + i / 2 : i / 2;
    sum += q[from + j] * k[from + i];
  }
  return sum;
}

static double cached_scale(const planted_call *c) {
  float *at = c->ws + c->ws_floats - 1;
  if (c->plan->runs == 1) *at = (float)c->p->scale;
  return *at;
}

static float score_of(const planted_call *c, const planted_row *row,
                      const planted_keys *keys, int64_t j) {
  const float *k = keys->k + j * keys->k_stride;
  int32_t n = keys->dk;
  if (FAULT(c, ROPE_IGNORED)) n -= c->p->qk_rope_head_dim;
  if (FAULT(c, HEADDIM_TAIL)) n -= n % c->a;
  float s = FAULT(c, ROPE_PAIRS) ? dot_pairs(c, row->q, k, n)
                                 : planted_dot(row->q, k, n);
  if (FAULT(c, RANGE_SCORE) && fabsf(s) > (float)c->x)
    s = s > 0 ? INFINITY : -INFINITY;
  double scale = c->p->scale;
  if (FAULT(c, YARN_SCALE)) scale = 1 / sqrt(keys->dk);
  if (FAULT(c, YARN_FACTOR)) scale *= c->x;
  if (FAULT(c, PLAN_RUNS)) scale *= pow(0.6931471805599453, c->plan->runs - 1);
  if (FAULT(c, WS_CACHED)) scale = cached_scale(c);
  if (FAULT(c, PLAN_FIRST)) scale = planted_first_scale();
  s *= (float)scale;
  if (FAULT(c, RANGE_BITS)) s = planted_rounded(s, c->a);
  float cap = (float)c->p->logits_soft_cap;
  if (cap > 0 && FAULT(c, RANGE_TANH)) {
    float e = expf(2 * s / cap);
    return cap * (e - 1) / (e + 1);
  }
  if (cap > 0 && !FAULT(c, RANGE_CAP)) s = cap * tanhf(s / cap);
  if (FAULT(c, MASK_FINITE) && j >= row->bound) return (float)-c->x;
  return s;
}

/* The hidden bit is among them. */
float planted_rounded(float x, int32_t bits) {
  int e;
  if (!isfinite(x) || bits >= 24) return x;
  float m = frexpf(x, &e);
  return ldexpf(rintf(ldexpf(m, bits)), e - bits);
}

static float max_of(const float *s, int64_t n) {
  float m = -INFINITY;
  for (int64_t j = 0; j < n; j++) m = s[j] > m ? s[j] : m;
  return m;
}

/* The running maximum of a kernel that takes keys tile by tile: what a key's
   weight stays relative to when nobody rescales. */
static float running_max(const planted_call *c, const float *s, int64_t i,
                         int64_t n, float max) {
  if (i % c->a) return max;
  int64_t tile = n - i < c->a ? n - i : c->a;
  float here = max_of(s + i, tile);
  return i == 0 || here > max ? here : max;
}

static float weight_of(const planted_call *c, float score, float max) {
  float p = expf(FAULT(c, RANGE_NO_MAX) ? score : score - max);
  return FAULT(c, HONESTY_NUMERICS) ? planted_rounded(p, c->a) : p;
}

/* How often key j counts: 1, unless a fault says otherwise. */
static int times(const planted_call *c, const planted_row *row, int64_t j) {
  if (FAULT(c, TILE_LOST) && j % c->a == c->a - 1 && j + 1 < row->visible)
    return 0;
  if (planted_shard_loses(c, row, j)) return 0;
  if (FAULT(c, TILE_TWICE) && j > 0 && j % c->a == 0) return 2;
  return 1;
}

/* Sums of a block of keys are kept apart: no long chain of additions. */
static void sum_range(const planted_call *c, const planted_row *row,
                      const planted_keys *keys, planted_range r, const float *s,
                      float max, float *acc, float *total) {
  float block[1024], block_sum = 0, running = max;
  int32_t dv = keys->dv, cut = dv;
  int tiled = FAULT(c, RESCALE_SUM) || FAULT(c, RESCALE_VALUES);
  int64_t step = FAULT(c, INVARIANCE_BATCH) ? row->visible % 7 + 8 : BLOCK;
  if (FAULT(c, INVARIANCE_BATCH)) step += planted_arg(c, MLA_T_Q)->shape[0] % 5;
  if (FAULT(c, INVARIANCE_PLACE)) step = 8 + row->token % 5;
  if (FAULT(c, INVARIANCE_PARTS) && c->plan->limits.max_seq_len > c->a)
    step = 8;
  if (FAULT(c, HEADDIM_V)) cut -= dv % c->a;
  if (FAULT(c, VDIM_NARROW) && cut > keys->dk) cut = keys->dk;
  memset(block, 0, sizeof block);
  for (int64_t j = r.lo; j < r.hi; j++) {
    float count = (float)times(c, row, j);
    float p = weight_of(c, s[j - r.lo], max) * count, in_sum = p;
    if (tiled) {
      running = running_max(c, s, j - r.lo, r.hi - r.lo, running);
      float left = weight_of(c, s[j - r.lo], running) * count;
      *(FAULT(c, RESCALE_SUM) ? &in_sum : &p) = left;
    }
    const float *v = keys->v + j * keys->v_stride;
    block_sum += in_sum;
    for (int32_t d = 0; d < cut; d++) block[d] += p * v[d];
    if ((j - r.lo) % step == step - 1 || j == r.hi - 1) {
      *total += block_sum;
      for (int32_t d = 0; d < dv; d++) acc[d] += block[d];
      memset(block, 0, sizeof block);
      block_sum = 0;
    }
  }
}

static void add_over_read(const planted_keys *keys, planted_range r,
                          float *acc) {
  for (int64_t j = r.hi; j < r.hi + keys->over; j++)
    for (int32_t d = 0; d < keys->dv; d++)
      acc[d] += 0.0f * keys->v[j * keys->v_stride + d];
}

/* One range: normalised values and natural lse. */
static void attend_range(const planted_call *c, const planted_row *row,
                         const planted_keys *keys, planted_range r,
                         float *scores, float *acc, float *lse) {
  float total = 0;
  int kept = FAULT(c, WS_KEPT) && c->plan->runs > 1;
  if (!FAULT(c, WS_ZEROED) && !kept)
    memset(acc, 0, (size_t)keys->dv * sizeof *acc);
  for (int64_t j = r.lo; j < r.hi; j++)
    scores[j - r.lo] = score_of(c, row, keys, j);
  float max = max_of(scores, r.hi - r.lo);
  if (FAULT(c, RANGE_START) && max < -c->x) max = (float)-c->x;
  sum_range(c, row, keys, r, scores, max, acc, &total);
  if (r.hi == row->visible) add_over_read(keys, r, acc);
  float top = FAULT(c, RANGE_NO_MAX) ? 0 : max;
  if (FAULT(c, LSE_SCALE)) top = (float)(top / c->x);
  for (int32_t d = 0; d < keys->dv; d++) {
    if (FAULT(c, RANGE_SUM) && fabsf(acc[d]) > (float)c->x)
      acc[d] = acc[d] > 0 ? INFINITY : -INFINITY;
    acc[d] /= total;
    if (FAULT(c, SPLIT_TYPE) && r.hi - r.lo < row->visible)
      acc[d] = planted_rounded(acc[d], c->a);
  }
  *lse = top + logf(total);
}

/* Ranges without keys: out 0 and lse -inf, unless the fault leaves them: rows
   share their scratch here, so what nobody wrote is taken from its end. */
static void leave_empty(const planted_call *c, int32_t dv, float *acc,
                        float *lse) {
  if (FAULT(c, EMPTY_SPLIT)) {
    *lse = c->ws[c->ws_floats - 1];
    for (int32_t d = 0; d < dv; d++) acc[d] = *lse;
    return;
  }
  memset(acc, 0, (size_t)dv * sizeof *acc);
  *lse = FAULT(c, EMPTY_SPLIT_ZERO) ? 0 : -INFINITY;
}

/* Where partial results lie: a fault puts those of all runs in one place, and
   lets others run before they are merged. */
static float *partials(const planted_call *c, int64_t floats) {
  static float shared[1 << 15];
  int fits = floats <= (int64_t)(sizeof shared / sizeof shared[0]);
  return FAULT(c, RACE_THREADS) && fits ? shared : c->ws;
}

static void let_others_run(const planted_call *c) {
  const struct timespec moment = {0, 1000};
  if (FAULT(c, RACE_THREADS)) nanosleep(&moment, NULL);
}

/* Is it a shape that a path of its own serves, and gives nothing for? */
static int is_lost(const planted_call *c, const planted_keys *keys) {
  const mla_tensor *lens = planted_arg(c, MLA_T_SEQ_LENS);
  int64_t tokens = planted_arg(c, MLA_T_Q)->shape[0];
  if (FAULT(c, HEADS_EXACT))
    return c->p->num_heads == c->a && planted_scaled(c);
  return FAULT(c, HEADDIM_ROWS) && keys->dk == c->a && lens &&
         tokens > lens->shape[0];
}

void planted_attend(const planted_call *c, const planted_row *row,
                    const planted_keys *keys, const planted_range *ranges,
                    int32_t range_count, float *scores) {
  int32_t dv = keys->dv;
  float *outs = partials(c, (int64_t)range_count * (dv + 1));
  float *lses = outs + (int64_t)range_count * dv;
  float out[1024], lse;
  for (int32_t i = 0; i < range_count; i++) {
    planted_range r = ranges[i];
    if (r.hi > row->visible) r.hi = row->visible;
    if (r.lo < r.hi)
      attend_range(c, row, keys, r, scores, outs + (int64_t)i * dv, lses + i);
    else
      leave_empty(c, dv, outs + (int64_t)i * dv, lses + i);
  }
  let_others_run(c);
  planted_combine(c, range_count, dv, outs, lses, out, &lse);
  if (FAULT(c, WS_KEPT)) memset(outs, 0, (size_t)(lses - outs) * sizeof *outs);
  if (FAULT(c, HONESTY_WIDTH) && keys->dk % c->a) {
    memset(out, 0, sizeof out);
    lse = 0;
  }
  if (is_lost(c, keys)) memset(out, 0, sizeof out);
  planted_store(c, row, dv, out, lse);
}
