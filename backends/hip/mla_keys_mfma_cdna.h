/*
 * mla_keys_mfma_cdna.h - keys of decode on their way into shared memory: 576
 * columns of bf16 or f16, from plain rows or from codes of 8 bits.
 *
 * Sixteen lanes load a key. Codes wait in registers as they are; each value is
 * then f32(code * scale), rounded to the type of the product.
 */
#ifndef MLA_KEYS_MFMA_CDNA_H
#define MLA_KEYS_MFMA_CDNA_H

#include "hip_mfma.h"

enum {
  MLA_MFMA_THREADS = 256,
  MLA_MFMA_KEYS = 16, /* of a tile */
  MLA_MFMA_DK = 576,
  MLA_MFMA_DV = 512,
  MLA_MFMA_CHUNKS = MLA_MFMA_DK / 8, /* of 8 columns in a key */
  /* The last half of a turn is for eight of the lanes; a chunk of padding
     keeps keys off each other's banks. */
  MLA_MFMA_LOADS = (MLA_MFMA_CHUNKS + 15) / 16,
  MLA_MFMA_STRIDE = MLA_MFMA_CHUNKS + 1
};

/* What a row of the cache is. */
enum {
  MLA_KEYS_PLAIN,
  MLA_KEYS_E4M3, /* 576 codes, one scale for all */
  MLA_KEYS_E4M3FNUZ,
  MLA_KEYS_E5M2,
  MLA_KEYS_656 /* 512 codes (e4m3), four scales of f32, 64 of bf16 */
};

typedef mla_u32x4 mla_mfma_key[MLA_MFMA_STRIDE];

/* A lane's part of a key: of every 16 chunks one, of the last 8 some. */
template <int KEYS>
struct mla_mfma_loaded {
  mla_u32x2 codes[MLA_MFMA_LOADS];
};
template <>
struct mla_mfma_loaded<MLA_KEYS_PLAIN> {
  mla_u32x4 chunk[MLA_MFMA_LOADS];
};
template <>
struct mla_mfma_loaded<MLA_KEYS_656> {
  mla_u32x2 codes[MLA_MFMA_LOADS - 1];
  mla_f32x4 scales; /* of 128 columns each: those of a turn */
  mla_u32x4 rest;
};

/* ----------------------------------------------------------------- loading */

/* A lane's chunks; zeros where there is no key: what lies behind a tail may be
   anything. */
template <typename Chunk>
MLA_DEV void mla_mfma_take_chunks(const unsigned char *key,
                                  Chunk (&to)[MLA_MFMA_LOADS]) {
  const int part = MLA_TID % 16;
  MLA_UNROLL
  for (int i = 0; i < MLA_MFMA_LOADS; i++) to[i] = Chunk{};
  if (!key) return;
  const Chunk *from = (const Chunk *)key;
  MLA_UNROLL
  for (int i = 0; i < MLA_MFMA_LOADS - 1; i++) to[i] = from[part + 16 * i];
  if (part < 8) to[MLA_MFMA_LOADS - 1] = from[MLA_MFMA_DV / 8 + part];
}

MLA_DEV void mla_mfma_take(const unsigned char *key,
                           mla_mfma_loaded<MLA_KEYS_PLAIN> *to) {
  mla_mfma_take_chunks(key, to->chunk);
}

template <int KEYS>
MLA_DEV void mla_mfma_take(const unsigned char *key,
                           mla_mfma_loaded<KEYS> *to) {
  mla_mfma_take_chunks(key, to->codes);
}

MLA_DEV void mla_mfma_take(const unsigned char *key,
                           mla_mfma_loaded<MLA_KEYS_656> *to) {
  const int part = MLA_TID % 16;
  MLA_UNROLL
  for (int i = 0; i < MLA_MFMA_LOADS - 1; i++) to->codes[i] = mla_u32x2{0, 0};
  to->scales = mla_f32x4{0, 0, 0, 0};
  to->rest = mla_u32x4{0, 0, 0, 0};
  if (!key) return;
  MLA_UNROLL
  for (int i = 0; i < MLA_MFMA_LOADS - 1; i++)
    to->codes[i] = ((const mla_u32x2 *)key)[part + 16 * i];
  to->scales = *(const mla_f32x4 *)(key + MLA_MFMA_DV);
  if (part < 8) to->rest = ((const mla_u32x4 *)(key + MLA_MFMA_DV + 16))[part];
}

