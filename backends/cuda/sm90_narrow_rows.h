/*
 * sm90_narrow_rows.h - what one warpgroup does with blocks of 64 keys where a
 * CTA has 16 or 32 rows: products are turned over, so that keys and columns of
 * V are the 64 rows of an instruction, and rows its columns:
 *
 *   S^T[keys, rows] = K Q^T       O^T[512, rows] += V^T P^T
 *
 * Scores: a lane has keys 16 * warp + lane / 4 and that plus 8, of rows
 * 8 * j + 2 * (lane % 4) and the next; acc[4 * j + 2 * key + row]. So maxima
 * go across lanes, and across warps through shared memory. Outputs: tile t has
 * columns 64 * t + 16 * warp + lane / 4 and that plus 8, of the same rows.
 */
#ifndef MLA_SM90_NARROW_ROWS_H
#define MLA_SM90_NARROW_ROWS_H

#include "sm90_decode_out.h"
#include "sm90_narrow_state.h"

/* A lane's row `i` of those that it has some of, and where it has that one's
   number `k` of two in eight. */
MLA_DEV int narrow_row(int i) {
  return i / 2 * 8 + MLA_LANE % 4 * 2 + i % 2;
}
MLA_DEV constexpr int narrow_at(int i, int k) {
  return i / 2 * 4 + 2 * k + i % 2;
}

template <int Rows>
struct narrow_sums {
  float o[8][Rows / 2];
  float top[Rows / 4], sum[Rows / 4];
};

/* Descriptors (sm90_wgmma.h), whose operands are as wide as a box, so that only
   the way from 8 rows to the next counts: groups of keys, or Q and P. */
template <int Next>
MLA_DEV uint64_t narrow_tile(uint32_t address) {
  uint64_t d;
  asm("mov.b64 %0, {%1, %2};"
      : "=l"(d)
      : "r"(address >> 4 | 1u << 16), "r"((uint32_t)Next >> 4 | 1u << 30));
  return d;
}

template <int Rows>
MLA_DEV void narrow_scores(const narrow_state &s, float (&acc)[Rows / 2]) {
  const uint32_t q = s.smem + narrow_of<Rows>::Q, k = narrow_block_at(s);
  wgmma_fence();
#pragma unroll
  for (int box = 0; box < 9; box++)
#pragma unroll
    for (int i = 0; i < 4; i++)
      wgmma_m64_ss<0>(
          acc, narrow_tile<NARROW_GROUP>(k + box * NARROW_BOX + 32 * i),
          narrow_tile<1024>(q + box * narrow_of<Rows>::QBox + 32 * i),
          box + i > 0);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_hold(acc);
}

/* Scores of keys that a row does not see to -inf; `key`: the block's first. */
template <int Rows>
MLA_DEV void narrow_mask(const mla_sm90_args &a, const narrow_state &s,
                         const sm90_piece &w, int key, float (&acc)[Rows / 2]) {
  const int later = a.causal ? w.queries - 1 : 0; /* keys of other queries */
  if (key + MLA_SM90_BLOCK <= w.seq - later) return;
  const int mine = key + 16 * s.warp + MLA_LANE / 4;
#pragma unroll
  for (int i = 0; i < Rows / 4; i++) {
    int seen = w.seq;
    if (later) seen += (narrow_first<Rows>() + narrow_row(i)) / a.heads - later;
#pragma unroll
    for (int k = 0; k < 2; k++)
      if (mine + 8 * k >= seen) acc[narrow_at(i, k)] = MLA_NEG_INF;
  }
}

/* Rows of V past the last key hold anything, NaN too. */
MLA_DEV void narrow_clear(const narrow_state &s, const sm90_piece &w, int key) {
  const int valid = w.seq - key;
#pragma unroll 1
  for (int i = valid * 64 + (int)threadIdx.x; i < MLA_SM90_BLOCK * 64;
       i += 128) {
    const uint32_t at = narrow_block_at(s) + i / 512 * NARROW_GROUP +
                        i / 8 % 8 * NARROW_BOX + i / 64 % 8 * 128 + i % 8 * 16;
    store_shared_zeros(at);
  }
}

/* Four warps' numbers for each row, one after another: a lane's own go where
   its warp's are, from four lanes of it. */
