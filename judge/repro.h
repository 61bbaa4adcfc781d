/*
 * repro.h - a failure in one file: inputs, what is expected, what was got,
 * and where. `mlacheck run --vectors FILE` judges any backend by it.
 *
 * Nothing private is in it: no path, no host, no user, no time.
 */
#ifndef MLA_REPRO_H
#define MLA_REPRO_H

#include "judge.h"

typedef struct mla_repro {
  const char *dir;
  mla_device *device;
  mla_status status; /* how writing ended */
  char path[1024];   /* DIR/decode_bf16-0123456789abcdef.safetensors */
  mla_error err;
} mla_repro;

/* For mla_judge_options.observer; context: a mla_repro. The verdict's look is
   written as it is then. Without a run (no outputs) `got` is left out. */
void mla_repro_observe(void *context, const mla_vector *v,
                       const mla_evidence *e, mla_verdict *verdict);

#endif