/* -------------------------------------------------------------- dequantising
 */

/* Byte k of a word: its sign and, behind `lost` bits less of exponent than f32
   has, the rest. */
MLA_DEV float mla_mfma_widened(uint32_t word, int k, int lost, uint32_t mask) {
  return __uint_as_float((uint32_t)((int32_t)(word << (24 - 8 * k)) >> lost) &
                         mask);
}

template <int KEYS>
MLA_DEV float mla_mfma_code(uint32_t word, int k) {
  const uint32_t byte = word >> 8 * k & 0xff;
  if (KEYS == MLA_KEYS_E5M2) return MLA_FROM_F16((uint16_t)(byte << 8));
  const float f = mla_mfma_widened(word, k, 4, 0x87f00000u);
  if (KEYS == MLA_KEYS_E4M3FNUZ)
    return byte == 0x80 ? __uint_as_float(0x7fc00000u) : f * 0x1p119f;
  return (byte & 0x7f) == 0x7f ? __uint_as_float(0x7fc00000u) : f * 0x1p120f;
}

/* Eight of them. */
template <int DT, int KEYS>
MLA_DEV mla_u32x4 mla_mfma_values_of(mla_u32x2 codes, float scale) {
  mla_u32x4 v;
  MLA_UNROLL
  for (int i = 0; i < 4; i++)
    v[i] = mla_pair_of<DT>(
        mla_mfma_code<KEYS>(codes[i / 2], i % 2 * 2) * scale,
        mla_mfma_code<KEYS>(codes[i / 2], i % 2 * 2 + 1) * scale);
  return v;
}

/* ----------------------------------------------------------------- keeping */

template <int DT>
MLA_DEV void mla_mfma_put(mla_u32x4 *key,
                          const mla_mfma_loaded<MLA_KEYS_PLAIN> &from, float) {
  const int part = MLA_TID % 16;
  MLA_UNROLL
  for (int i = 0; i < MLA_MFMA_LOADS - 1; i++)
    key[part + 16 * i] = from.chunk[i];
  if (part < 8) key[MLA_MFMA_DV / 8 + part] = from.chunk[MLA_MFMA_LOADS - 1];
}

template <int DT, int KEYS>
MLA_DEV void mla_mfma_put(mla_u32x4 *key, const mla_mfma_loaded<KEYS> &from,
                          float one) {
  const int part = MLA_TID % 16;
  MLA_UNROLL
  for (int i = 0; i < MLA_MFMA_LOADS - 1; i++)
    key[part + 16 * i] = mla_mfma_values_of<DT, KEYS>(from.codes[i], one);
  if (part < 8)
    key[MLA_MFMA_DV / 8 + part] =
        mla_mfma_values_of<DT, KEYS>(from.codes[MLA_MFMA_LOADS - 1], one);
}

template <int DT>
MLA_DEV void mla_mfma_put(mla_u32x4 *key,
                          const mla_mfma_loaded<MLA_KEYS_656> &from, float) {
  const int part = MLA_TID % 16;
  MLA_UNROLL
  for (int i = 0; i < MLA_MFMA_LOADS - 1; i++)
    key[part + 16 * i] =
        mla_mfma_values_of<DT, MLA_KEYS_656>(from.codes[i], from.scales[i]);
  if (part < 8) key[MLA_MFMA_DV / 8 + part] = from.rest;
}

/* one: the scale, where there is one for all. */
template <int DT, int KEYS>
MLA_DEV void mla_mfma_keep(mla_mfma_key *tile,
                           const mla_mfma_loaded<KEYS> &from, float one) {
  mla_mfma_put<DT>(tile[MLA_TID / 16], from, one);
}

#endif