template <int Rows>
MLA_DEV uint32_t narrow_told(const narrow_state &s, int which, int warp,
                             int i) {
  return s.smem + which + 4 * Rows * warp + 8 * (MLA_LANE % 4) +
         4 * (i / 2 * 8 + i % 2);
}

/* The block's maxima of a lane's rows, over all keys. */
template <int Rows>
MLA_DEV void narrow_tops(const narrow_state &s, const float (&acc)[Rows / 2],
                         float (&best)[Rows / 4]) {
#pragma unroll
  for (int i = 0; i < Rows / 4; i++) {
    best[i] = fmaxf(acc[narrow_at(i, 0)], acc[narrow_at(i, 1)]);
#pragma unroll
    for (int m = 4; m < 32; m *= 2)
      best[i] = fmaxf(best[i], MLA_SHFL_XOR(best[i], m));
    if (MLA_LANE < 4)
      store_shared(narrow_told<Rows>(s, narrow_of<Rows>::Max, s.warp, i),
                   best[i]);
  }
  bar_sync(NARROW_BAR_ROWS, 128);
#pragma unroll
  for (int i = 0; i < Rows / 4; i++)
#pragma unroll
    for (int warp = 0; warp < 4; warp++)
      best[i] = fmaxf(best[i], load_shared(narrow_told<Rows>(
                                   s, narrow_of<Rows>::Max, warp, i)));
}

/* Exponentials relative to the new maxima; what there was follows them. */
template <int Rows>
MLA_DEV void narrow_exp(const mla_sm90_args &a, const float (&best)[Rows / 4],
                        float (&acc)[Rows / 2], narrow_sums<Rows> &x) {
#pragma unroll
  for (int i = 0; i < Rows / 4; i++) {
    const float top = fmaxf(x.top[i], best[i] * a.scale);
    const float base = sm90_base(top);
    const float by = top == x.top[i] ? 1.0f : sm90_exp2(x.top[i] - base);
    x.top[i] = top;
    float part = 0;
#pragma unroll
    for (int k = 0; k < 2; k++) {
      float &v = acc[narrow_at(i, k)];
      v = sm90_exp2(fmaf(v, a.scale, SM90_P_UP - base));
      part += v;
    }
    x.sum[i] = x.sum[i] * by + part;
    if (by == 1.0f) continue;
#pragma unroll
    for (int t = 0; t < 8; t++)
#pragma unroll
      for (int k = 0; k < 2; k++) x.o[t][narrow_at(i, k)] *= by;
  }
}

/* Where a lane's matrix row goes that is turned over: rows are `width` apart,
   a warp has two chunks of 16 bytes of each, swizzled. */
MLA_DEV uint32_t narrow_turned(const narrow_state &s, int width) {
  const int line = MLA_LANE % 8, half = MLA_LANE / 8 % 2;
  return (uint32_t)((MLA_LANE / 16 * 8 + line) * width +
                    (((2 * s.warp + half) ^ line) << 4));
}

