/*
 * compare_state.h - what is at hand while an output is compared.
 */
#ifndef MLA_COMPARE_STATE_H
#define MLA_COMPARE_STATE_H

#include "compare.h"
#include "region.h"

typedef struct comparison {
  const mla_vector *v;
  int32_t slot, view_index;
  const mla_tensor *t;
  const mla_numerics *numerics;
  const unsigned char *got;
  unsigned char poison;
  int64_t extent, live;
  mla_expected_view view;
  double *budget;
  unsigned char *written; /* a byte for each of the tensor's: is output */
  double error2, size2;
  mla_region region;
  mla_output_verdict *o;
} comparison;

#endif
