/*
 * gpu_entry.h - cache entries with scales on a device: docs/spec.md 2.2 to
 * 2.4, in f32 arithmetic that rounds once an operation.
 */
#ifndef MLA_GPU_ENTRY_H
#define MLA_GPU_ENTRY_H

#include "gpu_num.h"

/* Where the parts of an entry lie (common/cache_layout.h); offsets in bytes. */
typedef struct mla_entry {
  int scaled;       /* 0: a plain cache, and nothing else is set */
  int code, scale;  /* mla_dtype; scale MLA_DTYPE_NONE: one for all */
  int codes, width; /* values; those from `codes` on are bf16 */
  int tile, page;   /* codes that share a scale; entries a block */
  int rest_at, scale_at, row_bytes, side_bytes;
  int64_t block, row, head; /* strides */
  int pow2;
  float one;
} mla_entry;

/* ---------------------------------------------------------------- reading */

/* A float of 8 bits: the bias is that of f32 less its own, `unit` its least
   subnormal. */
MLA_DEV float mla_code_float(uint32_t code, int mantissa, uint32_t bias,
                             float unit) {
  uint32_t rest = code & 0x7f, sign = (code & 0x80) << 24;
  float f = rest >> mantissa
                ? __uint_as_float((rest << (23 - mantissa)) + (bias << 23))
                : (float)rest * unit;
  return __uint_as_float(__float_as_uint(f) | sign);
}

MLA_DEV float mla_nan_float() {
  return __uint_as_float(0x7fc00000u);
}

MLA_DEV float mla_code_to_float(int type, uint32_t code) {
  switch (type) {
    case MLA_FP8_E4M3:
      if ((code & 0x7f) == 0x7f) return mla_nan_float();
      return mla_code_float(code, 3, 120, 0.001953125f); /* 2^-9 */
    case MLA_FP8_E4M3FNUZ:
      if (code == 0x80) return mla_nan_float();
      return mla_code_float(code, 3, 119, 0.0009765625f); /* 2^-10 */
    case MLA_FP8_E5M2: return mla_f16_to_float((uint16_t)(code << 8));
    case MLA_I8: return (float)(code < 128 ? (int)code : (int)code - 256);
    default: return (float)(code < 8 ? (int)code : (int)code - 16);
  }
}

typedef struct mla_entry_place {
  unsigned char *row, *scales;
} mla_entry_place;

MLA_DEV mla_entry_place mla_entry_at(const mla_entry &e, const void *cache,
                                     int64_t block, int64_t offset,
                                     int64_t head) {
  unsigned char *base = (unsigned char *)cache + block * e.block;
  mla_entry_place p;
  if (e.side_bytes) {
    p.row = base + offset * e.row_bytes;
    p.scales = base + (int64_t)e.page * e.row_bytes + offset * e.side_bytes;
    return p;
  }
  p.row = base + offset * e.row + head * e.head;
  p.scales = p.row + e.scale_at;
  return p;
}

/* Scales of f32 need not be aligned. */
MLA_DEV float mla_entry_scale(const mla_entry &e, const unsigned char *scales,
                              int tile) {
  if (e.scale == MLA_DTYPE_NONE) return e.one;
  if (e.scale == MLA_E8M0) {
    uint32_t code = scales[tile];
    if (code == 0xff) return mla_nan_float();
    return __uint_as_float(code ? code << 23 : 0x00400000u);
  }
  uint32_t bits = 0;
  unsigned char *to = (unsigned char *)&bits;
  for (int i = 0; i < 4; i++) to[i] = scales[4 * tile + i];
  return __uint_as_float(bits);
}

MLA_DEV float mla_round_float(float v, int dtype) {
  if (dtype == MLA_BF16) return mla_bf16_to_float(mla_float_to_bf16(v));
  if (dtype == MLA_F16) return mla_f16_to_float(mla_float_to_f16(v));
  return v;
}

