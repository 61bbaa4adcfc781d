/*
 * vector_file.c - opening files of vectors and listing what they hold.
 */
#include "vector_file.h"

#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "expect.h"
#include "file_text.h"
#include "safetensors.h"
#include "vector_json.h"

struct mla_vector_file {
  cJSON *json;
  mla_st *tensors;
  const cJSON *cases;
  int exactly;
  double agreement;
  int32_t count;
  mla_vector_entry *entry;
  char **id; /* owned names of the entries */
};

static cJSON *read_json(const char *path, mla_error *err) {
  char *text = mla_file_text(path, err);
  if (!text) return NULL;
  cJSON *json = cJSON_Parse(text);
  free(text);
  if (!json)
    mla_fail(err, MLA_INVALID_ARGUMENT, "file", "%.200s is no JSON", path);
  return json;
}

static int is_ours(const cJSON *json) {
  const char *format =
      cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "format"));
  return format && strcmp(format, "mla-vectors") == 0;
}

static int ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

/* A reproduction: the JSON stands in the tensors' file itself. */
static cJSON *read_within(const char *path, mla_st **tensors, mla_error *err) {
  if (mla_st_open(path, tensors, err) != MLA_OK) return NULL;
  const char *text = mla_st_meta(*tensors, "mla-vectors");
  cJSON *json = text ? cJSON_Parse(text) : NULL;
  if (!json)
    mla_fail(err, MLA_INVALID_ARGUMENT, "file",
             "%.180s holds no vectors among its metadata", path);
  return json;
}

int mla_vector_file_is(const char *path) {
  mla_st *tensors = NULL;
  cJSON *json = NULL;
  if (ends_with(path, ".json")) json = read_json(path, NULL);
  if (ends_with(path, ".safetensors")) json = read_within(path, &tensors, NULL);
  mla_st_close(tensors);
  int ours = json && is_ours(json);
  cJSON_Delete(json);
  return ours;
}

mla_status mla_vector_file_is_other(const char *path, mla_error *err) {
  cJSON *json = read_json(path, err);
  int has_cases = cJSON_GetObjectItemCaseSensitive(json, "cases") != NULL;
  cJSON_Delete(json);
  if (!json) return MLA_INVALID_ARGUMENT;
  if (!has_cases) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, "format",
                  "%.150s has cases, of no format that this judge reads", path);
}

/* ------------------------------------------------------------- the header */

static mla_status check_version(const cJSON *json, mla_error *err) {
  const cJSON *version = cJSON_GetObjectItemCaseSensitive(json, "version");
  if (!is_ours(json))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "format",
                    "format is not \"mla-vectors\"");
  if (!cJSON_IsNumber(version) || version->valuedouble != 1)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "version",
                    "version is not 1, the one that this judge reads");
  static const char *const known[] = {"format",      "version",   "expected_by",
                                      "cases",       "agreement", "tensors",
                                      "environment", NULL};
  return mla_json_only(json, known, err);
}

/* PATH's folder and NAME. */
static int beside(const char *path, const char *name, char *full, size_t size) {
  const char *slash = strrchr(path, '/');
  int folder = slash ? (int)(slash - path) + 1 : 0;
  int n = snprintf(full, size, "%.*s%s", folder, path, name);
  return n > 0 && (size_t)n < size && !strchr(name, '/');
}

static mla_status open_tensors(mla_vector_file *f, const char *path,
                               mla_error *err) {
  char full[4096];
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(f->json, "tensors");
  if (!name || f->tensors) return MLA_OK;
  if (!cJSON_IsString(name) ||
      !beside(path, name->valuestring, full, sizeof full))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "tensors",
                    "tensors is no name of a file beside this one");
  return mla_st_open(full, &f->tensors, err);
}

static mla_status read_header(mla_vector_file *f, mla_error *err) {
  const cJSON *by = cJSON_GetObjectItemCaseSensitive(f->json, "expected_by");
  const cJSON *agreement =
      cJSON_GetObjectItemCaseSensitive(f->json, "agreement");
  if (!cJSON_IsString(by))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "expected_by",
                    "expected_by is absent");
  f->exactly = strcmp(by->valuestring, MLA_REFERENCE_NAME) == 0;
  f->agreement = cJSON_IsNumber(agreement) ? agreement->valuedouble : 1e-9;
  f->cases = cJSON_GetObjectItemCaseSensitive(f->json, "cases");
  if (!cJSON_IsArray(f->cases))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "cases", "cases is no list");
  if (!(f->agreement >= 0 && f->agreement <= 1e-3))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "agreement",
                    "agreement is %g, from 0 to 1e-3 is lawful", f->agreement);
  return MLA_OK;
}

/* -------------------------------------------------------------- the cases */

static mla_status bad_case(int32_t i, const char *member, mla_error *err) {
  return mla_fail(err, MLA_INVALID_ARGUMENT, "cases",
                  "case %d: %s is absent or no lawful value", (int)i, member);
}

static int kind_of(const cJSON *json) {
  static const char *const names[] = {"stored", "seeded", "invalid"};
  const char *kind =
      cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "kind"));
  for (int k = 0; kind && k < 3; k++)
    if (strcmp(kind, names[k]) == 0) return k;
  return -1;
}

