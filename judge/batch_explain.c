/*
 * batch_explain.c - every planted mistake is made on the case, with every
 * parameter, and its arrays compared with what was got. As with backends a
 * mistake explains a failure when it gives at least 60 % of the wrong values.
 * In the arrays where they are it may make no other value wrong; that others
 * are right may be due to how a builder derives one from another, and only
 * counts where two mistakes explain as much.
 */
#include "batch_explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_compare.h"
#include "planted_batch.h"

/* What was got, in the order of comparison. */
typedef struct evidence {
  int64_t count, room;
  int64_t *expected, *got;
  int64_t wrong, wrong_in[MLA_BATCH_ARRAYS];
} evidence;

static void count_one(void *context, const mla_batch_element *e) {
  (void)e;
  ++*(int64_t *)context;
}

static void keep(void *context, const mla_batch_element *e) {
  evidence *v = context;
  if (v->count == v->room) return;
  v->expected[v->count] = e->expected;
  v->got[v->count++] = e->got;
  v->wrong += e->expected != e->got;
  v->wrong_in[e->array] += e->expected != e->got;
}

static int new_evidence(const mla_batch_case *c,
                        const mla_batch_answer *expected,
                        const mla_batch_answer *got, evidence *v) {
  memset(v, 0, sizeof *v);
  mla_batch_compare(c, expected, got, count_one, &v->room);
  v->expected = malloc((size_t)v->room * sizeof *v->expected + 1);
  v->got = malloc((size_t)v->room * sizeof *v->got + 1);
  if (v->expected && v->got) mla_batch_compare(c, expected, got, keep, v);
  return v->expected && v->got && v->wrong;
}

/* How a mistake's arrays compare with that. */
typedef struct trial {
  const evidence *of;
  int64_t at, reproduced;
  int64_t beside, elsewhere; /* wrong though that was right: in arrays that
                                have something wrong, in others */
} trial;

static void weigh(void *context, const mla_batch_element *e) {
  trial *t = context;
  if (t->at >= t->of->count) return;
  int64_t expected = t->of->expected[t->at], got = t->of->got[t->at];
  t->at++;
  if (got != expected)
    t->reproduced += e->got == got;
  else if (t->of->wrong_in[e->array])
    t->beside += e->got != expected;
  else
    t->elsewhere += e->got != expected;
}

static trial try_fault(const mla_batch_case *c,
                       const mla_batch_answer *expected,
                       const mla_batch_answer *got, const evidence *v,
                       int32_t fault, int32_t a, mla_batch_answer *made) {
  trial t = {v, 0, 0, 0, 0};
  planted_batch_build(c, fault, a, made);
  made->left_out = got->left_out;
  made->no_padding = got->no_padding;
  /* Of the same elements: extra ones stand at an array's end alone, where the
     two may differ in number. */
  mla_batch_compare(c, expected, made, weigh, &t);
  if (t.at != v->count) t.beside++;
  return t;
}

static void name_it(int32_t fault, int32_t a, const trial *t, mla_look *look) {
  const planted_batch_fault *f = planted_batch_at(fault);
  memset(look, 0, sizeof *look);
  snprintf(look->cls, sizeof look->cls, "%s", f->cls);
  snprintf(look->fault, sizeof look->fault, "%s", f->name);
  snprintf(look->what, sizeof look->what, "%s", f->what);
  look->a = a;
  look->reproduced = t->reproduced;
  look->of = t->of->wrong;
}

/* The best so far. */
typedef struct best {
  mla_look *look;
  int64_t elsewhere;
} best;

static void take(const trial *t, int32_t fault, int32_t a, best *b) {
  const char *cls = planted_batch_at(fault)->cls;
  mla_look *look = b->look;
  if (t->beside || 10 * t->reproduced < 6 * t->of->wrong) return;
  int first = !look->cls[0], more = t->reproduced > look->reproduced;
  int equal = !first && t->reproduced == look->reproduced;
  if (first || more || (equal && t->elsewhere < b->elsewhere)) {
    name_it(fault, a, t, look);
    b->elsewhere = t->elsewhere;
  } else if (equal && t->elsewhere == b->elsewhere &&
             strcmp(cls, look->cls) != 0) {
    snprintf(look->also, sizeof look->also, "%s", cls);
  }
}

/* The usual parameter first: of equals the first one stays. */
static void try_parameters(const mla_batch_case *c,
                           const mla_batch_answer *expected,
                           const mla_batch_answer *got, const evidence *v,
                           int32_t fault, mla_batch_answer *made, best *b) {
  const planted_batch_fault *f = planted_batch_at(fault);
  trial t = try_fault(c, expected, got, v, fault, f->a, made);
  take(&t, fault, f->a, b);
  for (int32_t a = f->least; a <= f->most; a++) {
    if (a == f->a) continue;
    t = try_fault(c, expected, got, v, fault, a, made);
    take(&t, fault, a, b);
  }
}

void mla_batch_explain(const mla_batch_case *c,
                       const mla_batch_answer *expected,
                       const mla_batch_answer *got, mla_look *look) {
  mla_batch_answer *made = mla_batch_answer_new();
  evidence v;
  best b = {look, 0};
  memset(look, 0, sizeof *look);
  if (new_evidence(c, expected, got, &v) && made)
    for (int32_t f = 1; f < PLANTED_BATCH_COUNT; f++)
      try_parameters(c, expected, got, &v, f, made, &b);
  free(v.expected);
  free(v.got);
  free(made);
}
