/*
 * truth_distance.h - how far one array is from another.
 */
#ifndef MLA_TRUTH_DISTANCE_H
#define MLA_TRUTH_DISTANCE_H

#include "mla/mla.h"

/* Zeroed at first. Largest difference, NaN being infinite; largest expected
   value. */
typedef struct mla_distance {
  double difference, largest;
} mla_distance;

void mla_measure(mla_distance *d, double got, double expected);
/* The difference over the largest value. */
double mla_relative(const mla_distance *d);
/* That of two dense tensors of one shape; got is divided by `scale`. */
double mla_rows_distance(const mla_tensor *got, const mla_tensor *expected,
                         double scale);

#endif
