/*
 * The launch of mla_decode_merge_sm90.
 */
#include "mla_decode_merge_sm90.cuh"
#include "sm90_decode_host.h"

mla_status mla_sm90_merge(const mla_gpu_call *c, const mla_sm90_args &a,
                          const mla_sm90_grid &g, int rows) {
  /* Few requests: many pieces each, so more warps a row. */
  const int wide = g.parts >= 4 * a.plan.requests;
  const int entries = a.plan.requests < g.parts ? a.plan.requests : g.parts;
  cudaLaunchAttribute early;
  const cudaLaunchConfig_t config = mla_sm90_early(
      c, dim3((unsigned)(wide ? rows : (rows + 7) / 8), (unsigned)entries), 256,
      0, &early);
  return mla_gpu_check(
      c->err,
      cudaLaunchKernelEx(&config, mla_decode_merge_sm90, a, g.m_blocks, wide),
      "decode_merge_sm90");
}
