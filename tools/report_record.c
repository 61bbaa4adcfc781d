/*
 * report_record.c - what the judge found out about one case, in words.
 */
#include <stdio.h>
#include <string.h>

#include "explain.h"
#include "report.h"
#include "vector.h"

static const char *word_of(int32_t kind) {
  static const char *const words[] = {"PASS", "FAIL", "NO", "ERROR", "VECTOR"};
  return kind >= 0 && kind < 5 ? words[kind] : "?";
}

/* "38.2x", "0.03": error over budget. */
static void print_ratio(FILE *to, double ratio) {
  if (ratio > 1e300)
    fprintf(to, "beyond any budget");
  else if (ratio >= 100)
    fprintf(to, "%.0fx the budget", ratio);
  else
    fprintf(to, "%.2fx the budget", ratio);
}

static int has_budget(const mla_output_verdict *o) {
  return o->compare == MLA_COMPARE_BUDGET || o->compare == MLA_COMPARE_CHOICE;
}

static const char *unit_of(const mla_output_verdict *o) {
  return o->compare == MLA_COMPARE_BYTES ? "bytes differ" : "values are wrong";
}

/* ------------------------------------------------------------------- map */

/* The name of axis a in "token, head, dim". */
static void axis_word(const char *axes, int32_t a, char *word, size_t size) {
  for (; a > 0; a--) {
    axes += strcspn(axes, ",");
    axes += strspn(axes, ", ");
  }
  snprintf(word, size, "%.*s", (int)strcspn(axes, ","), axes);
}

/* "token 0, head 32": where a row of the map begins. */
static void print_map_row(FILE *to, const mla_output_verdict *o, int32_t row) {
  int64_t index[MLA_MAX_RANK];
  char word[64];
  mla_map_index(&o->map, row, o->rank, o->shape, index);
  for (int32_t a = 0; a + 1 < o->rank; a++) {
    axis_word(o->axes, a, word, sizeof word);
    fprintf(to, "%s%s %lld", a ? ", " : "", word, (long long)index[a]);
  }
}

static int is_full(const mla_bad_map *map) {
  for (int32_t r = 0; r < map->rows; r++)
    for (int32_t c = 0; c < map->cols; c++)
      if (map->cell[r][c] != '9') return 0;
  return 1;
}

static int same_row(const mla_bad_map *map, int32_t a, int32_t b) {
  return memcmp(map->cell[a], map->cell[b], (size_t)map->cols) == 0;
}

/* Rows that look the same stand once. A map of one value, or one that is all
   wrong, says no more than the sentence does. */
static void print_map(FILE *to, const mla_output_verdict *o) {
  const mla_bad_map *map = &o->map;
  if (map->rows == 0 || (o->bad <= 1 && o->unwritten <= 1) || is_full(map))
    return;
  for (int32_t r = 0; r < map->rows; r++) {
    int32_t last = r;
    while (last + 1 < map->rows && same_row(map, r, last + 1)) last++;
    fprintf(to, "  %-6s |", r ? "" : "map");
    for (int32_t c = 0; c < map->cols; c++)
      fputc(" ..::oo%%#"[map->cell[r][c] - '0'], to);
    fprintf(to, "|");
    if (o->rank > 1) fprintf(to, " ");
    print_map_row(to, o, r);
    if (last > r) fprintf(to, " ...");
    fprintf(to, "\n");
    r = last;
  }
}

/* --------------------------------------------------------------- outputs */

static void print_worst(FILE *to, const mla_output_verdict *o) {
  fprintf(to, "  worst  %s: expected %.9g, got %.9g", o->at, o->expected,
          o->got);
  if (has_budget(o)) fprintf(to, ", budget %.3g", o->budget);
  fprintf(to, "\n");
}

static void print_wrong(FILE *to, const mla_output_verdict *o) {
  fprintf(to, "%lld of %lld %s", (long long)o->bad, (long long)o->checked,
          unit_of(o));
  if (has_budget(o) && o->bad) {
    fprintf(to, ", worst ");
    print_ratio(to, o->worst);
  }
  if (o->unwritten)
    fprintf(to, "; %lld were never written", (long long)o->unwritten);
  if (o->not_finite)
    fprintf(to, "; %lld are not finite", (long long)o->not_finite);
  fprintf(to, "\n");
  if (o->where[0]) fprintf(to, "  where  %s\n", o->where);
  print_map(to, o);
  if (o->bad) print_worst(to, o);
  if (o->outside[0]) fprintf(to, "  fence  %s\n", o->outside);
}

static void print_output(FILE *to, const mla_output_verdict *o) {
  fprintf(to, "  %-6s ", mla_slot_name(o->slot));
  if (o->bad || o->unwritten || o->outside[0])
    print_wrong(to, o);
  else if (o->compare == MLA_COMPARE_BYTES)
    fprintf(to, "ok, all bytes\n");
  else if (!has_budget(o))
    fprintf(to, "ok, all bits\n");
  else
    fprintf(to, "ok, worst %.3f of the budget\n", o->worst);
}

static void print_figures(FILE *to, const mla_output_verdict *o) {
  if (o->compare == MLA_COMPARE_BYTES) return;
  fprintf(to,
          "  %-6s largest error %.3g absolute, %.3g relative, %.3g in L2; "
          "worst at %s\n",
          mla_slot_name(o->slot), o->max_abs, o->max_rel, o->rel_l2, o->at);
}

/* -------------------------------------------------------------- the block */

