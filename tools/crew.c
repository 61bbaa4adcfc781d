/*
 * crew.c - questions to children, and verdicts about those that died.
 */
#include "crew.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "error.h"
#include "shrink.h"

#define HELLO 0
#define ANSWER 1
#define OPENING 120.0 /* seconds: drivers may have much to do */
#define FIXED 60.0

/* -------------------------------------------------------------- in a child */

static void judge_case(const crew *of, const crew_question *q,
                       mla_device *device, const mla_judge_options *how,
                       mla_record *r) {
  mla_vector v;
  mla_error err = mla_error_init();
  (void)of;
  memset(r, 0, sizeof *r);
  if (mla_generate(&q->c, q->seed, how->poison, &v, &err) == MLA_OK) {
    mla_judge_vector(device, &v, how, &r->verdict);
  } else {
    r->verdict.kind = MLA_VERDICT_ERROR;
    snprintf(r->verdict.reason, sizeof r->verdict.reason, "%s", err.message);
  }
  mla_vector_free(&v);
}

static void work(const crew *of, mla_device *device, crew_question *q,
                 crew_answer *a) {
  mla_judge_observer observer = {mla_explain_observe, &a->explainer};
  mla_judge_options how = mla_judge_defaults();
  a->explainer = q->explainer;
  a->care = q->care;
  a->record = q->record;
  how.keep = of->keep;
  how.guards = !q->open;
  how.alone = q->alone;
  how.observer = q->explain ? &observer : NULL;
  if (q->task == CREW_JUDGE)
    mla_docket_judge(of->docket, q->item, device, &how, &a->record);
  else if (q->task == CREW_CASE)
    judge_case(of, q, device, &how, &a->record);
  else
    after_failure(&a->care, device, of->docket, q->item, &a->record);
}

/* Another handle that comes and goes leaves ours as it was. */
static void open_beside(const crew *of) {
  mla_device *other = NULL;
  if (mla_open(of->backend, of->device, of->options, &other, NULL) == MLA_OK)
    mla_close(other);
}

/* The reference's threads spin while they wait for each other: where each
   member has one for every core, they take the cores from those that work. A
   backend that counts its threads when it is opened keeps them. */
static void share_cores(const crew *of) {
#ifdef _OPENMP
  const int threads = omp_get_max_threads();
  if (of->members > 1)
    omp_set_num_threads(threads > of->members ? threads / of->members : 1);
#else
  (void)of;
#endif
}

static void serve(void *context, int line) {
  const crew *of = context;
  static crew_question q;
  static crew_answer a;
  mla_device *device = NULL;
  memset(&a, 0, sizeof a);
  a.err = mla_error_init();
  a.info.size = (uint32_t)sizeof a.info;
  a.opened = mla_open(of->backend, of->device, of->options, &device, &a.err);
  if (a.opened == MLA_OK) open_beside(of);
  if (a.opened == MLA_OK)
    a.described = mla_device_describe(device, &a.info, NULL) == MLA_OK;
  share_cores(of);
  worker_say(line, HELLO, &a, sizeof a);
  while (a.opened == MLA_OK && worker_hear(line, &q, sizeof q)) {
    work(of, device, &q, &a);
    worker_say(line, ANSWER, &a, sizeof a);
  }
  mla_close(device);
}

/* --------------------------------------------------------------- in time */

static double flops_of(const crew *of, const crew_question *q) {
  mla_case c = q->c;
  if (q->task != CREW_CASE) {
    const mla_item *item = mla_docket_at(of->docket, q->item);
    if (item->kind == MLA_ITEM_TRUTH) return 1e11;
    if (mla_case_parse(item->id, &c, NULL) != MLA_OK) return 0;
  }
  return mla_case_flops(&c);
}

/* A plain kernel does 50 MFLOP a second on any machine. */
static double time_for(const crew *of, const crew_question *q) {
  double shrinking = q->task == CREW_CARE ? 4 * MLA_SHRINK_SECONDS : 0;
  if (of->timeout > 0) return of->timeout + shrinking;
  return of->patience * (FIXED + flops_of(of, q) / 5e7) + shrinking;
}

/* ------------------------------------------------------------- its verdict */

static void explain_death(const crew *of, const crew_question *q, int number,
                          mla_look *look) {
  mla_vector v;
  int made = 0;
  mla_vector_init(&v);
  if (q->task == CREW_JUDGE &&
      mla_docket_at(of->docket, q->item)->kind != MLA_ITEM_TRUTH)
    made = mla_docket_vector(of->docket, q->item, MLA_POISON_NAN, &v, NULL) ==
           MLA_OK;
  mla_explain_death(made ? &v : NULL, number, look);
  mla_vector_free(&v);
}

static void say_touch(const mla_touch *touch, const char *verb,
                      mla_verdict *v) {
  mla_touch_print(touch, verb, v->fences, sizeof v->fences);
}

/* Nothing else is known of it. */
static void judge_dead(const crew_member *m, const worker_end *end,
                       mla_verdict *v) {
  memset(v, 0, sizeof *v);
  v->kind = MLA_VERDICT_FAIL;
  v->died = end->died;
  v->signal = end->signal;
  worker_end_print(end, v->reason, sizeof v->reason);
  if (end->touched) say_touch(&end->touch, "touched", v);
  explain_death(m->of, &m->question,
                end->died == MLA_DEATH_SIGNAL ? (int)end->signal : 0, &v->look);
  if (end->died == MLA_DEATH_EXIT) memset(&v->look, 0, sizeof v->look);
}

