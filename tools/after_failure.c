/*
 * after_failure.c - the smallest case, and a file of it.
 */
#include "after_failure.h"

#include <stdio.h>
#include <string.h>

#include "explain.h"
#include "repro.h"
#include "shrink.h"

int after_failure_is_new(const failure_care *care, const mla_verdict *verdict) {
  for (int32_t i = 0; i < care->shrunk; i++)
    if (strcmp(care->classes[i], verdict->look.cls) == 0) return 0;
  return care->shrunk < MOST_SHRUNK;
}

void after_failure_note(failure_care *care, const mla_verdict *verdict) {
  if (after_failure_is_new(care, verdict))
    snprintf(care->classes[care->shrunk++], sizeof care->classes[0], "%s",
             verdict->look.cls);
}

static int can_shrink(const failure_care *care, const mla_vector *v,
                      const mla_verdict *verdict) {
  return care->shrink && v->has_recipe && !verdict->died &&
         after_failure_is_new(care, verdict);
}

static void shrink(failure_care *care, mla_device *device, const mla_vector *v,
                   mla_record *r) {
  mla_shrunk shrunk;
  char id[MLA_CASE_ID_MAX];
  after_failure_note(care, &r->verdict);
  mla_shrink_vector(device, v, &r->verdict, care->keep, 0, &shrunk);
  if (!shrunk.changed || shrunk.verdict.kind != MLA_VERDICT_FAIL) return;
  /* What was too large to be computed again is small now. */
  if (!r->verdict.look.cls[0]) r->verdict.look = shrunk.verdict.look;
  int n = mla_case_print(&shrunk.smallest, id, sizeof id);
  if (n <= 0 || (size_t)n >= sizeof r->smallest) return;
  memcpy(r->smallest, id, (size_t)n + 1);
}

static void explain_and_write(void *context, const mla_vector *v,
                              const mla_evidence *e, mla_verdict *verdict) {
  mla_explain(v, e, NULL, verdict);
  mla_repro_observe(context, v, e, verdict);
}

static void say_written(failure_care *care, const mla_vector *v,
                        const mla_repro *repro, int fails, mla_record *r) {
  if (fails && repro->status == MLA_OK)
    snprintf(r->repro, sizeof r->repro, "%s", repro->path);
  else if (repro->status != MLA_OK)
    fprintf(stderr, "mlacheck run: no reproduction of %s: %s\n", v->id,
            repro->err.message);
  care->written++;
}

/* Judged once more, since what a backend got is not kept. */
static void write_down(failure_care *care, mla_device *device,
                       const mla_vector *v, mla_record *r) {
  mla_repro repro = {care->repro, device, MLA_OK, "", mla_error_init()};
  mla_judge_observer observer = {explain_and_write, &repro};
  mla_judge_options how = mla_judge_defaults();
  mla_verdict verdict;
  how.keep = care->keep;
  how.observer = &observer;
  mla_judge_vector(device, v, &how, &verdict);
  say_written(care, v, &repro, verdict.kind == MLA_VERDICT_FAIL, r);
}

/* It dies of being run: inputs and expected values are all there is. */
static void write_unrun(failure_care *care, mla_device *device,
                        const mla_vector *v, mla_record *r) {
  mla_repro repro = {care->repro, device, MLA_OK, "", mla_error_init()};
  mla_expectation expected;
  mla_answer answer = mla_answer_init();
  mla_limits limits = mla_vector_limits(v);
  memset(&expected, 0, sizeof expected);
  repro.status = mla_query(device, &v->problem, &limits, &answer, &repro.err);
  if (repro.status == MLA_OK)
    repro.status = mla_expectation_make(v, &answer.numerics, care->keep,
                                        &expected, &repro.err);
  if (repro.status == MLA_OK) {
    mla_evidence e = {.answer = &answer,
                      .limits = &limits,
                      .expectation = &expected,
                      .poison = MLA_POISON_NAN};
    mla_repro_observe(&repro, v, &e, &r->verdict);
  }
  mla_expectation_free(&expected);
  say_written(care, v, &repro, 1, r);
}

static void write_file(failure_care *care, mla_device *device,
                       const mla_vector *v, mla_record *r) {
  if (r->verdict.died)
    write_unrun(care, device, v, r);
  else
    write_down(care, device, v, r);
}

int after_failure_wanted(const failure_care *care, const mla_docket *docket,
                         int32_t i, const mla_record *r) {
  const mla_item *item = mla_docket_at(docket, i);
  if (r->verdict.kind != MLA_VERDICT_FAIL) return 0;
  if (item->kind != MLA_ITEM_CASE && item->kind != MLA_ITEM_STORED) return 0;
  if (care->repro && care->written < MOST_WRITTEN) return 1;
  return care->shrink && after_failure_is_new(care, &r->verdict);
}

/* The smallest case, when one is known. */
static mla_status make_small(const mla_record *r, const mla_vector *v,
                             mla_vector *small) {
  mla_case c;
  mla_vector_init(small);
  mla_status status = mla_case_parse(r->smallest, &c, NULL);
  if (status == MLA_OK)
    status = mla_generate(&c, v->seed, MLA_POISON_NAN, small, NULL);
  if (status == MLA_OK) memcpy(small->hunts, v->hunts, sizeof small->hunts);
  return status;
}

void after_failure(failure_care *care, mla_device *device,
                   const mla_docket *docket, int32_t i, mla_record *r) {
  mla_vector v, small;
  if (!after_failure_wanted(care, docket, i, r)) return;
  if (mla_docket_vector(docket, i, MLA_POISON_NAN, &v, NULL) == MLA_OK) {
    if (can_shrink(care, &v, &r->verdict)) shrink(care, device, &v, r);
    int wanted = care->repro && care->written < MOST_WRITTEN;
    if (wanted && r->smallest[0]) {
      if (make_small(r, &v, &small) == MLA_OK)
        write_file(care, device, &small, r);
      mla_vector_free(&small);
    } else if (wanted) {
      write_file(care, device, &v, r);
    }
  }
  mla_vector_free(&v);
}
