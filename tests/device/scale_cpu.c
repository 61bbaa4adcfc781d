/*
 * scale_cpu.c - how the CPU backend scales: each case by each number of
 * threads, one beside the other in one run, and what share that is of as many
 * threads' peak.
 *
 *   scale_cpu LEVEL SECONDS THREADS[,THREADS...] CASE...
 *
 * A line for each case and number of threads: GFLOP/s and GB/s of the shortest
 * call and of the median one, over all turns. Nothing is judged here: mlacheck
 * does that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "generate.h"
#include "mla/mla.h"
#include "peak.h"
#include "place.h"

enum { TURNS = 4, MOST = 4000, COUNTS = 16 };

typedef struct series {
  double seconds[MOST];
  int runs;
} series;

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void must(mla_status status, const mla_error *err) {
  if (status == MLA_OK) return;
  fprintf(stderr, "%s\n", err->message);
  exit(3);
}

/* A few calls by so many threads, until their time is over. */
static void one_turn(const mla_vector *v, const char *level, int threads,
                     double seconds, series *s) {
  char options[64];
  mla_error err = mla_error_init();
  mla_device *device = NULL;
  mla_plan *plan = NULL;
  mla_place place;
  mla_limits limits = mla_vector_limits(v);
  snprintf(options, sizeof options, "threads=%d;isa=%s", threads, level);
  must(mla_open("cpu", 0, options, &device, &err), &err);
  must(mla_plan_create(device, &v->problem, &limits, &plan, &err), &err);
  const mla_answer *answer = mla_plan_answer(plan);
  must(mla_place_new(device, v, answer, 0, &place, &err), &err);
  must(mla_place_fill(&place, 0, MLA_SIDE_START, &err), &err);
  mla_args args = mla_place_args(&place);
  double total = 0;
  for (int i = -1; (i < 2 || total < seconds) && s->runs < MOST; i++) {
    double start = seconds_now(2);
    must(mla_run(plan, &args, mla_place_workspace(&place),
                 answer->workspace_bytes, NULL, &err),
         &err);
    if (i < 0) continue; /* brings caches and threads to life */
    total += s->seconds[s->runs++] = seconds_now(2) - start;
  }
  mla_place_free(&place);
  mla_plan_free(plan);
  mla_close(device);
}

static void report(const char *id, const mla_case *c, int threads, series *s,
                   const peaks *p) {
  double flops = mla_case_flops(c), bytes = mla_case_bytes(c);
  qsort(s->seconds, (size_t)s->runs, sizeof *s->seconds, by_size);
  double best = s->seconds[0], middle = s->seconds[s->runs / 2];
  printf(
      "%-50s %2d threads %8.1f (%8.1f) GFLOP/s %3.0f %%  %6.1f (%6.1f) GB/s "
      "%3.0f %%\n",
      id, threads, flops / best * 1e-9, flops / middle * 1e-9,
      flops / best / p->flops * 100, bytes / best * 1e-9, bytes / middle * 1e-9,
      bytes / best / p->bytes * 100);
  fflush(stdout);
}

static void scale(const char *id, const char *level, double seconds,
                  const int *threads, int counts, const peaks *p) {
  static series s[COUNTS];
  mla_error err = mla_error_init();
  mla_case c;
  mla_vector v;
  mla_vector_init(&v);
  must(mla_case_parse(id, &c, &err), &err);
  must(mla_generate_large(&c, 1, &v, &err), &err);
  memset(s, 0, sizeof s);
  for (int turn = 0; turn < TURNS; turn++)
    for (int i = 0; i < counts; i++)
      one_turn(&v, level, threads[i], seconds / TURNS, &s[i]);
  for (int i = 0; i < counts; i++) report(id, &c, threads[i], &s[i], &p[i]);
  mla_vector_free(&v);
}

int main(int argc, char **argv) {
  int threads[COUNTS], counts = 0;
  peaks p[COUNTS];
  if (argc < 5) return 2;
  for (char *at = argv[3]; *at && counts < COUNTS; at += *at == ',')
    threads[counts++] = (int)strtol(at, &at, 10);
  for (int i = 0; i < counts; i++) {
    peaks_of_host(threads[i], argv[1], &p[i]);
    printf("%s, %d threads: %.0f GFLOP/s, %.1f GB/s\n", argv[1], threads[i],
           p[i].flops * 1e-9, p[i].bytes * 1e-9);
  }
  for (int i = 4; i < argc; i++)
    scale(argv[i], argv[1], atof(argv[2]), threads, counts, p);
  return 0;
}
