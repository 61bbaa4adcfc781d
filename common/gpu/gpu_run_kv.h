/*
 * gpu_run_kv.h - cache operations on the host side.
 */
#ifndef MLA_GPU_RUN_KV_H
#define MLA_GPU_RUN_KV_H

#include "gpu_host_entry.h"
#include "gpu_kv.h"

static mla_kv_args mla_gpu_cache_args(const mla_gpu_call *c) {
  const mla_tensor *cache = mla_arg(c->args, MLA_T_CACHE);
  mla_kv_args a = {};
  a.cache = cache->data;
  a.cache_dtype = cache->dtype;
  a.block = cache->stride[0];
  a.row = cache->stride[1];
  a.capacity = cache->shape[0] * cache->shape[1];
  a.block_size = c->p->block_size;
  a.width = (int)cache->shape[2];
  a.entry = mla_gpu_entry(c, MLA_T_CACHE);
  return a;
}

static mla_status mla_gpu_kv_write(const mla_gpu_call *c) {
  const mla_tensor *kv = mla_arg(c->args, MLA_T_KV_C);
  const mla_tensor *pe = mla_arg(c->args, MLA_T_K_PE);
  const mla_tensor *slots = mla_arg(c->args, MLA_T_SLOT_MAPPING);
  mla_kv_args a = mla_gpu_cache_args(c);
  if (!slots || !slots->shape[0]) return MLA_OK;
  a.kv_c = kv->data;
  a.k_pe = pe ? pe->data : NULL; /* index keys have none */
  a.c_row = kv->stride[0];
  a.r_row = pe ? pe->stride[0] : 0;
  a.io_dtype = kv->dtype;
  a.latent = (int)kv->shape[1];
  a.slots = (const int64_t *)slots->data;
  a.slots_step = slots->stride[0];
  const dim3 tokens((unsigned)slots->shape[0]), threads(MLA_KV_THREADS);
  if (a.entry.scaled)
    MLA_LAUNCH(mla_kv_write_entries, tokens, threads, 0, c->stream, a);
  else
    MLA_LAUNCH(mla_kv_write_rows, tokens, threads, 0, c->stream, a);
  return mla_gpu_launched(c, "kv_write_rows");
}

static mla_status mla_gpu_kv_read(const mla_gpu_call *c) {
  const mla_tensor *dst = mla_arg(c->args, MLA_T_DST);
  const mla_tensor *table = mla_arg(c->args, MLA_T_BLOCK_TABLE);
  const mla_tensor *cu = mla_arg(c->args, MLA_T_CU_SEQ_LENS);
  const mla_tensor *starts = mla_arg(c->args, MLA_T_SEQ_STARTS);
  mla_kv_args a = mla_gpu_cache_args(c);
  if (!dst->shape[0]) return MLA_OK;
  a.dst = dst->data;
  a.dst_row = dst->stride[0];
  a.io_dtype = dst->dtype;
  a.table = (const int32_t *)table->data;
  a.table_row = table->stride[0];
  a.cu = (const int32_t *)cu->data;
  a.cu_step = cu->stride[0];
  a.starts = starts ? (const int32_t *)starts->data : NULL;
  a.starts_step = starts ? starts->stride[0] : 0;
  a.requests = (int)cu->shape[0] - 1;
  MLA_LAUNCH(mla_kv_read_rows, dim3((unsigned)dst->shape[0]),
             dim3(MLA_KV_THREADS), 0, c->stream, a);
  return mla_gpu_launched(c, "kv_read_rows");
}

static mla_status mla_gpu_kv_copy(const mla_gpu_call *c) {
  const mla_tensor *src = mla_arg(c->args, MLA_T_SRC_CACHE);
  const mla_tensor *pairs = mla_arg(c->args, MLA_T_BLOCK_MAPPING);
  mla_kv_args a = mla_gpu_cache_args(c);
  if (!pairs || !pairs->shape[0]) return MLA_OK;
  a.src = src->data;
  a.src_block = src->stride[0];
  a.src_row = src->stride[1];
  a.pairs = (const int64_t *)pairs->data;
  a.pairs_row = pairs->stride[0];
  const dim3 grid((unsigned)c->p->block_size), block(MLA_KV_THREADS);
  if (mla_dtype_bits(a.cache_dtype) == 8)
    MLA_LAUNCH(mla_kv_copy_rows<uint8_t>, grid, block, 0, c->stream, a,
               pairs->shape[0]);
  else if (a.cache_dtype == MLA_F32)
    MLA_LAUNCH(mla_kv_copy_rows<uint32_t>, grid, block, 0, c->stream, a,
               pairs->shape[0]);
  else
    MLA_LAUNCH(mla_kv_copy_rows<uint16_t>, grid, block, 0, c->stream, a,
               pairs->shape[0]);
  return mla_gpu_launched(c, "kv_copy_rows");
}

#endif
