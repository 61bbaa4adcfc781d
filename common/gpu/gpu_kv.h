/*
 * gpu_kv.h - cache writes and gathers: rows of plain numbers by chunks of
 * eight, whatever else one element a thread after another. All index
 * arithmetic is 64-bit.
 */
#ifndef MLA_GPU_KV_H
#define MLA_GPU_KV_H

#include "gpu_entry.h"
#include "gpu_request.h"

enum { MLA_KV_THREADS = 256 };

typedef struct mla_kv_args {
  void *cache;
  int64_t block, row, capacity; /* strides; slots in all */
  int cache_dtype, block_size;
  const void *kv_c, *k_pe; /* kv_write: sources, of dtype io_dtype */
  int64_t c_row, r_row;
  const int64_t *slots;
  int64_t slots_step;
  void *dst; /* kv_read */
  int64_t dst_row;
  int io_dtype;
  const int32_t *table, *cu, *starts;
  int64_t table_row, cu_step, starts_step;
  int requests, latent, width;
  mla_entry entry; /* where entries have scales */
  int64_t tokens;
  uint32_t magic; /* 2^20 / chunks of a row, rounded up */
} mla_kv_args;

/* n / by, n >= 0: in 32 bits where they do, which takes a fifth. */
MLA_DEV int64_t mla_quotient(int64_t n, int by) {
  if (n >> 32) return n / by;
  return (uint32_t)n / (uint32_t)by;
}

/* Where a slot of a plain cache begins. */
MLA_DEV int64_t mla_slot_at(const mla_kv_args &a, int64_t slot) {
  const int64_t block = mla_quotient(slot, a.block_size);
  return block * a.block + (slot - block * a.block_size) * a.row;
}

/* Grid: x token. */
MLA_KERNEL mla_kv_write_rows(mla_kv_args a) {
  const int64_t t = blockIdx.x;
  const int64_t slot = a.slots[t * a.slots_step];
  if (slot < 0 || slot >= a.capacity) return;
  const int64_t at = mla_slot_at(a, slot);
  for (int d = MLA_TID; d < a.width; d += MLA_KV_THREADS) {
    float v = d < a.latent ? mla_load_any(a.kv_c, a.io_dtype, t * a.c_row + d)
                           : mla_load_any(a.k_pe, a.io_dtype,
                                          t * a.r_row + d - a.latent);
    mla_store_any(a.cache, a.cache_dtype, at + d, v);
  }
}

/* Value d of a token that is to be written. */
MLA_DEV float mla_token_value(const mla_kv_args &a, int64_t t, int d) {
  return d < a.latent
             ? mla_load_any(a.kv_c, a.io_dtype, t * a.c_row + d)
             : mla_load_any(a.k_pe, a.io_dtype, t * a.r_row + d - a.latent);
}

/* Code d of a token, 0 past the last. */
MLA_DEV uint32_t mla_token_code(const mla_kv_args &a, int64_t t, int d,
                                float scale) {
  if (d >= a.entry.codes) return 0;
  return mla_float_to_code(a.entry.code, mla_token_value(a, t, d) / scale);
}

/* A tile by one wave: its scale, then its codes, byte after byte. */
MLA_DEV void mla_write_tile(const mla_kv_args &a, const mla_entry_place &p,
                            int64_t t, int tile) {
  const mla_entry &e = a.entry;
  const int first = tile * e.tile, per = e.code == MLA_I4 ? 2 : 1;
  float scale = e.one, amax = 0;
  if (e.scale != MLA_DTYPE_NONE) {
    for (int d = MLA_LANE; d < e.tile; d += MLA_WAVE)
      amax = fmaxf(amax, fabsf(mla_token_value(a, t, first + d)));
    scale = mla_scale_of(e, mla_wave_max(amax));
    if (MLA_LANE == 0) mla_put_scale(e, p.scales, tile, scale);
  }
  for (int i = MLA_LANE; i * per < e.tile; i += MLA_WAVE) {
    const int d = first + i * per;
    uint32_t byte = mla_token_code(a, t, d, scale);
    if (per == 2) byte |= mla_token_code(a, t, d + 1, scale) << 4;
    p.row[d / per] = (unsigned char)byte;
  }
}

