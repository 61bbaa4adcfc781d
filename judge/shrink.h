/*
 * shrink.h - from a case that fails to the smallest one that fails alike.
 *
 * Requests, tokens, heads, widths and options are taken away as long as the
 * failure stays what it is. What "alike" means is the caller's: judging in
 * this process (mla_shrink_case), or in another one that may die.
 */
#ifndef MLA_SHRINK_H
#define MLA_SHRINK_H

#include "judge.h"

#define MLA_SHRINK_SECONDS 10

typedef struct mla_shrink_how {
  /* Does this case fail like the first one? It is lawful (mla_case_check). */
  int (*fails)(void *context, const mla_case *c);
  void *context;
  double seconds; /* no case is begun after that */
  int gently;     /* stop at sizes that can still be told apart */
} mla_shrink_how;

typedef struct mla_shrunk {
  mla_case smallest;
  int32_t tried, changed; /* cases judged; steps that kept the failure */
  mla_verdict verdict;    /* of the smallest (mla_shrink_case) */
} mla_shrunk;

/* c fails; `request` is one whose rows are wrong (0 when unknown). */
void mla_shrink(const mla_case *c, int64_t request, const mla_shrink_how *how,
                mla_shrunk *shrunk);

/*
 * v has a recipe, and verdict (with its look) is what it got: shrinks on the
 * device, then judges and explains the smallest case once more. keep: as in
 * mla_judge_options. seconds 0: MLA_SHRINK_SECONDS.
 */
void mla_shrink_vector(mla_device *device, const mla_vector *v,
                       const mla_verdict *verdict, const char *keep,
                       double seconds, mla_shrunk *shrunk);

#endif
