/*
 * mlacheck.c - judges backends of multi-head latent attention.
 */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "mla/mla.h"
#include "options.h"

static const char help[] =
    "mlacheck - judges implementations of multi-head latent attention\n"
    "\n"
    "usage: mlacheck COMMAND [OPTIONS]      (COMMAND --help says more)\n"
    "\n"
    "  run     judge a backend: a profile, single cases, or files of vectors\n"
    "  diff    judge a backend on random cases\n"
    "  list    cases, profiles, backends; --keys: how a case is written\n"
    "  show    what a case is: problem, shapes, work, expected values\n"
    "  info    backends and devices here, and what they support\n"
    "  gen     write the golden vectors anew, or check them\n"
    "  export  the inputs of cases as files, for programs in any language\n"
    "  verify  judge the outputs that such a program wrote\n"
    "  bench   how fast a backend is, and what limits it\n"
    "  report  the JSON reports of runs as one page, or as JUnit XML\n"
    "  selftest  judge the judge: every planted fault must be caught\n"
    "  submit  pack a conformance claim, or check one\n"
    "\n"
    "  mlacheck run                              the CPU backend, quickly\n"
    "  mlacheck run --plugin ./libport.so        a port of yours\n"
    "  mlacheck run --plugin ./libport.so --only decode:bf16\n"
    "  mlacheck run --case 'decode:bf16:b1,h16,q1,page64,len=65' -v\n"
    "\n"
    "exit codes: 0 satisfied, 1 failed, 2 usage, 3 environment (no device, no\n"
    "file), 77 nothing was applicable\n";

static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
} commands[] = {
    {"run", cmd_run},           {"diff", cmd_diff},     {"list", cmd_list},
    {"show", cmd_show},         {"info", cmd_info},     {"gen", cmd_gen},
    {"report", cmd_report},     {"export", cmd_export}, {"verify", cmd_verify},
    {"selftest", cmd_selftest}, {"submit", cmd_submit}, {"bench", cmd_bench}};

/* What was printed must have arrived; a full disk is no success. */
static int flushed(int code) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  fprintf(stderr, "mlacheck: standard output cannot be written\n");
  return code == EXIT_SATISFIED ? EXIT_ENVIRONMENT : code;
}

int main(int argc, char **argv) {
  const char *word = argc > 1 ? argv[1] : "";
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
      strcmp(word, "help") == 0) {
    fputs(help, stdout);
    return flushed(EXIT_SATISFIED);
  }
  if (strcmp(word, "--version") == 0) {
    printf("mlacheck %s\n", mla_version());
    return flushed(EXIT_SATISFIED);
  }
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
    if (strcmp(commands[i].name, word) == 0)
      return flushed(commands[i].run(argc - 2, argv + 2));
  if (argc < 2) {
    fputs(help, stderr);
    return EXIT_USAGE;
  }
  fprintf(stderr, "mlacheck: \"%s\" is no command\nTry \"mlacheck --help\".\n",
          word);
  return EXIT_USAGE;
}
