/*
 * sm90_bring.h - how each of four warps brings 16 of every block's keys into a
 * buffer, for sm_90a: rows of 64 x 64 boxes, swizzled. Keys that there are not
 * become zeros.
 *
 * Where keys lie a Source tells, a block after another:
 *   begin(w)      at the first of a piece
 *   step(w, i)    on to block i of it
 *   cache, place  of the warp's key lane % 16: where it begins, in units, or
 *                 -1: there is none
 *   next          its place in the next block, in next_cache()
 *   scale_at, one of a key's own scale, f32; 0: all have `one`
 *   once          numbers are read by nobody else: they need not stay in the
 *                 second-level cache
 *   done(s, buffer, live)  tells rows whether this lane's key is one
 *
 * Codes are copied into the rows that their numbers will have, and turned
 * there: a lane has 16 codes of a key's first 512, an eighth of a tile. Pairs
 * of keys are taken crosswise by every other four lanes, so that eight lanes
 * store into eight different banks. Of 64 codes behind them four lanes have a
 * key's.
 */
#ifndef MLA_SM90_BRING_H
#define MLA_SM90_BRING_H

#include "sm90_codes.h"
#include "sm90_decode_rows.h"

enum { BRING_UNIT = 16 }; /* bytes of a load; entries begin at such */
enum { BRING_WARPS = 4 };
enum { BRING_KEYS = MLA_SM90_BLOCK / BRING_WARPS }; /* of a block, a warp */
enum { BRING_RAW = 4 }; /* the box whose rows hold a key's own scales */

typedef struct sm90_bringer {
  int key0;      /* this warp's first in a block */
  uint32_t uses; /* of each buffer so far, odd or even: a bit each */
} sm90_bringer;

/* 16 bytes, zeros where place < 0; they are there after bring_landed. */
MLA_DEV void bring_copy(uint32_t to, const unsigned char *from, int place) {
  asm volatile(
      "{\n.reg .pred none;\nsetp.lt.s32 none, %2, 0;\n"
      "cp.async.cg.shared.global [%0], [%1], 16, none;\n}" ::"r"(to),
      "l"(from), "r"(place)
      : "memory");
}
/* Of 16 bytes so many, then zeros. Once: nobody else reads them. */
template <int Once>
MLA_DEV void bring_copy_some(uint32_t to, const unsigned char *from,
                             uint32_t bytes) {
  if (Once)
    asm volatile(
        "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::
            "r"(to),
        "l"(from), "r"(bytes), "l"(l2_goes_first())
        : "memory");
  else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from), "r"(bytes)
                 : "memory");
}
MLA_DEV void bring_copy_one(uint32_t to, const unsigned char *from, int place) {
  asm volatile(
      "{\n.reg .pred none;\nsetp.lt.s32 none, %2, 0;\n"
      "cp.async.ca.shared.global [%0], [%1], 4, none;\n}" ::"r"(to),
      "l"(from), "r"(place)
      : "memory");
}
/* Lines of an entry on their way into the second-level cache: two lanes have
   one, whose 656 bytes lie in six lines at most. */
MLA_DEV void bring_ask(const unsigned char *cache, int place) {
  const unsigned char *at =
      cache + (int64_t)place * BRING_UNIT + MLA_LANE / BRING_KEYS * 384;
  if (place < 0) return;
#pragma unroll
  for (int i = 0; i < 3; i++)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at + 128 * i));
}
MLA_DEV void bring_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/* All groups but the last N. */
template <int N>
MLA_DEV void bring_landed() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* What a thread has brought for a barrier is there, for wgmma too. */
MLA_DEV void bring_full(const sm90_state &s, int full) {
  fence_async();
  mbar_arrive(sm90_bar(s, SM90_FULL + full));
}

MLA_DEV void bring_wait_empty(const sm90_state &s, sm90_bringer &b,
                              int buffer) {
  mbar_wait(sm90_bar(s, SM90_EMPTY + buffer), (b.uses >> buffer & 1) ^ 1);
  b.uses ^= 1u << buffer;
}

/* Chunk (8 numbers) of a key in a buffer. */
MLA_DEV uint32_t bring_chunk(const sm90_state &s, int buffer, int key,
                             int chunk) {
  return sm90_box(s, buffer, chunk / 8) + (uint32_t)(key * 128) +
         (uint32_t)(((chunk ^ key) & 7) << 4);
}

