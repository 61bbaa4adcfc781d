/*
 * The host side of mla_decode_narrow_sm90: what it serves, and the launch.
 */
#include <stdio.h>

#include "cuda_fast.h"
#include "mla_decode_narrow_sm90.cuh"
#include "sm90_decode_host.h"

/*
 * Rows of a CTA. Tiles of 16 are soonest done, whatever rows a request has, as
 * long as a unit has but a few blocks of all tiles to multiply: a tile of 16
 * costs what one of 64 does. With 32 rows at most there is no other kernel that
 * would do less for more blocks. 0: one of 64 rows is sooner done.
 */
enum { NARROW_BLOCKS = 4, NARROW_TILES = 16 };
static int tile_of(const mla_handle *h, const mla_problem *p,
                   const mla_limits *l) {
  const int64_t rows = mla_sm90_rows(p, l), tiles = (rows + 15) / 16;
  const int64_t blocks = (l->max_seq_len + MLA_SM90_BLOCK - 1) / MLA_SM90_BLOCK;
  if (tiles == 1) return 16;
  if (tiles <= NARROW_TILES &&
      tiles * blocks * l->requests <= (int64_t)NARROW_BLOCKS * h->units)
    return 16;
  return tiles == 2 ? 32 : 0;
}

/* A group of keys lies in one page. */
static int serves(const mla_handle *h, const mla_problem *p,
                  const mla_limits *l) {
  return mla_sm90_decodes_pages(h, p, l) && p->cache_format == SM90_FORMAT &&
         p->block_size % NARROW_KEYS == 0 && tile_of(h, p, l) != 0;
}

static uint64_t workspace(const mla_handle *h, const mla_problem *p,
                          const mla_limits *l) {
  const int tile = tile_of(h, p, l);
  return mla_sm90_workspace(mla_sm90_grid_of(h, mla_sm90_rows(p, l), tile));
}

template <int Rows>
static mla_status launch(const mla_gpu_call *c) {
  const int rows = (int)mla_sm90_rows(c->p, &c->plan->limits);
  const mla_sm90_grid g = mla_sm90_grid_of(c->plan->handle, rows, Rows);
  const mla_sm90_args a = mla_sm90_paged_args(c, g);
  const auto kernel = mla_sm90_is_cut(c)
                          ? MLA_SM90_NAME(mla_decode_narrow)<Rows, 1>
                          : MLA_SM90_NAME(mla_decode_narrow)<Rows, 0>;
  const int bytes = narrow_of<Rows>::Bytes;
  CUtensorMap q_map, k_map;
  cudaLaunchAttribute early;
  const cudaLaunchConfig_t config =
      mla_sm90_early(c, dim3((unsigned)g.m_blocks, (unsigned)g.parts),
                     narrow_kernel<Rows>::Threads, (size_t)bytes, &early);
  mla_status st = mla_sm90_q_map(c, Rows, &q_map);
  if (st == MLA_OK)
    st = mla_sm90_key_map(c, NARROW_KEYS, 9, MLA_TENSOR_LINES, &k_map);
  if (st == MLA_OK)
    st = mla_gpu_shared(c, (const void *)kernel, bytes,
                        "decode_narrow_" MLA_SM90_TEXT "_sm90");
  if (st == MLA_OK)
    st = mla_gpu_check(c->err,
                       cudaLaunchKernelEx(&config, kernel, q_map, k_map, a),
                       "decode_narrow_" MLA_SM90_TEXT "_sm90");
  return st == MLA_OK ? mla_sm90_merge_narrow(c, a, g, rows, Rows) : st;
}

static mla_status run(const mla_gpu_call *c) {
  const mla_backend_plan *plan = c->plan;
  return tile_of(plan->handle, c->p, &plan->limits) == 16 ? launch<16>(c)
                                                          : launch<32>(c);
}

static void describe(const mla_problem *p, mla_answer *answer) {
  (void)p;
  snprintf(answer->kernel, sizeof answer->kernel,
           "decode_narrow_" MLA_SM90_TEXT "_sm90");
  mla_sm90_promise(answer);
}

const mla_gpu_fast MLA_SM90_NAME(mla_cuda_narrow) = {
    serves, workspace, describe, mla_sm90_takes_boxes, run};
