/*
 * safetensors_write.c - arrays into a file, the same bytes everywhere.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "file_text.h"
#include "safetensors.h"
#include "safetensors_types.h"

#define PREFIX 8 /* bytes of the header's length, and what it is padded to */

typedef struct entry {
  char *name;
  const mla_st_type *type;
  int32_t rank;
  int64_t shape[MLA_ST_MAX_RANK];
  const void *data;
  uint64_t bytes;
} entry;

typedef struct pair {
  char *key;
  char *value;
} pair;

struct mla_st_writer {
  entry *tensor; /* in the order of the file */
  size_t tensors;
  pair *meta; /* by key */
  size_t metas;
};

static mla_status no_memory(mla_error *err) {
  return mla_fail(err, MLA_OUT_OF_MEMORY, "safetensors",
                  "no memory for a file's header");
}

static char *copy_string(const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = malloc(size);
  if (copy) memcpy(copy, text, size);
  return copy;
}

mla_st_writer *mla_st_writer_new(void) {
  return calloc(1, sizeof(mla_st_writer));
}

void mla_st_writer_free(mla_st_writer *writer) {
  if (!writer) return;
  for (size_t i = 0; i < writer->tensors; i++) free(writer->tensor[i].name);
  for (size_t i = 0; i < writer->metas; i++) {
    free(writer->meta[i].key);
    free(writer->meta[i].value);
  }
  free(writer->tensor);
  free(writer->meta);
  free(writer);
}

/* ----------------------------------------------------------- collecting */

/* Wide elements first, so that every array lies aligned in the file. */
static int goes_before(const entry *x, const entry *y) {
  if (x->type->width != y->type->width) return x->type->width > y->type->width;
  return strcmp(x->name, y->name) < 0;
}

static mla_status check_entry(const mla_st_writer *writer, const char *name,
                              const mla_st_type *type, int32_t dtype,
                              int32_t rank, const int64_t *shape,
                              uint64_t *bytes, mla_error *err) {
  if (!type) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "dtype",
                    "dtype %d of \"%.80s\" has no name in the format", dtype,
                    name);
  }
  if (rank < 0 || rank > MLA_ST_MAX_RANK) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "rank",
                    "rank of \"%.80s\" is %d, from 0 to %d", name, rank,
                    MLA_ST_MAX_RANK);
  }
  if (!mla_st_size(shape, rank, type->width, bytes)) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "shape",
                    "shape of \"%.80s\" is negative or overflows 2^63 bytes",
                    name);
  }
  int taken = strcmp(name, MLA_ST_METADATA) == 0;
  for (size_t i = 0; i < writer->tensors && !taken; i++) {
    taken = strcmp(writer->tensor[i].name, name) == 0;
  }
  if (taken) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "name",
                    "name \"%.80s\" is taken already", name);
  }
  return MLA_OK;
}

mla_status mla_st_writer_add(mla_st_writer *writer, const char *name,
                             int32_t dtype, int32_t rank, const int64_t *shape,
                             const void *data, mla_error *err) {
  entry e = {0};
  e.type = mla_st_type_of(dtype);
  mla_status status =
      check_entry(writer, name, e.type, dtype, rank, shape, &e.bytes, err);
  if (status != MLA_OK) return status;
  if (!data && e.bytes) {
    return mla_fail(err, MLA_INVALID_ARGUMENT, "data",
                    "data of \"%.80s\" is NULL", name);
  }
  e.name = copy_string(name);
  e.rank = rank;
  e.data = data;
  for (int32_t i = 0; i < rank; i++) e.shape[i] = shape[i];
  entry *larger = e.name ? realloc(writer->tensor, (writer->tensors + 1) *
                                                       sizeof *writer->tensor)
                         : NULL;
  if (!larger) {
    free(e.name);
    return no_memory(err);
  }
  writer->tensor = larger;
  size_t at = writer->tensors++;
  for (; at > 0 && goes_before(&e, &larger[at - 1]); at--) {
    larger[at] = larger[at - 1];
  }
  larger[at] = e;
  return MLA_OK;
}

/* Puts p where its key belongs; takes its strings. */
static void place_pair(mla_st_writer *writer, pair p) {
  size_t at = 0;
  while (at < writer->metas && strcmp(writer->meta[at].key, p.key) < 0) at++;
  if (at < writer->metas && strcmp(writer->meta[at].key, p.key) == 0) {
    free(writer->meta[at].key);
    free(writer->meta[at].value);
  } else {
    for (size_t i = writer->metas++; i > at; i--) {
      writer->meta[i] = writer->meta[i - 1];
    }
  }
  writer->meta[at] = p;
}

