/*
 * mla_decode_bf16_sm90.cuh - dense decode, bf16 or f16, width 576/512, for
 * sm_90a: sm90_decode_rows.h fed by a ninth warp (sm90_boxed_keys.h), which is
 * pieces ahead where it can be.
 */
#ifndef MLA_DECODE_BF16_SM90_CUH
#define MLA_DECODE_BF16_SM90_CUH

#include "sm90_boxed_keys.h"
#include "sm90_decode_cut.h"
#include "sm90_decode_rows.h"

/* Two warpgroups of rows and one of which a warp brings keys: registers come
   by warpgroups, 168 a thread at launch. */
enum {
  SM90_THREADS = 384,
  SM90_BRINGER_REGISTERS = 56,
  SM90_ROW_REGISTERS = 224
};
static_assert(SM90_BRINGER_REGISTERS + 2 * SM90_ROW_REGISTERS <= 3 * 168,
              "registers of the three warpgroups");

/* Rows past the last key hold anything, NaN too: P is 0 there, V must be. */
MLA_DEV void sm90_clear_tail(const sm90_state &s, const sm90_piece &w,
                             int block) {
  const int buffer = block & 1;
  const int valid = w.seq - (w.block + block) * MLA_SM90_BLOCK;
  if (valid >= MLA_SM90_BLOCK) return;
  for (int i = valid * 32 + s.thread; i < MLA_SM90_BLOCK * 32; i += 128) {
    const int row = i / 32, chunk = i % 32;
    const uint32_t at = sm90_box(s, buffer, 4 * s.side + chunk / 8) +
                        row * 128 + (chunk % 8) * 16;
    store_shared_zeros(at);
  }
  fence_async();
  bar_sync(s.side ? BAR_RIGHT : BAR_LEFT, 128);
}

struct sm90_paged {
  enum { parts = 1, in_turn = 0 };
  const sm90_piece &w;
  static SM90_MEMBER void wait(const sm90_state &s, int buffer, int part,
                               uint32_t parity) {
    mbar_wait(sm90_bar(s, SM90_FULL + 3 * buffer + part), parity);
  }
  SM90_MEMBER void mask(const sm90_state &s, int block,
                        float (&acc)[32]) const {
    sm90_mask_tail(s, block, acc);
  }
  SM90_MEMBER void clear(const sm90_state &s, int block) const {
    sm90_clear_tail(s, w, block);
  }
  /* A warp speaks for itself: its products and stores are done. */
  SM90_MEMBER void release(const sm90_state &s, int block, int rope) const {
    const int empty = SM90_EMPTY + 3 * (block & 1);
    if (s.thread % 32) return;
    mbar_arrive(sm90_bar(s, empty + s.side));
    if (rope) mbar_arrive(sm90_bar(s, empty + 2));
  }
};

MLA_DEV void sm90_make_paged_bars(const sm90_state &s) {
  sm90_make_bars(s);
  mbar_init(sm90_bar(s, SM90_Q_EMPTY), 8); /* warps */
  for (int i = 0; i < 6; i++) {
    mbar_init(sm90_bar(s, SM90_FULL + i), 1);
    mbar_init(sm90_bar(s, SM90_EMPTY + i), 4); /* warps of a side */
  }
  mbar_init_fence();
}

template <class Place>
MLA_DEV void sm90_paged_rows(const mla_sm90_args &a, const Place &at,
                             sm90_state &s) {
  uint32_t turn = 0;
  sm90_for_pieces(a, at, [&](const sm90_piece &w) {
    const sm90_paged feed = {w};
    sm90_limits(a, s, w, (int)blockIdx.x * MLA_SM90_ROWS);
    sm90_attend(a, feed, s, w, turn++);
    __syncwarp();
    if (MLA_LANE == 0) mbar_arrive(sm90_bar(s, SM90_Q_EMPTY));
  });
}

template <class Place>
MLA_DEV void sm90_paged_keys(const mla_sm90_args &a, const boxed_maps &maps,
                             const Place &at, const sm90_state &s) {
  boxed_bringer b = boxed_begin(a.page);
  sm90_for_pieces(a, at,
                  [&](const sm90_piece &w) { boxed_bring(a, maps, s, w, b); });
}

/* Equal parts: every warp finds the CTA's for itself. */
MLA_DEV void sm90_paged_even(const mla_sm90_args &a, const boxed_maps &maps,
                             sm90_state &s) {
  const int part = (int)blockIdx.y;
  pdl_wait();
  if (s.side == 2) {
    registers_shrink<SM90_BRINGER_REGISTERS>();
    if (s.thread < 32)
      sm90_paged_keys(a, maps, mla_plan_of_part(a.plan, part), s);
  } else {
    registers_grow<SM90_ROW_REGISTERS>();
    sm90_paged_rows(a, mla_plan_of_part(a.plan, part), s);
  }
}

/* Cut where requests end: one warp finds it for all, and another practises. */
MLA_DEV void sm90_paged_cut(const mla_sm90_args &a, const boxed_maps &maps,
                            sm90_state &s) {
  __shared__ mla_cut_place place[2];
  if (s.side == 2) {
    registers_shrink<SM90_BRINGER_REGISTERS>();
    if (s.thread >= 64) {
      if (s.thread < 96) sm90_expect_table(a);
      return;
    }
    const int practice = s.thread >= 32;
    if (!practice) pdl_wait();
    sm90_find_cut(a, &place[practice], practice);
    if (practice) return;
    bar_arrive(BAR_PLACE, 256 + 32);
    sm90_paged_keys(a, maps, place[0], s);
  } else {
    registers_grow<SM90_ROW_REGISTERS>();
    pdl_wait();
    bar_sync(BAR_PLACE, 256 + 32);
    sm90_paged_rows(a, place[0], s);
  }
}

template <int Cut>
static __global__ void __launch_bounds__(SM90_THREADS, 1)
    MLA_SM90_NAME(mla_decode)(const __grid_constant__ CUtensorMap q_map,
                              const __grid_constant__ CUtensorMap k_map,
                              const __grid_constant__ CUtensorMap rope_map,
                              const mla_sm90_args a) {
  extern __shared__ unsigned char raw[];
  const boxed_maps maps = {&q_map, &k_map, &rope_map};
  sm90_state s = sm90_begin(raw);
  if (threadIdx.x == 0) {
    sm90_make_paged_bars(s);
    tma_prefetch_map(&q_map);
    tma_prefetch_map(&k_map);
    tma_prefetch_map(&rope_map);
  }
  sm90_touch(a);
  __syncthreads();
  pdl_launch();
  if constexpr (Cut)
    sm90_paged_cut(a, maps, s);
  else
    sm90_paged_even(a, maps, s);
}

#endif
