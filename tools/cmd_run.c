/*
 * cmd_run.c - mlacheck run.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "folder.h"
#include "options.h"
#include "report.h"
#include "run_judge.h"

static const char help[] =
    "mlacheck run - judge a backend\n"
    "\n"
    "usage: mlacheck run [OPTIONS]\n"
    "\n"
    "whom\n"
    "  --backend NAME     a backend that is built in (default: cpu)\n"
    "  --plugin PATH      load this shared object, and judge it\n"
    "  --device N         which of its devices (default: 0)\n"
    "  --options \"k=v\"    handed to the backend\n"
    "  --cpu-mask LEVEL   highest level of cpu kernels: portable, avx2, ...\n"
    "on what (default: --profile smoke)\n"
    "  --profile NAME     the cases of a profile, by name or path\n"
    "  --model NAME       cases of a model's sizes (list --models), or of a\n"
    "                     config.json; NAME:tp8: its heads on 8 devices\n"
    "  --only PATTERN...  of these, cases that begin so: decode, decode:bf16\n"
    "  --case ID...       single cases (list --keys says how they are "
    "written)\n"
    "  --vectors PATH...  files of vectors, or folders of such files\n"
    "  --seed N           another seed for all data made from names\n"
    "how\n"
    "  --expected DIR     keep the reference's answers there, and use them\n"
    "  --jobs N           cases at a time, in child processes (default: 1)\n"
    "  --timeout S        seconds that a case may take (default: a minute and\n"
    "                     more by its size)\n"
    "  --no-fork          judge in this process, for debuggers: a crash ends\n"
    "                     the run, and no page round a tensor is guarded\n"
    "  --no-shrink        leave failing cases as large as they are\n"
    "  --repro DIR        write each failure there as one file that --vectors\n"
    "                     reads: inputs, expected, got, versions\n"
    "  -v                 a line for every case, and all figures\n"
    "what is written\n" REPORT_HELP
    "\n"
    "A profile is a claim: a case that it requires and the backend does not\n"
    "support is a failure. With --only the claim is as narrow as the pattern.\n"
    "\n"
    "exit codes: 0 satisfied, 1 failed, 2 usage, 3 environment, 77 nothing "
    "was\napplicable\n";

typedef struct run_options {
  target target;
  const char *profile, *model, *keep, *repro;
  char of_model[1024]; /* "model:NAME" */
  text_list only, cases, vectors;
  report_options reports;
  uint64_t seed, jobs, timeout;
  int verbose, no_shrink, no_fork, help;
} run_options;

#define NO_SEED UINT64_MAX

static int read_options(int argc, char **argv, run_options *o) {
  memset(o, 0, sizeof *o);
  o->seed = NO_SEED;
  o->jobs = 1;
  const option table[] = {
      TARGET_OPTIONS(&o->target),
      {"--profile", OPTION_TEXT, &o->profile},
      {"--model", OPTION_TEXT, &o->model},
      {"--only", OPTION_LIST, &o->only},
      {"--case", OPTION_LIST, &o->cases},
      {"--vectors", OPTION_LIST, &o->vectors},
      {"--seed", OPTION_COUNT, &o->seed},
      {"--expected", OPTION_TEXT, &o->keep},
      REPORT_OPTIONS(&o->reports),
      {"--jobs", OPTION_COUNT, &o->jobs},
      {"--timeout", OPTION_COUNT, &o->timeout},
      {"--no-fork", OPTION_FLAG, &o->no_fork},
      {"--no-shrink", OPTION_FLAG, &o->no_shrink},
      {"--repro", OPTION_TEXT, &o->repro},
      {"--verbose", OPTION_FLAG, &o->verbose},
      {"--help", OPTION_FLAG, &o->help},
      {NULL, 0, NULL},
  };
  if (!options_read("run", argc, argv, table, NULL)) return 0;
  if (o->model && o->profile)
    return usage_error("run", "--model is a profile: one of both"), 0;
  if (!o->model) return 1;
  snprintf(o->of_model, sizeof o->of_model, "model:%s", o->model);
  o->profile = o->of_model;
  return 1;
}

/* ------------------------------------------------------------- the docket */

static int say(const mla_error *err, mla_status status) {
  fprintf(stderr, "mlacheck run: %s\n", err->message);
  return status == MLA_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_ENVIRONMENT;
}

static mla_status add_profile(mla_docket *d, const char *name, uint64_t seed,
                              mla_error *err) {
  mla_suite suite;
  mla_status status = mla_suite_load(name, &suite, err);
  for (int64_t i = 0; i < suite.count && seed != NO_SEED; i++)
    suite.entry[i].seed = seed;
  if (status == MLA_OK) status = mla_docket_add_suite(d, &suite, err);
  mla_suite_free(&suite);
  return status;
}

/* A case by its name is the one of the profiles: seen again, it is explained
   as it was there. */
