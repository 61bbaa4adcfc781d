/*
 * after_failure.h - what is done with a case that failed: shrinking it, and
 * writing it down.
 */
#ifndef MLA_TOOL_AFTER_FAILURE_H
#define MLA_TOOL_AFTER_FAILURE_H

#include "report.h"

#define MOST_SHRUNK 3 /* in one run, one of each class */
#define MOST_WRITTEN 20

typedef struct failure_care {
  int shrink;
  const char *repro; /* folder, or NULL */
  const char *keep;
  int32_t shrunk, written;
  char classes[MOST_SHRUNK][24]; /* of what was shrunk */
} failure_care;

/* Fills smallest and repro of record i, when it is a failure. */
void after_failure(failure_care *care, const run_state *run, int32_t i);

#endif
