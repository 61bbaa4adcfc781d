/*
 * mla_sparse_mfma_cdna.h - sparse decode on matrix cores: decode over lists of
 * slots, of one cache or two.
 *
 * A block serves up to 64 heads of a token, whose keys are the entries of its
 * list, then those of the list into the second cache. An entry that names no
 * slot takes a place in a tile, as zeros that no row sees.
 */
#ifndef MLA_SPARSE_MFMA_CDNA_H
#define MLA_SPARSE_MFMA_CDNA_H

#include "gpu_sparse.h"
#include "mla_decode_mfma_cdna.h"

/* Strides of caches are bytes here. */
typedef struct mla_mfma_lists {
  mla_slot_list main, extra;
} mla_mfma_lists;

/* A token's keys: those of its lists below hi. */
typedef struct mla_mfma_listed {
  enum { LISTED = 1 };
  const mla_mfma_lists &lists;
  int token, first, hi; /* first: entries of the list into the first cache */
} mla_mfma_listed;

MLA_DEV const unsigned char *mla_mfma_key_at(const mla_attend_args &,
                                             const mla_mfma_listed &from,
                                             int j) {
  if (j >= from.hi) return NULL;
  const int is_main = j < from.first;
  const mla_slot_list &l = is_main ? from.lists.main : from.lists.extra;
  const int64_t found =
      mla_list_slot(l, from.token, is_main ? j : j - from.first);
  if (found < 0) return NULL;
  const int slot = (int)found; /* as lists have it */
  return (const unsigned char *)l.cache + slot / l.block_size * l.block +
         slot % l.block_size * l.row;
}

/* Whether any of a tile's places names a slot: lists often end in none. */
MLA_DEV int mla_mfma_some(const mla_mfma_listed &, const int *live) {
  return MLA_ANY_LANE(live[MLA_LANE % MLA_MFMA_KEYS]);
}

MLA_DEV void mla_mfma_hide(const mla_mfma_listed &, const int *live, int,
                           mla_f32x4 *s) {
  const int g = MLA_LANE / 16;
  MLA_UNROLL
  for (int i = 0; i < 4; i++)
    if (!live[4 * g + i]) (*s)[i] = MLA_NEG_INF;
}

/* Grid: x token x group of heads, y split; a: what is not of a cache. */
template <int DT, int KEYS>
MLA_TWO_WAVES MLA_KERNEL mla_sparse_mfma(mla_attend_args a, mla_mfma_lists x,
                                         int groups) {
  const int token = (int)blockIdx.x / groups, split = (int)blockIdx.y;
  const mla_mfma_work w = {0, (int)blockIdx.x % groups * MLA_MFMA_ROWS, token,
                           1, 0};
  const int first = mla_list_length(x.main, token);
  const int n = first + (x.extra.width ? mla_list_length(x.extra, token) : 0);
  const int per = mla_mfma_split_keys(n, a.splits);
  const int lo = split * per, hi = n - lo < per ? n : lo + per;
  const mla_mfma_listed from = {x, token, first, hi};
  const mla_mfma_row r = mla_mfma_row_of(a, w, a.heads, MLA_TID);
  mla_mfma_attend<DT, KEYS>(a, from, w, r, a.heads, lo, hi, split);
}

#endif
