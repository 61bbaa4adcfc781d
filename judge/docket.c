/*
 * docket.c - collecting what is to be judged, and judging an item.
 */
#define _POSIX_C_SOURCE 200809L
#include "docket.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "batch_json.h"
#include "batch_judge.h"
#include "error.h"
#include "invalid.h"
#include "vector_file.h"

struct mla_docket {
  int32_t count, file_count, path_count, batch_count;
  mla_item *item;
  mla_vector_file **file;
  cJSON **batch; /* files of batches */
  char **path;   /* owned names */
};

mla_docket *mla_docket_new(void) {
  return calloc(1, sizeof(mla_docket));
}

void mla_docket_free(mla_docket *d) {
  if (!d) return;
  for (int32_t i = 0; i < d->file_count; i++) mla_vector_file_close(d->file[i]);
  for (int32_t i = 0; i < d->batch_count; i++) cJSON_Delete(d->batch[i]);
  for (int32_t i = 0; i < d->path_count; i++) free(d->path[i]);
  free(d->item);
  free(d->file);
  free(d->batch);
  free(d->path);
  free(d);
}

int32_t mla_docket_count(const mla_docket *d) {
  return d->count;
}

const mla_item *mla_docket_at(const mla_docket *d, int32_t i) {
  return &d->item[i];
}

/* ---------------------------------------------------------------- growing */

static mla_status no_memory(mla_error *err) {
  return mla_fail(err, MLA_OUT_OF_MEMORY, "docket", "no memory for the list");
}

/* A copy that lives as long as the docket. */
static const char *keep_text(mla_docket *d, const char *text) {
  size_t n = (size_t)d->path_count + 1;
  char **grown = realloc(d->path, n * sizeof *grown);
  if (!grown) return NULL;
  d->path = grown;
  char *copy = malloc(strlen(text) + 1);
  if (!copy) return NULL;
  d->path[d->path_count++] = strcpy(copy, text);
  return copy;
}

static mla_item *new_item(mla_docket *d, int32_t kind, const char *id) {
  size_t n = (size_t)d->count + 1;
  mla_item *grown = realloc(d->item, n * sizeof *grown);
  if (!grown) return NULL;
  d->item = grown;
  const char *kept = keep_text(d, id);
  if (!kept) return NULL;
  mla_item *item = &grown[d->count++];
  memset(item, 0, sizeof *item);
  item->kind = kind;
  item->id = kept;
  item->file = -1;
  return item;
}

static int kind_of(const char *id) {
  if (mla_batch_case_is(id)) return MLA_ITEM_BATCH;
  return strchr(id, '!') ? MLA_ITEM_INVALID : MLA_ITEM_CASE;
}

mla_status mla_docket_add_suite(mla_docket *d, const mla_suite *suite,
                                mla_error *err) {
  for (int64_t i = 0; i < suite->count; i++) {
    const mla_suite_entry *e = &suite->entry[i];
    mla_item *item = new_item(d, kind_of(e->id), e->id);
    if (!item) return no_memory(err);
    item->seed = e->seed;
    item->optional = e->optional;
    snprintf(item->hunts, sizeof item->hunts, "%s", e->hunts);
  }
  return MLA_OK;
}

mla_status mla_docket_add_case(mla_docket *d, const char *id, uint64_t seed,
                               mla_error *err) {
  mla_suite one;
  mla_suite_init(&one, "");
  mla_status status = mla_suite_add(&one, id, seed, "", 0, err);
  if (status == MLA_OK) status = mla_docket_add_suite(d, &one, err);
  mla_suite_free(&one);
  return status;
}

void mla_docket_know(mla_docket *d, const mla_suite *suite) {
  for (int32_t i = 0; i < d->count; i++)
    for (int64_t k = 0; k < suite->count; k++)
      if (!d->item[i].hunts[0] && !strcmp(d->item[i].id, suite->entry[k].id))
        memcpy(d->item[i].hunts, suite->entry[k].hunts,
               sizeof d->item[i].hunts);
}

/* ------------------------------------------------------------------ files */

static mla_status add_truth(mla_docket *d, const char *path, mla_error *err) {
  mla_item *item = new_item(d, MLA_ITEM_TRUTH, path);
  if (!item) return no_memory(err);
  item->path = item->id;
  return MLA_OK;
}

