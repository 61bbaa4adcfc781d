/*
 * sm90_listed_keys.h - how one warp brings 16 listed entries of a cache into a
 * buffer of keys, for sm_90a: rows of 64 x 64 boxes, swizzled. An entry that
 * names no slot becomes zeros.
 *
 * LISTED_656 turns codes into bf16 on the way: a lane has 16 codes of a key, an
 * eighth of a tile. Pairs of keys are taken crosswise by every other
 * four lanes, so that eight lanes store into eight different banks.
 */
#ifndef MLA_SM90_LISTED_KEYS_H
#define MLA_SM90_LISTED_KEYS_H

#include "sm90_decode_rows.h"

enum { LISTED_BF16, LISTED_656 };
enum { LISTED_UNIT = 16 }; /* bytes of a load; entries begin at such */
enum { LISTED_KEYS = 16 }; /* of a block, a warp */

/* A cache, and every token's list of slots in it. */
typedef struct mla_sm90_list {
  const unsigned char *cache;
  int64_t capacity; /* slots in all */
  int block, row;   /* strides, in units of LISTED_UNIT bytes */
  int page, shift;  /* page == 1 << shift; -1: it is no power of two */
  const int32_t *slots;
  int64_t slots_row;
} mla_sm90_list;

MLA_DEV uint4 listed_load(const unsigned char *from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}
MLA_DEV void listed_store(uint32_t to, uint4 v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x),
               "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
/* 16 bytes, zeros unless `live`; they are there after listed_landed. */
MLA_DEV void listed_copy(uint32_t to, const unsigned char *from, int live) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
               "l"(from), "r"(live ? 16 : 0)
               : "memory");
}
MLA_DEV void listed_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/* All groups but the last N. */
template <int N>
MLA_DEV void listed_landed() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Chunk (8 numbers) of a key in a buffer. */
MLA_DEV uint32_t listed_chunk(const sm90_state &s, int buffer, int key,
                              int chunk) {
  return sm90_box(s, buffer, chunk / 8) + (uint32_t)(key * 128) +
         (uint32_t)(((chunk ^ key) & 7) << 4);
}

/* Where the entry in a slot begins, in units; -1: there is no such slot. */
MLA_DEV int listed_place(const mla_sm90_list &l, int slot) {
  if (slot < 0 || slot >= l.capacity) return -1;
  const int id = l.shift >= 0 ? slot >> l.shift : slot / l.page;
  return id * l.block + (slot - id * l.page) * l.row;
}

/* The entry at a place; of the cache itself where there is none. */
MLA_DEV const unsigned char *listed_entry(const unsigned char *cache,
                                          int place) {
  return cache + (int64_t)(place < 0 ? 0 : place) * LISTED_UNIT;
}

/* Chunks [first, first + 8) of the warp's keys: four keys at once, a chunk a
   lane. */
MLA_DEV void listed_copy_box(const sm90_state &s, int buffer, int key0,
                             const unsigned char *cache, int place, int first,
                             int at) {
  const int lane = sm90_here(MLA_LANE), chunk = lane % 8;
#pragma unroll
  for (int i = 0; i < LISTED_KEYS / 4; i++) {
    const int key = lane / 8 + 4 * i;
    const int from = MLA_SHFL(place, key);
    listed_copy(listed_chunk(s, buffer, key0 + key, first + chunk),
                listed_entry(cache, from) + at + 16 * chunk, from >= 0);
  }
}

/* ------------------------------------------------------------- 656 bytes */

/* Two codes as f32, times the scale of their tile, rounded to bf16. */
MLA_DEV uint32_t listed_pair(uint32_t codes, float scale) {
  float lo, hi;
  asm("{\n.reg .b32 both;\n.reg .b16 l, h, c;\n"
      "cvt.u16.u32 c, %2;\n"
      "cvt.rn.f16x2.e4m3x2 both, c;\n"
      "mov.b32 {l, h}, both;\n"
      "cvt.f32.f16 %0, l;\ncvt.f32.f16 %1, h;\n}"
      : "=f"(lo), "=f"(hi)
      : "r"(codes));
  return sm90_pack(lo * scale, hi * scale);
}
MLA_DEV uint4 listed_eight(uint32_t a, uint32_t b, float scale) {
  return make_uint4(listed_pair(a, scale), listed_pair(a >> 16, scale),
                    listed_pair(b, scale), listed_pair(b >> 16, scale));
}

/* Keys whose codes are on their way in one array of registers. */
enum { LISTED_FOUR = 4 };

MLA_DEV int listed_key(int lane, int j) {
  return j ^ (lane >> 2 & 1);
}

/* Of four of the warp's keys, from `first`. */
MLA_DEV void listed_load_codes(const unsigned char *cache, int place, int first,
                               uint4 (&codes)[LISTED_FOUR]) {
  const int lane = sm90_here(MLA_LANE);
  cache += 16 * lane;
#pragma unroll
  for (int j = 0; j < LISTED_FOUR; j++) {
    const int from = MLA_SHFL(place, first + listed_key(lane, j));
    codes[j] = make_uint4(0, 0, 0, 0);
    if (from >= 0) codes[j] = listed_load(listed_entry(cache, from));
  }
}

/* Lane 4 * k + t has the scale of tile t of key k of the four. */
MLA_DEV float listed_load_scale(const unsigned char *cache, int place,
                                int first) {
  const int from = MLA_SHFL(place, first + MLA_LANE / 4 % LISTED_FOUR);
  const int at = 512 + MLA_LANE % 4 * 4;
  return from < 0 ? 0.0f : *(const float *)(listed_entry(cache, from) + at);
}

/* Chunks 2 * lane and the next of the four keys from `first` of a block. Four
   rows begin at a multiple of 512 bytes, so that the row's number and its part
   of the swizzle come to a place by exclusive or. */
MLA_DEV void listed_store_codes(const sm90_state &s, int buffer, int first,
                                float scales,
                                const uint4 (&codes)[LISTED_FOUR]) {
  const int lane = sm90_here(MLA_LANE);
  const uint32_t place =
      listed_chunk(s, buffer, first + listed_key(lane, 0), 2 * lane);
#pragma unroll
  for (int j = 0; j < LISTED_FOUR; j++) {
    const float scale = MLA_SHFL(scales, 4 * listed_key(lane, j) + lane / 8);
    const uint32_t to = place ^ (uint32_t)(j * (128 + 16));
    listed_store(to, listed_eight(codes[j].x, codes[j].y, scale));
    listed_store(to ^ 16, listed_eight(codes[j].z, codes[j].w, scale));
  }
}

#endif
