/*
 * gpu_host_list.h - tensors of a call by slot, and lists of cache slots.
 */
#ifndef MLA_GPU_HOST_LIST_H
#define MLA_GPU_HOST_LIST_H

#include "gpu_host_entry.h"
#include "gpu_sparse.h"

static inline const void *mla_gpu_data(const mla_gpu_call *c, int slot) {
  const mla_tensor *t = mla_arg(c->args, slot);
  return t ? t->data : NULL;
}

static inline int64_t mla_gpu_stride(const mla_gpu_call *c, int slot,
                                     int axis) {
  const mla_tensor *t = mla_arg(c->args, slot);
  return t ? t->stride[axis] : 0;
}

/* The most keys of a row: listed, or all. */
static inline int64_t mla_gpu_most_keys(const mla_problem *p,
                                        const mla_limits *l) {
  if (!(p->flags & MLA_SPARSE)) return l->max_seq_len;
  return p->topk + (p->flags & MLA_EXTRA_CACHE ? (int64_t)p->extra_topk : 0);
}

static inline mla_slot_list mla_gpu_slot_list(const mla_gpu_call *c,
                                              int cache_slot, int slots,
                                              int lengths) {
  const mla_tensor *cache = mla_arg(c->args, cache_slot);
  mla_slot_list l = {};
  l.cache = cache->data;
  l.cache_dtype = cache->dtype;
  l.block_size = (int)cache->shape[1];
  l.block = cache->stride[0];
  l.row = cache->stride[1];
  l.capacity = cache->shape[0] * cache->shape[1];
  l.entry = mla_gpu_entry(c, cache_slot);
  l.slots = (const int32_t *)mla_gpu_data(c, slots);
  l.slots_row = mla_gpu_stride(c, slots, 0);
  l.lengths = (const int32_t *)mla_gpu_data(c, lengths);
  l.lengths_step = mla_gpu_stride(c, lengths, 0);
  l.width = (int)mla_arg(c->args, slots)->shape[1];
  return l;
}

#endif
