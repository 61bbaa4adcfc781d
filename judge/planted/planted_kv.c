/* Cache writes, gathers and copies. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cache_layout.h"
#include "dtype.h"
#include "planted_core.h"
#include "tensor.h"

/* A number of a plain type, or the largest one in its place. */
static double clamped(const planted_call *c, int32_t type, double x) {
  double most = mla_decode(type, type == MLA_F16 ? 0x7bff : 0x7f7f);
  double least = type == MLA_F16 ? 0x1p-14 : 0x1p-126;
  if (FAULT(c, WRITE_FLUSH) && fabs(x) < least) return x < 0 ? -0.0 : 0;
  if (FAULT(c, WRITE_AWAY) && isfinite(x)) x *= 1 + 0x1p-40;
  if (!FAULT(c, RANGE_CLAMP) || (type != MLA_F16 && type != MLA_BF16)) return x;
  return x > most ? most : x < -most ? -most : x;
}

/* Of n elements those that whole steps of a fault reach. */
static int64_t whole(const planted_call *c, int32_t type, int64_t n) {
  int64_t bytes = mla_dtype_bits(type) / 8;
  return FAULT(c, ROW_TAIL) ? n * bytes / c->a * c->a / bytes : n;
}

static void put_row(const planted_call *c, const mla_tensor *cache, int64_t at,
                    const mla_tensor *from, int64_t first, int64_t token) {
  double scale = FAULT(c, SCALE_PLAIN) && c->p->k_scale > 0 ? c->p->k_scale : 1;
  int64_t end = whole(c, cache->dtype, cache->shape[2]) - first;
  for (int64_t d = 0; d < from->shape[1] && d < end; d++)
    mla_put(cache->data, cache->dtype, at + d,
            clamped(c, cache->dtype,
                    mla_get(from->data, from->dtype, mla_at2(from, token, d)) /
                        scale));
}

/* Does a slot keep its rope part this time? A race as a test can have it. */
static int is_late(const planted_call *c, int64_t slot) {
  static unsigned runs;
  return FAULT(c, RACE_WRITE) && slot % c->a == 0 && runs++ * 2654435761u >> 31;
}

static void put_token(const planted_call *c, const mla_tensor *cache,
                      int64_t slot, int64_t token, double *values) {
  const mla_tensor *kv = planted_arg(c, MLA_T_KV_C);
  const mla_tensor *pe = planted_arg(c, MLA_T_K_PE);
  int64_t l = kv->shape[1], r = pe ? pe->shape[1] : 0;
  if (!planted_scaled(c)) {
    int64_t at = planted_cache_offset(c, cache, slot);
    put_row(c, cache, at, kv, 0, token);
    if (pe && !is_late(c, slot)) put_row(c, cache, at + l, pe, l, token);
    return;
  }
  for (int64_t d = 0; d < l; d++)
    values[d] = mla_get(kv->data, kv->dtype, mla_at2(kv, token, d));
  for (int64_t d = 0; d < r; d++)
    values[l + d] = mla_get(pe->data, pe->dtype, mla_at2(pe, token, d));
  planted_entry_store(c, cache, slot, values);
}

/* The faults of a slot: which one is written, if any. */
static int64_t slot_written(const planted_call *c, int64_t slot,
                            int64_t capacity) {
  if (slot < 0 && FAULT(c, SLOT_NEGATIVE)) slot = 0;
  if (FAULT(c, SLOT_BITS) && slot >= 0)
    slot = (slot & (int64_t)(((uint64_t)1 << c->a) - 1)) % capacity;
  return slot < capacity ? slot : -1;
}

/* Elements behind the entry, which are another's. */
static void spill(const planted_call *c, const mla_tensor *cache, int64_t slot,
                  int64_t capacity) {
  int64_t at = planted_cache_offset(c, cache, slot) + cache->shape[2];
  if (!FAULT(c, SLOT_NEIGHBOUR) || slot + 1 >= capacity) return;
  for (int32_t e = 0; e < c->a && e < cache->stride[1]; e++)
    mla_put(cache->data, cache->dtype, at + e, 0);
}

