#include "oracle_kv.h"

#include <string.h>

#include "dtype.h"
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

/* One after another: of two tokens with one slot the later stays. */
mla_status mla_oracle_kv_write(const mla_problem *p, const mla_args *args) {
  const mla_tensor *latent = mla_arg(args, MLA_T_KV_C);
  const mla_tensor *rope = mla_arg(args, MLA_T_K_PE);
  const mla_tensor *slots = mla_arg(args, MLA_T_SLOT_MAPPING);
  const mla_tensor *cache = mla_arg(args, MLA_T_CACHE);
  for (int64_t i = 0; i < slots->shape[0]; i++) {
    int64_t slot = mla_index1(slots, i);
    if (slot < 0) continue;
    int64_t at = mla_at2(cache, slot / p->block_size, slot % p->block_size);
    convert(cache, at, latent, mla_at1(latent, i), p->kv_lora_rank);
    if (p->qk_rope_head_dim)
      convert(cache, at + p->kv_lora_rank, rope, mla_at1(rope, i),
              p->qk_rope_head_dim);
  }
  return MLA_OK;
}

mla_status mla_oracle_kv_read(const mla_problem *p, const mla_args *args) {
  const mla_tensor *table = mla_arg(args, MLA_T_BLOCK_TABLE);
  const mla_tensor *ends = mla_arg(args, MLA_T_CU_SEQ_LENS);
  const mla_tensor *starts = mla_arg(args, MLA_T_SEQ_STARTS);
  const mla_tensor *dst = mla_arg(args, MLA_T_DST);
  int64_t width = (int64_t)p->kv_lora_rank + p->qk_rope_head_dim;
  for (int64_t b = 0; b < table->shape[0]; b++) {
    mla_pages pages = {mla_arg(args, MLA_T_CACHE), table, b, 0};
    int64_t row = mla_index1(ends, b), end = mla_index1(ends, b + 1);
    int64_t j = starts ? mla_index1(starts, b) : 0;
    for (; row < end; row++, j++)
      convert(dst, mla_at1(dst, row), pages.cache, mla_page_offset(&pages, j),
              width);
  }
  return MLA_OK;
}

/* In the order of the list, so that a block copied to may be copied on. */
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
