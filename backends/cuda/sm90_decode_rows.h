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
 *   full(s, buffer, part)   the barrier of a part: left boxes, right ones, rope
 *   parts                   whether those are three barriers, or one
 *   mask(s, block, acc)     scores of keys that a row does not see to -inf
 *   clear(s, block)         this side's columns of what lies past the last key
 *   release(s, block, rope) this side is done with its boxes, and with rope
 */
#ifndef MLA_SM90_DECODE_ROWS_H
#define MLA_SM90_DECODE_ROWS_H

#include "gpu_num.h"
#include "sm90_async.h"
#include "sm90_decode_plan.h"
#include "sm90_num.h"

#define SM90_MEMBER __device__ __forceinline__

typedef struct mla_sm90_args {
  mla_decode_plan plan;
  const int32_t *table;
  int64_t table_row;
  int heads, page, causal;
  float scale; /* of scores, in log2: scale * log2(e) */
  void *out;
  int64_t o_token, o_head;
  int out_dtype;
  float *lse;
  int64_t lse_token, lse_head;
  int lse_base2;
  const float *sink;
  int64_t sink_step;
  float *part_out;        /* [2 * parts][m blocks][64][512] */
  float *part_lse;        /* [2 * parts][m blocks][64], log2 */
  mla_plan_split *splits; /* [min(parts, requests)] */
} mla_sm90_args;

enum {
  SM90_BOX = 64 * 64 * 2,
  SM90_TILE = 9 * SM90_BOX,
  SM90_Q = 0,
  SM90_K = SM90_TILE,
  SM90_MAX = 3 * SM90_TILE,  /* f32 [2][64]: running maxima */
  SM90_SUM = SM90_MAX + 512, /* f32 [2][64]: sums */
  SM90_BARS = SM90_SUM + 512,
  SM90_IDS = SM90_BARS + 96, /* i32: the piece's first page ids */
  SM90_ID_COUNT = 1920,
  SM90_OUT_ROW = 520,
  SM90_BYTES = SM90_IDS + 4 * SM90_ID_COUNT + 1024 /* room to align */
};

/* Barriers in shared memory: q; a buffer's keys, left, right and rope; the
   maxima of a pair that one side hands to the other; a buffer given up. */
enum {
  SM90_Q_FULL,
  SM90_FULL,
  SM90_MAX_SET = SM90_FULL + 6,
  SM90_EMPTY = SM90_MAX_SET + 2
};
/* Named ones. */
enum { BAR_P0 = 1, BAR_P1, BAR_LEFT, BAR_RIGHT, BAR_ALL };

/* A request's piece of work. */
typedef struct sm90_piece {
  int request, first_token, rows; /* rows: query tokens x heads */
  int queries, seq;  /* of the request; seq counts keys, not listed ones */
  int block, blocks; /* first key block and how many */
  int whole;         /* all of the request's blocks */
  int64_t scratch;
} sm90_piece;

typedef struct sm90_state {
  uint32_t smem;
  float *maxima, *sums, *tile;
  int *ids;
  int side, thread;  /* warpgroup 0 left, 1 right; thread in it */
  int row;           /* of the tile; the second is row + 8 */
  int seen[2];       /* keys the two rows see, from the piece's first */
  uint32_t phase[2]; /* of the K buffers' barriers */
} sm90_state;

MLA_DEV uint32_t sm90_bar(const sm90_state &s, int i) {
  return s.smem + SM90_BARS + 8 * i;
}
MLA_DEV uint32_t sm90_box(const sm90_state &s, int buffer, int box) {
  return s.smem + SM90_K + buffer * SM90_TILE + box * SM90_BOX;
}