mla_status planted_kv_write(const planted_call *c) {
  const mla_tensor *kv = planted_arg(c, MLA_T_KV_C);
  const mla_tensor *pe = planted_arg(c, MLA_T_K_PE);
  const mla_tensor *map = planted_arg(c, MLA_T_SLOT_MAPPING);
  const mla_tensor *cache = planted_arg(c, MLA_T_CACHE);
  int64_t width = kv->shape[1] + (pe ? pe->shape[1] : 0), row = 0;
  int64_t capacity = cache->shape[0] * cache->shape[1];
  double *values = malloc((size_t)width * sizeof *values);
  if (!values) return MLA_OUT_OF_MEMORY;
  for (int64_t i = 0; i < map->shape[0]; i++) {
    int64_t slot = slot_written(c, planted_int(map, i), capacity);
    int64_t token = FAULT(c, SLOT_COMPACT) ? row : i;
    if (slot < 0 || (FAULT(c, SLOT_MANY) && (double)i >= c->x)) continue;
    row++;
    put_token(c, cache, slot, token, values);
    spill(c, cache, slot, capacity);
  }
  for (int64_t t = map->shape[0]; FAULT(c, SLOT_PADDING) && t < kv->shape[0];
       t++)
    put_token(c, cache, 0, t, values);
  free(values);
  return MLA_OK;
}

mla_status planted_kv_read(const planted_call *c) {
  const mla_tensor *cache = planted_arg(c, MLA_T_CACHE);
  const mla_tensor *cu = planted_arg(c, MLA_T_CU_SEQ_LENS);
  const mla_tensor *starts = planted_arg(c, MLA_T_SEQ_STARTS);
  const mla_tensor *dst = planted_arg(c, MLA_T_DST);
  int64_t width = dst->shape[1], n = whole(c, dst->dtype, width);
  float *row = malloc((size_t)width * sizeof *row);
  if (!row) return MLA_OUT_OF_MEMORY;
  for (int64_t b = 0; b + 1 < cu->shape[0]; b++) {
    int64_t from = planted_int(cu, b);
    int64_t to = planted_int(cu, b + 1);
    int64_t start = starts ? planted_int(starts, b) : 0;
    if (FAULT(c, PREFIX_START)) start = 0;
    for (int64_t t = from; t < to; t++) {
      planted_gather_row(c, cache, b, start + t - from, 0, width, row);
      for (int64_t d = 0; d < n; d++)
        mla_put(dst->data, dst->dtype, mla_at2(dst, t, d),
                clamped(c, dst->dtype, (double)row[d]));
    }
  }
  free(row);
  return MLA_OK;
}

mla_status planted_kv_copy(const planted_call *c) {
  const mla_tensor *src = planted_arg(c, MLA_T_SRC_CACHE);
  const mla_tensor *map = planted_arg(c, MLA_T_BLOCK_MAPPING);
  const mla_tensor *dst = planted_arg(c, MLA_T_CACHE);
  size_t bytes = (size_t)(mla_dtype_bits(dst->dtype) / 8);
  int64_t bs = dst->shape[1], e = dst->shape[2];
  int64_t n = whole(c, dst->dtype, e);
  for (int64_t i = 0; i < map->shape[0]; i++) {
    int64_t from = mla_get_int(map->data, map->dtype, mla_at2(map, i, 0));
    int64_t to = mla_get_int(map->data, map->dtype, mla_at2(map, i, 1));
    if (FAULT(c, PREFIX_ORDER)) {
      int64_t t = from;
      from = to % src->shape[0];
      to = t % dst->shape[0];
    }
    for (int64_t o = 0; o < bs; o++) {
      int64_t a = planted_cache_offset(c, src, from * bs + o);
      int64_t b = planted_cache_offset(c, dst, to * bs + o);
      int64_t rows = bs * mla_cache_layout_of(c->p).row_bytes - o * e;
      if (FAULT(c, TILE_LEFT) && mla_cache_layout_of(c->p).side_bytes)
        n = rows < 0 ? 0 : rows < e ? rows : e;
      memmove((unsigned char *)dst->data + (size_t)b * bytes,
              (const unsigned char *)src->data + (size_t)a * bytes,
              (size_t)n * bytes);
    }
  }
  return MLA_OK;
}
