/*
 * fixed_steps.h - steps with fixed contents: of batch building, of ranks, and
 * of compositions over the reference.
 */
#ifndef FIXED_STEPS_H
#define FIXED_STEPS_H

#include "fixed_case.h"
#include "mla/compose.h"
#include "mla/context_parallel.h"

/* ------------------------------------------------------------------ batches */

enum { FIXED_BATCHES = 24 };

/* Requests drawn by number; pads, and what follows the step. */
typedef struct fixed_batch {
  mla_batch_input input;
  mla_batch_next next;
  int32_t context[FIXED_MAX_REQUESTS], rows[FIXED_MAX_REQUESTS];
  int32_t kept[FIXED_MAX_REQUESTS], next_rows[FIXED_MAX_REQUESTS];
  int32_t ids[FIXED_MAX_REQUESTS * 32], tokens[256];
  int64_t starts[FIXED_MAX_REQUESTS + 1];
  int64_t pad_requests, pad_tokens;
  mla_batch batch; /* in `memory` */
  void *memory;
} fixed_batch;

/* Built and padded; ends the program when that fails. */
void fixed_batch_new(fixed_batch *b, int number);
/* The next step: kept rows, lengths and tokens drawn too. */
void fixed_batch_advance(fixed_batch *b);
void fixed_batch_free(fixed_batch *b);

/* ------------------------------------------------------------- compositions */

enum { FIXED_COMPOSED = 6 };

typedef struct fixed_composed {
  const char *name;
  fixed_case c; /* the one operation; outputs are the composition's */
  mla_composition what;
  mla_step step;
} fixed_composed;

/* Made and run on the reference. */
void fixed_composed_new(fixed_composed *x, int number);
void fixed_composed_free(fixed_composed *x);

#endif
