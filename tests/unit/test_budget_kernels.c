/*
 * Simulated kernels against the budget: healthy ones in f32, with P in bf16 or
 * f32, in parts and whole, stay inside; one dropped key, a scale off by a
 * percent, an ignored rope part and a merge in the wrong base do not.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "dtype.h"
#include "half.h"
#include "oracle_fixture.h"

#define HEADS 4
#define LATENT 64
#define ROPE 32
#define D (LATENT + ROPE)
#define BLOCK 64
#define LANES 4

typedef enum fault { HEALTHY, DROPPED, SCALE, NO_ROPE, BASE } fault;

typedef struct kernel {
  int64_t n, parts;
  int p_in_bf16, rounded_sum;
  int capped, base2;
  fault fault;
  double amplitude;
  int few_scores; /* q sees only the rope part, keys have four of them */
} kernel;

static float store_p(const kernel *x, float p) {
  return x->p_in_bf16 ? mla_bf16_to_f32(mla_f32_to_bf16(p)) : p;
}

static float score(const kernel *x, const mla_problem *p, const float *q,
                   const float *k) {
  float sum = 0;
  int width = x->fault == NO_ROPE ? LATENT : D;
  for (int e = 0; e < width; e++) sum += q[e] * k[e];
  sum *= (float)p->scale * (x->fault == SCALE ? 1.01f : 1.0f);
  float cap = (float)p->logits_soft_cap;
  return cap > 0 ? cap * tanhf(sum / cap) : sum;
}

/*
 * Keys from <= j < to, block after block with a running maximum. The
 * denominator is summed in LANES chains: one chain over hundreds of equal
 * addends is out of contract (docs/tolerance.md).
 */
static float attend(const kernel *x, const mla_problem *p, const float *q,
                    const float *keys, int64_t from, int64_t to, float *out) {
  float m = -INFINITY, sum = 0, s[BLOCK], lane[LANES] = {0};
  for (int e = 0; e < LATENT; e++) out[e] = 0;
  for (int64_t j = from; j < to; j += BLOCK) {
    int count = (int)(to - j < BLOCK ? to - j : BLOCK);
    float before = m;
    for (int i = 0; i < count; i++) {
      s[i] = score(x, p, q, keys + (j + i) * D);
      m = fmaxf(m, s[i]);
    }
    float shrink = expf(before - m);
    for (int i = 0; i < LANES; i++) lane[i] *= shrink;
    for (int e = 0; e < LATENT; e++) out[e] *= shrink;
    for (int i = 0; i < count; i++) {
      float full = expf(s[i] - m), w = store_p(x, full);
      if (x->fault == DROPPED && j + i == x->n / 2) continue;
      lane[i % LANES] += x->rounded_sum ? w : full;
      for (int e = 0; e < LATENT; e++) out[e] += w * keys[(j + i) * D + e];
    }
  }
  for (int i = 0; i < LANES; i++) sum += lane[i];
  for (int e = 0; e < LATENT; e++) out[e] = to > from ? out[e] / sum : 0;
  return to > from ? m + logf(sum) : -INFINITY;
}

static float merge(const kernel *x, int64_t parts, const float *out,
                   const float *lse, float *to) {
  float m = -INFINITY, sum = 0;
  for (int64_t i = 0; i < parts; i++) m = fmaxf(m, lse[i]);
  for (int e = 0; e < LATENT; e++) to[e] = 0;
  for (int64_t i = 0; i < parts; i++) {
    float w = x->fault == BASE ? exp2f(lse[i] - m) : expf(lse[i] - m);
    sum += w;
    for (int e = 0; e < LATENT && w > 0; e++) to[e] += w * out[i * LATENT + e];
  }
  for (int e = 0; e < LATENT; e++) to[e] /= sum;
  return m + logf(sum);
}

static float run_row(const kernel *x, const mla_problem *p, const float *q,
                     const float *keys, float *out) {
  float *part = malloc((size_t)(x->parts * LATENT) * sizeof *part);
  float *lse = malloc((size_t)x->parts * sizeof *lse);
  int64_t each = (x->n + x->parts - 1) / x->parts;
  for (int64_t i = 0; i < x->parts; i++) {
    int64_t from = i * each < x->n ? i * each : x->n;
    int64_t to = from + each < x->n ? from + each : x->n;
    lse[i] = attend(x, p, q, keys, from, to, part + i * LATENT);
  }
  float all = merge(x, x->parts, part, lse, out);
  free(part);
  free(lse);
  return x->base2 ? all * 1.44269504f : all;
}

static void setup(fixture *f, const kernel *x) {
  static const int64_t one = 1;
  requests r = {1, &x->n, &one};
  fixture_init(f, MLA_OP_DECODE);
  f->problem.flags = x->base2 ? MLA_LSE_BASE2 : 0;
  f->problem.q_dtype = f->problem.out_dtype = MLA_BF16;
  f->problem.cache_format = MLA_CACHE_BF16;
  f->problem.num_heads = HEADS;
  f->problem.kv_lora_rank = LATENT;
  f->problem.qk_rope_head_dim = ROPE;
  f->problem.block_size = (int32_t)x->n;
  f->problem.scale = 0.1;
  f->problem.logits_soft_cap = x->capped ? 3 : 0;
  if (!x->p_in_bf16) f->problem.out_dtype = MLA_F32;
  fixture_decode(f, r, 0);
  fixture_bell(f, MLA_T_Q, x->amplitude);
}

