/*
 * cmd_report.c - mlacheck report: reports of runs, shown together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "file_text.h"
#include "report_model.h"

static const char help[] =
    "mlacheck report - show the JSON reports of runs together\n"
    "\n"
    "usage: mlacheck report FILE... [--html FILE] [--junit FILE]\n"
    "\n"
    "FILE is what `mlacheck run --json` wrote: of several backends, or of one\n"
    "on several machines.\n"
    "\n"
    "  --html FILE        one page with pictures (-: to stdout)\n"
    "  --junit FILE       JUnit XML, for CI servers (-: to stdout)\n"
    "\n"
    "exit codes: that of the worst run: 0 if all are satisfied, 1 if one is\n"
    "not, 2 usage or no report, 3 a file that cannot be read or written\n";

static int complain(const char *path, const char *what, int code) {
  fprintf(stderr, "mlacheck report: %s %s\n", path, what);
  return code;
}

static int load(const char *path, cJSON **model) {
  mla_error err = mla_error_init();
  char *text = mla_file_text(path, &err);
  if (!text) {
    fprintf(stderr, "mlacheck report: %s\n", err.message);
    return EXIT_ENVIRONMENT;
  }
  *model = cJSON_Parse(text);
  free(text);
  if (!*model) return complain(path, "is no JSON", EXIT_USAGE);
  if (strcmp(model_text(*model, "format"), "mla-report") != 0 ||
      model_number(*model, "version") != 1 ||
      !cJSON_IsArray(model_member(*model, "cases")) ||
      !cJSON_IsNumber(model_member(*model, "exit")))
    return complain(path, "is no report of this version", EXIT_USAGE);
  return EXIT_SATISFIED;
}

/* A run that judged nothing is no success beside others. */
static int worst_of(cJSON *const *models, int32_t count) {
  int code = EXIT_SATISFIED;
  for (int32_t i = 0; i < count; i++)
    if (model_exit(models[i]) != EXIT_SATISFIED) code = EXIT_FAILED;
  return code;
}

static int show(cJSON *const *models, int32_t count, const char *html,
                const char *junit) {
  const cJSON *of[MOST_VALUES];
  int code = worst_of(models, count), ok = 1;
  for (int32_t i = 0; i < count; i++) of[i] = models[i];
  if (junit)
    ok &= report_file_write("report", junit, report_junit_text(of, count));
  if (html)
    ok &= report_file_write("report", html, report_html_text(of, count));
  return ok ? code : EXIT_ENVIRONMENT;
}

int cmd_report(int argc, char **argv) {
  const char *html = NULL, *junit = NULL;
  text_list files = {0, {NULL}};
  cJSON *models[MOST_VALUES] = {NULL};
  int want_help = 0, code = EXIT_SATISFIED;
  const option table[] = {{"--html", OPTION_TEXT, &html},
                          {"--junit", OPTION_TEXT, &junit},
                          {"--help", OPTION_FLAG, &want_help},
                          {NULL, 0, NULL}};
  if (!options_read("report", argc, argv, table, &files)) return EXIT_USAGE;
  if (want_help) return fputs(help, stdout), EXIT_SATISFIED;
  if (files.count == 0) return usage_error("report", "no report is named");
  if (!html && !junit)
    return usage_error("report", "say --html FILE, --junit FILE or both");
  if (html && junit && strcmp(html, "-") == 0 && strcmp(junit, "-") == 0)
    return usage_error("report", "only one can go to stdout");
  for (int32_t i = 0; i < files.count && code == EXIT_SATISFIED; i++)
    code = load(files.value[i], &models[i]);
  if (code == EXIT_SATISFIED) code = show(models, files.count, html, junit);
  for (int32_t i = 0; i < files.count; i++) cJSON_Delete(models[i]);
  return code;
}
