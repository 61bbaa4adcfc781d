/*
 * selftest_child.c - judging planted faults, each by children of its own, so
 * that a fault that kills or hangs its process is one result among others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alone.h"
#include "crew.h"
#include "explain.h"
#include "selftest.h"

/* One job at work. */
typedef struct seat {
  int32_t job; /* -1: none */
  int32_t at;  /* in its order */
  struct place_in_order *order;
  crew of;
  crew_member member;
} seat;

/* ------------------------------------------------------------------- order */

typedef struct place_in_order {
  int32_t item;
  int hunts;
  double cost;
} place_in_order;

static int by_order(const void *x, const void *y) {
  const place_in_order *a = x, *b = y;
  if (a->hunts != b->hunts) return b->hunts - a->hunts;
  if (a->cost < b->cost) return -1;
  if (a->cost > b->cost) return 1;
  return a->item < b->item ? -1 : 1;
}

static double cost_of(const mla_item *item) {
  mla_case c;
  if (mla_case_parse(item->id, &c, NULL) != MLA_OK || c.edit[0]) return 0;
  /* What is wrong in a composition is known better from its parts. */
  return mla_case_flops(&c) + (mla_case_composed(&c) ? 1e18 : 0);
}

static int hunts_class(const mla_item *item, const char *cls) {
  const char *at = *cls ? strstr(item->hunts, cls) : NULL;
  return at && (at[strlen(cls)] == ',' || at[strlen(cls)] == '\0');
}

/* Room for all items; to be freed. Without a fault, all in the docket's. */
static place_in_order *order_for(const selftest_run *run, int32_t fault) {
  const mla_docket *docket = run->docket;
  int32_t n = mla_docket_count(docket);
  const char *cls = planted_fault_at(fault)->cls;
  if (run->in_order) fault = PLANTED_NONE;
  place_in_order *order = malloc((size_t)(n + 1) * sizeof *order);
  for (int32_t i = 0; order && i < n; i++) {
    const mla_item *item = mla_docket_at(docket, i);
    order[i] = (place_in_order){i, fault && hunts_class(item, cls),
                                fault ? cost_of(item) : 0};
  }
  if (order) qsort(order, (size_t)n, sizeof *order, by_order);
  return order;
}

/* ------------------------------------------------------------------ a job */

static void take(selftest_result *r, int32_t item, const mla_verdict *v) {
  if (v->kind == MLA_VERDICT_UNSUPPORTED) {
    r->unsupported++;
    return;
  }
  r->judged++;
  if (v->kind == MLA_VERDICT_PASS) {
    for (int lse = 0; lse < 2; lse++) {
      double worst = mla_verdict_worst(v, lse);
      if (worst > r->worst) r->worst = worst;
    }
    return;
  }
  /* What could not be judged was not caught. */
  if (v->kind == MLA_VERDICT_FAIL)
    r->caught = item;
  else
    r->unjudged = item;
  r->kind = v->kind;
  r->died = v->died;
  r->signal = v->signal;
  r->look = v->look;
  snprintf(r->reason, sizeof r->reason, "%.150s",
           v->fences[0] ? v->fences : v->reason);
}

static void begin(seat *s, const selftest_run *run, const selftest_job *job,
                  int32_t i, int32_t seats, selftest_result *r) {
  memset(r, 0, sizeof *r);
  r->caught = r->unjudged = -1;
  crew of = {run->docket, job->backend,  job->options, 0, run->keep,
             0,           run->patience, seats};
  s->of = of;
  s->job = i;
  s->at = -1;
  s->order = order_for(run, job->fault);
}

/* The next item; 0: the job is done. */
static int go_on(seat *s, const selftest_run *run, const selftest_job *job,
                 selftest_result *r) {
  crew_question q;
  int over = r->caught >= 0 || r->unjudged >= 0 || !s->order;
  r->ended = s->order != NULL;
  if (over || ++s->at >= mla_docket_count(run->docket)) return 0;
  memset(&q, 0, sizeof q);
  q.task = CREW_JUDGE;
  q.item = s->order[s->at].item;
  q.explain = job->fault != 0;
  crew_ask(&s->member, &s->of, &q);
  return 1;
}

static void leave(seat *s) {
  crew_dismiss(&s->member);
  free(s->order);
  s->order = NULL;
  s->job = -1;
}

/* -------------------------------------------------------------------- jobs */

typedef struct session {
  const selftest_run *run;
  const selftest_job *job;
  selftest_result *result;
  int32_t count, next, seats;
  seat seat[CREW_MOST];
  crew_answer answer;
} session;

/* Until the seat works, or no job is left. */
static void fill_seat(session *s, seat *at, void (*done)(void *, int32_t),
                      void *context) {
  for (;;) {
    if (at->job >= 0 &&
        go_on(at, s->run, &s->job[at->job], &s->result[at->job]))
      return;
    if (at->job >= 0) {
      int32_t i = at->job;
      leave(at);
      if (done) done(context, i);
    }
    if (s->next >= s->count) return;
    begin(at, s->run, &s->job[s->next], s->next, s->seats, &s->result[s->next]);
    s->next++;
  }
}

static int is_working(const session *s, int32_t seats) {
  for (int32_t k = 0; k < seats; k++)
    if (s->seat[k].job >= 0) return 1;
  return 0;
}

static void wait_for(const session *s, int32_t seats) {
  const crew_member *members[CREW_MOST];
  for (int32_t k = 0; k < seats; k++) members[k] = &s->seat[k].member;
  crew_wait(members, seats);
}

int selftest_judge(const selftest_run *run, const selftest_job *job,
                   selftest_result *result, int32_t count, int32_t jobs,
                   void (*done)(void *context, int32_t i), void *context) {
  session *s = calloc(1, sizeof *s);
  int32_t seats = jobs < 1 ? 1 : jobs > CREW_MOST ? CREW_MOST : jobs;
  if (!s) return 0;
  s->run = run;
  s->job = job;
  s->result = result;
  s->count = count;
  s->seats = seats;
  for (int32_t k = 0; k < seats; k++) s->seat[k].job = -1;
  for (int32_t k = 0; k < seats; k++) fill_seat(s, &s->seat[k], done, context);
  while (is_working(s, seats)) {
    wait_for(s, seats);
    for (int32_t k = 0; k < seats; k++) {
      seat *at = &s->seat[k];
      if (at->job < 0 || !crew_poll(&at->member, &s->answer)) continue;
      if (s->job[at->job].fault)
        alone_explains(&at->of, at->order[at->at].item,
                       &s->answer.record.verdict);
      take(&s->result[at->job], at->order[at->at].item,
           &s->answer.record.verdict);
      fill_seat(s, at, done, context);
    }
  }
  free(s);
  return 1;
}