/* Every score one of four: keys of a bin share roundings. */
static void few_scores(fixture *f, const kernel *x, float *keys) {
  for (int64_t i = 0; i < HEADS * D; i++)
    if (i % D < LATENT) fixture_set(f, MLA_T_Q, i, 0);
  int64_t first = (int64_t)fixture_get(f, MLA_T_BLOCK_TABLE, 0) * x->n * D;
  for (int64_t i = 0; i < x->n * D; i++)
    if (i % D >= LATENT) {
      fixture_set(f, MLA_T_CACHE, first + i, 1 + 0.03 * (double)(i / D % 4));
      keys[i] = (float)fixture_get(f, MLA_T_CACHE, first + i);
    }
}

static float *keys_of(fixture *f, const kernel *x) {
  float *keys = malloc((size_t)(x->n * D) * sizeof *keys);
  int64_t first = (int64_t)fixture_get(f, MLA_T_BLOCK_TABLE, 0) * x->n * D;
  for (int64_t i = 0; i < x->n * D; i++)
    keys[i] = (float)fixture_get(f, MLA_T_CACHE, first + i);
  if (x->few_scores) few_scores(f, x, keys);
  return keys;
}

static double ratio(double got, double want, double budget) {
  double error = fabs(got - want);
  return error <= DBL_MAX ? error / budget : INFINITY;
}

/* A problem and the reference's answer, for kernels to be judged on. */
typedef struct trial {
  fixture f;
  float *keys;
  mla_expected *want;
} trial;

static void trial_init(trial *t, const kernel *x) {
  setup(&t->f, x);
  t->keys = keys_of(&t->f, x);
  t->want = fixture_expect(&t->f, NULL);
}

static void trial_free(trial *t) {
  mla_expected_free(t->want);
  free(t->keys);
  fixture_free(&t->f);
}

/* The worst error / budget of out (0) and lse (1). */
static void judge(const trial *t, const kernel *x, double *worst) {
  mla_numerics numerics = {0};
  float q[D], out[LATENT];
  double budget[HEADS * LATENT], lse_budget[HEADS];
  numerics.u_p = x->p_in_bf16 ? 0x1p-8 : 0x1p-24;
  numerics.rounded_denominator = x->rounded_sum;
  mla_expected_budget(t->want, 0, &numerics, budget);
  mla_expected_budget(t->want, 1, &numerics, lse_budget);
  const double *value = mla_expected_at(t->want, 0).value;
  const double *lse = mla_expected_at(t->want, 1).value;
  worst[0] = worst[1] = 0;
  for (int h = 0; h < HEADS; h++) {
    for (int e = 0; e < D; e++)
      q[e] = (float)fixture_get(&t->f, MLA_T_Q, h * D + e);
    float l = run_row(x, &t->f.problem, q, t->keys, out);
    worst[1] = fmax(worst[1], ratio((double)l, lse[h], lse_budget[h]));
    for (int e = 0; e < LATENT; e++) {
      int at = h * LATENT + e;
      double got = mla_round_to(t->f.problem.out_dtype, (double)out[e]);
      worst[0] = fmax(worst[0], ratio(got, value[at], budget[at]));
    }
  }
}

static const double amplitudes[] = {0.01, 0.5, 2, 8};
static const int64_t lengths[] = {1, 17, 64, 1000};
static const int64_t splits[] = {1, 3, 64};

/* One problem, all ways to compute it; the largest ratio of out. */
static double judge_healthy(kernel x) {
  double most = 0;
  trial t;
  trial_init(&t, &x);
  for (int way = 0; way < 6; way++) {
    double worst[2];
    x.parts = splits[way / 2];
    x.rounded_sum = way % 2;
    judge(&t, &x, worst);
    most = fmax(most, worst[0]);
    REQUIRE(worst[0] < 1 && worst[1] < 1,
            "n %d, %d parts, amplitude %g: out %.3g, lse %.3g", (int)x.n,
            (int)x.parts, x.amplitude, worst[0], worst[1]);
  }
  trial_free(&t);
  return most;
}

/* Bits of the index: P in bf16, cap, base 2, few scores. */
START_TEST(healthy_kernels_stay_inside) {
  double most = 0;
  for (int a = 0; a < 4; a++)
    for (int n = 0; n < 4; n++) {
      kernel x = {0};
      x.n = lengths[n];
      x.amplitude = amplitudes[a];
      x.p_in_bf16 = _i & 1;
      x.capped = (_i >> 1) & 1;
      x.base2 = (_i >> 2) & 1;
      x.few_scores = (_i >> 3) & 1;
      most = fmax(most, judge_healthy(x));
    }
  /* A budget that no error comes near would find nothing. */
  ck_assert_double_gt(most, 0.05);
}
END_TEST

START_TEST(faulty_kernels_do_not) {
  static const fault faults[] = {DROPPED, SCALE, NO_ROPE, BASE};
  static const int64_t many[] = {64, 1000};
  for (int a = 1; a < 3; a++)
    for (int n = 0; n < 2; n++) {
      kernel x = {0};
      double worst[2];
      trial t;
      x.n = many[n];
      x.parts = 3;
      x.p_in_bf16 = _i & 1;
      x.fault = faults[_i >> 1];
      x.amplitude = amplitudes[a];
      trial_init(&t, &x);
      judge(&t, &x, worst);
      REQUIRE(worst[0] > 1 || worst[1] > 1,
              "n %d, amplitude %g: out %.3g, lse %.3g", (int)x.n, x.amplitude,
              worst[0], worst[1]);
      trial_free(&t);
    }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("budget_kernels");
  TCase *tests = tcase_create("kernels");
  tcase_add_loop_test(tests, healthy_kernels_stay_inside, 0, 16);
  tcase_add_loop_test(tests, faulty_kernels_do_not, 0, 8);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
