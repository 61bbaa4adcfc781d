/*
 * cpu_parallel.h - the one place where threads are used.
 */
#ifndef MLA_CPU_PARALLEL_H
#define MLA_CPU_PARALLEL_H

#include <stdint.h>

/* Task `index` of a loop, on thread 0 .. threads - 1. */
typedef void mla_cpu_task_fn(void *state, int64_t index, int thread);

/*
 * Runs tasks 0 .. count - 1 and returns when all are done. Who runs which is
 * left to chance; a task's result must not depend on it.
 */
void mla_cpu_parallel(int threads, int64_t count, mla_cpu_task_fn *task,
                      void *state);

/* Where the tasks of one group are; a cache line of its own. */
typedef struct mla_cpu_progress {
  int64_t taken, done, unused[6];
} mla_cpu_progress;

/*
 * Tasks of mla_cpu_parallel that need what others of the same loop make: those
 * say how much is done, these wait until `count` is. Whoever is waited for must
 * have a lower number: it has then been taken by a thread.
 */
void mla_cpu_finish(mla_cpu_progress *progress, int64_t count);
void mla_cpu_wait_for(const mla_cpu_progress *progress, int64_t count);

/*
 * The same for `groups` times ends[stages - 1] tasks, group after group: task i
 * of a group, ends[s - 1] <= i < ends[s], is of stage s and begins when all
 * stages before it are done in that group. Threads begin with a group of their
 * own, whose data then stay in their caches, and go on to help others.
 * progress: [groups], of any content.
 */
void mla_cpu_parallel_stages(int threads, int64_t groups, int stages,
                             const int64_t *ends, mla_cpu_progress *progress,
                             mla_cpu_task_fn *task, void *state);

/* The number of threads that OpenMP would use; 1 without it. */
int mla_cpu_default_threads(void);

#endif
