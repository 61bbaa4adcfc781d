/*
 * batch_judge.c - verdicts on builders of batches.
 */
#include "batch_judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_compare.h"
#include "batch_explain.h"
#include "batch_json.h"
#include "planted_batch.h"

typedef struct hearing {
  mla_batch_answer *expected, *got;
} hearing;

static int begin(hearing *h, mla_verdict *v) {
  memset(v, 0, sizeof *v);
  h->expected = mla_batch_answer_new();
  h->got = mla_batch_answer_new();
  if (h->expected && h->got) return 1;
  v->kind = MLA_VERDICT_ERROR;
  snprintf(v->reason, sizeof v->reason, "no memory for the arrays");
  return 0;
}

static void end(hearing *h) {
  free(h->expected);
  free(h->got);
}

static void say(mla_verdict *v, int32_t kind, const char *before,
                const char *why) {
  v->kind = kind;
  snprintf(v->reason, sizeof v->reason, "%s%.250s", before, why);
}

static void compare(const mla_batch_case *c, const mla_batch_answer *expected,
                    const mla_batch_answer *got, mla_verdict *v) {
  mla_batch_diff diff;
  mla_batch_differ(c, expected, got, &diff);
  v->kind = diff.wrong ? MLA_VERDICT_FAIL : MLA_VERDICT_PASS;
  if (diff.wrong) {
    mla_batch_diff_print(c, expected, &diff, v->reason, sizeof v->reason);
    mla_batch_explain(c, expected, got, &v->look);
  } else if (got->why[0]) {
    say(v, MLA_VERDICT_PASS, "not judged, by its own word: ", got->why);
  }
}

/* A file that says what does not follow from what it gives. */
static int contradicts(const mla_batch_case *c,
                       const mla_batch_answer *expected,
                       const mla_batch_answer *stored, mla_verdict *v) {
  mla_batch_diff diff;
  mla_batch_differ(c, expected, stored, &diff);
  if (!diff.wrong) return 0;
  v->kind = MLA_VERDICT_BAD_VECTOR;
  mla_batch_diff_print(c, expected, &diff, v->reason, sizeof v->reason);
  return 1;
}

void mla_batch_judge(const mla_batch_case *c, const mla_batch_answer *expected,
                     mla_verdict *v) {
  mla_error err = mla_error_init();
  hearing h;
  if (begin(&h, v)) {
    mla_status status = mla_batch_case_build(c, h.got, &err);
    planted_batch_build(c, PLANTED_BATCH_NONE, 0, h.expected);
    int stands = !expected || !contradicts(c, h.expected, expected, v);
    if (stands && status == MLA_OK) compare(c, h.expected, h.got, v);
    if (stands && status != MLA_OK)
      say(v, status == MLA_OUT_OF_MEMORY ? MLA_VERDICT_ERROR : MLA_VERDICT_FAIL,
          "the builder refuses the case: ", err.message);
    snprintf(v->kernel, sizeof v->kernel, "the library's mla_batch");
  }
  end(&h);
}

void mla_batch_judge_answer(const mla_batch_case *c, const char *path,
                            mla_verdict *v) {
  mla_error err = mla_error_init();
  hearing h;
  if (begin(&h, v)) {
    mla_status status = mla_batch_answer_read(path, c, h.got, &err);
    planted_batch_build(c, PLANTED_BATCH_NONE, 0, h.expected);
    if (status == MLA_OK)
      compare(c, h.expected, h.got, v);
    else if (status == MLA_UNSUPPORTED)
      say(v, MLA_VERDICT_UNSUPPORTED, "", err.message);
    else if (status == MLA_NOT_AVAILABLE)
      say(v, MLA_VERDICT_FAIL, "there is no answer: ", err.message);
    else
      say(v, MLA_VERDICT_FAIL,
          "the file of the answer is broken: ", err.message);
  }
  end(&h);
}
