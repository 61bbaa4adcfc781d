/*
 * bench_peaks.c - peaks before and behind the cases. On a busy machine either
 * may be too low, and then shares are too high: the larger one counts, and by
 * how much they moved tells what the shares are worth.
 */
#include <stdio.h>

#include "bench.h"

static double moved(double first, double again) {
  double low = first < again ? first : again;
  double high = first < again ? again : first;
  return low > 0 ? high / low - 1 : 0;
}

double bench_peaks_moved(const bench_run *run) {
  double flops = moved(run->first.flops, run->again.flops);
  double bytes = moved(run->first.bytes, run->again.bytes);
  return flops > bytes ? flops : bytes;
}

void bench_peaks_again(bench_run *run, const peaks *again) {
  run->again = *again;
  if (again->flops > run->peak.flops) run->peak.flops = again->flops;
  if (again->bytes > run->peak.bytes) run->peak.bytes = again->bytes;
}

static void print_peak(double first, double again, const char *unit) {
  if (first <= 0 || again <= 0) return;
  printf("  %.1f %s (%+.1f %%)", again * 1e-9, unit, 100 * (again / first - 1));
}

/* Shares are shown in full percents, of peaks that are about as exact. */
static int is_other(const bench_run *run) {
  return run->peak.flops > 1.01 * run->first.flops ||
         run->peak.bytes > 1.01 * run->first.bytes;
}

void bench_print_again(const bench_run *run) {
  printf("\npeaks behind the cases:");
  print_peak(run->first.flops, run->again.flops, "GFLOP/s");
  print_peak(run->first.bytes, run->again.bytes, "GB/s");
  printf("\n");
  if (bench_peaks_moved(run) > 0.1)
    printf("The machine was busy, or changed its clock: measure again.\n");
  if (!is_other(run)) return;
  printf("Shares of the larger ones:\n");
  for (int i = 0; i < run->count; i++)
    if (run->result[i].state == BENCH_TIMED)
      printf("%4.0f %%  %s\n",
             100 * bench_peak_share(&run->result[i], &run->peak),
             run->result[i].id);
}