/* With zones that can be touched it lived: if no byte round the tensors was
   changed, it was read. */
static void add_touch(const crew_member *m, mla_verdict *v) {
  const mla_touch *touch = &m->end.touch;
  if (v->fences[0]) return;
  if (v->kind != MLA_VERDICT_FAIL) {
    v->died = m->end.died;
    v->signal = m->end.signal;
  }
  v->kind = MLA_VERDICT_FAIL;
  say_touch(touch, "read", v);
  if (v->look.cls[0]) return;
  explain_death(m->of, &m->question, SIGSEGV, &v->look);
  if (!touch->side) snprintf(v->look.cls, sizeof v->look.cls, "HONESTY");
  snprintf(v->look.what, sizeof v->look.what, "%.100s", v->fences);
}

static void judge_unjudged(mla_verdict *v, const char *why) {
  memset(v, 0, sizeof *v);
  v->kind = MLA_VERDICT_ERROR;
  snprintf(v->reason, sizeof v->reason, "%.300s", why);
}

/* ----------------------------------------------------------- in the parent */

static int start(crew_member *m, const crew *of) {
  m->of = of;
  m->begun = 0;
  return worker_start(&m->w, serve, (void *)(uintptr_t)of);
}

/* The time of a case begins when the device is open. */
static void put(crew_member *m) {
  worker_ask(&m->w, &m->question, sizeof m->question,
             m->begun ? time_for(m->of, &m->question) : OPENING);
  m->busy = 1;
}

mla_status crew_open(crew_member *m, const crew *of, crew_answer *answer,
                     mla_error *err) {
  int32_t kind;
  char how[200];
  memset(m, 0, sizeof *m);
  if (!start(m, of))
    return mla_fail(err, MLA_NOT_AVAILABLE, "process",
                    "no child process can be made");
  worker_allow(&m->w, OPENING);
  if (worker_listen(&m->w, &kind, answer, sizeof *answer, &m->end) !=
      WORKER_SAYS) {
    worker_end_print(&m->end, how, sizeof how);
    return mla_fail(err, MLA_NOT_AVAILABLE, "backend",
                    "%s cannot be opened: %s", of->backend, how);
  }
  m->begun = 1;
  if (answer->opened != MLA_OK && err) *err = answer->err;
  if (answer->opened != MLA_OK) worker_dismiss(&m->w);
  return answer->opened;
}

void crew_ask(crew_member *m, const crew *of, const crew_question *question) {
  if (!m->w.pid && !start(m, of)) m->w.pid = 0;
  m->question = *question;
  m->twice = 0;
  m->busy = 1;
  if (m->w.pid) put(m);
}

static int is_free(crew_member *m) {
  m->busy = 0;
  return 1;
}

static int ended(crew_member *m, const worker_end *end, crew_answer *a) {
  memset(a, 0, sizeof *a);
  a->explainer = m->question.explainer;
  a->care = m->question.care;
  a->record = m->question.record;
  if (m->question.task == CREW_CARE) return is_free(m);
  if (end->touched && !m->twice) {
    m->end = *end;
    m->twice = m->question.open = 1;
    if (start(m, m->of)) {
      put(m);
      return 0;
    }
  }
  memset(&a->record, 0, sizeof a->record);
  judge_dead(m, m->twice ? &m->end : end, &a->record.verdict);
  return is_free(m);
}

int crew_poll(crew_member *m, crew_answer *a) {
  int32_t kind;
  worker_end end;
  memset(&end, 0, sizeof end);
  if (!m->busy) return 0;
  if (!m->w.pid) {
    memset(a, 0, sizeof *a);
    judge_unjudged(&a->record.verdict, "no child process can be made");
    return is_free(m);
  }
  worker_news news = worker_poll(&m->w, &kind, a, sizeof *a, &end);
  if (news == WORKER_WAITS) return 0;
  if (news == WORKER_ENDED) return ended(m, &end, a);
  if (kind == HELLO && a->opened == MLA_OK) {
    m->begun = 1;
    worker_allow(&m->w, time_for(m->of, &m->question));
    return 0;
  }
  if (kind == HELLO) {
    judge_unjudged(&a->record.verdict, a->err.message);
    worker_dismiss(&m->w);
  } else if (m->twice) {
    add_touch(m, &a->record.verdict);
  }
  return is_free(m);
}

void crew_wait(const crew_member *const *m, int32_t count) {
  worker w[CREW_MOST];
  int32_t n = 0;
  for (int32_t i = 0; i < count && n < CREW_MOST; i++)
    if (m[i]->busy && m[i]->w.pid) w[n++] = m[i]->w;
  worker_wait(w, n);
}

void crew_answer_now(crew_member *m, const crew *of,
                     const crew_question *question, crew_answer *answer) {
  const crew_member *one = m;
  crew_ask(m, of, question);
  while (!crew_poll(m, answer)) crew_wait(&one, 1);
}

void crew_dismiss(crew_member *m) {
  if (m->busy)
    worker_kill(&m->w);
  else
    worker_dismiss(&m->w);
  m->busy = 0;
}
