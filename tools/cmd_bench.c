/*
 * cmd_bench.c - mlacheck bench.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "commands.h"
#include "model_presets.h"
#include "options.h"
#include "report_model.h"
#include "target.h"

static const char help[] =
    "mlacheck bench - how fast a backend is, and what limits it\n"
    "\n"
    "usage: mlacheck bench [OPTIONS]\n"
    "\n"
    "whom\n"
    "  --backend NAME, --plugin PATH, --device N, --options \"k=v\",\n"
    "  --cpu-mask LEVEL   as in run\n"
    "on what (default: --sweep decode)\n"
    "  --sweep NAME...    cases that belong together; --sweeps lists them\n"
    "  --model NAME       cases of a model's sizes, as in run\n"
    "  --case ID...       single cases (list --keys says how they are "
    "written)\n"
    "how\n"
    "  --milliseconds N   measure each case for about as long (default: 500)\n"
    "  --rotate N         walk through N MiB of cache, or of a product's\n"
    "                     weights, before any come again (default: 400 on\n"
    "                     devices, 0 on the host)\n"
    "  --json FILE        also write JSON (-: to stdout only)\n"
    "  --csv FILE         also write CSV\n"
    "  --html FILE        also write a page with the roofline\n"
    "\n"
    "Each case is judged before it is measured, on a sample of rows: a wrong\n"
    "answer gets no time. The peaks are measured in the same run, before\n"
    "and behind the cases, the host's with the widest vectors that its level\n"
    "has; the larger ones count. A call's GFLOP are those of a plain\n"
    "implementation, its GB what it must move at least. The share is of\n"
    "whichever limit is nearer. On the host with one thread (--options\n"
    "threads=1) processor time counts.\n"
    "\n"
    "exit codes: 0 all measured that is supported, 1 a wrong answer, 2 usage,\n"
    "3 environment, 77 nothing was supported\n";

typedef struct bench_options {
  target target;
  text_list sweeps, cases;
  uint64_t milliseconds, rotate;
  const char *json, *csv, *html, *model;
  mla_suite suite; /* of the model */
  int list, help;
} bench_options;

#define BY_DEFAULT UINT64_MAX

static int read_options(int argc, char **argv, bench_options *o) {
  memset(o, 0, sizeof *o);
  o->milliseconds = 500;
  o->rotate = BY_DEFAULT;
  const option table[] = {
      TARGET_OPTIONS(&o->target),
      {"--sweep", OPTION_LIST, &o->sweeps},
      {"--case", OPTION_LIST, &o->cases},
      {"--model", OPTION_TEXT, &o->model},
      {"--milliseconds", OPTION_COUNT, &o->milliseconds},
      {"--rotate", OPTION_COUNT, &o->rotate},
      {"--json", OPTION_TEXT, &o->json},
      {"--csv", OPTION_TEXT, &o->csv},
      {"--html", OPTION_TEXT, &o->html},
      {"--sweeps", OPTION_FLAG, &o->list},
      {"--help", OPTION_FLAG, &o->help},
      {NULL, 0, NULL},
  };
  return options_read("bench", argc, argv, table, NULL);
}

static int list_sweeps(void) {
  const bench_sweep *s;
  for (int i = 0; (s = bench_sweep_at(i)) != NULL; i++) {
    int cases = 0;
    while (s->cases[cases]) cases++;
    printf("%-10s %3d cases  %s\n", s->name, cases, s->title);
  }
  return EXIT_SATISFIED;
}

/* ------------------------------------------------------------------ cases */

typedef struct case_list {
  const char **id;
  int count;
} case_list;

static int add(case_list *l, const char *id) {
  const char **more =
      realloc((void *)l->id, (size_t)(l->count + 1) * sizeof *l->id);
  if (!more) return 0;
  l->id = more;
  l->id[l->count++] = id;
  return 1;
}

static int add_sweep(case_list *l, const char *name) {
  const bench_sweep *s = bench_sweep_named(name);
  if (!s) {
    usage_error("bench", "\"%s\" is no sweep (--sweeps lists them)", name);
    return 0;
  }
  for (int i = 0; s->cases[i]; i++)
    if (!add(l, s->cases[i])) return 0;
  return 1;
}

static int add_model(bench_options *o, case_list *l) {
  mla_error err = mla_error_init();
  if (mla_model_suite(o->model, &o->suite, &err) != MLA_OK) {
    usage_error("bench", "%s", err.message);
    return 0;
  }
  for (int64_t i = 0; i < o->suite.count; i++)
    if (!add(l, o->suite.entry[i].id)) return 0;
  return 1;
}

static int list_cases(bench_options *o, case_list *l) {
  int ok = o->model ? add_model(o, l) : 1;
  for (int32_t i = 0; i < o->cases.count && ok; i++)
    ok = add(l, o->cases.value[i]);
  for (int32_t i = 0; i < o->sweeps.count && ok; i++)
    ok = add_sweep(l, o->sweeps.value[i]);
  if (!l->count && ok) ok = add_sweep(l, "decode");
  return ok;
}

