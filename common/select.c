/*
 * select.c - which backend, on which of its devices, is to serve a problem.
 */
#include "select.h"

#include <stdio.h>
#include <string.h>

#include "error.h"
#include "problem_check.h"
#include "registry.h"
#include "sized.h"

/* Accelerators, host, the reference; in each plugins, then what is built
   in; in each by position. */
int64_t mla_select_rank(size_t position, size_t builtin, const char *name,
                        int32_t memory_space) {
  int64_t is_ref = strcmp(name, "ref") == 0;
  int64_t is_host = memory_space == MLA_MEMORY_HOST;
  int64_t is_builtin = position < builtin;
  return ((is_ref * 2 + is_host) * 2 + is_builtin) * 65536 + (int64_t)position;
}

/* ------------------------------------------------------------ the choices */

typedef struct selection {
  const mla_problem *problem;
  const mla_limits *limits;
  mla_wish wish;
  mla_candidate *choices; /* of the caller's size each */
  size_t room, count;
} selection;

static mla_candidate *choice_at(const selection *s, size_t i) {
  return (mla_candidate *)(void *)((char *)s->choices + i * s->choices->size);
}

static void read_choice(const selection *s, size_t i, mla_candidate *c) {
  uint32_t size = s->choices->size;
  memset(c, 0, sizeof *c);
  memcpy(c, choice_at(s, i), size < sizeof *c ? size : sizeof *c);
}

/* Better before worse; the refused behind, in order of preference too. */
static int is_better(const mla_candidate *a, const mla_candidate *b) {
  if (a->usable != b->usable) return a->usable;
  return a->rank < b->rank;
}

/* Into its place; the last falls out when there is no room. */
static void insert(selection *s, const mla_candidate *c) {
  size_t at = 0, kept = s->count < s->room ? s->count : s->room;
  mla_candidate other;
  for (; at < kept; at++) {
    read_choice(s, at, &other);
    if (is_better(c, &other)) break;
  }
  s->count++;
  if (at == s->room) return;
  if (kept == s->room) kept--;
  uint32_t size = s->choices->size;
  memmove(choice_at(s, at + 1), choice_at(s, at), (kept - at) * size);
  memcpy(choice_at(s, at), &size, sizeof size);
  mla_sized_write(choice_at(s, at), c, (uint32_t)sizeof *c);
}

/* -------------------------------------------------------------- candidates */

static void refuse(mla_candidate *c, const char *reason) {
  c->usable = 0;
  snprintf(c->reason, sizeof c->reason, "%s", reason);
}

/* What a yes must promise beside being right. */
static void hold_to_wish(const selection *s, mla_candidate *c) {
  static const char *const names[] = {"none", "run to run", "batch invariant"};
  char reason[160];
  int32_t has = c->answer.determinism, wants = s->wish.determinism;
  if (c->usable && has < wants) {
    snprintf(reason, sizeof reason, "determinism: \"%s\", but \"%s\" is wanted",
             names[has >= 0 && has < 3 ? has : 0], names[wants]);
    refuse(c, reason);
  }
  if (c->usable && s->wish.capture_safe && !c->answer.capture_safe)
    refuse(c, "capture_safe: run() cannot be captured into a graph");
}

static void ask(const selection *s, mla_device *device, mla_candidate *c) {
  mla_error err = mla_error_init();
  c->answer = mla_answer_init();
  mla_status status =
      mla_query(device, s->problem, s->limits, &c->answer, &err);
  c->usable = status == MLA_OK && c->answer.supported;
  if (status != MLA_OK)
    refuse(c, err.message);
  else if (!c->usable)
    refuse(c, c->answer.reason[0] ? c->answer.reason : "no reason given");
  hold_to_wish(s, c);
}

static void consider_device(selection *s, mla_candidate *c, size_t position,
                            size_t builtin) {
  mla_error err = mla_error_init();
  mla_device *device = NULL;
  mla_device_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  mla_status status = mla_open(c->backend, c->device, NULL, &device, &err);
  if (status == MLA_OK) status = mla_device_describe(device, &info, &err);
  c->memory_space = info.memory_space;
  c->rank = mla_select_rank(position, builtin, c->backend, info.memory_space);
  if (status != MLA_OK)
    refuse(c, err.message);
  else if (s->wish.memory_space && s->wish.memory_space != info.memory_space)
    refuse(c, "memory_space: its tensors lie elsewhere");
  else
    ask(s, device, c);
  mla_close(device);
  insert(s, c);
}

