/*
 * run_judge.h - judging a docket: in child processes, or in this one.
 */
#ifndef MLA_TOOL_RUN_JUDGE_H
#define MLA_TOOL_RUN_JUDGE_H

#include "crew.h"
#include "report.h"

typedef struct run_how {
  int32_t jobs;   /* children at a time; 0: judge in this process */
  double timeout; /* seconds for a case; 0: by its size */
  int shrink;     /* failures */
  const char *repro, *keep;
  int text; /* print records as they stand */
  /* Of run_judge_open's docket, for run_judge of the same: the child that
     looked at the device. NULL: it ends when it has looked. */
  crew_member *first;
} run_how;

/*
 * Opens the target's device where it is needed, and says so in run->target.
 * An exit code; on stderr what went wrong.
 */
int run_judge_open(const char *command, target *t, const mla_docket *docket,
                   const run_how *how);

/* Fills run->record and run->done, in order, whatever happens to a case. 0: no
   memory. */
int run_judge(run_state *run, const run_how *how);

#endif