static mla_status know_cases(mla_docket *d, mla_error *err) {
  mla_suite all;
  mla_status status = mla_suite_load("full", &all, err);
  if (status == MLA_OK) mla_docket_know(d, &all);
  mla_suite_free(&all);
  return status;
}

static mla_status fill_docket(mla_docket *d, run_options *o, mla_error *err) {
  mla_status status = MLA_OK;
  uint64_t seed = o->seed == NO_SEED ? MLA_SUITE_SEED : o->seed;
  for (int32_t i = 0; i < o->cases.count && status == MLA_OK; i++)
    status = mla_docket_add_case(d, o->cases.value[i], seed, err);
  if (status == MLA_OK && o->cases.count) status = know_cases(d, err);
  for (int32_t i = 0; i < o->vectors.count && status == MLA_OK; i++)
    status = mla_docket_add_path(d, o->vectors.value[i], err);
  if (!o->profile && !o->cases.count && !o->vectors.count) o->profile = "smoke";
  if (status == MLA_OK && o->profile)
    status = add_profile(d, o->profile, o->seed, err);
  if (status == MLA_OK)
    status = mla_docket_keep_only(d, o->only.value, o->only.count, err);
  return status;
}

/* Cases of batch building ask the library's builder: a backend that is named
   would pass without being called. 0: it has said so. */
static int check_whom(const mla_docket *d, const target *t) {
  for (int32_t i = 0; i < mla_docket_count(d); i++) {
    const mla_item *item = mla_docket_at(d, i);
    if (item->kind != MLA_ITEM_BATCH || (!t->backend && !t->plugin)) continue;
    usage_error("run",
                "%.60s is asked of the library, not of a backend: "
                "leave --backend and --plugin out, or see `mlacheck export`",
                item->id);
    return 0;
  }
  return 1;
}

/* ---------------------------------------------------------------- the run */

static run_how how_of(const run_options *o, int text, crew_member *first) {
  run_how how = {(int32_t)(o->no_fork ? 0 : o->jobs),
                 (double)o->timeout,
                 !o->no_shrink,
                 o->repro,
                 o->keep,
                 text,
                 first};
  return how;
}

static int no_memory(run_state *run, size_t count) {
  fprintf(stderr, "mlacheck run: no memory for %zu verdicts\n", count);
  free(run->record);
  return EXIT_ENVIRONMENT;
}

static int judge(const run_options *o, const mla_docket *docket,
                 crew_member *first) {
  char rerun[1024];
  int text = !reports_take_stdout(&o->reports);
  size_t count = (size_t)mla_docket_count(docket);
  target_rerun(&o->target, rerun, sizeof rerun);
  run_state run = {&o->target, o->profile, rerun, &o->only, o->only.count > 0,
                   o->verbose, docket,     NULL,  0,        &o->reports};
  run.record = calloc(count + 1, sizeof *run.record);
  if (!run.record) return no_memory(&run, count);
  if (text) report_text_begin(&run);
  run_how how = how_of(o, text, first);
  if (!run_judge(&run, &how)) return no_memory(&run, count);
  if (text) report_text_end(&run);
  run_sums sums = run_sum(&run);
  int code = reports_write(&run, "run", run_exit_code(&run, &sums));
  free(run.record);
  return code;
}

int cmd_run(int argc, char **argv) {
  run_options o;
  mla_error err = mla_error_init();
  crew_member first;
  memset(&first, 0, sizeof first);
  if (!read_options(argc, argv, &o)) return EXIT_USAGE;
  if (o.help) return fputs(help, stdout), EXIT_SATISFIED;
  if (o.jobs < 1 || o.jobs > CREW_MOST)
    return usage_error("run", "--jobs is 1 to 32");
  if (o.seed != NO_SEED && o.seed > (uint64_t)1 << 53)
    return usage_error("run", "--seed is above 2^53");
  mla_docket *docket = mla_docket_new();
  mla_status status =
      docket ? fill_docket(docket, &o, &err) : MLA_OUT_OF_MEMORY;
  int code = status == MLA_OK ? EXIT_SATISFIED : say(&err, status);
  if (code == EXIT_SATISFIED && !check_whom(docket, &o.target))
    code = EXIT_USAGE;
  if (code == EXIT_SATISFIED && o.keep && !folder_make("run", o.keep))
    code = EXIT_ENVIRONMENT;
  if (code == EXIT_SATISFIED && o.repro && !folder_make("run", o.repro))
    code = EXIT_ENVIRONMENT;
  if (code == EXIT_SATISFIED) code = reports_open("run", &o.reports);
  run_how how = how_of(&o, 0, &first);
  if (code == EXIT_SATISFIED)
    code = run_judge_open("run", &o.target, docket, &how);
  if (code == EXIT_SATISFIED) code = judge(&o, docket, &first);
  crew_dismiss(&first);
  target_close(&o.target);
  reports_close(&o.reports);
  mla_docket_free(docket);
  return code;
}
