/*
 * run_judge.c - judging a docket, item after item, in order of the docket.
 *
 * Children judge in any order; what follows a failure (explaining, shrinking,
 * writing it down) depends on what failed before, and is done in order. So
 * what is said does not depend on the number of children.
 */
#include "run_judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alone.h"
#include "error.h"
#include "options.h"
#include "shrink.h"

#define MOST_ALONE 20 /* failures of one run judged alone, once one passed */

typedef struct crew_run {
  run_state *run;
  const run_how *how;
  crew of;
  crew_member member[CREW_MOST];
  crew_member carer; /* what follows a failure */
  unsigned char *stands;
  int32_t next; /* item that nobody has begun */
  mla_explainer explainer;
  failure_care care;
  int32_t asked_alone, passed_alone;
} crew_run;

static failure_care care_of(const run_how *how) {
  failure_care care = {how->shrink, how->repro, how->keep, 0, 0, {""}};
  return care;
}

static crew crew_of(const target *t, const mla_docket *docket,
                    const run_how *how) {
  crew of = {docket,    t->backend,   t->options, (int32_t)t->index,
             how->keep, how->timeout, 1,          how->jobs};
  return of;
}

int run_judge_open(const char *command, target *t, const mla_docket *docket,
                   const run_how *how) {
  mla_error err = mla_error_init();
  if (how->jobs == 0) return target_open(command, t);
  int code = target_find(command, t);
  if (code != EXIT_SATISFIED) return code;
  crew of = crew_of(t, docket, how);
  crew_member looked, *first = how->first ? how->first : &looked;
  crew_answer *hello = calloc(1, sizeof *hello);
  mla_status status = hello
                          ? crew_open(first, &of, hello, &err)
                          : mla_fail(&err, MLA_OUT_OF_MEMORY, "", "no memory");
  if (status == MLA_OK) {
    t->described = hello->described;
    t->info = hello->info;
    if (!how->first) crew_dismiss(first);
  } else {
    fprintf(stderr, "mlacheck %s: %s\n", command, err.message);
  }
  free(hello);
  return status == MLA_OK ? EXIT_SATISFIED : EXIT_ENVIRONMENT;
}

/* --------------------------------------------------------- after a failure */

static int fails_as_well(const mla_verdict *a, const mla_verdict *b) {
  size_t n = strcspn(a->fences, ",");
  return b->kind == MLA_VERDICT_FAIL && a->died == b->died &&
         a->signal == b->signal && strncmp(a->fences, b->fences, n) == 0 &&
         strcspn(b->fences, ",") == n;
}

typedef struct death {
  crew_run *c;
  const mla_verdict *verdict;
  uint64_t seed;
} death;

static int dies_as_well(void *context, const mla_case *smaller) {
  death *d = context;
  crew_question q;
  crew_answer *a = malloc(sizeof *a);
  memset(&q, 0, sizeof q);
  q.task = CREW_CASE;
  q.c = *smaller;
  q.seed = d->seed;
  if (a) crew_answer_now(&d->c->carer, &d->c->of, &q, a);
  int alike = a && fails_as_well(d->verdict, &a->record.verdict);
  free(a);
  return alike;
}

/* What kills its process is shrunk from outside. */
static void shrink_death(crew_run *c, int32_t i) {
  const mla_item *item = mla_docket_at(c->run->docket, i);
  mla_record *r = &c->run->record[i];
  death d = {c, &r->verdict, item->seed};
  mla_shrink_how how = {dies_as_well, &d, MLA_SHRINK_SECONDS, 0};
  mla_shrunk *shrunk = malloc(sizeof *shrunk);
  mla_case from;
  char id[MLA_CASE_ID_MAX];
  after_failure_note(&c->care, &r->verdict);
  if (shrunk && mla_case_parse(item->id, &from, NULL) == MLA_OK) {
    mla_shrink(&from, 0, &how, shrunk);
    int n = mla_case_print(&shrunk->smallest, id, sizeof id);
    if (shrunk->changed && n > 0 && (size_t)n < sizeof r->smallest)
      memcpy(r->smallest, id, (size_t)n + 1);
  }
  free(shrunk);
}

static void ask_carer(crew_run *c, int32_t task, int32_t i, crew_answer *a) {
  crew_question q;
  memset(&q, 0, sizeof q);
  q.task = task;
  q.item = i;
  q.explain = 1;
  q.explainer = c->explainer;
  q.care = c->care;
  q.record = c->run->record[i];
  crew_answer_now(&c->carer, &c->of, &q, a);
}

/* Judged by several, it has not been explained yet. */
static void explain(crew_run *c, int32_t i, crew_answer *a) {
  mla_record *r = &c->run->record[i];
  ask_carer(c, CREW_JUDGE, i, a);
  c->explainer = a->explainer;
  if (a->record.verdict.kind == MLA_VERDICT_FAIL) *r = a->record;
}

