/*
 * golden.c - making the golden vectors.
 */
#include "golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "generate.h"
#include "golden_text.h"
#include "suite.h"
#include "vector_json.h"

/* What is owned while one pair of files is made: the writer borrows it. */
typedef struct pair {
  int32_t count, room;
  mla_vector *vector;
  mla_expectation *expectation;
  double *(*owned)[MLA_T_COUNT];
  mla_st_writer *writer;
  mla_text json;
} pair;

static mla_status no_memory(mla_error *err) {
  return mla_fail(err, MLA_OUT_OF_MEMORY, "golden", "no memory for vectors");
}

void mla_golden_free(mla_golden *g) {
  for (int32_t i = 0; i < g->count; i++) free(g->file[i].bytes);
  free(g->file);
  memset(g, 0, sizeof *g);
}

mla_status mla_golden_add(mla_golden *g, const char *name, unsigned char *bytes,
                          uint64_t count, mla_error *err) {
  size_t n = (size_t)g->count + 1;
  mla_golden_file *grown = bytes ? realloc(g->file, n * sizeof *grown) : NULL;
  if (!grown) {
    free(bytes);
    return no_memory(err);
  }
  g->file = grown;
  mla_golden_file *f = &grown[g->count++];
  snprintf(f->name, sizeof f->name, "%s", name);
  f->bytes = bytes;
  f->count = count;
  return MLA_OK;
}

/* ------------------------------------------------------------ stored pairs */

static void pair_free(pair *p) {
  for (int32_t i = 0; i < p->count; i++) {
    mla_vector_free(&p->vector[i]);
    mla_expectation_free(&p->expectation[i]);
    for (int s = 0; s < MLA_T_COUNT; s++) free(p->owned[i][s]);
  }
  free(p->vector);
  free(p->expectation);
  free(p->owned);
  free(p->json.text);
  mla_st_writer_free(p->writer);
}

static mla_status pair_new(pair *p, int32_t room, mla_error *err) {
  memset(p, 0, sizeof *p);
  p->room = room;
  p->vector = calloc((size_t)room, sizeof *p->vector);
  p->expectation = calloc((size_t)room, sizeof *p->expectation);
  p->owned = calloc((size_t)room, sizeof *p->owned);
  p->writer = mla_st_writer_new();
  if (p->vector && p->expectation && p->owned && p->writer) return MLA_OK;
  return no_memory(err);
}

static mla_status add_stored(pair *p, const mla_suite_entry *e,
                             mla_error *err) {
  mla_case c;
  cJSON *json = NULL;
  int32_t i = p->count;
  mla_status status = mla_case_parse(e->id, &c, err);
  if (status != MLA_OK) return status;
  p->count++;
  status = mla_generate(&c, e->seed, MLA_POISON_NAN, &p->vector[i], err);
  if (status != MLA_OK) return status;
  snprintf(p->vector[i].hunts, MLA_HUNTS_MAX, "%s", e->hunts);
  status =
      mla_expectation_make(&p->vector[i], NULL, NULL, &p->expectation[i], err);
  if (status == MLA_OK)
    status = mla_json_stored(&p->vector[i], &p->expectation[i], i, p->writer,
                             p->owned[i], &json, err);
  if (status == MLA_OK && !mla_text_case(&p->json, json))
    status = no_memory(err);
  cJSON_Delete(json);
  return status;
}

/* "decode_bf16" of "decode:bf16:...". */
static void group_name(const char *id, char *name, size_t size) {
  const char *colon = strchr(id, ':');
  const char *end = colon ? strchr(colon + 1, ':') : NULL;
  snprintf(name, size, "%.*s", end ? (int)(end - id) : 0, id);
  colon = strchr(name, ':');
  if (colon) name[colon - name] = '_';
}

