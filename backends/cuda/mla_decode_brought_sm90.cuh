/*
 * mla_decode_brought_sm90.cuh - decode of width 576/512 whose keys a third
 * warpgroup brings (sm90_bring.h), for sm_90a: sm90_decode_rows.h fed by a
 * Source.
 *
 * Beside what sm90_bring.h asks of it, a Source has
 *   Args            with the member rows, mla_sm90_args
 *   Source(x, key0) for the warp whose first key of a block is key0
 *   Feed            what rows ask for (sm90_decode_rows.h)
 *   limits(...)     sets what rows see, where that is not listed
 */
#ifndef MLA_DECODE_BROUGHT_SM90_CUH
#define MLA_DECODE_BROUGHT_SM90_CUH

#include "sm90_bring.h"

enum {
  BROUGHT_THREADS = 256 + 32 * BRING_WARPS,
  /* Of what a launch gets: 3 * 168. More than that would wait for ever. */
  BROUGHT_BRINGER_REGISTERS = 88,
  BROUGHT_ROW_REGISTERS = 208
};
static_assert(BROUGHT_BRINGER_REGISTERS + 2 * BROUGHT_ROW_REGISTERS <=
                  65536 / BROUGHT_THREADS / 8 * 8 * 3,
              "registers of the three warpgroups");

/* A block has one barrier; a warp speaks for itself. */
struct sm90_brought {
  enum { parts = 0, in_turn = 1 };
  static SM90_MEMBER void wait(const sm90_state &s, int buffer, int part,
                               uint32_t parity) {
    (void)part;
    mbar_wait(sm90_bar(s, SM90_FULL + buffer), parity);
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

/* Every warp finds its part for itself. */
MLA_DEV mla_plan_place brought_place(const mla_sm90_args &a) {
  return mla_plan_of_part(a.plan, (int)blockIdx.y);
}

template <class Source>
MLA_DEV void brought_rows(const mla_sm90_args &a, const CUtensorMap *q_map,
                          sm90_state &s) {
  const typename Source::Feed feed = {};
  uint32_t q_turn = 0;
  sm90_for_pieces(a, brought_place(a), [&](const sm90_piece &w) {
    Source::limits(a, s, w);
    bar_sync(BAR_ALL, 256); /* Q is free */
    if (threadIdx.x == 0) sm90_fetch_q(a, q_map, s, w);
    sm90_attend(a, feed, s, w, q_turn++);
  });
}

template <class Source, int Kind>
MLA_DEV void brought_keys(const typename Source::Args &x, const sm90_state &s) {
  sm90_bringer b = {(MLA_WAVE_ID - 8) * BRING_KEYS, 0};
  Source from(x, b.key0);
  sm90_for_pieces(x.rows, brought_place(x.rows), [&](const sm90_piece &w) {
    bring_piece<Kind>(from, s, b, w);
  });
}

/* Threads that bring, and warps that read. */
MLA_DEV void brought_make_bars(const sm90_state &s) {
  if (threadIdx.x == 0) {
    sm90_make_bars(s);
    for (int i = 0; i < 2; i++) {
      mbar_init(sm90_bar(s, SM90_FULL + i), 32 * BRING_WARPS);
      mbar_init(sm90_bar(s, SM90_EMPTY + i), 8);
      mbar_init(sm90_bar(s, SM90_P_SET + i), 128);
    }
    mbar_init_fence();
  }
  __syncthreads();
}

template <class Source, int Kind>
static __global__ void __launch_bounds__(BROUGHT_THREADS, 1)
    mla_decode_brought_sm90(const __grid_constant__ CUtensorMap q_map,
                            const __grid_constant__ typename Source::Args x) {
  extern __shared__ unsigned char raw[];
  sm90_state s = sm90_begin(raw);
  brought_make_bars(s);
  pdl_launch();
  pdl_wait();
  if (s.side == 2) {
    registers_shrink<BROUGHT_BRINGER_REGISTERS>();
    brought_keys<Source, Kind>(x, s);
  } else {
    registers_grow<BROUGHT_ROW_REGISTERS>();
    brought_rows<Source>(x.rows, &q_map, s);
  }
}

#endif
