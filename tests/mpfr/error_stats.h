/*
 * error_stats.h - errors of one operation: typical, worst, against the laws.
 */
#ifndef ERROR_STATS_H
#define ERROR_STATS_H

#include "error_law.h"

typedef struct error_stats {
  double *error;         /* error / (2^-53 unit) of every element */
  int64_t count, room;   /* elements; NaN never counts */
  double expected_worst; /* largest error / expected law */
  double worst_worst;    /* largest error / worst-case law */
  double law_units;      /* largest expected law, in units */
  int64_t refused;       /* elements beyond a law, or not a number */
} error_stats;

/*
 * One element: what the reference says of an exact number. Infinities must
 * agree in sign.
 */
void error_stats_add(error_stats *stats, double got, mpfr_t exact,
                     const error_law *law);
/* One row of the table. Returns the number of refused elements. */
int64_t error_stats_print(error_stats *stats, const char *operation,
                          const char *output);
void error_stats_free(error_stats *stats);

#endif
