/*
 * sm90_decode_out.h - what a CTA of sm90_decode_rows.h writes: rows of the
 * output, or a piece of a request as the registers have it, and how pieces
 * are joined.
 *
 * A piece's tile is float4 [2][32][128]: side, eight columns, thread. Each
 * float4 is two columns of two rows, as accumulators are (sm90_wgmma.h).
 */
#ifndef MLA_SM90_DECODE_OUT_H
#define MLA_SM90_DECODE_OUT_H

#include "gpu_num.h"
#include "sm90_async.h"
#include "sm90_decode_state.h"
#include "sm90_num.h"

enum { SM90_SLICES = 64 }; /* of a tile: side, eight columns */

/* Sums of the two sides join; then 1 / total and the row's lse, log2. */
MLA_DEV void sm90_finish(const sm90_state &s, const float (&top)[2],
                         float (&sum)[2], float (&inv)[2], float (&lse)[2]) {
  const uint32_t own = s.smem + SM90_SUM + 4 * s.row;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    sum[r] += MLA_SHFL_XOR(sum[r], 1);
    sum[r] += MLA_SHFL_XOR(sum[r], 2);
    if (s.thread % 4 == 0) store_shared(own + 256 * s.side + 32 * r, sum[r]);
  }
  bar_sync(BAR_ALL, 256);
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const float total =
        load_shared(own + 32 * r) + load_shared(own + 256 + 32 * r);
    const int empty = top[r] == MLA_NEG_INF;
    inv[r] = empty ? 0.0f : 1.0f / total;
    lse[r] = empty ? MLA_NEG_INF : top[r] + (log2f(total) - SM90_P_UP);
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

MLA_DEV void sm90_put2(const mla_sm90_args &a, int64_t at, float x, float y) {
  if (a.out_dtype == MLA_F32)
    *(float2 *)((float *)a.out + at) = make_float2(x, y);
  else
    *(uint32_t *)((uint16_t *)a.out + at) = sm90_pack_as(a.out_dtype, x, y);
}

/* Where a row of the request goes. */
MLA_DEV int64_t sm90_out_row(const mla_sm90_args &a, int first_token, int row) {
  return (first_token + row / a.heads) * a.o_token + row % a.heads * a.o_head;
}

/* 16-bit outputs: a warp turns its 16 rows round in the memory that held Q,
   and writes half a row at once. */
MLA_DEV void sm90_put_rows(const mla_sm90_args &a, const sm90_state &s,
                           const sm90_piece &w, int m0, const float (&o)[128],
                           const float (&by)[2]) {
  const int lane = s.thread % 32, warp = s.thread / 32;
  const uint32_t own = s.smem + SM90_Q + (uint32_t)(4 * s.side + warp) * 8192;
  const int line = lane % 16;
#pragma unroll
  for (int j = 0; j < 16; j++) {
    uint32_t m[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      m[i] = sm90_pack_as(a.out_dtype, o[8 * j + 2 * i] * by[i & 1],
                          o[8 * j + 2 * i + 1] * by[i & 1]);
    store_matrices(
        own + line * 512 + (uint32_t)(((2 * j + lane / 16) ^ (line & 7)) << 4),
        m);
  }
  __syncwarp();
#pragma unroll 1
  for (int i = 0; i < 16; i++) {
    const int row = m0 + 16 * warp + i;
    if (row >= w.rows) break;
    uint4 v;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(own + i * 512 + (uint32_t)((lane ^ (i & 7)) << 4)));
    *(uint4 *)((uint16_t *)a.out + sm90_out_row(a, w.first_token, row) +
               256 * s.side + 8 * lane) = v;
  }
  fence_async(); /* the copy engine fills this memory next */
}

/* f32 outputs, from registers: four lanes write a sector. */
MLA_DEV void sm90_put_wide(const mla_sm90_args &a, const sm90_state &s,
                           const sm90_piece &w, int m0, const float (&o)[128],
                           const float (&by)[2]) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int row = m0 + s.row + 8 * r;
    if (row >= w.rows) continue;
    float *to = (float *)a.out + sm90_out_row(a, w.first_token, row) +
                256 * s.side + 2 * (s.thread % 4);
