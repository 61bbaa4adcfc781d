/*
 * bench.h - how fast a backend is on a case, and what limits it.
 */
#ifndef MLA_TOOL_BENCH_H
#define MLA_TOOL_BENCH_H

#include "mla/mla.h"
#include "peak.h"

typedef enum bench_state {
  BENCH_TIMED,
  BENCH_UNSUPPORTED, /* the backend says no: `reason` */
  BENCH_WRONG,       /* its answer is: never timed */
  BENCH_ERROR        /* could not be measured */
} bench_state;

typedef struct bench_result {
  char *id;
  int state;
  char reason[240];
  char kernel[64];
  int runs;
  double seconds_min, seconds_median; /* of one call */
  double flops, bytes; /* a call's work, and what it must at least move */
  double ratio;        /* worst error / budget of the rows looked at */
} bench_result;

typedef struct bench_how {
  double seconds; /* to measure each case for, about */
  int64_t rotate; /* bytes of cache, or of a product's weights, to walk through
                     before any come again: more than the caches of the
                     machine hold; 0: none */
  int threads;    /* of the host that work; 0: a device does */
} bench_how;

/* Judges some rows of the answer, then measures. result->id is to be freed. */
void bench_case(mla_device *device, const char *id, const bench_how *how,
                bench_result *result);

/* Share of the peak that is nearer: of the two limits the one that binds. */
double bench_peak_share(const bench_result *r, const peaks *p);
/* By the backend's own product and copy, where memory is a device's. */
void peaks_of_device(mla_device *device, const bench_how *how, peaks *p);

/* bench_time.c: medians of one call's seconds. */
struct mla_place;
typedef struct bench_times {
  int runs;
  double min, median;
} bench_times;
/* `sets` argument lists that differ in the pages they use, taken in turn. */
mla_status bench_measure(mla_device *device, const mla_plan *plan,
                         const mla_args *sets, int count, void *workspace,
                         const bench_how *how, bench_times *times,
                         mla_error *err);

/* bench_sweeps.c: lists of cases by name; NULL past the last. */
typedef struct bench_sweep {
  const char *name, *title;
  const char *const *cases; /* NULL-terminated */
} bench_sweep;
const bench_sweep *bench_sweep_at(int i);
const bench_sweep *bench_sweep_named(const char *name);

/* bench_report.c */
typedef struct bench_run {
  const char *backend, *version, *device, *arch;
  int threads;        /* of the host; 0: a device's memory */
  peaks first, again; /* before and behind the cases */
  peaks peak;         /* the larger of both, which shares are of */
  bench_result *result;
  int count;
} bench_run;
void bench_print_begin(const bench_run *run);
void bench_print_result(const bench_run *run, const bench_result *r);
/* bench_peaks.c: the peaks measured once more. By how much did they move? 0.1:
   the larger one of a limit is 10 % above the other. */
void bench_peaks_again(bench_run *run, const peaks *again);
double bench_peaks_moved(const bench_run *run);
/* What they are now, and the shares of results that were printed before. */
void bench_print_again(const bench_run *run);
/* bench_table.c: what differs in length alone, side by side. */
void bench_print_table(const bench_run *run);
/* Texts, to be freed; NULL: no memory. */
char *bench_csv(const bench_run *run);
char *bench_json(const bench_run *run);
char *bench_html(const bench_run *run);

#endif
