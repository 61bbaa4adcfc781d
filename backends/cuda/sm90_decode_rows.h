/*
 * sm90_decode_rows.h - what a CTA of two warpgroups does with blocks of keys
 * once they lie in shared memory, for decode of width 576/512 on sm_90a.
 *
 * One CTA holds 64 query rows (tokens x heads of a request) and walks 64-key
 * blocks two at a time. Its two warpgroups each own half of the 512 output
 * columns (64 x 256 in registers) and each score one block of the pair:
 *
 *   left:  S0 = Q K0^T, P0, O_left += P0 V0, O_left += P1 V1
 *   right: S1 = Q K1^T, P1, O_right += P0 V0, O_right += P1 V1
 *
 * P0 and P1 change hands through shared memory, in the columns of their block
 * that held rope keys and are dead after the scores. Running maxima go left ->
 * right -> left within a pair. Block 0 is given up first by both, so that it
 * is refilled while block 1 is still in use: the left's next scores then find
 * their keys, and the right's scores run behind them.
 *
 * How keys come is a Feed:
 *   wait(s, buffer, part, parity) for a part: left boxes, right ones, rope
 *   parts                   whether those have three barriers, or one
 *   in_turn                 blocks one by one, below, and not by pairs
 *   mask(s, block, acc)     scores of keys that a row does not see to -inf
 *   clear(s, block)         this side's columns of what lies past the last key
 *   release(s, block, rope) this side is done with its boxes, and with rope
 */
#ifndef MLA_SM90_DECODE_ROWS_H
#define MLA_SM90_DECODE_ROWS_H

#include "sm90_decode_out.h"
#include "sm90_decode_piece.h"

#define SM90_MEMBER __device__ __forceinline__

/* S = Q K^T of one block, as its boxes land. */
template <class Feed>
MLA_DEV void sm90_scores(const sm90_state &s, int buffer, float (&acc)[32]) {
  const uint32_t parity = sm90_phase(s, buffer);
  const uint64_t q = wgmma_rows(s.smem + SM90_Q);
  const uint64_t k = wgmma_rows(sm90_box(s, buffer, 0));
  wgmma_fence();
#pragma unroll
  for (int box = 0; box < 9; box++) {
    if (box == 0 || (Feed::parts && box % 4 == 0))
      Feed::wait(s, buffer, box / 4, parity);
#pragma unroll
    for (int i = 0; i < 4; i++)
      wgmma_m64n64k16_ss(acc, wgmma_at(q, box * SM90_BOX + 32 * i),
                         wgmma_at(k, box * SM90_BOX + 32 * i), box + i > 0);
  }
  wgmma_commit();
}

/* Keys each of the thread's two rows sees, counted from the piece's first. */
MLA_DEV void sm90_limits(const mla_sm90_args &a, sm90_state &s,
                         const sm90_piece &w, int m0) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    int n = w.seq;
    if (a.causal) n += (m0 + s.row + 8 * r) / a.heads + 1 - w.queries;
    s.seen[r] = n - w.block * MLA_SM90_BLOCK;
  }
}

/* Scores of keys past those that a row sees to -inf. */
MLA_DEV void sm90_mask_tail(const sm90_state &s, int block, float (&acc)[32]) {
  const int base = block * MLA_SM90_BLOCK + 2 * (s.thread % 4);
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int seen = s.seen[r] - base;
    if (seen >= MLA_SM90_BLOCK) continue;
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
      for (int i = 0; i < 2; i++)
        if (8 * j + i >= seen) acc[4 * j + 2 * r + i] = MLA_NEG_INF;
  }
}

/* The two rows' maxima, in log2 units. */
MLA_DEV void sm90_tops(const mla_sm90_args &a, const float (&acc)[32],
                       float (&top)[2]) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float best = MLA_NEG_INF;
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
      for (int i = 0; i < 2; i++) best = fmaxf(best, acc[4 * j + 2 * r + i]);
    best = fmaxf(best, MLA_SHFL_XOR(best, 1));
    best = fmaxf(best, MLA_SHFL_XOR(best, 2));
    top[r] = best * a.scale;
  }
}

