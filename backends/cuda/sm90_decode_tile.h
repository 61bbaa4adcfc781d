/*
 * sm90_decode_tile.h - how pieces of requests lie in the workspace, as the
 * registers have them, and what a lane of the merge has of them.
 *
 * A piece is slices, 128 threads' float4 each: for a tile of 64 rows eight
 * columns of them, two columns of a row and two of another a thread, as
 * accumulators are (sm90_wgmma.h).
 *
 * A Tile has
 *   Rows              of it
 *   Size              of a piece, in float4
 *   Next, Group       to a thread's second row; rows that are there or not
 *   Held, Each        what a lane loads at once, and how many slices it is
 *   Ahead             slices that a lane loads before it looks at them
 *   Most              slices of an item of the merge, where items are many
 *   Practises, Registers, Blocks   of the merge's kernels: blocks a unit
 */
#ifndef MLA_SM90_DECODE_TILE_H
#define MLA_SM90_DECODE_TILE_H

#include "gpu_num.h"
#include "sm90_decode_state.h"
#include "sm90_num.h"

enum { SM90_SLICES = 64 }; /* of a tile of 64 rows: side, eight columns */

MLA_DEV void sm90_put2(const mla_sm90_args &a, int64_t at, float x, float y) {
  if (a.out_dtype == MLA_F32)
    *(float2 *)((float *)a.out + at) = make_float2(x, y);
  else
    *(uint32_t *)((uint16_t *)a.out + at) = sm90_pack_as(a.out_dtype, x, y);
}

/* What a warp joins: some rows of slices of a tile of 64 rows. */
typedef struct sm90_slice {
  int tile, tiles; /* of the request's rows */
  int slice, row;  /* row: the lane's first of the tile */
  int thread;      /* that held them */
  int query[2];    /* of the two rows */
} sm90_slice;

/* Two rows' places in the output, and whether there are such rows. */
typedef struct sm90_rows_to {
  int64_t at[2];
  int there[2];
} sm90_rows_to;

MLA_DEV float4 *sm90_piece_at(const mla_sm90_args &a, int64_t tile, int size) {
  return (float4 *)a.part_out + tile * size;
}

/* Four lanes' words turned round: lane i gets word i of each. */
MLA_DEV void sm90_turn_four(uint32_t (&m)[4]) {
#pragma unroll
  for (int by = 1; by < 4; by *= 2)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (i & by) continue;
      const int second = MLA_LANE & by;
      const uint32_t got = MLA_SHFL_XOR(second ? m[i] : m[i + by], by);
      if (second)
        m[i] = got;
      else
        m[i + by] = got;
    }
}

/* Four slices of 16-bit outputs, from `column` on. */
MLA_DEV void sm90_put_four(const mla_sm90_args &a, int column,
                           const sm90_rows_to &to, const float4 *v) {
  uint32_t m[2][4];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    m[0][k] = sm90_pack_as(a.out_dtype, v[k].x, v[k].y);
    m[1][k] = sm90_pack_as(a.out_dtype, v[k].z, v[k].w);
  }
#pragma unroll
  for (int r = 0; r < 2; r++) {
    sm90_turn_four(m[r]);
    if (to.there[r])
      *(uint4 *)((uint16_t *)a.out + to.at[r] + column + 8 * (MLA_LANE % 4)) =
          make_uint4(m[r][0], m[r][1], m[r][2], m[r][3]);
  }
}

/* Two: 8 bytes a lane. */
MLA_DEV void sm90_put_two(const mla_sm90_args &a, int column,
                          const sm90_rows_to &to, const float4 *v) {
  const int lane = MLA_LANE % 4, from = 2 * (MLA_LANE % 2);
#pragma unroll
  for (int r = 0; r < 2; r++) {
    uint32_t m[2], word[2];
#pragma unroll
    for (int k = 0; k < 2; k++)
      m[k] = r ? sm90_pack_as(a.out_dtype, v[k].z, v[k].w)
               : sm90_pack_as(a.out_dtype, v[k].x, v[k].y);
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int source = MLA_LANE - lane + from + i;
      const uint32_t first = MLA_SHFL(m[0], source);
      const uint32_t second = MLA_SHFL(m[1], source);
      word[i] = lane < 2 ? first : second;
    }
    if (to.there[r])
      *(uint2 *)((uint16_t *)a.out + to.at[r] + column + 4 * lane) =
          make_uint2(word[0], word[1]);
  }
}