/* Grid: x token. Entries with scales. */
MLA_KERNEL mla_kv_write_entries(mla_kv_args a) {
  const int64_t t = blockIdx.x;
  const int64_t slot = a.slots[t * a.slots_step];
  const mla_entry &e = a.entry;
  const int waves = MLA_KV_THREADS / MLA_WAVE, tiles = e.codes / e.tile;
  if (slot < 0 || slot >= a.capacity) return;
  const mla_entry_place p = mla_entry_at(a.entry, a.cache, slot / a.block_size,
                                         slot % a.block_size, 0);
  for (int tile = MLA_WAVE_ID; tile < tiles; tile += waves)
    mla_write_tile(a, p, t, tile);
  for (int d = e.codes + MLA_TID; d < e.width; d += MLA_KV_THREADS)
    ((uint16_t *)(p.row + e.rest_at))[d - e.codes] =
        mla_float_to_bf16(mla_token_value(a, t, d));
  const int end = e.rest_at + 2 * (e.width - e.codes);
  for (int i = end + MLA_TID; i < e.row_bytes; i += MLA_KV_THREADS)
    p.row[i] = 0;
  for (int i = tiles + MLA_TID * (e.scale == MLA_E8M0);
       e.scale == MLA_E8M0 && i < e.side_bytes; i += MLA_KV_THREADS)
    p.scales[i] = 0;
}

/* The entry that row t of dst is gathered from; block -1: none. */
typedef struct mla_kv_found {
  int64_t block;
  int offset;
} mla_kv_found;

MLA_DEV mla_kv_found mla_kv_find(const mla_kv_args &a, int64_t t) {
  const int b = mla_request_at(a.cu, a.cu_step, a.requests, t);
  if (b < 0) return {-1, 0};
  int64_t j = t - a.cu[b * a.cu_step];
  if (a.starts) j += a.starts[b * a.starts_step];
  const int64_t page = mla_quotient(j, a.block_size);
  return {a.table[b * a.table_row + page], (int)(j - page * a.block_size)};
}

/* Grid: x row of dst. */
MLA_KERNEL mla_kv_read_rows(mla_kv_args a) {
  const int64_t t = blockIdx.x;
  const mla_kv_found f = mla_kv_find(a, t);
  if (f.block < 0) return;
  if (a.entry.scaled) {
    const mla_entry_place p =
        mla_entry_at(a.entry, a.cache, f.block, f.offset, 0);
    for (int d = MLA_TID; d < a.entry.width; d += MLA_KV_THREADS)
      mla_store_any(a.dst, a.io_dtype, t * a.dst_row + d,
                    mla_entry_value(a.entry, p, d, MLA_F32));
    return;
  }
  const int64_t at = f.block * a.block + f.offset * a.row;
  for (int d = MLA_TID; d < a.width; d += MLA_KV_THREADS)
    mla_store_any(a.dst, a.io_dtype, t * a.dst_row + d,
                  mla_load_any(a.cache, a.cache_dtype, at + d));
}

/* ----------------------------------------------------------- whole chunks
 */

enum {
  MLA_KV_CHUNK = 8,  /* numbers that a lane moves at once */
  MLA_KV_ROWS = 4,   /* of a wave */
  MLA_KV_MOST = 256, /* chunks of a row: so that products of `magic` fit */
  MLA_KV_AHEAD = 3   /* chunks that a lane has on their way */
};

/* Where rows of a wave lie in the cache: lane i has row i's, -1: nowhere. */
MLA_DEV int64_t mla_kv_place(const mla_kv_args &a, int64_t t, int reads) {
  if (MLA_LANE >= MLA_KV_ROWS || t >= a.tokens) return -1;
  if (reads) {
    const mla_kv_found f = mla_kv_find(a, t);
    return f.block < 0 ? -1 : f.block * a.block + f.offset * a.row;
  }
  const int64_t slot = a.slots[t * a.slots_step];
  return slot < 0 || slot >= a.capacity ? -1 : mla_slot_at(a, slot);
}

/* Numbers as they are, NaN as it is written. A half is NaN where adding what
   its exponent leaves carries into the sign. */