/* S = Q K^T of one block, as its boxes land. */
template <class Feed>
MLA_DEV void sm90_scores(const sm90_state &s, int buffer, float (&acc)[32]) {
  const uint32_t parity = s.phase[buffer];
  wgmma_fence();
#pragma unroll
  for (int box = 0; box < 9; box++) {
    if (box == 0 || (Feed::parts && box % 4 == 0))
      mbar_wait(Feed::full(s, buffer, box / 4), parity);
    const uint64_t q = wgmma_rows(s.smem + SM90_Q + box * SM90_BOX);
    const uint64_t k = wgmma_rows(sm90_box(s, buffer, box));
#pragma unroll
    for (int i = 0; i < 4; i++)
      wgmma_m64n64k16_ss(acc, q + 2 * i, k + 2 * i, box + i > 0);
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

/* exp2 against a maximum that may be -inf (nothing seen yet). */
MLA_DEV float sm90_base(float top) {
  return top == MLA_NEG_INF ? 0.0f : top;
}

MLA_DEV void sm90_exp(const mla_sm90_args &a, float (&acc)[32],
                      const float (&top)[2], float (&sum)[2]) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const float base = sm90_base(top[r]);
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

/* P into the rope columns of a buffer, swizzled as operand A. */
MLA_DEV void sm90_store_p(const sm90_state &s, int buffer,
                          const uint32_t (&p)[4][4]) {
  const uint32_t base = sm90_box(s, buffer, 8);
#pragma unroll
  for (int k = 0; k < 4; k++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int row = s.row + 8 * (i & 1), chunk = 2 * k + i / 2;
      const uint32_t at =
          base + row * 128 + ((chunk ^ (row & 7)) << 4) + (s.thread % 4) * 4;
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(p[k][i])
                   : "memory");
    }
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

/* One side's maxima for the other; each lane that has some arrives. */
MLA_DEV void sm90_put_max(const sm90_state &s, int which,
                          const float (&top)[2]) {
  if (s.thread % 4) return;
  s.maxima[64 * which + s.row] = top[0];
  s.maxima[64 * which + s.row + 8] = top[1];
  mbar_arrive(sm90_bar(s, SM90_MAX_SET + which));
}
/* A pair has one phase of these, as buffer 0 has. */
MLA_DEV void sm90_get_max(const sm90_state &s, int which, float (&top)[2]) {
  mbar_wait(sm90_bar(s, SM90_MAX_SET + which), s.phase[0]);
  top[0] = s.maxima[64 * which + s.row];
  top[1] = s.maxima[64 * which + s.row + 8];
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
  sm90_get_max(s, 1, top1);
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
    mbar_wait(Feed::full(s, 1, 0), s.phase[1]);
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
  sm90_get_max(s, 0, top0);
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
  mbar_wait(Feed::full(s, 0, 1), s.phase[0]);
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

/* Sums of the two sides join; then 1 / total and the row's lse, log2. */
MLA_DEV void sm90_finish(const sm90_state &s, const float (&top)[2],
                         float (&sum)[2], float (&inv)[2], float (&lse)[2]) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    sum[r] += MLA_SHFL_XOR(sum[r], 1);
    sum[r] += MLA_SHFL_XOR(sum[r], 2);
    if (s.thread % 4 == 0) s.sums[64 * s.side + s.row + 8 * r] = sum[r];
  }
  bar_sync(BAR_ALL, 256);
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int row = s.row + 8 * r;
    const float total = s.sums[row] + s.sums[64 + row];
    const int empty = top[r] == MLA_NEG_INF;
    inv[r] = empty ? 0.0f : 1.0f / total;
    lse[r] = empty ? MLA_NEG_INF : top[r] + log2f(total);
  }
}

/* Four numbers to an address that is a multiple of four elements. */
MLA_DEV void sm90_put4(void *out, int dtype, int64_t at, float4 v) {
  if (dtype == MLA_F32) {
    *(float4 *)((float *)out + at) = v;
  } else if (dtype == MLA_BF16) {
    *(uint2 *)((uint16_t *)out + at) =
        make_uint2(sm90_pack(v.x, v.y), sm90_pack(v.z, v.w));
  } else {
    uint16_t *to = (uint16_t *)out + at;
    to[0] = mla_float_to_f16(v.x);
    to[1] = mla_float_to_f16(v.y);
    to[2] = mla_float_to_f16(v.z);
    to[3] = mla_float_to_f16(v.w);
  }
}