/* In f32. */
struct sm90_wide_tile {
  enum {
    Rows = 64,
    Size = SM90_SLICES * 128,
    Next = 8,
    Group = 16,
    Each = 1,
    Ahead = 8,
    Most = 4,
    Practises = 0,
    Registers = 80,
    Blocks = 3
  };
  typedef float4 Held;
  MLA_DEV int row(int slice, int warp) {
    (void)slice;
    return 16 * warp + MLA_LANE / 4;
  }
  MLA_DEV int tells(const sm90_slice &x) {
    return x.slice == 0 && MLA_LANE % 4 == 0;
  }
  MLA_DEV Held hold(const float4 *piece, const sm90_slice &x, int k) {
    return piece[128 * (x.slice + k) + x.thread];
  }
  MLA_DEV void open(const Held &held, float4 (&v)[1]) { v[0] = held; }
  /* What a piece's rows refer to, and their sums relative to it. */
  MLA_DEV void base(const mla_sm90_args &a, const sm90_slice &x, int64_t tile,
                    float (&top)[2], float (&sum)[2]) {
    top[0] = a.part_lse[tile * 64 + x.row];
    top[1] = a.part_lse[tile * 64 + x.row + Next];
    sum[0] = sum[1] = 1;
  }
  /* Slices beside each other, of 16-bit outputs four or two at once: four lanes
     turn them round, so that what they write of a row are whole sectors. */
  template <int Slices>
  MLA_DEV void put(const mla_sm90_args &a, const sm90_slice &x,
                   const sm90_rows_to &to, const float4 (&v)[Slices]) {
    if (Slices % 2 == 0 && a.out_dtype != MLA_F32) {
      if (Slices == 2) sm90_put_two(a, 8 * x.slice, to, v);
#pragma unroll
      for (int k = 0; k + 4 <= Slices; k += 4)
        sm90_put_four(a, 8 * (x.slice + k), to, v + k);
      return;
    }
#pragma unroll
    for (int k = 0; k < Slices; k++) {
      const int column = 8 * (x.slice + k) + 2 * (MLA_LANE % 4);
      if (to.there[0]) sm90_put2(a, to.at[0] + column, v[k].x, v[k].y);
      if (to.there[1]) sm90_put2(a, to.at[1] + column, v[k].z, v[k].w);
    }
  }
  /* A thread's slices of one side, times `by` of their rows. */
  MLA_DEV void store(float4 *piece, int side, int thread, const float (&o)[128],
                     const float (&by)[2]) {
    float4 *to = piece + 32 * 128 * side + thread;
#pragma unroll
    for (int j = 0; j < 32; j++)
      to[128 * j] = make_float4(o[4 * j] * by[0], o[4 * j + 1] * by[0],
                                o[4 * j + 2] * by[1], o[4 * j + 3] * by[1]);
  }
};

/* Four numbers of 24 bits: the last one's lie in the others' low bytes. */
struct sm90_three {
  uint32_t word[3];
};
MLA_DEV sm90_three sm90_shorten(float a, float b, float c, float d) {
  const uint32_t last = __float_as_uint(d);
  return {{__byte_perm(__float_as_uint(a), last, 0x3215),
           __byte_perm(__float_as_uint(b), last, 0x3216),
           __byte_perm(__float_as_uint(c), last, 0x3217)}};
}
MLA_DEV float4 sm90_lengthen(uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t last = __byte_perm(__byte_perm(a, b, 0x0400), c, 0x4210);
  return make_float4(__uint_as_float(a & ~0xffu), __uint_as_float(b & ~0xffu),
                     __uint_as_float(c & ~0xffu),
                     __uint_as_float(last & ~0xffu));
}

/*
 * In 24 bits, where P has eight that count: what is written, read, and driven
 * out of the second-level cache is a quarter less. Two slices are three words
 * of two numbers each. What is cut off is half a unit on average, which is
 * added beforehand: a number is off by 2^-16 of itself at most, and sums over
 * n keys by that of M_d, which is sqrt(n) A_d at most (docs/tolerance.md): less
 * than P's own 3 * 2^-8 A_d as long as n is below 2^19.
 */