template <int DT, int Words>
MLA_DEV void mla_kv_tidy(uint32_t (&w)[Words]) {
  if (DT == MLA_F32) return;
  const uint32_t add = DT == MLA_BF16 ? 0x007f007fu : 0x03ff03ffu;
  for (int k = 0; k < Words; k++) {
    if (!(((w[k] & 0x7fff7fffu) + add) & 0x80008000u)) continue;
    const float low = mla_some<DT, 2>::at({w[k]}, 0);
    const float high = mla_some<DT, 2>::at({w[k]}, 1);
    w[k] = mla_float_to_half(DT, low) | (uint32_t)mla_float_to_half(DT, high)
                                            << 16;
  }
}

/* Chunk c of row t, which lies at a place of the cache: brought, put. */
template <int DT>
MLA_DEV void mla_kv_take(const mla_kv_args &a, int reads, int64_t t, int c,
                         int64_t place,
                         uint32_t (&w)[mla_some<DT, MLA_KV_CHUNK>::words]) {
  const int d = c * MLA_KV_CHUNK, latent = d < a.latent;
  const void *from = reads ? a.cache : (latent ? a.kv_c : a.k_pe);
  const int64_t at =
      reads ? place + d
            : (latent ? t * a.c_row + d : t * a.r_row + d - a.latent);
  mla_some<DT, MLA_KV_CHUNK>::load(from, at, w);
}
template <int DT>
MLA_DEV void mla_kv_put(const mla_kv_args &a, int reads, int64_t t, int c,
                        int64_t place,
                        uint32_t (&w)[mla_some<DT, MLA_KV_CHUNK>::words]) {
  void *to = reads ? a.dst : a.cache;
  const int dtype = reads ? a.io_dtype : a.cache_dtype;
  const int64_t at = (reads ? t * a.dst_row : place) + c * MLA_KV_CHUNK;
  if (dtype == DT) {
    mla_kv_tidy<DT>(w);
    mla_put_words((typename mla_elem<DT>::bits *)to + at, w);
    return;
  }
  float v[MLA_KV_CHUNK];
  for (int k = 0; k < MLA_KV_CHUNK; k++)
    v[k] = mla_some<DT, MLA_KV_CHUNK>::at(w, k);
  mla_put_any(to, dtype, at, v);
}

/* Rows from dtype DT, by whole chunks. Grid: x MLA_KV_ROWS rows a wave. */
template <int DT, int READS>
MLA_KERNEL mla_kv_move_rows(mla_kv_args a) {
  const int waves = MLA_KV_THREADS / MLA_WAVE, chunks = a.width / MLA_KV_CHUNK;
  const int64_t first =
      ((int64_t)blockIdx.x * waves + MLA_WAVE_ID) * MLA_KV_ROWS;
  const int64_t own = mla_kv_place(a, first + MLA_LANE, READS);
  for (int k0 = 0; k0 < MLA_KV_ROWS * chunks; k0 += MLA_KV_AHEAD * MLA_WAVE) {
    uint32_t w[MLA_KV_AHEAD][mla_some<DT, MLA_KV_CHUNK>::words];
    int64_t place[MLA_KV_AHEAD];
    int row[MLA_KV_AHEAD], chunk[MLA_KV_AHEAD];
    MLA_UNROLL
    for (int i = 0; i < MLA_KV_AHEAD; i++) {
      const int k = k0 + i * MLA_WAVE + MLA_LANE;
      row[i] = (int)((uint32_t)k * a.magic >> 20); /* k / chunks */
      chunk[i] = k - row[i] * chunks;
      place[i] = mla_shuffle_wide(own, row[i] % MLA_KV_ROWS);
      if (row[i] >= MLA_KV_ROWS) place[i] = -1;
      if (place[i] >= 0)
        mla_kv_take<DT>(a, READS, first + row[i], chunk[i], place[i], w[i]);
    }
    MLA_UNROLL
    for (int i = 0; i < MLA_KV_AHEAD; i++)
      if (place[i] >= 0)
        mla_kv_put<DT>(a, READS, first + row[i], chunk[i], place[i], w[i]);
  }
}

#endif
