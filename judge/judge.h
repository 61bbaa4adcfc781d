/*
 * judge.h - one vector, one backend, one verdict.
 */
#ifndef MLA_JUDGE_H
#define MLA_JUDGE_H

#include "expect.h"
#include "generate.h"
#include "verdict.h"

/* What a hearing that ended in a failure had before it; borrowed. */
typedef struct mla_evidence {
  const mla_answer *answer;
  const mla_limits *limits;
  const mla_expectation *expectation;
  const unsigned char *got[MLA_T_COUNT]; /* outputs after the first run */
  unsigned char poison; /* of workspace and outputs in that run */
  /* When nothing finite came out where it is wrong: the same call, and what
     came out, with zeros in what must not be read; else NULL. */
  const mla_vector *calm;
  const unsigned char *calm_got[MLA_T_COUNT];
} mla_evidence;

/* Called at the end of every hearing that fails, with what came out; `got` is
   NULL when there was no run. May add to the verdict. */
typedef struct mla_judge_observer {
  void (*failed)(void *context, const mla_vector *v, const mla_evidence *e,
                 mla_verdict *verdict);
  void *context;
} mla_judge_observer;

typedef struct mla_judge_options {
  const char *keep;  /* folder for the reference's answers, or NULL */
  mla_poison poison; /* of workspace, bands and outputs */
  int repeat;        /* run again, with other poison */
  int guards;        /* pages round tensors that kill who touches them, and
                        inputs that nobody can write: in a child process */
  int alone;         /* no call of the judge's own choice before it */
  int has_digest;    /* the expected values must have this digest */
  uint64_t digest;
  const mla_judge_observer *observer; /* or NULL */
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
