/*
 * spans.c - memory that is looked at.
 */
#include "spans.h"

#include <string.h>

#include "tensor.h"

#define VAST ((int64_t)1 << 28) /* bytes; smaller ones are taken whole */

/* Bytes of one index of the first axis. */
static int64_t block_bytes(const mla_tensor *t) {
  mla_tensor block = *t;
  block.shape[0] = 1;
  return mla_tensor_extent(&block);
}

int mla_span_is_vast(const mla_tensor *t) {
  int64_t all = mla_tensor_extent(t);
  return t->rank > 1 && t->shape[0] > 1 && all > VAST &&
         block_bytes(t) < all / t->shape[0] / 4;
}

int64_t mla_span_count(const mla_tensor *t) {
  return mla_span_is_vast(t) ? t->shape[0] : 1;
}

mla_span mla_span_at(const mla_tensor *t, int64_t i) {
  mla_span whole = {0, mla_tensor_extent(t)};
  if (!mla_span_is_vast(t)) return whole;
  mla_span block = {i * t->stride[0] * mla_dtype_bits(t->dtype) / 8,
                    block_bytes(t)};
  return block;
}

int64_t mla_span_bytes(const mla_tensor *t) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < mla_span_count(t); i++)
    bytes += mla_span_at(t, i).bytes;
  return bytes;
}

void mla_span_copy(const mla_tensor *t, void *to, const void *from) {
  for (int64_t i = 0; i < mla_span_count(t); i++) {
    mla_span span = mla_span_at(t, i);
    memcpy((char *)to + span.at, (const char *)from + span.at,
           (size_t)span.bytes);
  }
}

int mla_span_same(const mla_tensor *t, const void *x, const void *y) {
  for (int64_t i = 0; i < mla_span_count(t); i++) {
    mla_span span = mla_span_at(t, i);
    if (memcmp((const char *)x + span.at, (const char *)y + span.at,
               (size_t)span.bytes) != 0)
      return 0;
  }
  return 1;
}
