/*
 * info_why.c - every candidate for a case, the best first.
 */
#include "info_why.h"

#include <stdio.h>
#include <string.h>

#include "case.h"
#include "options.h"

#define MOST 64

static int word_in(const char *word, const char *const *words) {
  for (int i = 0; words[i]; i++)
    if (strcmp(word, words[i]) == 0) return i;
  return -1;
}

/* 0: a usage error, said. */
static int read_wish(const why_wish *texts, mla_wish *wish) {
  static const char *const spaces[] = {"host", "cuda", "rocm", NULL};
  static const int32_t space[] = {MLA_MEMORY_HOST, MLA_MEMORY_CUDA,
                                  MLA_MEMORY_ROCM};
  static const char *const words[] = {"none", "run-to-run", "batch-invariant",
                                      NULL};
  *wish = mla_wish_init();
  wish->capture_safe = texts->capture;
  if (texts->memory) {
    int i = word_in(texts->memory, spaces);
    if (i < 0) return usage_error("info", "--memory is host, cuda or rocm"), 0;
    wish->memory_space = space[i];
  }
  if (texts->determinism) {
    wish->determinism = word_in(texts->determinism, words);
    if (wish->determinism < 0)
      return usage_error(
                 "info",
                 "--determinism is none, run-to-run or batch-invariant"),
             0;
  }
  return 1;
}

static void print_candidate(const mla_candidate *c, int chosen) {
  char name[96];
  if (c->device > 0)
    snprintf(name, sizeof name, "%s:%d", c->backend, (int)c->device);
  else
    snprintf(name, sizeof name, "%s", c->backend);
  if (!c->usable)
    printf("  no      %-12s %s\n", name, c->reason);
  else
    printf("  %-7s %-12s kernel %s, %llu bytes of workspace\n",
           chosen ? "chosen" : "could", name, c->answer.kernel,
           (unsigned long long)c->answer.workspace_bytes);
}

int info_why(const char *id, const why_wish *texts) {
  mla_case c;
  mla_wish wish;
  mla_candidate candidates[MOST];
  size_t count = 0;
  mla_error err = mla_error_init();
  if (!read_wish(texts, &wish)) return EXIT_USAGE;
  if (mla_case_parse(id, &c, &err) != MLA_OK)
    return usage_error("info", "%s", err.message);
  if (c.edit[0])
    return usage_error("info", "an invalid case is served by nobody");
  mla_problem problem = mla_case_problem(&c);
  mla_limits limits = mla_case_limits(&c);
  for (size_t i = 0; i < MOST; i++) candidates[i] = mla_candidate_init();
  mla_status status =
      mla_select(&problem, &limits, &wish, candidates, MOST, &count, &err);
  if (status == MLA_INVALID_ARGUMENT)
    return usage_error("info", "%s", err.message);
  printf("%s\n", id);
  for (size_t i = 0; i < count; i++) print_candidate(&candidates[i], i == 0);
  printf(
      "\nIn order of preference: devices with memory of their own, then the "
      "host's,\nthen ref; plugins before what is built in.\n");
  return status == MLA_OK ? EXIT_SATISFIED : EXIT_FAILED;
}
