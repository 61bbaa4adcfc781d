/*
 * mla_prefill_bf16_sm90.cuh - prefill attention, bf16 or f16, keys 128 + 64
 * wide and values 128, for sm_90a. Keys and values are up-projected before
 * (mla_product_bf16_sm90).
 *
 * A CTA stays on its SM and walks its share of the work. One warpgroup brings
 * tiles by the copy engine, two own 64 query rows each. Key blocks are taken
 * from the last, the only one with a mask, to the first. A warpgroup issues
 * the scores of the next block before the values of this one, and the two
 * take turns issuing, so that exponentials of one hide behind products of the
 * other.
 *
 * Parts: keys come in several launches, the new tokens', then the context's
 * from its end to its beginning; between them rows keep their sums as they are
 * in registers, so that their bits do not depend on how the context was cut.
 */
#ifndef MLA_PREFILL_BF16_SM90_CUH
#define MLA_PREFILL_BF16_SM90_CUH

#include "gpu_num.h"
#include "sm90_async.h"
#include "sm90_num.h"
#include "sm90_prefill_plan.h"

typedef struct mla_prefill_sm90_args {
  mla_prefill_plan plan;
  int *counter; /* of work handed out beyond the first of each CTA */
  int causal;
  float scale; /* of scores, in log2: scale * log2(e) */
  void *out;
  int64_t o_token, o_head;
  int out_dtype;
  int out_pairs, out_chunks; /* it can be written by two, by 16 bytes */
  float *lse;
  int64_t lse_token, lse_head;
  int lse_base2;
  const float *sink;
  int64_t sink_step;
  float *kept; /* [token][head of this launch][PREFILL_KEPT]; or NULL */
} mla_prefill_sm90_args;

enum {
  PREFILL_BOX = 128 * 64 * 2,
  PREFILL_K = 3 * PREFILL_BOX,
  PREFILL_V = PREFILL_K + 2 * 3 * PREFILL_BOX,
  PREFILL_BARS = PREFILL_V + 2 * 2 * PREFILL_BOX,
  PREFILL_WORK = PREFILL_BARS + 128,             /* prefill_work [2] */
  PREFILL_OUT = PREFILL_WORK + 64,               /* a warp's 16 rows, half */
  PREFILL_BYTES = PREFILL_OUT + 8 * 2048 + 1024, /* room to align */
  PREFILL_THREADS = 384,
  PREFILL_KEPT = 128 + 8 /* floats of a row: sums, four totals, the maximum */
};
static_assert(2 * sizeof(prefill_work) <= 64, "there is room for them");
/* Barriers in memory: one pair for q, a pair a stage for K, V and work. */
enum {
  PREFILL_Q_FULL,
  PREFILL_Q_EMPTY,
  PREFILL_K_FULL,
  PREFILL_K_EMPTY = PREFILL_K_FULL + 2,
  PREFILL_V_FULL = PREFILL_K_EMPTY + 2,
  PREFILL_V_EMPTY = PREFILL_V_FULL + 2,
  PREFILL_WORK_FULL = PREFILL_V_EMPTY + 2,
  PREFILL_WORK_EMPTY = PREFILL_WORK_FULL + 2,
  PREFILL_BAR_COUNT = PREFILL_WORK_EMPTY + 2
};
/* Named barriers: whose turn it is to issue, and a warpgroup's own. */
enum { BAR_TURN = 1, BAR_OWN = 3 };

MLA_DEV uint32_t prefill_bar(uint32_t smem, int i) {
  return smem + PREFILL_BARS + 8 * i;
}
MLA_DEV uint32_t prefill_k(uint32_t smem, int stage) {
  return smem + PREFILL_K + stage * 3 * PREFILL_BOX;
}
MLA_DEV uint32_t prefill_v(uint32_t smem, int stage) {
  return smem + PREFILL_V + stage * 2 * PREFILL_BOX;
}

MLA_DEV prefill_work *prefill_slots(uint32_t smem) {
  return (prefill_work *)__cvta_shared_to_generic(smem + PREFILL_WORK);
}

/* Whether rows see no more of the part's keys than their own place. */
MLA_DEV int prefill_diagonal(const mla_prefill_sm90_args &a) {
  return a.causal && !a.plan.chunk;
}
/* Key blocks that a tile sees. */
MLA_DEV int prefill_blocks(const mla_prefill_sm90_args &a,
                           const prefill_work &w) {
  return prefill_diagonal(a) ? w.tile + 1 : (w.key_count + 127) / 128;
}