MLA_DEV void sm90_exp(const mla_sm90_args &a, float (&acc)[32],
                      const float (&top)[2], float (&sum)[2]) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const float base = sm90_base(top[r]) - SM90_P_UP;
    float part = 0;
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float &v = acc[4 * j + 2 * r + i];
        v = sm90_exp2(fmaf(v, a.scale, -base));
        part += v;
      }
    sum[r] += part;
  }
}

MLA_DEV void sm90_rescale(float (&o)[128], const float (&by)[2]) {
  if (by[0] == 1.0f && by[1] == 1.0f) return;
#pragma unroll
  for (int j = 0; j < 32; j++) {
    o[4 * j] *= by[0];
    o[4 * j + 1] *= by[0];
    o[4 * j + 2] *= by[1];
    o[4 * j + 3] *= by[1];
  }
}

/* P into the rope columns of a buffer, swizzled as operand A. A row is 128
   bytes, a buffer begins at 1024: what chooses a chunk comes by exclusive or.
 */
MLA_DEV void sm90_store_p(const sm90_state &s, int buffer,
                          const uint32_t (&p)[4][4]) {
  const int lane = s.thread % 32, row = s.thread / 32 * 16 + lane % 16;
  const uint32_t at = sm90_box(s, buffer, 8) + (uint32_t)(row * 128) +
                      (uint32_t)(((lane / 16) ^ (row & 7)) << 4);
#pragma unroll
  for (int k = 0; k < 4; k++) store_matrices(at ^ (uint32_t)(k << 5), p[k]);
  fence_async();
}

/* O += P V of one block, this side's columns; P in registers or in memory. */
MLA_DEV uint64_t sm90_v(const sm90_state &s, int buffer, int k) {
  return wgmma_columns(sm90_box(s, buffer, 4 * s.side) + k * 2048, SM90_BOX);
}
MLA_DEV void sm90_pv_own(const sm90_state &s, int buffer,
                         const uint32_t (&p)[4][4], float (&o)[128]) {
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; k++)
    wgmma_m64n256k16_rs(o, p[k], sm90_v(s, buffer, k), 1);
  wgmma_commit();
}
MLA_DEV void sm90_pv_other(const sm90_state &s, int buffer, float (&o)[128]) {
  const uint64_t p = wgmma_rows(sm90_box(s, buffer, 8));
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; k++)
    wgmma_m64n256k16_ss(o, p + 2 * k, sm90_v(s, buffer, k), 1);
  wgmma_commit();
}

MLA_DEV uint32_t sm90_max(const sm90_state &s, int which) {
  return s.smem + SM90_MAX + 256 * which + 4 * s.row;
}
/* One side's maxima for the other; each lane that has some arrives. */
MLA_DEV void sm90_put_max(const sm90_state &s, int which,
                          const float (&top)[2]) {
  if (s.thread % 4) return;
  store_shared(sm90_max(s, which), top[0]);
  store_shared(sm90_max(s, which) + 32, top[1]);
  mbar_arrive(sm90_bar(s, SM90_MAX_SET + which));
}
/* A pair has one phase of these, as buffer 0 has; a block of those in turn its
   buffer's. */
MLA_DEV void sm90_get_max(const sm90_state &s, int which, uint32_t parity,
                          float (&top)[2]) {
  mbar_wait(sm90_bar(s, SM90_MAX_SET + which), parity);
  top[0] = load_shared(sm90_max(s, which));
  top[1] = load_shared(sm90_max(s, which) + 32);
}
MLA_DEV void sm90_ratio(const float (&from)[2], const float (&to)[2],
                        float (&by)[2]) {
  by[0] = sm90_exp2(from[0] - sm90_base(to[0]));
  by[1] = sm90_exp2(from[1] - sm90_base(to[1]));
  if (from[0] == to[0]) by[0] = 1.0f;
  if (from[1] == to[1]) by[1] = 1.0f;
}