/* The entry at a place; nowhere to be read from where there is none. */
MLA_DEV const unsigned char *bring_entry(const unsigned char *cache,
                                         int place) {
  return cache + (int64_t)place * BRING_UNIT;
}

/* ---------------------------------------------------------------- numbers */

/* Chunks [first, first + 8) of the warp's keys: four keys at once, a chunk a
   lane. Eight rows begin at a multiple of 1024 bytes, so that four rows on and
   their part of the swizzle come to a place by exclusive or. */
MLA_DEV void bring_box(const sm90_state &s, int buffer, int key0,
                       const unsigned char *cache, int place, int first,
                       int at) {
  const int lane = sm90_here(MLA_LANE), chunk = lane % 8;
  const uint32_t to = bring_chunk(s, buffer, key0 + lane / 8, first + chunk);
  const unsigned char *base = cache + at + 16 * chunk;
#pragma unroll
  for (int i = 0; i < BRING_KEYS / 4; i++) {
    const int from = MLA_SHFL(place, lane / 8 + 4 * i);
    bring_copy((to ^ (uint32_t)(i % 2 * (512 + 64))) + i / 2 * 1024,
               bring_entry(base, from), from);
  }
}

/* A lane's chunk of every fourth of the warp's keys, in the first box of an
   entry and of a buffer; bytes: 16, or 0 where there is no such key. */
typedef struct bring_chunks {
  const unsigned char *from[BRING_KEYS / 4];
  uint32_t to, bytes[BRING_KEYS / 4];
} bring_chunks;

MLA_DEV bring_chunks bring_chunks_of(const sm90_state &s, int buffer, int key0,
                                     const unsigned char *cache, int place) {
  const int lane = sm90_here(MLA_LANE), chunk = lane % 8;
  bring_chunks c;
  c.to = bring_chunk(s, buffer, key0 + lane / 8, chunk);
#pragma unroll
  for (int i = 0; i < BRING_KEYS / 4; i++) {
    const int at = MLA_SHFL(place, lane / 8 + 4 * i);
    c.from[i] = bring_entry(cache + 16 * chunk, at < 0 ? 0 : at);
    c.bytes[i] = at < 0 ? 0 : 16;
  }
  return c;
}

/* Boxes [First, First + Count) of the warp's keys on their way. */
template <int First, int Count, int Once>
MLA_DEV void bring_boxes(const bring_chunks &c) {
#pragma unroll
  for (int box = First; box < First + Count; box++)
#pragma unroll
    for (int i = 0; i < BRING_KEYS / 4; i++)
      bring_copy_some<Once>((c.to ^ (uint32_t)(i % 2 * (512 + 64))) +
                                i / 2 * 1024 + box * SM90_BOX,
                            c.from[i] + 128 * box, c.bytes[i]);
}

/* A part of a block on its way, as soon as it is given up: a group. */
template <int Part, int Once>
MLA_DEV void bring_part(const sm90_state &s, int buffer, uint32_t parity,
                        const bring_chunks &c) {
  mbar_wait(sm90_bar(s, SM90_EMPTY + 3 * buffer + Part), parity);
  bring_boxes<4 * Part, (Part < 2 ? 4 : 1), Once>(c);
  bring_commit();
}

/* All groups but the last Later have landed, up to what `full` is of. */
template <int Later>
MLA_DEV void bring_tell(const sm90_state &s, int full) {
  bring_landed<Later>();
  bring_full(s, full);
}

/* The next part is on its way before one is waited for. The last of a block
   has the next block's before it, unless that is not given up yet. */
