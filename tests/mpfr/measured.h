/*
 * measured.h - what the programs of the error measurement share.
 */
#ifndef MEASURED_H
#define MEASURED_H

#include "error_stats.h"
#include "fixed_case.h"

/* The answers of the reference, rows of token * H + head. */
typedef struct answers {
  int64_t rows, width;
  double *out; /* [rows][width] */
  double *lse; /* [rows]; NaN where there is none */
} answers;

/* Unrounded, by mla_expect. */
answers answers_expected(const fixed_case *c);
/* By mla_oracle_run, for a case in f64: in splits or chunks of c->limits. */
answers answers_run(fixed_case *c);
void answers_free(answers *a);

/* All elements of an attention case; parts as in error_law_row(). */
void measure_attention(const fixed_case *c, const answers *got, int64_t parts,
                       error_stats *out, error_stats *lse);

/* Each adds its cases and prints its rows; the number of refused elements. */
int64_t measure_decode(void);
int64_t measure_prefill(void);
int64_t measure_merge(void);
int64_t measure_products(void);

#endif
