/*
 * report_json.c - a run for programs (golden/schema/report-1.schema.json).
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "explain.h"
#include "machine.h"
#include "options.h"
#include "report_model.h"
#include "safetensors_types.h"
#include "text_buffer.h"

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

/* What a backend says of itself may be any bytes; JSON is UTF-8. */
static void add_text(cJSON *to, const char *name, const char *text) {
  if (!text || !*text) return;
  char *clean = text_utf8(text);
  if (clean) cJSON_AddStringToObject(to, name, clean);
  free(clean);
}

static void add_digest(cJSON *to, const char *name, uint64_t digest) {
  char text[20];
  snprintf(text, sizeof text, "%016llx", (unsigned long long)digest);
  cJSON_AddStringToObject(to, name, text);
}

/* A picture of where the wrong values lie: bad_map.h. */
static void add_map(cJSON *to, const mla_output_verdict *o) {
  if (o->map.rows == 0) return;
  cJSON *map = cJSON_AddObjectToObject(to, "map");
  add_text(map, "axes", o->axes);
  cJSON *cells = cJSON_AddArrayToObject(map, "cells");
  for (int32_t r = 0; r < o->map.rows; r++) {
    char row[MLA_MAP_COLS + 1];
    snprintf(row, sizeof row, "%.*s", (int)o->map.cols, o->map.cell[r]);
    cJSON_AddItemToArray(cells, cJSON_CreateString(row));
  }
}

static cJSON *output_json(const mla_output_verdict *o) {
  static const char *const names[] = {"none", "budget", "bits",
                                      "sums", "bytes",  "choice"};
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
  cJSON *shape = cJSON_AddArrayToObject(json, "shape");
  for (int32_t a = 0; a < o->rank; a++)
    cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)o->shape[a]));
  add_digest(json, "digest", o->digest);
  add_map(json, o);
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
  static const char *const things[] = {"nothing",        "unused bytes",
                                       "addresses",      "alignment",
                                       "left workspace", "earlier runs"};
  if (v->determinism >= 0 && v->determinism < 3)
    add_text(json, "determinism", names[v->determinism]);
  cJSON_AddNumberToObject(json, "repeated", v->repeated);
  cJSON_AddBoolToObject(json, "differs", v->differs);
  if (v->unstable) cJSON_AddTrueToObject(json, "unstable");
  if (v->mates) cJSON_AddTrueToObject(json, "mates");
  if (v->follows > 0 && v->follows < 6)
    add_text(json, "follows", things[v->follows]);
  if (v->rows_total) {
    cJSON_AddNumberToObject(json, "rows", (double)v->rows);
    cJSON_AddNumberToObject(json, "rows_total", (double)v->rows_total);
  }
}

static void add_death(cJSON *json, const mla_verdict *v) {
  static const char *const names[] = {"none", "signal", "timeout", "exit"};
  if (v->died <= 0 || v->died > 3) return;
  add_text(json, "died", names[v->died]);
  cJSON_AddNumberToObject(json, "signal", v->signal);
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

static void add_printed(cJSON *json, const char *name,
                        void (*print)(FILE *, const run_state *, int32_t),
                        const run_state *run, int32_t i) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (!to) return;
  print(to, run, i);
  if (fclose(to) == 0) add_text(json, name, text);
  free(text);
}

/* What is printed of a failure, to be shown by others. */
static void add_failure(cJSON *json, const run_state *run, int32_t i) {
  const mla_waiver *waiver = run_waiver(run, i);
  if (waiver) {
    cJSON *to = cJSON_AddObjectToObject(json, "waived");
    add_text(to, "link", waiver->link);
    add_text(to, "reason", waiver->reason);
    add_text(to, "until", waiver->until);
  }
  if (!run_is_bad(run, i) && !waiver) return;
  add_printed(json, "rerun", report_rerun, run, i);
  add_printed(json, "text", report_failure, run, i);
}

static cJSON *record_json(const run_state *run, int32_t i) {
  static const char *const kinds[] = {"case", "stored", "invalid", "truth",
                                      "batch"};
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
  add_death(json, v);
  add_look(json, r);
  add_failure(json, run, i);
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
  const mla_backend *b = run_backend(run);
  mla_device_info info;
  cJSON *backend = cJSON_AddObjectToObject(json, "backend");
  add_text(backend, "name", b->name);
  add_text(backend, "version", b->version);
  add_text(backend, "description", b->description);
  if (!run_device(run, &info)) return;
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
  cJSON_AddNumberToObject(sums, "waived", s.waived);
  cJSON_AddNumberToObject(json, "exit", run_exit_code(run, &s));
}

/* What made this tool; nothing of the machine's owner. */
static void add_environment(cJSON *json) {
  cJSON *to = cJSON_AddObjectToObject(json, "environment");
  char text[64];
  snprintf(text, sizeof text, "%d.%d", MLA_ABI_MAJOR, MLA_ABI_MINOR);
  add_text(to, "interface", text);
#if defined(__clang__)
  add_text(to, "compiler", "clang " __clang_version__);
#elif defined(__GNUC__)
  add_text(to, "compiler", "gcc " __VERSION__);
#endif
  if (*mla_machine_name()) add_text(to, "machine", mla_machine_name());
  add_text(to, "byte_order", mla_st_swaps() ? "big" : "little");
}

static void add_stale(cJSON *json, const run_state *run) {
  cJSON *list = cJSON_AddArrayToObject(json, "stale_waivers");
  for (int32_t i = 0; run->reports && i < run->reports->known.count; i++) {
    const mla_waiver *w = &run->reports->known.entry[i];
    if (!run_is_stale(run, i)) continue;
    cJSON *to = cJSON_CreateObject();
    cJSON_AddItemToArray(list, to);
    cJSON_AddNumberToObject(to, "entry", i + 1);
    add_text(to, "case", w->pattern);
    add_text(to, "class", w->cls);
    add_text(to, "link", w->link);
    if (w->expired) add_text(to, "expired", w->until);
  }
}

static void add_claim(cJSON *json, const run_state *run) {
  if (!run->claim) return;
  add_text(json, "profile", run->claim);
  cJSON_AddBoolToObject(json, "restricted", run->restricted);
  cJSON *only = cJSON_AddArrayToObject(json, "only");
  for (int32_t i = 0; run->only && i < run->only->count; i++) {
    char *clean = text_utf8(run->only->value[i]);
    if (clean) cJSON_AddItemToArray(only, cJSON_CreateString(clean));
    free(clean);
  }
}

cJSON *report_model(const run_state *run) {
  cJSON *json = cJSON_CreateObject();
  add_text(json, "format", "mla-report");
  cJSON_AddNumberToObject(json, "version", 1);
  add_text(json, "libmla", mla_version());
  add_text(json, "reference", MLA_REFERENCE_NAME);
  add_environment(json);
  add_target(json, run);
  add_claim(json, run);
  add_sums(json, run);
  add_stale(json, run);
  cJSON *cases = cJSON_AddArrayToObject(json, "cases");
  for (int32_t i = 0; i < run->done; i++)
    cJSON_AddItemToArray(cases, record_json(run, i));
  return json;
}

/* cJSON's own memory may not be malloc's; with a line end, as a file has. */
char *report_json_text(const cJSON *model) {
  text_buffer b = {NULL, 0, 0, 0};
  char *text = model ? cJSON_Print(model) : NULL;
  if (!text) return NULL;
  text_add(&b, "%s\n", text);
  cJSON_free(text);
  return text_take(&b);
}
