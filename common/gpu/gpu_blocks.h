/*
 * gpu_blocks.h - copies of whole blocks of a cache, all pairs of the list at
 * once: no block is written twice, or written and read (docs/spec.md 3.3).
 */
#ifndef MLA_GPU_BLOCKS_H
#define MLA_GPU_BLOCKS_H

#include "gpu_num.h"

enum {
  MLA_COPY_THREADS = 256,
  MLA_COPY_AHEAD = 4, /* units that a thread has on their way */
  MLA_COPY_SLICE = MLA_COPY_THREADS * MLA_COPY_AHEAD
};

typedef struct mla_copy_blocks_args {
  const void *src;
  void *dst;
  const int64_t *pairs;
  int64_t pairs_row, count, at_once; /* pairs, and those of the grid */
  /* In units; rows of a block that lie behind each other are one. */
  int64_t src_block, src_row, dst_block, dst_row, row_units, units;
  int slices; /* of a block */
} mla_copy_blocks_args;

/* This thread's units of a slice of pair i. */
template <typename T>
MLA_DEV void mla_copy_slice(const mla_copy_blocks_args &a, int64_t i,
                            int slice) {
  const T *from = (const T *)a.src + a.pairs[i * a.pairs_row] * a.src_block;
  T *to = (T *)a.dst + a.pairs[i * a.pairs_row + 1] * a.dst_block;
  const int64_t first = (int64_t)slice * MLA_COPY_SLICE + MLA_TID;
  T v[MLA_COPY_AHEAD];
  int64_t row[MLA_COPY_AHEAD];
  MLA_UNROLL
  for (int k = 0; k < MLA_COPY_AHEAD; k++) {
    const int64_t u = first + k * MLA_COPY_THREADS;
    row[k] = u < a.row_units ? 0 : u / a.row_units;
    if (u < a.units) v[k] = from[u + row[k] * (a.src_row - a.row_units)];
  }
  MLA_UNROLL
  for (int k = 0; k < MLA_COPY_AHEAD; k++) {
    const int64_t u = first + k * MLA_COPY_THREADS;
    if (u < a.units) to[u + row[k] * (a.dst_row - a.row_units)] = v[k];
  }
}

/* Grid: x slices of the pairs at once. */
template <typename T>
MLA_KERNEL mla_copy_blocks(mla_copy_blocks_args a) {
  const int64_t pair = (int64_t)blockIdx.x / a.slices;
  const int slice = (int)((int64_t)blockIdx.x % a.slices);
  for (int64_t i = pair; i < a.count; i += a.at_once)
    mla_copy_slice<T>(a, i, slice);
}

#endif
