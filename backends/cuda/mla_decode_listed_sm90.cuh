/*
 * mla_decode_listed_sm90.cuh - sparse decode and sparse prefill, width
 * 576/512, over bf16 caches and entries of 656 bytes, for sm_90a.
 *
 * sm90_decode_rows.h fed by a third warpgroup: each of its warps brings 16 of
 * a block's 64 keys (sm90_listed_keys.h). A row's blocks are those of its
 * list, then those of its list into the second cache; no block holds keys of
 * both. Beside a block's keys lie 64 bits: which of them are keys at all.
 */
#ifndef MLA_DECODE_LISTED_SM90_CUH
#define MLA_DECODE_LISTED_SM90_CUH

#include "sm90_listed_keys.h"

typedef struct mla_sm90_listed {
  mla_sm90_args rows;
  mla_sm90_list main, more;
} mla_sm90_listed;

enum {
  LISTED_THREADS = 384,
  /* Of what a launch gets: 3 * 168. More than that would wait for ever. */
  LISTED_BRINGER_REGISTERS = 88,
  LISTED_ROW_REGISTERS = 208
};
static_assert(LISTED_BRINGER_REGISTERS + 2 * LISTED_ROW_REGISTERS <=
                  65536 / LISTED_THREADS / 8 * 8 * 3,
              "registers of the three warpgroups");

/* Where a buffer's 64 bits lie, 16 a warp. */
MLA_DEV uint32_t listed_live(const sm90_state &s, int buffer) {
  return s.smem + SM90_LIVE + 8 * buffer;
}

struct sm90_listed {
  enum { parts = 0 };
  static SM90_MEMBER void wait(const sm90_state &s, int buffer, int part,
                               uint32_t parity) {
    (void)part;
    mbar_wait(sm90_bar(s, SM90_FULL + buffer), parity);
  }
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
  SM90_MEMBER void clear(const sm90_state &s, int block) const {
    (void)s, (void)block; /* there are zeros */
  }
  SM90_MEMBER void release(const sm90_state &s, int block, int rope) const {
    (void)rope;
    const uint32_t bar = sm90_bar(s, SM90_EMPTY + (block & 1));
    if (s.thread % 32) return;
    mbar_arrive(bar);
  }
};

/* ---------------------------------------------------------------- bringer */

typedef struct listed_bringer {
  int token, first, more; /* entries of the two lists */
  int first_blocks;       /* of the main list */
  int key0;               /* this warp's in a block */
  uint32_t uses;          /* of each buffer so far, odd or even: a bit each */
} listed_bringer;

/* The list that block g of the row is of. */
MLA_DEV const mla_sm90_list &listed_from(const mla_sm90_listed &x,
                                         const listed_bringer &b, int g) {
  return g < b.first_blocks ? x.main : x.more;
}

/* The slot of this lane's key (of LISTED_KEYS) in block g; -1: none. */
MLA_DEV int listed_slot(const mla_sm90_listed &x, const listed_bringer &b,
                        int g) {
  const mla_sm90_list &l = listed_from(x, b, g);
  const int main = g < b.first_blocks;
  const int at = (main ? g : g - b.first_blocks) * MLA_SM90_BLOCK + b.key0 +
                 MLA_LANE % LISTED_KEYS;
  if (at >= (main ? b.first : b.more)) return -1;
  return l.slots[b.token * l.slots_row + at];
}

/* Slots of three blocks: lists are read two blocks before their entries. */
typedef struct listed_slots {
  int now, next, last;
} listed_slots;

MLA_DEV listed_slots listed_begin(const mla_sm90_listed &x,
                                  const listed_bringer &b,
                                  const sm90_piece &w) {
  listed_slots s;
  s.now = w.blocks > 0 ? listed_slot(x, b, w.block) : -1;
  s.next = w.blocks > 1 ? listed_slot(x, b, w.block + 1) : -1;
  s.last = w.blocks > 2 ? listed_slot(x, b, w.block + 2) : -1;
  return s;
}
/* On to block i of the piece. */
MLA_DEV void listed_step(const mla_sm90_listed &x, const listed_bringer &b,
                         const sm90_piece &w, int i, listed_slots *s) {
  s->now = s->next;
  s->next = s->last;
  s->last = i + 2 < w.blocks ? listed_slot(x, b, w.block + i + 2) : -1;
}

MLA_DEV void listed_wait_empty(const sm90_state &s, listed_bringer &b,
                               int buffer) {
  mbar_wait(sm90_bar(s, SM90_EMPTY + buffer), (b.uses >> buffer & 1) ^ 1);
  b.uses ^= 1u << buffer;
}

/* The warp's keys are there, for wgmma too. */
MLA_DEV void listed_done(const sm90_state &s, const listed_bringer &b,
                         int buffer, int live) {
  const unsigned all = __ballot_sync(0xffffffffu, live);
  const uint32_t bar = sm90_bar(s, SM90_FULL + buffer);
  if (MLA_LANE == 0)
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(listed_live(s, buffer) +
                                                 b.key0 / LISTED_KEYS * 2),
                 "h"((uint16_t)all)
                 : "memory");
  fence_async();
  mbar_arrive(bar);
}

