/*
 * suite.c - reading profiles.
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_case.h"
#include "error.h"
#include "file_text.h"
#include "model_presets.h"
#include "profile_list.h"

#define MOST_DEPTH 4 /* of includes */
#define MOST_LINE 4400

typedef struct reading {
  mla_suite *suite;
  const char *name;
  int line, depth;
  mla_error *err;
} reading;

static mla_status read_text(reading *r, const char *text);

void mla_suite_init(mla_suite *suite, const char *name) {
  memset(suite, 0, sizeof *suite);
  snprintf(suite->name, sizeof suite->name, "%s", name);
}

void mla_suite_free(mla_suite *suite) {
  for (int64_t i = 0; i < suite->count; i++) free(suite->entry[i].id);
  free(suite->entry);
  mla_suite_init(suite, "");
}

static int already_there(const mla_suite *suite, const char *id,
                         uint64_t seed) {
  for (int64_t i = 0; i < suite->count; i++)
    if (suite->entry[i].seed == seed && strcmp(suite->entry[i].id, id) == 0)
      return 1;
  return 0;
}

static mla_status make_canonical(const char *id, char *text, size_t size,
                                 mla_error *err) {
  mla_batch_recipe r;
  mla_case c;
  mla_status status = mla_batch_case_is(id) ? mla_batch_case_parse(id, &r, err)
                                            : mla_case_parse(id, &c, err);
  if (status != MLA_OK) return status;
  if (mla_batch_case_is(id))
    mla_batch_case_print(&r, text, size);
  else
    mla_case_print(&c, text, size);
  return MLA_OK;
}

mla_status mla_suite_add(mla_suite *suite, const char *id, uint64_t seed,
                         const char *hunts, int optional, mla_error *err) {
  char canonical[MLA_CASE_ID_MAX];
  mla_status status = make_canonical(id, canonical, sizeof canonical, err);
  if (status != MLA_OK) return status;
  if (already_there(suite, canonical, seed)) return MLA_OK;
  size_t room = (size_t)suite->count + 1;
  mla_suite_entry *grown = realloc(suite->entry, room * sizeof *grown);
  if (!grown) return mla_fail(err, MLA_OUT_OF_MEMORY, "case", "no memory");
  suite->entry = grown;
  mla_suite_entry *e = &grown[suite->count];
  memset(e, 0, sizeof *e);
  e->id = malloc(strlen(canonical) + 1);
  if (!e->id) return mla_fail(err, MLA_OUT_OF_MEMORY, "case", "no memory");
  memcpy(e->id, canonical, strlen(canonical) + 1);
  snprintf(e->hunts, sizeof e->hunts, "%s", hunts);
  e->seed = seed;
  e->optional = optional;
  suite->count++;
  return MLA_OK;
}

/* -------------------------------------------------------------- one line */

static char *next_word(char **at) {
  char *word = *at + strspn(*at, " \t");
  if (!*word) return NULL;
  *at = word + strcspn(word, " \t");
  if (**at) *(*at)++ = '\0';
  return word;
}

static mla_status bad_line(const reading *r, const char *why,
                           const char *word) {
  return mla_fail(r->err, MLA_INVALID_ARGUMENT, "profile",
                  "%s, line %d: %s \"%.60s\"", r->name, r->line, why, word);
}

/* "PAGE-SIZE TAIL-NAN seed=7" */
static mla_status read_rest(const reading *r, char *rest, char *hunts,
                            size_t size, uint64_t *seed) {
  char *word;
  size_t used = 0;
  while ((word = next_word(&rest)) != NULL) {
    char *end;
    if (strncmp(word, "seed=", 5) == 0) {
      *seed = strtoull(word + 5, &end, 10);
      if (*end || end == word + 5) return bad_line(r, "no seed:", word);
      continue;
    }
    if (strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != strlen(word))
      return bad_line(r, "no hazard class:", word);
    int n = snprintf(hunts + used, size - used, "%s%s", used ? ", " : "", word);
    if (n < 0 || (size_t)n >= size - used)
      return bad_line(r, "too many classes:", word);
    used += (size_t)n;
  }
  return MLA_OK;
}

