/*
 * spans.h - the parts of a tensor's memory that are looked at.
 *
 * All of it, but for tensors with gaps of gigabytes between their blocks
 * (cases of 64-bit offsets): there the gaps are memory that nobody touches,
 * so that a few pages are all that such a case needs.
 */
#ifndef MLA_SPANS_H
#define MLA_SPANS_H

#include "mla/mla.h"

typedef struct mla_span {
  int64_t at, bytes; /* from the tensor's first byte */
} mla_span;

int64_t mla_span_count(const mla_tensor *t);
int64_t mla_span_bytes(const mla_tensor *t); /* of all of them */
int mla_span_is_vast(const mla_tensor *t);   /* are there such gaps? */
mla_span mla_span_at(const mla_tensor *t, int64_t i);
/* Both are memory of such a tensor. */
void mla_span_copy(const mla_tensor *t, void *to, const void *from);
int mla_span_same(const mla_tensor *t, const void *x, const void *y);

#endif
