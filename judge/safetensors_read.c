/*
 * safetensors_read.c - a file of arrays, trusted in nothing.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "safetensors.h"
#include "safetensors_types.h"
#include "tensor.h"

/* Room for a hundred thousand names; beyond it, not a header. */
#define HEADER_LIMIT ((uint64_t)16 << 20)
#define PREFIX 8 /* bytes of the header's length */

struct mla_st {
  unsigned char *bytes; /* the whole file */
  uint64_t count;
  cJSON *header; /* owns the names */
  int32_t tensors;
  mla_st_tensor *tensor;
  void **aligned; /* copies of arrays that lie awry in the file */
};

static mla_status malformed(mla_error *err, const char *what,
                            const char *name) {
  return mla_fail(err, MLA_INVALID_ARGUMENT, "safetensors", "%s%s%.80s%s", what,
                  name ? ": \"" : "", name ? name : "", name ? "\"" : "");
}

static mla_status no_memory(mla_error *err, uint64_t bytes) {
  return mla_fail(err, MLA_OUT_OF_MEMORY, "safetensors",
                  "no memory for %llu bytes", (unsigned long long)bytes);
}

/* ------------------------------------------------------- one header entry */

/* A whole number from 0 to 2^53, which a double holds exactly. */
static int whole(const cJSON *item, int64_t *value) {
  double d = cJSON_IsNumber(item) ? item->valuedouble : -1;
  if (!(d >= 0 && d <= 9007199254740992.0)) return 0;
  *value = (int64_t)d;
  return (double)*value == d;
}

static int read_shape(const cJSON *list, mla_st_tensor *t) {
  if (!cJSON_IsArray(list)) return 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, list) {
    if (t->rank == MLA_ST_MAX_RANK) return 0;
    if (!whole(item, &t->shape[t->rank])) return 0;
    t->rank++;
  }
  return 1;
}

static int read_offsets(const cJSON *list, int64_t *begin, int64_t *end) {
  return cJSON_IsArray(list) && cJSON_GetArraySize(list) == 2 &&
         whole(cJSON_GetArrayItem(list, 0), begin) &&
         whole(cJSON_GetArrayItem(list, 1), end) && *begin <= *end;
}

/* Fills t; t->data lies where the file says, aligned or not. */
static mla_status read_entry(mla_st *file, uint64_t data_at, const cJSON *entry,
                             mla_st_tensor *t, mla_error *err) {
  const char *name = entry->string;
  const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(entry, "dtype");
  const cJSON *shape = cJSON_GetObjectItemCaseSensitive(entry, "shape");
  const cJSON *span = cJSON_GetObjectItemCaseSensitive(entry, "data_offsets");
  int64_t begin = 0, end = 0;
  uint64_t size;
  memset(t, 0, sizeof *t);
  t->name = name;
  if (!cJSON_IsObject(entry) || cJSON_GetArraySize(entry) != 3) {
    return malformed(err, "an entry without exactly dtype, shape, data_offsets",
                     name);
  }
  const mla_st_type *type =
      cJSON_IsString(dtype) ? mla_st_type_named(dtype->valuestring) : NULL;
  if (!type) return malformed(err, "dtype is not one known here", name);
  if (!read_shape(shape, t)) {
    return malformed(err, "shape is not up to 8 whole numbers", name);
  }
  if (!read_offsets(span, &begin, &end)) {
    return malformed(err, "data_offsets is not [begin, end]", name);
  }
  if ((uint64_t)end > file->count - data_at) {
    return malformed(err, "data_offsets end past the file: cut short?", name);
  }
  if (!mla_st_size(t->shape, t->rank, type->width, &size) ||
      size != (uint64_t)(end - begin)) {
    return malformed(err, "data_offsets and shape differ in size", name);
  }
  t->dtype = type->dtype;
  t->dtype_name = type->name;
  t->bytes = size;
  t->data = file->bytes + data_at + begin;
  return MLA_OK;
}

/* -------------------------------------------------------- the whole header */

static int by_place(const void *a, const void *b) {
  const mla_st_tensor *x = a, *y = b;
  const unsigned char *p = x->data, *q = y->data;
  if (p != q) return p < q ? -1 : 1;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const mla_st_tensor *)a)->name,
                ((const mla_st_tensor *)b)->name);
}

