/*
 * batch_judge.h - verdicts on builders of batches: the library's own, and
 * whoever wrote answers.
 */
#ifndef MLA_BATCH_JUDGE_H
#define MLA_BATCH_JUDGE_H

#include "batch_case.h"
#include "verdict.h"

/*
 * The library's own builder by the case. `expected` is a file's; NULL: that of
 * a builder which shares nothing with the library's (planted_batch.h).
 */
void mla_batch_judge(const mla_batch_case *c, const mla_batch_answer *expected,
                     mla_verdict *verdict);
/* The answer that somebody wrote to `path`. */
void mla_batch_judge_answer(const mla_batch_case *c, const char *path,
                            mla_verdict *verdict);

#endif