static mla_status read_case(const reading *r, char *line) {
  char hunts[MLA_HUNTS_MAX] = "";
  uint64_t seed = MLA_SUITE_SEED;
  int optional = line[0] == '?';
  char *rest = line + optional, why[240];
  char *id = next_word(&rest);
  if (!id) return bad_line(r, "no case behind", "?");
  mla_status status = read_rest(r, rest, hunts, sizeof hunts, &seed);
  if (status != MLA_OK) return status;
  mla_error inner = mla_error_init();
  status = mla_suite_add(r->suite, id, seed, hunts, optional, &inner);
  if (status == MLA_OK) return MLA_OK;
  snprintf(why, sizeof why, "%s", inner.message);
  return mla_fail(r->err, status, "profile", "%s, line %d: %.180s", r->name,
                  r->line, why);
}

static const char *builtin_text(const char *name) {
  for (int i = 0; mla_profiles[i].name; i++)
    if (strcmp(mla_profiles[i].name, name) == 0) return mla_profiles[i].text;
  return NULL;
}

static mla_status include(reading *r, const char *name) {
  const char *text = builtin_text(name);
  if (!text) return bad_line(r, "no profile called", name);
  if (r->depth + 1 >= MOST_DEPTH) return bad_line(r, "too deep:", name);
  reading inner = {r->suite, name, 0, r->depth + 1, r->err};
  return read_text(&inner, text);
}

static mla_status read_directive(reading *r, char *line) {
  char *rest = line, *end;
  const char *word = next_word(&rest);
  rest += strspn(rest, " \t");
  if (strcmp(word, "@include") == 0) return include(r, rest);
  if (strcmp(word, "@title") == 0) {
    if (r->depth == 0)
      snprintf(r->suite->title, sizeof r->suite->title, "%s", rest);
    return MLA_OK;
  }
  if (strcmp(word, "@limit") == 0) {
    double limit = strtod(rest, &end);
    if (*end || !(limit > 0)) return bad_line(r, "no limit:", rest);
    if (r->depth == 0) r->suite->limit = limit;
    return MLA_OK;
  }
  return bad_line(r, "unknown:", word);
}

static mla_status read_line(reading *r, char *line) {
  size_t n = strlen(line);
  while (n && strchr(" \t\r", line[n - 1])) line[--n] = '\0';
  line += strspn(line, " \t");
  if (*line == '\0' || *line == '#') return MLA_OK;
  return *line == '@' ? read_directive(r, line) : read_case(r, line);
}

static mla_status read_text(reading *r, const char *text) {
  char line[MOST_LINE];
  mla_status status = MLA_OK;
  while (*text && status == MLA_OK) {
    size_t n = strcspn(text, "\n");
    r->line++;
    if (n >= sizeof line) return bad_line(r, "too long:", "");
    memcpy(line, text, n);
    line[n] = '\0';
    status = read_line(r, line);
    text += n + (text[n] == '\n');
  }
  return status;
}

/* ----------------------------------------------------------------- loading */

mla_status mla_suite_parse(const char *name, const char *text, mla_suite *suite,
                           mla_error *err) {
  reading r = {suite, name, 0, 0, err};
  mla_suite_init(suite, name);
  return read_text(&r, text);
}

mla_status mla_suite_load(const char *name, mla_suite *suite, mla_error *err) {
  const char *builtin = builtin_text(name);
  mla_suite_init(suite, name);
  if (strncmp(name, "model:", 6) == 0)
    return mla_model_suite(name + 6, suite, err);
  if (builtin) return mla_suite_parse(name, builtin, suite, err);
  char *text = mla_file_text(name, NULL);
  if (!text)
    return mla_fail(
        err, MLA_NOT_AVAILABLE, "profile",
        "no profile (list profiles) and no file is called \"%.150s\"", name);
  mla_status status = mla_suite_parse(name, text, suite, err);
  free(text);
  return status;
}

const char *mla_suite_builtin(int i) {
  for (int k = 0; k < i; k++)
    if (!mla_profiles[k].name) return NULL;
  return mla_profiles[i].name;
}

double mla_suite_flops(const mla_suite *suite) {
  double flops = 0;
  for (int64_t i = 0; i < suite->count; i++) {
    mla_case c;
    if (mla_case_parse(suite->entry[i].id, &c, NULL) == MLA_OK && !c.edit[0])
      flops += mla_case_flops(&c);
  }
  return flops;
}
