/*
 * sm90_boxed_keys.h - one warp brings the keys of a paged bf16 cache, and Q,
 * by the copy engine, for sm_90a. The nine 64 x 64 boxes of a block come under
 * three barriers, and are given up as three: left, right, rope.
 *
 * The warp is as fast as its instructions are few: places are counted on, not
 * divided for, and ids are loaded two blocks before they are needed.
 */
#ifndef MLA_SM90_BOXED_KEYS_H
#define MLA_SM90_BOXED_KEYS_H

#include "sm90_decode_piece.h"

/* Keys: as many boxes at once as a page allows; rope: one. */
typedef struct boxed_maps {
  const CUtensorMap *q, *keys, *rope;
} boxed_maps;

/* How pages and blocks of 64 keys go into each other: one of both is 1. */
typedef struct boxed_bringer {
  int pages, blocks; /* pages a block; blocks a page */
  int pieces;        /* so far */
  uint32_t uses;     /* of each buffer so far, odd or even: a bit each */
} boxed_bringer;

MLA_DEV boxed_bringer boxed_begin(int page) {
  boxed_bringer b = {1, 1, 0, 0};
  if (page < MLA_SM90_BLOCK)
    b.pages = MLA_SM90_BLOCK / page;
  else
    b.blocks = page / MLA_SM90_BLOCK;
  return b;
}

/* Where the next block lies whose ids are to be loaded. */
typedef struct boxed_place {
  const int32_t *row; /* of the table */
  int page, last;     /* page, and the request's last */
  int block;          /* of a long page */
} boxed_place;

/* Of a block: lane i has the id of its page i; where in a long page it is. */
typedef struct boxed_block {
  int id, row;
} boxed_block;

/* Pages past the last key are not looked up: the last one stands in. */
MLA_DEV boxed_block boxed_next(const boxed_bringer &b, boxed_place &p) {
  const int near = MLA_LANE < b.pages ? MLA_LANE : 0;
  const int page = p.page + near < p.last ? p.page + near : p.last;
  const boxed_block x = {p.row[page], p.block * MLA_SM90_BLOCK};
  p.block++;
  if (p.block == b.blocks) p.page += b.pages, p.block = 0;
  return x;
}

MLA_DEV boxed_place boxed_first(const mla_sm90_args &a, const boxed_bringer &b,
                                const sm90_piece &w) {
  boxed_place p = {a.table + w.request * a.table_row, 0, 0, 0};
  p.page = w.block / b.blocks * b.pages;
  p.block = w.block % b.blocks;
  p.last = (w.seq - 1) / a.page;
  return p;
}

MLA_DEV void boxed_fetch_q(const mla_sm90_args &a, const CUtensorMap *map,
                           const sm90_state &s, const sm90_piece &w,
                           const boxed_bringer &b) {
  mbar_wait(sm90_bar(s, SM90_Q_EMPTY), (uint32_t)~b.pieces & 1);
  if (MLA_LANE == 0) sm90_fetch_q(a, map, s, w);
}

/* Boxes of a part of a block with short pages come page by page, and one by
   one: their rows are not all of a box. */
MLA_DEV void boxed_fetch_short(const mla_sm90_args &a, const CUtensorMap *map,
                               const sm90_state &s, const boxed_bringer &b,
                               int id, int from, int boxes, uint32_t to,
                               uint32_t bar) {
#pragma unroll 1
  for (int p = 0; p < b.pages; p++) {
    const int page = MLA_SHFL(id, p);
#pragma unroll 1
    for (int i = 0; i < boxes; i++)
      if (MLA_LANE == 0)
        tma_load_4d(to + i * SM90_BOX + p * a.page * 128, map, 0, 0, from + i,
                    page, bar, l2_goes_first());
  }
}

MLA_DEV void boxed_fetch(const mla_sm90_args &a, const boxed_maps &maps,
                         const sm90_state &s, boxed_bringer &b, int buffer,
                         const boxed_block &x) {
  const uint32_t parity = (b.uses >> buffer & 1) ^ 1;
#pragma unroll
  for (int part = 0; part < 3; part++) {
    const int boxes = part < 2 ? 4 : 1;
    const CUtensorMap *map = part < 2 ? maps.keys : maps.rope;
    const uint32_t bar = sm90_bar(s, SM90_FULL + 3 * buffer + part);
    const uint32_t to = sm90_box(s, buffer, 4 * part);
    mbar_wait(sm90_bar(s, SM90_EMPTY + 3 * buffer + part), parity);
    if (MLA_LANE == 0) mbar_expect(bar, (uint32_t)(boxes * SM90_BOX));
    if (b.pages > 1)
      boxed_fetch_short(a, map, s, b, x.id, 4 * part, boxes, to, bar);
    else if (MLA_LANE == 0)
      tma_load_4d(to, map, 0, x.row, 4 * part, x.id, bar, l2_goes_first());
  }
  b.uses ^= 1u << buffer;
}

/* A piece: its Q where it is free first, which is behind two blocks of keys
   but at the very beginning. */
MLA_DEV void boxed_bring(const mla_sm90_args &a, const boxed_maps &maps,
                         const sm90_state &s, const sm90_piece &w,
                         boxed_bringer &b) {
  const int near = w.blocks < 2 ? w.blocks : 2;
  const int q_at = b.pieces ? near : 0;
  boxed_block now = {0, 0}, next = {0, 0};
  boxed_place p = {NULL, 0, 0, 0};
  if (w.blocks) {
    p = boxed_first(a, b, w);
    now = boxed_next(b, p);
    next = boxed_next(b, p);
  }
#pragma unroll 1
  for (int i = 0; i <= w.blocks; i++) {
    if (i == q_at) boxed_fetch_q(a, maps.q, s, w, b);
    if (i == w.blocks) break;
    const boxed_block after = boxed_next(b, p);
    boxed_fetch(a, maps, s, b, i & 1, now);
    now = next;
    next = after;
  }
  b.pieces++;
}

#endif
