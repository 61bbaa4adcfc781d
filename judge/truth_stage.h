/*
 * truth_stage.h - holding every operation inside a layer to the reference.
 */
#ifndef MLA_TRUTH_STAGE_H
#define MLA_TRUTH_STAGE_H

#include "layer.h"

/* What has been seen so far. route is set by whoever drives the layer. */
typedef struct mla_stage_watch {
  char route[64];
  double worst;   /* error / budget; infinite for NaN and wrong bytes */
  char where[96]; /* "decode of decode, page 16, splits 7" */
  int64_t count;
} mla_stage_watch;

/*
 * A mla_layer_observer; context is a mla_stage_watch. The reference gets the
 * same inputs, the budget comes from what the backend declares.
 */
mla_status mla_stage_observe(void *context, const mla_problem *problem,
                             const mla_answer *answer, const mla_args *args,
                             mla_error *err);

#endif
