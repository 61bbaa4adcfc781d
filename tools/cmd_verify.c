/*
 * cmd_verify.c - mlacheck verify.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_judge.h"
#include "commands.h"
#include "explain.h"
#include "question.h"
#include "questions.h"
#include "registry.h"
#include "report.h"

static const char help[] =
    "mlacheck verify - judge what another program computed\n"
    "\n"
    "usage: mlacheck verify [OPTIONS] DIR\n"
    "\n"
    "DIR is what `mlacheck export` wrote, with DIR/NAME.out.safetensors for\n"
    "each case: its outputs by name, dense, of their types. A case of batch\n"
    "building is answered by DIR/NAME.out.json. An output that is not there "
    "is\n"
    "a failure. A file may declare its arithmetic in its "
    "metadata\n"
    "(golden/FORMAT.md, \"A question\"), or say why it has no answer.\n"
    "\n"
    "  --only PATTERN...  cases that begin so: decode, decode:bf16\n"
    "  --case ID...       these alone\n"
    "  -v                 a line for every case, and all figures\n"
    "what is written\n" REPORT_HELP
    "\n"
    "exit codes: 0 satisfied, 1 failed, 2 usage, 3 environment, 77 nothing "
    "was\napplicable\n";

typedef struct verify_options {
  text_list dirs;
  questions_asked asked;
  report_options reports;
  uint64_t seed; /* of rerun lines: the index knows it */
  int verbose, help;
} verify_options;

static int read_options(int argc, char **argv, verify_options *o) {
  memset(o, 0, sizeof *o);
  const option table[] = {
      {"--only", OPTION_LIST, &o->asked.only},
      {"--case", OPTION_LIST, &o->asked.cases},
      {"--seed", OPTION_COUNT, &o->seed},
      REPORT_OPTIONS(&o->reports),
      {"--verbose", OPTION_FLAG, &o->verbose},
      {"--help", OPTION_FLAG, &o->help},
      {NULL, 0, NULL},
  };
  return options_read("verify", argc, argv, table, &o->dirs);
}

/* ---------------------------------------------------------------- judging */

static void fail(mla_record *r, const char *what, const char *why) {
  memset(r, 0, sizeof *r);
  r->verdict.kind = MLA_VERDICT_FAIL;
  snprintf(r->verdict.reason, sizeof r->verdict.reason, "%s%.280s", what, why);
}

/* What the judge says of a backend, said of a file. */
static void reword(mla_verdict *v) {
  static const char begins[] = "said yes, but the run fails with ";
  char why[sizeof v->reason];
  const char *colon = strstr(v->reason, ": ");
  if (strncmp(v->reason, begins, sizeof begins - 1) != 0 || !colon) return;
  snprintf(why, sizeof why, "the answer is none: %s", colon + 2);
  memcpy(v->reason, why, sizeof why);
}

static void judge_batch(const questions *q, int32_t i, const char *dir,
                        mla_record *r) {
  char path[4200];
  mla_error err = mla_error_init();
  mla_batch_case *c = malloc(sizeof *c);
  mla_status status =
      c ? mla_docket_batch(q->docket, i, c, NULL, &err) : MLA_OUT_OF_MEMORY;
  memset(r, 0, sizeof *r);
  snprintf(path, sizeof path, "%s/%s.out.json", dir, q->name[i]);
  if (status == MLA_OK)
    mla_batch_judge_answer(c, path, &r->verdict);
  else
    fail(r, "the case cannot be made: ", err.message);
  free(c);
}

static void judge_answer(const questions *q, int32_t i, const char *dir,
                         mla_explainer *explainer, mla_record *r) {
  char answer[4200];
  mla_device *device = NULL;
  mla_error err = mla_error_init();
  mla_judge_observer observer = {mla_explain_observe, explainer};
  mla_judge_options how = mla_judge_defaults();
  how.observer = &observer;
  snprintf(answer, sizeof answer, "file=%s/%s.out.safetensors", dir,
           q->name[i]);
  mla_status status = mla_open("answers", 0, answer, &device, &err);
  if (status == MLA_NOT_AVAILABLE)
    fail(r, "there is no answer: ", err.message);
  else if (status != MLA_OK)
    fail(r, "the file of the answer is broken: ", err.message);
  else
    mla_docket_judge(q->docket, i, device, &how, r);
  reword(&r->verdict);
  mla_close(device);
}

static int judge_all(const verify_options *o, const questions *q,
                     run_state *run) {
  mla_explainer explainer;
  int text = !reports_take_stdout(&o->reports);
  memset(&explainer, 0, sizeof explainer);
  if (text) report_text_begin(run);
  for (int32_t i = 0; i < mla_docket_count(q->docket); i++) {
    progress_show(run);
    if (mla_docket_at(q->docket, i)->kind == MLA_ITEM_BATCH)
      judge_batch(q, i, o->dirs.value[0], &run->record[i]);
    else
      judge_answer(q, i, o->dirs.value[0], &explainer, &run->record[i]);
    run->done = i + 1;
    progress_clear();
    if (text) report_text_record(run, i);
  }
  if (text) report_text_end(run);
  run_sums sums = run_sum(run);
  return reports_write(run, "verify", run_exit_code(run, &sums));
}

static int judge(const verify_options *o, const questions *q, const target *t) {
  char rerun[1024];
  run_state run;
  memset(&run, 0, sizeof run);
  snprintf(rerun, sizeof rerun, "mlacheck verify %.1000s", o->dirs.value[0]);
  run.target = t;
  run.claim = o->asked.cases.count ? NULL : q->profile;
  run.restricted = q->restricted || o->asked.only.count > 0;
  run.rerun = rerun;
  run.only = &o->asked.only;
  run.verbose = o->verbose;
  run.docket = q->docket;
  run.reports = &o->reports;
  run.record =
      calloc((size_t)mla_docket_count(q->docket) + 1, sizeof *run.record);
  if (!run.record) {
    fprintf(stderr, "mlacheck verify: no memory\n");
    return EXIT_ENVIRONMENT;
  }
  int code = judge_all(o, q, &run);
  free(run.record);
  return code;
}

static int load(const verify_options *o, questions *q) {
  mla_error err = mla_error_init();
  const mla_backend *entered;
  mla_status status = questions_load(o->dirs.value[0], &o->asked, q, &err);
  if (status == MLA_OK)
    status = mla_registry_add(mla_answers_backend(), "mlacheck verify",
                              &entered, &err);
  if (status == MLA_OK) return EXIT_SATISFIED;
  fprintf(stderr, "mlacheck verify: %s\n", err.message);
  return status == MLA_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_ENVIRONMENT;
}

int cmd_verify(int argc, char **argv) {
  verify_options o;
  questions q;
  target t;
  if (!read_options(argc, argv, &o)) return EXIT_USAGE;
  if (o.help) return fputs(help, stdout), EXIT_SATISFIED;
  if (o.dirs.count != 1) return usage_error("verify", "one folder is needed");
  memset(&t, 0, sizeof t);
  t.backend = "answers";
  int code = load(&o, &q);
  if (code == EXIT_SATISFIED) code = reports_open("verify", &o.reports);
  if (code == EXIT_SATISFIED) code = target_open("verify", &t);
  if (code == EXIT_SATISFIED) code = judge(&o, &q, &t);
  target_close(&t);
  reports_close(&o.reports);
  questions_free(&q);
  return code;
}