struct sm90_short_tile : sm90_wide_tile {
  enum {
    Size = SM90_SLICES * 96,
    Each = 2,
    Ahead = 16,
    Most = 8,
    Registers = 128,
    Blocks = 2
  };
  struct Held {
    uint2 word[3];
  };
  MLA_DEV Held hold(const float4 *piece, const sm90_slice &x, int k) {
    const uint2 *from =
        (const uint2 *)piece + 3 * 64 * (x.slice + k) + x.thread;
    return {{from[0], from[128], from[256]}};
  }
  MLA_DEV void open(const Held &held, float4 (&v)[2]) {
    const uint2(&w)[3] = held.word;
    v[0] = sm90_lengthen(w[0].x, w[1].x, w[2].x);
    v[1] = sm90_lengthen(w[0].y, w[1].y, w[2].y);
  }
  MLA_DEV void store(float4 *piece, int side, int thread, const float (&o)[128],
                     const float (&by)[2]) {
    const float up[2] = {by[0] * (1 + 0x1p-16f), by[1] * (1 + 0x1p-16f)};
    uint2 *to = (uint2 *)piece + 3 * 128 * 16 * side + thread;
#pragma unroll
    for (int j = 0; j < 32; j += 2) {
      sm90_three v[2];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const float *x = o + 4 * (j + i);
        v[i] = sm90_shorten(x[0] * up[0], x[1] * up[0], x[2] * up[1],
                            x[3] * up[1]);
      }
#pragma unroll
      for (int k = 0; k < 3; k++)
        to[128 * (3 * (j / 2) + k)] = make_uint2(v[0].word[k], v[1].word[k]);
    }
  }
};

/* Of kernels of one type. */
#ifdef MLA_SM90_F16
typedef sm90_wide_tile sm90_tile;
#else
typedef sm90_short_tile sm90_tile;
#endif

/* Of few rows, turned over (sm90_narrow_rows.h): slice 8 * j + t has columns
   64 * t on of rows 8 * j on; the columns of a lane are 8 apart. */
template <int AllRows>
struct sm90_narrow_tile {
  enum {
    Rows = AllRows,
    Size = Rows * 128,
    Next = 1,
    Group = 8,
    Each = 1,
    Ahead = 8,
    Most = 2,
    Practises = 1,
    Registers = 104,
    Blocks = 1 /* beside one of the decode */
  };
  typedef float4 Held;
  MLA_DEV int row(int slice, int warp) {
    (void)warp;
    return slice / 8 * 8 + 2 * (MLA_LANE % 4);
  }
  MLA_DEV int tells(const sm90_slice &x) {
    return x.slice % 8 == 0 && x.thread < 4;
  }
  MLA_DEV Held hold(const float4 *piece, const sm90_slice &x, int k) {
    return __ldcg(piece + 128 * (x.slice + k) + x.thread);
  }
  MLA_DEV void open(const Held &held, float4 (&v)[1]) { v[0] = held; }
  MLA_DEV void base(const mla_sm90_args &a, const sm90_slice &x, int64_t tile,
                    float (&top)[2], float (&sum)[2]) {
    const float4 v =
        __ldcg((const float4 *)a.part_lse + tile * (Rows / 2) + x.row / 2);
    top[0] = v.x, sum[0] = v.y;
    top[1] = v.z, sum[1] = v.w;
  }
  template <int Slices>
  MLA_DEV void put(const mla_sm90_args &a, const sm90_slice &x,
                   const sm90_rows_to &to, const float4 (&v)[Slices]) {
#pragma unroll
    for (int k = 0; k < Slices; k++) put_slice(a, x, k, to, v[k]);
  }
  /* Lanes with columns beside each other take a row each of both. */
  MLA_DEV void put_slice(const mla_sm90_args &a, const sm90_slice &x, int k,
                         const sm90_rows_to &to, const float4 &v) {
    const int second = MLA_LANE / 4 % 2;
    const float lo = MLA_SHFL_XOR(second ? v.x : v.z, 4);
    const float hi = MLA_SHFL_XOR(second ? v.y : v.w, 4);
    const int column =
        64 * ((x.slice + k) % 8) + x.thread / 32 * 16 + MLA_LANE / 8 * 2;
    if (!(second ? to.there[1] : to.there[0])) return;
    const int64_t at = (second ? to.at[1] : to.at[0]) + column;
    sm90_put2(a, at, second ? lo : v.x, second ? v.z : lo);
    sm90_put2(a, at + 8, second ? hi : v.y, second ? v.w : hi);
  }
};

#endif
