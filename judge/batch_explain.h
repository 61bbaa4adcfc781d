/*
 * batch_explain.h - which planted mistake of batch building gives the arrays
 * that somebody got.
 */
#ifndef MLA_BATCH_EXPLAIN_H
#define MLA_BATCH_EXPLAIN_H

#include "batch_case.h"
#include "verdict.h"

/* Fills *look; cls stays "" when no mistake fits. */
void mla_batch_explain(const mla_batch_case *c,
                       const mla_batch_answer *expected,
                       const mla_batch_answer *got, mla_look *look);

#endif