/* What the sink leaves of a row's weights; lse in log2. */
MLA_DEV float sm90_sink(const mla_sm90_args &a, int64_t head, float lse) {
  if (!a.sink || lse == MLA_NEG_INF) return 1.0f;
  return 1.0f / (1.0f + exp2f(a.sink[head * a.sink_step] * MLA_LOG2_E - lse));
}

MLA_DEV void sm90_put_lse(const mla_sm90_args &a, int64_t token, int64_t head,
                          float lse) {
  if (a.lse)
    a.lse[token * a.lse_token + head * a.lse_head] =
        a.lse_base2 ? lse : lse * MLA_LN_2;
}

/* The tile into shared memory, where Q and K were: rows of 520 floats. */
MLA_DEV void sm90_stage(const sm90_state &s, const float (&o)[128],
                        const float (&inv)[2], const float (&lse)[2]) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int row = s.row + 8 * r;
    float *to = s.tile + row * SM90_OUT_ROW + 256 * s.side + 2 * (s.thread % 4);
#pragma unroll
    for (int j = 0; j < 32; j++)
      *(float2 *)(to + 8 * j) =
          make_float2(o[4 * j + 2 * r] * inv[r], o[4 * j + 2 * r + 1] * inv[r]);
    if (s.side == 0 && s.thread % 4 == 0) s.maxima[row] = lse[r];
  }
  bar_sync(BAR_ALL, 256);
}

/* A warp writes every eighth row, whole rows at a time. */
MLA_DEV void sm90_write(const mla_sm90_args &a, const sm90_state &s,
                        const sm90_piece &w, int m0) {
#pragma unroll 1
  for (int i = (int)threadIdx.x / 32; i < 64; i += 8) {
    const int row = m0 + i;
    if (row >= w.rows) break;
    const int64_t token = w.first_token + row / a.heads, head = row % a.heads;
    const float lse = s.maxima[i];
    const float keep = w.whole ? sm90_sink(a, head, lse) : 1.0f;
    const int64_t scratch = (w.scratch * gridDim.x + blockIdx.x) * 64 + i;
    void *out = w.whole ? a.out : (void *)a.part_out;
    const int dtype = w.whole ? a.out_dtype : (int)MLA_F32;
    const int64_t at =
        w.whole ? token * a.o_token + head * a.o_head : scratch * 512;
#pragma unroll 1
    for (int d = 4 * MLA_LANE; d < 512; d += 128) {
      float4 v = *(const float4 *)(s.tile + i * SM90_OUT_ROW + d);
      v.x *= keep, v.y *= keep, v.z *= keep, v.w *= keep;
      sm90_put4(out, dtype, at + d, v);
    }
    if (MLA_LANE) continue;
    if (w.whole)
      sm90_put_lse(a, token, head, lse);
    else
      a.part_lse[scratch] = lse;
  }
  fence_async(); /* the copy engine fills this memory next */
}

/* Q's boxes on their way, by one thread. */
MLA_DEV void sm90_fetch_q(const mla_sm90_args &a, const CUtensorMap *map,
                          const sm90_state &s, const sm90_piece &w) {
  mbar_expect(sm90_bar(s, SM90_Q_FULL), SM90_TILE);
#pragma unroll 1
  for (int i = 0; i < 9; i++)
    tma_load_2d(s.smem + SM90_Q + i * SM90_BOX, map, i * 64,
                w.first_token * a.heads + (int)blockIdx.x * MLA_SM90_ROWS,
                sm90_bar(s, SM90_Q_FULL));
}

/* A piece's blocks from when Q and keys are on their way to what is written;
   q_turn counts the pieces before that had blocks. */
template <class Feed>
MLA_DEV void sm90_attend(const mla_sm90_args &a, const Feed &feed,
                         sm90_state &s, const sm90_piece &w, int q_turn) {
  float o[128], top[2] = {MLA_NEG_INF, MLA_NEG_INF}, sum[2] = {0, 0};
  float inv[2], lse[2];
#pragma unroll
  for (int i = 0; i < 128; i++) o[i] = 0;
  if (w.blocks) mbar_wait(sm90_bar(s, SM90_Q_FULL), (uint32_t)q_turn & 1);
  sm90_pairs(a, feed, s, w, o, top, sum);
  sm90_finish(s, top, sum, inv, lse);
  sm90_stage(s, o, inv, lse);
  sm90_write(a, s, w, (int)blockIdx.x * MLA_SM90_ROWS);
}

