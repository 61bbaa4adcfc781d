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

/* The number of threads that OpenMP would use; 1 without it. */
int mla_cpu_default_threads(void);

#endif
