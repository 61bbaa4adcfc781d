/*
 * report_text.c - a run for people: each failure on one screen, then a table
 * and the verdict. Without a terminal the same run gives the same bytes.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explain.h"
#include "options.h"
#include "report.h"
#include "vector.h"

#define MOST_FAILURES 20 /* in full, unless -v */

static int has_colour(void) {
  const char *no = getenv("NO_COLOR");
  return isatty(1) && !(no && *no);
}

static const char *colour_of(int32_t kind) {
  if (!has_colour()) return "";
  switch (kind) {
    case MLA_VERDICT_PASS: return "\033[32m";
    case MLA_VERDICT_UNSUPPORTED: return "\033[33m";
    default: return "\033[31m";
  }
}

static const char *plain(void) {
  return has_colour() ? "\033[0m" : "";
}

static const char *word_of(int32_t kind) {
  static const char *const words[] = {"PASS", "FAIL", "NO", "ERROR", "VECTOR"};
  return words[kind];
}

void report_text_begin(const run_state *run) {
  const mla_backend *b = mla_device_backend(run->target->device);
  mla_device_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  printf("mlacheck %s  backend %s %s (%s)\n", mla_version(), b->name,
         b->version ? b->version : "", b->description ? b->description : "");
  if (mla_device_describe(run->target->device, &info, NULL) == MLA_OK &&
      run->verbose)
    printf("device %s, %s, %d compute units\n", info.name, info.arch,
           (int)info.compute_units);
}

/* ------------------------------------------------------------- one record */

/* "38.2x", "0.03": error over budget. */
static void print_ratio(double ratio) {
  if (ratio > 1e300)
    printf("beyond any budget");
  else if (ratio >= 100)
    printf("%.0fx the budget", ratio);
  else
    printf("%.2fx the budget", ratio);
}

static const char *unit_of(const mla_output_verdict *o) {
  return o->compare == MLA_COMPARE_BYTES ? "bytes differ" : "values are wrong";
}

static void print_output(const mla_output_verdict *o) {
  printf("  %-6s ", mla_slot_name(o->slot));
  int bad = o->bad || o->unwritten || o->outside[0];
  if (!bad && o->compare == MLA_COMPARE_BYTES)
    printf("ok, all bytes\n");
  else if (!bad && o->compare != MLA_COMPARE_BUDGET)
    printf("ok, all bits\n");
  else if (!bad)
    printf("ok, worst %.3f of the budget\n", o->worst);
  if (!bad) return;
  printf("%lld of %lld %s", (long long)o->bad, (long long)o->checked,
         unit_of(o));
  if (o->compare == MLA_COMPARE_BUDGET && o->bad) {
    printf(", worst ");
    print_ratio(o->worst);
  }
  if (o->unwritten)
    printf("; %lld were never written", (long long)o->unwritten);
  if (o->not_finite) printf("; %lld are not finite", (long long)o->not_finite);
  printf("\n");
  if (o->where[0]) printf("  where  %s\n", o->where);
  if (o->bad)
    printf("  worst  %s: expected %.9g, got %.9g", o->at, o->expected, o->got);
  if (o->bad && o->compare == MLA_COMPARE_BUDGET)
    printf(", budget %.3g", o->budget);
  if (o->bad) printf("\n");
  if (o->outside[0]) printf("  fence  %s\n", o->outside);
}

static void print_figures(const mla_output_verdict *o) {
  if (o->compare == MLA_COMPARE_BYTES) return;
  printf(
      "  %-6s largest error %.3g absolute, %.3g relative, %.3g in L2; "
      "worst at %s\n",
      mla_slot_name(o->slot), o->max_abs, o->max_rel, o->rel_l2, o->at);
}

static void print_runs(const mla_verdict *v) {
  static const char *const names[] = {"none", "run to run", "batch invariant"};
  if (v->fences[0]) printf("  fence  %s\n", v->fences);
  if (v->differs)
    printf(
        "  again  a second run gave other bits, but determinism \"%s\" is "
        "declared\n",
        names[v->determinism >= 0 && v->determinism < 3 ? v->determinism : 0]);
  if (v->mates)
    printf(
        "  alone  the first request gets other bits without the others, but "
        "batch\n         invariance is declared\n");
}

static void print_look(const mla_record *r) {
  char look[400];
  if (mla_look_print(&r->verdict.look, look, sizeof look) > 0)
    printf("  looks like  %s\n", look);
  if (r->smallest[0]) printf("  smallest  %s\n", r->smallest);
  if (r->repro[0]) printf("  repro  %s\n", r->repro);
}

static void print_rerun(const run_state *run, const mla_item *item,
                        const mla_record *r) {
  int from_file = item->kind == MLA_ITEM_STORED || item->kind == MLA_ITEM_TRUTH;
  if (r->smallest[0] || !from_file)
    printf("  rerun  %s --case '%s' --seed %llu -v\n", run->rerun,
           r->smallest[0] ? r->smallest : item->id,
           (unsigned long long)item->seed);
  else
    printf("  rerun  %s --vectors '%s'%s%s%s -v\n", run->rerun, item->path,
           item->kind == MLA_ITEM_STORED ? " --only '" : "",
           item->kind == MLA_ITEM_STORED ? item->id : "",
           item->kind == MLA_ITEM_STORED ? "'" : "");
}