/* Arrays must tile the data: an overlap or a gap is somebody's mistake. */
static mla_status check_tiling(mla_st *file, uint64_t data_at, mla_error *err) {
  const unsigned char *next = file->bytes + data_at;
  if (file->tensors > 1) {
    qsort(file->tensor, (size_t)file->tensors, sizeof *file->tensor, by_place);
  }
  for (int32_t i = 0; i < file->tensors; i++) {
    if ((const unsigned char *)file->tensor[i].data != next) {
      return malformed(err, "a gap or an overlap in the data before",
                       file->tensor[i].name);
    }
    next += file->tensor[i].bytes;
  }
  if (next != file->bytes + file->count) {
    return malformed(err, "bytes after the last array", NULL);
  }
  return MLA_OK;
}

static mla_status check_names(mla_st *file, mla_error *err) {
  if (file->tensors > 1) {
    qsort(file->tensor, (size_t)file->tensors, sizeof *file->tensor, by_name);
  }
  for (int32_t i = 1; i < file->tensors; i++) {
    if (by_name(&file->tensor[i - 1], &file->tensor[i]) == 0) {
      return malformed(err, "a name given twice", file->tensor[i].name);
    }
  }
  return MLA_OK;
}

static mla_status check_metadata(const cJSON *metadata, mla_error *err) {
  const cJSON *item;
  if (!cJSON_IsObject(metadata)) {
    return malformed(err, "__metadata__ is not an object", NULL);
  }
  cJSON_ArrayForEach(item, metadata) {
    if (!cJSON_IsString(item)) {
      return malformed(err, "__metadata__ holds what is not a string",
                       item->string);
    }
  }
  return MLA_OK;
}

static mla_status read_entries(mla_st *file, uint64_t data_at, mla_error *err) {
  int entries = cJSON_GetArraySize(file->header);
  int metadata = 0;
  file->tensor = calloc((size_t)entries + 1, sizeof *file->tensor);
  file->aligned = calloc((size_t)entries + 1, sizeof *file->aligned);
  if (!file->tensor || !file->aligned) return no_memory(err, file->count);
  const cJSON *item;
  cJSON_ArrayForEach(item, file->header) {
    mla_status status;
    if (strcmp(item->string, MLA_ST_METADATA) == 0) {
      if (metadata++) return malformed(err, "__metadata__ given twice", NULL);
      status = check_metadata(item, err);
    } else {
      status =
          read_entry(file, data_at, item, &file->tensor[file->tensors], err);
      if (status == MLA_OK) file->tensors++;
    }
    if (status != MLA_OK) return status;
  }
  mla_status status = check_tiling(file, data_at, err);
  return status != MLA_OK ? status : check_names(file, err);
}

/* To the host's order, and to an address the type can be read from. */
static mla_status settle(mla_st *file, mla_error *err) {
  for (int32_t i = 0; i < file->tensors; i++) {
    mla_st_tensor *t = &file->tensor[i];
    const mla_st_type *type = mla_st_type_named(t->dtype_name);
    unsigned char *data = file->bytes;
    data += (const unsigned char *)t->data - file->bytes;
    if ((uintptr_t)data % (uintptr_t)type->width != 0 && t->bytes > 0) {
      file->aligned[i] = malloc((size_t)t->bytes);
      if (!file->aligned[i]) return no_memory(err, t->bytes);
      memcpy(file->aligned[i], data, (size_t)t->bytes);
      data = file->aligned[i];
    }
    if (mla_st_swaps()) mla_st_swap(data, t->bytes, type->unit);
    t->data = t->bytes > 0 ? data : NULL;
  }
  return MLA_OK;
}

static int only_spaces(const char *text, const char *end) {
  while (text < end &&
         (*text == ' ' || *text == '\t' || *text == '\n' || *text == '\r')) {
    text++;
  }
  return text == end;
}

static mla_status read_header(mla_st *file, mla_error *err) {
  uint64_t length = 0;
  if (file->count < PREFIX) {
    return malformed(err, "shorter than the 8 bytes of its length", NULL);
  }
  for (int i = 0; i < PREFIX; i++) {
    length |= (uint64_t)file->bytes[i] << (8 * i);
  }
  if (length > HEADER_LIMIT) {
    return malformed(err, "a header above 16 MiB: not such a file", NULL);
  }
  if (length > file->count - PREFIX) {
    return malformed(err, "the header ends past the file: cut short?", NULL);
  }
  const char *text = (const char *)file->bytes + PREFIX;
  const char *end = NULL;
  file->header = cJSON_ParseWithLengthOpts(text, (size_t)length, &end, 0);
  if (!file->header || !cJSON_IsObject(file->header) ||
      !only_spaces(end, text + length)) {
    return malformed(err, "the header is not one JSON object", NULL);
  }
  mla_status status = read_entries(file, PREFIX + length, err);
  return status != MLA_OK ? status : settle(file, err);
}

