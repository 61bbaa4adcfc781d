/*
 * explain.h - what a failure looks like.
 *
 * The vector is computed again with every planted fault that can touch its
 * operation (planted/planted.h), and the fault that gives the wrong values
 * that the backend gave names the class. What no values tell (a crash, memory
 * touched, runs that differ) is known by its traces. Nothing here asks the
 * backend again: what it got is in the evidence.
 */
#ifndef MLA_EXPLAIN_H
#define MLA_EXPLAIN_H

#include "judge.h"

typedef struct mla_explain_options {
  double work; /* at most for one vector, in steps of about a nanosecond;
                  0: 3e9 */
} mla_explain_options;

/* Fills verdict->look; cls stays "" when nothing fits. */
void mla_explain(const mla_vector *v, const mla_evidence *e,
                 const mla_explain_options *options, mla_verdict *verdict);

/*
 * Of a hearing that killed its process or did not end: signal is 0 when the
 * time was up. v is the vector, or NULL when it is not known.
 */
void mla_explain_death(const mla_vector *v, int signal, mla_look *look);

/* Does this failure look like `look` too? One probe; for shrinking. */
int mla_explain_alike(const mla_vector *v, const mla_evidence *e,
                      const mla_verdict *verdict, const mla_look *look);

/* "TAIL-NAN: 1 rows past seq_len are attended (reproduces 512 of 512)"; as
   snprintf. "" when there is no look. */
int mla_look_print(const mla_look *look, char *text, size_t size);

/* For mla_judge_options.observer; context: a mla_explain_options or NULL. */
void mla_explain_observe(void *context, const mla_vector *v,
                         const mla_evidence *e, mla_verdict *verdict);

/* ------------------------------------------------- between explain's files */

/* explain_traces.c: before and after values are looked at. 1: known. */
int mla_explain_traces(const mla_vector *v, const mla_evidence *e,
                       mla_verdict *verdict);
int mla_explain_places(const mla_vector *v, const mla_evidence *e,
                       mla_verdict *verdict);
/* Sets the class; 1. */
int mla_look_set(mla_look *look, const char *cls, const char *what);

#endif
