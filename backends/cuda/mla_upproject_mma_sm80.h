/*
 * mla_upproject_mma_sm80.h - keys and values of prefill from latents
 * (gpu_prefill.h) by matrix products of warps: bf16 or f16, 128 columns of a
 * head's key and 128 of its value, both [head][slot][128].
 *
 * A block makes 128 slots of one of them, a warp 32 slots and 64 columns;
 * latents and weights pass through shared memory, 32 columns a stage, three
 * stages.
 */
#ifndef MLA_UPPROJECT_MMA_SM80_H
#define MLA_UPPROJECT_MMA_SM80_H

#include "gpu_prefill.h"
#include "sm80_mma.h"

enum {
  SM80_PREFILL_KEYS = 64, /* of a tile; slots of a request: multiples of it */
  SM80_UP_TILE = 128,     /* slots of a block, columns of a block */
  SM80_UP_STEP = 32,      /* latent columns a stage */
  SM80_UP_STRIDE = SM80_UP_STEP / 8 + 1,
  SM80_UP_SIDE = SM80_UP_TILE * SM80_UP_STRIDE,
  SM80_UP_STAGE = 2 * SM80_UP_SIDE, /* chunks: latents, then weights */
  SM80_UP_STAGES = 3,
  SM80_UP_OUT = SM80_UP_TILE / 8 + 1, /* chunks of a row on its way out */
  SM80_UP_BYTES = SM80_UP_STAGES * SM80_UP_STAGE * 16
};

/* Rows of a stage: latents by slot, then weights. */
typedef struct sm80_up_rows {
  const uint16_t *base[2];
  int64_t row[2];
  int whole[2];
} sm80_up_rows;

/* Four threads bring 32 columns of a row, behind the last zeros. */
MLA_DEV void sm80_up_bring(const sm80_up_rows &r, sm80_chunk *stage, int column,
                           int columns) {
  const int row = MLA_TID / 4, part = MLA_TID % 4, at = column + 8 * part;
  SM80_UNROLL
  for (int i = 0; i < 4; i++) {
    const int side = i / 2, n = row + i % 2 * 64;
    sm80_bring(stage + side * SM80_UP_SIDE + n * SM80_UP_STRIDE + part,
               r.base[side] + (at < columns ? n * r.row[side] + at : 0),
               columns - at, r.whole[side]);
  }
}

/* The warp's 32 x 64 of a stage: two tiles of rows, eight of columns. */
template <int DT>
MLA_DEV void sm80_up_multiply(const sm80_chunk *stage, int m0, int n0,
                              float (&sum)[2][8][4]) {
  SM80_UNROLL
  for (int k = 0; k < SM80_UP_STEP; k += 16) {
    uint32_t a[2][4];
    SM80_UNROLL
    for (int m = 0; m < 2; m++)
      SM80_LOAD4(sm80_a_row(stage, SM80_UP_STRIDE, m0 + 16 * m, k), a[m]);
    SM80_UNROLL
    for (int n = 0; n < 8; n += 2) {
      uint32_t b[4];
      SM80_LOAD4(
          sm80_b_row(stage + SM80_UP_SIDE, SM80_UP_STRIDE, n0 + 8 * n, k), b);
      SM80_UNROLL
      for (int m = 0; m < 2; m++) {
        SM80_MMA(DT, a[m], &b[0], sum[m][n]);
        SM80_MMA(DT, a[m], &b[2], sum[m][n + 1]);
      }
    }
  }
}

/* Through shared memory, so that rows leave by 16 bytes a lane. */
template <int DT>
MLA_DEV void sm80_up_write(sm80_chunk *pool, uint16_t *to, int m0, int n0,
                           const float (&sum)[2][8][4]) {
  SM80_UNROLL
  for (int i = 0; i < 32; i++) {
    const int m = i / 16, n = i / 2 % 8, h = i % 2;
    const int row = m0 + 16 * m + 8 * h + MLA_LANE / 4;
    ((uint32_t *)(pool + row * SM80_UP_OUT))[(n0 + 8 * n) / 2 + MLA_LANE % 4] =
        sm80_pair<DT>(sum[m][n][2 * h], sum[m][n][2 * h + 1]);
  }
  MLA_BARRIER();
  SM80_UNROLL
  for (int i = 0; i < SM80_UP_TILE / 16; i++) {
    const int row = MLA_TID / 16 + 16 * i, part = MLA_TID % 16;
    ((sm80_chunk *)to)[row * (MLA_PREFILL_DV / 8) + part] =
        pool[row * SM80_UP_OUT + part];
  }
}

/* Grid: x 128 slots, y head, then key or value. */
template <int DT>
SM80_KERNEL(MLA_PREFILL_THREADS, 2)
mla_upproject_mma(mla_upproject_args a, mla_prefill_part p) {
  MLA_DYNAMIC_SHARED(sm80_chunk, sm80_pool);
  const int slot = (int)blockIdx.x * SM80_UP_TILE;
  const int head = (int)blockIdx.y / 2, is_v = (int)blockIdx.y % 2;
  const int m0 = MLA_WAVE_ID % 4 * 32, n0 = MLA_WAVE_ID / 4 * 64;
  if (!mla_prefill_any<SM80_PREFILL_KEYS>(p, slot, SM80_UP_TILE)) return;
  const int busy = mla_prefill_any<SM80_PREFILL_KEYS>(p, slot + m0, 32);
  const sm80_up_rows rows = {
      {a.latents + slot * a.width,
       (const uint16_t *)a.w +
           ((int64_t)(a.head0 + head) * 2 + is_v) * SM80_UP_TILE * a.w_row},
      {a.width, a.w_row},
      {1, a.w_whole}};
  float sum[2][8][4] = {};
  SM80_UNROLL
  for (int i = 0; i + 1 < SM80_UP_STAGES; i++) {
    sm80_up_bring(rows, sm80_pool + i * SM80_UP_STAGE, i * SM80_UP_STEP,
                  a.latent);
    SM80_COMMIT();
  }
  int stage = 0, filled = SM80_UP_STAGES - 1;
  for (int c = 0; c < a.latent; c += SM80_UP_STEP) {
    SM80_WAIT(SM80_UP_STAGES - 2);
    MLA_BARRIER();
    if (c + (SM80_UP_STAGES - 1) * SM80_UP_STEP < a.latent)
      sm80_up_bring(rows, sm80_pool + filled * SM80_UP_STAGE,
                    c + (SM80_UP_STAGES - 1) * SM80_UP_STEP, a.latent);
    SM80_COMMIT();
    if (busy)
      sm80_up_multiply<DT>(sm80_pool + stage * SM80_UP_STAGE, m0, n0, sum);
    stage = stage + 1 == SM80_UP_STAGES ? 0 : stage + 1;
    filled = filled + 1 == SM80_UP_STAGES ? 0 : filled + 1;
  }
  SM80_WAIT(0);
  MLA_BARRIER();
  sm80_up_write<DT>(
      sm80_pool,
      (is_v ? a.v : a.k) + (head * a.slots + slot) * (int64_t)MLA_PREFILL_DV,
      m0, n0, sum);
}

#endif
