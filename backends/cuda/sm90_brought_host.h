/*
 * sm90_brought_host.h - the launch of mla_decode_brought_sm90, and the merge
 * behind it.
 */
#ifndef MLA_SM90_BROUGHT_HOST_H
#define MLA_SM90_BROUGHT_HOST_H

#include "cuda_fast.h"
#include "mla_decode_brought_sm90.cuh"
#include "sm90_decode_host.h"
#include "sm90_listed_cut.h"

/* rows: the most of a request; Cut: by sm90_decode_cut.h. */
template <class Source, int Kind, int Cut>
static mla_status mla_sm90_launch_brought(const mla_gpu_call *c,
                                          const typename Source::Args &x,
                                          const mla_sm90_grid &g, int rows) {
  const auto kernel = mla_decode_brought_sm90<Source, Kind, Cut>;
  CUtensorMap q_map;
  mla_status st = mla_sm90_q_map(c, MLA_SM90_ROWS, &q_map);
  if (st == MLA_OK)
    st = mla_gpu_shared(c, (const void *)kernel, SM90_BYTES,
                        "decode_brought_sm90");
  if (st != MLA_OK) return st;
  cudaLaunchAttribute early;
  const cudaLaunchConfig_t config =
      mla_sm90_early(c, dim3((unsigned)g.m_blocks, (unsigned)g.parts),
                     BROUGHT_THREADS, SM90_BYTES, &early);
  st = mla_gpu_check(c->err, cudaLaunchKernelEx(&config, kernel, q_map, x),
                     "decode_brought_sm90");
  if (st != MLA_OK || mla_lists_whole(x.rows.plan)) return st;
  return mla_sm90_merge(c, x.rows, g, rows, SM90_TYPE);
}

/* A page's size as a shift; -1: it is no power of two. */
static inline int mla_sm90_shift(int page) {
  return page & (page - 1) ? -1 : __builtin_ctz((unsigned)page);
}

#endif
