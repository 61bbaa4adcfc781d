/*
 * sample.h - which rows of a big case the reference answers.
 */
#ifndef MLA_SAMPLE_H
#define MLA_SAMPLE_H

#include "vector.h"

/* Rows of an output, ascending. */
typedef struct mla_sample {
  int64_t *row;  /* NULL: every row there is; freed by the caller */
  int64_t count; /* how many are answered */
  int64_t total; /* how many must be written */
} mla_sample;

/* Rows of answers that cost about most_flops together. */
mla_status mla_sample_rows(const mla_vector *v, double most_flops,
                           mla_sample *sample, mla_error *err);
/* Where all would cost more, four rows of each of four tokens: what a benchmark
   looks at before it times. A request without such a token costs nothing. */
mla_status mla_sample_few(const mla_vector *v, double most_flops,
                          mla_sample *sample, mla_error *err);

#endif
