/*
 * golden_batch.c - the golden batches: what the library's builder makes of the
 * cases of profile batch.
 */
#include <stdlib.h>
#include <string.h>

#include "batch_json.h"
#include "error.h"
#include "expect.h"
#include "golden_text.h"
#include "suite.h"

typedef struct work {
  mla_batch_case c;
  mla_text text;
} work;

static mla_status add_case(work *w, const mla_suite_entry *e,
                           mla_batch_answer *made, mla_error *err) {
  memset(made, 0, sizeof *made);
  mla_status status = mla_batch_case_draw(e->id, e->seed, &w->c, err);
  if (status == MLA_OK) status = mla_batch_case_build(&w->c, made, err);
  if (status != MLA_OK) return status;
  memcpy(w->c.hunts, e->hunts, sizeof w->c.hunts);
  cJSON *json = mla_batch_json(&w->c, made);
  int ok = mla_text_case(&w->text, json);
  cJSON_Delete(json);
  return ok ? MLA_OK
            : mla_fail(err, MLA_OUT_OF_MEMORY, "golden", "no memory for %.100s",
                       e->id);
}

static mla_status add_file(mla_golden *g, const mla_text *cases,
                           mla_error *err) {
  mla_text t = {NULL, 0, 0};
  int ok = mla_text_add(&t, "{\"format\":\"" MLA_BATCH_FORMAT
                            "\",\"version\":1,\n\"expected_by\":\"") &&
           mla_text_add(&t, MLA_REFERENCE_NAME "\",\n\"cases\":[\n") &&
           (!cases->text || mla_text_add(&t, cases->text)) &&
           mla_text_add(&t, "\n]}\n");
  if (ok)
    return mla_golden_add(g, "v1/batch.json", (unsigned char *)t.text, t.used,
                          err);
  free(t.text);
  return mla_fail(err, MLA_OUT_OF_MEMORY, "golden", "no memory for batches");
}

mla_status mla_golden_batches(mla_golden *g, mla_error *err) {
  mla_suite suite;
  mla_batch_answer *made = mla_batch_answer_new();
  work *w = calloc(1, sizeof *w);
  mla_status status = mla_suite_load("batch", &suite, err);
  if (status == MLA_OK && (!made || !w))
    status = mla_fail(err, MLA_OUT_OF_MEMORY, "golden", "no memory");
  for (int64_t i = 0; i < suite.count && status == MLA_OK; i++)
    status = add_case(w, &suite.entry[i], made, err);
  if (status == MLA_OK) status = add_file(g, &w->text, err);
  if (w) free(w->text.text);
  free(w);
  free(made);
  mla_suite_free(&suite);
  return status;
}