#pragma unroll
    for (int j = 0; j < 32; j++)
      *(float2 *)(to + 8 * j) =
          make_float2(o[4 * j + 2 * r] * by[r], o[4 * j + 2 * r + 1] * by[r]);
  }
}

MLA_DEV void sm90_put_whole(const mla_sm90_args &a, const sm90_state &s,
                            const sm90_piece &w, int m0, const float (&o)[128],
                            const float (&inv)[2], const float (&lse)[2]) {
  float by[2];
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int row = m0 + s.row + 8 * r;
    const int token = w.first_token + row / a.heads, head = row % a.heads;
    const int there = row < w.rows;
    by[r] = inv[r] * (there ? sm90_sink(a, head, lse[r]) : 0.0f);
    if (there && s.side == 0 && s.thread % 4 == 0)
      sm90_put_lse(a, token, head, lse[r]);
  }
  if (a.out_dtype == MLA_F32)
    sm90_put_wide(a, s, w, m0, o, by);
  else
    sm90_put_rows(a, s, w, m0, o, by);
}

/* ------------------------------------------------------------------ pieces */

MLA_DEV float4 *sm90_part_tile(const mla_sm90_args &a, int64_t tile) {
  return (float4 *)a.part_out + tile * (SM90_SLICES * 128);
}

MLA_DEV void sm90_put_part(const mla_sm90_args &a, const sm90_state &s,
                           const sm90_piece &w, int m0, const float (&o)[128],
                           const float (&inv)[2], const float (&lse)[2]) {
  if (m0 + s.thread / 32 * 16 >= w.rows) return; /* none of the warp's rows */
  const int64_t tile = (int64_t)w.scratch * gridDim.x + blockIdx.x;
  float4 *to = sm90_part_tile(a, tile) + 32 * 128 * s.side + s.thread;
#pragma unroll
  for (int j = 0; j < 32; j++)
    to[128 * j] = make_float4(o[4 * j] * inv[0], o[4 * j + 1] * inv[0],
                              o[4 * j + 2] * inv[1], o[4 * j + 3] * inv[1]);
  if (s.side || s.thread % 4) return;
  a.part_lse[tile * 64 + s.row] = lse[0];
  a.part_lse[tile * 64 + s.row + 8] = lse[1];
}

/* A lane's part of some pieces' sum, of as many slices beside each other,
   relative to the rows' largest lse. */
template <int Slices>
struct sm90_sum {
  float4 value[Slices];
  float top[2], weight[2];
};

template <int Slices>
MLA_DEV void sm90_sum_begin(sm90_sum<Slices> &sum) {
#pragma unroll
  for (int i = 0; i < Slices; i++) sum.value[i] = make_float4(0, 0, 0, 0);
#pragma unroll
  for (int r = 0; r < 2; r++) sum.top[r] = MLA_NEG_INF, sum.weight[r] = 0;
}

template <int Slices>
MLA_DEV void sm90_weigh(float4 (&to)[Slices], const float4 (&v)[Slices],
                        const float (&by)[2]) {
#pragma unroll
  for (int i = 0; i < Slices; i++) {
    to[i].x += by[0] * v[i].x;
    to[i].y += by[0] * v[i].y;
    to[i].z += by[1] * v[i].z;
    to[i].w += by[1] * v[i].w;
  }
}

/* What a warp joins: 16 rows of slices of a tile of 64 rows. */
typedef struct sm90_slice {
  int tile, tiles; /* of the request's rows */
  int slice, row;  /* row: the lane's first of the tile */
  int thread;      /* that held them */
} sm90_slice;

