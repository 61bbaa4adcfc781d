/*
 * batch_compare.c - element by element, and the first difference in words.
 */
#include "batch_compare.h"

#include <stdio.h>
#include <string.h>

/* --------------------------------------------------------------- comparing */

static int64_t live_requests(const mla_batch_case *c, int32_t step) {
  return step ? c->turn[step - 1].requests : c->requests;
}

static int64_t live_tokens(const mla_batch_case *c, int32_t step) {
  const int32_t *rows = step ? c->turn[step - 1].rows : c->rows;
  int64_t n = 0;
  for (int64_t p = 0; p < live_requests(c, step); p++) n += rows[p];
  return n;
}

/* Of a step as expected: rows of the launch. */
static int64_t launch_tokens(const mla_batch_step *s) {
  return s->count[MLA_BATCH_POSITIONS];
}

static int is_of_tokens(int array) {
  return array == MLA_BATCH_POSITIONS || array == MLA_BATCH_SLOT_MAPPING ||
         array == MLA_BATCH_ROW_LENS || array == MLA_BATCH_ROW_SOURCES ||
         array == MLA_BATCH_TOKEN_IDS || array == MLA_BATCH_RANK_SLOTS ||
         array == MLA_BATCH_RANK_LENS;
}

static int is_padding(const mla_batch_case *c, const mla_batch_step *want,
                      int32_t step, int array, int64_t i) {
  int64_t tokens = launch_tokens(want), live = live_requests(c, step);
  if (is_of_tokens(array)) return i % tokens >= live_tokens(c, step);
  if (array == MLA_BATCH_BLOCK_TABLE) return i / c->table_width >= live;
  if (array == MLA_BATCH_QUERY_START_LOC) return i > live;
  return (array == MLA_BATCH_SEQ_LENS || array == MLA_BATCH_ORDER) && i >= live;
}

/* Entries of a table that a length does not reach. */
static int is_unread(const mla_batch_case *c, const mla_batch_step *want,
                     int array, int64_t i) {
  if (array != MLA_BATCH_BLOCK_TABLE) return 0;
  int64_t place = i / c->table_width, w = i % c->table_width;
  return w * c->block_size >=
         mla_batch_values_of(want, MLA_BATCH_SEQ_LENS)[place];
}

/* A rank's rows are apart by the rows of the answer's own launch, which
   without padding may be shorter. */
static int64_t index_in_answer(const mla_batch_step *want,
                               const mla_batch_step *has, int array,
                               int64_t ranks, int64_t i) {
  int64_t tokens = launch_tokens(want);
  if (array < MLA_BATCH_RANK_SLOTS || ranks < 1 || tokens < 1) return i;
  return i / tokens * (has->count[array] / ranks) + i % tokens;
}

static void compare_array(const mla_batch_case *c,
                          const mla_batch_answer *expected,
                          const mla_batch_answer *got, int32_t step, int array,
                          mla_batch_see see, void *context) {
  const mla_batch_step *want = &expected->step[step], *has = &got->step[step];
  const int64_t *right = mla_batch_values_of(want, array);
  const int64_t *value = mla_batch_values_of(has, array);
  mla_batch_element e = {step, array, 0, 0, 0};
  for (int64_t i = 0; i < want->count[array]; i++) {
    if (is_unread(c, want, array, i)) continue;
    if (got->no_padding && is_padding(c, want, step, array, i)) continue;
    int64_t k =
        got->no_padding ? index_in_answer(want, has, array, c->ranks, i) : i;
    e.index = i;
    e.expected = right[i];
    e.got = k < has->count[array] ? value[k] : MLA_BATCH_NO_VALUE;
    see(context, &e);
  }
  /* More than there should be. */
  for (int64_t i = want->count[array];
       !got->no_padding && i < has->count[array]; i++) {
    e.index = i;
    e.expected = MLA_BATCH_NO_VALUE;
    e.got = value[i];
    see(context, &e);
  }
}

void mla_batch_compare(const mla_batch_case *c,
                       const mla_batch_answer *expected,
                       const mla_batch_answer *got, mla_batch_see see,
                       void *context) {
  for (int32_t step = 0; step < expected->steps; step++)
    for (int array = 0; array < MLA_BATCH_ARRAYS; array++)
      if (!(got->left_out >> array & 1))
        compare_array(c, expected, got, step, array, see, context);
}

