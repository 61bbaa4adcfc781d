/*
 * judge.h - one vector, one backend, one verdict.
 */
#ifndef MLA_JUDGE_H
#define MLA_JUDGE_H

#include "generate.h"
#include "verdict.h"

typedef struct mla_judge_options {
  const char *keep;  /* folder for the reference's answers, or NULL */
  mla_poison poison; /* of workspace, bands and outputs */
  int repeat;        /* run again where determinism is declared */
  int has_digest;    /* the expected values must have this digest */
  uint64_t digest;
} mla_judge_options;

mla_judge_options mla_judge_defaults(void);

/*
 * Asks, plans, runs, compares. Never fails: whatever happens is the verdict.
 * A backend's query that refuses a lawful problem with an error, a yes
 * without a run, numbers declared beyond the rules: all are failures.
 */
void mla_judge_vector(mla_device *device, const mla_vector *v,
                      const mla_judge_options *options, mla_verdict *verdict);

#endif