template <class Source>
MLA_DEV void bring_numbers(Source &from, const sm90_state &s, sm90_bringer &b,
                           const sm90_piece &w) {
  enum { once = Source::once };
  int last = -1; /* that rows are not told of */
#pragma unroll 1
  for (int i = 0; i < w.blocks;) {
    const int buffer = i & 1, live = from.place >= 0;
    const uint32_t parity = (b.uses >> buffer & 1) ^ 1;
    const bring_chunks c =
        bring_chunks_of(s, buffer, b.key0, from.cache, from.place);
    const int given = mbar_test(sm90_bar(s, SM90_EMPTY + 3 * buffer), parity);
    if (last >= 0 && !__all_sync(0xffffffffu, given)) {
      bring_tell<0>(s, last);
      last = -1;
    }
    bring_part<0, once>(s, buffer, parity, c);
    if (last >= 0) bring_tell<1>(s, last);
    bring_part<1, once>(s, buffer, parity, c);
    /* Both sides have given the buffer up by now: the one that scored its last
       block by a lane a warp, the other when it had waited for all lanes. */
    from.done(s, buffer, live);
    bring_tell<1>(s, 3 * buffer);
    bring_part<2, once>(s, buffer, parity, c);
    bring_tell<1>(s, 3 * buffer + 1);
    last = 3 * buffer + 2;
    b.uses ^= 1u << buffer;
    from.step(w, ++i);
  }
  if (last >= 0) bring_tell<0>(s, last);
}

/* ------------------------------------------------------------------ codes */

/* Row `key` of the warp's in a box. */
MLA_DEV uint32_t bring_row(const sm90_state &s, int buffer, int box, int key) {
  return sm90_box(s, buffer, box) + (uint32_t)(128 * key);
}

/* A lane's own key's scales, or scale. */
template <int Kind, class Source>
MLA_DEV void bring_scales(const Source &from, const sm90_state &s, int buffer,
                          int key0) {
  const int lane = sm90_here(MLA_LANE);
  const uint32_t to = bring_row(s, buffer, BRING_RAW, key0 + lane);
  if (lane >= BRING_KEYS) return;
  const unsigned char *entry = bring_entry(from.cache, from.place);
  if (Kind == KEYS_656)
    bring_copy(to, entry + 512, from.place);
  else if (from.scale_at)
    bring_copy_one(to, entry + from.scale_at, from.place);
}

/* Codes 512 to 575 into the rows of the last box: eight keys at once. */
MLA_DEV void bring_tail(const unsigned char *cache, const sm90_state &s,
                        int buffer, int key0, int place) {
  const int lane = sm90_here(MLA_LANE), at = lane % 4 * 16;
  const uint32_t to = bring_row(s, buffer, 8, key0 + lane / 4) + at;
#pragma unroll
  for (int i = 0; i < BRING_KEYS / 8; i++) {
    const int from = MLA_SHFL(place, lane / 4 + 8 * i);
    bring_copy(to + 1024 * i, bring_entry(cache + 512 + at, from), from);
  }
}

/* A block's codes on their way, a group for every eight keys. */
template <int Kind, class Source>
MLA_DEV void bring_raw(const Source &from, const sm90_state &s, int buffer,
                       int key0) {
  const int lane = sm90_here(MLA_LANE);
  const uint32_t to = bring_row(s, buffer, lane / 8, key0) + lane % 8 * 16;
  const unsigned char *base = from.cache + 16 * lane;
  asm volatile("" : "+l"(base));
  bring_scales<Kind>(from, s, buffer, key0);
#pragma unroll
  for (int key = 0; key < BRING_KEYS; key++) {
    const int place = MLA_SHFL(from.place, key);
    bring_copy(to + 128 * key, bring_entry(base, place), place);
    if (key % 8 == 7 && key + 1 < BRING_KEYS) bring_commit();
  }
  if (Kind == KEYS_656)
    bring_box(s, buffer, key0, from.cache, from.place, 64, 528);
  else
    bring_tail(from.cache, s, buffer, key0, from.place);
  bring_commit();
}

/* Chunk `to` and the one beside it. */
template <int Kind>
MLA_DEV void bring_put(uint32_t to, const uint4 &codes, float scale) {
  store_shared_16(to, codes_eight<Kind>(codes.x, codes.y, scale));
  store_shared_16(to ^ 16, codes_eight<Kind>(codes.z, codes.w, scale));
}

template <class Source>
MLA_DEV float bring_scale(const Source &from, uint32_t at) {
  return from.scale_at ? load_shared(at) : from.one;
}

/* Two keys' codes of a lane, and their scales. */
typedef struct bring_pair {
  uint4 codes[2];
  float scale[2];
} bring_pair;

