/*
 * mla_upproject_mfma_cdna.h - keys and values of prefill from latents
 * (gpu_prefill.h), on matrix cores: bf16 or f16, 128 columns of a head's key
 * and 128 of its value. Values lie turned, [head][slot / 32][128][32].
 */
#ifndef MLA_UPPROJECT_MFMA_CDNA_H
#define MLA_UPPROJECT_MFMA_CDNA_H

#include "gpu_prefill.h"
#include "hip_mfma.h"

enum {
  MLA_PREFILL_KEYS = 32, /* of a tile; slots of a request: multiples of it */
  MLA_UP_TILE = 128,     /* slots of a block, columns of a block */
  MLA_UP_STEP = 32,      /* latent columns a turn */
  /* A chunk of padding, of 16 bytes, keeps rows off each other's banks. */
  MLA_UP_STRIDE = MLA_UP_STEP / 8 + 1,
  MLA_UP_LOADS = 2 * MLA_UP_TILE * MLA_UP_STEP / 8 / MLA_PREFILL_THREADS
};

typedef mla_u32x4 mla_up_row[MLA_UP_STRIDE];

/* Rows of a tile: latents by slot, or weights. */
typedef struct mla_up_rows {
  const void *base;
  int64_t row;
  int whole;
} mla_up_rows;

/* Four threads bring 32 columns of a row, two rows of each tile a thread. */
MLA_DEV void mla_up_fetch(const mla_up_rows *side, int column, mla_u32x4 *to) {
  const int row = MLA_TID / 4, chunk = MLA_TID % 4;
  MLA_UNROLL
  for (int i = 0; i < MLA_UP_LOADS; i++)
    to[i] = mla_mfma_chunk(
        side[i / 2].base,
        (row + i % 2 * 64) * side[i / 2].row + column + 8 * chunk,
        side[i / 2].whole);
}

MLA_DEV void mla_up_keep(mla_up_row *first, mla_up_row *second,
                         const mla_u32x4 *from) {
  const int row = MLA_TID / 4, chunk = MLA_TID % 4;
  MLA_UNROLL
  for (int i = 0; i < 2; i++) {
    first[row + 64 * i][chunk] = from[i];
    second[row + 64 * i][chunk] = from[2 + i];
  }
}

/* D[m][n], 64 x 64 of a wave: += its rows of the first times the second's. */
template <int DT>
MLA_DEV void mla_up_multiply(const mla_up_row *first, const mla_up_row *second,
                             mla_f32x16 sum[2][2]) {
  const int n = MLA_LANE % 32, g = MLA_LANE / 32;
  MLA_UNROLL
  for (int c = 0; c < MLA_UP_STEP / 16; c++) {
    mla_u32x4 a[2], b[2];
    MLA_UNROLL
    for (int i = 0; i < 2; i++) {
      a[i] = first[32 * i + n][2 * c + g];
      b[i] = second[32 * i + n][2 * c + g];
    }
    MLA_UNROLL
    for (int i = 0; i < 4; i++) {
      mla_f32x16 *d = &sum[i / 2][i % 2];
      MLA_MFMA_32(DT, mla_low_half(a[i / 2]), mla_low_half(b[i % 2]), d);
      MLA_MFMA_32(DT, mla_high_half(a[i / 2]), mla_high_half(b[i % 2]), d);
    }
  }
}

/* Four of a row of K are four columns; of V, four keys. */
template <int DT>
MLA_DEV void mla_up_write(uint16_t *to, int is_v, int m0, int n0,
                          const mla_f32x16 sum[2][2]) {
  const int g = MLA_LANE / 32;
  MLA_UNROLL
  for (int i = 0; i < 16; i++) {
    const int m = m0 + i / 8 * 32 + i % 4 * 8 + 4 * g;
    const int n = n0 + i / 4 % 2 * 32 + MLA_LANE % 32;
    const mla_f32x16 &d = sum[i / 8][i / 4 % 2];
    const int at = is_v ? (m / 32 * MLA_PREFILL_DV + n) * 32 + m % 32
                        : n * MLA_PREFILL_DV + m;
    *(mla_u32x2 *)(to + at) =
        mla_u32x2{mla_pair_of<DT>(d[i % 4 * 4], d[i % 4 * 4 + 1]),
                  mla_pair_of<DT>(d[i % 4 * 4 + 2], d[i % 4 * 4 + 3])};
  }
}

/* Grid: x 128 slots, y head, then key or value. Rows of D are what lies
   together in memory: columns of K, slots of V. */
template <int DT>
MLA_TWO_WAVES MLA_KERNEL mla_upproject_mfma(mla_upproject_args a,
                                            mla_prefill_part p) {
  MLA_SHARED_TILE(mla_u32x4, first, MLA_UP_TILE, MLA_UP_STRIDE);
  MLA_SHARED_TILE(mla_u32x4, second, MLA_UP_TILE, MLA_UP_STRIDE);
  const int slot = (int)blockIdx.x * MLA_UP_TILE;
  const int head = (int)blockIdx.y / 2, is_v = (int)blockIdx.y % 2;
  const int m0 = MLA_WAVE_ID % 2 * 64, n0 = MLA_WAVE_ID / 2 * 64;
  if (!mla_prefill_any<MLA_PREFILL_KEYS>(p, slot, MLA_UP_TILE)) return;
  const int busy =
      mla_prefill_any<MLA_PREFILL_KEYS>(p, slot + (is_v ? m0 : n0), 64);
  const mla_up_rows latents = {a.latents + slot * a.width, a.width, 1};
  const mla_up_rows weights = {
      (const uint16_t *)a.w +
          ((int64_t)(a.head0 + head) * 2 + is_v) * MLA_UP_TILE * a.w_row,
      a.w_row, a.w_whole};
  const mla_up_rows side[2] = {is_v ? latents : weights,
                               is_v ? weights : latents};
  mla_u32x4 next[MLA_UP_LOADS];
  mla_f32x16 sum[2][2] = {};
  mla_up_fetch(side, 0, next);
  for (int c = 0; c < a.latent; c += MLA_UP_STEP) {
    MLA_BARRIER();
    mla_up_keep(first, second, next);
    MLA_BARRIER();
    if (c + MLA_UP_STEP < a.latent) mla_up_fetch(side, c + MLA_UP_STEP, next);
    if (busy) mla_up_multiply<DT>(first + m0, second + n0, sum);
  }
  if (busy)
    mla_up_write<DT>(
        (is_v ? a.v : a.k) + (head * a.slots + slot) * MLA_PREFILL_DV, is_v, m0,
        n0, sum);
}

#endif
