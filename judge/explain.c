/*
 * explain.c - which planted fault a failure looks like.
 */
#include "explain.h"

#include <stdio.h>
#include <string.h>

#include "dmath.h"
#include "explain_bench.h"

#define ENOUGH                                                \
  0.6 /* of the wrong values must be reproduced, and of those \
         beside them kept */
#define CONVINCING .999 /* with this, other parameters are not tried */

typedef struct candidate {
  int32_t fault, a;
  double x;
  int fitted;             /* a or x is not where explanations start from */
  double bad, near, good; /* fractions */
  bench_score score;
} candidate;

typedef struct search {
  const mla_vector *v;
  bench *full, *few; /* all rows looked at, and the few to fit by */
  bench *calm;       /* of evidence->calm, or NULL */
  double work;       /* left */
  candidate best;
  int repeated, differs;
  char also[24]; /* a class that is as good as the best */
} search;

/* Work is counted, not timed: the same failure is explained in the same way
   on a busy machine. */
static int spend(search *s, const bench *b) {
  s->work -= b->cost;
  return s->work > 0;
}

static candidate start_with(int32_t fault, int32_t a, double x) {
  const planted_fault *f = planted_fault_at(fault);
  candidate c = {fault, a, x, a != f->a || x != f->x, 0, 0, 0, {0}};
  return c;
}

/* --------------------------------------------------------------- comparing */

static double part(int64_t n, int64_t of) {
  return of ? (double)n / (double)of : 1;
}

/* Values that are not finite, everywhere: much gives that. */
static int is_weak(const candidate *c) {
  return c->score.finite == 0 && c->score.good_of + c->score.near_of == 0;
}

/* Fractions that differ by less than this are one. */
static int64_t steps(double fraction) {
  return (int64_t)(fraction * 50 + 0.5);
}

static int hunted(const search *s, int32_t fault) {
  const char *cls = planted_fault_at(fault)->cls;
  const char *at = strstr(s->v->hunts, cls);
  size_t n = strlen(cls);
  return at && (at[n] == '\0' || at[n] == ',');
}

/* Not one value of the failing rows is left over. */
static int is_exact(const candidate *c) {
  return c->score.bad == c->score.bad_of && c->score.near == c->score.near_of;
}

/* Wrong values count first, then right ones; then what leaves none over, a
   simpler mistake, and one that the case hunts. */
static int compare(const search *s, const candidate *c, const candidate *d) {
  if (steps(c->bad) != steps(d->bad))
    return steps(c->bad) > steps(d->bad) ? 1 : -1;
  if (steps(c->near) != steps(d->near))
    return steps(c->near) > steps(d->near) ? 1 : -1;
  if (steps(c->good) != steps(d->good))
    return steps(c->good) > steps(d->good) ? 1 : -1;
  if (is_exact(c) != is_exact(d)) return is_exact(c) - is_exact(d);
  int simpler = d->fitted - c->fitted;
  int c_hunted = hunted(s, c->fault), d_hunted = hunted(s, d->fault);
  if (c_hunted == d_hunted || !is_weak(c))
    return simpler ? simpler : c_hunted - d_hunted;
  return c_hunted - d_hunted;
}

static int same_quality(const candidate *c, const candidate *d) {
  return steps(c->bad) == steps(d->bad) && steps(c->near) == steps(d->near) &&
         steps(c->good) == steps(d->good);
}

static const char *class_of(const candidate *c) {
  return planted_fault_at(c->fault)->cls;
}

static void offer(search *s, const candidate *c) {
  int better = !s->best.fault || compare(s, c, &s->best) > 0;
  int other = s->best.fault && strcmp(class_of(c), class_of(&s->best)) != 0;
  if (other && same_quality(c, &s->best))
    snprintf(s->also, sizeof s->also, "%s",
             better ? class_of(&s->best) : class_of(c));
  else if (better)
    s->also[0] = '\0';
  if (better) s->best = *c;
}

static double least(double a, double b) {
  return a < b ? a : b;
}

/* What gives the wrong NaN must give what came out without it, too. */
static int measure_calm(bench *b, candidate *c) {
  bench_score score;
  if (!bench_probe(b, c->fault, c->a, c->x, &score)) return 0;
  c->bad = least(c->bad, part(score.bad, score.bad_of));
  c->near = least(c->near, part(score.near, score.near_of));
  c->good = least(c->good, part(score.good, score.good_of));
  c->score.finite = score.finite;
  c->score.good_of += score.good_of;
  return 1;
}

static int measure(bench *b, candidate *c) {
  if (!bench_probe(b, c->fault, c->a, c->x, &c->score)) return 0;
  c->bad = part(c->score.bad, c->score.bad_of);
  c->near = part(c->score.near, c->score.near_of);
  c->good = part(c->score.good, c->score.good_of);
  return c->score.bad > 0 && c->near >= ENOUGH;
}

static int is_calm_too(search *s, candidate *c) {
  if (!s->calm) return 1;
  return spend(s, s->calm) && measure_calm(s->calm, c) && c->near >= ENOUGH;
}

