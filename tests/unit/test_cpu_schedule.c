/*
 * Decode's schedule: every split of every unit once, and no thread left with
 * much more than its share, whatever the lengths, as long as threads take the
 * next piece of work when they are done with one. And tasks in stages.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "cpu_parallel.h"
#include "cpu_schedule.h"

enum { MOST = 64, LONGEST = 5000, LONGEST_EVEN = 65536 };

static mla_cpu_context context_of(int threads, int heads, int requests) {
  mla_cpu_context c;
  memset(&c, 0, sizeof c);
  c.threads = threads;
  c.problem.op = MLA_OP_DECODE;
  c.problem.num_heads = heads;
  c.problem.num_kv_heads = 1;
  c.problem.head_dim = 576;
  c.problem.v_dim = 512;
  c.limits.tokens = c.limits.requests = requests;
  c.limits.max_seq_len = LONGEST;
  c.limits.max_query_len = 1;
  return c;
}

static int64_t keys_of(const mla_cpu_unit *u, int32_t split) {
  int64_t keys = mla_cpu_split_keys(u->length, 0);
  if (split < 0) return u->length;
  return mla_cpu_min(keys, u->length - split * keys);
}

static void check_complete(const mla_cpu_schedule *s) {
  int64_t done[8 * MOST] = {0};
  ck_assert_int_le(s->units, 8 * MOST);
  for (int64_t i = 0; i < s->works; i++) {
    const mla_cpu_work *w = &s->work[i];
    ck_assert_int_eq(w->split >= 0, w->unit < s->shared_units);
    done[w->unit] += keys_of(&s->unit[w->unit], w->split) * w->panels;
  }
  for (int64_t i = 0; i < s->units; i++)
    ck_assert_int_eq(done[i], s->unit[i].length * s->unit[i].panels);
}

/* The last thread's end over the mean, each work as long as its products, twice
   as long on the last `slow` threads. */
static double straggling(const mla_cpu_schedule *s, int threads, int slow) {
  double busy[MOST] = {0}, sum = 0, last = 0;
  for (int64_t i = 0; i < s->works; i++) {
    const mla_cpu_work *w = &s->work[i];
    const mla_cpu_unit *u = &s->unit[w->unit];
    double time = (double)w->panels * (double)keys_of(u, w->split);
    int first = 0;
    for (int t = 1; t < threads; t++)
      if (busy[t] < busy[first]) first = t;
    busy[first] += first >= threads - slow ? 2 * time : time;
    sum += time;
    if (busy[first] > last) last = busy[first];
  }
  return last * (threads - slow * 0.5) / sum;
}

static void make(mla_cpu_schedule *s, const mla_cpu_context *c,
                 mla_cpu_arena *arena, const int32_t *lens,
                 const int32_t *starts) {
  memset(s, 0, sizeof *s);
  mla_cpu_arena sizes = {NULL, 0};
  mla_cpu_schedule_take(&sizes, s, c);
  arena->base = aligned_alloc(64, (sizes.used + 63) / 64 * 64);
  arena->used = 0;
  ck_assert_ptr_nonnull(arena->base);
  mla_cpu_schedule_take(arena, s, c);
  mla_cpu_schedule_make(s, c, c->limits.requests, lens, starts);
  check_complete(s);
}

static void check_ragged(int threads, int heads, int requests) {
  static const int32_t lengths[] = {1, 17, 100, LONGEST};
  int32_t lens[MOST], starts[MOST + 1];
  for (int i = 0; i <= requests; i++) {
    starts[i] = i;
    if (i < requests) lens[i] = lengths[i % 4];
  }
  mla_cpu_context c = context_of(threads, heads, requests);
  mla_cpu_schedule s;
  mla_cpu_arena arena;
  make(&s, &c, &arena, lens, starts);
  double ratio = straggling(&s, threads, 0);
  REQUIRE(ratio <= 1.1, "%d threads, %d heads, %d requests: %.3f", threads,
          heads, requests, ratio);
  free(arena.base);
}

