/*
 * mla_decode_narrow_sm90.cuh - dense decode, bf16 or f16, width 576/512, by
 * tiles of 16 or 32 rows of a request, for sm_90a: one warpgroup
 * (sm90_narrow_rows.h), fed by a fifth warp (sm90_narrow_keys.h).
 *
 * It leaves room for a block of the merge beside it, which then is there when
 * the last of this kernel ends.
 */
#ifndef MLA_DECODE_NARROW_SM90_CUH
#define MLA_DECODE_NARROW_SM90_CUH

#include "sm90_narrow_keys.h"
#include "sm90_narrow_rows.h"

/* With 32 rows registers come by warpgroups, for which others stand idle. */
template <int Rows>
struct narrow_kernel {
  enum {
    Threads = Rows == 16 ? 192 : 256,
    Registers = 152, /* at launch */
    RowRegisters = 232,
    KeyRegisters = 72
  };
  static_assert(RowRegisters + KeyRegisters <= 2 * Registers,
                "registers of the two warpgroups");
};

template <int Rows>
MLA_DEV void narrow_grow() {
  if constexpr (Rows > 16) registers_grow<narrow_kernel<Rows>::RowRegisters>();
}
template <int Rows>
MLA_DEV void narrow_shrink() {
  if constexpr (Rows > 16)
    registers_shrink<narrow_kernel<Rows>::KeyRegisters>();
}

/* A part of one block, of the first request. */
template <class Place>
MLA_DEV void narrow_practise(Place &at) {
  at = {};
  at.begin = (int)blockIdx.y;
  at.total = at.begin + 1;
  at.share = 1;
  at.of = {1, MLA_SM90_BLOCK, 0, MLA_SM90_BLOCK};
}

/* The fifth warp; the sixth goes through the same, finding where the part
   begins and bringing a block, before the kernels ahead have ended:
   instructions that come for the first time cost more than what they do. */
template <int Rows, class Find>
MLA_DEV void narrow_keys(const mla_sm90_args &a, const narrow_maps &maps,
                         narrow_state &s, Find find) {
  const int practice = s.warp > 4;
  narrow_shrink<Rows>();
  if (s.warp > 5) return;
  if (!practice) pdl_wait();
  auto at = find(practice);
  if (practice) narrow_practise(at);
  sm90_for_pieces<Rows>(a, at, [&](const sm90_piece &w) {
    narrow_bring<Rows>(a, maps, s, w, practice);
  });
}

template <int Rows, class Place>
MLA_DEV void narrow_rows(const mla_sm90_args &a, const Place &at,
                         narrow_state &s) {
  sm90_for_pieces<Rows>(
      a, at, [&](const sm90_piece &w) { narrow_attend<Rows>(a, s, w); });
}

/* Cut where requests end: one warp finds the part's place for all. */
template <int Rows>
MLA_DEV void narrow_cut(const mla_sm90_args &a, const narrow_maps &maps,
                        narrow_state &s) {
  __shared__ mla_cut_place place[2];
  if (s.warp < 4) {
    narrow_grow<Rows>();
    pdl_wait();
    bar_sync(NARROW_BAR_PLACE, 128 + 32);
    narrow_rows<Rows>(a, place[0], s);
  } else {
    narrow_keys<Rows>(a, maps, s, [&](int practice) {
      if (practice) sm90_expect_table(a);
      sm90_find_cut(a, &place[practice], practice);
      if (!practice) bar_arrive(NARROW_BAR_PLACE, 128 + 32);
      return place[practice];
    });
  }
}

template <int Rows>
MLA_DEV void narrow_even(const mla_sm90_args &a, const narrow_maps &maps,
                         narrow_state &s) {
  const int part = (int)blockIdx.y;
  if (s.warp < 4) {
    narrow_grow<Rows>();
    pdl_wait();
    narrow_rows<Rows>(a, mla_plan_of_part(a.plan, part), s);
  } else {
    /* What is loaded plainly is not looked at too early. */
    narrow_keys<Rows>(a, maps, s, [&](int practice) {
      return practice ? mla_plan_place() : mla_plan_of_part(a.plan, part);
    });
  }
}

template <int Rows, int Cut>
static __global__ void __maxnreg__(narrow_kernel<Rows>::Registers)
    MLA_SM90_NAME(mla_decode_narrow)(const __grid_constant__ CUtensorMap q_map,
                                     const __grid_constant__ CUtensorMap k_map,
                                     const mla_sm90_args a) {
  extern __shared__ unsigned char raw[];
  const narrow_maps maps = {&q_map, &k_map};
  narrow_state s = narrow_begin<Rows>(raw);
  if (threadIdx.x == 0) {
    narrow_make_bars(s);
    tma_prefetch_map(&q_map);
    tma_prefetch_map(&k_map);
  }
  sm90_touch(a);
  __syncthreads();
  pdl_launch();
  if constexpr (Cut)
    narrow_cut<Rows>(a, maps, s);
  else
    narrow_even<Rows>(a, maps, s);
}

#endif
