/*
 * cmd_diff.c - mlacheck diff.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "folder.h"
#include "machine.h"
#include "options.h"
#include "oracle.h"
#include "random_case.h"
#include "run_judge.h"

#define FEWEST 1000 /* cases, when neither their number nor a time is said */
#define MOST_LISTED 10000 /* beyond them, those that pass are only counted */
#define BATCH 96
#define PATIENCE 2000 /* draws in a row that nobody claims */

static const char help[] =
    "mlacheck diff - judge a backend on random cases\n"
    "\n"
    "usage: mlacheck diff [OPTIONS]\n"
    "\n"
    "whom\n"
    "  --backend NAME     a backend that is built in (default: cpu)\n"
    "  --plugin PATH      load this shared object, and judge it\n"
    "  --device N         which of its devices (default: 0)\n"
    "  --options \"k=v\"    handed to the backend\n"
    "  --against NAME     draw what this backend claims too, and judge both\n"
    "                     (default: ref, the reference that judges)\n"
    "  --against-options \"k=v\"  handed to that one\n"
    "on what\n"
    "  --seed N           of the draw (default: 1): the same cases each time\n"
    "  --cases N          how many to judge (default: 1000)\n"
    "  --time S           stop after S seconds; alone: as many as they allow\n"
    "  --only PATTERN...  cases that begin so: decode, decode:bf16\n"
    "how\n"
    "  --jobs N           cases at a time, in child processes (default: 1)\n"
    "  --timeout S        seconds that a case may take\n"
    "  --no-fork          judge in this process, for debuggers\n"
    "  --no-shrink        leave failing cases as large as they are\n"
    "  --repro DIR        write each failure there as one file\n"
    "  -v                 a line for every case, and all figures\n"
    "what is written\n" REPORT_HELP
    "\n"
    "Cases are drawn from all that a case can say (list --keys); those that\n"
    "both sides claim are judged, as `mlacheck run --case ID --seed N` would.\n"
    "Every side is held to its own budget round the reference, so two that\n"
    "pass differ by no more than the sum of their budgets.\n"
    "\n"
    "exit codes: 0 satisfied, 1 failed, 2 usage, 3 environment, 77 nothing "
    "was\n"
    "claimed by both\n";

typedef struct diff_options {
  target target, other; /* other.backend NULL: the reference */
  const char *repro;
  report_options reports;
  text_list only;
  uint64_t seed, cases, seconds, jobs, timeout;
  int verbose, no_shrink, no_fork, help;
} diff_options;

/* One run: what was drawn, claimed and judged. */
typedef struct diff_run {
  const diff_options *o;
  run_state run; /* of the cases that are listed */
  mla_docket *docket;
  int32_t room;
  uint64_t next;      /* index of the next draw */
  uint64_t unclaimed; /* draws that a side refuses */
  uint64_t in_a_row;  /* of those, the last */
  uint64_t judged;
  uint64_t unlisted; /* passes that are counted only */
  int32_t shrunk;
  int text;
  double start;
} diff_run;

static int read_options(int argc, char **argv, diff_options *o) {
  memset(o, 0, sizeof *o);
  o->seed = 1;
  o->jobs = 1;
  const option table[] = {
      TARGET_OPTIONS(&o->target),
      {"--against", OPTION_TEXT, &o->other.backend},
      {"--against-options", OPTION_TEXT, &o->other.options},
      {"--seed", OPTION_COUNT, &o->seed},
      {"--cases", OPTION_COUNT, &o->cases},
      {"--time", OPTION_COUNT, &o->seconds},
      {"--only", OPTION_LIST, &o->only},
      {"--jobs", OPTION_COUNT, &o->jobs},
      {"--timeout", OPTION_COUNT, &o->timeout},
      {"--no-fork", OPTION_FLAG, &o->no_fork},
      {"--no-shrink", OPTION_FLAG, &o->no_shrink},
      {"--repro", OPTION_TEXT, &o->repro},
      REPORT_OPTIONS(&o->reports),
      {"--verbose", OPTION_FLAG, &o->verbose},
      {"--help", OPTION_FLAG, &o->help},
      {NULL, 0, NULL},
  };
  if (!options_read("diff", argc, argv, table, NULL)) return 0;
  if (o->other.backend && strcmp(o->other.backend, "ref") == 0)
    o->other.backend = NULL;
  if (!o->cases) o->cases = o->seconds ? UINT64_MAX : FEWEST;
  return 1;
}

static run_how how_of(const diff_run *d) {
  const diff_options *o = d->o;
  run_how how = {(int32_t)(o->no_fork ? 0 : o->jobs),
                 (double)o->timeout,
                 !o->no_shrink && d->shrunk < MOST_SHRUNK,
                 o->repro,
                 NULL,
                 0,
                 NULL};
  return how;
}

/* ---------------------------------------------------------------- drawing */

static int is_wanted(const diff_run *d, const char *id) {
  const text_list *only = &d->o->only;
  for (int32_t i = 0; i < only->count; i++)
    if (mla_docket_matches(id, only->value[i])) return 1;
  return only->count == 0;
}

