/*
 * bulk.h - bytes by the gigabyte, filled and copied by all threads: the first
 * touch of a page takes far longer than what is then written there.
 */
#ifndef MLA_BULK_H
#define MLA_BULK_H

#include <stdint.h>

void mla_bulk_fill(void *to, unsigned char byte, uint64_t bytes);

/* They do not overlap. */
void mla_bulk_copy(void *to, const void *from, uint64_t bytes);

#endif
