/*
 * cmd_selftest.c - mlacheck selftest.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "explain.h"
#include "folder.h"
#include "options.h"
#include "registry.h"
#include "selftest.h"
#include "selftest_batch.h"

static const char help[] =
    "mlacheck selftest - judge the judge\n"
    "\n"
    "usage: mlacheck selftest [--profile NAME] [-v]\n"
    "\n"
    "Plants every known fault in a backend that is right without it, and\n"
    "judges each, with the parameters that explanations start from and with\n"
    "others. Satisfied when\n"
    "  - the profile catches every fault (smoke: but those of large sizes)\n"
    "  - 90 % of the faults with other parameters are explained as their own\n"
    "    class\n"
    "  - the same backend without a fault, ref and cpu pass\n"
    "Likewise in a builder of batches, which profile batch judges.\n"
    "\n"
    "  --profile NAME   the cases to judge by (default: smoke)\n"
    "  --only NAME...   only these faults or classes\n"
    "  --in-order       cases as `run` takes them: what is said of a fault "
    "first\n"
    "  --expected DIR   keep the reference's answers there\n"
    "  --jobs N         child processes at a time (default: one a core)\n"
    "  --patience X     factor on the time a case may take (default: 1)\n"
    "  -v               also what was said of each\n"
    "\n"
    "exit codes: 0 satisfied, 1 failed, 2 usage, 3 environment\n";

typedef struct selftest_options {
  const char *profile, *keep;
  text_list only;
  uint64_t jobs, patience;
  int in_order, verbose, help;
} selftest_options;

typedef struct selftest {
  selftest_options o;
  selftest_run run;
  selftest_job *job;
  selftest_result *result;
  int32_t count, clean; /* jobs; the first ones must pass */
  int32_t ended, first; /* jobs; the one that note() counts from */
  unsigned char *over;  /* a byte a job */
  int32_t shown;        /* jobs whose line is printed */
  selftest_batch batch; /* faults of batch building */
} selftest;

static int read_options(int argc, char **argv, selftest_options *o) {
  memset(o, 0, sizeof *o);
  o->profile = "smoke";
  const option table[] = {{"--profile", OPTION_TEXT, &o->profile},
                          {"--only", OPTION_LIST, &o->only},
                          {"--in-order", OPTION_FLAG, &o->in_order},
                          {"--expected", OPTION_TEXT, &o->keep},
                          {"--jobs", OPTION_COUNT, &o->jobs},
                          {"--patience", OPTION_COUNT, &o->patience},
                          {"--verbose", OPTION_FLAG, &o->verbose},
                          {"--help", OPTION_FLAG, &o->help},
                          {NULL, 0, NULL}};
  return options_read("selftest", argc, argv, table, NULL);
}

/* -------------------------------------------------------------------- jobs */

static int is_called(const planted_fault *f, const char *name) {
  return !strcmp(name, f->name) || !strcmp(name, f->cls);
}

static int is_wanted(const selftest *s, const planted_fault *f) {
  for (int32_t i = 0; i < s->o.only.count; i++)
    if (is_called(f, s->o.only.value[i])) return 1;
  return s->o.only.count == 0;
}

/* Needs it sizes that the profile has not? */
static int is_too_large(const selftest *s, const planted_fault *f) {
  return (f->traits & PLANTED_FULL) && strcmp(s->o.profile, "smoke") == 0;
}

/* To see all of smoke pass takes longest: only who names such a fault asks. */
static int is_asked(const selftest *s, const planted_fault *f) {
  return s->o.only.count ? is_wanted(s, f) : !is_too_large(s, f);
}

/* The first name that no fault and no class has, or NULL. */
static const char *unknown_name(const selftest *s) {
  for (int32_t i = 0; i < s->o.only.count; i++) {
    const char *name = s->o.only.value[i];
    int known = selftest_batch_knows(name);
    for (int32_t f = 1; f < PLANTED_COUNT; f++)
      known |= is_called(planted_fault_at(f), name);
    if (!known) return name;
  }
  return NULL;
}

static selftest_job *new_job(selftest *s, const char *backend, int32_t fault,
                             int variant) {
  selftest_job *j = &s->job[s->count++];
  j->backend = backend;
  j->fault = fault;
  j->variant = variant;
  if (fault)
    snprintf(j->options, sizeof j->options, "fault=%s",
             planted_fault_at(fault)->name);
  return j;
}

static void add_option(selftest_job *j, const char *name, double value) {
  size_t n = strlen(j->options);
  snprintf(j->options + n, sizeof j->options - n, ";%s=%.9g", name, value);
}

