/*
 * Decode over pages of codes, and of bf16 that the copy engine cannot bring,
 * by mla_decode_brought_sm90: what it serves.
 */
#include <stdio.h>

#include "sm90_brought_host.h"
#include "sm90_page_keys.h"

static int kind_of(int format) {
  switch (format) {
    case SM90_FORMAT: return KEYS_NUMBERS;
    case MLA_CACHE_FP8_E4M3:
    case MLA_CACHE_FP8_TOKEN: return KEYS_E4M3;
    case MLA_CACHE_INT8_TOKEN: return KEYS_I8;
#ifndef MLA_SM90_F16 /* its entries hold bf16 */
    case MLA_CACHE_FP8_DS_MLA: return KEYS_656;
#endif
  }
  return -1;
}

static int serves(const mla_handle *h, const mla_problem *p,
                  const mla_limits *l) {
  return mla_sm90_decodes_pages(h, p, l) && kind_of(p->cache_format) >= 0;
}

static uint64_t workspace(const mla_handle *h, const mla_problem *p,
                          const mla_limits *l) {
  return mla_sm90_workspace(mla_sm90_grid_of(h, mla_sm90_rows(p, l)));
}

static int takes(const mla_gpu_call *c) {
  return mla_sm90_takes_rows(c) &&
         mla_sm90_takes_units(mla_arg(c->args, MLA_T_CACHE));
}

static mla_sm90_pages make_args(const mla_gpu_call *c, const mla_sm90_grid &g) {
  const mla_tensor *cache = mla_arg(c->args, MLA_T_CACHE);
  const mla_entry entry = mla_gpu_entry(c, MLA_T_CACHE);
  const int bytes = mla_dtype_bits(cache->dtype) / 8;
  mla_sm90_pages x = {};
  x.rows = mla_sm90_paged_args(c, g);
  x.cache = (const unsigned char *)cache->data;
  x.block = (int)(cache->stride[0] * bytes / BRING_UNIT);
  x.row = (int)(cache->stride[1] * bytes / BRING_UNIT);
  x.shift = mla_sm90_shift(c->p->block_size);
  if (entry.scale != MLA_DTYPE_NONE) x.scale_at = entry.scale_at;
  x.one = entry.one;
  return x;
}

template <int Kind>
static mla_status launch(const mla_gpu_call *c) {
  const int64_t rows = mla_sm90_rows(c->p, &c->plan->limits);
  const mla_sm90_grid g = mla_sm90_grid_of(c->plan->handle, rows);
  const mla_sm90_pages x = make_args(c, g);
  return mla_sm90_is_cut(c) ? mla_sm90_launch_brought<sm90_page_keys, Kind, 1>(
                                  c, x, g, (int)rows)
                            : mla_sm90_launch_brought<sm90_page_keys, Kind, 0>(
                                  c, x, g, (int)rows);
}

static mla_status run(const mla_gpu_call *c) {
  switch (kind_of(c->p->cache_format)) {
    case KEYS_E4M3: return launch<KEYS_E4M3>(c);
    case KEYS_I8: return launch<KEYS_I8>(c);
#ifndef MLA_SM90_F16
    case KEYS_656: return launch<KEYS_656>(c);
#endif
  }
  return launch<KEYS_NUMBERS>(c);
}

static void describe(const mla_problem *p, mla_answer *answer) {
  static const char *const names[] = {MLA_SM90_TEXT, "656", "e4m3", "int8"};
  snprintf(answer->kernel, sizeof answer->kernel, "decode_pages_%s_sm90",
           names[kind_of(p->cache_format)]);
  mla_sm90_promise(answer);
}

const mla_gpu_fast MLA_SM90_NAME(mla_cuda_pages) = {serves, workspace, describe,
                                                    takes, run};
