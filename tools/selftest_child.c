/*
 * selftest_child.c - judging in child processes, so that a fault that kills
 * or hangs its process is one result among others.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "explain.h"
#include "selftest.h"

#define MOST_CHILDREN 16

/* What a child says: before a case, and at its end. */
typedef struct message {
  int32_t item; /* that it begins, or -1: the result */
  selftest_result result;
} message;

typedef struct child {
  pid_t pid;
  int pipe;
  int32_t job, item;
  double deadline;
} child;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

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
  return mla_case_flops(&c);
}

static int hunts_class(const mla_item *item, const char *cls) {
  const char *at = *cls ? strstr(item->hunts, cls) : NULL;
  return at && (at[strlen(cls)] == ',' || at[strlen(cls)] == '\0');
}

/* Room for all items; to be freed. */
static place_in_order *order_for(const mla_docket *docket, int32_t fault) {
  int32_t n = mla_docket_count(docket);
  const char *cls = planted_fault_at(fault)->cls;
  place_in_order *order = malloc((size_t)(n + 1) * sizeof *order);
  for (int32_t i = 0; order && i < n; i++) {
    const mla_item *item = mla_docket_at(docket, i);
    order[i] = (place_in_order){i, fault && hunts_class(item, cls),
                                fault ? cost_of(item) : 0};
  }
  if (order) qsort(order, (size_t)n, sizeof *order, by_order);
  return order;
}

/* -------------------------------------------------------------- in a child */

/* A fault is to end the child at once, whoever else listens for it: a
   sanitizer would first look up every name on the stack. */
static void die_at_once(void) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
    signal(faults[i], SIG_DFL);
}

static void say(int to, int32_t item, const selftest_result *result) {
  message m;
  memset(&m, 0, sizeof m);
  m.item = item;
  m.result = *result;
  if (write(to, &m, sizeof m) != (ssize_t)sizeof m) _exit(3);
}

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
  r->look = v->look;
  snprintf(r->reason, sizeof r->reason, "%.150s", v->reason);
}

static void judge_job(const selftest_run *run, const selftest_job *job,
                      int to) {
  selftest_result r;
  mla_error err = mla_error_init();
  mla_device *device;
  mla_judge_observer observer = {mla_explain_observe, NULL};
  mla_judge_options options = mla_judge_defaults();
  memset(&r, 0, sizeof r);
  r.caught = r.unjudged = -1;
  options.keep = run->keep;
  options.observer = job->fault ? &observer : NULL;
  place_in_order *order = order_for(run->docket, job->fault);
  if (!order ||
      mla_open(job->backend, 0, job->options, &device, &err) != MLA_OK)
    _exit(3);
  for (int32_t k = 0;
       k < mla_docket_count(run->docket) && r.caught < 0 && r.unjudged < 0;
       k++) {
    mla_record record;
    say(to, order[k].item, &r);
    mla_docket_judge(run->docket, order[k].item, device, &options, &record);
    take(&r, order[k].item, &record.verdict);
  }
  r.ended = 1;
  say(to, -1, &r);
}

/* --------------------------------------------------------------- the parent */

static int start(const selftest_run *run, const selftest_job *job, int32_t i,
                 child *c) {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  fflush(stdout);
  fflush(stderr);
  c->pid = fork();
  if (c->pid == 0) {
    close(ends[0]);
    die_at_once();
    judge_job(run, job, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  if (c->pid < 0) {
    close(ends[0]);
    return 0;
  }
  c->pipe = ends[0];
  c->job = i;
  c->item = -1;
  c->deadline = now() + 60 * run->patience;
  return 1;
}

/* A plain kernel does 50 MFLOP a second on any machine. */
static double time_for(const selftest_run *run, int32_t item) {
  double flops = cost_of(mla_docket_at(run->docket, item));
  return run->patience * (30 + flops / 5e7);
}

/* The child is dead or is killed: a result that it could not say itself. */
static void close_lost(const selftest_run *run, child *c, int killed,
                       selftest_result *r) {
  int status = 0;
  mla_vector v;
  if (killed) kill(c->pid, SIGKILL);
  while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) continue;
  close(c->pipe);
  if (r->ended) return;
  r->caught = c->item;
  r->kind = -1;
  r->signal = killed || !WIFSIGNALED(status) ? 0 : WTERMSIG(status);
  r->ended = c->item >= 0 && (killed || WIFSIGNALED(status));
  if (c->item < 0) return;
  int made = mla_docket_vector(run->docket, c->item, MLA_POISON_NAN, &v,
                               NULL) == MLA_OK;
  mla_explain_death(made ? &v : NULL, r->signal, &r->look);
  mla_vector_free(&v);
}

/* 1: the child has more to say. */
static int listen_to(const selftest_run *run, child *c, selftest_result *r) {
  message m;
  char *at = (char *)&m;
  size_t have = 0;
  while (have < sizeof m) {
    ssize_t n = read(c->pipe, at + have, sizeof m - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0;
    have += (size_t)n;
  }
  *r = m.result;
  if (m.item < 0) return 0;
  c->item = m.item;
  c->deadline = now() + time_for(run, m.item);
  return 1;
}

static int wait_for(child *children, int32_t n, struct pollfd *fds) {
  double first = children[0].deadline;
  for (int32_t k = 0; k < n; k++) {
    fds[k] = (struct pollfd){children[k].pipe, POLLIN, 0};
    if (children[k].deadline < first) first = children[k].deadline;
  }
  double left = first - now();
  int ms = left <= 0 ? 0 : left > 3600 ? 3600000 : (int)(left * 1000) + 1;
  return poll(fds, (nfds_t)n, ms);
}

int selftest_judge(const selftest_run *run, const selftest_job *job,
                   selftest_result *result, int32_t count, int32_t jobs,
                   void (*done)(void *context, int32_t i), void *context) {
  child children[MOST_CHILDREN];
  struct pollfd fds[MOST_CHILDREN];
  int32_t n = 0, next = 0;
  if (jobs < 1) jobs = 1;
  if (jobs > MOST_CHILDREN) jobs = MOST_CHILDREN;
  while (n > 0 || next < count) {
    while (n < jobs && next < count) {
      memset(&result[next], 0, sizeof result[next]);
      result[next].caught = result[next].unjudged = -1;
      if (!start(run, &job[next], next, &children[n])) return 0;
      n++, next++;
    }
    wait_for(children, n, fds);
    for (int32_t k = 0; k < n; k++) {
      selftest_result *r = &result[children[k].job];
      int late = now() > children[k].deadline;
      if (!fds[k].revents && !late) continue;
      if (fds[k].revents && listen_to(run, &children[k], r)) continue;
      close_lost(run, &children[k], !fds[k].revents && late, r);
      if (done) done(context, children[k].job);
      children[k] = children[n - 1];
      fds[k] = fds[n - 1];
      n--, k--;
    }
  }
  return 1;
}
