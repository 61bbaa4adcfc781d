/*
 * mla_decode_bf16_sm90.cuh - dense decode, bf16, width 576/512, for sm_90a:
 * sm90_decode_rows.h fed by the copy engine in 64 x 64 boxes, the nine boxes of
 * a block under three barriers, each refilled by the warpgroup that last reads
 * it.
 */
#ifndef MLA_DECODE_BF16_SM90_CUH
#define MLA_DECODE_BF16_SM90_CUH

#include "sm90_decode_rows.h"

/* The piece's page ids are in shared memory, as many as fit. */
MLA_DEV int sm90_page_id(const mla_sm90_args &a, const sm90_state &s,
                         const sm90_piece &w, int page) {
  const int near = page - w.block * MLA_SM90_BLOCK / a.page;
  if (near < SM90_ID_COUNT) return s.ids[near];
  return a.table[w.request * a.table_row + page];
}
MLA_DEV void sm90_load_ids(const mla_sm90_args &a, const sm90_state &s,
                           const sm90_piece &w) {
  const int first = w.block * MLA_SM90_BLOCK / a.page;
  int end = (w.block + w.blocks) * MLA_SM90_BLOCK;
  if (end > w.seq) end = w.seq;
  const int count = (end + a.page - 1) / a.page - first;
  for (int i = (int)threadIdx.x; i < count && i < SM90_ID_COUNT; i += 256)
    s.ids[i] = a.table[w.request * a.table_row + first + i];
}

/* Boxes [from, from + n) of a block into a buffer, under barrier bar. */
MLA_DEV void sm90_fetch(const mla_sm90_args &a, const CUtensorMap *map,
                        const sm90_state &s, const sm90_piece &w, int block,
                        int from, int n, int which) {
  if (block >= w.blocks) return;
  const int buffer = block & 1;
  const int key = (w.block + block) * MLA_SM90_BLOCK;
  const uint32_t bar = sm90_bar(s, SM90_FULL + 3 * buffer + which);
  mbar_expect(bar, (uint32_t)(n * SM90_BOX));
#pragma unroll 1
  for (int k = 0; k < MLA_SM90_BLOCK; k += a.page) {
    /* Pages past the last key are not looked up: the last one stands in. */
    const int at = key + k < w.seq ? key + k : w.seq - 1;
    const int id = sm90_page_id(a, s, w, at / a.page);
    const int rows_in = a.page < MLA_SM90_BLOCK ? 0 : key % a.page;
#pragma unroll 1
    for (int i = from; i < from + n; i++)
      tma_load_3d(sm90_box(s, buffer, i) + k * 128, map, i * 64, rows_in, id,
                  bar);
  }
}

/* Rows past the last key hold anything, NaN too: P is 0 there, V must be. */
MLA_DEV void sm90_clear_tail(const sm90_state &s, const sm90_piece &w,
                             int block) {
  const int buffer = block & 1;
  const int valid = w.seq - (w.block + block) * MLA_SM90_BLOCK;
  if (valid >= MLA_SM90_BLOCK) return;
  for (int i = valid * 32 + s.thread; i < MLA_SM90_BLOCK * 32; i += 128) {
    const int row = i / 32, chunk = i % 32;
    const uint32_t at = sm90_box(s, buffer, 4 * s.side + chunk / 8) +
                        row * 128 + (chunk % 8) * 16;
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(0)
                 : "memory");
  }
  fence_async();
  bar_sync(s.side ? BAR_RIGHT : BAR_LEFT, 128);
}

/* This side is done with some boxes of `block`: two blocks later refills. */
MLA_DEV void sm90_refill(const mla_sm90_args &a, const CUtensorMap *map,
                         const sm90_state &s, const sm90_piece &w, int block,
                         int with_rope) {
  bar_sync(s.side ? BAR_RIGHT : BAR_LEFT, 128);
  if (s.thread) return;
  sm90_fetch(a, map, s, w, block + 2, 4 * s.side, 4, s.side);
  if (with_rope) sm90_fetch(a, map, s, w, block + 2, 8, 1, 2);
}

struct sm90_paged {
  enum { parts = 1 };
  const mla_sm90_args &a;
  const CUtensorMap *map;
  const sm90_piece &w;
  static SM90_MEMBER uint32_t full(const sm90_state &s, int buffer, int part) {
    return sm90_bar(s, SM90_FULL + 3 * buffer + part);
  }
  SM90_MEMBER void mask(const sm90_state &s, int block,
                        float (&acc)[32]) const {
    sm90_mask_tail(s, block, acc);
  }
  SM90_MEMBER void clear(const sm90_state &s, int block) const {
    sm90_clear_tail(s, w, block);
  }
  SM90_MEMBER void release(const sm90_state &s, int block, int rope) const {
    sm90_refill(a, map, s, w, block, rope);
  }
};

/* One piece: ids, Q and the first two blocks fetched, then attended. */
MLA_DEV void sm90_walk(const mla_sm90_args &a, const CUtensorMap *q_map,
                       const CUtensorMap *k_map, sm90_state &s,
                       const sm90_piece &w, int q_turn) {
  const sm90_paged feed = {a, k_map, w};
  sm90_limits(a, s, w, (int)blockIdx.x * MLA_SM90_ROWS);
  bar_sync(BAR_ALL, 256); /* the piece before is through with Q and ids */
  sm90_load_ids(a, s, w);
  bar_sync(BAR_ALL, 256);
  if (threadIdx.x == 0 && w.blocks) {
    sm90_fetch_q(a, q_map, s, w);
#pragma unroll 1
    for (int b = 0; b < 2; b++) {
      sm90_fetch(a, k_map, s, w, b, 0, 4, 0);
      sm90_fetch(a, k_map, s, w, b, 4, 4, 1);
      sm90_fetch(a, k_map, s, w, b, 8, 1, 2);
    }
  }
  sm90_attend(a, feed, s, w, q_turn);
}

static __global__ void __launch_bounds__(256, 1)
    mla_decode_bf16_sm90(const __grid_constant__ CUtensorMap q_map,
                         const __grid_constant__ CUtensorMap k_map,
                         const mla_sm90_args a) {
  extern __shared__ unsigned char raw[];
  sm90_state s = sm90_begin(raw);
  if (threadIdx.x == 0) {
    sm90_make_bars(s);
    for (int i = 0; i < 6; i++) mbar_init(sm90_bar(s, SM90_FULL + i), 1);
    mbar_init_fence();
  }
  __syncthreads();
  pdl_launch();
  pdl_wait();
  int q_turn = 0;
  sm90_for_pieces(a, [&](const sm90_piece &w) {
    sm90_walk(a, &q_map, &k_map, s, w, q_turn);
    if (w.blocks) q_turn++;
  });
}

#endif
