/*
 * file_text.h - whole small files as text.
 */
#ifndef MLA_FILE_TEXT_H
#define MLA_FILE_TEXT_H

#include "mla/mla.h"

/* Terminated, freed by the caller; NULL with a sentence in err. */
char *mla_file_text(const char *path, mla_error *err);
/*
 * Written beside PATH, then renamed: whoever reads PATH finds it whole, however
 * many write it at once.
 */
mla_status mla_file_write(const char *path, const void *bytes, size_t count,
                          mla_error *err);

#endif
