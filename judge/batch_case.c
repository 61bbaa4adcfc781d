/*
 * batch_case.c - names of cases of batch building, and names of arrays.
 */
#include "batch_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

/* ------------------------------------------------------------------- keys */

typedef enum kind { NUMBER, FLAG, PAIR, LIST } kind;

typedef struct key_row {
  const char *name;
  int kind, sign; /* sign: printed with "=" */
  size_t offset;
  int64_t least, most, otherwise;
  const char *what;
} key_row;

#define AT(member) offsetof(mla_batch_recipe, member)

static const key_row keys[] = {
    {"b", NUMBER, 0, AT(requests), 0, MLA_BATCH_REQUESTS, 1, "requests"},
    {"page", NUMBER, 0, AT(page), 1, 1 << 20, 16, "entries of a cache block"},
    {"ctx", LIST, 1, AT(context), 0, 1 << 20, 0,
     "cached entries of each request"},
    {"q", LIST, 1, AT(rows), 0, MLA_BATCH_ROWS, 1, "new rows of each request"},
    {"threshold", NUMBER, 1, AT(threshold), 0, MLA_BATCH_ROWS, 0,
     "requests of at most so many rows come first; 0: as they came"},
    {"pad", PAIR, 1, AT(pad), 0, MLA_BATCH_ROWS, 0,
     "requests and rows more than the first step has"},
    {"next", NUMBER, 1, AT(next), 0, MLA_BATCH_NEXT, 0,
     "steps that follow in place"},
    {"draft", NUMBER, 1, AT(draft), 1, 16, 1,
     "rows of a request in these, at most"},
    {"reject", FLAG, 0, AT(reject), 0, 1, 0, "not all rows of a step are kept"},
    {"end", FLAG, 0, AT(end), 0, 1, 0, "some requests end"},
    {"full", FLAG, 0, AT(full), 0, 1, 0, "rows see all keys of their request"},
    {"units", NUMBER, 1, AT(units), 1, 1 << 20, 16,
     "compute units, for splits"},
    {"invariant", FLAG, 0, AT(invariant), 0, 1, 0,
     "batch invariance: one split"},
    {"ranks", NUMBER, 1, AT(ranks), 0, MLA_BATCH_RANKS, 0,
     "ranks of context parallelism; 0: none"},
    {"interleave", NUMBER, 1, AT(interleave), 1, 1 << 20, 1,
     "consecutive positions of a rank"},
    {"spare", NUMBER, 1, AT(spare), 0, MLA_BATCH_WIDTH, 0,
     "columns of the table that nobody uses"},
    {"far", FLAG, 0, AT(far), 0, 1, 0, "blocks beyond 2^31 entries"},
};
#define KEYS (sizeof keys / sizeof keys[0])
static const char prefix[] = "batch:";

int mla_batch_case_key(int i, char *form, char *what, size_t size) {
  static const char *const value[] = {
      [NUMBER] = "N", [FLAG] = "", [PAIR] = "N+N", [LIST] = "N+N.."};
  if (i < 0 || i >= (int)KEYS) return 0;
  const key_row *k = &keys[i];
  snprintf(form, size, "%s%s%s", k->name, k->sign ? "=" : "", value[k->kind]);
  if (k->kind == FLAG || k->kind == PAIR)
    snprintf(what, size, "%s", k->what);
  else
    snprintf(what, size, "%s [%lld]", k->what, (long long)k->otherwise);
  return 1;
}

static int64_t *value_of(mla_batch_recipe *r, const key_row *k) {
  return (int64_t *)((char *)r + k->offset);
}
static const int64_t *value_in(const mla_batch_recipe *r, const key_row *k) {
  return (const int64_t *)((const char *)r + k->offset);
}

int mla_batch_case_is(const char *id) {
  return strncmp(id, prefix, sizeof prefix - 1) == 0;
}

/* ---------------------------------------------------------------- reading */

static mla_status bad(mla_error *err, const char *word, const char *why) {
  return mla_fail(err, MLA_INVALID_ARGUMENT, "case", "batch: \"%.60s\" %s",
                  word, why);
}

/* "33+0+15" into at most `room` values; how many, 0: not numbers. */
static int read_numbers(const char *text, const key_row *k, int64_t *to,
                        int room) {
  int n = 0;
  for (;;) {
    char *end;
    long long value = strtoll(text, &end, 10);
    if (end == text || n == room || *text == '+' || *text == ' ') return 0;
    if (value < k->least || value > k->most) return 0;
    to[n++] = value;
    if (!*end) return n;
    if (*end != '+') return 0;
    text = end + 1;
  }
}

static int read_value(const key_row *k, const char *text, int64_t *to) {
  if (k->kind == FLAG) return *text ? 0 : (*to = 1, 1);
  if (*text == '=') text++;
  if (k->kind == NUMBER) return read_numbers(text, k, to, 1);
  if (k->kind == PAIR) return read_numbers(text, k, to, 2) == 2;
  int n = read_numbers(text, k, to, MLA_BATCH_REQUESTS);
  for (int i = 1; n == 1 && i < MLA_BATCH_REQUESTS; i++) to[i] = to[0];
  /* Behind a list of several: what no request has. */
  for (int i = n; n > 1 && i < MLA_BATCH_REQUESTS; i++) to[i] = -1;
  return n;
}

/* The key that the word begins with: "q" of "q3", "page" of "page16". */
static const key_row *key_of(const char *word) {
  for (size_t i = 0; i < KEYS; i++) {
    size_t n = strlen(keys[i].name);
    if (strncmp(word, keys[i].name, n) != 0) continue;
    if (!word[n] || word[n] == '=' || (word[n] >= '0' && word[n] <= '9'))
      return &keys[i];
  }
  return NULL;
}

