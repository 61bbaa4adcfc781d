/*
 * gpu_kv.h - cache writes, gathers and block copies, one element a thread
 * after another. All index arithmetic is 64-bit.
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
  const void *src; /* kv_copy */
  int64_t src_block, src_row;
  const int64_t *pairs;
  int64_t pairs_row;
} mla_kv_args;

/* Grid: x token. */
MLA_KERNEL mla_kv_write_rows(mla_kv_args a) {
  const int64_t t = blockIdx.x;
  const int64_t slot = a.slots[t * a.slots_step];
  if (slot < 0 || slot >= a.capacity) return;
  const int64_t at =
      slot / a.block_size * a.block + slot % a.block_size * a.row;
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

/* Grid: x row of dst. */
MLA_KERNEL mla_kv_read_rows(mla_kv_args a) {
  const int64_t t = blockIdx.x;
  const int b = mla_request_at(a.cu, a.cu_step, a.requests, t);
  if (b < 0) return;
  int64_t j = t - a.cu[b * a.cu_step];
  if (a.starts) j += a.starts[b * a.starts_step];
  const int64_t id = a.table[b * a.table_row + j / a.block_size];
  if (a.entry.scaled) {
    const mla_entry_place p =
        mla_entry_at(a.entry, a.cache, id, j % a.block_size, 0);
    for (int d = MLA_TID; d < a.entry.width; d += MLA_KV_THREADS)
      mla_store_any(a.dst, a.io_dtype, t * a.dst_row + d,
                    mla_entry_value(a.entry, p, d, MLA_F32));
    return;
  }
  const int64_t at = id * a.block + j % a.block_size * a.row;
  for (int d = MLA_TID; d < a.width; d += MLA_KV_THREADS)
    mla_store_any(a.dst, a.io_dtype, t * a.dst_row + d,
                  mla_load_any(a.cache, a.cache_dtype, at + d));
}

/*
 * One launch a pair would keep list order when blocks overlap; a block of
 * threads walks the list instead, for its own columns: no two pairs race.
 * Grid: x row of a block.
 */
template <typename T>
MLA_KERNEL mla_kv_copy_rows(mla_kv_args a, int64_t count) {
  const int64_t o = blockIdx.x;
  T *to = (T *)a.cache;
  const T *from = (const T *)a.src;
  for (int64_t i = 0; i < count; i++) {
    const int64_t s = a.pairs[i * a.pairs_row] * a.src_block + o * a.src_row;
    const int64_t d = a.pairs[i * a.pairs_row + 1] * a.block + o * a.row;
    for (int e = MLA_TID; e < a.width; e += MLA_KV_THREADS)
      to[d + e] = from[s + e];
  }
}

#endif
