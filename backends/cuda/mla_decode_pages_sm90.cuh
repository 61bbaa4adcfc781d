/*
 * mla_decode_pages_sm90.cuh - dense decode, width 576/512, over caches of
 * codes, and over bf16 ones whose pages the copy engine cannot bring, for
 * sm_90a: sm90_decode_rows.h fed by a third warpgroup, as lists are.
 */
#ifndef MLA_DECODE_PAGES_SM90_CUH
#define MLA_DECODE_PAGES_SM90_CUH

#include "mla_decode_listed_sm90.cuh"
#include "sm90_page_keys.h"

/* Keys are all there up to the last: rows tell what they do not see. */
struct sm90_brought : sm90_listed {
  SM90_MEMBER void mask(const sm90_state &s, int block,
                        float (&acc)[32]) const {
    sm90_mask_tail(s, block, acc);
  }
};

/* This warp's keys of three blocks: tables are read two blocks before. */
typedef struct pages_keys {
  int own; /* position of this lane's key in the piece's first block */
  pages_key now, next, last;
} pages_keys;

MLA_DEV pages_keys pages_begin(const mla_sm90_pages &x, const sm90_piece &w,
                               int key0) {
  pages_keys k;
  k.own = w.block * MLA_SM90_BLOCK + key0 + MLA_LANE % LISTED_KEYS;
  k.now = pages_find(x, w, k.own);
  k.next = pages_find(x, w, k.own + MLA_SM90_BLOCK);
  k.last = pages_find(x, w, k.own + 2 * MLA_SM90_BLOCK);
  return k;
}
/* On to block i of the piece. */
MLA_DEV void pages_step(const mla_sm90_pages &x, const sm90_piece &w, int i,
                        pages_keys *k) {
  k->now = k->next;
  k->next = k->last;
  k->last = pages_find(x, w, k->own + (i + 2) * MLA_SM90_BLOCK);
}

MLA_DEV void pages_done(const sm90_state &s, int buffer) {
  fence_async();
  mbar_arrive(sm90_bar(s, SM90_FULL + buffer));
}

MLA_DEV void pages_send(const mla_sm90_pages &x, const sm90_state &s,
                        listed_bringer &b, int buffer, const pages_key &k) {
  const int place = pages_place(x, k);
  listed_wait_empty(s, b, buffer);
#pragma unroll 1
  for (int box = 0; box < 9; box++)
    listed_copy_box(s, buffer, b.key0, x.cache, place, 8 * box, 128 * box);
  listed_commit();
}

/* Both blocks of a pair are under way before the first is waited for. */
MLA_DEV void pages_bring_bf16(const mla_sm90_pages &x, const sm90_state &s,
                              listed_bringer &b, const sm90_piece &w) {
  pages_keys k = pages_begin(x, w, b.key0);
  for (int i = 0; i < w.blocks; i += 2) {
    pages_send(x, s, b, 0, k.now);
    pages_step(x, w, i + 1, &k);
    if (i + 1 < w.blocks)
      pages_send(x, s, b, 1, k.now);
    else
      listed_commit(); /* nothing, so that groups count alike */
    pages_step(x, w, i + 2, &k);
    listed_landed<1>();
    pages_done(s, 0);
    listed_landed<0>();
    if (i + 1 < w.blocks) pages_done(s, 1);
  }
}

/* Codes of four keys are turned into numbers while the next four's come, in
   two steps a block. */
template <int Kind>
MLA_DEV void pages_bring_codes(const mla_sm90_pages &x, const sm90_state &s,
                               listed_bringer &b, const sm90_piece &w) {
  uint4 near[LISTED_FOUR], far[LISTED_FOUR], tail[PAGES_TAIL];
  pages_keys k = pages_begin(x, w, b.key0);
  int place = pages_place(x, k.now), ends = 0;
  listed_load_codes(x.cache, place, 0, near);
  float scales = pages_scales<Kind>(x, place, 0);
#pragma unroll 1
  for (int i = 0; i < w.blocks; ends ^= 1) {
    const int key = 8 * ends, buffer = i & 1;
    listed_load_codes(x.cache, place, key + 4, far);
    const float far_scales =
        Kind == PAGES_656 ? pages_scales<Kind>(x, place, key + 4) : scales;
    if (!ends) {
      listed_wait_empty(s, b, buffer);
      if (Kind == PAGES_656) {
        listed_copy_box(s, buffer, b.key0, x.cache, place, 64, 528);
        listed_commit();
      }
    }
    pages_store_codes<Kind>(s, buffer, b.key0, key, scales, near);
    if (ends) {
      if (Kind != PAGES_656) pages_load_tail(x.cache, place, tail);
      pages_step(x, w, ++i, &k);
      place = pages_place(x, k.now);
    }
    listed_load_codes(x.cache, place, 8 - key, near);
    scales = pages_scales<Kind>(x, place, 8 - key);
    pages_store_codes<Kind>(s, buffer, b.key0, key + 4, far_scales, far);
    if (!ends) continue;
    if (Kind == PAGES_656)
      listed_landed<0>();
    else
      pages_store_tail<Kind>(s, buffer, b.key0, far_scales, tail);
    pages_done(s, buffer);
  }
}

template <int Kind>
MLA_DEV void pages_bring(const mla_sm90_pages &x, const sm90_state &s) {
  listed_bringer b = {};
  b.key0 = (MLA_WAVE_ID - 8) * LISTED_KEYS;
  sm90_for_pieces(x.rows, [&](const sm90_piece &w) {
    if (Kind == PAGES_BF16)
      pages_bring_bf16(x, s, b, w);
    else
      pages_bring_codes<Kind>(x, s, b, w);
  });
}

MLA_DEV void pages_rows(const mla_sm90_args &a, const CUtensorMap *q_map,
                        sm90_state &s) {
  const sm90_brought feed = {};
  uint32_t q_turn = 0;
  sm90_for_pieces(a, [&](const sm90_piece &w) {
    sm90_limits(a, s, w, (int)blockIdx.x * MLA_SM90_ROWS);
    bar_sync(BAR_ALL, 256); /* Q is free */
    if (threadIdx.x == 0) sm90_fetch_q(a, q_map, s, w);
    sm90_attend(a, feed, s, w, q_turn++);
  });
}

template <int Kind>
static __global__ void __launch_bounds__(LISTED_THREADS, 1)
    mla_decode_pages_sm90(const __grid_constant__ CUtensorMap q_map,
                          const __grid_constant__ mla_sm90_pages x) {
  extern __shared__ unsigned char raw[];
  sm90_state s = sm90_begin(raw);
  listed_make_bars(s);
  pdl_launch();
  pdl_wait();
  if (s.side == 2) {
    registers_shrink<LISTED_BRINGER_REGISTERS>();
    pages_bring<Kind>(x, s);
  } else {
    registers_grow<LISTED_ROW_REGISTERS>();
    pages_rows(x.rows, &q_map, s);
  }
}

#endif