static void consider(selection *s, size_t position, size_t builtin) {
  const mla_backend *backend = mla_backend_at(position);
  mla_error err = mla_error_init();
  mla_candidate none;
  int32_t count = backend->device_count(&err);
  for (int32_t i = 0; i < count; i++) {
    mla_candidate c;
    memset(&c, 0, sizeof c);
    c.backend = backend->name;
    c.device = i;
    consider_device(s, &c, position, builtin);
  }
  if (count > 0) return;
  err.message[sizeof err.message - 1] = '\0';
  memset(&none, 0, sizeof none);
  none.backend = backend->name;
  none.device = -1;
  none.rank = mla_select_rank(position, builtin, backend->name, 0);
  refuse(&none, err.message[0] ? err.message : "it finds no device here");
  insert(s, &none);
}

/* ------------------------------------------------------------------- call */

static mla_status check(const mla_problem *problem, const mla_limits *limits,
                        mla_error *err) {
  mla_problem p;
  mla_limits l;
  mla_status status =
      mla_sized_read(&p, (uint32_t)sizeof p, problem,
                     MLA_SIZE_WITH(mla_problem, flags), "problem", err);
  if (status == MLA_OK)
    status =
        mla_sized_read(&l, (uint32_t)sizeof l, limits,
                       MLA_SIZE_WITH(mla_limits, num_splits), "limits", err);
  if (status == MLA_OK) status = mla_problem_check(&p, err);
  if (status == MLA_OK) status = mla_limits_check(&p, &l, err);
  return status;
}

static mla_status read_wish(const mla_wish *wish, mla_wish *own,
                            mla_error *err) {
  memset(own, 0, sizeof *own);
  if (!wish) return MLA_OK;
  mla_status status =
      mla_sized_read(own, (uint32_t)sizeof *own, wish,
                     MLA_SIZE_WITH(mla_wish, memory_space), "wish", err);
  if (status == MLA_OK && (own->determinism < MLA_DETERMINISM_NONE ||
                           own->determinism > MLA_DETERMINISM_BATCH_INVARIANT))
    status = mla_fail(err, MLA_INVALID_ARGUMENT, "determinism",
                      "wish.determinism is %d, from 0 to 2", own->determinism);
  return status;
}

static mla_status none_can(const selection *s, mla_error *err) {
  mla_candidate first;
  if (s->count == 0)
    return mla_fail(err, MLA_UNSUPPORTED, "backend", "there is no backend");
  read_choice(s, 0, &first);
  return mla_fail(err, MLA_UNSUPPORTED, "backend",
                  "none of %d candidates can serve this; %s: %.150s",
                  (int)s->count, first.backend, first.reason);
}

mla_wish mla_wish_init(void) {
  mla_wish wish;
  memset(&wish, 0, sizeof wish);
  wish.size = (uint32_t)sizeof wish;
  return wish;
}

mla_candidate mla_candidate_init(void) {
  mla_candidate choice;
  memset(&choice, 0, sizeof choice);
  choice.size = (uint32_t)sizeof choice;
  return choice;
}

mla_status mla_select(const mla_problem *problem, const mla_limits *limits,
                      const mla_wish *wish, mla_candidate *choices, size_t room,
                      size_t *count, mla_error *err) {
  selection s = {problem, limits, mla_wish_init(), choices, room, 0};
  mla_candidate best;
  size_t builtin = mla_registry_builtin_count();
  if (count) *count = 0;
  if (room == 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "room",
                    "room is 0, at least one choice is returned");
  mla_status status = mla_sized_room(
      choices, MLA_SIZE_WITH(mla_candidate, reason), "choices", err);
  if (status == MLA_OK) status = read_wish(wish, &s.wish, err);
  if (status == MLA_OK) status = check(problem, limits, err);
  if (status != MLA_OK) return status;
  for (size_t i = 0; i < mla_backend_count(); i++) consider(&s, i, builtin);
  if (count) *count = s.count < room ? s.count : room;
  if (s.count == 0) return none_can(&s, err);
  read_choice(&s, 0, &best);
  return best.usable ? MLA_OK : none_can(&s, err);
}
