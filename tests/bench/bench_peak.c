/*
 * Ten vectors of sums, each a chain of its own: enough to hide the latency of a
 * multiply-add wherever this runs. Built with the flags of AVX2 and FMA on
 * x86-64, at the baseline elsewhere.
 */
#include "bench_peak.h"

#include <stdint.h>
#include <time.h>

#ifdef __FMA__
#include <immintrin.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

double bench_seconds(int threads) {
  struct timespec t;
  if (threads == 1) return (double)clock() / CLOCKS_PER_SEC;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { chains = 10, width = 8, steps = 4000000 };

#ifdef __FMA__
static float multiply_add(void) {
  __m256 s[chains], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(1e-3f);
  float out[width];
  for (int i = 0; i < chains; i++) s[i] = _mm256_set1_ps((float)i);
  for (int64_t k = 0; k < steps; k++)
    for (int i = 0; i < chains; i++) s[i] = _mm256_fmadd_ps(s[i], x, y);
  for (int i = 1; i < chains; i++) s[0] = _mm256_add_ps(s[0], s[i]);
  _mm256_storeu_ps(out, s[0]);
  return out[0];
}
#else
static float multiply_add(void) {
  float s[chains * width];
  for (int i = 0; i < chains * width; i++) s[i] = (float)i;
  for (int64_t k = 0; k < steps; k++)
    for (int i = 0; i < chains * width; i++) s[i] = s[i] * 0.999f + 1e-3f;
  return s[0];
}
#endif

static double once(int threads) {
  volatile float keep = 0.0f;
  double start = bench_seconds(threads);
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads)
#endif
  for (int t = 0; t < threads; t++) {
    float x = multiply_add();
    if (x < 0.0f) keep = x;
  }
  (void)keep;
  return (double)threads * chains * width * 2.0 * steps /
         (bench_seconds(threads) - start);
}

double bench_peak_flops(int threads) {
  double best = 0.0;
  for (int i = 0; i < 5; i++) {
    double x = once(threads);
    best = x > best ? x : best;
  }
  return best;
}
