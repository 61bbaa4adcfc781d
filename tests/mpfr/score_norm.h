/*
 * score_norm.h - the norm of spec.md, section 4, and the factors before it.
 */
#ifndef SCORE_NORM_H
#define SCORE_NORM_H

#include <stddef.h>
#include <stdint.h>

#define LAMBDA 6.0
#define MU 3.0

/* Keys whose scores lie within 2^-9 of each other round alike. */
typedef struct score_bin {
  double bin;
  int64_t j;
} score_bin;

/* Zeroed memory; ends the program when there is none. */
void *zeros(int64_t count, size_t size);

/* Keys in ascending order of bin, from how far each is below the largest.
   Freed by the caller. */
score_bin *score_bins(const double *below, int64_t n);

/* ||x||, x_j = weight[j] * value[j * stride]; value NULL: 1. */
double score_norm(const score_bin *order, int64_t n, const double *weight,
                  const double *value, int64_t stride);

#endif
