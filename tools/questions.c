/*
 * questions.c - reading an index of exported cases, and what seals it.
 */
#include "questions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "error.h"
#include "file_text.h"
#include "question.h"
#include "vector_json.h"

#define GET cJSON_GetObjectItemCaseSensitive

static uint64_t digest_text(uint64_t digest, const char *text) {
  for (; text && *text; text++)
    digest = mla_digest_u64(digest, (unsigned char)*text);
  return mla_digest_u64(digest, UINT64_MAX);
}

/* Of what is asked: of which profile or part of it, names, cases, seeds, and
   which are required. */
static uint64_t digest_of(const cJSON *index) {
  uint64_t digest = mla_digest_start();
  const cJSON *entry;
  digest = digest_text(digest, cJSON_GetStringValue(GET(index, "profile")));
  cJSON_ArrayForEach(entry, GET(index, "only")) {
    digest = digest_text(digest, cJSON_GetStringValue(entry));
  }
  cJSON_ArrayForEach(entry, GET(index, "cases")) {
    const cJSON *seed = GET(entry, "seed");
    digest = digest_text(digest, cJSON_GetStringValue(GET(entry, "name")));
    digest = digest_text(digest, cJSON_GetStringValue(GET(entry, "id")));
    digest =
        mla_digest_f64(digest, cJSON_IsNumber(seed) ? seed->valuedouble : 0);
    digest = mla_digest_u64(digest, cJSON_IsTrue(GET(entry, "required")));
  }
  return digest;
}

static void print_digest(const cJSON *index, char text[20]) {
  snprintf(text, 20, "%016llx", (unsigned long long)digest_of(index));
}

void questions_seal(cJSON *index) {
  char text[20];
  print_digest(index, text);
  cJSON_AddStringToObject(index, "digest", text);
}

/* ---------------------------------------------------------------- reading */

static mla_status bad(mla_error *err, const char *why) {
  return mla_fail(err, MLA_INVALID_ARGUMENT, "index", "index.json %s", why);
}

/* A file's name and nothing else. */
static int is_name(const char *name) {
  return name && *name && !strchr(name, '/') && name[0] != '.';
}

static mla_status add_entry(questions *q, mla_suite *suite, const cJSON *entry,
                            mla_error *err) {
  char hunts[MLA_HUNTS_MAX];
  const char *id = cJSON_GetStringValue(GET(entry, "id"));
  const char *name = cJSON_GetStringValue(GET(entry, "name"));
  const cJSON *seed = GET(entry, "seed");
  int64_t before = suite->count;
  if (!id || strchr(id, '!') || !is_name(name) || !cJSON_IsNumber(seed) ||
      !(seed->valuedouble >= 0) || seed->valuedouble > 9007199254740992.0)
    return bad(err, "has a case without id, name or seed");
  mla_json_join(GET(entry, "hunts"), hunts, sizeof hunts);
  mla_status status =
      mla_suite_add(suite, id, (uint64_t)seed->valuedouble, hunts,
                    !cJSON_IsTrue(GET(entry, "required")), err);
  if (status == MLA_OK && suite->count > before) q->name[before] = name;
  return status;
}

static int begins(const text_list *only, int32_t i, const char *id) {
  return mla_docket_matches(id, only->value[i]);
}

static int is_called(const text_list *cases, int32_t i, const char *id) {
  return strcmp(id, cases->value[i]) == 0;
}

/* Does every word ask for a case? */
static mla_status check_words(const cJSON *cases, const text_list *words,
                              int (*asks)(const text_list *, int32_t,
                                          const char *),
                              mla_error *err) {
  const cJSON *entry;
  for (int32_t i = 0; i < words->count; i++) {
    int found = 0;
    cJSON_ArrayForEach(entry, cases) {
      const char *id = cJSON_GetStringValue(GET(entry, "id"));
      found |= id && asks(words, i, id);
    }
    if (!found)
      return mla_fail(err, MLA_INVALID_ARGUMENT, "index",
                      "\"%.150s\" is no case of index.json, nor do whole words "
                      "of one begin so",
                      words->value[i]);
  }
  return MLA_OK;
}

static int is_wanted(const questions_asked *asked, const char *id) {
  int wanted = asked->only.count == 0 && asked->cases.count == 0;
  for (int32_t i = 0; i < asked->only.count; i++)
    wanted |= begins(&asked->only, i, id);
  for (int32_t i = 0; i < asked->cases.count; i++)
    wanted |= is_called(&asked->cases, i, id);
  return wanted;
}

static mla_status read_cases(questions *q, const questions_asked *asked,
                             mla_error *err) {
  const cJSON *cases = GET(q->json, "cases"), *entry;
  mla_suite suite;
  mla_status status = MLA_OK;
  size_t count = (size_t)cJSON_GetArraySize(cases);
  q->name = calloc(count + 1, sizeof *q->name);
  q->docket = mla_docket_new();
  if (!q->name || !q->docket)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "index", "no memory");
  mla_suite_init(&suite, "");
  cJSON_ArrayForEach(entry, cases) {
    const char *id = cJSON_GetStringValue(GET(entry, "id"));
    if (id && !is_wanted(asked, id)) continue;
    if (status == MLA_OK) status = add_entry(q, &suite, entry, err);
  }
  if (status == MLA_OK) status = mla_docket_add_suite(q->docket, &suite, err);
  mla_suite_free(&suite);
  return status;
}

static mla_status check_header(const questions *q, mla_error *err) {
  char digest[20];
  const char *format = cJSON_GetStringValue(GET(q->json, "format"));
  const char *sealed = cJSON_GetStringValue(GET(q->json, "digest"));
  const cJSON *version = GET(q->json, "version");
  if (!format || strcmp(format, MLA_QUESTION_FORMAT) != 0)
    return bad(err, "is no index of exported cases");
  if (!cJSON_IsNumber(version) || version->valuedouble != 1)
    return bad(err, "is not of version 1");
  if (!cJSON_IsArray(GET(q->json, "cases"))) return bad(err, "has no cases");
  print_digest(q->json, digest);
  if (!sealed || strcmp(sealed, digest) != 0)
    return bad(err, "was changed: its digest is not that of its cases");
  return MLA_OK;
}

mla_status questions_load(const char *dir, const questions_asked *asked,
                          questions *q, mla_error *err) {
  char path[4096];
  memset(q, 0, sizeof *q);
  snprintf(path, sizeof path, "%s/index.json", dir);
  char *text = mla_file_text(path, err);
  if (!text) return MLA_NOT_AVAILABLE;
  q->json = cJSON_Parse(text);
  free(text);
  if (!q->json) return bad(err, "is no JSON");
  mla_status status = check_header(q, err);
  const cJSON *cases = GET(q->json, "cases");
  if (status == MLA_OK) status = check_words(cases, &asked->only, begins, err);
  if (status == MLA_OK)
    status = check_words(cases, &asked->cases, is_called, err);
  if (status == MLA_OK) status = read_cases(q, asked, err);
  q->profile = cJSON_GetStringValue(GET(q->json, "profile"));
  q->restricted = cJSON_GetArraySize(GET(q->json, "only")) > 0;
  return status;
}

void questions_free(questions *q) {
  mla_docket_free(q->docket);
  free((void *)q->name);
  cJSON_Delete(q->json);
  memset(q, 0, sizeof *q);
}