static void print_title(const mla_item *item, int32_t kind) {
  printf("%s%-4s%s  %s", colour_of(kind), word_of(kind), plain(), item->id);
  if (item->hunts[0] && kind != MLA_VERDICT_PASS)
    printf("    hunts %s", item->hunts);
  printf("\n");
}

static void print_failure(const run_state *run, const mla_item *item,
                          const mla_record *r) {
  const mla_verdict *v = &r->verdict;
  print_title(item, v->kind);
  if (v->reason[0]) printf("  why    %s\n", v->reason);
  for (int32_t i = 0; i < v->outputs; i++) print_output(&v->output[i]);
  print_runs(v);
  print_look(r);
  if (v->kernel[0]) printf("  kernel %s\n", v->kernel);
  print_rerun(run, item, r);
}

static void print_pass(const mla_item *item, const mla_record *r) {
  const mla_verdict *v = &r->verdict;
  print_title(item, v->kind);
  for (int32_t i = 0; i < v->outputs; i++) {
    print_output(&v->output[i]);
    print_figures(&v->output[i]);
  }
  if (v->rows < v->rows_total)
    printf("  rows   %lld of %lld, a spread sample\n", (long long)v->rows,
           (long long)v->rows_total);
  if (v->repeated)
    printf("  again  %d more run%s, the same bits\n", (int)v->repeated,
           v->repeated > 1 ? "s" : "");
  if (v->kernel[0]) printf("  kernel %s\n", v->kernel);
}

static int32_t failures_before(const run_state *run, int32_t i) {
  int32_t n = 0;
  for (int32_t k = 0; k < i; k++)
    n += run->record[k].verdict.kind != MLA_VERDICT_PASS &&
         run->record[k].verdict.kind != MLA_VERDICT_UNSUPPORTED;
  return n;
}

void report_text_record(const run_state *run, int32_t i) {
  const mla_item *item = mla_docket_at(run->docket, i);
  const mla_record *r = &run->record[i];
  int32_t kind = r->verdict.kind;
  char line[640];
  if (item->kind == MLA_ITEM_TRUTH && r->truth.name[0]) {
    mla_truth_print(&r->truth, line, sizeof line);
    printf("%s\n", line);
  } else if (kind == MLA_VERDICT_PASS) {
    if (run->verbose) print_pass(item, r);
  } else if (kind == MLA_VERDICT_UNSUPPORTED) {
    if (run->verbose) printf("NO    %s    %s\n", item->id, r->verdict.reason);
  } else if (run->verbose || failures_before(run, i) < MOST_FAILURES) {
    print_failure(run, item, r);
  }
  fflush(stdout);
}

/* ----------------------------------------------------------------- tables */

/* "decode:bf16" of an id. */
static size_t group_length(const char *id) {
  const char *colon = strchr(id, ':');
  const char *second = colon ? strchr(colon + 1, ':') : NULL;
  return second ? (size_t)(second - id) : strlen(id);
}

static int same_group(const char *a, const char *b) {
  size_t n = group_length(a);
  return n == group_length(b) && memcmp(a, b, n) == 0;
}

static int is_in_table(const mla_item *item) {
  return item->kind != MLA_ITEM_TRUTH;
}

static int is_first_of_group(const run_state *run, int32_t i) {
  const mla_item *item = mla_docket_at(run->docket, i);
  for (int32_t k = 0; k < i; k++) {
    const mla_item *other = mla_docket_at(run->docket, k);
    if (is_in_table(other) && same_group(item->id, other->id)) return 0;
  }
  return 1;
}

static void print_worst(double worst) {
  if (worst < 0)
    printf("%10s", "-");
  else if (worst > 1e6)
    printf("%10s", "beyond");
  else
    printf("%10.3f", worst);
}

static void print_group(const run_state *run, int32_t first) {
  const char *id = mla_docket_at(run->docket, first)->id;
  int32_t cases = 0, count[5] = {0};
  double out = -1, lse = -1;
  for (int32_t i = first; i < run->done; i++) {
    const mla_item *item = mla_docket_at(run->docket, i);
    const mla_verdict *v = &run->record[i].verdict;
    if (!is_in_table(item) || !same_group(id, item->id)) continue;
    cases++;
    count[v->kind]++;
    if (mla_verdict_worst(v, 0) > out) out = mla_verdict_worst(v, 0);
    if (mla_verdict_worst(v, 1) > lse) lse = mla_verdict_worst(v, 1);
  }
  printf(
      "  %-18.*s %5d %6d %6d %6d", (int)group_length(id), id, (int)cases,
      (int)count[MLA_VERDICT_PASS],
      (int)(cases - count[MLA_VERDICT_PASS] - count[MLA_VERDICT_UNSUPPORTED]),
      (int)count[MLA_VERDICT_UNSUPPORTED]);
  print_worst(out);
  print_worst(lse);
  printf("\n");
}

