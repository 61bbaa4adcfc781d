/*
 * peak_host.c - the host's peaks.
 *
 * Sixteen vectors of sums, each a chain of its own: enough to hide the
 * latency of a multiply-add. Which vectors is asked of the processor at run
 * time, so that one binary measures every machine.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_X86 1
#include <immintrin.h>
#endif

#include "peak.h"

double seconds_now(int threads) {
  struct timespec t;
  clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int peak_threads(void) {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

/* ------------------------------------------------------------ multiply-add */

/* Short pieces, and many: on a busy machine some are not disturbed. */
enum { CHAINS = 16, PLAIN = 4, REPEATS = 20 };
#define ENOUGH                                                  \
  0.01 /* seconds of one measurement; an emulator has them soon \
        */

static float plain_chains(int64_t steps) {
  float s[CHAINS * PLAIN];
  for (int i = 0; i < CHAINS * PLAIN; i++) s[i] = (float)i;
  for (int64_t k = 0; k < steps; k++)
    for (int i = 0; i < CHAINS * PLAIN; i++) s[i] = s[i] * 0.999f + 1e-3f;
  return s[0];
}

#ifdef HAS_X86
enum { AVX2_CHAINS = 12 };
__attribute__((target("avx2,fma"))) static float avx2_chains(int64_t steps) {
  __m256 s[AVX2_CHAINS];
  __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(1e-3f);
  float out[8];
  for (int i = 0; i < AVX2_CHAINS; i++) s[i] = _mm256_set1_ps((float)i);
  for (int64_t k = 0; k < steps; k++)
    for (int i = 0; i < AVX2_CHAINS; i++) s[i] = _mm256_fmadd_ps(s[i], x, y);
  for (int i = 1; i < AVX2_CHAINS; i++) s[0] = _mm256_add_ps(s[0], s[i]);
  _mm256_storeu_ps(out, s[0]);
  return out[0];
}

__attribute__((target("avx512f"))) static float avx512_chains(int64_t steps) {
  __m512 s[CHAINS];
  __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(1e-3f);
  float out[16];
  for (int i = 0; i < CHAINS; i++) s[i] = _mm512_set1_ps((float)i);
  for (int64_t k = 0; k < steps; k++)
    for (int i = 0; i < CHAINS; i++) s[i] = _mm512_fmadd_ps(s[i], x, y);
  for (int i = 1; i < CHAINS; i++) s[0] = _mm512_add_ps(s[0], s[i]);
  _mm512_storeu_ps(out, s[0]);
  return out[0];
}
#endif

typedef struct chain_kind {
  const char *name;
  float (*run)(int64_t steps);
  int lanes; /* sums in all chains */
} chain_kind;

/* What a level is not above, so that its peak is not another's. */
static chain_kind widest(const char *level) {
  chain_kind kind = {"plain C", plain_chains, CHAINS * PLAIN};
#ifdef HAS_X86
  int plain = level && strcmp(level, "portable") == 0;
  int avx2 = level && strcmp(level, "avx2") == 0;
  if (plain) return kind;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    kind = (chain_kind){"AVX2", avx2_chains, AVX2_CHAINS * 8};
  if (__builtin_cpu_supports("avx512f") && !avx2)
    kind = (chain_kind){"AVX-512", avx512_chains, CHAINS * 16};
#else
  (void)level;
#endif
  return kind;
}

/* FLOP per second of so many steps; *seconds is what they took. */
static double chain_rate(const chain_kind *kind, int threads, int64_t steps,
                         double *seconds) {
  double start = seconds_now(threads), sum = 0;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
#endif
  for (int t = 0; t < threads; t++) sum += (double)kind->run(steps);
  *seconds = seconds_now(threads) - start;
  if (!(sum >= 0) || *seconds <= 0) return 0; /* so that it is computed */
  return (double)threads * kind->lanes * 2.0 * (double)steps / *seconds;
}

/* Steps that one thread has work in for long enough, by its own processor time:
   where others have the processor, time passes without any work. */
static int64_t enough_steps(const chain_kind *kind) {
  struct timespec t;
  double start, seconds, sum = 0;
  int64_t steps = 1000;
  do {
    steps *= 2;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    start = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
    sum += (double)kind->run(steps);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    seconds = (double)t.tv_sec + (double)t.tv_nsec * 1e-9 - start;
  } while (seconds < ENOUGH && sum >= 0);
  return steps;
}

static double multiply_adds(const chain_kind *kind, int threads) {
  double best = 0, seconds = 0;
  int64_t steps = enough_steps(kind);
  for (int i = 0; i < REPEATS; i++) {
    double rate = chain_rate(kind, threads, steps, &seconds);
    if (rate > best) best = rate;
  }
  return best;
}

/* ------------------------------------------------------------------- reads */

enum { READ_BYTES = 512 << 20, BLOCK = 1 << 16, READS = 6 };

static double sum_of(const double *x, int64_t n) {
  double s[8] = {0};
  for (int64_t i = 0; i < n; i += 8)
    for (int k = 0; k < 8; k++) s[k] += x[i + k];
  return s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}

static double reads(int threads) {
  int64_t count = READ_BYTES / (int64_t)sizeof(double), blocks = count / BLOCK;
  double *x = malloc(READ_BYTES), best = 0;
  if (!x) return 0;
    /* Touched by the threads that read it. */
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static)
#endif
  for (int64_t b = 0; b < blocks; b++)
    memset(x + b * BLOCK, 0, BLOCK * sizeof *x);
  double total = 0;
  for (int i = 0; i < READS && total < 1; i++) {
    double start = seconds_now(threads), sum = 0;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static) \
    reduction(+ : sum)
#endif
    for (int64_t b = 0; b < blocks; b++) sum += sum_of(x + b * BLOCK, BLOCK);
    double seconds = seconds_now(threads) - start;
    double rate = seconds > 0 ? (double)READ_BYTES / seconds : 0;
    total += seconds;
    if (rate > best && sum >= 0) best = rate;
  }
  free(x);
  return best;
}

void peaks_of_host(int threads, const char *level, peaks *p) {
  chain_kind kind = widest(level);
  memset(p, 0, sizeof *p);
  if (threads < 1) threads = peak_threads();
  p->flops = multiply_adds(&kind, threads);
  p->bytes = reads(threads);
  snprintf(p->flops_by, sizeof p->flops_by,
           "f32 multiply-adds, %s, threads: %d", kind.name, threads);
  snprintf(p->bytes_by, sizeof p->bytes_by, "reading 512 MiB, threads: %d",
           threads);
}
