/*
 * selftest.h - the judge judged: planted faults, one child process each.
 */
#ifndef MLA_TOOL_SELFTEST_H
#define MLA_TOOL_SELFTEST_H

#include "docket.h"
#include "planted.h"

/* One backend on the cases of a profile. */
typedef struct selftest_job {
  const char *backend;
  char options[96]; /* "fault=heads-drop;a=6", or "" */
  int32_t fault;    /* planted_fault_id; PLANTED_NONE: must pass everything */
  int variant;      /* with other parameters than the probes start from */
} selftest_job;

typedef struct selftest_result {
  int32_t judged, unsupported;
  int32_t caught;   /* the item that failed, or -1 */
  int32_t unjudged; /* the item that could not be judged, or -1: no verdict */
  int32_t kind;     /* its verdict */
  int32_t died;     /* mla_death of the process that judged it */
  int32_t signal;   /* that killed it */
  int32_t ended;    /* all cases were judged, or one was caught */
  double worst;     /* error / budget of what passed */
  mla_look look;
  char reason[160];
} selftest_result;

typedef struct selftest_run {
  const mla_docket *docket;
  const char *keep; /* folder of the reference's answers */
  double patience;  /* factor on the time that a case may take */
  int in_order;     /* cases as the docket has them, as `run` takes them */
} selftest_run;

/*
 * Judges in `jobs` children at a time; result[i] belongs to job[i]. A case
 * that hunts the class of the fault comes first, cheap ones before dear ones,
 * unless run->in_order; a job ends at its first failure. done(context, i) after
 * each, in order of ending. 0: no memory.
 */
int selftest_judge(const selftest_run *run, const selftest_job *job,
                   selftest_result *result, int32_t count, int32_t jobs,
                   void (*done)(void *context, int32_t i), void *context);

#endif
