#include "cpu_parallel.h"

#ifdef _OPENMP
#include <omp.h>
#endif

void mla_cpu_parallel(int threads, int64_t count, mla_cpu_task_fn *task,
                      void *state) {
#ifdef _OPENMP
  /* Always the same team: where its size changes, threads end and begin, which
     takes longer than a step of decode. */
  if (threads > 1 && count > 1) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t i = 0; i < count; i++) task(state, i, omp_get_thread_num());
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
