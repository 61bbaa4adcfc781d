#include "oracle_kv.h"

#include <stdlib.h>
#include <string.h>

#include "cache_rows.h"
#include "dtype.h"
#include "error.h"
#include "oracle_load.h"
#include "tensor.h"

/*
 * Elements between memory of two types: each rounded once, or the very bits
 * when the types agree (a NaN keeps its payload). May not overlap unless equal.
 */
static void convert(const mla_tensor *to, int64_t to_at, const mla_tensor *from,
                    int64_t from_at, int64_t count) {
  if (to->dtype == from->dtype) {
    int64_t size = mla_dtype_bits(to->dtype) / 8;
    memmove((char *)to->data + to_at * size,
            (const char *)from->data + from_at * size, (size_t)(count * size));
    return;
  }
  for (int64_t i = 0; i < count; i++)
    mla_put(to->data, to->dtype, to_at + i,
            mla_get(from->data, from->dtype, from_at + i));
}

static void write_plain(const mla_problem *p, const mla_args *args, int64_t i,
                        int64_t slot) {
  const mla_tensor *latent = mla_arg(args, MLA_T_KV_C);
  const mla_tensor *rope = mla_arg(args, MLA_T_K_PE);
  const mla_tensor *cache = mla_arg(args, MLA_T_CACHE);
  int64_t at = mla_at2(cache, slot / p->block_size, slot % p->block_size);
  convert(cache, at, latent, mla_at1(latent, i), p->kv_lora_rank);
  if (p->qk_rope_head_dim)
    convert(cache, at + p->kv_lora_rank, rope, mla_at1(rope, i),
            p->qk_rope_head_dim);
}

static void write_quantised(const mla_problem *p, const mla_args *args,
                            const mla_cache_rows *rows, int64_t i, int64_t slot,
                            double *token) {
  const mla_tensor *latent = mla_arg(args, MLA_T_KV_C);
  const mla_tensor *rope = mla_arg(args, MLA_T_K_PE);
  int pow2 =
      p->cache_format == MLA_CACHE_FP8_584 || (p->flags & MLA_SCALE_POW2);
  mla_load_row(token, latent, mla_at1(latent, i), p->kv_lora_rank);
  if (p->qk_rope_head_dim)
    mla_load_row(token + p->kv_lora_rank, rope, mla_at1(rope, i),
                 p->qk_rope_head_dim);
  mla_cache_store(rows, slot / p->block_size, slot % p->block_size, 0, token,
                  NULL, pow2);
}

static double *row_of(const mla_cache_rows *rows, mla_error *err) {
  double *row = malloc((size_t)(rows->layout.width + 1) * sizeof *row);
  if (!row)
    mla_fail(err, MLA_OUT_OF_MEMORY, "kv_lora_rank",
             "no memory for an entry of %lld values",
             (long long)rows->layout.width);
  return row;
}

/* One after another: of two tokens with one slot the later stays. */
mla_status mla_oracle_kv_write(const mla_problem *p, const mla_args *args,
                               mla_error *err) {
  const mla_tensor *slots = mla_arg(args, MLA_T_SLOT_MAPPING);
  mla_cache_rows rows = mla_cache_rows_of(p, args, MLA_T_CACHE, p->q_dtype, 0);
  double *token = row_of(&rows, err);
  if (!token) return MLA_OUT_OF_MEMORY;
  for (int64_t i = 0; i < slots->shape[0]; i++) {
    int64_t slot = mla_index1(slots, i);
    if (slot < 0) continue;
    if (rows.layout.quantised)
      write_quantised(p, args, &rows, i, slot, token);
    else
      write_plain(p, args, i, slot);
  }
  free(token);
  return MLA_OK;
}

/* Dequantised values are rounded to the type read to; those of a plain cache
   of that type are copied as they are. */
static void read_row(const mla_cache_rows *rows, mla_block_place from,
                     const mla_tensor *dst, int64_t row, double *values) {
  const mla_tensor *cache = rows->cache;
  int64_t to = mla_at1(dst, row), width = rows->layout.width;
  if (!rows->layout.quantised) {
    convert(dst, to, cache, mla_at2(cache, from.block, from.offset), width);
    return;
  }
  mla_cache_load(rows, from.block, from.offset, 0, values);
  mla_store(dst->data, dst->dtype, to, values, width);
}

mla_status mla_oracle_kv_read(const mla_problem *p, const mla_args *args,
                              int32_t dequant, mla_error *err) {
  const mla_tensor *table = mla_arg(args, MLA_T_BLOCK_TABLE);
  const mla_tensor *ends = mla_arg(args, MLA_T_CU_SEQ_LENS);
  const mla_tensor *starts = mla_arg(args, MLA_T_SEQ_STARTS);
  const mla_tensor *dst = mla_arg(args, MLA_T_DST);
  mla_cache_rows rows =
      mla_cache_rows_of(p, args, MLA_T_CACHE, p->out_dtype, dequant);
  double *values = row_of(&rows, err);
  if (!values) return MLA_OUT_OF_MEMORY;
  for (int64_t b = 0; b < table->shape[0]; b++) {
    mla_pages pages = {&rows, table, b, 0};
    int64_t row = mla_index1(ends, b), end = mla_index1(ends, b + 1);
    int64_t j = starts ? mla_index1(starts, b) : 0;
    for (; row < end; row++, j++)
      read_row(&rows, mla_page_at(&pages, j), dst, row, values);
  }
  free(values);
  return MLA_OK;
}

/* In the order of the list, so that a block copied to may be copied on.
   Scales behind a block's rows lie within its block_size * E bytes. */
mla_status mla_oracle_kv_copy(const mla_problem *p, const mla_args *args) {
  const mla_tensor *list = mla_arg(args, MLA_T_BLOCK_MAPPING);
  const mla_tensor *src = mla_arg(args, MLA_T_SRC_CACHE);
  const mla_tensor *dst = mla_arg(args, MLA_T_CACHE);
  for (int64_t i = 0; i < list->shape[0]; i++)
    for (int64_t row = 0; row < p->block_size; row++)
      convert(dst, mla_at2(dst, mla_index2(list, i, 1), row), src,
              mla_at2(src, mla_index2(list, i, 0), row), dst->shape[2]);
  return MLA_OK;
}

mla_status mla_oracle_kv(const mla_problem *p, const mla_args *args,
                         int32_t dequant, mla_error *err) {
  switch (p->op) {
    case MLA_OP_KV_WRITE: return mla_oracle_kv_write(p, args, err);
    case MLA_OP_KV_READ: return mla_oracle_kv_read(p, args, dequant, err);
    default: return mla_oracle_kv_copy(p, args);
  }
}
