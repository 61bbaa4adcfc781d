/*
 * mla_upproject_mfma_cdna.h - keys and values of prefill from latents, on
 * matrix cores: bf16 or f16, 128 columns of a head's key and 128 of its value.
 *
 * A prefill is done in parts: chunks of each request's context, then the new
 * tokens. The tokens of a part lie in slots, each request's from a multiple of
 * 32 on: its latents are gathered there, zeros behind the last of them, so
 * that what follows never meets another request's data.
 */
#ifndef MLA_UPPROJECT_MFMA_CDNA_H
#define MLA_UPPROJECT_MFMA_CDNA_H

#include "gpu_attend.h"
#include "hip_mfma.h"

enum {
  MLA_PREFILL_THREADS = 256,
  MLA_PREFILL_KEYS = 32, /* of a tile; slots of a request: multiples of it */
  MLA_PREFILL_DV = 128,
  MLA_PREFILL_ROPE = 64,
  MLA_UP_TILE = 128, /* slots of a block, columns of a block */
  MLA_UP_STEP = 32,  /* latent columns a turn */
  /* A chunk of padding, of 16 bytes, keeps rows off each other's banks. */
  MLA_UP_STRIDE = MLA_UP_STEP / 8 + 1,
  MLA_UP_LOADS = 2 * MLA_UP_TILE * MLA_UP_STEP / 8 / MLA_PREFILL_THREADS
};

typedef struct mla_prefill_part {
  const int32_t *start, *seq_lens;
  int64_t start_step, seq_lens_step;
  int requests;
  int chunk; /* slots a request has: a part of the context; 0: new tokens */
  int first; /* the first position of the chunk */
} mla_prefill_part;

/* What a part has of a request. */
typedef struct mla_prefill_keys {
  int request, base, length; /* base: its first slot */
  int begin, queries;        /* its first token of the step */
  int context;
} mla_prefill_keys;

MLA_DEV mla_prefill_keys mla_prefill_keys_of(const mla_prefill_part &p, int b) {
  mla_prefill_keys k;
  k.request = b;
  k.begin = p.start[b * p.start_step];
  k.queries = p.start[(b + 1) * p.start_step] - k.begin;
  k.context = p.seq_lens[b * p.seq_lens_step] - k.queries;
  k.base = (k.begin / MLA_PREFILL_KEYS + b) * MLA_PREFILL_KEYS;
  k.length = k.queries;
  if (p.chunk) {
    const int rest = k.context - p.first;
    k.base = b * p.chunk;
    k.length = rest < 0 ? 0 : (rest < p.chunk ? rest : p.chunk);
  }
  return k;
}

/* Units of so many tokens, each request's counted up and one more: that
   unit's request. (What is beyond its last unit is for callers to see.) */
MLA_DEV int mla_prefill_request(const mla_prefill_part &p, int unit, int at) {
  int lo = 0, hi = p.requests;
  while (hi - lo > 1) {
    const int mid = (lo + hi) / 2;
    if (p.start[mid * p.start_step] / unit + mid <= at)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

MLA_DEV int mla_prefill_at_slot(const mla_prefill_part &p, int slot) {
  if (p.chunk) return slot / p.chunk;
  return mla_prefill_request(p, MLA_PREFILL_KEYS, slot / MLA_PREFILL_KEYS);
}

/* Slots up to which a request's are read: whole tiles. */
MLA_DEV int mla_prefill_end(const mla_prefill_keys &k) {
  return k.base + (k.length + MLA_PREFILL_KEYS - 1) / MLA_PREFILL_KEYS *
                      MLA_PREFILL_KEYS;
}

/* Whether any of these slots is read. */
MLA_DEV int mla_prefill_any(const mla_prefill_part &p, int slot, int count) {
  for (int b = mla_prefill_at_slot(p, slot); b < p.requests; b++) {
    const mla_prefill_keys k = mla_prefill_keys_of(p, b);
    if (k.base >= slot + count) return 0;
    if (mla_prefill_end(k) > slot && k.length > 0) return 1;
  }
  return 0;
}

/* ---------------------------------------------------------------- gathering */

/* Column d of position j of a request, from the cache or of this step. */
template <int DT>
MLA_DEV float mla_prefill_latent(const mla_attend_args &a,
                                 const mla_prefill_keys &k, int j, int d) {
  if (j >= k.context) {
    const int64_t t = k.begin + (j - k.context);
    return d < a.latent
               ? mla_elem<DT>::load(a.new_c, t * a.new_c_row + d)
               : mla_elem<DT>::load(a.new_r, t * a.new_r_row + d - a.latent);
  }
  const int64_t id = a.table[k.request * a.table_row + j / a.block_size];
  const int64_t offset = j % a.block_size;
  if (a.k_entry.scaled)
    return mla_entry_value(a.k_entry,
                           mla_entry_at(a.k_entry, a.cache, id, offset, 0), d,
                           a.compute);
  return mla_elem<DT>::load(a.cache, id * a.k_block + offset * a.k_row + d);
}

/* Rows of a.dk columns by slot, one a wave: latents, then the rope part. */
template <int DT>
MLA_KERNEL mla_prefill_gather(mla_attend_args a, mla_prefill_part p,
                              uint16_t *to) {
  const int waves = MLA_PREFILL_THREADS / MLA_WAVE;
  const int slot = (int)blockIdx.x * waves + MLA_WAVE_ID;
  const int b = mla_prefill_at_slot(p, slot);
  if (b >= p.requests) return;
  const mla_prefill_keys k = mla_prefill_keys_of(p, b);
  if (slot >= mla_prefill_end(k)) return;
  const int local = slot - k.base, live = local < k.length;
  const int j = local + (p.chunk ? p.first : k.context);
  for (int d = MLA_LANE; d < a.dk; d += MLA_WAVE)
    mla_store_any(to, DT, (int64_t)slot * a.dk + d,
                  live ? mla_prefill_latent<DT>(a, k, j, d) : 0.0f);
}

/* --------------------------------------------------------------- projecting */

typedef struct mla_upproject_args {
  const uint16_t *latents; /* [slots][width] */
  const void *w;           /* kv_b_proj: a head's 128 of key, 128 of value */
  int64_t width, w_row, slots;
  int latent;  /* columns: a multiple of MLA_UP_STEP */
  int w_whole; /* its rows are whole chunks of 16 bytes */
  int head0;   /* the first of this launch */
  uint16_t *k; /* [head][slot][128] */
  uint16_t *v; /* [head][slot / 32][128][32]: tiles of keys, turned */
} mla_upproject_args;

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
  if (!mla_prefill_any(p, slot, MLA_UP_TILE)) return;
  const int busy = mla_prefill_any(p, slot + (is_v ? m0 : n0), 64);
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
