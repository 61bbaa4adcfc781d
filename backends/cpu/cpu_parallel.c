#include "cpu_parallel.h"

#ifdef _OPENMP
#include <omp.h>
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

int mla_cpu_default_threads(void) {
#ifdef _OPENMP
  int threads = omp_get_max_threads();
  return threads < 1 ? 1 : threads;
#else
  return 1;
#endif
}
