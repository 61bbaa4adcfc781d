/*
 * layer_direct.c - a layer by plain loops.
 */
#include "layer_direct.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "dmath.h"
#include "rng.h"
#include "tensor.h"

enum {
  T = DIRECT_T,
  HIDDEN = DIRECT_HIDDEN,
  H = DIRECT_H,
  LQ = DIRECT_LQ,
  L = DIRECT_L,
  P = DIRECT_P,
  R = DIRECT_R,
  V = DIRECT_V,
  HI = DIRECT_HI,
  DI = DIRECT_DI,
  TOPK = DIRECT_TOPK,
  Q = P + R
};

/* ----------------------------------------------------------------- making */

static mla_tensor draw(const char *name, int64_t rows, int64_t columns,
                       double offset) {
  const int64_t shape[2] = {rows, columns};
  int64_t count = columns ? rows * columns : rows;
  float *data = malloc((size_t)count * sizeof *data);
  mla_rng rng = mla_rng_named(3, name);
  ck_assert_ptr_nonnull(data);
  for (int64_t i = 0; i < count; i++) {
    data[i] = (float)(offset + mla_rng_bell(rng, (uint64_t)i) / 4);
  }
  return mla_tensor_dense(data, MLA_F32, columns ? 2 : 1, shape);
}

static void make_indexer(direct_layer *d) {
  d->config.index_n_heads = HI;
  d->config.index_head_dim = DI;
  d->config.index_topk = TOPK;
  d->weights.index_wq_b = draw("iq", HI * DI, LQ, 0);
  d->weights.index_wk = draw("ik", DI, HIDDEN, 0);
  d->weights.index_k_norm = draw("in", DI, 0, 1);
  d->weights.index_k_norm_bias = draw("ib", DI, 0, 0);
  d->weights.index_weights_proj = draw("iw", HI, HIDDEN, 0);
}

void direct_layer_make(direct_layer *d, const mla_layer_config *config) {
  const int64_t shape[2] = {T, HIDDEN};
  mla_rng rng = mla_rng_named(3, "hidden");
  double *hidden = malloc(T * HIDDEN * sizeof *hidden);
  ck_assert_ptr_nonnull(hidden);
  memset(d, 0, sizeof *d);
  d->config = *config;
  d->config.hidden_size = HIDDEN;
  d->config.num_heads = H;
  d->config.kv_lora_rank = L;
  d->config.qk_nope_head_dim = P;
  d->config.qk_rope_head_dim = d->config.rope.dim = R;
  d->config.v_head_dim = V;
  if (config->q_lora_rank) {
    d->config.q_lora_rank = LQ;
    d->weights.q_a_proj = draw("q_a", LQ, HIDDEN, 0);
    d->weights.q_a_layernorm = draw("q_n", LQ, 0, 1);
    d->weights.q_b_proj = draw("q_b", H * Q, LQ, 0);
  } else {
    d->weights.q_proj = draw("q", H * Q, HIDDEN, 0);
  }
  d->weights.kv_a_proj = draw("kv_a", L + R, HIDDEN, 0);
  d->weights.kv_a_layernorm = draw("kv_n", L, 0, 1);
  d->weights.kv_b_proj = draw("kv_b", H * (P + V), L, 0);
  d->weights.o_proj = draw("o", HIDDEN, H * V, 0);
  if (config->index_topk) make_indexer(d);
  for (uint64_t i = 0; i < T * HIDDEN; i++) hidden[i] = mla_rng_bell(rng, i);
  d->hidden = mla_tensor_dense(hidden, MLA_F64, 2, shape);
}

void direct_layer_free(direct_layer *d) {
  mla_layer_weights *w = &d->weights;
  mla_tensor *all[] = {&w->q_proj,
                       &w->q_a_proj,
                       &w->q_a_layernorm,
                       &w->q_b_proj,
                       &w->kv_a_proj,
                       &w->kv_a_layernorm,
                       &w->kv_b_proj,
                       &w->o_proj,
                       &w->index_wq_b,
                       &w->index_wk,
                       &w->index_k_norm,
                       &w->index_k_norm_bias,
                       &w->index_weights_proj,
                       &d->hidden};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]->data);
}

