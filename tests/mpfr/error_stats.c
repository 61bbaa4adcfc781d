#include "error_stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The laws are to first order: their squares in 2^-53 are left out. And what
   is below the smallest numbers does not count. */
#define SECOND_ORDER (1 + 1e-6)
#define UNDERFLOW 0x1p-1060

static void keep(error_stats *stats, double units) {
  if (stats->count == stats->room) {
    stats->room = stats->room ? 2 * stats->room : 1024;
    stats->error = realloc(stats->error, (size_t)stats->room * sizeof(double));
    if (!stats->error) exit(3);
  }
  stats->error[stats->count++] = units;
}

static double distance(double got, mpfr_t exact) {
  mpfr_t difference;
  mpfr_init2(difference, EXACT_BITS);
  mpfr_sub_d(difference, exact, got, MPFR_RNDN);
  double error = fabs(mpfr_get_d(difference, MPFR_RNDN));
  mpfr_clear(difference);
  return error;
}

void error_stats_add(error_stats *stats, double got, mpfr_t exact,
                     const error_law *law) {
  if (mpfr_inf_p(exact)) {
    if (got != mpfr_get_d(exact, MPFR_RNDN)) stats->refused++;
    return;
  }
  double error = distance(got, exact) * 0x1p53;
  if (!(error <= law->expected * SECOND_ORDER + UNDERFLOW) ||
      !(error <= law->worst * SECOND_ORDER + UNDERFLOW))
    stats->refused++;
  if (isnan(error) || !(law->unit > 0)) return;
  keep(stats, error / law->unit);
  if (law->expected > 0)
    stats->expected_worst = fmax(stats->expected_worst, error / law->expected);
  if (law->worst > 0)
    stats->worst_worst = fmax(stats->worst_worst, error / law->worst);
  stats->law_units = fmax(stats->law_units, law->expected / law->unit);
}

static int ascending(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return a < b ? -1 : a > b;
}

int64_t error_stats_print(error_stats *stats, const char *operation,
                          const char *output) {
  int64_t n = stats->count;
  if (!n) {
    printf("%-10s %-4s no elements\n", operation, output);
    return stats->refused + 1;
  }
  qsort(stats->error, (size_t)n, sizeof(double), ascending);
  printf("%-10s %-4s %8lld  %8.3g %8.3g  %8.3g  %8.3g %8.3g  %lld\n", operation,
         output, (long long)n, stats->error[n / 2], stats->error[n - 1],
         stats->law_units, stats->expected_worst, stats->worst_worst,
         (long long)stats->refused);
  return stats->refused;
}

void error_stats_free(error_stats *stats) {
  free(stats->error);
}