/* One block on its way; whether this lane's key is one. */
MLA_DEV int listed_send_bf16(const mla_sm90_listed &x, const sm90_state &s,
                             listed_bringer &b, int g, int buffer, int slot) {
  const mla_sm90_list &l = listed_from(x, b, g);
  const int place = listed_place(l, slot);
  listed_wait_empty(s, b, buffer);
#pragma unroll 1
  for (int box = 0; box < 9; box++)
    listed_copy_box(s, buffer, b.key0, l.cache, place, 8 * box, 128 * box);
  listed_commit();
  return place >= 0;
}

/* Both blocks of a pair are under way before the first is waited for: they
   become free without it. */
MLA_DEV void listed_bring_bf16(const mla_sm90_listed &x, const sm90_state &s,
                               listed_bringer &b, const sm90_piece &w) {
  listed_slots slots = listed_begin(x, b, w);
  for (int i = 0; i < w.blocks; i += 2) {
    int live[2] = {0, 0};
    live[0] = listed_send_bf16(x, s, b, w.block + i, 0, slots.now);
    listed_step(x, b, w, i + 1, &slots);
    if (i + 1 < w.blocks)
      live[1] = listed_send_bf16(x, s, b, w.block + i + 1, 1, slots.now);
    else
      listed_commit(); /* nothing, so that groups count alike */
    listed_step(x, b, w, i + 2, &slots);
    listed_landed<1>();
    listed_done(s, b, 0, live[0]);
    listed_landed<0>();
    if (i + 1 < w.blocks) listed_done(s, b, 1, live[1]);
  }
}

/* Codes of four keys are turned into numbers while the next four's come, in
   two steps a block. */
MLA_DEV void listed_bring_656(const mla_sm90_listed &x, const sm90_state &s,
                              listed_bringer &b, const sm90_piece &w) {
  uint4 near[LISTED_FOUR], far[LISTED_FOUR];
  listed_slots slots = listed_begin(x, b, w);
  const unsigned char *cache = listed_from(x, b, w.block).cache;
  int place = listed_place(listed_from(x, b, w.block), slots.now);
  int half = 0;
  listed_load_codes(cache, place, 8 * half, near);
  float scales = listed_load_scale(cache, place, 8 * half);
#pragma unroll 1
  for (int i = 0; i < w.blocks;) {
    const int key = 8 * half, buffer = i & 1, live = place >= 0;
    const int ends = half;
    listed_load_codes(cache, place, key + 4, far);
    const float far_scales = listed_load_scale(cache, place, key + 4);
    if (!half) {
      listed_wait_empty(s, b, buffer);
      listed_copy_box(s, buffer, b.key0, cache, place, 64, 528);
      listed_commit();
    }
    listed_store_codes(s, buffer, b.key0 + key, scales, near);
    if (ends) {
      listed_step(x, b, w, ++i, &slots);
      cache = listed_from(x, b, w.block + i).cache;
      place = listed_place(listed_from(x, b, w.block + i), slots.now);
    }
    half ^= 1;
    listed_load_codes(cache, place, 8 * half, near);
    scales = listed_load_scale(cache, place, 8 * half);
    listed_store_codes(s, buffer, b.key0 + key + 4, far_scales, far);
    if (!ends) continue;
    listed_landed<0>();
    listed_done(s, b, buffer, live);
  }
}

template <int Keys>
MLA_DEV void listed_bring(const mla_sm90_listed &x, const sm90_state &s) {
  listed_bringer b = {};
  b.key0 = (MLA_WAVE_ID - 8) * LISTED_KEYS;
  sm90_for_pieces(x.rows, [&](const sm90_piece &w) {
    b.token = w.request;
    b.first = mla_plan_list(x.rows.plan.lists, w.request);
    b.more = mla_plan_more(x.rows.plan.lists, w.request);
    b.first_blocks = mla_plan_up(b.first);
    if (Keys == LISTED_656)
      listed_bring_656(x, s, b, w);
    else
      listed_bring_bf16(x, s, b, w);
  });
}

MLA_DEV void listed_rows(const mla_sm90_args &a, const CUtensorMap *q_map,
                         sm90_state &s) {
  const sm90_listed feed = {};
  uint32_t q_turn = 0;
  sm90_for_pieces(a, [&](const sm90_piece &w) {
    bar_sync(BAR_ALL, 256); /* Q is free */
    if (threadIdx.x == 0) sm90_fetch_q(a, q_map, s, w);
    sm90_attend(a, feed, s, w, q_turn++);
  });
}

/* Threads that bring, and warps that read. */
MLA_DEV void listed_make_bars(const sm90_state &s) {
  if (threadIdx.x == 0) {
    sm90_make_bars(s);
    for (int i = 0; i < 2; i++) {
      mbar_init(sm90_bar(s, SM90_FULL + i), 128);
      mbar_init(sm90_bar(s, SM90_EMPTY + i), 8);
    }
    mbar_init_fence();
  }
  __syncthreads();
}

template <int Keys>
static __global__ void __launch_bounds__(LISTED_THREADS, 1)
    mla_decode_listed_sm90(const __grid_constant__ CUtensorMap q_map,
                           const __grid_constant__ mla_sm90_listed x) {
  extern __shared__ unsigned char raw[];
  sm90_state s = sm90_begin(raw);
  listed_make_bars(s);
  pdl_launch();
  pdl_wait();
  if (s.side == 2) {
    registers_shrink<LISTED_BRINGER_REGISTERS>();
    listed_bring<Keys>(x, s);
  } else {
    registers_grow<LISTED_ROW_REGISTERS>();
    listed_rows(x.rows, &q_map, s);
  }
}

#endif