/* ---------------------------------------------------------------- formulas */

/* y = W x */
static void apply(const mla_tensor *w, const double *x, double *y) {
  const float *value = w->data;
  int64_t columns = w->shape[1];
  for (int64_t i = 0; i < w->shape[0]; i++) {
    y[i] = 0;
    for (int64_t j = 0; j < columns; j++) {
      y[i] += (double)value[i * columns + j] * x[j];
    }
  }
}

static void norm(double *x, int n, const mla_tensor *w, double eps) {
  const float *value = w->data;
  double sum = 0;
  for (int i = 0; i < n; i++) sum += x[i] * x[i];
  for (int i = 0; i < n; i++) {
    x[i] *= (double)value[i] / mla_sqrt(sum / n + eps);
  }
}

/* Plain rotary positions of four dimensions: f = 1 and theta^-1/2. */
static void turn_pairs(const mla_rope *rope, int half_split, int64_t position,
                       double *x) {
  for (int i = 0; i < 2; i++) {
    double f = i ? 1 / mla_sqrt(rope->theta) : 1;
    double c = mla_cos((double)position * f), s = mla_sin((double)position * f);
    double *a = &x[half_split ? i : 2 * i];
    double *b = &x[half_split ? i + 2 : 2 * i + 1];
    double first = *a * c - *b * s;
    *b = *b * c + *a * s;
    *a = first;
  }
}

static void turn(const mla_rope *rope, int64_t position, double *x) {
  turn_pairs(rope, rope->half_split, position, x);
}

static double or_one(double x) {
  return x == 0 ? 1 : x;
}

static void make_query(const direct_layer *d, int t, double *q) {
  const mla_layer_config *c = &d->config;
  const double *x = (const double *)d->hidden.data + t * HIDDEN;
  double latent[LQ];
  int64_t position = d->first_position + t;
  double factor = or_one(c->mla_scale_q_lora);
  if (c->rope.llama_4_beta > 0) {
    int64_t lengths = position / c->rope.original_max_position;
    factor *= 1 + c->rope.llama_4_beta * mla_log(1.0 + (double)lengths);
  }
  if (c->q_lora_rank) {
    apply(&d->weights.q_a_proj, x, latent);
    norm(latent, LQ, &d->weights.q_a_layernorm, c->q_norm_eps);
    apply(&d->weights.q_b_proj, latent, q);
  } else {
    apply(&d->weights.q_proj, x, q);
  }
  for (int h = 0; h < H; h++) turn(&c->rope, position, q + h * Q + P);
  for (int i = 0; i < H * Q; i++) q[i] *= factor;
}

/* Up-projected keys and values of one token. */
static void make_key(const direct_layer *d, int t, double *kv_c, double k[H][Q],
                     double v[H][V]) {
  const mla_layer_config *c = &d->config;
  const double *x = (const double *)d->hidden.data + t * HIDDEN;
  double latent[L + R], up[H * (P + V)];
  apply(&d->weights.kv_a_proj, x, latent);
  norm(latent, L, &d->weights.kv_a_layernorm, c->kv_norm_eps);
  turn(&c->rope, d->first_position + t, latent + L);
  for (int i = 0; i < L; i++) {
    kv_c[i] = latent[i] *= or_one(c->mla_scale_kv_lora);
  }
  apply(&d->weights.kv_b_proj, latent, up);
  for (int h = 0; h < H; h++) {
    memcpy(k[h], up + h * (P + V), P * sizeof(double));
    memcpy(k[h] + P, latent + L, R * sizeof(double));
    memcpy(v[h], up + h * (P + V) + P, V * sizeof(double));
  }
}

/* ----------------------------------------------------------------- indexer */

static const double *hidden_of(const direct_layer *d, int t) {
  return (const double *)d->hidden.data + t * HIDDEN;
}

