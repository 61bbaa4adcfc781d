/*
 * error.h - filling the caller's mla_error.
 */
#ifndef MLA_ERROR_H
#define MLA_ERROR_H

#include "mla/mla.h"

/*
 * Writes status, field and one sentence into err (NULL: nothing) within
 * err->size, and returns status, so that a check reads
 *   return mla_fail(err, MLA_INVALID_ARGUMENT, "seq_lens",
 *                   "seq_lens[%d] is %d, at most %lld fit the table", ...);
 */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
mla_status
mla_fail(mla_error *err, mla_status status, const char *field,
         const char *format, ...);

#endif
