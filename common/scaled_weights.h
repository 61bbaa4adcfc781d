/*
 * scaled_weights.h - weights in e4m3 with a scale for each block of 128 x 128,
 * as the numbers they stand for.
 */
#ifndef MLA_SCALED_WEIGHTS_H
#define MLA_SCALED_WEIGHTS_H

#include "mla/mla.h"

#define MLA_WEIGHT_BLOCK 128

/* Must stay where it was filled: args points into it. */
typedef struct mla_scaled_weights {
  mla_args args; /* those given, with weights in f64 */
  mla_tensor tensor[MLA_T_COUNT];
  double *memory[3];
} mla_scaled_weights;

/* Without MLA_BLOCK_SCALED the arguments as they are. Free it, whatever is
   returned. */
mla_status mla_weights_widen(const mla_problem *problem, const mla_args *args,
                             mla_scaled_weights *weights, mla_error *err);
void mla_weights_free(mla_scaled_weights *weights);

#endif
