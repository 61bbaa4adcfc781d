/*
 * The launches of mla_decode_merge_sm90.cuh.
 */
#include "mla_decode_merge_sm90.cuh"
#include "sm90_decode_host.h"

template <class Kernel>
static mla_status launch(const mla_gpu_call *c, Kernel *kernel, dim3 grid,
                         const mla_sm90_args &a, const mla_sm90_merge_grid &m) {
  cudaLaunchAttribute early;
  const cudaLaunchConfig_t config =
      mla_sm90_early(c, grid, SM90_MERGE_THREADS, 0, &early);
  return mla_gpu_check(c->err, cudaLaunchKernelEx(&config, kernel, a, m),
                       "decode_merge_sm90");
}

/* Items of as many slices as leave one a warp. */
template <class Tile, int Slices>
static mla_status merge_many(const mla_gpu_call *c, const mla_sm90_args &a,
                             const mla_sm90_merge_grid &m, int blocks) {
  if constexpr (Slices < (int)Tile::Most) {
    const int64_t items =
        (int64_t)m.slices / Slices * m.warps * m.tiles * m.entries;
    if (items > (int64_t)blocks * SM90_MERGE_WARPS)
      return merge_many<Tile, 2 * Slices>(c, a, m, blocks);
  }
  return launch(c, mla_decode_merge_many_sm90<Tile, Slices>,
                dim3((unsigned)blocks), a, m);
}

template <class Tile>
static mla_status merge(const mla_gpu_call *c, const mla_sm90_args &a,
                        mla_sm90_merge_grid m) {
  if (a.plan.whole) return MLA_OK;
  /* Blocks and warps of the card that there is room for at once. */
  const int blocks = c->plan->handle->units * Tile::Blocks;
  const int64_t most = (int64_t)blocks * SM90_MERGE_WARPS;
  const int64_t items =
      (int64_t)m.slices / Tile::Each * m.warps * m.tiles * m.entries;
  /* Where a slice would have one warp, a request in many parts would be waited
     for: those that are split are found first, and warps are shared out. */
  if (2 * Tile::Each * items > most)
    return merge_many<Tile, 2>(c, a, m, blocks);
  /* More warps for each of them. */
  while (m.share < SM90_MERGE_WARPS && items * m.share * 2 <= most)
    m.share *= 2;
  const int each = m.slices / Tile::Each * m.warps * m.share / SM90_MERGE_WARPS;
  return launch(c, mla_decode_merge_few_sm90<Tile>,
                dim3((unsigned)each, (unsigned)m.entries, (unsigned)m.tiles), a,
                m);
}

static int entries(const mla_sm90_args &a, const mla_sm90_grid &g) {
  return a.plan.requests < g.parts ? a.plan.requests : g.parts;
}

mla_status mla_sm90_merge(const mla_gpu_call *c, const mla_sm90_args &a,
                          const mla_sm90_grid &g, int rows, int dtype) {
  const mla_sm90_merge_grid m = {entries(a, g), g.m_blocks, SM90_SLICES,
                                 mla_sm90_warps(rows), 1};
  return dtype == MLA_BF16 ? merge<sm90_short_tile>(c, a, m)
                           : merge<sm90_wide_tile>(c, a, m);
}

mla_status mla_sm90_merge_narrow(const mla_gpu_call *c, const mla_sm90_args &a,
                                 const mla_sm90_grid &g, int rows, int tile) {
  const int most = rows < tile ? rows : tile;
  const mla_sm90_merge_grid m = {entries(a, g), g.m_blocks, (most + 7) / 8 * 8,
                                 4, 1};
  return tile == 16 ? merge<sm90_narrow_tile<16>>(c, a, m)
                    : merge<sm90_narrow_tile<32>>(c, a, m);
}
