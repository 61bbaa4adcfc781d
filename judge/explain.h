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

#define MLA_EXPLAIN_KNOWN 8

/*
 * What the failures of one run looked like, and what may still be spent on
 * explaining, in steps of about a nanosecond. Zeroed: 3e9 for one vector,
 * 3e10 for all. Failures of one backend are tried against what the others
 * looked like first.
 */
typedef struct mla_explainer {
  double each, all, spent;
  int32_t known_count;
  mla_look known[MLA_EXPLAIN_KNOWN];
} mla_explainer;

/* Fills verdict->look; cls stays "" when nothing fits. explainer may be
   NULL. */
void mla_explain(const mla_vector *v, const mla_evidence *e,
                 mla_explainer *explainer, mla_verdict *verdict);

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

/* For mla_judge_options.observer; context: a mla_explainer or NULL. */
void mla_explain_observe(void *context, const mla_vector *v,
                         const mla_evidence *e, mla_verdict *verdict);

/* ------------------------------------------------- between explain's files */

/* explain_traces.c: before and after values are looked at. 1: known. */
int mla_explain_traces(const mla_vector *v, const mla_evidence *e,
                       mla_verdict *verdict);
int mla_explain_places(const mla_vector *v, const mla_evidence *e,
                       mla_verdict *verdict);
/* Of outputs with gaps of gigabytes, which are not computed again. */
int mla_explain_vast(const mla_vector *v, const mla_evidence *e,
                     mla_verdict *verdict);
/* explain_words.c: sets the class; 1. */
int mla_look_set(mla_look *look, const char *cls, const char *what);

#endif
