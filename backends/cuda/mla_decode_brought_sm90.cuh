/*
 * mla_decode_brought_sm90.cuh - decode of width 576/512 whose keys a third
 * warpgroup brings (sm90_bring.h), for sm_90a: sm90_decode_rows.h fed by a
 * Source.
 *
 * Beside what sm90_bring.h asks of it, a Source has
 *   Args            with the member rows, mla_sm90_args
 *   Source(x, key0) for the warp whose first key of a block is key0
 *   Feed<Brought>   what rows ask for (sm90_decode_rows.h), beside Brought
 *   limits(...)     sets what rows see, where that is not listed
 *   place_of(...)   where a part begins, unless sm90_decode_cut.h says it
 */
#ifndef MLA_DECODE_BROUGHT_SM90_CUH
#define MLA_DECODE_BROUGHT_SM90_CUH

#include "sm90_bring.h"
#include "sm90_decode_cut.h"

enum {
  BROUGHT_THREADS = 256 + 32 * BRING_WARPS,
  /* Of what a launch gets: 3 * 168. More than that would wait for ever. */
  BROUGHT_BRINGER_REGISTERS = 88,
  BROUGHT_ROW_REGISTERS = 208
};
static_assert(BROUGHT_BRINGER_REGISTERS + 2 * BROUGHT_ROW_REGISTERS <=
                  65536 / BROUGHT_THREADS / 8 * 8 * 3,
              "registers of the three warpgroups");

/* Of codes a block has one barrier; a warp speaks for itself. */
struct sm90_brought_codes {
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

/* Of numbers a part has one, as where the copy engine brings them. */
struct sm90_brought_numbers {
  enum { parts = 1, in_turn = 1 };
  static SM90_MEMBER void wait(const sm90_state &s, int buffer, int part,
                               uint32_t parity) {
    mbar_wait(sm90_bar(s, SM90_FULL + 3 * buffer + part), parity);
  }
  SM90_MEMBER void clear(const sm90_state &s, int block) const {
    (void)s, (void)block; /* there are zeros */
  }
  SM90_MEMBER void release(const sm90_state &s, int block, int rope) const {
    const int empty = SM90_EMPTY + 3 * (block & 1);
    if (s.thread % 32) return;
    mbar_arrive(sm90_bar(s, empty + s.side));
    if (rope) mbar_arrive(sm90_bar(s, empty + 2));
  }
};
template <int Kind>
struct sm90_brought_as {
  typedef sm90_brought_codes type;
};
template <>
struct sm90_brought_as<KEYS_NUMBERS> {
  typedef sm90_brought_numbers type;
};

/* Cut where requests end: a bringing warp finds it for all, and another
   practises. */
MLA_DEV void brought_find_cut(const mla_sm90_args &a, const sm90_state &s,
                              mla_cut_place (&place)[2]) {
  const int warp = s.side == 2 ? s.thread / 32 : 2;
  if (warp != 1) pdl_wait();
  if (warp < 2) sm90_find_cut(a, &place[warp], warp);
  if (warp == 1) pdl_wait();
  bar_sync(BAR_PLACE, BROUGHT_THREADS);
}

template <class Source, int Kind, class Place>
MLA_DEV void brought_rows(const mla_sm90_args &a, const CUtensorMap *q_map,
                          const Place &at, sm90_state &s) {
  const typename Source::template Feed<typename sm90_brought_as<Kind>::type>
      feed = {};
  uint32_t q_turn = 0;
  sm90_for_pieces(a, at, [&](const sm90_piece &w) {
    Source::limits(a, s, w);
    bar_sync(BAR_ALL, 256); /* Q is free */
    if (threadIdx.x == 0) sm90_fetch_q(a, q_map, s, w);
    sm90_attend(a, feed, s, w, q_turn++);
  });
}

template <class Source, int Kind, class Place>
MLA_DEV void brought_keys(const typename Source::Args &x, const Place &at,
                          const sm90_state &s) {
  sm90_bringer b = {(MLA_WAVE_ID - 8) * BRING_KEYS, 0};
  Source from(x, b.key0);
  sm90_for_pieces(x.rows, at, [&](const sm90_piece &w) {
    bring_piece<Kind>(from, s, b, w);
  });
}

/* Threads that bring, and warps that read. */
template <int Kind>
MLA_DEV void brought_make_bars(const sm90_state &s) {
  if (threadIdx.x == 0) {
    sm90_make_bars(s);
    for (int i = 0; i < (Kind == KEYS_NUMBERS ? 6 : 2); i++) {
      mbar_init(sm90_bar(s, SM90_FULL + i), 32 * BRING_WARPS);
      mbar_init(sm90_bar(s, SM90_EMPTY + i), Kind == KEYS_NUMBERS ? 4 : 8);
    }
    for (int i = 0; i < 2; i++) mbar_init(sm90_bar(s, SM90_P_SET + i), 128);
    mbar_init_fence();
  }
  __syncthreads();
}

/* A part's work: to bring its keys, or its rows'. */
template <class Source, int Kind, int Brings, class Place>
MLA_DEV void brought_part(const typename Source::Args &x,
                          const CUtensorMap *q_map, const Place &at,
                          sm90_state &s) {
  if constexpr (Brings)
    brought_keys<Source, Kind>(x, at, s);
  else
    brought_rows<Source, Kind>(x.rows, q_map, at, s);
}

/* Equal parts, which every warp finds for itself, or such as are cut. */
template <class Source, int Kind, int Cut, int Brings>
MLA_DEV void brought_work(const typename Source::Args &x,
                          const CUtensorMap *q_map, mla_cut_place (&place)[2],
                          sm90_state &s) {
  if constexpr (Cut) {
    brought_find_cut(x.rows, s, place);
    brought_part<Source, Kind, Brings>(x, q_map, place[0], s);
  } else {
    pdl_wait();
    brought_part<Source, Kind, Brings>(
        x, q_map, Source::place_of(x.rows.plan, (int)blockIdx.y), s);
  }
}

template <class Source, int Kind, int Cut>
static __global__ void __launch_bounds__(BROUGHT_THREADS, 1)
    mla_decode_brought_sm90(const __grid_constant__ CUtensorMap q_map,
                            const __grid_constant__ typename Source::Args x) {
  extern __shared__ unsigned char raw[];
  __shared__ mla_cut_place place[2];
  sm90_state s = sm90_begin(raw);
  brought_make_bars<Kind>(s);
  pdl_launch();
  if (s.side == 2) {
    registers_shrink<BROUGHT_BRINGER_REGISTERS>();
    brought_work<Source, Kind, Cut, 1>(x, &q_map, place, s);
  } else {
    registers_grow<BROUGHT_ROW_REGISTERS>();
    brought_work<Source, Kind, Cut, 0>(x, &q_map, place, s);
  }
}

#endif
