/*
 * bench_time.c - the time of one call.
 *
 * On a device the calls are captured into a graph and replayed between two
 * events, so that the host's part does not count; where there are no graphs,
 * and on the host, a clock is read round each call.
 */
#include <stdlib.h>

#include "bench.h"

enum { MOST = 1000, LEAST = 5, GRAPH_CALLS = 16 };

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void sum_up(double *time, int runs, bench_times *t) {
  qsort(time, (size_t)runs, sizeof *time, by_size);
  t->runs = runs;
  t->min = time[0];
  t->median = (time[(runs - 1) / 2] + time[runs / 2]) / 2;
}

typedef struct clockwork {
  const mla_backend *b;
  mla_handle *h;
  const mla_plan *plan;
  const mla_args *sets;
  int count;
  void *workspace;
  mla_error *err;
} clockwork;

static mla_status call(const clockwork *c, int i, mla_stream stream) {
  uint64_t bytes = mla_plan_answer(c->plan)->workspace_bytes;
  return mla_run(c->plan, &c->sets[i % c->count], c->workspace, bytes, stream,
                 c->err);
}

static mla_status wait(const clockwork *c, mla_stream stream) {
  return c->b->stream_sync ? c->b->stream_sync(c->h, stream, c->err) : MLA_OK;
}

/* -------------------------------------------------------------- by a clock */

static mla_status by_clock(const clockwork *c, const bench_how *how,
                           bench_times *t) {
  double time[MOST], total = 0;
  int runs = 0;
  mla_status status = call(c, 0, NULL);
  if (status == MLA_OK) status = wait(c, NULL);
  while (status == MLA_OK &&
         (runs < LEAST || (runs < MOST && total < how->seconds))) {
    double start = seconds_now(how->threads);
    status = call(c, runs + 1, NULL);
    if (status == MLA_OK) status = wait(c, NULL);
    total += time[runs++] = seconds_now(how->threads) - start;
  }
  if (status == MLA_OK) sum_up(time, runs, t);
  return status;
}

/* -------------------------------------------------------------- by a graph */

typedef struct replay {
  mla_stream stream;
  mla_graph *graph;
  mla_event *from, *to;
  int calls;
} replay;

static mla_status capture(const clockwork *c, replay *r) {
  mla_status status = call(c, 0, r->stream); /* what is only made once */
  if (status == MLA_OK) status = wait(c, r->stream);
  if (status == MLA_OK) status = c->b->capture_begin(c->h, r->stream, c->err);
  if (status != MLA_OK) return status;
  for (int i = 0; i < r->calls && status == MLA_OK; i++)
    status = call(c, i, r->stream);
  mla_status ended = c->b->capture_end(c->h, r->stream, &r->graph, c->err);
  return status == MLA_OK ? ended : status;
}

static mla_status replay_once(const clockwork *c, const replay *r,
                              double *time) {
  double ms = 0;
  mla_status status = c->b->event_record(r->from, r->stream, c->err);
  if (status == MLA_OK)
    status = c->b->graph_launch(r->graph, r->stream, c->err);
  if (status == MLA_OK) status = c->b->event_record(r->to, r->stream, c->err);
  if (status == MLA_OK)
    status = c->b->event_elapsed(r->from, r->to, &ms, c->err);
  *time = ms * 1e-3 / r->calls;
  return status;
}

static mla_status replay_all(const clockwork *c, const replay *r,
                             double seconds, bench_times *t) {
  double time[MOST], total = 0;
  int runs = 0;
  mla_status status = replay_once(c, r, &time[0]);
  while (status == MLA_OK &&
         (runs < LEAST || (runs < MOST && total < seconds))) {
    status = replay_once(c, r, &time[runs]);
    total += time[runs++] * r->calls;
  }
  if (status == MLA_OK) sum_up(time, runs, t);
  return status;
}

static mla_status by_graph(const clockwork *c, const bench_how *how,
                           bench_times *t) {
  replay r = {NULL, NULL, NULL, NULL, c->count};
  while (r.calls < GRAPH_CALLS) r.calls += c->count;
  mla_status status = c->b->stream_create(c->h, &r.stream, c->err);
  if (status != MLA_OK) return status;
  status = c->b->event_create(c->h, &r.from, c->err);
  if (status == MLA_OK) status = c->b->event_create(c->h, &r.to, c->err);
  if (status == MLA_OK) status = capture(c, &r);
  if (status == MLA_OK) status = replay_all(c, &r, how->seconds, t);
  if (r.graph) c->b->graph_free(r.graph);
  if (r.to) c->b->event_free(r.to);
  if (r.from) c->b->event_free(r.from);
  c->b->stream_destroy(c->h, r.stream);
  return status;
}

mla_status bench_measure(mla_device *device, const mla_plan *plan,
                         const mla_args *sets, int count, void *workspace,
                         const bench_how *how, bench_times *times,
                         mla_error *err) {
  const mla_backend *b = mla_device_backend(device);
  const clockwork c = {
      b, mla_device_handle(device), plan, sets, count, workspace, err};
  int graphs = b->stream_create && b->capture_begin && b->event_create &&
               mla_plan_answer(plan)->capture_safe;
  return graphs ? by_graph(&c, how, times) : by_clock(&c, how, times);
}
