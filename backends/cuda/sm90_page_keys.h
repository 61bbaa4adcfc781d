/*
 * sm90_page_keys.h - how one warp brings 16 keys of a request's pages into a
 * buffer, for sm_90a: pages of any size, of numbers or of codes. What lies
 * past the last key becomes zeros.
 *
 * Codes become bf16 on the way, as in sm90_listed_keys.h: a lane has 16 codes
 * of a key's first 512; of the 64 behind them, where they are codes too, four
 * lanes have a key's.
 */
#ifndef MLA_SM90_PAGE_KEYS_H
#define MLA_SM90_PAGE_KEYS_H

#include "sm90_listed_keys.h"

/* 656: a scale a tile of 128 codes, then bf16. The others: 576 codes. */
enum { PAGES_BF16, PAGES_656, PAGES_E4M3, PAGES_I8 };

typedef struct mla_sm90_pages {
  mla_sm90_args rows;
  const unsigned char *cache;
  int block, row; /* strides, in units of LISTED_UNIT bytes */
  int shift;      /* page == 1 << shift; -1: it is no power of two */
  int scale_at;   /* of a key's own scale, f32; 0: all have `one` */
  float one;
} mla_sm90_pages;

/* Where a key is: its page, id -1: it is none, and its place there. */
typedef struct pages_key {
  int id, offset;
} pages_key;

MLA_DEV pages_key pages_find(const mla_sm90_pages &x, const sm90_piece &w,
                             int key) {
  const int page = x.rows.page;
  if (key >= w.seq) return {-1, 0};
  const int at = x.shift >= 0 ? key >> x.shift : key / page;
  return {x.rows.table[w.request * x.rows.table_row + at], key - at * page};
}
MLA_DEV int pages_place(const mla_sm90_pages &x, const pages_key &k) {
  return k.id < 0 ? -1 : k.id * x.block + k.offset * x.row;
}

/* Lane 4 * k + t has the scale of tile t of key k of four, or a lane that of
   key lane % 16. */
template <int Kind>
MLA_DEV float pages_scales(const mla_sm90_pages &x, int place, int first) {
  if (Kind == PAGES_656) return listed_load_scale(x.cache, place, first);
  if (x.scale_at == 0 || place < 0) return x.one;
  return *(const float *)(listed_entry(x.cache, place) + x.scale_at);
}

/* Four bytes with a sign as bf16: turned, a byte is 128 more, and exact as the
   last of 2^23. */
MLA_DEV uint2 pages_four_i8(uint32_t codes, float scale) {
  const uint32_t up = codes ^ 0x80808080u, high = 0x4b000000u;
  float v[4];
#pragma unroll
  for (int i = 0; i < 4; i++)
    v[i] = (__uint_as_float(__byte_perm(up, high, 0x7440 + i)) - 8388736.0f) *
           scale;
  return make_uint2(sm90_pack(v[0], v[1]), sm90_pack(v[2], v[3]));
}
template <int Kind>
MLA_DEV uint4 pages_eight(uint32_t a, uint32_t b, float scale) {
  if (Kind != PAGES_I8) return listed_eight(a, b, scale);
  const uint2 lo = pages_four_i8(a, scale), hi = pages_four_i8(b, scale);
  return make_uint4(lo.x, lo.y, hi.x, hi.y);
}

/* Chunk `to` and the one beside it. */
template <int Kind>
MLA_DEV void pages_put(uint32_t to, const uint4 &codes, float scale) {
  listed_store(to, pages_eight<Kind>(codes.x, codes.y, scale));
  listed_store(to ^ 16, pages_eight<Kind>(codes.z, codes.w, scale));
}

/* Chunks 2 * lane and the next of four of the warp's keys, from `first`. */
template <int Kind>
MLA_DEV void pages_store_codes(const sm90_state &s, int buffer, int key0,
                               int first, float scales,
                               const uint4 (&codes)[LISTED_FOUR]) {
  if (Kind == PAGES_656) {
    listed_store_codes(s, buffer, key0 + first, scales, codes);
    return;
  }
  const int lane = sm90_here(MLA_LANE);
  const uint32_t to =
      listed_chunk(s, buffer, key0 + first + listed_key(lane, 0), 2 * lane);
#pragma unroll
  for (int j = 0; j < LISTED_FOUR; j++)
    pages_put<Kind>(to ^ (uint32_t)(j * (128 + 16)), codes[j],
                    MLA_SHFL(scales, first + listed_key(lane, j)));
}

/* Codes 512 to 575: eight keys at once, 16 codes a lane. */
enum { PAGES_TAIL = 2 };
MLA_DEV void pages_load_tail(const unsigned char *cache, int place,
                             uint4 (&codes)[PAGES_TAIL]) {
  const int lane = sm90_here(MLA_LANE);
#pragma unroll
  for (int i = 0; i < PAGES_TAIL; i++) {
    const int from = MLA_SHFL(place, lane / 4 + 8 * i);
    codes[i] = make_uint4(0, 0, 0, 0);
    if (from >= 0)
      codes[i] = listed_load(listed_entry(cache, from) + 512 + lane % 4 * 16);
  }
}
template <int Kind>
MLA_DEV void pages_store_tail(const sm90_state &s, int buffer, int key0,
                              float scales, const uint4 (&codes)[PAGES_TAIL]) {
  const int lane = sm90_here(MLA_LANE);
#pragma unroll
  for (int i = 0; i < PAGES_TAIL; i++) {
    const int key = lane / 4 + 8 * i;
    pages_put<Kind>(listed_chunk(s, buffer, key0 + key, 64 + lane % 4 * 2),
                    codes[i], MLA_SHFL(scales, key));
  }
}

#endif