/* The first failures are judged alone, and once that told something, more. */
static int follows_others(crew_run *c, int32_t i) {
  int32_t most = c->passed_alone ? MOST_ALONE : MOST_SHRUNK;
  if (c->asked_alone == most) return 0;
  c->asked_alone++;
  int passed = alone_explains(&c->of, i, &c->run->record[i].verdict);
  c->passed_alone += passed;
  return passed;
}

static void follow(crew_run *c, int32_t i, crew_answer *a) {
  mla_record *r = &c->run->record[i];
  if (r->verdict.kind != MLA_VERDICT_FAIL) return;
  if (c->how->jobs > 1 && !r->verdict.died) explain(c, i, a);
  if (follows_others(c, i)) return;
  if (!after_failure_wanted(&c->care, c->run->docket, i, r)) return;
  if (r->verdict.died == MLA_DEATH_SIGNAL && c->care.shrink &&
      mla_docket_at(c->run->docket, i)->kind == MLA_ITEM_CASE &&
      after_failure_is_new(&c->care, &r->verdict))
    shrink_death(c, i);
  if (r->verdict.died && !c->care.repro) return;
  ask_carer(c, CREW_CARE, i, a);
  *r = a->record;
  c->care = a->care;
  /* It may have died of it: not again. */
  after_failure_note(&c->care, &r->verdict);
}

/* ------------------------------------------------------------------ the run */

/* 0: nothing is left to begin. */
static int give_next(crew_run *c, crew_member *m) {
  crew_question q;
  if (c->next >= mla_docket_count(c->run->docket)) return 0;
  memset(&q, 0, sizeof q);
  q.task = CREW_JUDGE;
  q.item = c->next++;
  q.explain = c->how->jobs == 1;
  q.explainer = c->explainer;
  crew_ask(m, &c->of, &q);
  return 1;
}

static void report(crew_run *c, crew_answer *a) {
  run_state *run = c->run;
  while (run->done < mla_docket_count(run->docket) && c->stands[run->done]) {
    int32_t i = run->done;
    follow(c, i, a);
    run->done = i + 1;
    progress_clear();
    if (c->how->text) report_text_record(run, i);
  }
}

static void judge_in_children(crew_run *c, crew_answer *a) {
  int32_t count = mla_docket_count(c->run->docket);
  const crew_member *all[CREW_MOST];
  for (int32_t k = 0; k < c->how->jobs; k++) all[k] = &c->member[k];
  while (c->run->done < count) {
    for (int32_t k = 0; k < c->how->jobs; k++)
      if (!c->member[k].busy && !give_next(c, &c->member[k]))
        crew_dismiss(&c->member[k]);
    progress_show(c->run);
    crew_wait(all, c->how->jobs);
    for (int32_t k = 0; k < c->how->jobs; k++) {
      if (!crew_poll(&c->member[k], a)) continue;
      int32_t i = c->member[k].question.item;
      c->run->record[i] = a->record;
      c->stands[i] = 1;
      if (c->how->jobs == 1) c->explainer = a->explainer;
    }
    report(c, a);
  }
  for (int32_t k = 0; k < c->how->jobs; k++) crew_dismiss(&c->member[k]);
  crew_dismiss(&c->carer);
}

static void judge_here(run_state *run, const run_how *how) {
  mla_explainer explainer;
  mla_judge_observer observer = {mla_explain_observe, &explainer};
  mla_judge_options options = mla_judge_defaults();
  failure_care care = care_of(how);
  mla_device *device = run->target->device;
  memset(&explainer, 0, sizeof explainer);
  options.keep = how->keep;
  options.observer = &observer;
  for (int32_t i = 0; i < mla_docket_count(run->docket); i++) {
    progress_show(run);
    mla_docket_judge(run->docket, i, device, &options, &run->record[i]);
    after_failure(&care, device, run->docket, i, &run->record[i]);
    run->done = i + 1;
    progress_clear();
    if (how->text) report_text_record(run, i);
  }
}

/* Who looked at the device has it open, and judges on. */
static void take_first(crew_run *c) {
  if (!c->how->first || !c->how->first->w.pid) return;
  c->member[0] = *c->how->first;
  c->member[0].of = &c->of;
  memset(c->how->first, 0, sizeof *c->how->first);
}

int run_judge(run_state *run, const run_how *how) {
  if (how->jobs == 0) {
    judge_here(run, how);
    return 1;
  }
  crew_run *c = calloc(1, sizeof *c);
  crew_answer *a = calloc(1, sizeof *a);
  unsigned char *stands = calloc((size_t)mla_docket_count(run->docket) + 1, 1);
  int ok = c && a && stands;
  if (ok) {
    c->run = run;
    c->how = how;
    c->of = crew_of(run->target, run->docket, how);
    c->care = care_of(how);
    c->stands = stands;
    take_first(c);
    judge_in_children(c, a);
  }
  free(c);
  free(a);
  free(stands);
  return ok;
}