/* ---------------------------------------------------------------- bringer */

struct prefill_maps {
  const CUtensorMap *q, *up, *rope;
};

/* A stage becomes free, then is filled; n counts its uses over all work. */
MLA_DEV void prefill_bring_k(uint32_t smem, const prefill_maps &m, int n,
                             int key, int head) {
  const int stage = n & 1;
  const uint32_t full = prefill_bar(smem, PREFILL_K_FULL + stage);
  const uint32_t to = prefill_k(smem, stage);
  mbar_wait(prefill_bar(smem, PREFILL_K_EMPTY + stage), ((n >> 1) & 1) ^ 1);
  mbar_expect(full, 3 * PREFILL_BOX);
  tma_load_3d(to, m.up, 0, head, key, full);
  tma_load_3d(to + PREFILL_BOX, m.up, 64, head, key, full);
  tma_load_2d(to + 2 * PREFILL_BOX, m.rope, 0, key, full);
}
MLA_DEV void prefill_bring_v(uint32_t smem, const prefill_maps &m, int n,
                             int key, int head) {
  const int stage = n & 1;
  const uint32_t full = prefill_bar(smem, PREFILL_V_FULL + stage);
  const uint32_t to = prefill_v(smem, stage);
  mbar_wait(prefill_bar(smem, PREFILL_V_EMPTY + stage), ((n >> 1) & 1) ^ 1);
  mbar_expect(full, 2 * PREFILL_BOX);
  tma_load_3d(to, m.up, 128, head, key, full);
  tma_load_3d(to + PREFILL_BOX, m.up, 192, head, key, full);
}
MLA_DEV void prefill_bring_q(uint32_t smem, const prefill_maps &m, int n,
                             int row, int head) {
  const uint32_t full = prefill_bar(smem, PREFILL_Q_FULL);
  mbar_wait(prefill_bar(smem, PREFILL_Q_EMPTY), (n & 1) ^ 1);
  mbar_expect(full, 3 * PREFILL_BOX);
  for (int i = 0; i < 3; i++)
    tma_load_3d(smem + i * PREFILL_BOX, m.q, i * 64, head, row, full);
}

/* Tells the warpgroups; length 0: there is no more. */
MLA_DEV void prefill_tell(uint32_t smem, int turn, const prefill_work &w) {
  const int slot = turn & 1;
  mbar_wait(prefill_bar(smem, PREFILL_WORK_EMPTY + slot),
            ((turn >> 1) & 1) ^ 1);
  prefill_slots(smem)[slot] = w;
  mbar_arrive(prefill_bar(smem, PREFILL_WORK_FULL + slot));
}

MLA_DEV void prefill_bring_tile(const mla_prefill_sm90_args &a, uint32_t smem,
                                const prefill_maps &m, const prefill_work &w,
                                int turn, int &n) {
  const int blocks = prefill_blocks(a, w);
  prefill_bring_q(smem, m, turn, w.first + w.tile * PREFILL_TILE, w.head);
  for (int j = blocks - 1; j >= 0; j--, n++) {
    prefill_bring_k(smem, m, n, w.keys + j * 128, w.head);
    if (j < blocks - 1)
      prefill_bring_v(smem, m, n - 1, w.keys + (j + 1) * 128, w.head);
  }
  prefill_bring_v(smem, m, n - 1, w.keys, w.head);
}

/* Each CTA begins with work of its own; the rest goes to whoever is free. */
MLA_DEV void prefill_bring(const mla_prefill_sm90_args &a, uint32_t smem,
                           const prefill_maps &m) {
  const prefill_sums sums = prefill_count(a.plan);
  const int all = sums.tiles * a.plan.heads;
  int n = 0, turn = 0, next = (int)blockIdx.x; /* n: blocks so far */
  for (; next < all; turn++) {
    const prefill_work w = prefill_find(a.plan, sums, next);
    if (MLA_LANE == 0) {
      next = (int)gridDim.x + atomicAdd(a.counter, 1);
      prefill_tell(smem, turn, w);
      prefill_bring_tile(a, smem, m, w, turn, n);
    }
    next = MLA_SHFL(next, 0);
  }
  const prefill_work none = {};
  if (MLA_LANE == 0) prefill_tell(smem, turn, none);
}

