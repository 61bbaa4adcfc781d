/*
 * mla_topk_sm80.h - the k largest of a row of logits (gpu_topk.h says which)
 * for sm_80 and later: one block a row, which it keeps in shared memory if
 * there is room.
 */
#ifndef MLA_TOPK_SM80_H
#define MLA_TOPK_SM80_H

#include "sm80_topk.h"

/* Grid: x token. Rows of logits as gpu_index.h left them; room: how long one
   may be to be kept. */
SM80_KERNEL(SM80_TOPK_THREADS, 1)
mla_topk_kept(mla_index_args a, int32_t *positions, int64_t positions_row,
              int topk, int room) {
  MLA_DYNAMIC_SHARED(float, kept);
  MLA_SHARED_TILE(sm80_topk_shared, shared, 1, 1);
  sm80_topk_shared &s = shared[0][0];
  const int64_t local = blockIdx.x;
  const int token = a.token0 + (int)local;
  int request;
  const int n = mla_index_visible(a, token, &request);
  int32_t *to = positions + token * positions_row;
  if (n < 0) return;
  if (n <= topk) {
    sm80_topk_put_all(n, topk, to, MLA_TID, SM80_TOPK_THREADS);
    return;
  }
  sm80_topk_alone(s, a.logits + local * a.row_len, n, topk,
                  n <= room ? kept : NULL, to);
}

#endif
