/*
 * sm90_page_keys.h - keys of requests' pages, of any size, for
 * mla_decode_brought_sm90. What lies past the last key is none.
 */
#ifndef MLA_SM90_PAGE_KEYS_H
#define MLA_SM90_PAGE_KEYS_H

#include "mla_decode_brought_sm90.cuh"

typedef struct mla_sm90_pages {
  mla_sm90_args rows;
  const unsigned char *cache;
  int block, row; /* strides, in units of BRING_UNIT bytes */
  int shift;      /* page == 1 << shift; -1: it is no power of two */
  int scale_at;   /* of a key's own scale, f32; 0: all have `one` */
  float one;
} mla_sm90_pages;

/* Keys are all there up to the last: rows tell what they do not see. */
template <class Brought>
struct sm90_pages_feed : Brought {
  SM90_MEMBER void mask(const sm90_state &s, int block,
                        float (&acc)[32]) const {
    sm90_mask_tail(s, block, acc);
  }
};

/* Where a key is: its page, id -1: it is none, and its place there. */
typedef struct pages_key {
  int id, offset;
} pages_key;

/* Tables are read two blocks before their pages. */
struct sm90_page_keys {
  typedef mla_sm90_pages Args;
  template <class Brought>
  using Feed = sm90_pages_feed<Brought>;
  enum { once = 1 };
  const unsigned char *cache;
  int place, next, scale_at;
  float one;

  SM90_MEMBER sm90_page_keys(const Args &args, int first_key)
      : cache(args.cache),
        scale_at(args.scale_at),
        one(args.one),
        x(args),
        key0(first_key) {}
  static SM90_MEMBER void limits(const mla_sm90_args &a, sm90_state &s,
                                 const sm90_piece &w) {
    sm90_limits(a, s, w, (int)blockIdx.x * MLA_SM90_ROWS);
  }
  static SM90_MEMBER mla_plan_place place_of(const mla_decode_plan &p,
                                             int part) {
    return mla_plan_of_part(p, part);
  }
  SM90_MEMBER void begin(const sm90_piece &w) {
    const pages_key now = find(w, 0), then = find(w, 1);
    last = find(w, 2);
    place = at(now);
    next = at(then);
  }
  SM90_MEMBER void step(const sm90_piece &w, int i) {
    place = next;
    next = at(last);
    last = find(w, i + 2);
  }
  SM90_MEMBER const unsigned char *next_cache() const { return cache; }
  SM90_MEMBER void done(const sm90_state &s, int buffer, int live) const {
    (void)s, (void)buffer, (void)live; /* rows know */
  }

 private:
  const Args &x;
  int key0;
  pages_key last; /* in the next block but one */

  /* This lane's key in block i of the piece. */
  SM90_MEMBER pages_key find(const sm90_piece &w, int i) const {
    const int page = x.rows.page;
    const int key =
        (w.block + i) * MLA_SM90_BLOCK + key0 + MLA_LANE % BRING_KEYS;
    if (i >= w.blocks || key >= w.seq) return {-1, 0};
    const int n = x.shift >= 0 ? key >> x.shift : key / page;
    return {x.rows.table[w.request * x.rows.table_row + n], key - n * page};
  }
  SM90_MEMBER int at(const pages_key &k) const {
    return k.id < 0 ? -1 : k.id * x.block + k.offset * x.row;
  }
};

#endif
