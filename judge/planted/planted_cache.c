/*
 * Cache entries and weights with scales, and every way to get a scale or a
 * code wrong.
 */
#include <math.h>
#include <string.h>

#include "cache_rows.h"
#include "dtype.h"
#include "planted_core.h"
#include "tensor.h"

static mla_cache_layout layout_of(const planted_call *c,
                                  const mla_tensor *cache) {
  return cache == planted_arg(c, MLA_T_V_CACHE) ? mla_cache_layout_of_v(c->p)
                                                : mla_cache_layout_of(c->p);
}

int planted_scaled(const planted_call *c) {
  return mla_cache_layout_of(c->p).quantised;
}

/* Of an offset the bits that a fault keeps. */
static unsigned char *narrowed(const planted_call *c, unsigned char *bytes,
                               unsigned char *at) {
  uint64_t offset = (uint64_t)(at - bytes);
  if (!FAULT(c, INT32_OFFSET)) return at;
  return bytes + (offset & (((uint64_t)1 << c->a) - 1));
}

/* Where an entry lies, or is thought to lie. */
static mla_cache_place place_of(const planted_call *c, const mla_tensor *cache,
                                const mla_cache_layout *x, int64_t slot,
                                int64_t kv_head) {
  int64_t page = cache->shape[1], capacity = cache->shape[0] * page;
  slot = (slot % capacity + capacity) % capacity;
  int64_t block = slot / page, at = slot % page;
  mla_cache_place place = mla_cache_find(cache, x, block, at, kv_head);
  unsigned char *bytes = cache->data;
  place.row = narrowed(c, bytes, place.row);
  if (!place.side) return place;
  place.side = narrowed(c, bytes, place.side);
  if (FAULT(c, TILE_PLACE)) {
    place.row =
        bytes + block * cache->stride[0] + at * (x->row_bytes + x->side_bytes);
    place.side = place.row + x->row_bytes;
  }
  if (FAULT(c, TILE_STRIDE))
    place.side = bytes + block * page * (x->row_bytes + x->side_bytes) +
                 page * x->row_bytes + at * x->side_bytes;
  return place;
}

/* The dialect that codes are taken for. */
static int32_t code_type(const planted_call *c, int32_t type) {
  if (!FAULT(c, DIALECT_SWAPPED)) return type;
  if (type == MLA_FP8_E4M3) return MLA_FP8_E4M3FNUZ;
  return type == MLA_FP8_E4M3FNUZ ? MLA_FP8_E4M3 : type;
}

static double one_scale(const planted_call *c, const mla_tensor *cache) {
  int v = cache == planted_arg(c, MLA_T_V_CACHE) && !FAULT(c, SCALE_OF_K);
  return mla_round_to(MLA_F32, v ? c->p->v_scale : c->p->k_scale);
}

static unsigned char *scales_of(const mla_cache_layout *x,
                                mla_cache_place place) {
  return place.side ? place.side : place.row + x->scale_at;
}

/* ---------------------------------------------------------------- reading */

/* Has the code no hidden bit? */
static int is_subnormal(int32_t type, uint32_t code) {
  if (type == MLA_I8 || type == MLA_I4) return 0;
  return (code & (type == MLA_FP8_E5M2 ? 0x7C : 0x78)) == 0;
}

static double read_code(const planted_call *c, const mla_cache_layout *x,
                        const unsigned char *row, int64_t i) {
  int32_t type = code_type(c, x->code);
  if (x->code != MLA_I4 && FAULT(c, DIALECT_NAN)) {
    if (type == MLA_FP8_E4M3 && (row[i] & 0x7F) == 0x7F)
      return row[i] & 0x80 ? -480 : 480;
    if (type == MLA_FP8_E4M3FNUZ && row[i] == 0x80) return -0.0;
    if (type == MLA_FP8_E5M2 && (row[i] & 0x7F) > 0x7C)
      return (row[i] & 0x80 ? -65536 : 65536) * (1 + (row[i] & 3) / 4.0);
  }
  if (FAULT(c, CODE_SUBNORMAL) && x->code != MLA_I4 &&
      is_subnormal(type, row[i]))
    return 0;
  return mla_get(row, type, i);
}

static double read_scale(const planted_call *c, const mla_tensor *cache,
                         const mla_cache_layout *x, mla_cache_place place,
                         int64_t tile) {
  double scale = one_scale(c, cache);
  if (FAULT(c, TILE_FIRST)) tile = 0;
  if (x->scale) scale = mla_get(scales_of(x, place), x->scale, tile);
  if (FAULT(c, TILE_ROUNDED) && x->tile < x->width)
    scale = mla_round_to(MLA_BF16, scale);
  if (FAULT(c, SCALE_IGNORED)) return 1;
  return FAULT(c, SCALE_INVERTED) ? 1 / scale : scale;
}

