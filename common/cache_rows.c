#include "cache_rows.h"

#include <string.h>

#include "dmath.h"
#include "dtype.h"
#include "float_bits.h"
#include "oracle_load.h"
#include "tensor.h"

mla_cache_rows mla_cache_rows_of(const mla_problem *problem,
                                 const mla_args *args, int slot,
                                 int32_t compute, int32_t dequant) {
  mla_cache_rows x = {0};
  int v = slot == MLA_T_V_CACHE;
  x.cache = mla_arg(args, slot);
  x.layout = v ? mla_cache_layout_of_v(problem) : mla_cache_layout_of(problem);
  x.scale = mla_round_to(MLA_F32, v ? problem->v_scale : problem->k_scale);
  x.compute = compute;
  x.dequant = dequant;
  int bits = x.layout.quantised ? mla_dtype_bits(x.layout.code) : 0;
  for (uint32_t code = 0; bits && code < (uint32_t)1 << bits; code++)
    x.value[code] = mla_decode(x.layout.code, code);
  return x;
}

mla_cache_place mla_cache_find(const mla_tensor *cache,
                               const mla_cache_layout *layout, int64_t block,
                               int64_t offset, int64_t kv_head) {
  unsigned char *bytes = cache->data;
  mla_cache_place place = {NULL, NULL};
  int64_t at = block * cache->stride[0];
  if (layout->side_bytes) {
    place.row = bytes + at + offset * layout->row_bytes;
    place.side = bytes + at + cache->shape[1] * layout->row_bytes +
                 offset * layout->side_bytes;
    return place;
  }
  at += offset * cache->stride[1];
  if (cache->rank == 4) at += kv_head * cache->stride[2];
  place.row = bytes + at * (mla_dtype_bits(cache->dtype) / 8);
  return place;
}

/* ---------------------------------------------------------------- reading */

double mla_cache_dequant(double code, double scale, int32_t compute,
                         int32_t dequant) {
  if (dequant == MLA_DEQUANT_SCALE_AFTER) return code * scale;
  if (dequant == MLA_DEQUANT_ROUND_SCALE) scale = mla_round_to(compute, scale);
  double x = mla_round_to(MLA_F32, code * scale);
  return dequant == MLA_DEQUANT_F32 ? x : mla_round_to(compute, x);
}

static unsigned char *scales_of(const mla_cache_layout *layout,
                                mla_cache_place place) {
  return place.side ? place.side : place.row + layout->scale_at;
}

void mla_cache_load(const mla_cache_rows *rows, int64_t block, int64_t offset,
                    int64_t kv_head, double *to) {
  const mla_cache_layout *x = &rows->layout;
  mla_cache_place place =
      mla_cache_find(rows->cache, x, block, offset, kv_head);
  mla_line rest = {place.row + x->rest_at, MLA_BF16, 0, 1};
  if (!x->quantised) {
    mla_line line = {place.row, x->code, 0, 1};
    mla_load(to, 1, line, x->width);
    return;
  }
  double scale = rows->scale;
  for (int64_t i = 0; i < x->codes; i++) {
    if (x->scale && i % x->tile == 0)
      scale = mla_get(scales_of(x, place), x->scale, i / x->tile);
    int64_t nibble = place.row[i / 2] >> (i % 2 ? 4 : 0) & 0xF;
    double code = rows->value[x->code == MLA_I4 ? nibble : place.row[i]];
    to[i] = mla_cache_dequant(code, scale, rows->compute, rows->dequant);
  }
  mla_load(to + x->codes, 1, rest, x->width - x->codes);
}

/* ---------------------------------------------------------------- writing */

static double largest_code(int32_t dtype) {
  switch (dtype) {
    case MLA_I8: return 127;
    case MLA_I4: return 7;
    default: return 448;
  }
}

/* The least power of two that is not below x, a normal number. */
static double power_of_two_from(double x) {
  uint64_t fraction = ((uint64_t)1 << 52) - 1, bits = mla_f64_bits(x);
  if (bits & fraction) bits = (bits & ~fraction) + fraction + 1;
  return mla_f64_of_bits(bits);
}

double mla_cache_scale(const mla_cache_layout *layout, double amax, int pow2) {
  double scale = mla_round_to(MLA_F32, amax / largest_code(layout->code));
  double least = pow2 ? mla_round_to(MLA_F32, 1e-4) : 0x1p-126;
  if (!(scale >= least)) scale = least;
  return pow2 ? power_of_two_from(scale) : scale;
}

/* f32 values divided in binary64 and rounded to f32: as if divided in f32,
   since 53 bits are more than twice 24. */
uint32_t mla_cache_code(const mla_cache_layout *layout, double x,
                        double scale) {
  double quotient = mla_round_to(MLA_F32, mla_round_to(MLA_F32, x) / scale);
  return mla_encode(layout->code, quotient);
}

static double amax_of(const double *x, int64_t count) {
  double amax = 0;
  for (int64_t i = 0; i < count; i++) {
    double size = mla_fabs(mla_round_to(MLA_F32, x[i]));
    if (size > amax) amax = size;
  }
  return amax;
}

static void put_code(const mla_cache_layout *x, unsigned char *row, int64_t i,
                     uint32_t code) {
  if (x->code == MLA_I4)
    row[i / 2] |= (unsigned char)(code << (i % 2 ? 4 : 0));
  else
    row[i] = (unsigned char)code;
}

void mla_cache_store(const mla_cache_rows *rows, int64_t block, int64_t offset,
                     int64_t kv_head, const double *x, const double *scales,
                     int pow2) {
  const mla_cache_layout *layout = &rows->layout;
  mla_cache_place place =
      mla_cache_find(rows->cache, layout, block, offset, kv_head);
  double scale = rows->scale;
  memset(place.row, 0, (size_t)layout->row_bytes);
  if (place.side) memset(place.side, 0, (size_t)layout->side_bytes);
  for (int64_t i = 0; i < layout->codes; i++) {
    if (layout->scale && i % layout->tile == 0) {
      int64_t tile = i / layout->tile;
      scale = scales
                  ? scales[tile]
                  : mla_cache_scale(layout, amax_of(x + i, layout->tile), pow2);
      mla_put(scales_of(layout, place), layout->scale, tile, scale);
    }
    put_code(layout, place.row, i, mla_cache_code(layout, x[i], scale));
  }
  for (int64_t i = layout->codes; i < layout->width; i++)
    mla_put(place.row + layout->rest_at, MLA_BF16, i - layout->codes, x[i]);
}
