/*
 * selftest_batch.c - planted faults of batch building. They are arithmetic on
 * small arrays: no child process, and every case is looked at.
 */
#include "selftest_batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_compare.h"
#include "batch_explain.h"
#include "explain.h"
#include "planted_batch.h"
#include "suite.h"

typedef struct bench {
  mla_suite suite;
  mla_batch_case *c; /* all cases of the profile */
  mla_batch_answer *right, *wrong;
  int32_t count;
} bench;

/* What became of one fault. */
typedef struct outcome {
  int32_t caught; /* the first case that catches it and hunts its class, or
                     that catches it; -1 */
  int32_t cases;  /* that catch it */
  mla_look look;
  char reason[320];
} outcome;

static int is_called(const planted_batch_fault *f, const char *name) {
  return !strcmp(name, f->name) || !strcmp(name, f->cls);
}

static int is_wanted(const text_list *only, const planted_batch_fault *f) {
  for (int32_t i = 0; i < only->count; i++)
    if (is_called(f, only->value[i])) return 1;
  return only->count == 0;
}

int selftest_batch_knows(const char *name) {
  for (int32_t f = 1; f < PLANTED_BATCH_COUNT; f++)
    if (is_called(planted_batch_at(f), name)) return 1;
  return 0;
}

/* ------------------------------------------------------------------ judging */

static int hunts(const char *list, const char *cls) {
  const char *at = strstr(list, cls);
  return at && (at[strlen(cls)] == ',' || at[strlen(cls)] == '\0');
}

static void look_closer(bench *b, int32_t i, const mla_batch_diff *diff,
                        outcome *o) {
  o->caught = i;
  mla_batch_diff_print(&b->c[i], b->right, diff, o->reason, sizeof o->reason);
  mla_batch_explain(&b->c[i], b->right, b->wrong, &o->look);
}

static void plant(bench *b, int32_t fault, int32_t a, outcome *o) {
  const char *cls = planted_batch_at(fault)->cls;
  int hunted = 0;
  memset(o, 0, sizeof *o);
  o->caught = -1;
  for (int32_t i = 0; i < b->count; i++) {
    mla_batch_diff diff;
    memset(b->wrong, 0, sizeof *b->wrong);
    planted_batch_build(&b->c[i], PLANTED_BATCH_NONE, 0, b->right);
    planted_batch_build(&b->c[i], fault, a, b->wrong);
    mla_batch_differ(&b->c[i], b->right, b->wrong, &diff);
    if (!diff.wrong) continue;
    o->cases++;
    int first = o->caught < 0;
    if (first || (!hunted && hunts(b->c[i].hunts, cls)))
      look_closer(b, i, &diff, o);
    hunted |= hunts(b->c[i].hunts, cls);
  }
}

/* The library's builder by the plain one: neither has a fault. */
static int is_clean(bench *b) {
  for (int32_t i = 0; i < b->count; i++) {
    mla_batch_diff diff;
    planted_batch_build(&b->c[i], PLANTED_BATCH_NONE, 0, b->right);
    if (mla_batch_case_build(&b->c[i], b->wrong, NULL) != MLA_OK) return 0;
    mla_batch_differ(&b->c[i], b->right, b->wrong, &diff);
    if (diff.wrong || !diff.compared) return 0;
  }
  return b->count > 0;
}

/* ------------------------------------------------------------------- report */

static void print(const bench *b, int32_t fault, int32_t a, const outcome *o,
                  int verbose) {
  const planted_batch_fault *f = planted_batch_at(fault);
  char options[64], look[400];
  const char *cls = o->look.cls[0] ? o->look.cls : "-";
  snprintf(options, sizeof options, a != f->a ? "%s;a=%d" : "%s", f->name,
           (int)a);
  printf("%-26s %-13s %s%-12s %s\n", options, f->cls,
         o->caught >= 0 && strcmp(cls, f->cls) ? "!" : " ",
         o->caught >= 0 ? cls : "",
         o->caught >= 0 ? b->c[o->caught].id : "NOT CAUGHT");
  if (!verbose || o->caught < 0) return;
  if (mla_look_print(&o->look, look, sizeof look) > 0)
    printf("    looks like  %s\n", look);
  printf("    why         %s\n", o->reason);
}

static void run_fault(bench *b, int32_t fault, int verbose,
                      selftest_batch *sums) {
  const planted_batch_fault *f = planted_batch_at(fault);
  outcome o;
  plant(b, fault, f->a, &o);
  print(b, fault, f->a, &o, verbose);
  sums->faults++;
  sums->caught += o.caught >= 0;
  if (f->a2 == f->a) return;
  plant(b, fault, f->a2, &o);
  print(b, fault, f->a2, &o, verbose);
  sums->variants++;
  sums->explained += o.caught >= 0 && strcmp(o.look.cls, f->cls) == 0;
}

/* ---------------------------------------------------------------------- all */

static int load(bench *b) {
  memset(b, 0, sizeof *b);
  b->right = mla_batch_answer_new();
  b->wrong = mla_batch_answer_new();
  mla_status status = mla_suite_load("batch", &b->suite, NULL);
  if (status != MLA_OK || !b->right || !b->wrong) return 0;
  b->c = calloc((size_t)b->suite.count + 1, sizeof *b->c);
  for (int64_t i = 0; b->c && i < b->suite.count; i++) {
    const mla_suite_entry *e = &b->suite.entry[i];
    if (mla_batch_case_draw(e->id, e->seed, &b->c[i], NULL) != MLA_OK) return 0;
    memcpy(b->c[i].hunts, e->hunts, sizeof b->c[i].hunts);
    b->count++;
  }
  return b->c != NULL;
}

void selftest_batch_run(const text_list *only, int verbose,
                        selftest_batch *sums) {
  bench b;
  memset(sums, 0, sizeof *sums);
  int loaded = load(&b);
  sums->clean = loaded && is_clean(&b);
  for (int32_t f = 1; f < PLANTED_BATCH_COUNT; f++)
    if (loaded && is_wanted(only, planted_batch_at(f)))
      run_fault(&b, f, verbose, sums);
  if (!sums->clean) printf("mla_batch FAILS without a fault\n");
  mla_suite_free(&b.suite);
  free(b.c);
  free(b.right);
  free(b.wrong);
}