static int read_hunts(const cJSON *list, char *text, size_t size) {
  size_t used = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, list) {
    if (!cJSON_IsString(item)) return 0;
    int n = snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                     item->valuestring);
    if (n < 0 || (size_t)n >= size - used) return 0;
    used += (size_t)n;
  }
  return 1;
}

/* "ID" or, of an invalid case, "ID!PATH=VALUE:STATUS:FIELD". */
static char *full_id(const cJSON *json, int kind, const char *id) {
  char text[MLA_CASE_ID_MAX];
  if (kind != MLA_VECTOR_INVALID)
    snprintf(text, sizeof text, "%s", id);
  else if (!mla_json_invalid_id(json, id, text, sizeof text))
    return NULL;
  char *copy = malloc(strlen(text) + 1);
  return copy ? strcpy(copy, text) : NULL;
}

static mla_status read_case(mla_vector_file *f, const cJSON *json, int32_t i,
                            mla_error *err) {
  mla_vector_entry *e = &f->entry[i];
  const char *id =
      cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "id"));
  const cJSON *seed = cJSON_GetObjectItemCaseSensitive(json, "seed");
  const char *digest =
      cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "digest"));
  int kind = kind_of(json);
  if (kind < 0) return bad_case(i, "kind", err);
  if (!id || !*id) return bad_case(i, "id", err);
  if (seed && (!cJSON_IsNumber(seed) || !(seed->valuedouble >= 0) ||
               seed->valuedouble > 9007199254740992.0))
    return bad_case(i, "seed", err);
  if (!read_hunts(cJSON_GetObjectItemCaseSensitive(json, "hunts"), e->hunts,
                  sizeof e->hunts))
    return bad_case(i, "hunts", err);
  e->kind = kind;
  e->seed = seed ? (uint64_t)seed->valuedouble : 0;
  e->id = f->id[i] = full_id(json, kind, id);
  if (!e->id) return bad_case(i, "set, status or field", err);
  e->has_digest = digest != NULL;
  if (digest) e->digest = strtoull(digest, NULL, 16);
  return MLA_OK;
}

static mla_status read_cases(mla_vector_file *f, mla_error *err) {
  int32_t i = 0;
  const cJSON *json;
  f->count = cJSON_GetArraySize(f->cases);
  f->entry = calloc((size_t)f->count + 1, sizeof *f->entry);
  f->id = calloc((size_t)f->count + 1, sizeof *f->id);
  if (!f->entry || !f->id)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "cases", "no memory for cases");
  cJSON_ArrayForEach(json, f->cases) {
    mla_status status = read_case(f, json, i++, err);
    if (status != MLA_OK) return status;
  }
  return MLA_OK;
}

mla_status mla_vector_file_open(const char *path, mla_vector_file **file,
                                mla_error *err) {
  mla_vector_file *f = calloc(1, sizeof *f);
  *file = NULL;
  if (!f) return mla_fail(err, MLA_OUT_OF_MEMORY, "file", "no memory");
  f->json = ends_with(path, ".safetensors")
                ? read_within(path, &f->tensors, err)
                : read_json(path, err);
  mla_status status = f->json ? MLA_OK : MLA_INVALID_ARGUMENT;
  if (status == MLA_OK) status = check_version(f->json, err);
  if (status == MLA_OK) status = read_header(f, err);
  if (status == MLA_OK) status = open_tensors(f, path, err);
  if (status == MLA_OK) status = read_cases(f, err);
  if (status == MLA_OK)
    *file = f;
  else
    mla_vector_file_close(f);
  return status;
}

void mla_vector_file_close(mla_vector_file *f) {
  if (!f) return;
  for (int32_t i = 0; f->id && i < f->count; i++) free(f->id[i]);
  free(f->id);
  free(f->entry);
  mla_st_close(f->tensors);
  cJSON_Delete(f->json);
  free(f);
}

int32_t mla_vector_file_count(const mla_vector_file *f) {
  return f->count;
}

const mla_vector_entry *mla_vector_file_at(const mla_vector_file *f,
                                           int32_t i) {
  return &f->entry[i];
}

mla_status mla_vector_file_load(const mla_vector_file *f, int32_t i,
                                mla_vector *v, mla_error *err) {
  const mla_vector_entry *e = &f->entry[i];
  mla_vector_init(v);
  v->seed = e->seed;
  v->stored_exactly = f->exactly;
  v->stored_agreement = f->agreement;
  snprintf(v->hunts, sizeof v->hunts, "%s", e->hunts);
  v->id = malloc(strlen(e->id) + 1);
  if (!v->id) return mla_fail(err, MLA_OUT_OF_MEMORY, "id", "no memory");
  strcpy(v->id, e->id);
  v->has_recipe = mla_case_parse(e->id, &v->recipe, NULL) == MLA_OK;
  mla_json_source source = {cJSON_GetArrayItem(f->cases, i), f->tensors, i};
  return mla_json_vector(&source, v, err);
}
