/*
 * gpu_map.h - positions of requests to slots of the cache, by block tables.
 */
#ifndef MLA_GPU_MAP_H
#define MLA_GPU_MAP_H

#include "gpu_request.h"

enum { MLA_MAP_THREADS = 256 };

typedef struct mla_map_args {
  const int32_t *positions, *table, *start;
  int64_t positions_row, table_row, start_step;
  int64_t table_width;
  int32_t *slots;
  int64_t slots_row;
  int requests, topk, block_size;
} mla_map_args;

/* -1 where the table has no slot for the position. */
MLA_DEV int32_t mla_map_slot(const mla_map_args &a, int request,
                             int64_t position) {
  if (position < 0 || position / a.block_size >= a.table_width) return -1;
  const int64_t block =
      a.table[request * a.table_row + position / a.block_size];
  const int64_t slot = block * a.block_size + position % a.block_size;
  return block < 0 || slot > INT32_MAX ? -1 : (int32_t)slot;
}

/* Grid: x token. */
MLA_KERNEL mla_map_rows(mla_map_args a) {
  const int64_t t = blockIdx.x;
  const int b = mla_request_at(a.start, a.start_step, a.requests, t);
  if (b < 0) return;
  for (int i = MLA_TID; i < a.topk; i += MLA_MAP_THREADS)
    a.slots[t * a.slots_row + i] =
        mla_map_slot(a, b, a.positions[t * a.positions_row + i]);
}

#endif
