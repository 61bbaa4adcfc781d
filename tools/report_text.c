/*
 * report_text.c - a run for people: each failure on one screen, then tables
 * and the verdict. Without a terminal the same run gives the same bytes.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "report.h"

static int has_colour(void) {
  const char *no = getenv("NO_COLOR");
  return isatty(1) && !(no && *no);
}

const char *report_colour(int32_t kind) {
  if (!has_colour()) return "";
  switch (kind) {
    case MLA_VERDICT_PASS: return "\033[32m";
    case MLA_VERDICT_UNSUPPORTED: return "\033[33m";
    default: return "\033[31m";
  }
}

const char *report_plain(void) {
  return has_colour() ? "\033[0m" : "";
}

void report_text_begin(const run_state *run) {
  const mla_backend *b = run_backend(run);
  mla_device_info info;
  printf("mlacheck %s  backend %s %s (%s)\n", mla_version(), b->name,
         b->version ? b->version : "", b->description ? b->description : "");
  if (run->verbose && run_device(run, &info))
    printf("device %s, %s, %d compute units\n", info.name, info.arch,
           (int)info.compute_units);
}

/* ---------------------------------------------------------------- verdict */

/* Required ones that are unsupported and waived. */
static int32_t waived_missing(const run_state *run) {
  int32_t n = 0;
  for (int32_t i = 0; i < run->done; i++)
    n += run->record[i].verdict.kind == MLA_VERDICT_UNSUPPORTED &&
         run_waiver(run, i);
  return n;
}

static void print_scope(const run_state *run, const run_sums *s) {
  const mla_backend *b = run_backend(run);
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
  if (s->waived) printf(", %d WAIVED", (int)s->waived);
  int32_t may = s->unsupported - s->unsupported_required - waived_missing(run);
  if (may) printf(", %d unsupported that may be", (int)may);
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
  if (!run->verbose && bad > REPORT_MOST_FAILURES)
    printf("... and %d more (-v shows all)\n",
           (int)(bad - REPORT_MOST_FAILURES));
  report_tables(run);
  int32_t kind = code == EXIT_SATISFIED ? MLA_VERDICT_PASS : MLA_VERDICT_FAIL;
  printf("\n%s%s%s  ", report_colour(kind), word, report_plain());
  print_scope(run, &s);
  if (s.judged == 0) printf("No case was judged: that is no success.\n");
  if (s.refusals_alone && !s.failed && !s.unsupported_required)
    printf("Refusals alone satisfy nothing: no other case was judged.\n");
  if (s.waived && !s.passed && code == EXIT_FAILED)
    printf("Waivers alone satisfy nothing: no case passed.\n");
  if (run->claim && !run->restricted && s.unsupported_required && s.judged)
    printf(
        "A port that is meant to serve less says so: --only decode:bf16 "
        "judges just that.\n");
}
