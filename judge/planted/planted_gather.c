/* Rows of a paged cache, with every way to address them wrongly. */
#include <string.h>

#include "dtype.h"
#include "half.h"
#include "planted_core.h"
#include "tensor.h"

/* Wrong ids stay inside the cache, so that a fault shows as a wrong value. */
static int64_t wrap(int64_t i, int64_t n) {
  return ((i % n) + n) % n;
}

static int64_t table_entry(const planted_call *c, int64_t request, int64_t i) {
  const mla_tensor *table = planted_arg(c, MLA_T_BLOCK_TABLE);
  if (FAULT(c, TABLE_ROW)) request = 0;
  int64_t at = mla_at2(table, request, i);
  if (FAULT(c, TABLE_STRIDE)) at = request * table->shape[1] + i;
  int64_t id = mla_get_int(table->data, table->dtype, at);
  if (FAULT(c, ID_BITS)) id &= ((int64_t)1 << c->a) - 1;
  if (FAULT(c, ID_FLOAT)) id = (int64_t)(float)id;
  return id;
}

int64_t planted_slot_of(const planted_call *c, int64_t request, int64_t j) {
  const mla_tensor *table = planted_arg(c, MLA_T_BLOCK_TABLE);
  int64_t bs = c->p->block_size, width = table->shape[1];
  if (FAULT(c, TABLE_SHORT) && planted_arg(c, MLA_T_SEQ_LENS) &&
      planted_seq_len(c, request) < c->a)
    return j;
  if (FAULT(c, PAGE_EDGE) && j > 0 && j % bs == 0) j--;
  if (FAULT(c, PAGE_TUNED)) bs = c->a;
  if (FAULT(c, POS_BITS)) j &= ((int64_t)1 << c->a) - 1;
  int64_t page = j / bs;
  if (FAULT(c, TABLE_WINDOW)) page %= c->a;
  if (page >= width) page = width - 1;
  int64_t block = FAULT(c, TABLE_CONSECUTIVE)
                      ? table_entry(c, request, 0) + page
                      : table_entry(c, request, page);
  return block * c->p->block_size + j % bs;
}

int64_t planted_cache_offset(const planted_call *c, const mla_tensor *cache,
                             int64_t slot) {
  int64_t bs = cache->shape[1];
  slot = wrap(slot, cache->shape[0] * bs);
  int64_t block_stride = cache->stride[0];
  if (FAULT(c, STRIDES_CACHE)) block_stride = bs * cache->stride[1];
  int64_t offset = slot / bs * block_stride + slot % bs * cache->stride[1];
  if (FAULT(c, INT32_OFFSET)) offset &= (int64_t)(((uint64_t)1 << c->a) - 1);
  return offset;
}

/* Whole rows at once: most of the time of a run goes by here. */
static void widen(const mla_tensor *t, int64_t at, int64_t n, float *to) {
  const unsigned char *from = (const unsigned char *)t->data;
  if (t->dtype == MLA_F32) {
    memcpy(to, from + at * 4, (size_t)n * 4);
    return;
  }
  for (int64_t d = 0; d < n; d++) {
    uint16_t code = 0;
    memcpy(&code, from + (at + d) * 2, 2);
    to[d] = t->dtype == MLA_BF16  ? mla_bf16_to_f32(code)
            : t->dtype == MLA_F16 ? mla_f16_to_f32(code)
                                  : (float)mla_get(from, t->dtype, at + d);
  }
}

void planted_slot_load(const planted_call *c, const mla_tensor *cache,
                       int64_t slot, int64_t kv_head, int64_t width,
                       float *to) {
  if (planted_scaled(c)) {
    planted_entry_load(c, cache, slot, kv_head, to);
    return;
  }
  int64_t at = planted_cache_offset(c, cache, slot);
  if (cache->rank == 4) at += kv_head * cache->stride[2];
  widen(cache, at, width, to);
  for (int64_t d = 0; FAULT(c, SCALE_PLAIN) && d < width; d++)
    to[d] *= c->p->k_scale > 0 ? (float)c->p->k_scale : 1;
}

void planted_gather_row(const planted_call *c, const mla_tensor *cache,
                        int64_t request, int64_t j, int64_t kv_head,
                        int64_t width, float *to) {
  planted_slot_load(c, cache, planted_slot_of(c, request, j), kv_head, width,
                    to);
}