static void try_one(search *s, int32_t fault, int32_t a, double x) {
  candidate c = start_with(fault, a, x);
  if (spend(s, s->full) && measure(s->full, &c) && is_calm_too(s, &c))
    offer(s, &c);
}

static int convinced(const search *s) {
  return !is_weak(&s->best) && s->best.bad >= CONVINCING &&
         s->best.near >= CONVINCING && s->best.good >= CONVINCING;
}

/* -------------------------------------------------------------- parameters */

/* Tries an a on few rows; the best goes on to all rows. */
static void scan(search *s, int32_t fault, int32_t first, int32_t last) {
  candidate best = start_with(0, 0, 0);
  for (int32_t a = first; a <= last && spend(s, s->few); a++) {
    candidate c = start_with(fault, a, planted_fault_at(fault)->x);
    if (a == 0 || !measure(s->few, &c) || !is_calm_too(s, &c)) continue;
    if (!best.fault || compare(s, &c, &best) > 0) best = c;
  }
  if (best.fault && best.bad >= ENOUGH) try_one(s, fault, best.a, best.x);
}

static int32_t largest_tile(const mla_vector *v) {
  const mla_problem *p = &v->problem;
  const int64_t sizes[] = {v->limits.max_seq_len,
                           p->num_heads,
                           p->qk_nope_head_dim + p->qk_rope_head_dim,
                           p->kv_lora_rank + p->qk_rope_head_dim,
                           p->head_dim,
                           p->v_head_dim,
                           p->q_lora_rank,
                           p->topk};
  int64_t most = 1;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    if (sizes[i] > most) most = sizes[i];
  return most < 256 ? (int32_t)most : 256;
}

static double residual(search *s, int32_t fault, double x) {
  candidate c = start_with(fault, planted_fault_at(fault)->a, x);
  if (spend(s, s->few)) measure(s->few, &c);
  return c.score.bad_of ? c.score.residual : 1;
}

/* A factor by its logarithm: the best of a grid, then a golden section. */
static void fit_factor(search *s, int32_t fault) {
  double best = 1, at = 0, g = 0.6180339887498949;
  for (int i = -24; i <= 24; i++) {
    double r = residual(s, fault, mla_exp(i * 0.0866433975699932)); /* 2^1/8 */
    if (r < best) best = r, at = i;
  }
  double lo = (at - 1) * 0.0866433975699932, hi = (at + 1) * 0.0866433975699932;
  double a = hi - g * (hi - lo), b = lo + g * (hi - lo);
  double ra = residual(s, fault, mla_exp(a)),
         rb = residual(s, fault, mla_exp(b));
  for (int i = 0; i < 24; i++) {
    if (ra < rb) {
      hi = b, b = a, rb = ra, a = hi - g * (hi - lo);
      ra = residual(s, fault, mla_exp(a));
    } else {
      lo = a, a = b, ra = rb, b = lo + g * (hi - lo);
      rb = residual(s, fault, mla_exp(b));
    }
  }
  try_one(s, fault, planted_fault_at(fault)->a, mla_exp((lo + hi) / 2));
}

/* Largest values of types, powers of two, and what was got itself. */
static void try_limits(search *s, int32_t fault) {
  static const double types[] = {127, 240, 448, 57344, 65504, 3.38953139e38};
  int32_t a = planted_fault_at(fault)->a;
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    try_one(s, fault, a, types[i]);
  for (int e = -2; e <= 40; e++) try_one(s, fault, a, mla_ldexp(1, e));
  for (int64_t i = 0, tries = 0; i < s->few->count && tries < 4; i++) {
    const bench_value *x = &s->few->value[i];
    if (!x->bad || x->raw || mla_isnan(x->got)) continue;
    try_one(s, fault, a, x->got);
    tries++;
  }
}

static void try_others(search *s, int32_t fault) {
  switch (planted_fault_at(fault)->tries) {
    case PLANTED_COUNTS: scan(s, fault, 1, 8); break;
    case PLANTED_OFFSETS: scan(s, fault, -8, 8); break;
    case PLANTED_TILES: scan(s, fault, 1, largest_tile(s->v)); break;
    case PLANTED_BITS: scan(s, fault, 2, 40); break;
    case PLANTED_FACTORS: fit_factor(s, fault); break;
    case PLANTED_LIMITS: try_limits(s, fault); break;
    default: break;
  }
}

/* ------------------------------------------------------------------ search */

/* Runs with other poison in scratch have told whether scratch matters. */
static int applies(const search *s, int32_t fault) {
  const planted_fault *f = planted_fault_at(fault);
  int scratch = (f->traits & PLANTED_SCRATCH) != 0;
  if (s->repeated && scratch != s->differs) return 0;
  return (f->traits & PLANTED_SHOWS) && (f->ops >> s->v->problem.op & 1);
}

/* Of all faults, those of the hunted classes first. */
static void look_everywhere(search *s) {
  for (int pass = 0; pass < 4; pass++)
    for (int32_t f = 1; f < PLANTED_COUNT; f++) {
      if (!applies(s, f) || hunted(s, f) != (pass % 2 == 0)) continue;
      if (pass < 2)
        try_one(s, f, planted_fault_at(f)->a, planted_fault_at(f)->x);
      else if (!convinced(s))
        try_others(s, f);
    }
}

