/*
 * after_failure.c - the smallest case, and a file of it.
 */
#include "after_failure.h"

#include <stdio.h>
#include <string.h>

#include "explain.h"
#include "repro.h"
#include "shrink.h"

static int is_new_class(const failure_care *care, const char *cls) {
  for (int32_t i = 0; i < care->shrunk; i++)
    if (strcmp(care->classes[i], cls) == 0) return 0;
  return care->shrunk < MOST_SHRUNK;
}

static int can_shrink(const failure_care *care, const mla_vector *v,
                      const mla_verdict *verdict) {
  return care->shrink && v->has_recipe && is_new_class(care, verdict->look.cls);
}

static void shrink(failure_care *care, const run_state *run,
                   const mla_vector *v, mla_record *r, mla_case *smallest) {
  mla_shrunk shrunk;
  char id[MLA_CASE_ID_MAX];
  snprintf(care->classes[care->shrunk++], sizeof care->classes[0], "%s",
           r->verdict.look.cls);
  mla_shrink_vector(run->target->device, v, &r->verdict, care->keep, 0,
                    &shrunk);
  if (!shrunk.changed || shrunk.verdict.kind != MLA_VERDICT_FAIL) return;
  /* What was too large to be computed again is small now. */
  if (!r->verdict.look.cls[0]) r->verdict.look = shrunk.verdict.look;
  int n = mla_case_print(&shrunk.smallest, id, sizeof id);
  if (n <= 0 || (size_t)n >= sizeof r->smallest) return;
  memcpy(r->smallest, id, (size_t)n + 1);
  *smallest = shrunk.smallest;
}

static void explain_and_write(void *context, const mla_vector *v,
                              const mla_evidence *e, mla_verdict *verdict) {
  mla_explain(v, e, NULL, verdict);
  mla_repro_observe(context, v, e, verdict);
}

/* Judged once more, since what a backend got is not kept. */
static void write_down(failure_care *care, const run_state *run,
                       const mla_vector *v, mla_record *r) {
  mla_repro repro = {care->repro, run->target->device, MLA_OK, "",
                     mla_error_init()};
  mla_judge_observer observer = {explain_and_write, &repro};
  mla_judge_options how = mla_judge_defaults();
  mla_verdict verdict;
  how.keep = care->keep;
  how.observer = &observer;
  mla_judge_vector(run->target->device, v, &how, &verdict);
  if (verdict.kind == MLA_VERDICT_FAIL && repro.status == MLA_OK)
    snprintf(r->repro, sizeof r->repro, "%s", repro.path);
  else if (repro.status != MLA_OK)
    fprintf(stderr, "mlacheck run: no reproduction of %s: %s\n", v->id,
            repro.err.message);
  care->written++;
}

void after_failure(failure_care *care, const run_state *run, int32_t i) {
  const mla_item *item = mla_docket_at(run->docket, i);
  mla_record *r = &run->record[i];
  mla_vector v, small;
  mla_case c;
  int wanted = care->shrink || (care->repro && care->written < MOST_WRITTEN);
  if (!wanted || r->verdict.kind != MLA_VERDICT_FAIL) return;
  if (item->kind != MLA_ITEM_CASE && item->kind != MLA_ITEM_STORED) return;
  if (mla_docket_vector(run->docket, i, MLA_POISON_NAN, &v, NULL) != MLA_OK) {
    mla_vector_free(&v);
    return;
  }
  if (can_shrink(care, &v, &r->verdict)) shrink(care, run, &v, r, &c);
  if (care->repro && care->written < MOST_WRITTEN && r->smallest[0]) {
    if (mla_generate(&c, v.seed, MLA_POISON_NAN, &small, NULL) == MLA_OK) {
      memcpy(small.hunts, v.hunts, sizeof small.hunts);
      write_down(care, run, &small, r);
    }
    mla_vector_free(&small);
  } else if (care->repro && care->written < MOST_WRITTEN) {
    write_down(care, run, &v, r);
  }
  mla_vector_free(&v);
}