/* Draws cases that the reference serves; whether a backend does is asked where
   it is open. 0: none came. */
static mla_status draw(diff_run *d, mla_docket *batch, int32_t count,
                       mla_error *err) {
  mla_status status = MLA_OK;
  for (uint64_t i = 0; i < PATIENCE && status == MLA_OK; i++) {
    mla_case c;
    char id[MLA_CASE_ID_MAX];
    uint64_t seed;
    if (mla_docket_count(batch) == count) break;
    if (!mla_random_case(d->o->seed, d->next++, &c, &seed)) continue;
    mla_case_print(&c, id, sizeof id);
    mla_problem problem = mla_case_problem(&c);
    if (!is_wanted(d, id) || mla_oracle_refusal(&problem, NULL)) continue;
    status = mla_docket_add_case(batch, id, seed, err);
  }
  return status;
}

/* An operation, or one and a format: anything else is never drawn. */
static int can_be_drawn(const char *pattern) {
  char word[64];
  const char *format = pattern + strcspn(pattern, ":");
  snprintf(word, sizeof word, "%.*s", (int)(format - pattern), pattern);
  if (mla_op_from_name(word) == MLA_OP_NONE) return 0;
  if (*format == '\0' || *++format == '\0') return 1;
  snprintf(word, sizeof word, "%.*s", (int)strcspn(format, ":"), format);
  return mla_format_from_name(word) != MLA_CACHE_NONE;
}

/* 0: it has said what is wrong. */
static int check_only(const text_list *only) {
  for (int32_t i = 0; i < only->count; i++) {
    if (can_be_drawn(only->value[i])) continue;
    usage_error("diff", "\"%s\" is no operation, nor one with a format",
                only->value[i]);
    return 0;
  }
  return 1;
}

/* ---------------------------------------------------------------- judging */

/* One verdict of two: the first side's, unless only the other one fails.
   1: that is so. */
static int join(const diff_run *d, mla_record *r, const mla_record *other) {
  char why[sizeof r->verdict.reason];
  const char *name = d->o->other.backend;
  int32_t kind = other->verdict.kind;
  if (kind == MLA_VERDICT_PASS || r->verdict.kind == MLA_VERDICT_UNSUPPORTED)
    return 0;
  if (kind != MLA_VERDICT_UNSUPPORTED && r->verdict.kind != MLA_VERDICT_PASS) {
    if (!r->verdict.reason[0])
      snprintf(r->verdict.reason, sizeof r->verdict.reason, "%s fails here too",
               name);
    return 0;
  }
  snprintf(why, sizeof why, "%s fails here, %s does not%s%.200s", name,
           d->o->target.backend, other->verdict.reason[0] ? ": " : "",
           other->verdict.reason);
  *r = *other;
  if (kind == MLA_VERDICT_UNSUPPORTED) return 0;
  memcpy(r->verdict.reason, why, sizeof why);
  return 1;
}

/* records[]: of the first side, then joined with the other's. */
static int judge(diff_run *d, const mla_docket *batch, mla_record *record,
                 unsigned char *is_other) {
  run_how how = how_of(d);
  run_state run;
  int32_t count = mla_docket_count(batch);
  memset(&run, 0, sizeof run);
  run.target = &d->o->target;
  run.rerun = d->run.rerun;
  run.docket = batch;
  run.record = record;
  if (!run_judge(&run, &how)) return 0;
  if (!d->o->other.backend) return 1;
  run.target = &d->o->other;
  run.done = 0;
  run.record = calloc((size_t)count + 1, sizeof *record);
  int ok = run.record && run_judge(&run, &how);
  for (int32_t i = 0; ok && i < count; i++)
    is_other[i] = (unsigned char)join(d, &record[i], &run.record[i]);
  free(run.record);
  return ok;
}

/* ---------------------------------------------------------------- listing */

static int make_room(diff_run *d) {
  if (d->run.done < d->room) return 1;
  int32_t room = d->room ? 2 * d->room : 256;
  mla_record *grown = realloc(d->run.record, (size_t)room * sizeof *grown);
  if (!grown) return 0;
  d->run.record = grown;
  d->room = room;
  return 1;
}

static mla_status list(diff_run *d, const mla_item *item, const mla_record *r,
                       int is_other, mla_error *err) {
  int32_t i = d->run.done;
  run_state side;
  char rerun[1024];
  d->judged++;
  d->shrunk += r->smallest[0] != 0;
  if (i >= MOST_LISTED && r->verdict.kind == MLA_VERDICT_PASS) {
    d->unlisted++;
    return MLA_OK;
  }
  if (!make_room(d)) return MLA_OUT_OF_MEMORY;
  mla_status status = mla_docket_add_case(d->docket, item->id, item->seed, err);
  if (status != MLA_OK) return status;
  d->run.record[i] = *r;
  d->run.done = i + 1;
  side = d->run;
  if (is_other) {
    target_rerun(&d->o->other, rerun, sizeof rerun);
    side.target = &d->o->other;
    side.rerun = rerun;
  }
  if (d->text) report_text_record(&side, i);
  return MLA_OK;
}

