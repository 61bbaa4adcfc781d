/*
 * gpu_sparse.h - one query row a wave over lists of cache slots, portable.
 *
 * Sparse decode, of one cache or two: a row's keys are the entries of its
 * list, then those of the list into the second cache. Entries that name no
 * slot are never followed; they take a place in a tile, and weigh nothing.
 * Splits, partial results and merging are those of gpu_attend.h.
 */
#ifndef MLA_GPU_SPARSE_H
#define MLA_GPU_SPARSE_H

#include "gpu_attend.h"

/* A cache, and the list of every token into it. */
typedef struct mla_slot_list {
  const void *cache;
  int cache_dtype, block_size;
  int64_t block, row, capacity; /* strides; slots in all */
  mla_entry entry;              /* where entries have scales */
  const int32_t *slots, *lengths;
  int64_t slots_row, lengths_step;
  int width; /* entries of a list; 0: there is no such cache */
} mla_slot_list;

typedef struct mla_sparse_args {
  const void *q; /* element (t, h, d) at t * q_token + h * q_head + d */
  int64_t q_token, q_head;
  int q_dtype;
  mla_slot_list main, extra;
  int compute, heads, dk, dv, token0, tile;
  float scale, cap;
  float *part_out, *part_lse; /* as in gpu_attend.h */
  int splits;
} mla_sparse_args;

/* Entries of a token's list that are to be read. */
MLA_DEV int mla_list_length(const mla_slot_list &l, int64_t token) {
  return mla_list_entries(l.lengths, l.lengths_step, l.width, token);
}

/* The slot that entry i of a list names; -1: none. */
MLA_DEV int64_t mla_list_slot(const mla_slot_list &l, int64_t token, int i) {
  const int64_t slot = l.slots[token * l.slots_row + i];
  return slot >= 0 && slot < l.capacity ? slot : -1;
}

/* Of entry i of both lists, the second behind the `first` of the first. */
MLA_DEV int64_t mla_listed_slot(const mla_sparse_args &a, int64_t token,
                                int first, int i) {
  return i < first ? mla_list_slot(a.main, token, i)
                   : mla_list_slot(a.extra, token, i - first);
}

/* The key in a slot by one wave; zeros where there is none. */
MLA_DEV void mla_load_slot(const mla_slot_list &l, int64_t slot, int dk,
                           int compute, float *to) {
  if (slot < 0) {
    for (int d = MLA_LANE; d < dk; d += MLA_WAVE) to[d] = 0;
    return;
  }
  const int64_t id = slot / l.block_size, offset = slot % l.block_size;
  if (l.entry.scaled) {
    const mla_entry_place p = mla_entry_at(l.entry, l.cache, id, offset, 0);
    for (int d = MLA_LANE; d < dk; d += MLA_WAVE)
      to[d] = mla_entry_value(l.entry, p, d, compute);
    return;
  }
  const int64_t at = id * l.block + offset * l.row;
  for (int d = MLA_LANE; d < dk; d += MLA_WAVE)
    to[d] = mla_load_any(l.cache, l.cache_dtype, at + d);
}

MLA_DEV void mla_load_listed(const mla_sparse_args &a, int64_t token, int first,
                             int i, float *to) {
  const int64_t slot = mla_listed_slot(a, token, first, i);
  if (i < first)
    mla_load_slot(a.main, slot, a.dk, a.compute, to);
  else
    mla_load_slot(a.extra, slot, a.dk, a.compute, to);
}

/* Grid: x token, y head group, z split. Shared: q of the block's waves, their
   p, a tile of keys. C: columns of dv a lane holds. */
template <int C>
MLA_KERNEL mla_sparse_partial(mla_sparse_args a) {
  MLA_DYNAMIC_SHARED(float, shared);
  const int waves = MLA_ATTEND_THREADS / MLA_WAVE;
  const int head = (int)blockIdx.y * waves + MLA_WAVE_ID;
  const int64_t local = blockIdx.x, token = a.token0 + local;
  const int split = (int)blockIdx.z, step = MLA_TILE_STEP(a.dk);
  const int has_row = head < a.heads; /* else it only loads keys */
  float *q = shared + MLA_WAVE_ID * a.dk;
  float *p = shared + waves * a.dk + MLA_WAVE_ID * MLA_TILE_KEYS;
  float *k_tile = shared + waves * (a.dk + MLA_TILE_KEYS);
  const int first = mla_list_length(a.main, token);
  const int n = first + (a.extra.width ? mla_list_length(a.extra, token) : 0);
  const int per = mla_split_keys(n, a.splits);
  const int lo = split * per, hi = n - lo < per ? n : lo + per;
  for (int d = MLA_LANE; has_row && d < a.dk; d += MLA_WAVE)
    q[d] =
        mla_load_any(a.q, a.q_dtype, token * a.q_token + head * a.q_head + d);
  mla_tile x = {q,    k_tile, k_tile, p,       step, step,
                a.dk, a.dv,   0,      a.scale, a.cap};
  mla_row_sums<C> sums;
  mla_row_begin(&sums);
  for (int j0 = lo; j0 < hi; j0 += a.tile) {
    x.n = hi - j0 < a.tile ? hi - j0 : a.tile;
    const int mine = MLA_LANE % MLA_TILE_KEYS;
    const int live =
        mine < x.n && mla_listed_slot(a, token, first, j0 + mine) >= 0;
    /* Lists end in entries that name nothing: every wave sees it alike. */
    if (mla_lanes_max(live ? 1.0f : 0.0f, MLA_TILE_KEYS) == 0) continue;
    MLA_BARRIER();
    for (int j = MLA_WAVE_ID; j < x.n; j += waves)
      mla_load_listed(a, token, first, j0 + j, k_tile + j * step);
    MLA_BARRIER();
    if (has_row) mla_row_add(x, live, &sums);
  }
  if (!has_row) return;
  const int64_t row = (local * a.heads + head) * a.splits + split;
  /* No live key: no score that it could have. */
  mla_row_store(sums, sums.top == MLA_NEG_INF, a.dv, a.part_out + row * a.dv,
                a.part_lse + row);
}

#endif
