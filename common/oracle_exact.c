#include "oracle_exact.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "oracle_kv.h"
#include "spans.h"
#include "tensor.h"

int32_t mla_exact_slot(int32_t op) {
  return op == MLA_OP_KV_READ ? MLA_T_DST : MLA_T_CACHE;
}

/* A stretch of memory. */
typedef struct span {
  uintptr_t from, to;
} span;

static span span_of(const mla_tensor *t) {
  span x;
  x.from = (uintptr_t)t->data;
  x.to = x.from + (uintptr_t)mla_tensor_extent(t);
  return x;
}

/*
 * Runs on a copy of the output; a source that shares memory with it (blocks
 * copied within one cache) shares the copy likewise.
 */
mla_status mla_exact_bytes(const mla_problem *problem, const mla_args *args,
                           int32_t dequant, unsigned char *bytes,
                           mla_error *err) {
  mla_tensor tensor[MLA_T_COUNT] = {{0}};
  mla_args copy = {(uint32_t)sizeof copy, MLA_T_COUNT, tensor};
  uint32_t count = args->count < MLA_T_COUNT ? args->count : MLA_T_COUNT;
  memcpy(tensor, args->tensor, count * sizeof *tensor);
  mla_tensor *dst = &tensor[mla_exact_slot(problem->op)];
  mla_tensor *src = &tensor[MLA_T_SRC_CACHE];
  span to = span_of(dst), all = to;
  int shared = 0;
  if (problem->op == MLA_OP_KV_COPY) {
    span from = span_of(src);
    shared = from.from < to.to && to.from < from.to;
    if (shared && from.from < all.from) all.from = from.from;
    if (shared && from.to > all.to) all.to = from.to;
  }
  /* Zeroed lazily: gaps of gigabytes take no room. */
  unsigned char *memory = calloc((size_t)(all.to - all.from) + 1, 1);
  if (!memory)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "cache", "no memory for %llu bytes",
                    (unsigned long long)(all.to - all.from));
  if (shared)
    memcpy(memory, (const void *)all.from, (size_t)(all.to - all.from));
  else
    mla_span_copy(dst, memory, dst->data);
  dst->data = memory + (to.from - all.from);
  if (shared) src->data = memory + ((uintptr_t)src->data - all.from);
  mla_status status = mla_oracle_kv(problem, &copy, dequant, err);
  mla_span_copy(dst, bytes, dst->data);
  free(memory);
  return status;
}
