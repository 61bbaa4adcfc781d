/*
 * sm90_decode_out.h - what a CTA of sm90_decode_rows.h writes: rows of the
 * output, or a piece of a request as the registers have it, and how pieces
 * are joined (sm90_decode_tile.h).
 */
#ifndef MLA_SM90_DECODE_OUT_H
#define MLA_SM90_DECODE_OUT_H

#include "sm90_async.h"
#include "sm90_decode_tile.h"

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
    *(uint4 *)((uint16_t *)a.out + sm90_out_row(a, w.first_token, row) +
               256 * s.side + 8 * lane) =
        load_shared_16(own + i * 512 + (uint32_t)((lane ^ (i & 7)) << 4));
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

MLA_DEV void sm90_put_part(const mla_sm90_args &a, const sm90_state &s,
                           const sm90_piece &w, int m0, const float (&o)[128],
                           const float (&inv)[2], const float (&lse)[2]) {
  if (m0 + s.thread / 32 * 16 >= w.rows) return; /* none of the warp's rows */
  const int64_t tile = (int64_t)w.scratch * gridDim.x + blockIdx.x;
  sm90_tile::store(sm90_piece_at(a, tile, sm90_tile::Size), s.side, s.thread, o,
                   inv);
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

MLA_DEV void sm90_weigh(float4 &to, const float4 &v, const float (&by)[2]) {
  to.x += by[0] * v.x;
  to.y += by[0] * v.y;
  to.z += by[1] * v.z;
  to.w += by[1] * v.w;
}

template <class Tile>
MLA_DEV sm90_slice sm90_slice_of(const mla_sm90_args &a, int tile, int tiles,
                                 int slice, int warp) {
  sm90_slice x = {tile, tiles, slice, 0, 0, {0, 0}};
  x.thread = sm90_here(32 * warp + MLA_LANE);
  x.row = sm90_here(Tile::row(slice, warp));
#pragma unroll
  for (int r = 0; r < 2; r++)
    x.query[r] =
        sm90_here((Tile::Rows * tile + x.row + Tile::Next * r) / a.heads);
  return x;
}

/* `Count` pieces from, from + step, ... joined to what there is of sum. */
template <class Tile, int Count, int Slices>
MLA_DEV void sm90_join(const mla_sm90_args &a, const mla_plan_split &split,
                       const sm90_slice &x, int from, int step,
                       sm90_sum<Slices> &sum) {
  typename Tile::Held held[Count][Slices / Tile::Each];
  float lse[Count][2], total[Count][2], top[2] = {sum.top[0], sum.top[1]},
                                        by[2];
#pragma unroll
  for (int i = 0; i < Count; i++) {
    const int p = from + i * step;
    const int64_t tile =
        (int64_t)mla_plan_piece(p, p == split.part) * x.tiles + x.tile;
    lse[i][0] = lse[i][1] = MLA_NEG_INF;
    total[i][0] = total[i][1] = 1;
#pragma unroll
    for (int k = 0; k < Slices / Tile::Each; k++) held[i][k] = {};
    if (p > split.last_part) continue;
#pragma unroll
    for (int k = 0; k < Slices / Tile::Each; k++)
      held[i][k] =
          Tile::hold(sm90_piece_at(a, tile, Tile::Size), x, k * Tile::Each);
    Tile::base(a, x, tile, lse[i], total[i]);
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
      sum.weight[r] += by[r] * total[i][r];
    }
#pragma unroll
    for (int k = 0; k < Slices / Tile::Each; k++) {
      float4 v[Tile::Each];
      Tile::open(held[i][k], v);
#pragma unroll
      for (int e = 0; e < Tile::Each; e++)
        sm90_weigh(sum.value[k * Tile::Each + e], v[e], by);
    }
  }
}

/* As many loads on their way at once, whatever the slices. */
template <class Tile, int Slices>
MLA_DEV void sm90_sum_pieces(const mla_sm90_args &a,
                             const mla_plan_split &split, const sm90_slice &x,
                             int from, int step, sm90_sum<Slices> &sum) {
  enum { count = Tile::Ahead / Slices };
  sm90_sum_begin(sum);
  if (Tile::Rows * x.tile + x.row / Tile::Group * Tile::Group >= split.rows)
    return;
#pragma unroll 1
  for (int p = from; p <= split.last_part; p += count * step)
    sm90_join<Tile, count>(a, split, x, p, step, sum);
}

template <class Tile, int Slices>
MLA_DEV void sm90_put_merged(const mla_sm90_args &a,
                             const mla_plan_split &split, const sm90_slice &x,
                             sm90_sum<Slices> &sum) {
  sm90_rows_to to = {};
  float by[2] = {0, 0};
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int row = Tile::Rows * x.tile + x.row + Tile::Next * r;
    if (row >= split.rows) continue;
    const int empty = sum.top[r] == MLA_NEG_INF;
    const float lse = empty ? MLA_NEG_INF : sum.top[r] + log2f(sum.weight[r]);
    const int token = split.first_token + x.query[r];
    const int head = row - x.query[r] * a.heads;
    if (!empty) by[r] = sm90_sink(a, head, lse) / sum.weight[r];
    to.at[r] = token * a.o_token + head * a.o_head;
    to.there[r] = 1;
    if (Tile::tells(x)) sm90_put_lse(a, token, head, lse);
  }
#pragma unroll
  for (int k = 0; k < Slices; k++) {
    float4 &v = sum.value[k];
    v = make_float4(v.x * by[0], v.y * by[0], v.z * by[1], v.w * by[1]);
  }
  Tile::put(a, x, to, sum.value);
}

#endif
