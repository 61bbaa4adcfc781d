/*
 * report.h - what a run says, as text and as JSON.
 */
#ifndef MLA_TOOL_REPORT_H
#define MLA_TOOL_REPORT_H

#include "docket.h"
#include "target.h"

/* One run: what was asked, what came out. */
typedef struct run_state {
  const target *target;
  const char *claim; /* name of the profile, or NULL: no claim */
  const char *rerun; /* "mlacheck run --plugin ./libport.so": for rerun lines */
  int restricted;    /* --only or --case: part of a profile */
  int verbose;
  const mla_docket *docket;
  mla_record *record; /* one for each item */
  int32_t done;       /* records that stand */
} run_state;

/* Sums over the records. */
typedef struct run_sums {
  int32_t asked, judged, passed, failed, errors, bad_vectors;
  int32_t unsupported, unsupported_required;
} run_sums;

run_sums run_sum(const run_state *run);
/* The exit code that the sums mean. */
int run_exit_code(const run_state *run, const run_sums *sums);
/* Would it fail the claim, were the i-th item unsupported? */
int run_requires(const run_state *run, int32_t i);

/* Text to stdout: a header, a block for each record, tables, the verdict. */
void report_text_begin(const run_state *run);
void report_text_record(const run_state *run, int32_t i);
void report_text_end(const run_state *run);

/* To a file, or "-" for stdout; 0 and a sentence on stderr when not. */
int report_json(const run_state *run, const char *path);

/* Progress, on a terminal's stderr only. */
void progress_show(const run_state *run);
void progress_clear(void);

#endif