static mla_status add_entry(mla_docket *d, const mla_vector_entry *e,
                            int32_t index, const char *path, mla_error *err) {
  static const int kinds[] = {MLA_ITEM_STORED, MLA_ITEM_CASE, MLA_ITEM_INVALID};
  mla_item *item = new_item(d, kinds[e->kind], e->id);
  if (!item) return no_memory(err);
  item->seed = e->seed;
  item->file = d->file_count - 1;
  item->index = index;
  item->path = path;
  item->optional = 1;
  item->has_digest = e->has_digest;
  item->digest = e->digest;
  snprintf(item->hunts, sizeof item->hunts, "%s", e->hunts);
  return MLA_OK;
}

static mla_status add_vectors(mla_docket *d, const char *path, mla_error *err) {
  mla_vector_file *file;
  size_t n = (size_t)d->file_count + 1;
  mla_vector_file **grown = realloc(d->file, n * sizeof *grown);
  if (!grown) return no_memory(err);
  d->file = grown;
  mla_status status = mla_vector_file_open(path, &file, err);
  if (status != MLA_OK) return status;
  d->file[d->file_count++] = file;
  const char *kept = keep_text(d, path);
  if (!kept) return no_memory(err);
  for (int32_t i = 0; i < mla_vector_file_count(file) && status == MLA_OK; i++)
    status = add_entry(d, mla_vector_file_at(file, i), i, kept, err);
  return status;
}

/* A case of a file must have a name, and a seed to be shown. */
static mla_status add_batch(mla_docket *d, const cJSON *json, int32_t index,
                            const char *path, mla_error *err) {
  const cJSON *id = cJSON_GetObjectItemCaseSensitive(json, "id");
  const cJSON *seed = cJSON_GetObjectItemCaseSensitive(json, "seed");
  if (!cJSON_IsString(id))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "file",
                    "case %d of %.120s has no id", (int)index, path);
  mla_item *item = new_item(d, MLA_ITEM_BATCH, id->valuestring);
  if (!item) return no_memory(err);
  item->seed = cJSON_IsNumber(seed) && seed->valuedouble >= 0 &&
                       seed->valuedouble <= 9007199254740992.0
                   ? (uint64_t)seed->valuedouble
                   : 0;
  item->file = d->batch_count - 1;
  item->index = index;
  item->path = path;
  item->optional = 1;
  return MLA_OK;
}

static mla_status add_batches(mla_docket *d, const char *path, mla_error *err) {
  size_t n = (size_t)d->batch_count + 1;
  cJSON *json, **grown = realloc(d->batch, n * sizeof *grown);
  if (!grown) return no_memory(err);
  d->batch = grown;
  mla_status status = mla_batch_file_open(path, &json, err);
  if (status != MLA_OK) return status;
  d->batch[d->batch_count++] = json;
  const char *kept = keep_text(d, path);
  if (!kept) return no_memory(err);
  int32_t count = mla_batch_file_count(json);
  for (int32_t i = 0; i < count && status == MLA_OK; i++)
    status = add_batch(d, mla_batch_file_at(json, i), i, kept, err);
  return status;
}

static int ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

static mla_status check_form(const char *path, mla_error *err) {
  mla_st *file = NULL;
  if (ends_with(path, ".json")) return mla_vector_file_is_other(path, err);
  mla_status status = mla_st_open(path, &file, err);
  mla_st_close(file);
  return status;
}

static int is_batches(const char *path) {
  return ends_with(path, ".json") && mla_batch_file_is(path);
}

/* *known: whether the file is of a form that can be judged. */
static mla_status add_file(mla_docket *d, const char *path, int *known,
                           mla_error *err) {
  *known = 1;
  if (ends_with(path, ".safetensors") && mla_truth_is(path))
    return add_truth(d, path, err);
  if (mla_vector_file_is(path)) return add_vectors(d, path, err);
  if (is_batches(path)) return add_batches(d, path, err);
  *known = 0;
  /* A broken file among vectors must not look like one of another kind. */
  if (ends_with(path, ".json") || ends_with(path, ".safetensors"))
    return check_form(path, err);
  return MLA_OK;
}

