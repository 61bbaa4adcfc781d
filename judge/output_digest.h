/*
 * output_digest.h - one number for what a backend wrote.
 */
#ifndef MLA_OUTPUT_DIGEST_H
#define MLA_OUTPUT_DIGEST_H

#include "mla/mla.h"

/*
 * XXH64 of the elements in row-major order, lowest byte first on every host,
 * gaps between strides left out. `live` rows of the first axis count; -1: all.
 * 0 without memory.
 */
uint64_t mla_output_digest(const mla_tensor *t, int64_t live,
                           const unsigned char *bytes);

#endif
