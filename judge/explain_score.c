/*
 * explain_score.c - a probe with a planted fault, and how well what it gives is
 * what the backend got.
 */
#include <string.h>

#include "dmath.h"
#include "dtype.h"
#include "explain_bench.h"
#include "tensor.h"

/* A composition names itself before its parts. */
int64_t bench_prefix(const mla_vector *v, const mla_evidence *e) {
  int64_t page = v->problem.block_size;
  if (!v->has_recipe || !v->recipe.num[MLA_K_CASCADE] ||
      strncmp(e->answer->kernel, "cascade:", strlen("cascade:")) == 0)
    return 0;
  return v->recipe.num[MLA_K_PREFIX] / page * page;
}

static int run_probe(bench *b, int32_t fault, int32_t a, double x) {
  mla_tensor tensor[MLA_T_COUNT];
  mla_args args = {(uint32_t)sizeof args, MLA_T_COUNT, tensor};
  planted_probe probe = {fault,
                         a,
                         x,
                         b->wanted,
                         b->e->poison,
                         b->earlier,
                         bench_prefix(b->v, b->e)};
  memcpy(tensor, b->v->tensor, sizeof tensor);
  for (int s = 0; s < MLA_T_COUNT; s++) {
    int from = b->v->alias[s] >= 0 ? b->v->alias[s] : s;
    if (!b->image[from]) continue;
    if (from == s)
      memcpy(b->image[s], b->v->tensor[s].data,
             (size_t)mla_tensor_extent(&b->v->tensor[s]));
    tensor[s].data = b->image[from];
  }
  return mla_planted_probe(&probe, &b->v->problem, b->e->limits, &args, NULL) ==
         MLA_OK;
}

/* Of slots only the very bits are near. */
static int is_whole(const mla_tensor *t) {
  return t->dtype == MLA_I32 || t->dtype == MLA_I64;
}

/* A wrong number is reproduced when what is left is a quarter of the error,
   or as much as healthy arithmetic may leave. */
static int reproduces(const bench *b, const bench_value *x, double probe) {
  const mla_tensor *t = &b->v->tensor[x->slot];
  double rounding = 2 * mla_unit_roundoff(t->dtype) * mla_fabs(x->got);
  if (mla_isnan(x->got) || mla_isnan(probe))
    return mla_isnan(x->got) && mla_isnan(probe);
  if (mla_isinf(x->got) || mla_isinf(probe))
    return mla_isinf(x->got) == mla_isinf(probe);
  double left = mla_fabs(x->got - probe);
  if (mla_isnan(x->expected) || mla_isinf(x->expected)) /* has no budget */
    return left <= 1e-3 * mla_fabs(x->got) + rounding;
  double error = mla_fabs(x->got - x->expected);
  if (is_whole(t)) return left <= 0;
  double allowed = x->budget + rounding;
  if (allowed < error / 4) allowed = error / 4;
  return left <= allowed && mla_fabs(probe - x->expected) >= error / 2;
}

/* Beside wrong values a right one must be what was got: a mistake that gives
   one wrong number by chance gives other numbers round it. */
static int stays_near(const bench *b, const bench_value *x, double probe) {
  const mla_tensor *t = &b->v->tensor[x->slot];
  double budget =
      x->budget + 2 * mla_unit_roundoff(t->dtype) * mla_fabs(x->got);
  return bench_is_right(t, MLA_COMPARE_BUDGET, x->got, budget, probe);
}

static int stays_right(const bench *b, const bench_value *x, double probe) {
  const mla_tensor *t = &b->v->tensor[x->slot];
  double budget =
      1.5 * x->budget + 2 * mla_unit_roundoff(t->dtype) * mla_fabs(x->expected);
  return bench_is_right(t, MLA_COMPARE_BUDGET, x->expected, budget, probe);
}

static void add_residual(const bench_value *x, double probe, double *left,
                         double *all) {
  double e = x->got - x->expected, r = x->got - probe;
  if (x->raw || !x->bad || mla_isnan(e) || mla_isinf(e)) return;
  *all += e * e;
  *left += mla_isnan(r) || mla_isinf(r) ? e * e : r * r;
}

static int score_value(const bench *b, const bench_value *x, double probe) {
  const mla_tensor *t = &b->v->tensor[x->slot];
  const unsigned char *image = b->image[x->slot];
  if (x->raw) return bench_same_bits(t, image, b->e->got[x->slot], x->offset);
  unsigned char poison = bench_poison(b, x->slot);
  int got_nothing = bench_has_poison(t, b->e->got[x->slot], x->offset, poison);
  int gives_nothing = bench_has_poison(t, image, x->offset, poison);
  if (got_nothing || gives_nothing) return got_nothing && gives_nothing;
  if (x->bad) return reproduces(b, x, probe);
  return x->mixed ? stays_near(b, x, probe) : stays_right(b, x, probe);
}

static void score_choices(bench *b, bench_score *score) {
  choice_score x;
  memset(&x, 0, sizeof x);
  if (!b->choice.t) return;
  choice_compare(&b->choice, b->e->got[MLA_T_POSITIONS],
                 b->image[MLA_T_POSITIONS], &x);
  score->bad += x.bad;
  score->finite += x.bad;
  score->bad_of += x.bad_of;
  score->near += x.near;
  score->near_of += x.near_of;
  score->good += x.good;
  score->good_of += x.good_of;
}

int bench_probe(bench *b, int32_t fault, int32_t a, double x,
                bench_score *score) {
  double left = 0, all = 0;
  memset(score, 0, sizeof *score);
  if (!run_probe(b, fault, a, x)) return 0;
  for (int64_t i = 0; i < b->count; i++) {
    const bench_value *value = &b->value[i];
    double probe = mla_get(b->image[value->slot],
                           b->v->tensor[value->slot].dtype, value->offset);
    int fits = score_value(b, value, probe);
    add_residual(value, probe, &left, &all);
    if (value->bad) {
      score->bad_of++;
      score->bad += fits;
      score->finite += fits && !mla_isnan(value->got) && !mla_isinf(value->got);
    } else if (value->mixed) {
      score->near_of++;
      score->near += fits;
    } else {
      score->good_of++;
      score->good += fits;
    }
  }
  score_choices(b, score);
  score->residual = all > 0 ? left / all : 1;
  return 1;
}