/* ------------------------------------------------------------- warpgroups */

typedef struct prefill_state {
  uint32_t smem;
  int side, thread;
  int row;      /* of the tile; the second is row + 8 */
  float top[2]; /* running maxima, in log2 */
  float sum[2]; /* this thread's part of the sums */
} prefill_state;

MLA_DEV void prefill_issue_scores(const prefill_state &s, int stage,
                                  float (&acc)[64]) {
  const uint64_t q = wgmma_rows(s.smem + s.side * (PREFILL_BOX / 2));
  const uint64_t k = wgmma_rows(prefill_k(s.smem, stage));
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < 12; i++) {
    const int at = i / 4 * (PREFILL_BOX / 16) + i % 4 * 2; /* 16 bytes each */
    wgmma_m64n128k16_ss(acc, q + at, k + at, i > 0);
  }
  wgmma_commit();
}

MLA_DEV void prefill_issue_values(const prefill_state &s, int stage,
                                  const uint32_t (&p)[8][4], int accumulate,
                                  float (&o)[64]) {
  const uint64_t v = wgmma_columns(prefill_v(s.smem, stage), PREFILL_BOX);
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < 8; k++)
    wgmma_m64n128k16_rs(o, p[k], v + k * (2048 / 16), accumulate || k > 0);
  wgmma_commit();
}

/* Scores of keys that a row does not see. */
MLA_DEV void prefill_mask(const mla_prefill_sm90_args &a,
                          const prefill_state &s, const prefill_work &w,
                          int block, float (&acc)[64]) {
  const int left = w.key_count - block * 128; /* keys of the request */
#pragma unroll
  for (int r = 0; r < 2; r++) {
    int seen = left;
    if (prefill_diagonal(a)) seen = min(seen, s.row + 8 * r + 1);
    seen -= 2 * (s.thread % 4);
#pragma unroll
    for (int j = 0; j < 16; j++)
#pragma unroll
      for (int i = 0; i < 2; i++)
        if (8 * j + i >= seen) acc[4 * j + 2 * r + i] = MLA_NEG_INF;
  }
}

/* Scores to exponentials; how much what came before shrinks. */
MLA_DEV void prefill_softmax(const mla_prefill_sm90_args &a, prefill_state &s,
                             float (&acc)[64], float (&shrink)[2]) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float best = acc[2 * r];
#pragma unroll
    for (int j = 0; j < 16; j++)
      best = fmaxf(best, fmaxf(acc[4 * j + 2 * r], acc[4 * j + 2 * r + 1]));
    best = fmaxf(best, MLA_SHFL_XOR(best, 1));
    best = fmaxf(best, MLA_SHFL_XOR(best, 2));
    const float top = fmaxf(s.top[r], best * a.scale);
    shrink[r] = sm90_exp2(s.top[r] - top);
    s.top[r] = top;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 16; j++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float &x = acc[4 * j + 2 * r + i];
        x = sm90_exp2(fmaf(x, a.scale, -(top - SM90_P_UP)));
        sum += x;
      }
    s.sum[r] = s.sum[r] * shrink[r] + sum;
  }
}

/* Values behind the request's last key are others': 0 x NaN must not count. */
MLA_DEV void prefill_clear_tail(const prefill_state &s, int stage, int left) {
  unsigned char *v =
      (unsigned char *)__cvta_shared_to_generic(prefill_v(s.smem, stage));
  for (int i = left * 8 + s.thread; i < 128 * 8; i += 128) {
    *(uint4 *)(void *)(v + i * 16) = make_uint4(0, 0, 0, 0);
    *(uint4 *)(void *)(v + PREFILL_BOX + i * 16) = make_uint4(0, 0, 0, 0);
  }
  fence_async();
  bar_sync(BAR_OWN + s.side, 128);
}

/* One thread speaks for its warpgroup. */
MLA_DEV void prefill_give(const prefill_state &s, int bar) {
  if (s.thread == 0) mbar_arrive(prefill_bar(s.smem, bar));
}

/* Where row r of this thread goes, from the thread's first column on. */
MLA_DEV int64_t prefill_out_row(const mla_prefill_sm90_args &a,
                                const prefill_work &w, int row) {
  return (int64_t)(w.first + row) * a.o_token + w.head * a.o_head;
}

