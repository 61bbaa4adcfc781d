/*
 * sm90_decode_piece.h - the pieces of requests that a CTA works on, one after
 * another.
 */
#ifndef MLA_SM90_DECODE_PIECE_H
#define MLA_SM90_DECODE_PIECE_H

#include "sm90_decode_state.h"

/* Request b's piece in this CTA's part [from, to); its place begins there, and
   no request goes beyond the last part. */
MLA_DEV sm90_piece sm90_make_piece(const mla_sm90_args &a,
                                   const mla_plan_request &r, int b, int begin,
                                   int from, int to) {
  sm90_piece w;
  const int part = (int)blockIdx.y;
  const int begins = begin >= from; /* and not in a part before */
  const int stretch = r.blocks > 0 ? r.blocks : 1;
  w.request = b;
  w.first_token = r.token;
  w.queries = r.end_token - r.token;
  w.rows = w.queries * a.heads;
  w.seq = r.seq;
  w.block = begins ? 0 : from - begin;
  const int end = to - begin < r.blocks ? to - begin : r.blocks;
  w.blocks = end > w.block ? end - w.block : 0;
  w.whole = begins && begin + stretch <= to;
  w.scratch = mla_plan_piece(part, begins);
  /* A part may hold nothing of a request but its fixed cost. */
  if (w.block >= r.blocks && !(r.blocks == 0 && begins)) w.rows = 0;
  return w;
}

/* Each piece that has rows for this CTA of its part, which begins `at`. One
   thread of the grid a part tells the merge what is split: an entry a request,
   or a part where parts are fewer. */
template <int Rows = MLA_SM90_ROWS, class Place, class Body>
MLA_DEV void sm90_for_pieces(const mla_sm90_args &a, const Place &at,
                             Body body) {
  const int from = (int)blockIdx.y * at.share;
  const int to = from + at.share < at.total ? from + at.share : at.total;
  const int tells = blockIdx.x == 0 && threadIdx.x == 0;
  const int by_part = a.plan.parts < a.plan.requests;
  int begin = at.begin;
  if (tells && by_part) a.splits[blockIdx.y] = {0, 0, 0, 0};
  mla_plan_request r = at.of;
  for (int b = at.request; b < a.plan.requests && begin < to; b++) {
    const sm90_piece w = sm90_make_piece(a, r, b, begin, from, to);
    if (tells && begin >= from && !(by_part && w.whole))
      a.splits[by_part ? (int)blockIdx.y : b] = {
          w.first_token, w.whole ? 0 : w.rows, (int)blockIdx.y,
          mla_plan_last(begin, r.blocks, at.share)};
    begin += mla_plan_on(at, r.blocks);
    /* The next one's numbers come while this one is worked on. */
    r = mla_plan_request_of(a.plan, begin < to ? b + 1 : a.plan.requests);
    if ((int)blockIdx.x * Rows < w.rows) body(w);
  }
}

/* Q on its way, by one thread. */
MLA_DEV void sm90_fetch_q(const mla_sm90_args &a, const CUtensorMap *map,
                          const sm90_state &s, const sm90_piece &w) {
  mbar_expect(sm90_bar(s, SM90_Q_FULL), SM90_TILE);
  tma_load_3d(s.smem + SM90_Q, map, 0,
              w.first_token * a.heads + (int)blockIdx.x * MLA_SM90_ROWS, 0,
              sm90_bar(s, SM90_Q_FULL));
}

#endif
