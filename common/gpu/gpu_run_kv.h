/*
 * gpu_run_kv.h - cache operations on the host side.
 */
#ifndef MLA_GPU_RUN_KV_H
#define MLA_GPU_RUN_KV_H

#include "gpu_host_entry.h"
#include "gpu_kv.h"
#include "gpu_kv_codes.h"

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

/* Whether rows of this tensor are whole chunks; NULL: there is none. */
static inline int mla_gpu_kv_whole(const mla_tensor *t) {
  const int64_t width = t ? t->shape[t->rank - 1] : 0;
  return !t ||
         (mla_gpu_is_chunked(t, t->rank - 1) && width % MLA_KV_CHUNK == 0 &&
          width <= MLA_KV_MOST * MLA_KV_CHUNK);
}

template <int DT, int READS>
static void mla_gpu_kv_launch(const mla_gpu_call *c, mla_kv_args a) {
  const uint32_t chunks = (uint32_t)(a.width / MLA_KV_CHUNK);
  a.magic = ((1u << 20) + chunks - 1) / chunks;
  const int64_t rows =
      MLA_KV_THREADS / c->plan->handle->wave * (int64_t)MLA_KV_ROWS;
  MLA_LAUNCH((mla_kv_move_rows<DT, READS>),
             dim3((unsigned)((a.tokens + rows - 1) / rows)),
             dim3(MLA_KV_THREADS), 0, c->stream, a);
}
template <int READS>
static mla_status mla_gpu_kv_move(const mla_gpu_call *c, const mla_kv_args &a,
                                  int dtype) {
  if (dtype == MLA_F32)
    mla_gpu_kv_launch<MLA_F32, READS>(c, a);
  else if (dtype == MLA_BF16)
    mla_gpu_kv_launch<MLA_BF16, READS>(c, a);
  else
    mla_gpu_kv_launch<MLA_F16, READS>(c, a);
  return mla_gpu_launched(c, "kv_move_rows");
}

/* Whether mla_kv_write_codes serves these entries. */
static inline int mla_gpu_kv_codes(const mla_gpu_call *c, const mla_entry &e) {
  const int wave = c->plan->handle->wave, chunks = e.tile / MLA_KV_CHUNK;
  const mla_tensor *cache = mla_arg(c->args, MLA_T_CACHE);
  return (e.code == MLA_FP8_E4M3 || e.code == MLA_I8) && !e.side_bytes &&
         e.tile % MLA_KV_CHUNK == 0 && e.codes % e.tile == 0 &&
         (e.tile == e.codes ||
          (chunks <= wave && (chunks & (chunks - 1)) == 0)) &&
         e.width % MLA_KV_CHUNK == 0 &&
         e.width <= MLA_KV_OWN * MLA_KV_CHUNK * wave && e.rest_at % 16 == 0 &&
         (uintptr_t)cache->data % 16 == 0 && e.row % 16 == 0 &&
         e.block % 16 == 0;
}

template <int DT>
static void mla_gpu_kv_write_codes(const mla_gpu_call *c,
                                   const mla_kv_args &a) {
  const int waves = MLA_KV_THREADS / c->plan->handle->wave;
  MLA_LAUNCH((mla_kv_write_codes<DT>),
             dim3((unsigned)((a.tokens + waves - 1) / waves)),
             dim3(MLA_KV_THREADS), 0, c->stream, a);
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
  a.tokens = slots->shape[0];
  if (!a.entry.scaled && mla_gpu_kv_whole(kv) && mla_gpu_kv_whole(pe) &&
      mla_gpu_kv_whole(mla_arg(c->args, MLA_T_CACHE)))
    return mla_gpu_kv_move<0>(c, a, a.io_dtype);
  const dim3 tokens((unsigned)a.tokens), threads(MLA_KV_THREADS);
  const int codes = a.entry.scaled && mla_gpu_kv_whole(kv) &&
                    mla_gpu_kv_whole(pe) && mla_gpu_kv_codes(c, a.entry);
  if (codes && a.io_dtype == MLA_F32)
    mla_gpu_kv_write_codes<MLA_F32>(c, a);
  else if (codes && a.io_dtype == MLA_BF16)
    mla_gpu_kv_write_codes<MLA_BF16>(c, a);
  else if (codes)
    mla_gpu_kv_write_codes<MLA_F16>(c, a);
  else if (a.entry.scaled)
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
  a.tokens = dst->shape[0];
  if (!a.entry.scaled && mla_gpu_kv_whole(dst) &&
      mla_gpu_kv_whole(mla_arg(c->args, MLA_T_CACHE)))
    return mla_gpu_kv_move<1>(c, a, a.cache_dtype);
  MLA_LAUNCH(mla_kv_read_rows, dim3((unsigned)dst->shape[0]),
             dim3(MLA_KV_THREADS), 0, c->stream, a);
  return mla_gpu_launched(c, "kv_read_rows");
}

#endif
