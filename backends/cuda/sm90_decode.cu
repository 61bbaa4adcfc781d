/*
 * The host side of mla_decode_bf16_sm90: what it serves, and the launch.
 */
#include <stdio.h>

#include "cuda_fast.h"
#include "mla_decode_bf16_sm90.cuh"
#include "sm90_decode_host.h"

/* Keys of short pages, and of one request with few rows, are brought sooner by
   warps (sm90_pages.cu), as far as those reach. */
enum { FEW_ROWS = 2 * MLA_SM90_ROWS };
static int page_serves(const mla_problem *p, const mla_limits *l) {
  const int page = p->block_size, whole = page % MLA_SM90_BLOCK == 0;
  const int part = page >= 8 && MLA_SM90_BLOCK % page == 0;
  if (whole && (l->requests > 1 || mla_sm90_rows(p, l) > FEW_ROWS)) return 1;
  return (whole || part) && l->num_blocks * page * 1152 > MLA_SM90_REACH;
}

static int serves(const mla_handle *h, const mla_problem *p,
                  const mla_limits *l) {
  return mla_sm90_decodes_pages(h, p, l) && p->cache_format == SM90_FORMAT &&
         page_serves(p, l);
}

static uint64_t workspace(const mla_handle *h, const mla_problem *p,
                          const mla_limits *l) {
  return mla_sm90_workspace(mla_sm90_grid_of(h, mla_sm90_rows(p, l)));
}

static mla_status launch(const mla_gpu_call *c, const CUtensorMap &q_map,
                         const CUtensorMap &k_map,
                         const CUtensorMap &rope_map) {
  const int64_t rows = mla_sm90_rows(c->p, &c->plan->limits);
  const mla_sm90_grid g = mla_sm90_grid_of(c->plan->handle, rows);
  const mla_sm90_args a = mla_sm90_paged_args(c, g);
  const auto kernel = mla_sm90_is_cut(c) ? MLA_SM90_NAME(mla_decode)<1>
                                         : MLA_SM90_NAME(mla_decode)<0>;
  cudaLaunchAttribute early;
  const cudaLaunchConfig_t config =
      mla_sm90_early(c, dim3((unsigned)g.m_blocks, (unsigned)g.parts),
                     SM90_THREADS, SM90_BYTES, &early);
  mla_status st = mla_gpu_shared(c, (const void *)kernel, SM90_BYTES,
                                 "decode_" MLA_SM90_TEXT "_sm90");
  if (st == MLA_OK)
    st = mla_gpu_check(
        c->err, cudaLaunchKernelEx(&config, kernel, q_map, k_map, rope_map, a),
        "decode_" MLA_SM90_TEXT "_sm90");
  return st == MLA_OK ? mla_sm90_merge(c, a, g, (int)rows, SM90_TYPE) : st;
}

static void describe(const mla_problem *p, mla_answer *answer) {
  (void)p;
  snprintf(answer->kernel, sizeof answer->kernel,
           "decode_" MLA_SM90_TEXT "_sm90");
  mla_sm90_promise(answer);
}

static mla_status run(const mla_gpu_call *c) {
  CUtensorMap q_map, k_map, rope_map;
  mla_status st = mla_sm90_q_map(c, MLA_SM90_ROWS, &q_map);
  const int boxes = c->p->block_size < MLA_SM90_BLOCK ? 1 : 4;
  if (st == MLA_OK)
    st = mla_sm90_key_map(c, MLA_SM90_BLOCK, boxes, MLA_TENSOR_PAIRS, &k_map);
  if (st == MLA_OK)
    st = mla_sm90_key_map(c, MLA_SM90_BLOCK, 1, MLA_TENSOR_PAIRS, &rope_map);
  return st == MLA_OK ? launch(c, q_map, k_map, rope_map) : st;
}

const mla_gpu_fast MLA_SM90_NAME(mla_cuda_decode) = {
    serves, workspace, describe, mla_sm90_takes_boxes, run};
