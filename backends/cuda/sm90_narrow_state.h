/*
 * sm90_narrow_state.h - what a CTA of decode with few rows keeps in shared
 * memory (mla_decode_narrow_sm90.cuh): two blocks of 64 keys, Q, P, and what
 * its warps tell each other.
 *
 * A block is eight groups of 8 keys, a group nine boxes of 64 columns: 8 rows
 * of 128 bytes, swizzled. So a group comes from where it lies in one piece.
 */
#ifndef MLA_SM90_NARROW_STATE_H
#define MLA_SM90_NARROW_STATE_H

#include "sm90_decode_cut.h"
#include "sm90_decode_piece.h"

enum {
  NARROW_KEYS = 8, /* of a group */
  NARROW_BOX = 1024,
  NARROW_GROUP = 9 * NARROW_BOX,
  NARROW_BLOCK = 8 * NARROW_GROUP
};

/* For a CTA with 16 or 32 rows: where things are. */
template <int Rows>
struct narrow_of {
  enum {
    Some = Rows / 4, /* rows that a lane has some of */
    Mine = Rows / 2, /* numbers of a tile that it has */
    QBox = Rows * 128,
    Q = 2 * NARROW_BLOCK,
    P = Q + 9 * QBox, /* [rows][64 keys], swizzled */
    Max = P + QBox,   /* f32 [4 warps][rows] */
    Sum = Max + 16 * Rows,
    Bars = Sum + 16 * Rows,
    Bytes = Bars + 48 + 1024 /* room to align */
  };
};

/* Barriers in shared memory: q there, and given up; a buffer's block there, and
   given up. Named ones: of the warps with rows, and for the part's place. */
enum { NARROW_Q_FULL, NARROW_Q_EMPTY, NARROW_FULL, NARROW_EMPTY = 4 };
enum { NARROW_BAR_ROWS = 1, NARROW_BAR_PLACE };

typedef struct narrow_state {
  uint32_t smem, bars;
  int warp;
  uint32_t pieces, blocks; /* so far */
} narrow_state;

/* The first of the CTA's rows of a request. */
template <int Rows>
MLA_DEV int narrow_first() {
  return (int)blockIdx.x * Rows;
}

MLA_DEV uint32_t narrow_bar(const narrow_state &s, int i) {
  return s.bars + 8 * i;
}

/* The block's buffer, where it lies, and how often it has been used. */
MLA_DEV int narrow_buffer(const narrow_state &s) {
  return (int)(s.blocks & 1);
}
MLA_DEV uint32_t narrow_block_at(const narrow_state &s) {
  return s.smem + (s.blocks & 1) * NARROW_BLOCK;
}
MLA_DEV uint32_t narrow_parity(const narrow_state &s) {
  return s.blocks >> 1 & 1;
}

template <int Rows>
MLA_DEV narrow_state narrow_begin(unsigned char *raw) {
  narrow_state s = {};
  s.smem = (smem_address(raw) + 1023) & ~1023u;
  s.bars = s.smem + narrow_of<Rows>::Bars;
  s.warp = MLA_WAVE_ID;
  return s;
}

/* By one thread. */
MLA_DEV void narrow_make_bars(const narrow_state &s) {
  mbar_init(narrow_bar(s, NARROW_Q_FULL), 1);
  mbar_init(narrow_bar(s, NARROW_Q_EMPTY), 4); /* warps */
  for (int i = 0; i < 2; i++) {
    mbar_init(narrow_bar(s, NARROW_FULL + i), 1);
    mbar_init(narrow_bar(s, NARROW_EMPTY + i), 4);
  }
  mbar_init_fence();
}

#endif
