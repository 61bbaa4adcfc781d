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

/* A unit on its way, in words: one, or four. */
template <typename T>
MLA_DEV void mla_copy_take(const T *from, uint32_t (&w)[4]) {
  if constexpr (sizeof(T) == 16) {
    const T x = *from;
    for (int k = 0; k < 4; k++) w[k] = x.w[k];
  } else {
    w[0] = *from;
  }
}
template <typename T>
MLA_DEV void mla_copy_put(T *to, const uint32_t (&w)[4]) {
  if constexpr (sizeof(T) == 16)
    *to = T{{w[0], w[1], w[2], w[3]}};
  else
    *to = (T)w[0];
}

/* Where unit u of a block is, rows being `row` units apart. */
MLA_DEV int64_t mla_copy_at(const mla_copy_blocks_args &a, int64_t u,
                            int64_t row) {
  return u < a.row_units ? u : u + u / a.row_units * (row - a.row_units);
}

/* This thread's units of a slice of pair i; the last slice may be cut short. */
template <typename T>
MLA_DEV void mla_copy_slice(const mla_copy_blocks_args &a, int64_t i,
                            int slice) {
  const T *from = (const T *)a.src + a.pairs[i * a.pairs_row] * a.src_block;
  T *to = (T *)a.dst + a.pairs[i * a.pairs_row + 1] * a.dst_block;
  const int64_t first = (int64_t)slice * MLA_COPY_SLICE + MLA_TID;
  const int step = MLA_COPY_THREADS;
  if (first + (MLA_COPY_AHEAD - 1) * step >= a.units) {
    for (int64_t u = first; u < a.units; u += step) {
      uint32_t w[4];
      mla_copy_take(from + mla_copy_at(a, u, a.src_row), w);
      mla_copy_put(to + mla_copy_at(a, u, a.dst_row), w);
    }
    return;
  }
  uint32_t w[MLA_COPY_AHEAD][4];
  MLA_UNROLL
  for (int k = 0; k < MLA_COPY_AHEAD; k++)
    mla_copy_take(from + mla_copy_at(a, first + k * step, a.src_row), w[k]);
  MLA_UNROLL
  for (int k = 0; k < MLA_COPY_AHEAD; k++)
    mla_copy_put(to + mla_copy_at(a, first + k * step, a.dst_row), w[k]);
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
