/*
 * output_digest.c - hashing a tensor's values and not its gaps.
 */
#include "output_digest.h"

#include <string.h>
#include <xxhash.h>

#include "safetensors_types.h"

/* A row of the last axis, which is dense. */
static void add_row(XXH64_state_t *state, const unsigned char *row, int64_t n,
                    int64_t size) {
  unsigned char turned[8];
  if (!mla_st_swaps() || size == 1) {
    XXH64_update(state, row, (size_t)(n * size));
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    memcpy(turned, row + i * size, (size_t)size);
    mla_st_swap(turned, (uint64_t)size, (int32_t)size);
    XXH64_update(state, turned, (size_t)size);
  }
}

/* The next index of all axes but the last; 0 past the end. */
static int next_row(const mla_tensor *t, int64_t *index) {
  for (int32_t a = t->rank - 2; a >= 0; a--) {
    if (++index[a] < t->shape[a]) return 1;
    index[a] = 0;
  }
  return 0;
}

uint64_t mla_output_digest(const mla_tensor *t, int64_t live,
                           const unsigned char *bytes) {
  int64_t index[MLA_MAX_RANK] = {0};
  int64_t size = mla_dtype_bits(t->dtype) / 8;
  XXH64_state_t *state = XXH64_createState();
  if (!state) return 0;
  XXH64_reset(state, 0);
  int empty = t->rank < 1 || live == 0;
  for (int32_t a = 0; a < t->rank; a++) empty |= t->shape[a] <= 0;
  while (!empty) {
    int64_t at = 0;
    int alone = t->rank == 1 && live >= 0 && live < t->shape[0];
    int64_t n = alone ? live : t->shape[t->rank - 1];
    for (int32_t a = 0; a + 1 < t->rank; a++) at += index[a] * t->stride[a];
    add_row(state, bytes + at * size, n, size);
    empty =
        !next_row(t, index) || (t->rank > 1 && live >= 0 && index[0] >= live);
  }
  uint64_t digest = XXH64_digest(state);
  XXH64_freeState(state);
  return digest;
}
