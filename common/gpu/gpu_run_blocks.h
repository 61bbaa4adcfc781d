/*
 * gpu_run_blocks.h - copies of blocks on the host side.
 */
#ifndef MLA_GPU_RUN_BLOCKS_H
#define MLA_GPU_RUN_BLOCKS_H

#include "gpu_blocks.h"
#include "gpu_host.h"

/* Bytes that all places of both caches are multiples of: 16, or an element. */
static inline int mla_gpu_copy_unit(const mla_tensor *src,
                                    const mla_tensor *dst) {
  const int bytes = mla_dtype_bits(dst->dtype) / 8;
  const int64_t steps = src->stride[0] | src->stride[1] | dst->stride[0] |
                        dst->stride[1] | dst->shape[2];
  const uintptr_t at = (uintptr_t)src->data | (uintptr_t)dst->data;
  return at % 16 == 0 && steps * bytes % 16 == 0 ? 16 : bytes;
}

static mla_copy_blocks_args mla_gpu_copy_args(const mla_gpu_call *c, int unit) {
  const mla_tensor *src = mla_arg(c->args, MLA_T_SRC_CACHE);
  const mla_tensor *dst = mla_arg(c->args, MLA_T_CACHE);
  const mla_tensor *pairs = mla_arg(c->args, MLA_T_BLOCK_MAPPING);
  const int bytes = mla_dtype_bits(dst->dtype) / 8;
  mla_copy_blocks_args a = {};
  a.src = src->data;
  a.dst = dst->data;
  a.pairs = (const int64_t *)pairs->data;
  a.pairs_row = pairs->stride[0];
  a.count = pairs->shape[0];
  a.src_block = src->stride[0] * bytes / unit;
  a.src_row = src->stride[1] * bytes / unit;
  a.dst_block = dst->stride[0] * bytes / unit;
  a.dst_row = dst->stride[1] * bytes / unit;
  a.row_units = dst->shape[2] * bytes / unit;
  a.units = dst->shape[1] * a.row_units;
  if (a.src_row == a.row_units && a.dst_row == a.row_units)
    a.row_units = a.units;
  return a;
}

template <typename T>
static mla_status mla_gpu_copy_launch(const mla_gpu_call *c,
                                      mla_copy_blocks_args a) {
  const int64_t most = (int64_t)1 << 30;
  a.slices = (int)((a.units + MLA_COPY_SLICE - 1) / MLA_COPY_SLICE);
  a.at_once = a.count < most / a.slices ? a.count : most / a.slices;
  MLA_LAUNCH(mla_copy_blocks<T>, dim3((unsigned)(a.at_once * a.slices)),
             dim3(MLA_COPY_THREADS), 0, c->stream, a);
  return mla_gpu_launched(c, "copy_blocks");
}

static mla_status mla_gpu_kv_copy(const mla_gpu_call *c) {
  const mla_tensor *pairs = mla_arg(c->args, MLA_T_BLOCK_MAPPING);
  if (!pairs || !pairs->shape[0]) return MLA_OK;
  const int unit = mla_gpu_copy_unit(mla_arg(c->args, MLA_T_SRC_CACHE),
                                     mla_arg(c->args, MLA_T_CACHE));
  const mla_copy_blocks_args a = mla_gpu_copy_args(c, unit);
  if (unit == 16) return mla_gpu_copy_launch<mla_words4>(c, a);
  if (unit == 4) return mla_gpu_copy_launch<uint32_t>(c, a);
  if (unit == 2) return mla_gpu_copy_launch<uint16_t>(c, a);
  return mla_gpu_copy_launch<uint8_t>(c, a);
}

#endif
