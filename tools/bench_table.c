/*
 * bench_table.c - decode of several lengths as a table: a line for what is the
 * same but for the length.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { MOST_COLUMNS = 8 };

/* Where a case's name ends but for its one length; 0: it has none, or more
   follows. */
static int stem_of(const char *id) {
  const char *len = strstr(id, ",len=");
  if (strncmp(id, "decode:", 7) != 0 || !len) return 0;
  return len[5 + strspn(len + 5, "0123456789")] ? 0 : (int)(len - id);
}

static int same_stem(const char *a, const char *b) {
  const int n = stem_of(a);
  return n > 0 && n == stem_of(b) && strncmp(a, b, (size_t)n) == 0;
}

static const char *length_of(const bench_result *r) {
  return r->id + stem_of(r->id) + 5;
}

/* It has no other length: the list above says all. */
static int is_alone(const bench_run *run, int i) {
  for (int k = 0; k < run->count; k++)
    if (k != i && same_stem(run->result[k].id, run->result[i].id)) return 0;
  return 1;
}

/* Decimal numbers without zeros before them. */
static int is_less(const char *a, const char *b) {
  size_t m = strlen(a), n = strlen(b);
  return m < n || (m == n && strcmp(a, b) < 0);
}

/* The lengths, ascending, of the first that there are; how many. */
static int columns_of(const bench_run *run,
                      const char *(*column)[MOST_COLUMNS]) {
  int count = 0, at;
  for (int i = 0; i < run->count; i++) {
    if (is_alone(run, i)) continue;
    const char *length = length_of(&run->result[i]);
    for (at = 0; at < count && strcmp((*column)[at], length) != 0;) at++;
    if (at < count || count == MOST_COLUMNS) continue;
    for (at = count++; at > 0 && is_less(length, (*column)[at - 1]); at--)
      (*column)[at] = (*column)[at - 1];
    (*column)[at] = length;
  }
  return count;
}

static int is_first(const bench_run *run, int i) {
  for (int k = 0; k < i; k++)
    if (same_stem(run->result[k].id, run->result[i].id)) return 0;
  return !is_alone(run, i);
}

static void print_cell(const bench_run *run, const char *id,
                       const char *length) {
  for (int i = 0; i < run->count; i++) {
    const bench_result *r = &run->result[i];
    if (!same_stem(r->id, id) || strcmp(length_of(r), length) != 0) continue;
    if (r->state != BENCH_TIMED) break;
    printf(" %9.1f %3.0f %%", r->seconds_min * 1e6,
           100 * bench_peak_share(r, &run->peak));
    return;
  }
  printf(" %15s", "-");
}

void bench_print_table(const bench_run *run) {
  const char *column[MOST_COLUMNS];
  const int columns = columns_of(run, &column);
  if (columns < 2) return;
  printf("\n%-36s", "min us and share of the nearer peak");
  for (int c = 0; c < columns; c++) printf("  len %9s", column[c]);
  printf("\n");
  for (int i = 0; i < run->count; i++) {
    const char *id = run->result[i].id;
    if (!is_first(run, i)) continue;
    printf("%-36.*s", stem_of(id), id);
    for (int c = 0; c < columns; c++) print_cell(run, id, column[c]);
    printf("\n");
  }
}