/* 16-bit outputs: a warp turns its 16 rows round, half of their columns at a
   time, and writes eight lanes a row. */
MLA_DEV void prefill_put_chunks(const mla_prefill_sm90_args &a,
                                const prefill_state &s, const prefill_work &w,
                                const float (&by)[2], const float (&o)[64]) {
  const int lane = s.thread % 32, warp = s.thread / 32, line = lane % 16;
  const uint32_t own = s.smem + PREFILL_OUT + (4 * s.side + warp) * 2048;
  const int row0 = w.tile * PREFILL_TILE + 64 * s.side + 16 * warp + lane / 8;
#pragma unroll
  for (int half = 0; half < 2; half++) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
      uint32_t m[4];
#pragma unroll
      for (int i = 0; i < 4; i++)
        m[i] =
            sm90_pack_as(a.out_dtype, o[32 * half + 8 * j + 2 * i] * by[i & 1],
                         o[32 * half + 8 * j + 2 * i + 1] * by[i & 1]);
      store_matrices(own + line * 128 +
                         (uint32_t)(((2 * j + lane / 16) ^ (line & 7)) << 4),
                     m);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int row = 4 * i + lane / 8;
      const uint4 v = load_shared_16(own + row * 128 +
                                     (uint32_t)(((lane % 8) ^ (row & 7)) << 4));
      if (row0 + 4 * i < w.length)
        *(uint4 *)((uint16_t *)a.out + prefill_out_row(a, w, row0 + 4 * i) +
                   64 * half + 8 * (lane % 8)) = v;
    }
    __syncwarp();
  }
}

/* Other outputs, from registers. */
MLA_DEV void prefill_put_row(const mla_prefill_sm90_args &a,
                             const prefill_state &s, const prefill_work &w,
                             int r, float by, const float (&o)[64]) {
  const int row = w.tile * PREFILL_TILE + s.row + 8 * r;
  const int64_t to = prefill_out_row(a, w, row) + 2 * (s.thread % 4);
  if (row >= w.length) return;
#pragma unroll
  for (int j = 0; j < 16; j++) {
    const float x = o[4 * j + 2 * r] * by, y = o[4 * j + 2 * r + 1] * by;
    const int64_t at = to + 8 * j;
    if (!a.out_pairs) {
      mla_store_any(a.out, a.out_dtype, at, x);
      mla_store_any(a.out, a.out_dtype, at + 1, y);
    } else if (a.out_dtype == MLA_F32)
      *(float2 *)((float *)a.out + at) = make_float2(x, y);
    else
      *(uint32_t *)((uint16_t *)a.out + at) = sm90_pack_as(a.out_dtype, x, y);
  }
}

MLA_DEV void prefill_put(const mla_prefill_sm90_args &a, const prefill_state &s,
                         const prefill_work &w, const float (&by)[2],
                         const float (&o)[64]) {
  if (a.out_chunks) {
    prefill_put_chunks(a, s, w, by, o);
  } else {
    prefill_put_row(a, s, w, 0, by[0], o);
    prefill_put_row(a, s, w, 1, by[1], o);
  }
}

MLA_DEV void prefill_finish(const mla_prefill_sm90_args &a,
                            const prefill_state &s, const prefill_work &w,
                            const float (&o)[64]) {
  float by[2];
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float sum = s.sum[r];
    sum += MLA_SHFL_XOR(sum, 1);
    sum += MLA_SHFL_XOR(sum, 2);
    float whole = sum;
    if (a.sink)
      whole += sm90_exp2(a.sink[w.head * a.sink_step] * MLA_LOG2_E -
                         (s.top[r] - SM90_P_UP));
    by[r] = 1.0f / whole;
    const int row = w.tile * PREFILL_TILE + s.row + 8 * r;
    if (row >= w.length || !a.lse || s.thread % 4) continue;
    const float log2 = s.top[r] + (log2f(sum) - SM90_P_UP);
    a.lse[(int64_t)(w.first + row) * a.lse_token + w.head * a.lse_head] =
        a.lse_base2 ? log2 : log2 * MLA_LN_2;
  }
  prefill_put(a, s, w, by, o);
}

