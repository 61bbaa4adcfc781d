/*
 * selftest_batch.h - the planted faults of batch building, each against the
 * cases of profile batch.
 */
#ifndef MLA_TOOL_SELFTEST_BATCH_H
#define MLA_TOOL_SELFTEST_BATCH_H

#include "options.h"

typedef struct selftest_batch {
  int32_t faults, caught;
  int32_t variants, explained; /* with other parameters: as their own class */
  int clean;                   /* without a fault every case passes */
} selftest_batch;

/* Is it the name of a fault or a class? */
int selftest_batch_knows(const char *name);
/* Plants them and prints a line for each. */
void selftest_batch_run(const text_list *only, int verbose,
                        selftest_batch *sums);

#endif