/* P^T into shared memory, a row's keys along 128 bytes. */
template <int Rows>
MLA_DEV void narrow_store_p(const narrow_state &s,
                            const float (&acc)[Rows / 2]) {
#pragma unroll
  for (int j = 0; j < Rows / 16; j++) {
    uint32_t m[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      m[i] = sm90_pack(acc[8 * j + 2 * i], acc[8 * j + 2 * i + 1]);
    store_matrices_turned(
        s.smem + narrow_of<Rows>::P + narrow_turned(s, 128) + 2048 * j, m);
  }
}

template <int Rows>
MLA_DEV void narrow_values(const narrow_state &s, narrow_sums<Rows> &x) {
  const uint32_t p = s.smem + narrow_of<Rows>::P, v = narrow_block_at(s);
  wgmma_fence();
#pragma unroll
  for (int t = 0; t < 8; t++)
#pragma unroll
    for (int k = 0; k < 4; k++)
      wgmma_m64_ss<1>(
          x.o[t],
          narrow_tile<NARROW_GROUP>(v + t * NARROW_BOX + 2 * k * NARROW_GROUP),
          narrow_tile<1024>(p + 32 * k), 1);
  wgmma_commit();
  wgmma_wait<0>();
#pragma unroll
  for (int t = 0; t < 8; t++) wgmma_hold(x.o[t]);
}

/* One block: scores, the maxima that all warps agree on, P, values. */
template <int Rows>
MLA_DEV void narrow_block(const mla_sm90_args &a, const narrow_state &kept,
                          const sm90_piece &w, int key, narrow_sums<Rows> &x) {
  narrow_state s = kept;
  s.smem = MLA_SHFL(s.smem, 0); /* the same in all lanes, and told so */
  s.blocks = MLA_SHFL(s.blocks, 0);
  float acc[Rows / 2], best[Rows / 4];
  mbar_wait(narrow_bar(s, NARROW_FULL + narrow_buffer(s)), narrow_parity(s));
  narrow_scores<Rows>(s, acc);
  narrow_mask<Rows>(a, s, w, key, acc);
  narrow_tops<Rows>(s, acc, best);
  narrow_exp<Rows>(a, best, acc, x);
  narrow_store_p<Rows>(s, acc);
  narrow_clear(s, w, key);
  fence_async();
  bar_sync(NARROW_BAR_ROWS, 128);
  narrow_values<Rows>(s, x);
  if (MLA_LANE == 0)
    mbar_arrive(narrow_bar(s, NARROW_EMPTY + narrow_buffer(s)));
}

/* ------------------------------------------------------------------- out */

/* Sums of all lanes and warps. */
template <int Rows>
MLA_DEV void narrow_join(const narrow_state &s, narrow_sums<Rows> &x) {
#pragma unroll
  for (int i = 0; i < Rows / 4; i++) {
#pragma unroll
    for (int m = 4; m < 32; m *= 2) x.sum[i] += MLA_SHFL_XOR(x.sum[i], m);
    if (MLA_LANE < 4)
      store_shared(narrow_told<Rows>(s, narrow_of<Rows>::Sum, s.warp, i),
                   x.sum[i]);
  }
  bar_sync(NARROW_BAR_ROWS, 128);
#pragma unroll
  for (int i = 0; i < Rows / 4; i++) {
    x.sum[i] = 0;
#pragma unroll
    for (int warp = 0; warp < 4; warp++)
      x.sum[i] +=
          load_shared(narrow_told<Rows>(s, narrow_of<Rows>::Sum, warp, i));
  }
}

/* A piece as the registers have it (sm90_narrow_tile), neither divided nor
   brought to what it is part of: that is the merge's business. */
template <int Rows>
MLA_DEV void narrow_put_part(const mla_sm90_args &a, const sm90_piece &w,
                             const narrow_sums<Rows> &x) {
  const int64_t tile = (int64_t)w.scratch * gridDim.x + blockIdx.x;
  float4 *to =
      sm90_piece_at(a, tile, sm90_narrow_tile<Rows>::Size) + (int)threadIdx.x;
#pragma unroll
  for (int j = 0; j < Rows / 8; j++) {
    if (narrow_first<Rows>() + 8 * j >= w.rows) break;
#pragma unroll
    for (int t = 0; t < 8; t++)
      to[128 * (8 * j + t)] = make_float4(x.o[t][4 * j], x.o[t][4 * j + 2],
                                          x.o[t][4 * j + 1], x.o[t][4 * j + 3]);
  }
  if (threadIdx.x >= 4) return;
#pragma unroll
  for (int i = 0; i < Rows / 4; i++)
    ((float2 *)a.part_lse)[tile * Rows + narrow_row(i)] =
        make_float2(x.top[i] - SM90_P_UP, x.sum[i]);
}

/* 16-bit outputs are turned over in the memory that held Q, and leave by whole
   rows: 64 chunks each, two rows at once. */
template <int Rows>
MLA_DEV void narrow_put_rows(const mla_sm90_args &a, const narrow_state &s,
                             const sm90_piece &w, const narrow_sums<Rows> &x,
                             const float (&by)[Rows / 4]) {
  const uint32_t to = s.smem + narrow_of<Rows>::Q + narrow_turned(s, 1024);
#pragma unroll
  for (int j = 0; j < Rows / 16; j++)
#pragma unroll
    for (int t = 0; t < 8; t++) {
      uint32_t m[4];
#pragma unroll
      for (int i = 0; i < 4; i++)
        m[i] = sm90_pack_as(
            a.out_dtype, x.o[t][8 * j + 2 * i] * by[4 * j + i / 2 * 2],
            x.o[t][8 * j + 2 * i + 1] * by[4 * j + i / 2 * 2 + 1]);
      store_matrices_turned(to + j * 16384 + t * 128, m);
    }
  bar_sync(NARROW_BAR_ROWS, 128);
  const int chunk = (int)threadIdx.x % 64;
  /* Lanes know a row's place each. */
  const int64_t place =
      sm90_out_row(a, w.first_token, narrow_first<Rows>() + MLA_LANE % Rows);
#pragma unroll 4
  for (int i = 0; i < Rows / 2; i++) {
    const int row = 2 * i + (int)threadIdx.x / 64;
    const int64_t at = MLA_SHFL(place, row);
    if (narrow_first<Rows>() + row >= w.rows) break;
    *(uint4 *)((uint16_t *)a.out + at + 8 * chunk) =
        load_shared_16(s.smem + narrow_of<Rows>::Q + row * 1024 +
                       (uint32_t)((chunk ^ (row & 7)) << 4));
  }
  fence_async(); /* the copy engine fills this memory next */
}

template <int Rows>
MLA_DEV void narrow_put_wide(const mla_sm90_args &a, const narrow_state &s,
                             const sm90_piece &w, const narrow_sums<Rows> &x,
                             const float (&by)[Rows / 4]) {
#pragma unroll
  for (int i = 0; i < Rows / 4; i++) {
    const int row = narrow_first<Rows>() + narrow_row(i);
    if (row >= w.rows) continue;
    float *to = (float *)a.out + sm90_out_row(a, w.first_token, row) +
                16 * s.warp + MLA_LANE / 4;
#pragma unroll
    for (int t = 0; t < 8; t++)
#pragma unroll
      for (int k = 0; k < 2; k++)
        to[64 * t + 8 * k] = x.o[t][narrow_at(i, k)] * by[i];
  }
}

template <int Rows>
MLA_DEV void narrow_put_whole(const mla_sm90_args &a, const narrow_state &s,
                              const sm90_piece &w, const narrow_sums<Rows> &x) {
  float by[Rows / 4];
#pragma unroll
  for (int i = 0; i < Rows / 4; i++) {
    const int row = narrow_first<Rows>() + narrow_row(i);
    const int empty = x.top[i] == MLA_NEG_INF;
    const float lse =
        empty ? MLA_NEG_INF : x.top[i] + (log2f(x.sum[i]) - SM90_P_UP);
    by[i] = empty ? 0.0f : 1.0f / x.sum[i];
    if (row >= w.rows) continue;
    if (a.sink) by[i] *= sm90_sink(a, row % a.heads, lse);
    if (a.lse && threadIdx.x < 4)
      sm90_put_lse(a, w.first_token + row / a.heads, row % a.heads, lse);
  }
  if (a.out_dtype == MLA_F32)
    narrow_put_wide<Rows>(a, s, w, x, by);
  else
    narrow_put_rows<Rows>(a, s, w, x, by);
}

/* A piece, from when Q and keys are on their way. */
template <int Rows>
MLA_DEV void narrow_attend(const mla_sm90_args &a, narrow_state &s,
                           const sm90_piece &w) {
  narrow_sums<Rows> x = {};
#pragma unroll
  for (int i = 0; i < Rows / 4; i++) x.top[i] = MLA_NEG_INF;
  mbar_wait(narrow_bar(s, NARROW_Q_FULL), s.pieces & 1);
  int key = w.block * MLA_SM90_BLOCK;
#pragma unroll 1
  for (int i = 0; i < w.blocks; i++, key += MLA_SM90_BLOCK) {
    narrow_block<Rows>(a, s, w, key, x);
    s.blocks++;
  }
  narrow_join<Rows>(s, x);
  if (w.whole)
    narrow_put_whole<Rows>(a, s, w, x);
  else
    narrow_put_part<Rows>(a, w, x);
  s.pieces++;
  __syncwarp();
  if (MLA_LANE == 0) mbar_arrive(narrow_bar(s, NARROW_Q_EMPTY));
}

#endif