/* In the order drawn, those that both claim, until they are enough. */
static mla_status list_batch(diff_run *d, const mla_docket *batch,
                             const mla_record *record,
                             const unsigned char *is_other, mla_error *err) {
  mla_status status = MLA_OK;
  for (int32_t i = 0; i < mla_docket_count(batch) && status == MLA_OK; i++) {
    if (d->judged >= d->o->cases) break;
    if (record[i].verdict.kind == MLA_VERDICT_UNSUPPORTED) {
      d->unclaimed++;
      d->in_a_row++;
      continue;
    }
    d->in_a_row = 0;
    status = list(d, mla_docket_at(batch, i), &record[i], is_other[i], err);
  }
  return status;
}

static int is_over(const diff_run *d) {
  const diff_options *o = d->o;
  return d->judged >= o->cases || d->in_a_row >= PATIENCE ||
         (o->seconds && mla_machine_seconds() - d->start >= (double)o->seconds);
}

/* *more: whether anything came that could be judged. */
static mla_status do_batch(diff_run *d, int *more, mla_error *err) {
  uint64_t left = d->o->cases - d->judged;
  int32_t count = left < BATCH / 2 ? (int32_t)(left + left / 2 + 1) : BATCH;
  mla_docket *batch = mla_docket_new();
  mla_record *record = calloc((size_t)count + 1, sizeof *record);
  unsigned char *is_other = calloc((size_t)count + 1, 1);
  mla_status status = batch && record && is_other ? MLA_OK : MLA_OUT_OF_MEMORY;
  if (status == MLA_OK) status = draw(d, batch, count, err);
  *more = status == MLA_OK && mla_docket_count(batch) > 0;
  if (*more && !judge(d, batch, record, is_other)) status = MLA_OUT_OF_MEMORY;
  if (*more && status == MLA_OK)
    status = list_batch(d, batch, record, is_other, err);
  mla_docket_free(batch);
  free(record);
  free(is_other);
  return status;
}

static void say_drawn(const diff_run *d) {
  printf(
      "\n  seed %llu: %llu cases drawn, %llu of them not claimed by %s and "
      "%s\n",
      (unsigned long long)d->o->seed, (unsigned long long)d->next,
      (unsigned long long)d->unclaimed, d->o->target.backend,
      d->o->other.backend ? d->o->other.backend : "ref");
  if (d->unlisted)
    printf("  %llu more passed, which are not listed\n",
           (unsigned long long)d->unlisted);
}

static int run(diff_run *d) {
  mla_error err = mla_error_init();
  mla_status status = MLA_OK;
  int more = 1;
  d->text = !reports_take_stdout(&d->o->reports);
  d->start = mla_machine_seconds();
  if (d->text) report_text_begin(&d->run);
  while (more && status == MLA_OK && !is_over(d))
    status = do_batch(d, &more, &err);
  if (status != MLA_OK) {
    fprintf(stderr, "mlacheck diff: %s\n",
            err.message[0] ? err.message : "no memory");
    return EXIT_ENVIRONMENT;
  }
  if (d->text) say_drawn(d);
  if (d->text) report_text_end(&d->run);
  run_sums sums = run_sum(&d->run);
  return reports_write(&d->run, "diff", run_exit_code(&d->run, &sums));
}

static int open_sides(diff_run *d, diff_options *o) {
  run_how how = how_of(d);
  int code = run_judge_open("diff", &o->target, d->docket, &how);
  if (code != EXIT_SATISFIED || !o->other.backend) return code;
  return run_judge_open("diff", &o->other, d->docket, &how);
}

int cmd_diff(int argc, char **argv) {
  diff_options o;
  diff_run d;
  char rerun[1024];
  if (!read_options(argc, argv, &o)) return EXIT_USAGE;
  if (o.help) return fputs(help, stdout), EXIT_SATISFIED;
  if (o.jobs < 1 || o.jobs > CREW_MOST)
    return usage_error("diff", "--jobs is 1 to %d", CREW_MOST);
  if (!check_only(&o.only)) return EXIT_USAGE;
  if (o.repro && !folder_make("diff", o.repro)) return EXIT_ENVIRONMENT;
  memset(&d, 0, sizeof d);
  d.o = &o;
  d.docket = mla_docket_new();
  int code = d.docket && make_room(&d) ? reports_open("diff", &o.reports)
                                       : EXIT_ENVIRONMENT;
  if (code == EXIT_SATISFIED) code = open_sides(&d, &o);
  if (code == EXIT_SATISFIED) {
    target_rerun(&o.target, rerun, sizeof rerun);
    d.run.target = &o.target;
    d.run.rerun = rerun;
    d.run.verbose = o.verbose;
    d.run.docket = d.docket;
    d.run.reports = &o.reports;
    code = run(&d);
  }
  free(d.run.record);
  mla_docket_free(d.docket);
  reports_close(&o.reports);
  target_close(&o.other);
  target_close(&o.target);
  return code;
}