static void make_index_key(const direct_layer *d, int t, double k[DI]) {
  const mla_layer_weights *w = &d->weights;
  const float *weight = w->index_k_norm.data;
  const float *bias = w->index_k_norm_bias.data;
  double mean = 0, variance = 0;
  apply(&w->index_wk, hidden_of(d, t), k);
  for (int i = 0; i < DI; i++) mean += k[i] / DI;
  for (int i = 0; i < DI; i++) variance += (k[i] - mean) * (k[i] - mean) / DI;
  for (int i = 0; i < DI; i++) {
    k[i] = (k[i] - mean) / mla_sqrt(variance + d->config.index_norm_eps) *
               (double)weight[i] +
           (double)bias[i];
  }
  turn_pairs(&d->config.rope, d->config.index_half_split, d->first_position + t,
             k);
}

static void make_index_query(const direct_layer *d, int t, double q[HI * DI]) {
  double latent[LQ];
  apply(&d->weights.q_a_proj, hidden_of(d, t), latent);
  norm(latent, LQ, &d->weights.q_a_layernorm, d->config.q_norm_eps);
  apply(&d->weights.index_wq_b, latent, q);
  for (int h = 0; h < HI; h++) {
    turn_pairs(&d->config.rope, d->config.index_half_split,
               d->first_position + t, q + h * DI);
  }
}

/* Positions in order of what they score, the best first. */
static void rank(const double *score, int keys, int32_t *chosen) {
  int taken[T] = {0};
  for (int i = 0; i < TOPK; i++) {
    int best = -1;
    for (int j = 0; j < keys; j++) {
      if (!taken[j] && (best < 0 || score[j] > score[best])) best = j;
    }
    chosen[i] = best;
    if (best >= 0) taken[best] = 1;
  }
}

void direct_layer_choose(const direct_layer *d, int32_t *topk) {
  double k[T][DI], q[HI * DI], weight[HI], score[T];
  for (int t = 0; t < T; t++) {
    make_index_key(d, t, k[t]);
    make_index_query(d, t, q);
    apply(&d->weights.index_weights_proj, hidden_of(d, t), weight);
    for (int j = 0; j <= t; j++) {
      score[j] = 0;
      for (int h = 0; h < HI; h++) {
        double s = 0;
        for (int i = 0; i < DI; i++) s += q[h * DI + i] * k[j][i];
        s /= mla_sqrt(DI);
        if (s > 0) score[j] += s * weight[h] / mla_sqrt(HI);
      }
    }
    rank(score, t + 1, topk + t * TOPK);
  }
}

/* Without an indexer every key up to the token's own is seen. */
static int is_seen(const direct_layer *d, const int32_t *chosen, int j) {
  int seen = d->config.index_topk == 0;
  for (int i = 0; i < TOPK; i++) seen |= chosen[i] == j;
  return seen;
}

/* --------------------------------------------------------------- attention */

static void attend(const direct_layer *d, const int32_t *chosen,
                   const double *q, double k[T][H][Q], double v[T][H][V], int h,
                   int keys, double scale, double *out) {
  double sum = 0;
  for (int i = 0; i < V; i++) out[i] = 0;
  for (int j = 0; j < keys; j++) {
    if (!is_seen(d, chosen, j)) continue;
    double score = 0;
    for (int i = 0; i < Q; i++) score += q[i] * k[j][h][i];
    double weight = mla_exp(score * scale);
    sum += weight;
    for (int i = 0; i < V; i++) out[i] += weight * v[j][h][i];
  }
  for (int i = 0; i < V; i++) out[i] /= sum;
}

void direct_layer_run(const direct_layer *d, double *attention, double *out,
                      double *kv_c) {
  double k[T][H][Q], v[T][H][V], q[H * Q];
  int32_t topk[T * TOPK] = {0};
  double scale = d->config.softmax_scale;
  if (scale == 0) scale = 1 / mla_sqrt(Q);
  if (d->config.index_topk) direct_layer_choose(d, topk);
  for (int t = 0; t < T; t++) {
    make_query(d, t, q);
    make_key(d, t, kv_c + t * L, k[t], v[t]);
    for (int h = 0; h < H; h++) {
      attend(d, topk + t * TOPK, q + h * Q, k, v, h, t + 1, scale,
             attention + (t * H + h) * V);
    }
    apply(&d->weights.o_proj, attention + t * H * V, out + t * HIDDEN);
  }
}
