/*
 * sm90_narrow_keys.h - one warp brings Q and keys of requests' pages by the
 * copy engine, where a CTA has few rows: eight lanes, a group of 8 keys each,
 * whose page they look up two blocks ahead.
 */
#ifndef MLA_SM90_NARROW_KEYS_H
#define MLA_SM90_NARROW_KEYS_H

#include "sm90_narrow_state.h"

typedef struct narrow_maps {
  const CUtensorMap *q, *keys;
} narrow_maps;

/* A group's page, and its first row in it. */
typedef struct narrow_place {
  int id, row;
} narrow_place;

/* Of this lane's group of a block of the request; none is looked up past the
   last key, nor in practice. */
MLA_DEV narrow_place narrow_find(const mla_sm90_args &a, const sm90_piece &w,
                                 int block, int practice) {
  const int key = block * MLA_SM90_BLOCK + MLA_LANE % 8 * NARROW_KEYS;
  const int at = key < w.seq ? key : (w.seq - 1) / NARROW_KEYS * NARROW_KEYS;
  const int page = a.page == MLA_SM90_BLOCK ? at / MLA_SM90_BLOCK : at / a.page;
  const int32_t *id = a.table + w.request * a.table_row + page;
  return {practice ? 0 : *id, at - page * a.page};
}

MLA_DEV void narrow_fetch(const narrow_maps &maps, const narrow_state &s,
                          const narrow_place &at, int practice) {
  const uint32_t bar = narrow_bar(s, NARROW_FULL + narrow_buffer(s));
  if (practice) return;
  mbar_wait(narrow_bar(s, NARROW_EMPTY + narrow_buffer(s)),
            narrow_parity(s) ^ 1);
  if (MLA_LANE == 0) mbar_expect(bar, NARROW_BLOCK);
  __syncwarp();
  if (MLA_LANE < 8)
    tma_load_4d(narrow_block_at(s) + MLA_LANE * NARROW_GROUP, maps.keys, 0,
                at.row, 0, at.id, bar, l2_goes_first());
}

template <int Rows>
MLA_DEV void narrow_fetch_q(const mla_sm90_args &a, const CUtensorMap *map,
                            const narrow_state &s, const sm90_piece &w,
                            int practice) {
  typedef narrow_of<Rows> S;
  const uint32_t bar = narrow_bar(s, NARROW_Q_FULL);
  if (practice) return;
  mbar_wait(narrow_bar(s, NARROW_Q_EMPTY), ~s.pieces & 1);
  if (MLA_LANE) return;
  mbar_expect(bar, 9 * S::QBox);
  tma_load_3d(s.smem + S::Q, map, 0,
              w.first_token * a.heads + narrow_first<Rows>(), 0, bar);
}

/* A piece: its Q first at the very beginning, and else behind two blocks. In
   practice nothing is loaded. */
template <int Rows>
MLA_DEV void narrow_bring(const mla_sm90_args &a, const narrow_maps &maps,
                          narrow_state &s, const sm90_piece &w, int practice) {
  const int near = w.blocks < 2 ? w.blocks : 2;
  const int q_at = s.pieces ? near : 0;
  narrow_place now = {0, 0}, next = {0, 0};
  if (w.blocks) {
    now = narrow_find(a, w, w.block, practice);
    next = narrow_find(a, w, w.block + 1, practice);
  }
#pragma unroll 1
  for (int i = 0; i <= w.blocks; i++) {
    if (i == q_at) narrow_fetch_q<Rows>(a, maps.q, s, w, practice);
    if (i == w.blocks) break;
    const narrow_place after = narrow_find(a, w, w.block + i + 2, practice);
    narrow_fetch(maps, s, now, practice);
    s.blocks++;
    now = next;
    next = after;
  }
  s.pieces++;
}

#endif