/* The left warpgroup's half of a pair of blocks (block, block + 1). */
template <class Feed>
MLA_DEV void sm90_left(const mla_sm90_args &a, const Feed &feed, sm90_state &s,
                       const sm90_piece &w, int block, float (&o)[128],
                       float (&top)[2], float (&sum)[2]) {
  const int pair = block + 1 < w.blocks;
  float p[32], top0[2], top1[2], by[2];
  uint32_t packed[4][4];
  sm90_scores<Feed>(s, 0, p);
  wgmma_wait<0>();
  wgmma_hold(p);
  feed.mask(s, block, p);
  sm90_tops(a, p, top0);
  top0[0] = fmaxf(top[0], top0[0]);
  top0[1] = fmaxf(top[1], top0[1]);
  sm90_put_max(s, 0, top0);
  sm90_ratio(top, top0, by);
  sum[0] *= by[0];
  sum[1] *= by[1];
  sm90_exp(a, p, top0, sum);
  sm90_pack_p(p, packed);
  sm90_rescale(o, by);
  feed.clear(s, block);
  sm90_pv_own(s, 0, packed, o);
  sm90_get_max(s, 1, s.phase[0], top1);
  sm90_ratio(top0, top1, by);
  sum[0] *= by[0];
  sum[1] *= by[1];
#pragma unroll
  for (int i = 0; i < 32; i++) p[i] *= by[(i >> 1) & 1];
  uint32_t shared_p[4][4];
  sm90_pack_p(p, shared_p);
  sm90_store_p(s, 0, shared_p);
  bar_arrive(BAR_P0, 256);
  wgmma_wait<0>();
  wgmma_hold(o);
  feed.release(s, block, 0);
  sm90_rescale(o, by);
  top[0] = top1[0];
  top[1] = top1[1];
  bar_sync(BAR_P1, 256);
  if (pair) {
    Feed::wait(s, 1, 0, s.phase[1]);
    feed.clear(s, block + 1);
    sm90_pv_other(s, 1, o);
    wgmma_wait<0>();
    wgmma_hold(o);
    feed.release(s, block + 1, 1);
  }
}

/* The right warpgroup's half. */
template <class Feed>
MLA_DEV void sm90_right(const mla_sm90_args &a, const Feed &feed, sm90_state &s,
                        const sm90_piece &w, int block, float (&o)[128],
                        float (&top)[2], float (&sum)[2]) {
  const int pair = block + 1 < w.blocks;
  float p[32], top0[2], top1[2] = {MLA_NEG_INF, MLA_NEG_INF}, by[2];
  uint32_t packed[4][4];
  if (pair) {
    sm90_scores<Feed>(s, 1, p);
    wgmma_wait<0>();
    wgmma_hold(p);
    feed.mask(s, block + 1, p);
    sm90_tops(a, p, top1);
  }
  sm90_get_max(s, 0, s.phase[0], top0);
  top1[0] = fmaxf(top0[0], top1[0]);
  top1[1] = fmaxf(top0[1], top1[1]);
  sm90_put_max(s, 1, top1);
  sm90_ratio(top, top1, by);
  sum[0] *= by[0];
  sum[1] *= by[1];
  sm90_rescale(o, by);
  top[0] = top1[0];
  top[1] = top1[1];
  if (pair) {
    sm90_exp(a, p, top1, sum);
    sm90_pack_p(p, packed);
    sm90_store_p(s, 1, packed);
  }
  bar_arrive(BAR_P1, 256);
  Feed::wait(s, 0, 1, s.phase[0]);
  bar_sync(BAR_P0, 256);
  feed.clear(s, block);
  sm90_pv_other(s, 0, o);
  if (pair) {
    feed.clear(s, block + 1);
    sm90_pv_own(s, 1, packed, o);
    wgmma_wait<1>();
    feed.release(s, block, 1);
  }
  wgmma_wait<0>();
  wgmma_hold(o);
  feed.release(s, pair ? block + 1 : block, !pair);
}

/* All blocks of a piece; then sums and outputs are this side's. */
template <class Feed>
MLA_DEV void sm90_pairs(const mla_sm90_args &a, const Feed &feed, sm90_state &s,
                        const sm90_piece &w, float (&o)[128], float (&top)[2],
                        float (&sum)[2]) {
  for (int block = 0; block < w.blocks; block += 2) {
    if (s.side == 0)
      sm90_left(a, feed, s, w, block, o, top, sum);
    else
      sm90_right(a, feed, s, w, block, o, top, sum);
    s.phase[0] ^= 1;
    if (block + 1 < w.blocks) s.phase[1] ^= 1;
  }
}

/* ----------------------------------------------------------- one by one */

