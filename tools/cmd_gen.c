/*
 * cmd_gen.c - mlacheck gen.
 */
#include <stdio.h>

#include "commands.h"
#include "golden.h"
#include "options.h"

static const char help[] =
    "mlacheck gen - the golden vectors\n"
    "\n"
    "usage: mlacheck gen DIR            writes DIR/v1 and DIR/manifest.json\n"
    "       mlacheck gen --check DIR    names every file that differs\n"
    "\n"
    "The vectors follow from the profiles stored, seeded, invalid and batch,\n"
    "which are built in: the same bytes on every machine.\n";

static void say_differs(const char *why) {
  printf("FAIL  %s\n", why);
}

static int report(const mla_golden *golden, const char *verb) {
  uint64_t bytes = 0;
  for (int32_t i = 0; i < golden->count; i++) bytes += golden->file[i].count;
  printf("%s  %d files, %.3f MB\n", verb, (int)golden->count,
         (double)bytes / 1e6);
  return EXIT_SATISFIED;
}

static int compare(const mla_golden *golden, const char *dir) {
  int32_t found = mla_golden_compare(golden, dir, say_differs);
  if (!found) return report(golden, "PASS");
  printf("FAIL  %d files differ, of %d made\n", (int)found, (int)golden->count);
  return EXIT_FAILED;
}

static int finish(mla_golden *golden, const char *dir, int check,
                  mla_error *err) {
  mla_status status = mla_golden_manifest(golden, dir, err);
  if (status == MLA_OK && check) return compare(golden, dir);
  if (status == MLA_OK) status = mla_golden_write(golden, dir, err);
  if (status == MLA_OK) return report(golden, "wrote");
  fprintf(stderr, "mlacheck gen: %s\n", err->message);
  return EXIT_ENVIRONMENT;
}

int cmd_gen(int argc, char **argv) {
  text_list dirs = {0, {NULL}};
  int check = 0, want_help = 0;
  const option table[] = {{"--check", OPTION_FLAG, &check},
                          {"--help", OPTION_FLAG, &want_help},
                          {NULL, 0, NULL}};
  mla_golden golden;
  mla_error err = mla_error_init();
  if (!options_read("gen", argc, argv, table, &dirs)) return EXIT_USAGE;
  if (want_help) return fputs(help, stdout), EXIT_SATISFIED;
  if (dirs.count != 1) return usage_error("gen", "one folder is needed");
  mla_status status = mla_golden_make(&golden, &err);
  int code = EXIT_ENVIRONMENT;
  if (status == MLA_OK)
    code = finish(&golden, dirs.value[0], check, &err);
  else
    fprintf(stderr, "mlacheck gen: %s\n", err.message);
  mla_golden_free(&golden);
  return code;
}
