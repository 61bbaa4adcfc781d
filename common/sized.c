/*
 * sized.c - reading and writing structs of another minor.
 */
#include "sized.h"

#include <string.h>

#include "error.h"

static uint32_t size_of(const void *from) {
  uint32_t size;
  memcpy(&size, from, sizeof size);
  return size;
}

static uint32_t shorter(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

mla_status mla_sized_room(const void *to, uint32_t least, const char *name,
                          mla_error *err) {
  if (!to) return mla_fail(err, MLA_INVALID_ARGUMENT, name, "%s is NULL", name);
  if (size_of(to) < least)
    return mla_fail(err, MLA_VERSION_MISMATCH, name,
                    "%s.size is %u, at least %u bytes are needed; it is "
                    "sizeof the struct",
                    name, size_of(to), least);
  return MLA_OK;
}

mla_status mla_sized_read(void *to, uint32_t ours, const void *from,
                          uint32_t least, const char *name, mla_error *err) {
  mla_status st = mla_sized_room(from, least, name, err);
  if (st != MLA_OK) return st;
  uint32_t theirs = size_of(from);
  const unsigned char *bytes = from;
  for (uint32_t i = ours; i < theirs; i++) {
    if (bytes[i])
      return mla_fail(err, MLA_VERSION_MISMATCH, name,
                      "%s.size is %u, and byte %u, past the %u that this "
                      "libmla knows, is not 0",
                      name, theirs, i, ours);
  }
  memset(to, 0, ours);
  memcpy(to, from, shorter(ours, theirs));
  memcpy(to, &ours, sizeof ours);
  return MLA_OK;
}

void mla_sized_write(void *to, const void *from, uint32_t ours) {
  uint32_t theirs = size_of(to);
  memcpy(to, from, shorter(ours, theirs));
  if (theirs > ours) memset((unsigned char *)to + ours, 0, theirs - ours);
  memcpy(to, &theirs, sizeof theirs);
}