static void print_table(const run_state *run) {
  int32_t rows = 0;
  for (int32_t i = 0; i < run->done; i++) {
    if (!is_in_table(mla_docket_at(run->docket, i))) continue;
    if (!is_first_of_group(run, i)) continue;
    if (!rows++)
      printf(
          "\n  %-18s %5s %6s %6s %6s   worst error / budget\n"
          "  %-18s %5s %6s %6s %6s%10s%10s\n",
          "", "", "", "", "", "", "cases", "passed", "failed", "unsup.", "out",
          "lse");
    print_group(run, i);
  }
}

/* Each reason once, with the number of cases and an example. */
static void print_reasons(const run_state *run) {
  int32_t shown = 0;
  for (int32_t i = 0; i < run->done; i++) {
    const mla_verdict *v = &run->record[i].verdict;
    int32_t count = 0, required = 0;
    if (v->kind != MLA_VERDICT_UNSUPPORTED) continue;
    for (int32_t k = 0; k < run->done && count >= 0; k++) {
      const mla_verdict *w = &run->record[k].verdict;
      if (w->kind != MLA_VERDICT_UNSUPPORTED ||
          strcmp(w->reason, v->reason) != 0)
        continue;
      if (k < i) count = -1;
      if (count < 0) break;
      count++;
      required += run_requires(run, k);
    }
    if (count <= 0) continue;
    if (!shown++) printf("\n  unsupported\n");
    printf("  %5d  %s%s    first: %s\n", (int)count, v->reason,
           required ? "  (required)" : "", mla_docket_at(run->docket, i)->id);
  }
}

/* Each class once, in the order of the failures. */
static void print_looks(const run_state *run) {
  int32_t shown = 0;
  for (int32_t i = 0; i < run->done; i++) {
    const char *cls = run->record[i].verdict.look.cls;
    int32_t count = 0, first = 1;
    for (int32_t k = 0; k < run->done && *cls; k++) {
      if (strcmp(run->record[k].verdict.look.cls, cls) != 0) continue;
      if (k < i) first = 0;
      count++;
    }
    if (!*cls || !first) continue;
    if (!shown++) printf("\n  failures look like\n");
    printf("  %5d  %-13s first: %s\n", (int)count, cls,
           mla_docket_at(run->docket, i)->id);
  }
}

/* ---------------------------------------------------------------- verdict */

static void print_scope(const run_state *run, const run_sums *s) {
  const mla_backend *b = mla_device_backend(run->target->device);
  printf("%s", b->name);
  if (run->claim)
    printf(" on %sprofile %s", run->restricted ? "part of " : "", run->claim);
  printf(": %d of %d cases judged, %d passed", (int)s->judged, (int)s->asked,
         (int)s->passed);
  if (s->failed) printf(", %d FAILED", (int)s->failed);
  if (s->bad_vectors)
    printf(", %d vectors contradict the reference", (int)s->bad_vectors);
  if (s->errors) printf(", %d could not be judged", (int)s->errors);
  if (s->unsupported_required)
    printf(", %d required ones UNSUPPORTED", (int)s->unsupported_required);
  if (s->unsupported - s->unsupported_required)
    printf(", %d unsupported that may be",
           (int)(s->unsupported - s->unsupported_required));
  printf("\n");
}

void report_text_end(const run_state *run) {
  run_sums s = run_sum(run);
  int code = run_exit_code(run, &s);
  int32_t bad = s.failed + s.errors + s.bad_vectors;
  const char *word = code == EXIT_SATISFIED ? "PASS"
                     : code == EXIT_NOTHING ? "NOTHING"
                     : code == EXIT_FAILED  ? "FAIL"
                                            : "ERROR";
  if (!run->verbose && bad > MOST_FAILURES)
    printf("... and %d more (-v shows all)\n", (int)(bad - MOST_FAILURES));
  print_table(run);
  print_looks(run);
  print_reasons(run);
  printf(
      "\n%s%s%s  ",
      colour_of(code == EXIT_SATISFIED ? MLA_VERDICT_PASS : MLA_VERDICT_FAIL),
      word, plain());
  print_scope(run, &s);
  if (code == EXIT_NOTHING) printf("No case was judged: that is no success.\n");
  if (run->claim && !run->restricted && s.unsupported_required && s.judged)
    printf(
        "A port that is meant to serve less says so: --only decode:bf16 "
        "judges just that.\n");
}

/* --------------------------------------------------------------- progress */

void progress_show(const run_state *run) {
  int32_t i = run->done;
  if (!isatty(2)) return;
  fprintf(stderr, "\r\033[K[%d/%d] %.60s", (int)i + 1,
          (int)mla_docket_count(run->docket),
          mla_docket_at(run->docket, i)->id);
  fflush(stderr);
}

void progress_clear(void) {
  if (!isatty(2)) return;
  fprintf(stderr, "\r\033[K");
  fflush(stderr);
}
