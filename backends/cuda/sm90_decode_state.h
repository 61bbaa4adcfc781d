/*
 * sm90_decode_state.h - what sm_90a's decode kernels are given, and what a CTA
 * of theirs keeps in shared memory.
 */
#ifndef MLA_SM90_DECODE_STATE_H
#define MLA_SM90_DECODE_STATE_H

#include "gpu_num.h"
#include "sm90_async.h"
#include "sm90_decode_plan.h"
#include "sm90_num.h"

typedef struct mla_sm90_args {
  mla_decode_plan plan;
  const int32_t *table;
  int64_t table_row;
  int table_width;
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
  float *part_out;        /* [2 * parts][m blocks][tile] */
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
  SM90_LIVE = SM90_BARS + 144, /* u64 [2]: keys of a buffer that are some */
  SM90_BYTES = SM90_LIVE + 16 + 1024 /* room to align */
};

/* Barriers in shared memory: q there, and given up; a buffer's keys, left,
   right and rope; the maxima of a pair that one side hands to the other; a
   buffer's keys given up; P of a buffer's block, where blocks go in turn. */
enum {
  SM90_Q_FULL,
  SM90_Q_EMPTY,
  SM90_FULL,
  SM90_MAX_SET = SM90_FULL + 6,
  SM90_EMPTY = SM90_MAX_SET + 2,
  SM90_P_SET = SM90_EMPTY + 6
};
/* Named ones. */
enum { BAR_P0 = 1, BAR_P1, BAR_LEFT, BAR_RIGHT, BAR_ALL, BAR_PLACE };

/* A request's piece of work. */
typedef struct sm90_piece {
  int request, first_token, rows; /* rows: query tokens x heads */
  int queries, seq;  /* of the request; seq counts keys, not listed ones */
  int block, blocks; /* first key block and how many */
  int whole;         /* all of the request's blocks */
  int scratch;
} sm90_piece;

typedef struct sm90_state {
  uint32_t smem;
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

/* Registers have no index. */
MLA_DEV uint32_t sm90_phase(const sm90_state &s, int buffer) {
  return buffer ? s.phase[1] : s.phase[0];
}

/* exp2 against a maximum that may be -inf (nothing seen yet). */
MLA_DEV float sm90_base(float top) {
  return top == MLA_NEG_INF ? 0.0f : top;
}

/* Who a thread is. */
MLA_DEV void sm90_place(sm90_state &s, int thread) {
  s.side = thread / 128;
  s.thread = thread % 128;
  s.row = s.thread / 32 * 16 + s.thread % 32 / 4;
}

/* The CTA's shared memory, laid out; barriers are still to be made. */
MLA_DEV sm90_state sm90_begin(unsigned char *raw) {
  sm90_state s;
  s.smem = (smem_address(raw) + 1023) & ~1023u;
  sm90_place(s, (int)threadIdx.x);
  s.side = MLA_SHFL(s.side, 0); /* the same, to ptxas too */
  s.phase[0] = s.phase[1] = 0;
  return s;
}

/* The same, for what is to be worked out where it is needed. */
MLA_DEV sm90_state sm90_state_here(const sm90_state &s) {
  sm90_state here = s;
  here.smem = (uint32_t)sm90_here((int)s.smem);
  sm90_place(here, sm90_here((int)threadIdx.x));
  return here;
}

/* Barriers of both feeds: q, and maxima, which 32 lanes of a side have. */
MLA_DEV void sm90_make_bars(const sm90_state &s) {
  mbar_init(sm90_bar(s, SM90_Q_FULL), 1);
  mbar_init(sm90_bar(s, SM90_MAX_SET), 32);
  mbar_init(sm90_bar(s, SM90_MAX_SET + 1), 32);
}

/* Arguments on their way into the constant cache, while there is time. */
MLA_DEV void sm90_touch(const mla_sm90_args &a) {
  asm volatile("" ::"l"(a.plan.seq_lens), "l"(a.table), "l"(a.out), "l"(a.lse),
               "l"(a.part_lse));
}

#endif
