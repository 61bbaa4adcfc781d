#include "cpu_parallel.h"

#ifdef _OPENMP
#include <omp.h>
#if defined(__unix__) || defined(__APPLE__)
#include <sched.h>
#endif
#endif

void mla_cpu_parallel(int threads, int64_t count, mla_cpu_task_fn *task,
                      void *state) {
#ifdef _OPENMP
  /* Always the same team: where its size changes, threads end and begin, which
     takes longer than a step of decode. Each begins with the task of its own
     number, so that call after call finds in its caches what it left there. */
  if (threads > 1 && count > 1) {
    int64_t taken = 0; /* beyond the first of each thread */
#pragma omp parallel num_threads(threads)
    {
      int64_t i = omp_get_thread_num(), team = omp_get_num_threads();
      while (i < count) {
        task(state, i, omp_get_thread_num());
#pragma omp atomic capture
        i = taken++;
        i += team;
      }
    }
    return;
  }
#else
  (void)threads;
#endif
  for (int64_t i = 0; i < count; i++) task(state, i, 0);
}

#ifdef _OPENMP
enum { patience = 10000 }; /* looks: some ten microseconds */

static void give_way(void) {
#if defined(__unix__) || defined(__APPLE__)
  sched_yield();
#endif
}

/* The next task of a group. */
static int64_t take(mla_cpu_progress *p) {
  int64_t i;
#pragma omp atomic capture
  i = p->taken++;
  return i;
}

#endif

/* For long only where there are more threads than cores, and then these want
   the core. Without threads nothing is waited for: tasks run in order. */
void mla_cpu_wait_for(const mla_cpu_progress *p, int64_t count) {
#ifdef _OPENMP
  int64_t done;
  for (int turns = 0;; turns++) {
#pragma omp atomic read seq_cst
    done = p->done;
    if (done >= count) return;
    if (turns > patience) give_way();
  }
#else
  (void)p;
  (void)count;
#endif
}

void mla_cpu_finish(mla_cpu_progress *p, int64_t count) {
#ifdef _OPENMP
#pragma omp atomic update seq_cst
#endif
  p->done += count;
}

void mla_cpu_parallel_stages(int threads, int64_t groups, int stages,
                             const int64_t *ends, mla_cpu_progress *progress,
                             mla_cpu_task_fn *task, void *state) {
  int64_t all = ends[stages - 1];
#ifdef _OPENMP
  if (threads > 1) {
    for (int64_t g = 0; g < groups; g++)
      progress[g].taken = progress[g].done = 0;
#pragma omp parallel num_threads(threads)
    {
      int64_t home = groups * omp_get_thread_num() / omp_get_num_threads();
      for (int64_t k = 0; k < groups; k++) {
        int64_t g = (home + k) % groups;
        int s = 0;
        for (int64_t i = take(&progress[g]); i < all; i = take(&progress[g])) {
          while (i >= ends[s]) mla_cpu_wait_for(&progress[g], ends[s++]);
          task(state, g * all + i, omp_get_thread_num());
          mla_cpu_finish(&progress[g], 1);
        }
      }
    }
    return;
  }
#else
  (void)threads;
  (void)progress;
#endif
  for (int64_t i = 0; i < groups * all; i++) task(state, i, 0);
}

int mla_cpu_default_threads(void) {
#ifdef _OPENMP
  int threads = omp_get_max_threads();
  return threads < 1 ? 1 : threads;
#else
  return 1;
#endif
}
