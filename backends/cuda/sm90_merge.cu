/*
 * The launches of mla_decode_merge_sm90.cuh.
 */
#include "mla_decode_merge_sm90.cuh"
#include "sm90_decode_host.h"

/* Blocks of 256 threads and 80 registers that a unit holds. */
enum { BLOCKS_A_UNIT = 3 };

template <class Kernel>
static mla_status launch(const mla_gpu_call *c, Kernel *kernel, dim3 grid,
                         const mla_sm90_args &a, const mla_sm90_merge_grid &m) {
  cudaLaunchAttribute early;
  const cudaLaunchConfig_t config =
      mla_sm90_early(c, grid, SM90_MERGE_THREADS, 0, &early);
  return mla_gpu_check(c->err, cudaLaunchKernelEx(&config, kernel, a, m),
                       "decode_merge_sm90");
}

mla_status mla_sm90_merge(const mla_gpu_call *c, const mla_sm90_args &a,
                          const mla_sm90_grid &g, int rows) {
  /* Blocks and warps of the card that there is room for at once. */
  const int64_t room = (int64_t)c->plan->handle->units * BLOCKS_A_UNIT;
  const int64_t most = room * SM90_MERGE_WARPS;
  const int entries = a.plan.requests < g.parts ? a.plan.requests : g.parts;
  mla_sm90_merge_grid m = {entries, g.m_blocks, mla_sm90_warps(rows), 1};
  const int64_t items = (int64_t)SM90_SLICES * m.warps * m.tiles * entries;
  /* Where an item would have one warp, a request in many parts would be waited
     for: those that are split are found first, and warps are shared out. */
  if (2 * items > most)
    return launch(c, mla_decode_merge_many_sm90, dim3((unsigned)room), a, m);
  /* More warps for each of them. */
  while (m.share < SM90_MERGE_WARPS && items * m.share * 2 <= most)
    m.share *= 2;
  const int blocks = SM90_SLICES * m.warps * m.share / SM90_MERGE_WARPS;
  return launch(c, mla_decode_merge_few_sm90,
                dim3((unsigned)blocks, (unsigned)entries, (unsigned)m.tiles), a,
                m);
}
