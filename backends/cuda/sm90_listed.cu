/*
 * Decode over lists of slots by mla_decode_brought_sm90: what it serves.
 */
#include <stdio.h>

#include "sm90_brought_host.h"
#include "sm90_listed_keys.h"

/* Codes become bf16. */
static int kind_of(int format) {
  if (format == SM90_FORMAT) return KEYS_NUMBERS;
#ifndef MLA_SM90_F16
  if (format == MLA_CACHE_FP8_DS_MLA) return KEYS_656;
#endif
  return -1;
}

static int serves(const mla_handle *h, const mla_problem *p,
                  const mla_limits *l) {
  const int64_t lists = mla_gpu_most_keys(p, l);
  return mla_sm90_decodes(h, p) && (p->flags & MLA_SPARSE) && p->topk > 0 &&
         kind_of(p->cache_format) >= 0 && p->num_heads <= 2048 &&
         lists <= 1 << 20 && l->tokens <= 1 << 16 &&
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
  l.block = (int)(from.block * bytes / BRING_UNIT);
  l.row = (int)(from.row * bytes / BRING_UNIT);
  l.capacity = from.capacity;
  l.page = from.block_size;
  l.shift = mla_sm90_shift(l.page);
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

template <int Kind, int Once>
static mla_status launch(const mla_gpu_call *c) {
  const mla_sm90_grid g = mla_sm90_grid_of(c->plan->handle, c->p->num_heads);
  mla_sm90_listed x = make_args(c, g);
  mla_lists_cut(&x.rows.plan);
  return mla_sm90_launch_brought<sm90_listed_keys<Once>, Kind, 0>(
      c, x, g, c->p->num_heads);
}

/* Lists of so many entries may name each of the cache's but once. */
static int once(const mla_gpu_call *c) {
  const mla_tensor *cache = mla_arg(c->args, MLA_T_CACHE);
  const mla_tensor *lists = mla_arg(c->args, MLA_T_INDICES);
  return lists->shape[0] * lists->shape[1] <= cache->shape[0] * cache->shape[1];
}

static mla_status run(const mla_gpu_call *c) {
#ifndef MLA_SM90_F16
  if (kind_of(c->p->cache_format) == KEYS_656) return launch<KEYS_656, 0>(c);
#endif
  return once(c) ? launch<KEYS_NUMBERS, 1>(c) : launch<KEYS_NUMBERS, 0>(c);
}

static void describe(const mla_problem *p, mla_answer *answer) {
  snprintf(answer->kernel, sizeof answer->kernel, "decode_listed_%s_sm90",
           kind_of(p->cache_format) == KEYS_656 ? "656" : MLA_SM90_TEXT);
  mla_sm90_promise(answer);
}

const mla_gpu_fast MLA_SM90_NAME(mla_cuda_listed) = {serves, workspace,
                                                     describe, takes, run};
