/*
 * alone.c - what an earlier call left behind shows where there is none.
 */
#include "alone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int passes(const crew *of, int32_t item) {
  crew_member fresh;
  crew_question q;
  crew_answer *a = malloc(sizeof *a);
  if (!a) return 0;
  memset(&fresh, 0, sizeof fresh);
  memset(&q, 0, sizeof q);
  q.task = CREW_JUDGE;
  q.item = item;
  q.alone = 1;
  crew_answer_now(&fresh, of, &q, a);
  crew_dismiss(&fresh);
  int ok = a->record.verdict.kind == MLA_VERDICT_PASS;
  free(a);
  return ok;
}

int alone_explains(const crew *of, int32_t item, mla_verdict *v) {
  if (v->kind != MLA_VERDICT_FAIL || v->died || v->unstable || v->fences[0] ||
      !passes(of, item) || !passes(of, item))
    return 0;
  memset(&v->look, 0, sizeof v->look);
  mla_look_set(&v->look, "STALE-META",
               "something of an earlier call is kept, outside of its plan");
  snprintf(v->reason, sizeof v->reason,
           "it passes where no other call comes before it");
  return 1;
}
