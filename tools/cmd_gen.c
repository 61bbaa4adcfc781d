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
    "       mlacheck gen --check DIR    fails unless every byte there agrees\n"
    "\n"
    "The vectors follow from the profiles stored, seeded, invalid and batch,\n"
    "which are built in: the same bytes on every machine.\n";

static int finish(mla_golden *golden, const char *dir, int check,
                  mla_error *err) {
  uint64_t bytes = 0;
  mla_status status = mla_golden_manifest(golden, dir, err);
  if (status == MLA_OK)
    status = check ? mla_golden_compare(golden, dir, err)
                   : mla_golden_write(golden, dir, err);
  if (status == MLA_INVALID_ARGUMENT) {
    printf("FAIL  %s\n", err->message);
    return EXIT_FAILED;
  }
  if (status != MLA_OK) {
    fprintf(stderr, "mlacheck gen: %s\n", err->message);
    return EXIT_ENVIRONMENT;
  }
  for (int32_t i = 0; i < golden->count; i++) bytes += golden->file[i].count;
  printf("%s  %d files, %.3f MB\n", check ? "PASS" : "wrote",
         (int)golden->count, (double)bytes / 1e6);
  return EXIT_SATISFIED;
}

int cmd_gen(int argc, char **argv) {
  text_list dirs = {0, {NULL}};
  int check = 0, want_help = 0;
  const option table[] = {{"--check", OPTION_FLAG, &check},
                          {"--help", OPTION_FLAG, &want_help},
                          {"-h", OPTION_FLAG, &want_help},
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