static mla_status finish_pair(mla_golden *g, pair *p, const char *group,
                              mla_error *err) {
  char name[96], tensors[80], json_name[80];
  unsigned char *bytes = NULL;
  uint64_t count = 0;
  snprintf(tensors, sizeof tensors, "%.60s.safetensors", group);
  snprintf(json_name, sizeof json_name, "%.60s.json", group);
  mla_status status =
      mla_st_writer_meta(p->writer, "format", "mla-vectors", err);
  if (status == MLA_OK)
    status = mla_st_writer_meta(p->writer, "json", json_name, err);
  if (status == MLA_OK)
    status = mla_st_writer_serialise(p->writer, &bytes, &count, err);
  snprintf(name, sizeof name, "v1/%s", tensors);
  if (status == MLA_OK) status = mla_golden_add(g, name, bytes, count, err);
  if (status != MLA_OK) return status;
  snprintf(name, sizeof name, "v1/%s", json_name);
  return mla_text_file(g, name, tensors, &p->json, err);
}

static int same_group(const char *id, const char *group) {
  char name[60];
  group_name(id, name, sizeof name);
  return strcmp(name, group) == 0;
}

static mla_status make_pair(mla_golden *g, const mla_suite *suite,
                            const char *group, mla_error *err) {
  pair p;
  mla_status status = pair_new(&p, (int32_t)suite->count, err);
  for (int64_t i = 0; i < suite->count && status == MLA_OK; i++)
    if (same_group(suite->entry[i].id, group))
      status = add_stored(&p, &suite->entry[i], err);
  if (status == MLA_OK) status = finish_pair(g, &p, group, err);
  pair_free(&p);
  return status;
}

static mla_status make_stored(mla_golden *g, const mla_suite *suite,
                              mla_error *err) {
  for (int64_t i = 0; i < suite->count; i++) {
    char group[60];
    int first = 1;
    group_name(suite->entry[i].id, group, sizeof group);
    for (int64_t k = 0; k < i; k++)
      if (same_group(suite->entry[k].id, group)) first = 0;
    mla_status status = first ? make_pair(g, suite, group, err) : MLA_OK;
    if (status != MLA_OK) return status;
  }
  return MLA_OK;
}

/* ------------------------------------------------------ recipes, refusals */

static mla_status seeded_json(const mla_suite_entry *e, cJSON **json,
                              mla_error *err) {
  mla_case c;
  mla_vector v;
  mla_expectation x;
  memset(&x, 0, sizeof x);
  mla_vector_init(&v);
  mla_status status = mla_case_parse(e->id, &c, err);
  if (status == MLA_OK)
    status = mla_generate(&c, e->seed, MLA_POISON_NAN, &v, err);
  if (status == MLA_OK) status = mla_expectation_make(&v, NULL, NULL, &x, err);
  if (status == MLA_OK)
    *json = mla_json_seeded(e->id, e->seed, e->hunts,
                            mla_expectation_digest(&v, &x));
  mla_expectation_free(&x);
  mla_vector_free(&v);
  return status;
}

static mla_status invalid_json(const mla_suite_entry *e, cJSON **json,
                               mla_error *err) {
  *json = mla_json_invalid(e->id, e->seed, e->hunts);
  if (*json) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, "case", "no change: %.150s",
                  e->id);
}

static mla_status make_list(mla_golden *g, const char *profile,
                            const char *name,
                            mla_status (*make)(const mla_suite_entry *,
                                               cJSON **, mla_error *),
                            mla_error *err) {
  mla_suite suite;
  mla_text text = {NULL, 0, 0};
  mla_status status = mla_suite_load(profile, &suite, err);
  for (int64_t i = 0; i < suite.count && status == MLA_OK; i++) {
    cJSON *json = NULL;
    status = make(&suite.entry[i], &json, err);
    if (status == MLA_OK && !mla_text_case(&text, json))
      status = no_memory(err);
    cJSON_Delete(json);
  }
  if (status == MLA_OK) status = mla_text_file(g, name, NULL, &text, err);
  free(text.text);
  mla_suite_free(&suite);
  return status;
}

mla_status mla_golden_make(mla_golden *g, mla_error *err) {
  mla_suite stored;
  memset(g, 0, sizeof *g);
  mla_status status = mla_suite_load("stored", &stored, err);
  if (status == MLA_OK) status = make_stored(g, &stored, err);
  mla_suite_free(&stored);
  if (status == MLA_OK)
    status = make_list(g, "seeded", "v1/seeded.json", seeded_json, err);
  if (status == MLA_OK)
    status = make_list(g, "invalid", "v1/invalid.json", invalid_json, err);
  return status == MLA_OK ? mla_golden_batches(g, err) : status;
}
