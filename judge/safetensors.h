/*
 * safetensors.h - named arrays in a file.
 *
 * A file is 8 bytes of length (little-endian), a JSON header of that length,
 * then the data, little-endian. In memory everything is in the host's order,
 * whatever the host's. Files may come from anybody: a lie in one (a length, a
 * type, a hole, an overlap, a name twice) is INVALID_ARGUMENT with a sentence,
 * never a crash, and memory stays within a few times the bytes that are
 * really there.
 */
#ifndef MLA_SAFETENSORS_H
#define MLA_SAFETENSORS_H

#include "mla/mla.h"

#define MLA_ST_MAX_RANK 8

/* One array. data is aligned for its type, and NULL only if bytes is 0. */
typedef struct mla_st_tensor {
  const char *name;
  int32_t dtype;          /* mla_dtype; MLA_DTYPE_NONE: see dtype_name */
  const char *dtype_name; /* as the file says: "F32", "BF16", "U16" ... */
  int32_t rank;
  int64_t shape[MLA_ST_MAX_RANK];
  const void *data;
  uint64_t bytes;
} mla_st_tensor;

/* ---------------------------------------------------------------- reading */

typedef struct mla_st mla_st; /* a file in memory */

/* NOT_AVAILABLE: cannot be opened or read; INVALID_ARGUMENT: malformed. */
mla_status mla_st_open(const char *path, mla_st **file, mla_error *err);
/* The same from bytes (copied). */
mla_status mla_st_parse(const void *bytes, uint64_t count, mla_st **file,
                        mla_error *err);
void mla_st_close(mla_st *file); /* NULL is fine; frees all data */

/* Tensors are in ascending order of name (by bytes). */
int32_t mla_st_count(const mla_st *file);
const mla_st_tensor *mla_st_at(const mla_st *file, int32_t i);
const mla_st_tensor *mla_st_find(const mla_st *file, const char *name);
/* A string of __metadata__, or NULL. */
const char *mla_st_meta(const mla_st *file, const char *key);

/*
 * The tensor as an operand of mla_run: dense, data as in the file. INVALID_
 * ARGUMENT: its type has no mla_dtype, or its rank is above MLA_MAX_RANK.
 * MLA_I4 has no name in the format: store it as MLA_U8, by bytes.
 */
mla_status mla_st_view(const mla_st_tensor *tensor, mla_tensor *view,
                       mla_error *err);

/* ---------------------------------------------------------------- writing */

/*
 * The same calls, in any order, give the same bytes: metadata by key, tensors
 * by descending element size and then name, compact JSON, no time, no host.
 */
typedef struct mla_st_writer mla_st_writer;

mla_st_writer *mla_st_writer_new(void); /* NULL: out of memory */
void mla_st_writer_free(mla_st_writer *writer);
/*
 * Dense, row-major, in the host's order. name is copied; data is borrowed
 * until the last save or serialise. INVALID_ARGUMENT: a name given before,
 * or "__metadata__", or a type without a name in the format (MLA_I4).
 */
mla_status mla_st_writer_add(mla_st_writer *writer, const char *name,
                             int32_t dtype, int32_t rank, const int64_t *shape,
                             const void *data, mla_error *err);
/* Both are copied; a key given again replaces the value. */
mla_status mla_st_writer_meta(mla_st_writer *writer, const char *key,
                              const char *value, mla_error *err);
/* Writes PATH.part, then renames it: PATH is never half a file. */
mla_status mla_st_writer_save(const mla_st_writer *writer, const char *path,
                              mla_error *err);
/* The file's bytes in a new array, freed by the caller with free(). */
mla_status mla_st_writer_serialise(const mla_st_writer *writer,
                                   unsigned char **bytes, uint64_t *count,
                                   mla_error *err);

#endif