static void print_runs(FILE *to, const mla_verdict *v) {
  static const char *const names[] = {"none", "run to run", "batch invariant"};
  if (v->fences[0]) fprintf(to, "  fence  %s\n", v->fences);
  if (v->differs)
    fprintf(
        to,
        "  again  a second run gave other bits, but determinism \"%s\" is "
        "declared\n",
        names[v->determinism >= 0 && v->determinism < 3 ? v->determinism : 0]);
  static const char *const mates[][2] = {
      {"", ""},
      {"first request gets", "others"},
      {"rest of the batch gets", "first request's tokens"},
      {"first rows get", "others"}};
  if (v->mates > 0 && v->mates < 4)
    fprintf(to,
            "  alone  the %s other bits without the %s, but batch\n"
            "         invariance is declared\n",
            mates[v->mates][0], mates[v->mates][1]);
}

static void print_look(FILE *to, const mla_record *r) {
  char look[400];
  if (mla_look_print(&r->verdict.look, look, sizeof look) > 0)
    fprintf(to, "  looks like  %s\n", look);
  if (r->smallest[0]) fprintf(to, "  smallest  %s\n", r->smallest);
  if (r->repro[0]) fprintf(to, "  repro  %s\n", r->repro);
}

void report_rerun(FILE *to, const run_state *run, int32_t i) {
  const mla_item *item = mla_docket_at(run->docket, i);
  const mla_record *r = &run->record[i];
  int batch = item->kind == MLA_ITEM_BATCH && item->path;
  int stored = item->kind == MLA_ITEM_STORED || batch;
  int from_file = stored || item->kind == MLA_ITEM_TRUTH;
  if (r->smallest[0] || !from_file)
    fprintf(to, "%s --case '%s' --seed %llu -v", run->rerun,
            r->smallest[0] ? r->smallest : item->id,
            (unsigned long long)item->seed);
  else
    fprintf(to, "%s --vectors '%s'%s%s%s -v", run->rerun, item->path,
            stored ? " --only '" : "", stored ? item->id : "",
            stored ? "'" : "");
}

static void print_title(FILE *to, const mla_item *item, int32_t kind,
                        int colour) {
  fprintf(to, "%s%-4s%s  %s", colour ? report_colour(kind) : "", word_of(kind),
          colour ? report_plain() : "", item->id);
  if (item->hunts[0] && kind != MLA_VERDICT_PASS)
    fprintf(to, "    hunts %s", item->hunts);
  fprintf(to, "\n");
}

static void print_failure(FILE *to, const run_state *run, int32_t i,
                          int colour) {
  const mla_record *r = &run->record[i];
  const mla_verdict *v = &r->verdict;
  print_title(to, mla_docket_at(run->docket, i), v->kind, colour);
  if (v->reason[0]) fprintf(to, "  why    %s\n", v->reason);
  for (int32_t k = 0; k < v->outputs; k++) print_output(to, &v->output[k]);
  print_runs(to, v);
  print_look(to, r);
  if (v->kernel[0]) fprintf(to, "  kernel %s\n", v->kernel);
  fprintf(to, "  rerun  ");
  report_rerun(to, run, i);
  fprintf(to, "\n");
}

void report_failure(FILE *to, const run_state *run, int32_t i) {
  print_failure(to, run, i, 0);
}

static void print_pass(const mla_item *item, const mla_record *r) {
  const mla_verdict *v = &r->verdict;
  print_title(stdout, item, v->kind, 1);
  if (v->reason[0]) printf("  note   %s\n", v->reason);
  for (int32_t i = 0; i < v->outputs; i++) {
    print_output(stdout, &v->output[i]);
    print_figures(stdout, &v->output[i]);
  }
  if (v->rows < v->rows_total)
    printf("  rows   %lld of %lld, a spread sample\n", (long long)v->rows,
           (long long)v->rows_total);
  if (v->repeated)
    printf("  again  %d more run%s, the same bits\n", (int)v->repeated,
           v->repeated > 1 ? "s" : "");
  if (v->kernel[0]) printf("  kernel %s\n", v->kernel);
}

static void print_waived(const run_state *run, int32_t i,
                         const mla_waiver *waiver) {
  const mla_item *item = mla_docket_at(run->docket, i);
  printf("%sWAIVED%s  %s    %s%s%s\n", report_colour(MLA_VERDICT_UNSUPPORTED),
         report_plain(), item->id, waiver->link, waiver->reason[0] ? "  " : "",
         waiver->reason);
  if (run->verbose) print_failure(stdout, run, i, 1);
}

static int32_t bad_before(const run_state *run, int32_t i) {
  int32_t n = 0;
  for (int32_t k = 0; k < i; k++) n += run_is_bad(run, k);
  return n;
}

void report_text_record(const run_state *run, int32_t i) {
  const mla_item *item = mla_docket_at(run->docket, i);
  const mla_record *r = &run->record[i];
  const mla_waiver *waiver = run_waiver(run, i);
  int32_t kind = r->verdict.kind;
  char line[640];
  if (item->kind == MLA_ITEM_TRUTH && r->truth.name[0]) {
    mla_truth_print(&r->truth, line, sizeof line);
    printf("%s\n", line);
    if (waiver) print_waived(run, i, waiver);
  } else if (waiver) {
    print_waived(run, i, waiver);
  } else if (kind == MLA_VERDICT_PASS) {
    if (run->verbose) print_pass(item, r);
  } else if (kind == MLA_VERDICT_UNSUPPORTED) {
    if (run->verbose) printf("NO    %s    %s\n", item->id, r->verdict.reason);
  } else if (run->verbose || bad_before(run, i) < REPORT_MOST_FAILURES) {
    print_failure(stdout, run, i, 1);
  }
  fflush(stdout);
}