static void note(void *context, const mla_batch_element *e) {
  mla_batch_diff *diff = context;
  diff->compared++;
  if (e->expected == e->got) return;
  if (!diff->wrong) diff->first = *e;
  diff->wrong++;
  diff->wrong_in[e->array]++;
}

void mla_batch_differ(const mla_batch_case *c, const mla_batch_answer *expected,
                      const mla_batch_answer *got, mla_batch_diff *diff) {
  memset(diff, 0, sizeof *diff);
  mla_batch_compare(c, expected, got, note, diff);
}

/* ---------------------------------------------------------------- in words */

/* Text that ends where its room does. */
typedef struct words {
  char *text;
  size_t size, used;
} words;

static void put(words *w, const char *text) {
  for (; *text; text++, w->used++)
    if (w->used + 1 < w->size) w->text[w->used] = *text;
  if (w->size) w->text[w->used < w->size ? w->used : w->size - 1] = '\0';
}

static void put_value(words *w, int64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)value);
  put(w, value == MLA_BATCH_NO_VALUE ? "absent" : text);
}

static void put_named(words *w, const char *name, int64_t value) {
  put(w, name);
  put_value(w, value);
}

static void put_place(words *w, const mla_batch_step *want, int64_t place) {
  put_named(w, "place ", place);
  put_named(w, ", request ", mla_batch_values_of(want, MLA_BATCH_ORDER)[place]);
}

static void put_row(words *w, const mla_batch_case *c,
                    const mla_batch_step *want, int32_t step, int64_t row) {
  const int64_t *starts = mla_batch_values_of(want, MLA_BATCH_QUERY_START_LOC);
  const int64_t *positions = mla_batch_values_of(want, MLA_BATCH_POSITIONS);
  int64_t place = 0;
  if (row >= live_tokens(c, step)) {
    put(w, "padding");
    return;
  }
  while (starts[place + 1] <= row) place++;
  put_place(w, want, place);
  put_named(w, ", its row ", row - starts[place]);
  put_named(w, ", position ", positions[row]);
  put_named(w, ": block ", positions[row] / c->block_size);
  put_named(w, " at ", positions[row] % c->block_size);
}

/* Whose element it is. */
static void put_owner(words *w, const mla_batch_case *c,
                      const mla_batch_step *want, const mla_batch_element *e) {
  int64_t i = e->index, live = live_requests(c, e->step);
  int64_t tokens = launch_tokens(want);
  if (is_of_tokens(e->array) && tokens) {
    if (e->array >= MLA_BATCH_RANK_SLOTS) {
      put_named(w, "rank ", i / tokens);
      put(w, ", ");
    }
    put_row(w, c, want, e->step, i % tokens);
  } else if (e->array == MLA_BATCH_DECODES) {
    put(w, i ? "rows of decodes" : "requests that are decodes");
  } else if (e->array == MLA_BATCH_SPLITS) {
    put(w, i ? "reserved" : "of the step");
  } else {
    if (e->array == MLA_BATCH_BLOCK_TABLE) {
      put_named(w, "entry ", i % c->table_width);
      put(w, " of ");
      i /= c->table_width;
    }
    if (i < live)
      put_place(w, want, i);
    else
      put(w, e->array == MLA_BATCH_QUERY_START_LOC && i == live ? "the end"
                                                                : "padding");
  }
}

static void put_counts(words *w, const mla_batch_diff *d) {
  const char *between = ": ";
  put_named(w, "; ", d->wrong);
  put_named(w, " of ", d->compared);
  put(w, " values are wrong");
  for (int a = 0; a < MLA_BATCH_ARRAYS; a++) {
    if (!d->wrong_in[a]) continue;
    put(w, between);
    put_value(w, d->wrong_in[a]);
    put(w, " of ");
    put(w, mla_batch_array_name(a));
    between = ", ";
  }
}

int mla_batch_diff_print(const mla_batch_case *c,
                         const mla_batch_answer *expected,
                         const mla_batch_diff *d, char *text, size_t size) {
  const mla_batch_element *e = &d->first;
  words w = {text, size, 0};
  put(&w, "");
  if (!d->wrong) return 0;
  put_named(&w, "step ", e->step);
  put(&w, ": ");
  put(&w, mla_batch_array_name(e->array));
  put_named(&w, "[", e->index);
  put_named(&w, "] is ", e->got);
  put_named(&w, ", not ", e->expected);
  put(&w, " (");
  put_owner(&w, c, &expected->step[e->step], e);
  put(&w, ")");
  put_counts(&w, d);
  return (int)w.used;
}
