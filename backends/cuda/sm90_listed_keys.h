/*
 * sm90_listed_keys.h - keys that lists name, for mla_decode_brought_sm90. A
 * row's blocks are those of its list, then those of its list into the second
 * cache; no block holds keys of both. Beside a block's keys lie 64 bits: which
 * of them are keys at all. An entry that names no slot is none.
 */
#ifndef MLA_SM90_LISTED_KEYS_H
#define MLA_SM90_LISTED_KEYS_H

#include "mla_decode_brought_sm90.cuh"
#include "sm90_listed_cut.h"

/* A cache, and every token's list of slots in it. */
typedef struct mla_sm90_list {
  const unsigned char *cache;
  int64_t capacity; /* slots in all */
  int block, row;   /* strides, in units of BRING_UNIT bytes */
  int page, shift;  /* page == 1 << shift; -1: it is no power of two */
  const int32_t *slots;
  int64_t slots_row;
} mla_sm90_list;

typedef struct mla_sm90_listed {
  mla_sm90_args rows;
  mla_sm90_list main, more;
} mla_sm90_listed;

/* Where the entry in a slot begins, in units; -1: there is no such slot. */
MLA_DEV int listed_place(const mla_sm90_list &l, int slot) {
  if (slot < 0 || slot >= l.capacity) return -1;
  const int id = l.shift >= 0 ? slot >> l.shift : slot / l.page;
  return id * l.block + (slot - id * l.page) * l.row;
}

/* Where a buffer's 64 bits lie. */
MLA_DEV uint32_t listed_live(const sm90_state &s, int buffer) {
  return s.smem + SM90_LIVE + 8 * buffer;
}

template <class Brought>
struct sm90_listed_feed : Brought {
  SM90_MEMBER void mask(const sm90_state &s, int block,
                        float (&acc)[32]) const {
    uint2 live;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                 : "=r"(live.x), "=r"(live.y)
                 : "r"(listed_live(s, block & 1))
                 : "memory");
    if ((live.x & live.y) == 0xffffffffu) return;
    const int shift = 2 * (s.thread % 4);
#pragma unroll
    for (int j = 0; j < 8; j++) {
      const uint32_t bits = (j < 4 ? live.x : live.y) >> (8 * (j % 4) + shift);
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (!(bits >> (i & 1) & 1)) acc[4 * j + i] = MLA_NEG_INF;
    }
  }
};

/* Lists are read two blocks before their entries are brought. Once: an entry
   is in one list only, about. */
template <int Once>
struct sm90_listed_keys {
  typedef mla_sm90_listed Args;
  template <class Brought>
  using Feed = sm90_listed_feed<Brought>;
  enum { scale_at = 512, once = Once };
  static constexpr float one = 1.0f;
  const unsigned char *cache;
  int place, next;

  SM90_MEMBER sm90_listed_keys(const Args &args, int first_key)
      : x(args), key0(first_key) {}
  static SM90_MEMBER void limits(const mla_sm90_args &a, sm90_state &s,
                                 const sm90_piece &w) {
    (void)a, (void)s, (void)w; /* lists say it */
  }
  static SM90_MEMBER mla_list_place place_of(const mla_decode_plan &p,
                                             int part) {
    return mla_lists_of_part(p, part);
  }
  SM90_MEMBER void begin(const sm90_piece &w) {
    token = w.request;
    first = mla_plan_list(x.rows.plan.lists, w.request);
    more = mla_plan_more(x.rows.plan.lists, w.request);
    first_blocks = mla_plan_up(first);
    const int now = slot(w, 0), then = slot(w, 1);
    last = slot(w, 2);
    block = w.block;
    cache = list(block).cache;
    place = listed_place(list(block), now);
    next = listed_place(list(block + 1), then);
  }
  SM90_MEMBER void step(const sm90_piece &w, int i) {
    block = w.block + i;
    cache = list(block).cache;
    place = next;
    next = listed_place(list(block + 1), last);
    last = slot(w, i + 2);
  }
  SM90_MEMBER const unsigned char *next_cache() const {
    return list(block + 1).cache;
  }
  SM90_MEMBER void done(const sm90_state &s, int buffer, int live) const {
    const unsigned all = __ballot_sync(0xffffffffu, live);
    if (MLA_LANE < BRING_KEYS / 8)
      asm volatile("st.shared.b8 [%0], %1;" ::"r"(listed_live(s, buffer) +
                                                  key0 / 8 + MLA_LANE),
                   "r"(all >> (8 * MLA_LANE))
                   : "memory");
  }

 private:
  const Args &x;
  int key0, token, first, more; /* entries of the two lists */
  int first_blocks;             /* of the main list */
  int block, last;              /* of the row; slot in the next but one */

  /* The list that block g of the row is of. */
  SM90_MEMBER const mla_sm90_list &list(int g) const {
    return g < first_blocks ? x.main : x.more;
  }
  /* The slot of this lane's key in block i of the piece; -1: none. */
  SM90_MEMBER int slot(const sm90_piece &w, int i) const {
    const int g = w.block + i, main = g < first_blocks;
    const int at = (main ? g : g - first_blocks) * MLA_SM90_BLOCK + key0 +
                   MLA_LANE % BRING_KEYS;
    if (i >= w.blocks || at >= (main ? first : more)) return -1;
    return list(g).slots[token * list(g).slots_row + at];
  }
};

#endif
