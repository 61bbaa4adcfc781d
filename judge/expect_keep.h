/*
 * expect_keep.h - answers of the reference in a folder (--expected DIR).
 */
#ifndef MLA_EXPECT_KEEP_H
#define MLA_EXPECT_KEEP_H

#include "oracle.h"
#include "vector.h"

#define MLA_KEEP_PATH_MAX 4096

/* Of the reference's sources: every answer says which it is from. */
extern const char mla_reference_digest[];

/* DIR/HASH.safetensors: the hash is of everything the answer depends on, the
   bytes of all inputs among it. */
void mla_keep_path(const mla_vector *v, const mla_selection *selection,
                   const mla_numerics *emulate, const char *dir,
                   char path[MLA_KEEP_PATH_MAX]);
/* Fills an allocated expectation; not MLA_OK when there is nothing to use: no
   file, one of another call, or of other sources of the reference. */
mla_status mla_keep_load(mla_expected *expected, const char *path);
mla_status mla_keep_save(mla_expected *expected, const char *path,
                         mla_error *err);

#endif
