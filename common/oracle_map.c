/*
 * oracle_map.c - positions of requests to slots of the cache.
 */
#include "dtype.h"
#include "oracle_index.h"
#include "oracle_load.h"
#include "tensor.h"

int64_t mla_map_position(const mla_tensor *table, int64_t block_size,
                         int64_t request, int64_t position) {
  if (position < 0 || position / block_size >= table->shape[1]) return -1;
  int64_t block = mla_index2(table, request, position / block_size);
  int64_t slot = block * block_size + position % block_size;
  return block < 0 || slot > INT32_MAX ? -1 : slot;
}

int64_t mla_map_tokens(const mla_args *args) {
  const mla_tensor *starts = mla_arg(args, MLA_T_QUERY_START_LOC);
  return mla_index1(starts, starts->shape[0] - 1);
}

/* The request that a token belongs to. */
static int64_t request_of(const mla_tensor *starts, int64_t token,
                          int64_t from) {
  while (mla_index1(starts, from + 1) <= token) from++;
  return from;
}

void mla_oracle_map_indices(const mla_problem *p, const mla_args *args,
                            int64_t rows, const int64_t *row_id,
                            double *slots) {
  const mla_tensor *positions = mla_arg(args, MLA_T_POSITIONS);
  const mla_tensor *table = mla_arg(args, MLA_T_BLOCK_TABLE);
  const mla_tensor *starts = mla_arg(args, MLA_T_QUERY_START_LOC);
  const mla_tensor *out = mla_arg(args, MLA_T_INDICES);
  int64_t request = 0;
  for (int64_t r = 0; r < rows; r++) {
    int64_t token = row_id ? row_id[r] : r;
    request = request_of(starts, token, request);
    for (int64_t i = 0; i < p->topk; i++) {
      int64_t slot = mla_map_position(table, p->block_size, request,
                                      mla_index2(positions, token, i));
      if (slots)
        slots[r * p->topk + i] = (double)slot;
      else
        mla_put_int(out->data, out->dtype, mla_at1(out, token) + i, slot);
    }
  }
}
