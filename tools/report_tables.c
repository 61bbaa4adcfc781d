/*
 * report_tables.c - what the verdicts of one run say together.
 */
#include <stdio.h>
#include <string.h>

#include "report.h"

/* "decode:bf16" of an id. */
static size_t group_length(const char *id) {
  const char *colon = strchr(id, ':');
  const char *second = colon ? strchr(colon + 1, ':') : NULL;
  if (mla_batch_case_is(id)) return (size_t)(colon - id); /* of no format */
  return second ? (size_t)(second - id) : strlen(id);
}

static int same_group(const char *a, const char *b) {
  size_t n = group_length(a);
  return n == group_length(b) && memcmp(a, b, n) == 0;
}

static int is_in_table(const mla_item *item) {
  return item->kind != MLA_ITEM_TRUTH;
}

static int is_first_of_group(const run_state *run, int32_t i) {
  const mla_item *item = mla_docket_at(run->docket, i);
  for (int32_t k = 0; k < i; k++) {
    const mla_item *other = mla_docket_at(run->docket, k);
    if (is_in_table(other) && same_group(item->id, other->id)) return 0;
  }
  return 1;
}

static void print_worst(double worst) {
  if (worst < 0)
    printf("%10s", "-");
  else if (worst > 1e6)
    printf("%10s", "beyond");
  else
    printf(worst < 99999 ? "%10.3f" : "%10.0f", worst); /* a space before it */
}

/* Waived ones stand in a column of their own, where there is any waiver. */
static int has_waivers(const run_state *run) {
  return run->reports && run->reports->known.count > 0;
}

typedef struct group {
  int32_t cases, passed, failed, unsupported, waived;
  double out, lse;
} group;

static group sum_group(const run_state *run, const char *id) {
  group g = {0, 0, 0, 0, 0, -1, -1};
  for (int32_t i = 0; i < run->done; i++) {
    const mla_item *item = mla_docket_at(run->docket, i);
    const mla_verdict *v = &run->record[i].verdict;
    if (!is_in_table(item) || !same_group(id, item->id)) continue;
    int waived = run_waiver(run, i) != NULL;
    g.cases++;
    g.waived += waived;
    g.passed += v->kind == MLA_VERDICT_PASS;
    g.failed += run_is_bad(run, i);
    g.unsupported += v->kind == MLA_VERDICT_UNSUPPORTED && !waived;
    if (mla_verdict_worst(v, 0) > g.out) g.out = mla_verdict_worst(v, 0);
    if (mla_verdict_worst(v, 1) > g.lse) g.lse = mla_verdict_worst(v, 1);
  }
  return g;
}

static void print_group(const run_state *run, const char *id) {
  group g = sum_group(run, id);
  printf("  %-18.*s %5d %6d %6d %6d", (int)group_length(id), id, (int)g.cases,
         (int)g.passed, (int)g.failed, (int)g.unsupported);
  if (has_waivers(run)) printf(" %6d", (int)g.waived);
  print_worst(g.out);
  print_worst(g.lse);
  printf("\n");
}

static void print_head(const run_state *run) {
  const char *more = has_waivers(run) ? "       " : "";
  printf("\n  %-18s %5s %6s %6s %6s%s   worst error / budget\n", "", "", "", "",
         "", more);
  printf("  %-18s %5s %6s %6s %6s%s%10s%10s\n", "", "cases", "passed", "failed",
         "unsup.", has_waivers(run) ? " waived" : "", "out", "lse");
}

static void print_table(const run_state *run) {
  int32_t rows = 0;
  for (int32_t i = 0; i < run->done; i++) {
    const mla_item *item = mla_docket_at(run->docket, i);
    if (!is_in_table(item) || !is_first_of_group(run, i)) continue;
    if (!rows++) print_head(run);
    print_group(run, item->id);
  }
}

/* Each reason once, with the number of cases and an example. */
static void print_reasons(const run_state *run) {
  int32_t shown = 0;
  for (int32_t i = 0; i < run->done; i++) {
    const mla_verdict *v = &run->record[i].verdict;
    int32_t count = 0, required = 0;
    if (v->kind != MLA_VERDICT_UNSUPPORTED) continue;
    for (int32_t k = 0; k < run->done && count >= 0; k++) {
      const mla_verdict *w = &run->record[k].verdict;
      if (w->kind != MLA_VERDICT_UNSUPPORTED ||
          strcmp(w->reason, v->reason) != 0)
        continue;
      if (k < i) count = -1;
      if (count < 0) break;
      count++;
      required += run_requires(run, k);
    }
    if (count <= 0) continue;
    if (!shown++) printf("\n  unsupported\n");
    printf("  %5d  %s%s    first: %s\n", (int)count, v->reason,
           required ? "  (required)" : "", mla_docket_at(run->docket, i)->id);
  }
}

/* Each class once, in the order of the failures. */
static void print_looks(const run_state *run) {
  int32_t shown = 0;
  for (int32_t i = 0; i < run->done; i++) {
    const char *cls = run->record[i].verdict.look.cls;
    int32_t count = 0, first = 1;
    for (int32_t k = 0; k < run->done && *cls; k++) {
      if (strcmp(run->record[k].verdict.look.cls, cls) != 0) continue;
      if (k < i) first = 0;
      count++;
    }
    if (!*cls || !first) continue;
    if (!shown++) printf("\n  failures look like\n");
    printf("  %5d  %-13s first: %s\n", (int)count, cls,
           mla_docket_at(run->docket, i)->id);
  }
}

/* What is known no longer fails, or never did: the entry should go. */
static void print_stale(const run_state *run) {
  const mla_waivers *known = run->reports ? &run->reports->known : NULL;
  int32_t shown = 0;
  for (int32_t i = 0; known && i < known->count; i++) {
    const mla_waiver *w = &known->entry[i];
    if (!run_is_stale(run, i)) continue;
    if (!shown++) printf("\n  stale waivers: nothing was waived by\n");
    printf("  %5d  case %s%s%s%s%s  %s\n", (int)i + 1, w->pattern,
           w->cls[0] ? ", class " : "", w->cls, w->expired ? ", until " : "",
           w->expired ? w->until : "", w->link);
  }
}

void report_tables(const run_state *run) {
  print_table(run);
  print_looks(run);
  print_reasons(run);
  print_stale(run);
}