template <class Source>
MLA_DEV bring_pair bring_read(const Source &from, uint32_t codes,
                              uint32_t scale) {
  bring_pair p;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    p.codes[i] = load_shared_16(codes ^ (uint32_t)(128 * i));
    p.scale[i] = bring_scale(from, scale ^ (uint32_t)(128 * i));
  }
  return p;
}

/* Eight keys, from `first` of the block, become numbers: a pair is read before
   the one before it is written. Eight rows are 1024 bytes and begin at a
   multiple of them, so that the row's number and its part of the swizzle come
   to a place by exclusive or. */
template <int Kind, class Source>
MLA_DEV void bring_turn(const Source &from, const sm90_state &s, int buffer,
                        int first) {
  const int lane = sm90_here(MLA_LANE), row = first + (lane >> 2 & 1);
  const uint32_t codes = bring_row(s, buffer, lane / 8, row) + lane % 8 * 16;
  const uint32_t scale = bring_row(s, buffer, BRING_RAW, row) +
                         (Kind == KEYS_656 ? lane / 8 * 4 : 0);
  const uint32_t to = bring_chunk(s, buffer, row, 2 * lane);
  bring_pair now = bring_read(from, codes, scale);
#pragma unroll
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t next = 256 * ((i + 1) & 3);
    const bring_pair then = bring_read(from, codes ^ next, scale ^ next);
    __syncwarp(); /* all have read before one writes */
    bring_put<Kind>(to ^ (i * (256 + 32)), now.codes[0], now.scale[0]);
    bring_put<Kind>(to ^ (i * (256 + 32)) ^ (128 + 16), now.codes[1],
                    now.scale[1]);
    now = then;
  }
}

template <int Kind>
MLA_DEV void bring_turn_tail(const sm90_state &s, int buffer, int key0,
                             float scale) {
  const int lane = sm90_here(MLA_LANE);
#pragma unroll
  for (int i = 0; i < BRING_KEYS / 8; i++) {
    const int row = key0 + lane / 4 + 8 * i;
    const uint4 codes =
        load_shared_16(bring_row(s, buffer, 8, row) + lane % 4 * 16);
    __syncwarp();
    bring_put<Kind>(bring_chunk(s, buffer, row, 64 + lane % 4 * 2), codes,
                    MLA_SHFL(scale, lane / 4 + 8 * i));
  }
}

/* The warp's keys of a block, once they have landed, become numbers. The tail's
   scales are read before they are written over. */
template <int Kind, class Source>
MLA_DEV void bring_turn_all(const Source &from, const sm90_state &s, int buffer,
                            int key0) {
  float scale = 0;
#pragma unroll 1
  for (int first = 0; first < BRING_KEYS; first += 8) {
    if (first + 8 < BRING_KEYS)
      bring_landed<1>();
    else
      bring_landed<0>();
    __syncwarp();
    if (Kind != KEYS_656 && !first)
      scale = bring_scale(
          from, bring_row(s, buffer, BRING_RAW, key0 + MLA_LANE % BRING_KEYS));
    bring_turn<Kind>(from, s, buffer, key0 + first);
  }
  if (Kind != KEYS_656) bring_turn_tail<Kind>(s, buffer, key0, scale);
}

template <int Kind, class Source>
MLA_DEV void bring_codes(Source &from, const sm90_state &s, sm90_bringer &b,
                         const sm90_piece &w) {
  bring_ask(from.next_cache(), from.next);
#pragma unroll 1
  for (int i = 0; i < w.blocks;) {
    const int buffer = i & 1, live = from.place >= 0;
    bring_wait_empty(s, b, buffer);
    bring_raw<Kind>(from, s, buffer, b.key0);
    from.step(w, ++i);
    bring_ask(from.next_cache(), from.next);
    bring_turn_all<Kind>(from, s, buffer, b.key0);
    from.done(s, buffer, live);
    bring_full(s, buffer);
  }
}

template <int Kind, class Source>
MLA_DEV void bring_piece(Source &from, const sm90_state &s, sm90_bringer &b,
                         const sm90_piece &w) {
  from.begin(w);
  if (Kind == KEYS_NUMBERS)
    bring_numbers(from, s, b, w);
  else
    bring_codes<Kind>(from, s, b, w);
}

#endif