static void add_fault(selftest *s, int32_t fault) {
  const planted_fault *f = planted_fault_at(fault);
  new_job(s, "planted", fault, 0);
  if (planted_has_variant(fault)) {
    selftest_job *j = new_job(s, "planted", fault, 1);
    if (f->a2 != f->a) add_option(j, "a", f->a2);
    if (f->x2 != f->x) add_option(j, "x", f->x2);
  }
  if (f->traits & PLANTED_ROWS)
    add_option(new_job(s, "planted", fault, 1), "head", 1);
}

static int make_jobs(selftest *s) {
  size_t most = 3 * (size_t)PLANTED_COUNT + 3;
  s->job = calloc(most, sizeof *s->job);
  s->result = calloc(most, sizeof *s->result);
  s->over = calloc(most, 1);
  if (!s->job || !s->result || !s->over) return 0;
  new_job(s, "planted", PLANTED_NONE, 0);
  new_job(s, "ref", PLANTED_NONE, 0);
  if (mla_backend_find("cpu")) new_job(s, "cpu", PLANTED_NONE, 0);
  s->clean = s->shown = s->count;
  for (int32_t f = 1; f < PLANTED_COUNT; f++)
    if (is_asked(s, planted_fault_at(f))) add_fault(s, f);
  return 1;
}

/* ------------------------------------------------------------------ report */

static const char *shown_options(const selftest_job *j) {
  return j->options[0] ? j->options + strlen("fault=") : j->backend;
}

static void how_caught(const selftest *s, int32_t i, char *text, size_t size) {
  const selftest_result *r = &s->result[i];
  const char *id =
      r->caught >= 0 ? mla_docket_at(s->run.docket, r->caught)->id : "";
  if (r->unjudged >= 0)
    snprintf(text, size, "NOT JUDGED: %s: %s",
             mla_docket_at(s->run.docket, r->unjudged)->id, r->reason);
  else if (r->caught < 0)
    snprintf(text, size, "NOT CAUGHT by %d cases", (int)r->judged);
  else if (r->died == MLA_DEATH_SIGNAL)
    snprintf(text, size, "%s (killed, signal %d)", id, (int)r->signal);
  else if (r->died)
    snprintf(text, size, "%s (%s)", id,
             r->died == MLA_DEATH_TIMEOUT ? "time was up" : "it ended");
  else
    snprintf(text, size, "%s", id);
}

static int is_explained(const selftest *s, int32_t i) {
  return strcmp(s->result[i].look.cls,
                planted_fault_at(s->job[i].fault)->cls) == 0;
}

static void print_fault(const selftest *s, int32_t i) {
  const planted_fault *f = planted_fault_at(s->job[i].fault);
  const selftest_result *r = &s->result[i];
  const char *cls = r->look.cls[0] ? r->look.cls : "-";
  char caught[MLA_CASE_ID_MAX + 64];
  how_caught(s, i, caught, sizeof caught);
  printf("%-26s %-13s %s%-12s %s\n", shown_options(&s->job[i]), f->cls,
         r->caught >= 0 && !is_explained(s, i) ? "!" : " ",
         r->caught >= 0 ? cls : "", caught);
  if (!s->o.verbose) return;
  char look[400];
  if (mla_look_print(&r->look, look, sizeof look) > 0)
    printf("    looks like  %s\n", look);
  if (r->reason[0]) printf("    why         %s\n", r->reason);
}

static int clean_passes(const selftest *s, int32_t i) {
  const selftest_result *r = &s->result[i];
  return r->ended && r->caught < 0 && r->unjudged < 0 && r->judged > 0;
}

static void print_clean(const selftest *s, int32_t i) {
  const selftest_result *r = &s->result[i];
  char caught[MLA_CASE_ID_MAX + 64];
  if (clean_passes(s, i)) {
    printf("%-26s passes %d cases, worst %.3f of the budget\n",
           s->job[i].backend, (int)r->judged, r->worst);
    return;
  }
  how_caught(s, i, caught, sizeof caught);
  printf("%-26s FAILS without a fault: %s %s\n", s->job[i].backend, caught,
         r->unjudged < 0 ? r->reason : "");
}

/* Lines stand in order, each as soon as those before it do. */
static void note(void *context, int32_t i) {
  selftest *s = context;
  s->ended++;
  s->over[s->first + i] = 1;
  if (isatty(2)) fprintf(stderr, "\r\033[K");
  for (; s->shown < s->count && s->over[s->shown]; s->shown++)
    print_fault(s, s->shown);
  fflush(stdout);
  if (isatty(2) && s->ended < s->count)
    fprintf(stderr, "[%d/%d]", (int)s->ended, (int)s->count);
}

static void print_others(const selftest *s) {
  const planted_class *c;
  for (int32_t i = 1; i < PLANTED_COUNT; i++) {
    const planted_fault *f = planted_fault_at(i);
    if (!s->o.only.count && is_too_large(s, f))
      printf("%-26s %-13s  not asked: it is for profile full\n", f->name,
             f->cls);
  }
  for (int32_t i = 0; (c = planted_class_at(i)) != NULL; i++)
    if (c->comes_with)
      printf("%-26s %-13s nothing planted: comes with %s\n", "-", c->name,
             c->comes_with);
}