START_TEST(nobody_straggles) {
  static const int heads[] = {16, 20, 64, 128};
  for (int threads = 1; threads <= 16; threads *= 2)
    for (int requests = 4; requests <= 32; requests += 4)
      check_ragged(threads, heads[_i], requests);
}
END_TEST

/* As many keys in all, in long requests and in short ones. */
static void check_even(int threads, int length, int slow, double most) {
  int32_t lens[MOST], starts[MOST + 1];
  int requests = LONGEST_EVEN / length;
  for (int i = 0; i <= requests; i++) {
    starts[i] = i;
    if (i < requests) lens[i] = length;
  }
  mla_cpu_context c = context_of(threads, 128, requests);
  c.limits.max_seq_len = length;
  mla_cpu_schedule s;
  mla_cpu_arena arena;
  make(&s, &c, &arena, lens, starts);
  double ratio = straggling(&s, threads, slow);
  REQUIRE(ratio <= most, "%d threads, %d of them slow, %d keys: %.3f", threads,
          slow, length, ratio);
  free(arena.base);
}

START_TEST(nobody_waits_for_the_slow) {
  for (int threads = 2; threads <= 16; threads *= 2)
    for (int length = 1024; length <= LONGEST_EVEN; length *= 4) {
      check_even(threads, length, 0, 1.05);
      check_even(threads, length, threads / 2, 1.15);
    }
}
END_TEST

/* There is room for the splits of every length within the limits. */
START_TEST(splits_are_bounded) {
  mla_cpu_context c = context_of(2, 128, 1);
  int64_t before = 0;
  c.limits.num_splits = _i;
  for (int64_t length = 1; length < 3000000; length += length / 97 + 1) {
    c.limits.max_seq_len = length;
    int64_t most = mla_cpu_most_splits(&c);
    int64_t splits = mla_cpu_splits(length, _i);
    REQUIRE(most >= before && splits <= most, "%lld keys: %lld splits of %lld",
            (long long)length, (long long)splits, (long long)most);
    ck_assert_int_ge(splits * mla_cpu_split_keys(length, _i), length);
    before = most;
  }
}
END_TEST

/* ----------------------------------------------------------------- stages */

enum { GROUPS = 5, STAGES = 3, TASKS = 9 };
static const int64_t stage_ends[STAGES] = {4, 4, TASKS};

typedef struct stages {
  atomic_int times[GROUPS][TASKS], early;
} stages;

static void stage_task(void *state, int64_t index, int thread) {
  stages *s = state;
  int64_t group = index / TASKS, task = index % TASKS;
  volatile int work = 0;
  (void)thread;
  for (int i = 0; i < 20000; i++) work++;
  for (int64_t i = 0; task >= stage_ends[0] && i < stage_ends[0]; i++)
    s->early += !s->times[group][i];
  s->times[group][task]++;
}

/* Each task once, and none before its group's stage before it is done. */
START_TEST(stages_are_in_order) {
  for (int turn = 0; turn < 20; turn++) {
    mla_cpu_progress progress[GROUPS];
    stages s;
    for (int i = 0; i < GROUPS * TASKS; i++) s.times[i / TASKS][i % TASKS] = 0;
    s.early = 0;
    memset(progress, -1, sizeof progress);
    mla_cpu_parallel_stages(_i + 1, GROUPS, STAGES, stage_ends, progress,
                            stage_task, &s);
    ck_assert_int_eq(s.early, 0);
    for (int i = 0; i < GROUPS * TASKS; i++)
      ck_assert_int_eq(s.times[i / TASKS][i % TASKS], 1);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("cpu schedule");
  TCase *t = tcase_create("ragged");
  tcase_add_loop_test(t, nobody_straggles, 0, 4);
  tcase_add_test(t, nobody_waits_for_the_slow);
  tcase_add_loop_test(t, splits_are_bounded, 0, 4);
  tcase_add_loop_test(t, stages_are_in_order, 0, 7);
  suite_add_tcase(s, t);
  return check_main(s);
}