/* ------------------------------------------------------------ the machine */

/* What an option of the backend was set to last, in `value`; NULL: nothing. */
static const char *option_of(const char *options, const char *key,
                             char value[32]) {
  const char *found = NULL;
  size_t n = strlen(key);
  for (const char *at = options; at; at = strchr(at, ';')) {
    at += *at == ';';
    if (strncmp(at, key, n) != 0 || at[n] != '=') continue;
    snprintf(value, 32, "%.*s", (int)strcspn(at + n + 1, ";"), at + n + 1);
    found = value;
  }
  return found;
}

static int threads_of(const char *options) {
  char value[32];
  const char *named = option_of(options, "threads", value);
  int threads = named ? atoi(named) : 0;
  return threads > 0 ? threads : peak_threads();
}

static void look(const bench_options *o, const bench_how *how,
                 mla_device_info *info, bench_run *run) {
  const mla_backend *b = mla_device_backend(o->target.device);
  memset(info, 0, sizeof *info);
  info->size = (uint32_t)sizeof *info;
  mla_device_describe(o->target.device, info, NULL);
  run->backend = b->name;
  run->version = b->version ? b->version : "";
  run->device = info->name;
  run->arch = info->arch;
  run->threads = how->threads;
}

static peaks measure_peaks(const bench_options *o, const bench_how *how) {
  char level[32];
  peaks p;
  if (how->threads)
    peaks_of_host(how->threads, option_of(o->target.options, "isa", level), &p);
  else
    peaks_of_device(o->target.device, how, &p);
  return p;
}

/* Lines are printed as soon as they are known, with shares of the first peaks;
   what follows is of both. */
static void bench_all(const bench_options *o, const case_list *list,
                      const bench_how *how, int text, bench_run *run) {
  run->peak = run->first = measure_peaks(o, how);
  if (text) bench_print_begin(run);
  for (int i = 0; i < list->count; i++) {
    bench_case(o->target.device, list->id[i], how, &run->result[i]);
    run->count = i + 1;
    if (text) bench_print_result(run, &run->result[i]);
  }
  peaks again = measure_peaks(o, how);
  bench_peaks_again(run, &again);
  if (text) bench_print_again(run);
  if (text) bench_print_table(run);
}

static int exit_code(const bench_run *run) {
  int timed = 0, wrong = 0, error = 0;
  for (int i = 0; i < run->count; i++) {
    timed += run->result[i].state == BENCH_TIMED;
    wrong += run->result[i].state == BENCH_WRONG;
    error += run->result[i].state == BENCH_ERROR;
  }
  if (wrong) return EXIT_FAILED;
  if (error) return EXIT_ENVIRONMENT;
  return timed ? EXIT_SATISFIED : EXIT_NOTHING;
}

static int write_files(const bench_options *o, const bench_run *run) {
  int ok = 1;
  if (o->json) ok &= report_file_write("bench", o->json, bench_json(run));
  if (o->csv) ok &= report_file_write("bench", o->csv, bench_csv(run));
  if (o->html) ok &= report_file_write("bench", o->html, bench_html(run));
  return ok;
}

static int measure(const bench_options *o, const case_list *list) {
  int on_device = mla_device_backend(o->target.device)->mem_alloc != NULL;
  int text = !o->json || strcmp(o->json, "-") != 0;
  uint64_t rotate = o->rotate;
  if (rotate == BY_DEFAULT) rotate = on_device ? 400 : 0;
  const bench_how how = {(double)o->milliseconds * 1e-3,
                         (int64_t)rotate * 1024 * 1024,
                         on_device ? 0 : threads_of(o->target.options)};
  mla_device_info info;
  bench_run run;
  memset(&run, 0, sizeof run);
  run.result = calloc((size_t)list->count, sizeof *run.result);
  if (!run.result) return EXIT_ENVIRONMENT;
  look(o, &how, &info, &run);
  bench_all(o, list, &how, text, &run);
  int code = exit_code(&run);
  if (!write_files(o, &run)) code = EXIT_ENVIRONMENT;
  for (int i = 0; i < run.count; i++) free(run.result[i].id);
  free(run.result);
  return code;
}

int cmd_bench(int argc, char **argv) {
  bench_options o;
  case_list list = {NULL, 0};
  if (!read_options(argc, argv, &o)) return EXIT_USAGE;
  if (o.help) return fputs(help, stdout), EXIT_SATISFIED;
  if (o.list) return list_sweeps();
  if (o.rotate != BY_DEFAULT && o.rotate > (uint64_t)1 << 30)
    return usage_error("bench", "--rotate is above 2^30");
  int code = list_cases(&o, &list) ? EXIT_SATISFIED : EXIT_USAGE;
  if (code == EXIT_SATISFIED) code = target_open("bench", &o.target);
  if (code == EXIT_SATISFIED) code = measure(&o, &list);
  target_close(&o.target);
  free((void *)list.id);
  mla_suite_free(&o.suite);
  return code;
}
