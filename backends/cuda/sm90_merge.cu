/*
 * The launch of mla_decode_merge_sm90.
 */
#include "mla_decode_merge_sm90.cuh"
#include "sm90_decode_host.h"

/* Warps of the card that are worth waking: more of them wait for room. */
static const int WARPS_A_UNIT = 24;

mla_status mla_sm90_merge(const mla_gpu_call *c, const mla_sm90_args &a,
                          const mla_sm90_grid &g, int rows) {
  const int entries = a.plan.requests < g.parts ? a.plan.requests : g.parts;
  const int warps = mla_sm90_warps(rows);
  const int64_t items = (int64_t)SM90_SLICES * warps * g.m_blocks * entries;
  const int64_t most = (int64_t)c->plan->handle->units * WARPS_A_UNIT;
  int share = 1; /* few items: more warps for each of them */
  while (share < 8 && items * share * 2 <= most) share *= 2;
  const int blocks = SM90_SLICES * warps * share / 8;
  cudaLaunchAttribute early;
  const cudaLaunchConfig_t config = mla_sm90_early(
      c, dim3((unsigned)blocks, (unsigned)entries, (unsigned)g.m_blocks), 256,
      0, &early);
  return mla_gpu_check(
      c->err,
      cudaLaunchKernelEx(&config, mla_decode_merge_sm90, a, warps, share),
      "decode_merge_sm90");
}