/* ------------------------------------------------------------ open, close */

/* Takes the bytes, whatever happens. */
static mla_status adopt(unsigned char *bytes, uint64_t count, mla_st **file,
                        mla_error *err) {
  mla_st *made = calloc(1, sizeof *made);
  if (!made) {
    free(bytes);
    return no_memory(err, sizeof *made);
  }
  made->bytes = bytes;
  made->count = count;
  mla_status status = read_header(made, err);
  if (status != MLA_OK) {
    mla_st_close(made);
    return status;
  }
  *file = made;
  return MLA_OK;
}

mla_status mla_st_parse(const void *bytes, uint64_t count, mla_st **file,
                        mla_error *err) {
  *file = NULL;
  unsigned char *copy = malloc(count ? (size_t)count : 1);
  if (!copy) return no_memory(err, count);
  if (count) memcpy(copy, bytes, (size_t)count);
  return adopt(copy, count, file, err);
}

/* To the end of the stream, growing: its size is not known beforehand. */
static mla_status slurp(FILE *in, const char *path, unsigned char **bytes,
                        uint64_t *count, mla_error *err) {
  size_t room = (size_t)1 << 20, used = 0;
  unsigned char *buffer = malloc(room);
  while (buffer) {
    used += fread(buffer + used, 1, room - used, in);
    if (used < room) break;
    room *= 2;
    unsigned char *larger = realloc(buffer, room);
    if (!larger) free(buffer);
    buffer = larger;
  }
  if (!buffer) return no_memory(err, room);
  if (ferror(in)) {
    free(buffer);
    return mla_fail(err, MLA_NOT_AVAILABLE, "path", "%.160s: %s", path,
                    strerror(errno));
  }
  unsigned char *fitted = realloc(buffer, used ? used : 1);
  *bytes = fitted ? fitted : buffer;
  *count = used;
  return MLA_OK;
}

mla_status mla_st_open(const char *path, mla_st **file, mla_error *err) {
  unsigned char *bytes = NULL;
  uint64_t count = 0;
  *file = NULL;
  errno = 0;
  FILE *in = fopen(path, "rb");
  if (!in) {
    return mla_fail(err, MLA_NOT_AVAILABLE, "path", "%.160s: %s", path,
                    strerror(errno));
  }
  mla_status status = slurp(in, path, &bytes, &count, err);
  fclose(in);
  return status != MLA_OK ? status : adopt(bytes, count, file, err);
}

void mla_st_close(mla_st *file) {
  if (!file) return;
  for (int32_t i = 0; file->aligned && i < file->tensors; i++) {
    free(file->aligned[i]);
  }
  free(file->aligned);
  free(file->tensor);
  cJSON_Delete(file->header);
  free(file->bytes);
  free(file);
}

/* --------------------------------------------------------------- asking */

int32_t mla_st_count(const mla_st *file) {
  return file->tensors;
}

const mla_st_tensor *mla_st_at(const mla_st *file, int32_t i) {
  return i >= 0 && i < file->tensors ? &file->tensor[i] : NULL;
}

const mla_st_tensor *mla_st_find(const mla_st *file, const char *name) {
  mla_st_tensor key = {0};
  key.name = name;
  if (file->tensors == 0) return NULL;
  return bsearch(&key, file->tensor, (size_t)file->tensors,
                 sizeof *file->tensor, by_name);
}

const char *mla_st_meta(const mla_st *file, const char *key) {
  const cJSON *metadata =
      cJSON_GetObjectItemCaseSensitive(file->header, MLA_ST_METADATA);
  const cJSON *value = cJSON_GetObjectItemCaseSensitive(metadata, key);
  return cJSON_IsString(value) ? value->valuestring : NULL;
}

mla_status mla_st_view(const mla_st_tensor *tensor, mla_tensor *view,
                       mla_error *err) {
  union {
    const void *given;
    void *taken;
  } data = {tensor->data}; /* mla_tensor serves inputs and outputs alike */
  memset(view, 0, sizeof *view);
  if (tensor->dtype == MLA_DTYPE_NONE) {
    return malformed(err, "not an operand: its type has no dtype here",
                     tensor->name);
  }
  if (tensor->rank > MLA_MAX_RANK) {
    return malformed(err, "not an operand: rank above 5", tensor->name);
  }
  *view =
      mla_tensor_dense(data.taken, tensor->dtype, tensor->rank, tensor->shape);
  return MLA_OK;
}
