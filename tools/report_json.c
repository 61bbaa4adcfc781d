/*
 * report_json.c - a run for programs (golden/schema/report-1.schema.json).
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "explain.h"
#include "file_text.h"
#include "options.h"
#include "report.h"

/* JSON has no infinity: what is not finite goes as a word. */
static void add_real(cJSON *to, const char *name, double value) {
  if (value != value)
    cJSON_AddStringToObject(to, name, "nan");
  else if (value > 1e308)
    cJSON_AddStringToObject(to, name, "inf");
  else if (value < -1e308)
    cJSON_AddStringToObject(to, name, "-inf");
  else
    cJSON_AddNumberToObject(to, name, value);
}

static void add_text(cJSON *to, const char *name, const char *text) {
  if (text && *text) cJSON_AddStringToObject(to, name, text);
}

static cJSON *output_json(const mla_output_verdict *o) {
  static const char *const names[] = {"none", "budget", "bits", "sums",
                                      "bytes"};
  cJSON *json = cJSON_CreateObject();
  add_text(json, "tensor", mla_slot_name(o->slot));
  add_text(json, "compare", names[o->compare]);
  cJSON_AddNumberToObject(json, "checked", (double)o->checked);
  cJSON_AddNumberToObject(json, "elements", (double)o->elements);
  cJSON_AddNumberToObject(json, "bad", (double)o->bad);
  cJSON_AddNumberToObject(json, "unwritten", (double)o->unwritten);
  cJSON_AddNumberToObject(json, "not_finite", (double)o->not_finite);
  add_real(json, "worst", o->worst);
  add_real(json, "max_abs", o->max_abs);
  add_real(json, "max_rel", o->max_rel);
  add_real(json, "rel_l2", o->rel_l2);
  if (o->checked) {
    cJSON *index = cJSON_AddArrayToObject(json, "worst_index");
    for (int32_t a = 0; a < o->rank; a++)
      cJSON_AddItemToArray(index, cJSON_CreateNumber((double)o->index[a]));
    add_real(json, "expected", o->expected);
    add_real(json, "got", o->got);
    add_real(json, "budget", o->budget);
  }
  add_text(json, "at", o->at);
  add_text(json, "where", o->where);
  add_text(json, "outside", o->outside);
  return json;
}

static void add_hunts(cJSON *to, const char *hunts) {
  cJSON *list = cJSON_AddArrayToObject(to, "hunts");
  while (*hunts) {
    char word[64];
    size_t n = strcspn(hunts, ",");
    snprintf(word, sizeof word, "%.*s", (int)n, hunts);
    cJSON_AddItemToArray(list, cJSON_CreateString(word));
    hunts += n;
    hunts += strspn(hunts, ", ");
  }
}

static void add_truth(cJSON *to, const mla_truth_result *t) {
  cJSON *json = cJSON_AddObjectToObject(to, "truth");
  add_text(json, "name", t->name);
  add_text(json, "activation", mla_dtype_name(t->activation));
  cJSON_AddNumberToObject(json, "combinations", t->combinations);
  cJSON_AddNumberToObject(json, "distinct", t->distinct);
  add_real(json, "output_error", t->output_error);
  add_text(json, "output_where", t->output_where);
  add_real(json, "attention_error", t->attention_error);
  add_text(json, "attention_where", t->attention_where);
  add_real(json, "latent_error", t->latent_error);
  add_real(json, "stage_ratio", t->stage_ratio);
  add_text(json, "stage_where", t->stage_where);
  cJSON_AddNumberToObject(json, "stages", (double)t->stages);
}

static void add_runs(cJSON *json, const mla_verdict *v) {
  static const char *const names[] = {"none", "run-to-run", "batch-invariant"};
  if (v->determinism >= 0 && v->determinism < 3)
    add_text(json, "determinism", names[v->determinism]);
  cJSON_AddNumberToObject(json, "repeated", v->repeated);
  cJSON_AddBoolToObject(json, "differs", v->differs);
  if (v->unstable) cJSON_AddTrueToObject(json, "unstable");
  if (v->mates) cJSON_AddTrueToObject(json, "mates");
  if (v->rows_total) {
    cJSON_AddNumberToObject(json, "rows", (double)v->rows);
    cJSON_AddNumberToObject(json, "rows_total", (double)v->rows_total);
  }
}