MLA_DEV void prefill_shrink(const float (&by)[2], float (&o)[64]) {
  if (__all_sync(0xffffffffu, by[0] == 1.0f && by[1] == 1.0f)) return;
#pragma unroll
  for (int j = 0; j < 64; j++) o[j] *= by[(j >> 1) & 1];
}

/* Where row r of this thread keeps its sums; NULL: it is none. */
MLA_DEV float *prefill_kept(const mla_prefill_sm90_args &a,
                            const prefill_state &s, const prefill_work &w,
                            int r) {
  const int row = w.tile * PREFILL_TILE + s.row + 8 * r;
  if (row >= w.length) return NULL;
  return a.kept +
         ((int64_t)(w.first + row) * a.plan.heads + w.head) * PREFILL_KEPT;
}
MLA_DEV void prefill_restore(const mla_prefill_sm90_args &a, prefill_state &s,
                             const prefill_work &w, float (&o)[64]) {
  const int t = s.thread % 4;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const float *from = prefill_kept(a, s, w, r);
#pragma unroll
    for (int j = 0; j < 16; j++) {
      float2 v = make_float2(0, 0);
      if (from) v = *(const float2 *)(from + 8 * j + 2 * t);
      o[4 * j + 2 * r] = v.x;
      o[4 * j + 2 * r + 1] = v.y;
    }
    if (!from) continue;
    s.sum[r] = from[128 + t];
    s.top[r] = from[132];
  }
}
MLA_DEV void prefill_keep(const mla_prefill_sm90_args &a,
                          const prefill_state &s, const prefill_work &w,
                          const float (&o)[64]) {
  const int t = s.thread % 4;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float *to = prefill_kept(a, s, w, r);
    if (!to) continue;
#pragma unroll
    for (int j = 0; j < 16; j++)
      *(float2 *)(to + 8 * j + 2 * t) =
          make_float2(o[4 * j + 2 * r], o[4 * j + 2 * r + 1]);
    to[128 + t] = s.sum[r];
    if (t == 0) to[132] = s.top[r];
  }
}

/* The tile's block j: its scores, and the values of the block before; begun: o
   has some already. */
MLA_DEV void prefill_step(const mla_prefill_sm90_args &a, prefill_state &s,
                          int n, int j, int blocks, int begun, float (&acc)[64],
                          uint32_t (&p)[8][4], float (&o)[64]) {
  const int stage = n & 1, before = (n - 1) & 1;
  float shrink[2];
  mbar_wait(prefill_bar(s.smem, PREFILL_K_FULL + stage), (n >> 1) & 1);
  bar_sync(BAR_TURN + s.side, 256);
  prefill_issue_scores(s, stage, acc);
  mbar_wait(prefill_bar(s.smem, PREFILL_V_FULL + before), ((n - 1) >> 1) & 1);
  prefill_issue_values(s, before, p, begun || j > 1, o);
  bar_arrive(BAR_TURN + (s.side ^ 1), 256);
  wgmma_wait<1>();
  wgmma_hold(acc);
  prefill_give(s, PREFILL_K_EMPTY + stage);
  if (j + 1 == blocks) prefill_give(s, PREFILL_Q_EMPTY);
  prefill_softmax(a, s, acc, shrink);
  wgmma_wait<0>();
  wgmma_hold(o);
  prefill_give(s, PREFILL_V_EMPTY + before);
  sm90_pack_p(acc, p);
  prefill_shrink(shrink, o);
}

/* The first block, with its mask. */
template <int Parts>
MLA_DEV void prefill_begin(const mla_prefill_sm90_args &a, prefill_state &s,
                           const prefill_work &w, int n, int block,
                           float (&acc)[64], uint32_t (&p)[8][4],
                           float (&o)[64]) {
  const int stage = n & 1, left = w.key_count - block * 128;
  float shrink[2];
  mbar_wait(prefill_bar(s.smem, PREFILL_K_FULL + stage), (n >> 1) & 1);
  prefill_issue_scores(s, stage, acc);
  s.top[0] = s.top[1] = MLA_NEG_INF;
  s.sum[0] = s.sum[1] = 0;
  if (Parts && w.restores) prefill_restore(a, s, w, o);
  wgmma_wait<0>();
  wgmma_hold(acc);
  prefill_give(s, PREFILL_K_EMPTY + stage);
  if (block == 0) prefill_give(s, PREFILL_Q_EMPTY);
  prefill_mask(a, s, w, block, acc);
  prefill_softmax(a, s, acc, shrink);
  if (Parts && w.restores) prefill_shrink(shrink, o);
  sm90_pack_p(acc, p);
  if (left < 128) {
    mbar_wait(prefill_bar(s.smem, PREFILL_V_FULL + stage), (n >> 1) & 1);
    prefill_clear_tail(s, stage, left);
  }
}