static int is_folder(const char *path) {
  struct stat s;
  return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static mla_status add_folder(mla_docket *d, const char *folder, int depth,
                             mla_error *err) {
  struct dirent **list = NULL;
  mla_status status = MLA_OK;
  int n = scandir(folder, &list, NULL, by_name);
  for (int i = 0; i < n; i++) {
    char path[4096];
    int known;
    snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
    int hidden = list[i]->d_name[0] == '.';
    free(list[i]);
    if (hidden || status != MLA_OK) continue;
    if (is_folder(path))
      status = depth < 8 ? add_folder(d, path, depth + 1, err) : MLA_OK;
    /* A folder is asked of a backend, and no backend builds batches. */
    else if (!is_batches(path))
      status = add_file(d, path, &known, err);
  }
  free(list);
  return status;
}

mla_status mla_docket_add_path(mla_docket *d, const char *path,
                               mla_error *err) {
  int32_t before = d->count;
  int known = 1;
  mla_status status = is_folder(path) ? add_folder(d, path, 0, err)
                                      : add_file(d, path, &known, err);
  if (status != MLA_OK || d->count > before) return status;
  FILE *file = fopen(path, "rb");
  if (!file)
    return mla_fail(err, MLA_NOT_AVAILABLE, "vectors",
                    "%.200s cannot be opened", path);
  fclose(file);
  return mla_fail(err, MLA_INVALID_ARGUMENT, "vectors",
                  "%.180s holds no vectors of a known form", path);
}

/* --------------------------------------------------------------- choosing */

int mla_docket_matches(const char *id, const char *pattern) {
  size_t n = strlen(pattern);
  if (strncmp(id, pattern, n) != 0) return 0;
  return id[n] == '\0' || id[n] == ':' || id[n] == '!' ||
         (n && pattern[n - 1] == ':');
}

/* The operations that the docket has cases of, once each. */
static void name_ops(const mla_docket *d, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (int32_t i = 0; i < d->count; i++) {
    const char *id = d->item[i].id;
    int known = 0;
    for (int32_t k = 0; k < i && !known; k++)
      known = strncmp(d->item[k].id, id, strcspn(id, ":") + 1) == 0;
    if (known || used >= size) continue;
    used += (size_t)snprintf(text + used, size - used, "%s%.*s",
                             used ? " " : "", (int)strcspn(id, ":"), id);
  }
}

static mla_status check_pattern(const mla_docket *d, const char *pattern,
                                mla_error *err) {
  char ops[150];
  for (int32_t i = 0; i < d->count; i++)
    if (mla_docket_matches(d->item[i].id, pattern)) return MLA_OK;
  name_ops(d, ops, sizeof ops);
  return mla_fail(err, MLA_INVALID_ARGUMENT, "only",
                  "no case begins with \"%.40s\" as a whole word; there are: "
                  "%s",
                  pattern, ops);
}

mla_status mla_docket_keep_only(mla_docket *d, const char *const *patterns,
                                int32_t count, mla_error *err) {
  int32_t kept = 0;
  for (int32_t k = 0; k < count; k++) {
    mla_status status = check_pattern(d, patterns[k], err);
    if (status != MLA_OK) return status;
  }
  for (int32_t i = 0; i < d->count; i++) {
    int wanted = count == 0;
    for (int32_t k = 0; k < count; k++)
      wanted |= mla_docket_matches(d->item[i].id, patterns[k]);
    if (wanted) d->item[kept++] = d->item[i];
  }
  d->count = kept;
  return MLA_OK;
}

/* ---------------------------------------------------------------- judging */

mla_status mla_docket_vector(const mla_docket *d, int32_t i, mla_poison poison,
                             mla_vector *v, mla_error *err) {
  const mla_item *item = &d->item[i];
  mla_case c;
  mla_vector_init(v);
  if (item->kind == MLA_ITEM_STORED)
    return mla_vector_file_load(d->file[item->file], item->index, v, err);
  mla_status status = mla_case_parse(item->id, &c, err);
  if (status != MLA_OK) return status;
  c.edit[0] = '\0';
  status = mla_generate(&c, item->seed, poison, v, err);
  snprintf(v->hunts, sizeof v->hunts, "%s", item->hunts);
  return status;
}

static void judge_truth(const mla_item *item, mla_device *device,
                        mla_record *r) {
  mla_truth_options options = {NULL, 0, NULL, 0};
  mla_error err = mla_error_init();
  mla_status status =
      mla_truth_judge(item->path, device, &options, &r->truth, &err);
  if (status != MLA_OK) {
    int file = status == MLA_INVALID_ARGUMENT;
    r->verdict.kind = file ? MLA_VERDICT_BAD_VECTOR : MLA_VERDICT_ERROR;
    snprintf(r->verdict.reason, sizeof r->verdict.reason, "%s", err.message);
    return;
  }
  r->verdict.kind = r->truth.verdict == MLA_TRUTH_PASS ? MLA_VERDICT_PASS
                    : r->truth.verdict == MLA_TRUTH_FAIL
                        ? MLA_VERDICT_FAIL
                        : MLA_VERDICT_UNSUPPORTED;
  snprintf(r->verdict.reason, sizeof r->verdict.reason, "%s", r->truth.reason);
}

static void judge_vector(const mla_item *item, const mla_vector *v,
                         mla_device *device, const mla_judge_options *options,
                         mla_record *r) {
  mla_error err = mla_error_init();
  mla_change change;
  const char *edit = strchr(item->id, '!');
  if (item->kind != MLA_ITEM_INVALID) {
    mla_judge_vector(device, v, options, &r->verdict);
  } else if (mla_change_parse(edit + 1, &change, &err) == MLA_OK) {
    mla_judge_invalid(device, v, &change, &r->verdict);
  } else {
    r->verdict.kind = MLA_VERDICT_BAD_VECTOR;
    snprintf(r->verdict.reason, sizeof r->verdict.reason, "%s", err.message);
  }
}

mla_status mla_docket_batch(const mla_docket *d, int32_t i, mla_batch_case *c,
                            mla_batch_answer *expected, mla_error *err) {
  const mla_item *item = &d->item[i];
  if (item->file >= 0)
    return mla_batch_json_read(
        mla_batch_file_at(d->batch[item->file], item->index), c, expected, err);
  mla_status status = mla_batch_case_draw(item->id, item->seed, c, err);
  snprintf(c->hunts, sizeof c->hunts, "%s", item->hunts);
  return status;
}

static void judge_batch(const mla_docket *d, int32_t i, mla_verdict *v) {
  int stored = d->item[i].file >= 0;
  mla_batch_case *c = malloc(sizeof *c);
  mla_batch_answer *expected = mla_batch_answer_new();
  mla_error err = mla_error_init();
  mla_status status = c && expected ? mla_docket_batch(d, i, c, expected, &err)
                                    : no_memory(&err);
  if (status == MLA_OK) {
    mla_batch_judge(c, stored ? expected : NULL, v);
  } else {
    v->kind = status == MLA_INVALID_ARGUMENT ? MLA_VERDICT_BAD_VECTOR
                                             : MLA_VERDICT_ERROR;
    snprintf(v->reason, sizeof v->reason, "%s", err.message);
  }
  free(c);
  free(expected);
}

void mla_docket_judge(const mla_docket *d, int32_t i, mla_device *device,
                      const mla_judge_options *options, mla_record *r) {
  const mla_item *item = &d->item[i];
  mla_judge_options own = *options;
  mla_error err = mla_error_init();
  mla_vector v;
  memset(r, 0, sizeof *r);
  if (item->kind == MLA_ITEM_TRUTH) {
    judge_truth(item, device, r);
    return;
  }
  if (item->kind == MLA_ITEM_BATCH) {
    judge_batch(d, i, &r->verdict);
    return;
  }
  own.has_digest = item->has_digest;
  own.digest = item->digest;
  mla_status status = mla_docket_vector(d, i, options->poison, &v, &err);
  if (status == MLA_OK) {
    judge_vector(item, &v, device, &own, r);
  } else {
    int bad = status == MLA_INVALID_ARGUMENT;
    r->verdict.kind = bad ? MLA_VERDICT_BAD_VECTOR : MLA_VERDICT_ERROR;
    /* Nothing that a backend could do about it. */
    if (status == MLA_UNSUPPORTED) {
      r->verdict.kind = MLA_VERDICT_UNSUPPORTED;
      r->verdict.excused = 1;
    }
    snprintf(r->verdict.reason, sizeof r->verdict.reason, "%s", err.message);
  }
  mla_vector_free(&v);
}
