/*
 * docket_files.c - what files hold that can be judged.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "docket_parts.h"
#include "error.h"

static mla_status add_truth(mla_docket *d, const char *path, mla_error *err) {
  mla_item *item = mla_docket_new_item(d, MLA_ITEM_TRUTH, path);
  if (!item) return mla_docket_no_memory(err);
  item->path = item->id;
  return MLA_OK;
}

static mla_status add_entry(mla_docket *d, const mla_vector_entry *e,
                            int32_t index, const char *path, mla_error *err) {
  static const int kinds[] = {MLA_ITEM_STORED, MLA_ITEM_CASE, MLA_ITEM_INVALID};
  mla_item *item = mla_docket_new_item(d, kinds[e->kind], e->id);
  if (!item) return mla_docket_no_memory(err);
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
  if (!grown) return mla_docket_no_memory(err);
  d->file = grown;
  mla_status status = mla_vector_file_open(path, &file, err);
  if (status != MLA_OK) return status;
  d->file[d->file_count++] = file;
  const char *kept = mla_docket_keep_text(d, path);
  if (!kept) return mla_docket_no_memory(err);
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
  mla_item *item = mla_docket_new_item(d, MLA_ITEM_BATCH, id->valuestring);
  if (!item) return mla_docket_no_memory(err);
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
  if (!grown) return mla_docket_no_memory(err);
  d->batch = grown;
  mla_status status = mla_batch_file_open(path, &json, err);
  if (status != MLA_OK) return status;
  d->batch[d->batch_count++] = json;
  const char *kept = mla_docket_keep_text(d, path);
  if (!kept) return mla_docket_no_memory(err);
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
