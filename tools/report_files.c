/*
 * report_files.c - the files that a run leaves behind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file_text.h"
#include "report.h"
#include "report_model.h"

static int is_stdout(const char *path) {
  return path && strcmp(path, "-") == 0;
}

int reports_take_stdout(const report_options *o) {
  return is_stdout(o->json) || is_stdout(o->junit) || is_stdout(o->html);
}

int reports_open(const char *command, report_options *o) {
  mla_error err = mla_error_init();
  int outs = is_stdout(o->json) + is_stdout(o->junit) + is_stdout(o->html);
  if (outs > 1) return usage_error(command, "only one report can go to stdout");
  if (!o->waivers) return EXIT_SATISFIED;
  mla_status status = mla_waivers_load(o->waivers, NULL, &o->known, &err);
  if (status == MLA_OK) return EXIT_SATISFIED;
  fprintf(stderr, "mlacheck %s: %s: %s\n", command, o->waivers, err.message);
  return status == MLA_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_ENVIRONMENT;
}

void reports_close(report_options *o) {
  mla_waivers_free(&o->known);
}

int report_file_write(const char *command, const char *path, char *text) {
  mla_error err = mla_error_init();
  int ok = text != NULL;
  if (ok && is_stdout(path))
    ok = fputs(text, stdout) >= 0;
  else if (ok)
    ok = mla_file_write(path, text, strlen(text), &err) == MLA_OK;
  if (!ok)
    fprintf(stderr, "mlacheck %s: %s\n", command,
            err.message[0] ? err.message : "no memory for the report");
  free(text);
  return ok;
}

int reports_write(const run_state *run, const char *command, int code) {
  const report_options *o = run->reports;
  if (!o->json && !o->junit && !o->html) return code;
  cJSON *model = report_model(run);
  const cJSON *models[1] = {model};
  int ok = 1;
  if (o->json)
    ok &= report_file_write(command, o->json, report_json_text(model));
  if (o->junit)
    ok &= report_file_write(command, o->junit, report_junit_text(models, 1));
  if (o->html)
    ok &= report_file_write(command, o->html, report_html_text(models, 1));
  cJSON_Delete(model);
  return ok ? code : EXIT_ENVIRONMENT;
}
