/*
 * The host side of mla_decode_listed_sm90: what it serves, and the launch.
 */
#include <stdio.h>

#include "cuda_fast.h"
#include "mla_decode_listed_sm90.cuh"
#include "sm90_decode_host.h"

static int serves(const mla_handle *h, const mla_problem *p,
                  const mla_limits *l) {
  const int64_t lists = mla_gpu_most_keys(p, l);
  return mla_sm90_decodes(h, p) && (p->flags & MLA_SPARSE) && p->topk > 0 &&
         (p->cache_format == MLA_CACHE_BF16 ||
          p->cache_format == MLA_CACHE_FP8_DS_MLA) &&
         p->num_heads <= 2048 && lists <= 1 << 20 && l->tokens <= 1 << 16 &&
         l->tokens * (lists / MLA_SM90_BLOCK + 8) < INT32_MAX;
}

static uint64_t workspace(const mla_handle *h, const mla_problem *p,
                          const mla_limits *l) {
  (void)l;
  return mla_sm90_workspace(mla_sm90_grid_of(h, p->num_heads));
}

static int takes(const mla_gpu_call *c) {
  const mla_tensor *more = mla_arg(c->args, MLA_T_EXTRA_CACHE);
  return mla_sm90_takes_rows(c) &&
         mla_sm90_takes_units(mla_arg(c->args, MLA_T_CACHE)) &&
         (!(c->p->flags & MLA_EXTRA_CACHE) || mla_sm90_takes_units(more));
}

static mla_sm90_list list_of(const mla_slot_list &from) {
  const int bytes = from.entry.scaled ? 1 : 2;
  mla_sm90_list l = {};
  l.cache = (const unsigned char *)from.cache;
  l.block = (int)(from.block * bytes / LISTED_UNIT);
  l.row = (int)(from.row * bytes / LISTED_UNIT);
  l.capacity = from.capacity;
  l.page = from.block_size;
  l.shift = l.page & (l.page - 1) ? -1 : __builtin_ctz((unsigned)l.page);
  l.slots = from.slots;
  l.slots_row = from.slots_row;
  return l;
}

static mla_sm90_listed make_args(const mla_gpu_call *c,
                                 const mla_sm90_grid &g) {
  const mla_slot_list main =
      mla_gpu_slot_list(c, MLA_T_CACHE, MLA_T_INDICES, MLA_T_TOPK_LEN);
  mla_sm90_listed x = {};
  x.rows = mla_sm90_args_of(c, g);
  x.main = list_of(main);
  x.rows.plan.requests = (int)mla_arg(c->args, MLA_T_Q)->shape[0];
  mla_plan_lists *lists = &x.rows.plan.lists;
  lists->lengths = main.lengths;
  lists->step = main.lengths_step;
  lists->width = main.width;
  if (!(c->p->flags & MLA_EXTRA_CACHE)) return x;
  const mla_slot_list more = mla_gpu_slot_list(
      c, MLA_T_EXTRA_CACHE, MLA_T_EXTRA_INDICES, MLA_T_EXTRA_TOPK_LEN);
  x.more = list_of(more);
  lists->more_lengths = more.lengths;
  lists->more_step = more.lengths_step;
  lists->more_width = more.width;
  return x;
}

template <int Keys>
static mla_status launch(const mla_gpu_call *c) {
  const mla_sm90_grid g = mla_sm90_grid_of(c->plan->handle, c->p->num_heads);
  const mla_sm90_listed x = make_args(c, g);
  CUtensorMap q_map;
  mla_status st = mla_sm90_q_map(c, &q_map);
  if (st == MLA_OK)
    st = mla_gpu_shared(c, (const void *)mla_decode_listed_sm90<Keys>,
                        SM90_BYTES, "decode_listed_sm90");
  if (st != MLA_OK) return st;
  cudaLaunchAttribute early;
  const cudaLaunchConfig_t config =
      mla_sm90_early(c, dim3((unsigned)g.m_blocks, (unsigned)g.parts),
                     LISTED_THREADS, SM90_BYTES, &early);
  st = mla_gpu_check(
      c->err,
      cudaLaunchKernelEx(&config, mla_decode_listed_sm90<Keys>, q_map, x),
      "decode_listed_sm90");
  return st == MLA_OK ? mla_sm90_merge(c, x.rows, g, c->p->num_heads) : st;
}

static mla_status run(const mla_gpu_call *c) {
  return c->p->cache_format == MLA_CACHE_BF16 ? launch<LISTED_BF16>(c)
                                              : launch<LISTED_656>(c);
}

static void describe(const mla_problem *p, mla_answer *answer) {
  snprintf(answer->kernel, sizeof answer->kernel, "decode_listed_%s_sm90",
           p->cache_format == MLA_CACHE_BF16 ? "bf16" : "656");
  mla_sm90_promise(answer);
}

const mla_gpu_fast mla_cuda_listed_sm90 = {serves, workspace, describe, takes,
                                           run};