/* A tile; n: blocks before it. */
template <int Parts>
MLA_DEV void prefill_walk_tile(const mla_prefill_sm90_args &a, prefill_state &s,
                               const prefill_work &w, int &n) {
  const int blocks = prefill_blocks(a, w), begun = Parts && w.restores;
  float acc[64], o[64];
  uint32_t p[8][4];
  prefill_begin<Parts>(a, s, w, n++, blocks - 1, acc, p, o);
  for (int j = 1; j < blocks; j++, n++)
    prefill_step(a, s, n, j, blocks, begun, acc, p, o);
  const int last = (n - 1) & 1;
  mbar_wait(prefill_bar(s.smem, PREFILL_V_FULL + last), ((n - 1) >> 1) & 1);
  prefill_issue_values(s, last, p, begun || blocks > 1, o);
  wgmma_wait<0>();
  wgmma_hold(o);
  prefill_give(s, PREFILL_V_EMPTY + last);
  if (Parts && w.keeps)
    prefill_keep(a, s, w, o);
  else
    prefill_finish(a, s, w, o);
}

template <int Parts>
MLA_DEV void prefill_walk(const mla_prefill_sm90_args &a, prefill_state &s) {
  int n = 0;
  if (s.side == 1) bar_arrive(BAR_TURN, 256);
  for (int turn = 0;; turn++) {
    const int slot = turn & 1;
    mbar_wait(prefill_bar(s.smem, PREFILL_WORK_FULL + slot), (turn >> 1) & 1);
    const prefill_work w = prefill_slots(s.smem)[slot];
    if (w.length == 0) break;
    mbar_arrive(prefill_bar(s.smem, PREFILL_WORK_EMPTY + slot));
    mbar_wait(prefill_bar(s.smem, PREFILL_Q_FULL), turn & 1);
    prefill_walk_tile<Parts>(a, s, w, n);
  }
  /* The other's last turn was given to nobody. */
  if (s.side == 0) bar_sync(BAR_TURN, 256);
}

template <int Parts>
static __global__ void __launch_bounds__(PREFILL_THREADS, 1)
    MLA_SM90_NAME(mla_prefill)(const __grid_constant__ CUtensorMap q,
                               const __grid_constant__ CUtensorMap up,
                               const __grid_constant__ CUtensorMap rope,
                               const mla_prefill_sm90_args a) {
  extern __shared__ unsigned char raw[];
  const uint32_t smem = (smem_address(raw) + 1023) & ~1023u;
  if (threadIdx.x == 0) {
    for (int i = 0; i < PREFILL_BAR_COUNT; i++) {
      const int full = i == PREFILL_Q_FULL ||
                       (i >= PREFILL_K_FULL && i < PREFILL_K_EMPTY) ||
                       (i >= PREFILL_V_FULL && i < PREFILL_V_EMPTY) ||
                       (i >= PREFILL_WORK_FULL && i < PREFILL_WORK_EMPTY);
      /* Work is read by every thread, the rest given back by one of each. */
      mbar_init(prefill_bar(smem, i), full                      ? 1
                                      : i >= PREFILL_WORK_EMPTY ? 256
                                                                : 2);
    }
    mbar_init_fence();
  }
  __syncthreads();
  pdl_wait();
  if (threadIdx.x < 128) {
    registers_shrink<40>();
    const prefill_maps m = {&q, &up, &rope};
    if (MLA_WAVE_ID == 0) prefill_bring(a, smem, m);
  } else {
    registers_grow<232>();
    prefill_state s;
    s.smem = smem;
    s.side =
        MLA_SHFL((int)threadIdx.x / 128, 0) - 1; /* the same, to ptxas too */
    s.thread = (int)threadIdx.x % 128;
    s.row = s.side * 64 + s.thread / 32 * 16 + s.thread % 32 / 4;
    prefill_walk<Parts>(a, s);
  }
}

#endif
