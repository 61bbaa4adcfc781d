/*
 * gpu_host_entry.h - the description of scaled entries, from a call.
 */
#ifndef MLA_GPU_HOST_ENTRY_H
#define MLA_GPU_HOST_ENTRY_H

#include "gpu_entry.h"
#include "gpu_host.h"

static inline mla_entry mla_gpu_entry(const mla_gpu_call *c, int slot) {
  const mla_tensor *cache = mla_arg(c->args, slot);
  const mla_problem *p = c->p;
  const int v = slot == MLA_T_V_CACHE;
  mla_entry e = {};
  if (!cache) return e;
  const mla_cache_layout x =
      v ? mla_cache_layout_of_v(p) : mla_cache_layout_of(p);
  if (!x.quantised) return e;
  e.scaled = 1;
  e.code = x.code;
  e.scale = x.scale;
  e.codes = (int)x.codes;
  e.width = (int)x.width;
  e.tile = (int)x.tile;
  e.page = (int)cache->shape[1];
  e.rest_at = (int)(x.scale ? x.rest_at : x.codes);
  e.scale_at = (int)x.scale_at;
  e.row_bytes = (int)x.row_bytes;
  e.side_bytes = (int)x.side_bytes;
  e.block = cache->stride[0];
  e.row = cache->stride[1];
  e.head = cache->rank == 4 ? cache->stride[2] : 0;
  e.pow2 = x.format == MLA_CACHE_FP8_584 || (p->flags & MLA_SCALE_POW2) != 0;
  e.one = (float)(v ? p->v_scale : p->k_scale);
  return e;
}

#endif