static void take_best(const search *s, mla_look *look) {
  const candidate *c = &s->best;
  const planted_fault *f = planted_fault_at(c->fault);
  mla_look_set(look, f->cls, f->what);
  snprintf(look->fault, sizeof look->fault, "%s", f->name);
  snprintf(look->also, sizeof look->also, "%s", s->also);
  look->a = c->a;
  look->x = c->x;
  look->reproduced = c->score.bad;
  look->of = c->score.bad_of;
}

/* What another failure of the run looked like, with its parameters. Rows of
   other heads or requests may be right. */
static int looks_known(search *s, const mla_explainer *x) {
  for (int32_t i = 0; i < x->known_count; i++) {
    int32_t f = planted_fault_find(x->known[i].fault);
    if (f == PLANTED_NONE || !applies(s, f)) continue;
    try_one(s, f, x->known[i].a, x->known[i].x);
    if (s->best.fault && !is_weak(&s->best) && s->best.bad >= CONVINCING &&
        s->best.near >= CONVINCING)
      return 1;
  }
  return 0;
}

static void remember(mla_explainer *x, const mla_look *look) {
  if (!look->fault[0] || x->known_count == MLA_EXPLAIN_KNOWN) return;
  for (int32_t i = 0; i < x->known_count; i++)
    if (strcmp(x->known[i].fault, look->fault) == 0 &&
        x->known[i].a == look->a && !(x->known[i].x < look->x) &&
        !(x->known[i].x > look->x))
      return;
  x->known[x->known_count++] = *look;
}

/* *there: e, of the calm call; as long as the bench. */
static int take_calm(bench *b, const mla_evidence *e, mla_evidence *there) {
  memset(b, 0, sizeof *b);
  *there = *e;
  there->poison = MLA_POISON_ZERO;
  memcpy(there->got, e->calm_got, sizeof there->got);
  return e->calm && bench_new(b, e->calm, there, 32, 16);
}

static void explain_values(const mla_vector *v, const mla_evidence *e,
                           mla_explainer *x, mla_verdict *verdict) {
  bench full, few, calm;
  mla_evidence there;
  search s;
  memset(&s, 0, sizeof s);
  int ok = bench_new(&full, v, e, 32, 16);
  ok = bench_new(&few, v, e, 6, 3) && ok;
  if (take_calm(&calm, e, &there)) s.calm = &calm;
  s.v = v;
  s.full = &full;
  s.few = &few;
  s.work = x->each < x->all - x->spent ? x->each : x->all - x->spent;
  s.repeated = verdict->repeated > 0;
  s.differs = verdict->differs != 0;
  x->spent += s.work;
  if (ok && !looks_known(&s, x)) look_everywhere(&s);
  x->spent -= s.work > 0 ? s.work : 0;
  if (s.best.fault && s.best.bad >= ENOUGH) take_best(&s, &verdict->look);
  bench_free(&full);
  bench_free(&few);
  bench_free(&calm);
}

void mla_explain(const mla_vector *v, const mla_evidence *e,
                 mla_explainer *explainer, mla_verdict *verdict) {
  mla_explainer own;
  memset(&own, 0, sizeof own);
  if (!explainer) explainer = &own;
  if (explainer->each <= 0) explainer->each = 3e9;
  if (explainer->all <= 0) explainer->all = 3e10;
  memset(&verdict->look, 0, sizeof verdict->look);
  if (mla_explain_traces(v, e, verdict)) return;
  /* Its values are not those of one operation, wrong in one way; but those of
     a backend's own cascade are. */
  if (v->has_recipe && mla_case_composed(&v->recipe) && !bench_prefix(v, e))
    return;
  if (mla_vector_has_vast_output(v)) { /* each guess would write gigabytes */
    mla_explain_vast(v, e, verdict);
    return;
  }
  if (verdict->outputs > 0) explain_values(v, e, explainer, verdict);
  if (!verdict->look.cls[0]) mla_explain_places(v, e, verdict);
  remember(explainer, &verdict->look);
}

void mla_explain_observe(void *context, const mla_vector *v,
                         const mla_evidence *e, mla_verdict *verdict) {
  mla_explain(v, e, context, verdict);
}

int mla_explain_alike(const mla_vector *v, const mla_evidence *e,
                      const mla_verdict *verdict, const mla_look *look) {
  bench b;
  mla_verdict copy = *verdict;
  int32_t fault = planted_fault_find(look->fault);
  memset(&copy.look, 0, sizeof copy.look);
  if (fault == PLANTED_NONE || look->of == 0) {
    if (mla_explain_traces(v, e, &copy) || mla_explain_places(v, e, &copy))
      return strcmp(copy.look.cls, look->cls) == 0;
    return look->cls[0] == '\0';
  }
  candidate c = start_with(fault, look->a, look->x);
  int alike = verdict->outputs > 0 && bench_new(&b, v, e, 16, 8) &&
              measure(&b, &c) && c.bad >= ENOUGH;
  if (verdict->outputs > 0) bench_free(&b);
  return alike;
}