static mla_status check_lists(const mla_batch_recipe *r, mla_error *err) {
  for (int64_t b = 0; b < MLA_BATCH_REQUESTS; b++) {
    int wanted = b < r->requests;
    if (wanted && (r->context[b] < 0 || r->rows[b] < 0))
      return bad(err, "ctx, q", "have fewer values than there are requests");
    if (!wanted && ((r->context[b] >= 0 && r->context[b] != r->context[0]) ||
                    (r->rows[b] >= 0 && r->rows[b] != r->rows[0])))
      return bad(err, "ctx, q", "have more values than there are requests");
  }
  return MLA_OK;
}

static void set_defaults(mla_batch_recipe *r) {
  for (size_t i = 0; i < KEYS; i++) {
    static const int values[] = {
        [NUMBER] = 1, [FLAG] = 1, [PAIR] = 2, [LIST] = MLA_BATCH_REQUESTS};
    for (int b = 0; b < values[keys[i].kind]; b++)
      value_of(r, &keys[i])[b] = keys[i].otherwise;
  }
}

mla_status mla_batch_case_parse(const char *id, mla_batch_recipe *r,
                                mla_error *err) {
  char text[MLA_BATCH_ID_MAX];
  set_defaults(r);
  if (!mla_batch_case_is(id) || strlen(id) >= sizeof text)
    return bad(err, id, "is no name of such a case");
  snprintf(text, sizeof text, "%s", id + sizeof prefix - 1);
  for (char *word = text, *next; word; word = next) {
    next = strchr(word, ',');
    if (next) *next++ = '\0';
    const key_row *k = key_of(word);
    if (!k) return bad(err, word, "is no key");
    if (!read_value(k, word + strlen(k->name), value_of(r, k)))
      return bad(err, word, "has no value that the key may have");
  }
  return check_lists(r, err);
}

/* --------------------------------------------------------------- printing */

typedef struct line {
  char *text;
  size_t size, used;
} line;

static void put(line *l, const char *text) {
  for (; *text; text++, l->used++)
    if (l->used + 1 < l->size) l->text[l->used] = *text;
  if (l->size) l->text[l->used < l->size ? l->used : l->size - 1] = '\0';
}

static void put_number(line *l, const char *before, int64_t value) {
  char text[40];
  snprintf(text, sizeof text, "%s%lld", before, (long long)value);
  put(l, text);
}

static int same_for_all(const mla_batch_recipe *r, const int64_t *list) {
  for (int64_t b = 1; b < r->requests; b++)
    if (list[b] != list[0]) return 0;
  return 1;
}

static int is_default(const mla_batch_recipe *r, const key_row *k) {
  const int64_t *value = value_in(r, k);
  if (k->kind == PAIR) return !value[0] && !value[1];
  if (k->kind == LIST && !same_for_all(r, value)) return 0;
  return value[0] == k->otherwise && strcmp(k->name, "b") != 0 &&
         strcmp(k->name, "page") != 0 && strcmp(k->name, "q") != 0;
}

int mla_batch_case_print(const mla_batch_recipe *r, char *id, size_t size) {
  line l = {id, size, 0};
  put(&l, prefix);
  for (size_t i = 0; i < KEYS; i++) {
    const key_row *k = &keys[i];
    const int64_t *value = value_in(r, k);
    if (is_default(r, k)) continue;
    put(&l, i ? "," : "");
    put(&l, k->name);
    if (k->kind == FLAG) continue;
    int64_t n = k->kind == PAIR                              ? 2
                : k->kind == LIST && !same_for_all(r, value) ? r->requests
                                                             : 1;
    int bare = !k->sign || (n == 1 && strcmp(k->name, "q") == 0);
    for (int64_t b = 0; b < n; b++)
      put_number(&l, b ? "+" : bare ? "" : "=", value[b]);
  }
  return (int)l.used;
}

/* ----------------------------------------------------------------- arrays */

static const struct {
  const char *name;
  int64_t most;
} arrays[MLA_BATCH_ARRAYS] = {
    {"positions", MLA_BATCH_ROWS},
    {"slot_mapping", MLA_BATCH_ROWS},
    {"query_start_loc", MLA_BATCH_REQUESTS + 1},
    {"seq_lens", MLA_BATCH_REQUESTS},
    {"block_table", MLA_BATCH_REQUESTS *MLA_BATCH_WIDTH},
    {"row_lens", MLA_BATCH_ROWS},
    {"order", MLA_BATCH_REQUESTS},
    {"row_sources", MLA_BATCH_ROWS},
    {"token_ids", MLA_BATCH_ROWS},
    {"decodes", 2},
    {"splits", 2},
    {"rank_slots", MLA_BATCH_RANKS *MLA_BATCH_ROWS},
    {"rank_lens", MLA_BATCH_RANKS *MLA_BATCH_ROWS},
};

const char *mla_batch_array_name(int array) {
  return array >= 0 && array < MLA_BATCH_ARRAYS ? arrays[array].name : NULL;
}

int mla_batch_array_find(const char *name) {
  for (int i = 0; i < MLA_BATCH_ARRAYS; i++)
    if (strcmp(arrays[i].name, name) == 0) return i;
  return -1;
}

int64_t mla_batch_most(int array) {
  return arrays[array].most;
}

static int64_t offset_of(int array) {
  int64_t at = 0;
  for (int i = 0; i < array; i++) at += arrays[i].most;
  return at;
}

int64_t *mla_batch_values(mla_batch_step *step, int array) {
  return step->pool + offset_of(array);
}
const int64_t *mla_batch_values_of(const mla_batch_step *step, int array) {
  return step->pool + offset_of(array);
}

mla_batch_answer *mla_batch_answer_new(void) {
  return calloc(1, sizeof(mla_batch_answer));
}