/* Request b's piece in this CTA's part [from, to); its place begins there. */
MLA_DEV sm90_piece sm90_make_piece(const mla_sm90_args &a, int b, int begin,
                                   int from, int to, int share) {
  const mla_decode_plan &p = a.plan;
  sm90_piece w;
  const int all = mla_plan_blocks(p, b);
  const int part = (int)blockIdx.y;
  const int first = mla_plan_first(begin, share);
  w.request = b;
  w.first_token = mla_plan_token(p, b);
  w.queries = mla_plan_token(p, b + 1) - w.first_token;
  w.rows = w.queries * a.heads;
  w.seq = p.lists.width ? 0 : p.seq_lens[b * p.seq_lens_step];
  w.block = from > begin ? from - begin : 0;
  const int end = to - begin < all ? to - begin : all;
  w.blocks = end > w.block ? end - w.block : 0;
  w.whole = first == mla_plan_last(begin, all, share);
  w.scratch = mla_plan_piece(part, first);
  /* A part may hold nothing of a request but its fixed cost. */
  if (w.block >= all && !(all == 0 && part == first)) w.rows = 0;
  return w;
}

/* Each piece of this CTA's part that has rows for it. One thread of the grid
   a part tells the merge what is split: an entry a request, or a part where
   parts are fewer. */
template <class Body>
MLA_DEV void sm90_for_pieces(const mla_sm90_args &a, Body body) {
  const mla_plan_place at = mla_plan_of_part(a.plan, (int)blockIdx.y);
  const int from = (int)blockIdx.y * at.share;
  const int to = from + at.share < at.total ? from + at.share : at.total;
  const int tells = blockIdx.x == 0 && threadIdx.x == 0;
  const int by_part = a.plan.parts < a.plan.requests;
  int begin = at.begin;
  if (tells && by_part) a.splits[blockIdx.y] = {0, 0, 0, 0};
  for (int b = at.request; b < a.plan.requests && begin < to; b++) {
    const sm90_piece w = sm90_make_piece(a, b, begin, from, to, at.share);
    if (tells && begin >= from && !(by_part && w.whole))
      a.splits[by_part ? (int)blockIdx.y : b] = {
          w.first_token, w.whole ? 0 : w.rows, (int)blockIdx.y,
          mla_plan_last(begin, mla_plan_blocks(a.plan, b), at.share)};
    if ((int)blockIdx.x * MLA_SM90_ROWS < w.rows) body(w);
    begin += mla_plan_blocks(a.plan, b) + MLA_SM90_COST;
  }
}

/* The CTA's shared memory, laid out; barriers are still to be made. */
MLA_DEV sm90_state sm90_begin(unsigned char *raw) {
  sm90_state s;
  s.smem = (smem_address(raw) + 1023) & ~1023u;
  unsigned char *base = raw + (s.smem - smem_address(raw));
  s.maxima = (float *)(base + SM90_MAX);
  s.sums = (float *)(base + SM90_SUM);
  s.ids = (int *)(base + SM90_IDS);
  s.tile = (float *)base;
  s.side = (int)threadIdx.x / 128;
  s.thread = (int)threadIdx.x % 128;
  s.row = s.thread / 32 * 16 + s.thread % 32 / 4;
  s.phase[0] = s.phase[1] = 0;
  return s;
}

/* Barriers of both feeds: q, and maxima, which 32 lanes of a side have. */
MLA_DEV void sm90_make_bars(const sm90_state &s) {
  mbar_init(sm90_bar(s, SM90_Q_FULL), 1);
  mbar_init(sm90_bar(s, SM90_MAX_SET), 32);
  mbar_init(sm90_bar(s, SM90_MAX_SET + 1), 32);
}

#endif