mla_status mla_st_writer_meta(mla_st_writer *writer, const char *key,
                              const char *value, mla_error *err) {
  pair p = {copy_string(key), copy_string(value)};
  pair *larger =
      realloc(writer->meta, (writer->metas + 1) * sizeof *writer->meta);
  if (larger) writer->meta = larger;
  if (!p.key || !p.value || !larger) {
    free(p.key);
    free(p.value);
    return no_memory(err);
  }
  place_pair(writer, p);
  return MLA_OK;
}

/* ------------------------------------------------------------ serialising */

/* Numbers as text: cJSON prints large ones in exponent form. */
static int add_numbers(cJSON *object, const char *key, const int64_t *value,
                       int32_t n) {
  cJSON *list = cJSON_AddArrayToObject(object, key);
  for (int32_t i = 0; i < n && list; i++) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value[i]);
    cJSON *item = cJSON_CreateRaw(text);
    if (!item || !cJSON_AddItemToArray(list, item)) {
      cJSON_Delete(item);
      return 0;
    }
  }
  return list != NULL;
}

static int add_entry(cJSON *header, const entry *e, int64_t begin) {
  const int64_t span[2] = {begin, begin + (int64_t)e->bytes};
  cJSON *object = cJSON_AddObjectToObject(header, e->name);
  return object && cJSON_AddStringToObject(object, "dtype", e->type->name) &&
         add_numbers(object, "shape", e->shape, e->rank) &&
         add_numbers(object, "data_offsets", span, 2);
}

static int add_metadata(cJSON *header, const mla_st_writer *writer) {
  if (writer->metas == 0) return 1;
  cJSON *object = cJSON_AddObjectToObject(header, MLA_ST_METADATA);
  for (size_t i = 0; i < writer->metas && object; i++) {
    const pair *p = &writer->meta[i];
    if (!cJSON_AddStringToObject(object, p->key, p->value)) return 0;
  }
  return object != NULL;
}

/* The header as text; NULL: out of memory. *total: bytes of data. */
static char *print_header(const mla_st_writer *writer, uint64_t *total) {
  cJSON *header = cJSON_CreateObject();
  int ok = header && add_metadata(header, writer);
  *total = 0;
  for (size_t i = 0; i < writer->tensors && ok; i++) {
    const entry *e = &writer->tensor[i];
    ok =
        *total <= INT64_MAX - e->bytes && add_entry(header, e, (int64_t)*total);
    *total += e->bytes;
  }
  char *text = ok ? cJSON_PrintUnformatted(header) : NULL;
  cJSON_Delete(header);
  return text;
}

static void put_data(unsigned char *to, const mla_st_writer *writer) {
  for (size_t i = 0; i < writer->tensors; i++) {
    const entry *e = &writer->tensor[i];
    if (e->bytes == 0) continue;
    memcpy(to, e->data, (size_t)e->bytes);
    if (mla_st_swaps()) mla_st_swap(to, e->bytes, e->type->unit);
    to += e->bytes;
  }
}

mla_status mla_st_writer_serialise(const mla_st_writer *writer,
                                   unsigned char **bytes, uint64_t *count,
                                   mla_error *err) {
  uint64_t data = 0;
  *bytes = NULL;
  *count = 0;
  char *text = print_header(writer, &data);
  size_t used = text ? strlen(text) : 0;
  size_t length = (used + PREFIX - 1) / PREFIX * PREFIX;
  unsigned char *out = NULL;
  if (text && data < SIZE_MAX - length - PREFIX) {
    out = malloc(PREFIX + length + (size_t)data);
  }
  if (out) {
    for (int i = 0; i < PREFIX; i++) {
      out[i] = (unsigned char)((uint64_t)length >> (8 * i) & 0xFF);
    }
    memset(out + PREFIX, ' ', length);
    memcpy(out + PREFIX, text, used);
    put_data(out + PREFIX + length, writer);
    *bytes = out;
    *count = PREFIX + length + data;
  }
  cJSON_free(text);
  return out ? MLA_OK : no_memory(err);
}

mla_status mla_st_writer_save(const mla_st_writer *writer, const char *path,
                              mla_error *err) {
  unsigned char *bytes;
  uint64_t count;
  mla_status status = mla_st_writer_serialise(writer, &bytes, &count, err);
  if (status == MLA_OK) {
    status = mla_file_write(path, bytes, (size_t)count, err);
  }
  free(bytes);
  return status;
}
