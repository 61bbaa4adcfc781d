/*
 * report.h - what a run says: text for people, files for programs.
 */
#ifndef MLA_TOOL_REPORT_H
#define MLA_TOOL_REPORT_H

#include <stdio.h>

#include "docket.h"
#include "options.h"
#include "target.h"
#include "waivers.h"

/* Files that are written beside the text; paths or NULL. "-": stdout alone. */
typedef struct report_options {
  const char *json, *junit, *html;
  const char *waivers; /* a file of known failures, or NULL */
  int required;        /* nothing applicable is a failure: exit 1, not 77 */
  mla_waivers known;
} report_options;

/* Lines for a table of options (options.h). */
#define REPORT_OPTIONS(o)                                                     \
  {"--json", OPTION_TEXT, &(o)->json}, {"--junit", OPTION_TEXT, &(o)->junit}, \
      {"--html", OPTION_TEXT, &(o)->html},                                    \
      {"--waivers", OPTION_TEXT, &(o)->waivers}, {                            \
    "--required", OPTION_FLAG, &(o)->required                                 \
  }
#define REPORT_HELP                                                            \
  "  --json FILE        also write the verdict as JSON (-: to stdout only)\n"  \
  "  --junit FILE       also write it as JUnit XML, for CI servers\n"          \
  "  --html FILE        also write it as one page with pictures\n"             \
  "  --waivers FILE     failures that are known, with a link for each: they\n" \
  "                     are counted and shown as waived, never as passed\n"    \
  "  --required         exit 1, not 77, when nothing was applicable: for "     \
  "test\n"                                                                     \
  "                     runners that take 77 for \"skipped\"\n"

#define REPORT_MOST_FAILURES 20 /* in full, unless -v */

/* One run: what was asked, what came out. */
typedef struct run_state {
  const target *target;
  const char *claim; /* name of the profile, or NULL: no claim */
  const char *rerun; /* "mlacheck run --plugin ./libport.so": for rerun lines */
  const text_list *only; /* parts of the profile, or NULL or empty: all */
  int restricted;        /* --only or --case: part of a profile */
  int verbose;
  const mla_docket *docket;
  mla_record *record; /* one for each item */
  int32_t done;       /* records that stand */
  const report_options *reports;
} run_state;

/* Sums over the records. */
typedef struct run_sums {
  int32_t asked, judged, passed, failed, errors, bad_vectors;
  int32_t unsupported, unsupported_required;
  int32_t waived;     /* of those, failures and required ones: known */
  int refusals_alone; /* were judged, of cases that are not that alone */
} run_sums;

const mla_backend *run_backend(const run_state *run);
/* 0: the device does not say. */
int run_device(const run_state *run, mla_device_info *info);
run_sums run_sum(const run_state *run);
/* The exit code that the sums mean. */
int run_exit_code(const run_state *run, const run_sums *sums);
/* Would it fail the claim, were the i-th item unsupported? */
int run_requires(const run_state *run, int32_t i);
/* The waiver of a failure, or NULL: there is none, or it is no failure. */
const mla_waiver *run_waiver(const run_state *run, int32_t i);
/* Does an entry about this backend waive nothing of this run? */
int run_is_stale(const run_state *run, int32_t waiver);
/* A failure of any kind that no waiver covers. */
int run_is_bad(const run_state *run, int32_t i);

/* Text to stdout: a header, a block for each record, tables, the verdict. */
void report_text_begin(const run_state *run);
void report_text_record(const run_state *run, int32_t i);
void report_text_end(const run_state *run);

/* report_record.c: the block of one failure, without colour. */
void report_failure(FILE *to, const run_state *run, int32_t i);
/* The line that shows it again, without a line end. */
void report_rerun(FILE *to, const run_state *run, int32_t i);
/* report_tables.c: what many records say together. */
void report_tables(const run_state *run);
/* "\033[31m" or "": for stdout. */
const char *report_colour(int32_t kind);
const char *report_plain(void);

/*
 * Before a run: reads the waivers. After it: writes the files that are asked
 * for; returns `code`, or EXIT_ENVIRONMENT when one cannot be written. Both
 * say on stderr what went wrong.
 */
int reports_open(const char *command, report_options *options);
int reports_write(const run_state *run, const char *command, int code);
void reports_close(report_options *options);
/* Is stdout for a file, so that no text may go there? */
int reports_take_stdout(const report_options *options);

/* Progress, on a terminal's stderr only. */
void progress_show(const run_state *run);
void progress_clear(void);

#endif