/* Value d, its product rounded to `compute`. */
MLA_DEV float mla_entry_value(const mla_entry &e, const mla_entry_place &p,
                              int d, int compute) {
  if (d >= e.codes)
    return mla_bf16_to_float(
        ((const uint16_t *)(p.row + e.rest_at))[d - e.codes]);
  uint32_t code = e.code == MLA_I4 ? (uint32_t)p.row[d / 2] >> 4 * (d % 2) & 15u
                                   : (uint32_t)p.row[d];
  const float scale = mla_entry_scale(e, p.scales, d / e.tile);
  return mla_round_float(mla_code_to_float(e.code, code) * scale, compute);
}

/* ---------------------------------------------------------------- writing */

/* Rounded to nearest even; what is `most` or more becomes `largest`. Next to
   `aligner` a unit is the least subnormal of the type. */
MLA_DEV uint32_t mla_float_code(float v, int mantissa, uint32_t bias,
                                float aligner, uint32_t most,
                                uint32_t largest) {
  const uint32_t a = __float_as_uint(v) & 0x7fffffffu;
  const int shift = 23 - mantissa;
  if (a >= most) return largest;
  if (a < (bias + 1) << 23)
    return __float_as_uint(__uint_as_float(a) + aligner) -
           __float_as_uint(aligner);
  const uint32_t half = (1u << (shift - 1)) - 1;
  return (a - (bias << 23) + half + (a >> shift & 1)) >> shift;
}

MLA_DEV int mla_is_nan(float v) {
  return (__float_as_uint(v) & 0x7fffffffu) > 0x7f800000u;
}

MLA_DEV uint32_t mla_integer_code(float v, float most) {
  if (mla_is_nan(v)) return 0;
  return (uint32_t)(int)fminf(fmaxf(rintf(v), -most), most);
}

MLA_DEV uint32_t mla_float_to_code(int type, float v) {
  const uint32_t sign = __float_as_uint(v) >> 24 & 0x80u;
  uint32_t code;
  switch (type) {
    case MLA_FP8_E4M3:
      if (mla_is_nan(v)) return 0x7f;
      return sign | mla_float_code(v, 3, 120, 16384.0f, 0x43e00000u, 0x7e);
    case MLA_FP8_E4M3FNUZ:
      if (mla_is_nan(v)) return 0x80;
      code = mla_float_code(v, 3, 119, 8192.0f, 0x43700000u, 0x7f);
      return code ? sign | code : 0;
    case MLA_FP8_E5M2:
      if (mla_is_nan(v)) return 0x7e;
      return sign | mla_float_code(v, 2, 112, 128.0f, 0x47600000u, 0x7b);
    case MLA_I8: return mla_integer_code(v, 127.0f) & 0xff;
    default: return mla_integer_code(v, 7.0f) & 0xf;
  }
}

MLA_DEV float mla_scale_of(const mla_entry &e, float amax) {
  const float most =
      e.code == MLA_I8 ? 127.0f : (e.code == MLA_I4 ? 7.0f : 448.0f);
  const float least =
      e.pow2 ? 1e-4f : __uint_as_float(0x00800000u); /* 2^-126 */
  const float scale = fmaxf(amax / most, least);
  uint32_t bits = __float_as_uint(scale);
  if (e.pow2 && bits & 0x7fffff) bits = (bits & ~0x7fffffu) + 0x800000u;
  return __uint_as_float(bits);
}

MLA_DEV void mla_put_scale(const mla_entry &e, unsigned char *scales, int tile,
                           float scale) {
  const uint32_t bits = __float_as_uint(scale);
  const unsigned char *from = (const unsigned char *)&bits;
  if (e.scale == MLA_E8M0)
    scales[tile] = (unsigned char)(bits >> 23);
  else
    for (int i = 0; i < 4; i++) scales[4 * tile + i] = from[i];
}

#endif
