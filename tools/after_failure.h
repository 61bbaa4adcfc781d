/*
 * after_failure.h - what is done with a case that failed: shrinking it, and
 * writing it down.
 */
#ifndef MLA_TOOL_AFTER_FAILURE_H
#define MLA_TOOL_AFTER_FAILURE_H

#include "docket.h"

#define MOST_SHRUNK 3 /* in one run, one of each class */
#define MOST_WRITTEN 20

typedef struct failure_care {
  int shrink;
  const char *repro; /* folder, or NULL */
  const char *keep;
  int32_t shrunk, written;
  char classes[MOST_SHRUNK][24]; /* of what was shrunk */
} failure_care;

/* Is there anything to do for record r of item i? */
int after_failure_wanted(const failure_care *care, const mla_docket *docket,
                         int32_t i, const mla_record *r);

/* Fills smallest and repro of record r of item i, when it is a failure. The
   backend is called in this process. */
void after_failure(failure_care *care, mla_device *device,
                   const mla_docket *docket, int32_t i, mla_record *r);

/* From now on none that looks like this one is shrunk. */
void after_failure_note(failure_care *care, const mla_verdict *verdict);
/* Is none known that looks like it, and room for one more? */
int after_failure_is_new(const failure_care *care, const mla_verdict *verdict);

#endif
