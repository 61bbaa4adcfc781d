/*
 * cmd_submit.c - mlacheck submit: conformance claims.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claim.h"
#include "commands.h"
#include "file_text.h"
#include "report_model.h"

static const char help[] =
    "mlacheck submit - pack a conformance claim, or check one\n"
    "\n"
    "usage: mlacheck submit REPORT.json [--out FILE]\n"
    "       mlacheck submit --check CLAIM.json...\n"
    "\n"
    "REPORT.json is what `mlacheck run --profile NAME --json REPORT.json`\n"
    "wrote. The claim is one JSON document: profile, verdicts, a digest of\n"
    "what each case gave, versions, compiler, backend, device. No path, host,\n"
    "user or time stands in it. A run that is not satisfied gives no claim,\n"
    "and one of which nothing was judged (77) is not satisfied.\n"
    "\n"
    "  --out FILE   where to (default -: stdout)\n"
    "  --check      does everything in it agree: form, digest, sums, verdict,\n"
    "               and are its cases those of the profile here?\n"
    "  --waived     with --check: failures that are waived may be\n"
    "\n"
    "exit codes: 0 the claim holds, 1 it does not, 2 usage or no JSON, 3 a\n"
    "file that cannot be read or written\n";

static int load(const char *path, cJSON **json) {
  mla_error err = mla_error_init();
  char *text = mla_file_text(path, &err);
  if (!text) {
    fprintf(stderr, "mlacheck submit: %s\n", err.message);
    return EXIT_ENVIRONMENT;
  }
  *json = cJSON_ParseWithOpts(text, NULL, 1);
  free(text);
  if (*json) return EXIT_SATISFIED;
  fprintf(stderr, "mlacheck submit: %s is no JSON\n", path);
  return EXIT_USAGE;
}

static int pack(const char *path, const char *out) {
  mla_error err = mla_error_init();
  cJSON *report = NULL, *claim = NULL;
  int code = load(path, &report);
  if (code != EXIT_SATISFIED) return code;
  if (strcmp(model_text(report, "format"), "mla-report") != 0) {
    fprintf(stderr, "mlacheck submit: %s is no report\n", path);
    code = EXIT_USAGE;
  } else {
    claim = claim_make(report, &err);
    if (!claim) fprintf(stderr, "mlacheck submit: no claim: %s\n", err.message);
    if (!claim) code = EXIT_FAILED;
  }
  if (claim && !report_file_write("submit", out, report_json_text(claim)))
    code = EXIT_ENVIRONMENT;
  cJSON_Delete(claim);
  cJSON_Delete(report);
  return code;
}

static void say_scope(const cJSON *claim) {
  const cJSON *sums = model_member(claim, "sums");
  const cJSON *only = model_member(claim, "only");
  printf(
      "%s %s on %sprofile %s, libmla %s: %.0f of %.0f cases judged, %.0f "
      "passed",
      model_text(model_member(claim, "backend"), "name"),
      model_text(model_member(claim, "backend"), "version"),
      cJSON_GetArraySize(only) ? "part of " : "", model_text(claim, "profile"),
      model_text(claim, "libmla"), model_number(sums, "judged"),
      model_number(sums, "asked"), model_number(sums, "passed"));
  if (claim_waived(claim)) printf(", %d WAIVED", claim_waived(claim));
  printf("\n");
}

static int check(const char *path, int waived_may) {
  mla_error err = mla_error_init();
  cJSON *claim = NULL;
  int code = load(path, &claim);
  if (code != EXIT_SATISFIED) return code;
  if (claim_check(claim, &err) != MLA_OK) {
    printf("FAIL  %s: %s\n", path, err.message);
    code = EXIT_FAILED;
  } else if (claim_waived(claim) && !waived_may) {
    printf("FAIL  %s: %d failures are waived (--waived lets them)\n", path,
           claim_waived(claim));
    code = EXIT_FAILED;
  } else {
    printf("%s  ", claim_waived(claim) ? "HOLDS WITH WAIVERS" : "HOLDS");
    say_scope(claim);
  }
  cJSON_Delete(claim);
  return code;
}

int cmd_submit(int argc, char **argv) {
  const char *out = "-";
  text_list files = {0, {NULL}};
  int want_check = 0, waived = 0, want_help = 0, code = EXIT_SATISFIED;
  const option table[] = {{"--check", OPTION_FLAG, &want_check},
                          {"--waived", OPTION_FLAG, &waived},
                          {"--out", OPTION_TEXT, &out},
                          {"--help", OPTION_FLAG, &want_help},
                          {NULL, 0, NULL}};
  if (!options_read("submit", argc, argv, table, &files)) return EXIT_USAGE;
  if (want_help) return fputs(help, stdout), EXIT_SATISFIED;
  if (files.count == 0) return usage_error("submit", "no file is named");
  if (!want_check && files.count > 1)
    return usage_error("submit", "\"%s\" is one report too many",
                       files.value[1]);
  if (!want_check) return pack(files.value[0], out);
  for (int32_t i = 0; i < files.count; i++) {
    int one = check(files.value[i], waived);
    if (one > code) code = one;
  }
  return code;
}
