/*
 * cache_direct.h - the bytes of scaled caches, written down anew from
 * docs/spec.md 2.2 to 2.4: with the processor's own f32 arithmetic, and codes
 * found by looking at all of them.
 */
#ifndef MLA_CACHE_DIRECT_H
#define MLA_CACHE_DIRECT_H

#include "mla/mla.h"

typedef struct direct_format {
  int32_t format;
  int64_t latent, rope; /* sizes that its tests use */
  int64_t entry;        /* bytes an entry then has */
} direct_format;

#define DIRECT_FORMATS 8
extern const direct_format direct_formats[DIRECT_FORMATS];

/* The entry's bytes: those of its row, then those behind the block's rows
   (fp8_584: the last 8), by the rule for powers of two or not. */
void direct_entry(const direct_format *format, const double *x, double one,
                  int pow2, unsigned char *entry);
/* The f32 products code * scale of such an entry, and plain values beside. */
void direct_read(const direct_format *format, const unsigned char *entry,
                 double one, double *values);
/* Byte of a block of `page` entries where byte e of an entry lies. */
int64_t direct_byte(const direct_format *format, int64_t page, int64_t offset,
                    int64_t e);

/* The code nearest to x (even between two), by search. */
uint32_t direct_code(int32_t dtype, float x);
double direct_value(int32_t dtype, uint32_t code);

#endif
