/*
 * The launches of mla_decode_merge_sm90.cuh.
 */
#include "mla_decode_merge_sm90.cuh"
#include "sm90_decode_host.h"

/* Blocks of 256 threads and 80 registers that a unit holds, and that it holds
   beside a block of the decode with few rows. */
enum { BLOCKS_A_UNIT = 3, NARROW_BLOCKS_A_UNIT = 1 };

template <class Kernel>
static mla_status launch(const mla_gpu_call *c, Kernel *kernel, dim3 grid,
                         const mla_sm90_args &a, const mla_sm90_merge_grid &m) {
  cudaLaunchAttribute early;
  const cudaLaunchConfig_t config =
      mla_sm90_early(c, grid, SM90_MERGE_THREADS, 0, &early);
  return mla_gpu_check(c->err, cudaLaunchKernelEx(&config, kernel, a, m),
                       "decode_merge_sm90");
}

template <class Tile>
static mla_status merge(const mla_gpu_call *c, const mla_sm90_args &a,
                        mla_sm90_merge_grid m, int a_unit) {
  /* Blocks and warps of the card that there is room for at once. */
  const int64_t room = (int64_t)c->plan->handle->units * a_unit;
  const int64_t most = room * SM90_MERGE_WARPS;
  const int64_t items = (int64_t)m.slices * m.warps * m.tiles * m.entries;
  /* Where an item would have one warp, a request in many parts would be waited
     for: those that are split are found first, and warps are shared out. */
  if (2 * items > most)
    return launch(c, mla_decode_merge_many_sm90<Tile>, dim3((unsigned)room), a,
                  m);
  /* More warps for each of them. */
  while (m.share < SM90_MERGE_WARPS && items * m.share * 2 <= most)
    m.share *= 2;
  const int blocks = m.slices * m.warps * m.share / SM90_MERGE_WARPS;
  return launch(c, mla_decode_merge_few_sm90<Tile>,
                dim3((unsigned)blocks, (unsigned)m.entries, (unsigned)m.tiles),
                a, m);
}

static int entries(const mla_sm90_args &a, const mla_sm90_grid &g) {
  return a.plan.requests < g.parts ? a.plan.requests : g.parts;
}

mla_status mla_sm90_merge(const mla_gpu_call *c, const mla_sm90_args &a,
                          const mla_sm90_grid &g, int rows) {
  return merge<sm90_wide_tile>(
      c, a, {entries(a, g), g.m_blocks, SM90_SLICES, mla_sm90_warps(rows), 1},
      BLOCKS_A_UNIT);
}

mla_status mla_sm90_merge_narrow(const mla_gpu_call *c, const mla_sm90_args &a,
                                 const mla_sm90_grid &g, int rows) {
  return merge<sm90_narrow_tile>(
      c, a, {entries(a, g), 1, (rows + 7) / 8 * 8, 4, 1}, NARROW_BLOCKS_A_UNIT);
}