MLA_DEV sm90_slice sm90_slice_of(int tile, int tiles, int slice, int warp) {
  sm90_slice x = {tile, tiles, slice, 0, 0};
  x.thread = 32 * warp + MLA_LANE;
  x.row = 16 * warp + MLA_LANE / 4;
  return x;
}

/* `Count` pieces from, from + step, ... joined to what there is of sum. */
template <int Count, int Slices>
MLA_DEV void sm90_join(const mla_sm90_args &a, const mla_plan_split &split,
                       const sm90_slice &x, int from, int step,
                       sm90_sum<Slices> &sum) {
  float4 value[Count][Slices];
  float lse[Count][2], top[2] = {sum.top[0], sum.top[1]}, by[2];
#pragma unroll
  for (int i = 0; i < Count; i++) {
    const int p = from + i * step;
    const int64_t tile =
        (int64_t)mla_plan_piece(p, split.part) * x.tiles + x.tile;
    lse[i][0] = lse[i][1] = MLA_NEG_INF;
#pragma unroll
    for (int k = 0; k < Slices; k++) value[i][k] = make_float4(0, 0, 0, 0);
    if (p > split.last_part) continue;
#pragma unroll
    for (int k = 0; k < Slices; k++)
      value[i][k] = sm90_part_tile(a, tile)[128 * (x.slice + k) + x.thread];
    lse[i][0] = a.part_lse[tile * 64 + x.row];
    lse[i][1] = a.part_lse[tile * 64 + x.row + 8];
  }
#pragma unroll
  for (int r = 0; r < 2; r++) {
    for (int i = 0; i < Count; i++) sum.top[r] = fmaxf(sum.top[r], lse[i][r]);
    by[r] = sm90_exp2(top[r] - sm90_base(sum.top[r]));
    sum.weight[r] *= by[r];
  }
#pragma unroll
  for (int k = 0; k < Slices; k++) {
    sum.value[k].x *= by[0], sum.value[k].y *= by[0];
    sum.value[k].z *= by[1], sum.value[k].w *= by[1];
  }
#pragma unroll
  for (int i = 0; i < Count; i++) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      by[r] = sm90_exp2(lse[i][r] - sm90_base(sum.top[r]));
      sum.weight[r] += by[r];
    }
    sm90_weigh(sum.value, value[i], by);
  }
}

/* As many loads on their way at once, whatever the slices. */
template <int Slices>
MLA_DEV void sm90_sum_pieces(const mla_sm90_args &a,
                             const mla_plan_split &split, const sm90_slice &x,
                             int from, int step, sm90_sum<Slices> &sum) {
  enum { count = 8 / Slices };
  sm90_sum_begin(sum);
  if (64 * x.tile + x.row / 16 * 16 >= split.rows) return;
#pragma unroll 1
  for (int p = from; p <= split.last_part; p += count * step)
    sm90_join<count>(a, split, x, p, step, sum);
}

template <int Slices>
MLA_DEV void sm90_put_merged(const mla_sm90_args &a,
                             const mla_plan_split &split, const sm90_slice &x,
                             const sm90_sum<Slices> &sum) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int row = 64 * x.tile + x.row + 8 * r;
    if (row >= split.rows) continue;
    const int empty = sum.top[r] == MLA_NEG_INF;
    const float lse = empty ? MLA_NEG_INF : sum.top[r] + log2f(sum.weight[r]);
    const int token = split.first_token + row / a.heads, head = row % a.heads;
    const float by = empty ? 0.0f : sm90_sink(a, head, lse) / sum.weight[r];
    const int64_t to = sm90_out_row(a, split.first_token, row) + 8 * x.slice +
                       2 * (MLA_LANE % 4);
#pragma unroll
    for (int k = 0; k < Slices; k++) {
      const float4 &v = sum.value[k];
      sm90_put2(a, to + 8 * k, (r ? v.z : v.x) * by, (r ? v.w : v.y) * by);
    }
    if (x.slice == 0 && MLA_LANE % 4 == 0) sm90_put_lse(a, token, head, lse);
  }
}

#endif