/* Where keys take longer to bring than to multiply, blocks go in turn: whoever
   scores a block raises the maximum and hands over P as it is then, and both
   multiply and give the block up before the next one, which may still be on
   its way, is looked at. */

/* A block that this side scores. */
template <class Feed>
MLA_DEV void sm90_own(const mla_sm90_args &a, const Feed &feed, sm90_state &s,
                      int block, float (&o)[128], float (&top)[2],
                      float (&sum)[2]) {
  const int buffer = block & 1;
  float p[32], now[2], by[2];
  uint32_t packed[4][4];
  sm90_scores<Feed>(s, buffer, p);
  wgmma_wait<0>();
  wgmma_hold(p);
  feed.mask(s, block, p);
  sm90_tops(a, p, now);
  now[0] = fmaxf(top[0], now[0]);
  now[1] = fmaxf(top[1], now[1]);
  sm90_put_max(s, buffer, now);
  sm90_ratio(top, now, by);
  sum[0] *= by[0];
  sum[1] *= by[1];
  sm90_exp(a, p, now, sum);
  sm90_pack_p(p, packed);
  sm90_store_p(s, buffer, packed);
  mbar_arrive(sm90_bar(s, SM90_P_SET + buffer));
  sm90_rescale(o, by);
  top[0] = now[0];
  top[1] = now[1];
  feed.clear(s, block);
  sm90_pv_own(s, buffer, packed, o);
  wgmma_wait<0>();
  wgmma_hold(o);
  feed.release(s, block, 0);
}

/* A block that the other side has scored. */
template <class Feed>
MLA_DEV void sm90_other(const Feed &feed, sm90_state &s, int block,
                        float (&o)[128], float (&top)[2], float (&sum)[2]) {
  const int buffer = block & 1;
  float now[2], by[2];
  sm90_get_max(s, buffer, sm90_phase(s, buffer), now);
  sm90_ratio(top, now, by);
  sum[0] *= by[0];
  sum[1] *= by[1];
  sm90_rescale(o, by);
  top[0] = now[0];
  top[1] = now[1];
  Feed::wait(s, buffer, s.side, sm90_phase(s, buffer));
  mbar_wait(sm90_bar(s, SM90_P_SET + buffer), sm90_phase(s, buffer));
  feed.clear(s, block);
  sm90_pv_other(s, buffer, o);
  wgmma_wait<0>();
  wgmma_hold(o);
  feed.release(s, block, 1);
}

/* All blocks of a piece: the left's, the right's. */
template <class Feed>
MLA_DEV void sm90_turns(const mla_sm90_args &a, const Feed &feed, sm90_state &s,
                        const sm90_piece &w, float (&o)[128], float (&top)[2],
                        float (&sum)[2]) {
#pragma unroll 1
  for (int block = 0; block < w.blocks; block++) {
    if ((block & 1) == s.side)
      sm90_own(a, feed, s, block, o, top, sum);
    else
      sm90_other(feed, s, block, o, top, sum);
    s.phase[0] ^= ~block & 1;
    s.phase[1] ^= block & 1;
  }
}

/* A piece's blocks from when Q and keys are on their way to what is written;
   q_turn counts the pieces before. */
template <class Feed>
MLA_DEV void sm90_attend(const mla_sm90_args &a, const Feed &feed,
                         sm90_state &s, const sm90_piece &w, uint32_t q_turn) {
  float o[128], top[2] = {MLA_NEG_INF, MLA_NEG_INF}, sum[2] = {0, 0};
  float inv[2], lse[2];
  const int m0 = (int)blockIdx.x * MLA_SM90_ROWS;
#pragma unroll
  for (int i = 0; i < 128; i++) o[i] = 0;
  mbar_wait(sm90_bar(s, SM90_Q_FULL), q_turn & 1);
  if constexpr (Feed::in_turn)
    sm90_turns(a, feed, s, w, o, top, sum);
  else
    sm90_pairs(a, feed, s, w, o, top, sum);
  const sm90_state here = sm90_state_here(s);
  sm90_finish(here, top, sum, inv, lse);
  if (w.whole)
    sm90_put_whole(a, here, w, m0, o, inv, lse);
  else
    sm90_put_part(a, here, w, m0, o, inv, lse);
}

#endif
