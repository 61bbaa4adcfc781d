/*
 * report_progress.c - how far a run is, on a terminal's stderr.
 *
 *   [########------------]  91/230  2 failed  0:41 left  decode:bf16:b4,h128..
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "machine.h"
#include "report.h"

#define BAR 20
#define LINE 79

/* A case costs its work, and something in any event. */
static double cost_of(const mla_item *item) {
  mla_case c;
  const double least = 3e6;
  if (item->kind == MLA_ITEM_TRUTH) return 1e10;
  if (mla_case_parse(item->id, &c, NULL) != MLA_OK) return least;
  return least + mla_case_flops(&c);
}

typedef struct progress {
  double start, done, all;
  int32_t counted, bad; /* records that are in `done` and `bad` */
} progress;

static progress *state_of(const run_state *run) {
  static progress state;
  if (run->done == 0 || state.all == 0) {
    memset(&state, 0, sizeof state);
    state.start = mla_machine_seconds();
    for (int32_t i = 0; i < mla_docket_count(run->docket); i++)
      state.all += cost_of(mla_docket_at(run->docket, i));
  }
  for (; state.counted < run->done; state.counted++) {
    state.done += cost_of(mla_docket_at(run->docket, state.counted));
    state.bad += run_is_bad(run, state.counted);
  }
  return &state;
}

/* "0:41 left", once enough is known to say so. */
static void say_left(const progress *p, char *text, size_t size) {
  double passed = mla_machine_seconds() - p->start;
  text[0] = '\0';
  if (passed < 2 || p->done < 0.02 * p->all) return;
  double left = passed * (p->all - p->done) / p->done;
  long whole = left < 359999 ? (long)(left + 0.5) : 359999;
  if (whole >= 3600)
    snprintf(text, size, "  %ld:%02ld:%02ld left", whole / 3600,
             whole / 60 % 60, whole % 60);
  else
    snprintf(text, size, "  %ld:%02ld left", whole / 60, whole % 60);
}

void progress_show(const run_state *run) {
  char line[LINE + 1], bar[BAR + 1], left[40], bad[40] = "";
  int32_t count = mla_docket_count(run->docket);
  if (!isatty(2) || run->done >= count) return;
  const progress *p = state_of(run);
  int full = p->all > 0 ? (int)(BAR * p->done / p->all) : 0;
  memset(bar, '-', BAR);
  memset(bar, '#', (size_t)(full < BAR ? full : BAR));
  bar[BAR] = '\0';
  say_left(p, left, sizeof left);
  if (p->bad) snprintf(bad, sizeof bad, "  %d failed", (int)p->bad);
  /* Cut to the line, on purpose. */
  int n = snprintf(line, sizeof line, "[%s] %3d/%d%s%s  %s", bar,
                   (int)run->done, (int)count, bad, left,
                   mla_docket_at(run->docket, run->done)->id);
  if (n < 0) return;
  fprintf(stderr, "\r\033[K%s", line);
  fflush(stderr);
}

void progress_clear(void) {
  if (!isatty(2)) return;
  fprintf(stderr, "\r\033[K");
  fflush(stderr);
}