/* The bars; 1 when all hold. */
static int print_verdict(const selftest *s) {
  const selftest_batch *b = &s->batch;
  int32_t caught = b->caught, faults = b->faults, clean = 0, missed = 0;
  int32_t explained = b->explained, variants = b->variants;
  for (int32_t i = 0; i < s->count; i++) {
    const selftest_job *j = &s->job[i];
    if (i < s->clean) {
      clean += clean_passes(s, i);
    } else if (j->variant) {
      variants++;
      explained += s->result[i].caught >= 0 && is_explained(s, i);
    } else {
      faults++;
      int is_caught = s->result[i].caught >= 0 && s->result[i].ended;
      caught += is_caught;
      missed += !is_caught && !is_too_large(s, planted_fault_at(j->fault));
    }
  }
  missed += b->faults - b->caught;
  int ok = clean == s->clean && b->clean && 10 * explained >= 9 * variants &&
           missed == 0;
  printf(
      "\n%s  profile %s catches %d of %d faults (needed: %d); %d of %d "
      "variants are\n      explained as their own class (needed: 90 %%); "
      "%d of %d backends without a fault pass\n",
      ok ? "PASS" : "FAIL", s->o.profile, (int)caught, (int)faults,
      (int)(caught + missed), (int)explained, (int)variants, (int)clean,
      (int)s->clean);
  return ok;
}

/* --------------------------------------------------------------------- run */

/* The first job alone, so that the reference answers every case once. */
static int judge_all(selftest *s) {
  int32_t jobs = (int32_t)(s->o.jobs ? s->o.jobs : 2);
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (!s->o.jobs && cores > 0) jobs = cores < 16 ? (int32_t)cores : 16;
  if (!selftest_judge(&s->run, s->job, s->result, 1, 1, note, s)) return 0;
  s->first = 1;
  return selftest_judge(&s->run, s->job + 1, s->result + 1, s->count - 1, jobs,
                        note, s);
}

static int run_selftest(selftest *s) {
  folder_lent lent;
  int own = s->o.keep == NULL;
  if (own ? !folder_lend("selftest", &lent)
          : !folder_make("selftest", s->o.keep))
    return EXIT_ENVIRONMENT;
  s->run.keep = own ? lent.path : s->o.keep;
  s->run.in_order = s->o.in_order;
  s->run.patience = s->o.patience ? (double)s->o.patience : 1;
  printf("%-26s %-13s  %-12s %s\n", "planted", "class", "explained",
         "caught by");
  int ok = judge_all(s);
  if (own) folder_return(&lent);
  if (!ok) {
    fprintf(stderr, "mlacheck selftest: no memory\n");
    return EXIT_ENVIRONMENT;
  }
  selftest_batch_run(&s->o.only, s->o.verbose, &s->batch);
  print_others(s);
  printf("\n");
  for (int32_t i = 0; i < s->clean; i++) print_clean(s, i);
  return print_verdict(s) ? EXIT_SATISFIED : EXIT_FAILED;
}

static mla_status prepare(selftest *s, mla_docket *docket, mla_error *err) {
  const mla_backend *entered;
  mla_suite suite;
  mla_status status = mla_suite_load(s->o.profile, &suite, err);
  if (status == MLA_OK) status = mla_docket_add_suite(docket, &suite, err);
  mla_suite_free(&suite);
  if (status == MLA_OK)
    status = mla_registry_add(mla_planted_backend(MLA_ABI_MAJOR, MLA_ABI_MINOR),
                              "the self-test", &entered, err);
  s->run.docket = docket;
  return status;
}

int cmd_selftest(int argc, char **argv) {
  selftest s;
  mla_error err = mla_error_init();
  memset(&s, 0, sizeof s);
  if (!read_options(argc, argv, &s.o)) return EXIT_USAGE;
  if (s.o.help) return fputs(help, stdout), EXIT_SATISFIED;
  mla_docket *docket = mla_docket_new();
  mla_status status = docket ? prepare(&s, docket, &err) : MLA_OUT_OF_MEMORY;
  int code = EXIT_ENVIRONMENT;
  if (status != MLA_OK || !make_jobs(&s))
    fprintf(stderr, "mlacheck selftest: %s\n",
            status != MLA_OK ? err.message : "no memory");
  else if (unknown_name(&s))
    code = usage_error("selftest", "no fault and no class is called \"%s\"",
                       unknown_name(&s));
  else
    code = run_selftest(&s);
  free(s.job);
  free(s.result);
  free(s.over);
  mla_docket_free(docket);
  return code;
}