void planted_entry_load(const planted_call *c, const mla_tensor *cache,
                        int64_t slot, int64_t kv_head, float *to) {
  mla_cache_layout x = layout_of(c, cache);
  mla_cache_place place = place_of(c, cache, &x, slot, kv_head), scales = place;
  int32_t compute =
      c->p->op == MLA_OP_KV_READ ? c->p->out_dtype : c->p->q_dtype;
  double scale = 1;
  if (FAULT(c, SCALE_OF_PAGE) && x.scale && !place.side)
    scales = place_of(c, cache, &x, slot - slot % cache->shape[1], kv_head);
  for (int64_t i = 0; i < x.codes; i++) {
    if (i % x.tile == 0) scale = read_scale(c, cache, &x, scales, i / x.tile);
    to[i] = (float)mla_cache_dequant(read_code(c, &x, place.row, i), scale,
                                     compute, MLA_DEQUANT_ROUND_PRODUCT);
  }
  for (int64_t i = x.codes; i < x.width; i++)
    to[i] = (float)mla_get(place.row + x.rest_at, MLA_BF16, i - x.codes);
}

/* ---------------------------------------------------------------- writing */

static uint32_t write_code(const planted_call *c, const mla_cache_layout *x,
                           double value, double scale) {
  int32_t type = code_type(c, x->code);
  double q = mla_round_to(MLA_F32, value / scale);
  if (FAULT(c, SCALE_IGNORED)) q = value;
  if (FAULT(c, SCALE_INVERTED)) q = mla_round_to(MLA_F32, value * scale);
  if (FAULT(c, DIALECT_RANGE) && fabs(q) > 240) q = q < 0 ? -240 : 240;
  uint32_t code = mla_encode(type, q);
  double most = type == MLA_FP8_E5M2 ? 57344 : 448;
  if (type == MLA_FP8_E4M3FNUZ) most = 240;
  if (FAULT(c, DIALECT_OVERFLOW) && type != MLA_I8 && type != MLA_I4 &&
      fabs(q) > most)
    code = mla_encode(type, (double)NAN);
  if (FAULT(c, WRITE_FLUSH) && is_subnormal(type, code)) code &= 0x80;
  if (FAULT(c, DIALECT_ZERO) && type == MLA_FP8_E4M3FNUZ && code == 0 && q < 0)
    code = 0x80;
  return code;
}

static double amax_of(const double *value, int64_t n) {
  double amax = 0;
  for (int64_t i = 0; i < n; i++)
    if (fabs(value[i]) > amax) amax = fabs(value[i]);
  return amax;
}

static double write_scale(const planted_call *c, const mla_tensor *cache,
                          const mla_cache_layout *x, const double *value,
                          int64_t at) {
  int pow2 =
      x->format == MLA_CACHE_FP8_584 || (c->p->flags & MLA_SCALE_POW2) != 0;
  if (!x->scale) return one_scale(c, cache);
  if (FAULT(c, TILE_RULE)) pow2 = !pow2;
  if (FAULT(c, TILE_FIRST)) at = 0;
  double amax = amax_of(value + at, x->tile);
  if (FAULT(c, SCALE_ZERO) && !(amax > 0)) return 0;
  return mla_cache_scale(x, amax, pow2);
}

void planted_entry_store(const planted_call *c, const mla_tensor *cache,
                         int64_t slot, const double *value) {
  mla_cache_layout x = layout_of(c, cache);
  mla_cache_place place = place_of(c, cache, &x, slot, 0);
  double scale = 1;
  memset(place.row, 0, (size_t)x.row_bytes);
  if (place.side) memset(place.side, 0, (size_t)x.side_bytes);
  for (int64_t i = 0; i < x.codes; i++) {
    if (i % x.tile == 0) {
      scale = write_scale(c, cache, &x, value, i);
      if (x.scale) mla_put(scales_of(&x, place), x.scale, i / x.tile, scale);
    }
    uint32_t code = write_code(c, &x, value[i], scale);
    if (x.code == MLA_I4)
      place.row[i / 2] |= (unsigned char)(code << (i % 2 ? 4 : 0));
    else
      place.row[i] = (unsigned char)code;
  }
  for (int64_t i = x.codes; i < x.width; i++)
    mla_put(place.row + x.rest_at, MLA_BF16, i - x.codes, value[i]);
}

/* ---------------------------------------------------------------- weights */

/* Does block (r, k) reach beyond the weights? */
static int is_cut(const mla_tensor *w, int64_t r, int64_t k) {
  return (r + 1) * 128 > w->shape[0] || (k + 1) * 128 > w->shape[1];
}

double planted_weight(const planted_call *c, int32_t scale_slot, double code,
                      int64_t row, int64_t column) {
  const mla_tensor *t = planted_arg(c, scale_slot);
  if (!(c->p->flags & MLA_BLOCK_SCALED)) return code;
  int64_t r = row / 128, k = column / 128;
  if (FAULT(c, TILE_PARTIAL) && is_cut(planted_arg(c, MLA_T_KV_B_PROJ), r, k))
    return code;
  if (FAULT(c, TILE_BLOCK)) r = 0;
  if (FAULT(c, TILE_COLUMN)) k = 0;
  if (FAULT(c, TILE_TURNED)) {
    int64_t turned = k * t->shape[0] + r;
    r = turned / t->shape[1];
    k = turned % t->shape[1];
  }
  return code * mla_get(t->data, t->dtype, mla_at2(t, r, k));
}