static void add_look(cJSON *json, const mla_record *r) {
  const mla_look *look = &r->verdict.look;
  char sentence[400];
  add_text(json, "smallest", r->smallest);
  add_text(json, "repro", r->repro);
  if (mla_look_print(look, sentence, sizeof sentence) <= 0) return;
  cJSON *to = cJSON_AddObjectToObject(json, "looks_like");
  add_text(to, "class", look->cls);
  add_text(to, "also", look->also);
  add_text(to, "fault", look->fault);
  add_text(to, "sentence", sentence);
  cJSON_AddNumberToObject(to, "reproduced", (double)look->reproduced);
  cJSON_AddNumberToObject(to, "of", (double)look->of);
}

static cJSON *record_json(const run_state *run, int32_t i) {
  static const char *const kinds[] = {"case", "stored", "invalid", "truth"};
  const mla_item *item = mla_docket_at(run->docket, i);
  const mla_record *r = &run->record[i];
  const mla_verdict *v = &r->verdict;
  cJSON *json = cJSON_CreateObject();
  add_text(json, "id", item->id);
  add_text(json, "kind", kinds[item->kind]);
  add_text(json, "file", item->path);
  if (item->kind != MLA_ITEM_TRUTH)
    cJSON_AddNumberToObject(json, "seed", (double)item->seed);
  add_hunts(json, item->hunts);
  cJSON_AddBoolToObject(json, "required", run_requires(run, i));
  add_text(json, "verdict", mla_verdict_name(v->kind));
  add_text(json, "reason", v->reason);
  add_text(json, "kernel", v->kernel);
  add_text(json, "fences", v->fences);
  add_look(json, r);
  if (item->kind == MLA_ITEM_TRUTH) {
    add_truth(json, &r->truth);
    return json;
  }
  add_runs(json, v);
  cJSON *outputs = cJSON_AddArrayToObject(json, "outputs");
  for (int32_t k = 0; k < v->outputs; k++)
    cJSON_AddItemToArray(outputs, output_json(&v->output[k]));
  return json;
}

static void add_target(cJSON *json, const run_state *run) {
  const mla_backend *b = mla_device_backend(run->target->device);
  mla_device_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  cJSON *backend = cJSON_AddObjectToObject(json, "backend");
  add_text(backend, "name", b->name);
  add_text(backend, "version", b->version);
  add_text(backend, "description", b->description);
  if (mla_device_describe(run->target->device, &info, NULL) != MLA_OK) return;
  cJSON *device = cJSON_AddObjectToObject(json, "device");
  cJSON_AddNumberToObject(device, "index", (double)run->target->index);
  add_text(device, "name", info.name);
  add_text(device, "arch", info.arch);
  cJSON_AddNumberToObject(device, "compute_units", info.compute_units);
}

static void add_sums(cJSON *json, const run_state *run) {
  run_sums s = run_sum(run);
  cJSON *sums = cJSON_AddObjectToObject(json, "sums");
  cJSON_AddNumberToObject(sums, "asked", s.asked);
  cJSON_AddNumberToObject(sums, "judged", s.judged);
  cJSON_AddNumberToObject(sums, "passed", s.passed);
  cJSON_AddNumberToObject(sums, "failed", s.failed);
  cJSON_AddNumberToObject(sums, "errors", s.errors);
  cJSON_AddNumberToObject(sums, "bad_vectors", s.bad_vectors);
  cJSON_AddNumberToObject(sums, "unsupported", s.unsupported);
  cJSON_AddNumberToObject(sums, "unsupported_required", s.unsupported_required);
  cJSON_AddNumberToObject(json, "exit", run_exit_code(run, &s));
}

static cJSON *run_json(const run_state *run) {
  cJSON *json = cJSON_CreateObject();
  add_text(json, "format", "mla-report");
  cJSON_AddNumberToObject(json, "version", 1);
  add_text(json, "libmla", mla_version());
  add_text(json, "reference", MLA_REFERENCE_NAME);
  add_target(json, run);
  if (run->claim) {
    add_text(json, "profile", run->claim);
    cJSON_AddBoolToObject(json, "restricted", run->restricted);
  }
  add_sums(json, run);
  cJSON *cases = cJSON_AddArrayToObject(json, "cases");
  for (int32_t i = 0; i < run->done; i++)
    cJSON_AddItemToArray(cases, record_json(run, i));
  return json;
}

int report_json(const run_state *run, const char *path) {
  mla_error err = mla_error_init();
  cJSON *json = run_json(run);
  char *text = json ? cJSON_Print(json) : NULL;
  int ok = text != NULL;
  if (ok && strcmp(path, "-") == 0)
    ok = puts(text) >= 0;
  else if (ok)
    ok = mla_file_write(path, text, strlen(text), &err) == MLA_OK;
  if (!ok)
    fprintf(stderr, "mlacheck run: %s\n",
            err.message[0] ? err.message : "no memory for the JSON report");
  cJSON_free(text);
  cJSON_Delete(json);
  return ok;
}
