/*
 * vector_file.h - files of vectors (golden/FORMAT.md).
 *
 * Files may come from anybody: whatever is wrong in one is INVALID_ARGUMENT
 * with a sentence that names the case and the member.
 */
#ifndef MLA_VECTOR_FILE_H
#define MLA_VECTOR_FILE_H

#include "vector.h"

typedef enum mla_vector_kind {
  MLA_VECTOR_STORED,
  MLA_VECTOR_SEEDED,
  MLA_VECTOR_INVALID
} mla_vector_kind;

typedef struct mla_vector_entry {
  int32_t kind;
  const char *id; /* of an invalid one: with "!" and its change */
  uint64_t seed;
  char hunts[MLA_HUNTS_MAX];
  int has_digest;
  uint64_t digest; /* seeded: of the expected values */
} mla_vector_entry;

typedef struct mla_vector_file mla_vector_file;

/* Is this a JSON file whose format is ours, or a safetensors file with such
   JSON in its metadata (repro.h)? Unreadable: no. */
int mla_vector_file_is(const char *path);
/* MLA_OK for JSON of another kind, as may lie among vectors. Cases of a format
   that nobody reads are none: they would be missed without a word. */
mla_status mla_vector_file_is_other(const char *path, mla_error *err);
mla_status mla_vector_file_open(const char *path, mla_vector_file **file,
                                mla_error *err);
void mla_vector_file_close(mla_vector_file *file);
int32_t mla_vector_file_count(const mla_vector_file *file);
const mla_vector_entry *mla_vector_file_at(const mla_vector_file *file,
                                           int32_t i);
/*
 * The vector of a stored case; it borrows from the file, which stays open as
 * long. Of others: generate it from id and seed. To be freed, whatever is
 * returned.
 */
mla_status mla_vector_file_load(const mla_vector_file *file, int32_t i,
                                mla_vector *v, mla_error *err);

#endif
