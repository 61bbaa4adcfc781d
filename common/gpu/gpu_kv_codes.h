/*
 * gpu_kv_codes.h - tokens written as codes of 8 bits, then bf16: a wave a
 * token, its numbers in registers by chunks of eight. A scale is of one tile
 * whose chunks are a power of two, or of all codes.
 */
#ifndef MLA_GPU_KV_CODES_H
#define MLA_GPU_KV_CODES_H

#include "gpu_kv.h"

enum { MLA_KV_OWN = 3 }; /* chunks of a lane at most */

/* The largest of a lane's chunks, then of the tiles that they are of. */
MLA_DEV void mla_kv_tile_max(int chunks, int codes, float (&amax)[MLA_KV_OWN]) {
  if (chunks == codes) { /* one tile: all lanes, all chunks */
    float most = 0;
    for (int i = 0; i < MLA_KV_OWN; i++) most = fmaxf(most, amax[i]);
    most = mla_wave_max(most);
    for (int i = 0; i < MLA_KV_OWN; i++) amax[i] = most;
    return;
  }
  for (int m = 1; m < chunks; m *= 2)
    for (int i = 0; i < MLA_KV_OWN; i++)
      amax[i] = fmaxf(amax[i], MLA_SHFL_XOR(amax[i], m));
}

template <int Code>
MLA_DEV mla_words2 mla_kv_codes(const float (&v)[MLA_KV_CHUNK], float scale) {
  mla_words2 w = {{0, 0}};
  MLA_UNROLL
  for (int k = 0; k < MLA_KV_CHUNK; k++)
    w.w[k / 4] |= mla_float_to_code(Code, v[k] / scale) << (8 * (k % 4));
  return w;
}

/* Chunk c of a token: codes, with the scale where a tile begins, or bf16. */
MLA_DEV void mla_kv_put_chunk(const mla_entry &e, const mla_entry_place &p,
                              int c, const float (&v)[MLA_KV_CHUNK],
                              float amax) {
  const int d = c * MLA_KV_CHUNK;
  if (d >= e.codes) {
    mla_put_any(p.row + e.rest_at, MLA_BF16, d - e.codes, v);
    return;
  }
  const int scaled = e.scale != MLA_DTYPE_NONE;
  const float scale = scaled ? mla_scale_of(e, amax) : e.one;
  if (scaled && d % e.tile == 0) mla_put_scale(e, p.scales, d / e.tile, scale);
  *(mla_words2 *)(p.row + d) = e.code == MLA_I8
                                   ? mla_kv_codes<MLA_I8>(v, scale)
                                   : mla_kv_codes<MLA_FP8_E4M3>(v, scale);
}

/* Numbers of dtype DT. Grid: x token, a wave each. */
template <int DT>
MLA_KERNEL mla_kv_write_codes(mla_kv_args a) {
  const int64_t t =
      (int64_t)blockIdx.x * (MLA_KV_THREADS / MLA_WAVE) + MLA_WAVE_ID;
  const int64_t slot = t < a.tokens ? a.slots[t * a.slots_step] : -1;
  if (slot < 0 || slot >= a.capacity) return;
  const mla_entry &e = a.entry;
  const int64_t block = mla_quotient(slot, a.block_size);
  const mla_entry_place p =
      mla_entry_at(e, a.cache, block, slot - block * a.block_size, 0);
  float v[MLA_KV_OWN][MLA_KV_CHUNK], amax[MLA_KV_OWN] = {};
  MLA_UNROLL
  for (int i = 0; i < MLA_KV_OWN; i++) {
    const int c = MLA_LANE + i * MLA_WAVE;
    if (c * MLA_KV_CHUNK >= e.width) continue;
    uint32_t w[mla_some<DT, MLA_KV_CHUNK>::words];
    mla_kv_take<DT>(a, 0, t, c, 0, w);
    for (int k = 0; k < MLA_KV_CHUNK; k++) {
      v[i][k] = mla_some<DT, MLA_KV_CHUNK>::at(w, k);
      if (c * MLA_KV_CHUNK < e.codes) amax[i] = fmaxf(amax[i], fabsf(v[i][k]));
    }
  }
  mla_kv_tile_max(e.tile / MLA_KV_CHUNK, e.codes / MLA_KV_CHUNK, amax);
  MLA_UNROLL
  for (int i = 0; i < MLA_KV_OWN; i++) {
    const int c = MLA_LANE + i * MLA_WAVE;
    if (c * MLA_KV_CHUNK < e.width) mla_kv_put_chunk(e, p, c, v[i], amax[i]);
  }
  const int end = e.rest_at + 2 * (e.width - e.codes);
  for (int i = end + MLA_LANE; i < e.row_bytes; i += MLA_WAVE) p.row[i] = 0;
}

#endif
