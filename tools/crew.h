/*
 * crew.h - judging in child processes: a verdict, whatever happens there.
 *
 * A member of a crew is a child with the backend open, which judges items of
 * the docket one after another. When it dies, that is the verdict, and the
 * next item gets a fresh child. When it dies of touching memory next to a
 * tensor (guard.h), the item is judged once more with open zones, to see
 * whether that was a read or a write, and whether the values are right.
 */
#ifndef MLA_TOOL_CREW_H
#define MLA_TOOL_CREW_H

#include "after_failure.h"
#include "docket.h"
#include "explain.h"
#include "worker.h"

#define CREW_MOST 32 /* members */

typedef enum crew_task {
  CREW_JUDGE, /* an item */
  CREW_CASE,  /* a case that is in no docket */
  CREW_CARE   /* after_failure of an item */
} crew_task;

typedef struct crew_question {
  int32_t task, item;
  mla_case c; /* CREW_CASE */
  uint64_t seed;
  int32_t explain;         /* by the explainer, which comes back */
  mla_explainer explainer; /* JUDGE */
  failure_care care;       /* CARE; comes back */
  mla_record record;       /* CARE: of the item */
  int32_t alone;           /* without other calls before it */
  int32_t open;            /* no guards: crew's own */
} crew_question;

typedef struct crew_answer {
  mla_record record;
  mla_explainer explainer;
  failure_care care;
  /* Of the device; when the child has just begun. */
  mla_status opened;
  int32_t described;
  mla_device_info info;
  mla_error err;
} crew_answer;

/* Same for all members of a crew; borrowed. */
typedef struct crew {
  const mla_docket *docket;
  const char *backend, *options;
  int32_t device;
  const char *keep; /* folder for the reference's answers, or NULL */
  double timeout;   /* seconds for a case; 0: by its size */
  double patience;  /* factor on that by size */
  int32_t members;  /* that work beside each other */
} crew;

typedef struct crew_member {
  const crew *of;
  worker w;
  int busy, begun, twice; /* with a question; open; second attempt */
  crew_question question;
  worker_end end; /* how the first attempt ended */
} crew_member;

/*
 * Starts a child and waits until its device is open; *answer has the device.
 * MLA_NOT_AVAILABLE: no process, or it died of it. For a first look: asking
 * starts a child where none is.
 */
mla_status crew_open(crew_member *m, const crew *of, crew_answer *answer,
                     mla_error *err);

/* A child when there is none; the question, and the time it may take. */
void crew_ask(crew_member *m, const crew *of, const crew_question *question);
/* Waits until one has news, or is late. */
void crew_wait(const crew_member *const *m, int32_t count);
/* Does not wait. 1: *answer stands, the member is free. */
int crew_poll(crew_member *m, crew_answer *answer);
/* All three at once. */
void crew_answer_now(crew_member *m, const crew *of,
                     const crew_question *question, crew_answer *answer);
void crew_dismiss(crew_member *m);

#endif
