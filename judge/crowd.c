/*
 * crowd.c - the plan at work in another thread, which the interface allows:
 * alone, where what a backend keeps for the thread that opened it is missing;
 * then in two at once, where what it keeps of a run outside its workspace
 * shows.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "error.h"
#include "hearing.h"

#define ROUNDS 8 /* runs that are compared */
#define MOST 64  /* more, where the other thread has had no time yet */

/* The other thread: the same shapes, other numbers, memory of its own. */
typedef struct neighbour {
  hearing *h;
  mla_vector v;
  mla_place place;
  atomic_int over, begun, ended; /* runs of its own */
  mla_status status;
  mla_error err;
} neighbour;

static mla_status prepare(neighbour *n) {
  hearing *h = n->h;
  mla_status status = mla_generate(&h->v->recipe, h->v->seed + 1,
                                   MLA_POISON_ZERO, &n->v, &n->err);
  if (status == MLA_OK)
    status = mla_place_new(h->device, &n->v, &h->answer, 0, &n->place, &n->err);
  if (status != MLA_OK) return status;
  return mla_place_fill(&n->place, MLA_POISON_ZERO, MLA_SIDE_END, &n->err);
}

/* Waits for each run: a queue that only grows helps nobody. */
static void *call_on(void *context) {
  neighbour *n = context;
  const hearing *h = n->h;
  const mla_backend *b = mla_device_backend(h->device);
  mla_args args = mla_place_args(&n->place);
  while (!atomic_load(&n->over) && n->status == MLA_OK) {
    atomic_fetch_add(&n->begun, 1);
    n->status = mla_run(h->plan, &args, mla_place_workspace(&n->place),
                        h->answer.workspace_bytes, NULL, &n->err);
    if (n->status == MLA_OK && b->stream_sync)
      n->status = b->stream_sync(mla_device_handle(h->device), NULL, &n->err);
    atomic_fetch_add(&n->ended, 1);
  }
  return NULL;
}

static void compare(hearing *h) {
  int s;
  if (mla_hearing_is_again(h, &s)) return;
  mla_hearing_end(h, MLA_VERDICT_FAIL,
                  "while another thread runs the plan, too, a run gives "
                  "another %s",
                  mla_slot_name(s));
  h->verdict->crowded = MLA_CROWDED_BESIDE;
}

/* Threads begin late on a busy machine, when short runs may be over. */
static void wait_for(const neighbour *n) {
  const struct timespec moment = {0, 20000};
  while (atomic_load(&n->begun) == 0) nanosleep(&moment, NULL);
}

static int has_met(const neighbour *n, int rounds) {
  return rounds >= MOST || (rounds >= ROUNDS && atomic_load(&n->ended) > 1);
}

static void run_beside(neighbour *n) {
  hearing *h = n->h;
  pthread_t thread;
  unsigned char poison = (unsigned char)h->options->poison;
  if (pthread_create(&thread, NULL, call_on, n) != 0) {
    mla_hearing_end(h, MLA_VERDICT_ERROR, "there is no second thread");
    return;
  }
  wait_for(n);
  for (int i = 0; !has_met(n, i) && h->verdict->kind == MLA_VERDICT_PASS; i++)
    if (mla_hearing_run(h, h->v, poison, MLA_SIDE_END)) compare(h);
  atomic_store(&n->over, 1);
  pthread_join(thread, NULL);
  if (n->status != MLA_OK && h->verdict->kind == MLA_VERDICT_PASS)
    mla_hearing_end(h, MLA_VERDICT_FAIL,
                    "said yes, but in a second thread the run fails with "
                    "%s: %s",
                    mla_status_name(n->status), n->err.message);
}

/* The call itself, by a thread that has neither opened nor planned. */
static void *visit(void *context) {
  hearing *h = context;
  mla_hearing_run(h, h->v, (unsigned char)h->options->poison, MLA_SIDE_END);
  return NULL;
}

static void run_elsewhere(hearing *h) {
  pthread_t thread;
  int s;
  if (pthread_create(&thread, NULL, visit, h) != 0) {
    mla_hearing_end(h, MLA_VERDICT_ERROR, "there is no second thread");
    return;
  }
  pthread_join(thread, NULL);
  if (h->verdict->kind == MLA_VERDICT_FAIL)
    mla_hearing_end(h, MLA_VERDICT_FAIL,
                    "said yes, but in a second thread the run fails: %s",
                    h->err.message);
  else if (h->verdict->kind == MLA_VERDICT_PASS && !mla_hearing_is_again(h, &s))
    mla_hearing_end(h, MLA_VERDICT_FAIL,
                    "in another thread than that of its plan, a run gives "
                    "another %s",
                    mla_slot_name(s));
  if (h->verdict->kind == MLA_VERDICT_FAIL)
    h->verdict->crowded = MLA_CROWDED_ELSEWHERE;
}

void mla_crowd(hearing *h) {
  neighbour n;
  if (!h->v->has_recipe || !h->v->recipe.num[MLA_K_CROWD] ||
      h->verdict->kind != MLA_VERDICT_PASS)
    return;
  run_elsewhere(h);
  if (h->verdict->kind != MLA_VERDICT_PASS) return;
  memset(&n, 0, sizeof n);
  n.h = h;
  n.err = mla_error_init();
  mla_vector_init(&n.v);
  if (prepare(&n) == MLA_OK)
    run_beside(&n);
  else
    mla_hearing_end(h, MLA_VERDICT_ERROR, "no second call: %s", n.err.message);
  mla_place_free(&n.place);
  mla_vector_free(&n.v);
}
