/*
 * sized.h - structs that cross a boundary begin with their size.
 *
 * The other side may have been built against another minor: a shorter struct
 * lacks members, which then read 0; a longer one has members unknown here,
 * which must then be 0.
 */
#ifndef MLA_SIZED_H
#define MLA_SIZED_H

#include "mla/mla.h"

/* Bytes of a struct up to and with a member. */
#define MLA_SIZE_WITH(type, member) \
  ((uint32_t)(offsetof(type, member) + sizeof(((type *)0)->member)))

/*
 * Reads the caller's struct into a full one of `ours` bytes, whose size it
 * sets. `least` bytes must be there. Errors: INVALID_ARGUMENT (NULL),
 * VERSION_MISMATCH (too short; or longer, with something in what is not
 * known here). `name` is for the sentence.
 */
mla_status mla_sized_read(void *to, uint32_t ours, const void *from,
                          uint32_t least, const char *name, mla_error *err);

/* Is there room for the least that an output struct must take? */
mla_status mla_sized_room(const void *to, uint32_t least, const char *name,
                          mla_error *err);

/* Writes what the caller's struct has room for; its size stays, members that
   are not known here become 0. */
void mla_sized_write(void *to, const void *from, uint32_t ours);

#endif
