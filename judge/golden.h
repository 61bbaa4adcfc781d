/*
 * golden.h - the golden vectors, made from the profiles that list them.
 *
 * The same bytes on every machine: data, expected values and files are
 * functions of the profiles "stored", "seeded", "invalid" and "batch" alone.
 */
#ifndef MLA_GOLDEN_H
#define MLA_GOLDEN_H

#include "mla/mla.h"

/* One file that is to lie under the golden folder. */
typedef struct mla_golden_file {
  char name[96]; /* "v1/decode_bf16.json" */
  unsigned char *bytes;
  uint64_t count;
} mla_golden_file;

typedef struct mla_golden {
  int32_t count;
  mla_golden_file *file;
} mla_golden;

/* All files of v1/. To be freed, whatever is returned. */
mla_status mla_golden_make(mla_golden *golden, mla_error *err);
void mla_golden_free(mla_golden *golden);
/*
 * The manifest of what was made and of the files that lie in DIR/external:
 * sizes and XXH64.
 */
mla_status mla_golden_manifest(mla_golden *golden, const char *dir,
                               mla_error *err);
/* How many files of DIR differ, or lie in v1/ and should not; differs() gets a
   sentence for each. */
int32_t mla_golden_compare(const mla_golden *golden, const char *dir,
                           void (*differs)(const char *why));
mla_status mla_golden_write(const mla_golden *golden, const char *dir,
                            mla_error *err);

#endif
