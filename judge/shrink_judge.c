/*
 * shrink_judge.c - what failing alike means when a case is judged here.
 */
#include <stdio.h>
#include <string.h>

#include "explain.h"
#include "shrink.h"

typedef struct first_failure {
  mla_device *device;
  const mla_vector *v;
  const mla_verdict *verdict;
  const char *keep;
  int alike; /* set by the observer */
} first_failure;

/* Without a class: an output that failed fails again, in the same way. */
static int same_outputs(const mla_verdict *a, const mla_verdict *b) {
  for (int32_t i = 0; i < a->outputs; i++)
    for (int32_t k = 0; k < b->outputs; k++) {
      const mla_output_verdict *x = &a->output[i], *y = &b->output[k];
      if (x->slot != y->slot) continue;
      if ((x->bad > 0) != (y->bad > 0)) continue;
      if ((x->not_finite > 0) != (y->not_finite > 0)) continue;
      if ((x->unwritten > 0) != (y->unwritten > 0)) continue;
      if (x->bad || x->unwritten || (x->outside[0] && y->outside[0])) return 1;
    }
  return a->outputs == 0 && b->outputs == 0 &&
         strncmp(a->reason, b->reason, 24) == 0;
}

static void compare_failures(void *context, const mla_vector *v,
                             const mla_evidence *e, mla_verdict *verdict) {
  first_failure *f = context;
  const mla_look *look = &f->verdict->look;
  f->alike = look->cls[0] ? mla_explain_alike(v, e, verdict, look)
                          : same_outputs(f->verdict, verdict) &&
                                f->verdict->differs == verdict->differs;
}

static void judge_case(const first_failure *f, const mla_case *c,
                       const mla_judge_observer *observer,
                       mla_verdict *verdict) {
  mla_vector v;
  mla_judge_options how = mla_judge_defaults();
  how.keep = f->keep;
  how.observer = observer;
  memset(verdict, 0, sizeof *verdict);
  verdict->kind = MLA_VERDICT_ERROR;
  if (mla_generate(c, f->v->seed, MLA_POISON_NAN, &v, NULL) == MLA_OK) {
    memcpy(v.hunts, f->v->hunts, sizeof v.hunts);
    mla_judge_vector(f->device, &v, &how, verdict);
  }
  mla_vector_free(&v);
}

static int fails_here(void *context, const mla_case *c) {
  first_failure *f = context;
  mla_verdict verdict;
  mla_judge_observer observer = {compare_failures, f};
  f->alike = 0;
  judge_case(f, c, &observer, &verdict);
  return verdict.kind == MLA_VERDICT_FAIL && f->alike;
}

static int64_t wrong_request(const mla_vector *v, const mla_verdict *verdict) {
  int64_t within;
  for (int32_t i = 0; i < verdict->outputs; i++) {
    const mla_output_verdict *o = &verdict->output[i];
    if (o->bad || o->unwritten)
      return mla_vector_request(v, o->index[0], &within);
  }
  return 0;
}

void mla_shrink_vector(mla_device *device, const mla_vector *v,
                       const mla_verdict *verdict, const char *keep,
                       double seconds, mla_shrunk *shrunk) {
  first_failure f = {device, v, verdict, keep, 0};
  mla_shrink_how how = {fails_here, &f,
                        seconds > 0 ? seconds : MLA_SHRINK_SECONDS, 0};
  mla_judge_observer observer = {mla_explain_observe, NULL};
  int64_t request = wrong_request(v, verdict);
  mla_case from = v->recipe;
  mla_verdict known = *verdict;
  int32_t changed = 0;
  if (request < 0) request = 0;
  if (!known.look.cls[0]) {
    /* What was too large to be computed again is explained half-way. */
    how.gently = 1;
    mla_shrink(&from, request, &how, shrunk);
    judge_case(&f, &shrunk->smallest, &observer, &shrunk->verdict);
    known.look = shrunk->verdict.look;
    f.verdict = &known;
    from = shrunk->smallest;
    changed = shrunk->changed;
    how.gently = 0;
    request = 0;
  }
  mla_shrink(&from, request, &how, shrunk);
  shrunk->changed += changed;
  judge_case(&f, &shrunk->smallest, &observer, &shrunk->verdict);
  shrunk->verdict.look = known.look;
}
