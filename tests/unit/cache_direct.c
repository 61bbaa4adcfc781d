#include "cache_direct.h"

#include <math.h>
#include <string.h>

#include "float_types.h"

const direct_format direct_formats[DIRECT_FORMATS] = {
    {MLA_CACHE_FP8_E4M3, 20, 4, 24},   {MLA_CACHE_FP8_E4M3FNUZ, 20, 4, 24},
    {MLA_CACHE_FP8_E5M2, 20, 4, 24},   {MLA_CACHE_FP8_DS_MLA, 256, 8, 280},
    {MLA_CACHE_FP8_584, 128, 8, 152},  {MLA_CACHE_FP8_TOKEN, 20, 3, 32},
    {MLA_CACHE_INT8_TOKEN, 20, 3, 32}, {MLA_CACHE_INT4_TOKEN, 20, 3, 16},
};

static int32_t code_type(int32_t format) {
  switch (format) {
    case MLA_CACHE_FP8_E4M3FNUZ: return MLA_FP8_E4M3FNUZ;
    case MLA_CACHE_FP8_E5M2: return MLA_FP8_E5M2;
    case MLA_CACHE_INT8_TOKEN: return MLA_I8;
    case MLA_CACHE_INT4_TOKEN: return MLA_I4;
    default: return MLA_FP8_E4M3;
  }
}

static const narrow_type *narrow(int32_t dtype) {
  for (int i = 0; i < NARROW_TYPES; i++)
    if (narrow_types[i].dtype == dtype) return &narrow_types[i];
  return NULL;
}

double direct_value(int32_t dtype, uint32_t code) {
  if (dtype == MLA_I8) return code < 128 ? code : (double)code - 256;
  if (dtype == MLA_I4) return code < 8 ? code : (double)code - 16;
  return narrow_value(narrow(dtype), code);
}

static uint32_t integer_code(int32_t dtype, float x) {
  double most = dtype == MLA_I8 ? 127 : 7, size = rint((double)x);
  if (size > most) size = most;
  if (size < -most) size = -most;
  return (uint32_t)(int32_t)size & (dtype == MLA_I8 ? 0xFF : 0xF);
}

/* Of the magnitudes, the nearest; of two as near, the even. */
static uint32_t nearest(const narrow_type *type, double size) {
  uint32_t best = 0;
  for (uint32_t code = 1; code <= type->max_code; code++) {
    double d = fabs(narrow_value(type, code) - size);
    double least = fabs(narrow_value(type, best) - size);
    if (d < least || (d == least && !(code & 1))) best = code;
  }
  return size > type->max ? type->max_code : best;
}

uint32_t direct_code(int32_t dtype, float x) {
  const narrow_type *type = narrow(dtype);
  if (!type) return integer_code(dtype, x);
  if (isnan(x)) return type->written_nan;
  uint32_t code = nearest(type, fabs((double)x));
  if (type->one_zero && code == 0) return 0;
  return code | (signbit(x) ? narrow_sign(type) : 0);
}

/* --------------------------------------------------------------- writing */

static float scale_of(int32_t dtype, float amax, int pow2) {
  float most = dtype == MLA_I8 ? 127.0f : dtype == MLA_I4 ? 7.0f : 448.0f;
  float scale = amax / most;
  if (pow2) return ldexpf(1, (int)ceil(log2((double)fmaxf(scale, 1e-4f))));
  return fmaxf(scale, 0x1p-126f);
}

static float amax_of(const double *x, int64_t n) {
  float amax = 0;
  for (int64_t i = 0; i < n; i++) amax = fmaxf(amax, fabsf((float)x[i]));
  return amax;
}

static int64_t tile_of(const direct_format *f) {
  switch (f->format) {
    case MLA_CACHE_FP8_DS_MLA: return 128;
    case MLA_CACHE_FP8_584: return 64;
    default: return f->latent + f->rope;
  }
}

static int has_plain_rope(const direct_format *f) {
  return f->format == MLA_CACHE_FP8_DS_MLA || f->format == MLA_CACHE_FP8_584;
}

static int has_scales(const direct_format *f) {
  return f->format >= MLA_CACHE_FP8_DS_MLA;
}

static int64_t coded(const direct_format *f) {
  return has_plain_rope(f) ? f->latent : f->latent + f->rope;
}

/* Where scale i of the entry stands, counted in its bytes. */
static int64_t scale_byte(const direct_format *f, int64_t i) {
  if (f->format == MLA_CACHE_FP8_584) return f->latent + 2 * f->rope + i;
  if (f->format == MLA_CACHE_INT4_TOKEN) return (coded(f) + 1) / 2;
  return coded(f) + 4 * i;
}

static int64_t rope_byte(const direct_format *f) {
  if (f->format == MLA_CACHE_FP8_584) return f->latent;
  return f->latent + f->latent / 128 * 4;
}

static void put_scale(const direct_format *f, unsigned char *entry, int64_t i,
                      float scale) {
  unsigned char *at = entry + scale_byte(f, i);
  if (f->format == MLA_CACHE_FP8_584)
    *at = (unsigned char)(ilogbf(scale) + 127);
  else
    memcpy(at, &scale, 4);
}

static uint16_t bf16_of(double x) {
  uint32_t bits;
  float f = (float)x;
  memcpy(&bits, &f, 4);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

void direct_entry(const direct_format *f, const double *x, double one, int pow2,
                  unsigned char *entry) {
  int32_t type = code_type(f->format);
  float scale = (float)one;
  memset(entry, 0, (size_t)f->entry);
  for (int64_t i = 0; i < coded(f); i++) {
    if (has_scales(f) && i % tile_of(f) == 0) {
      scale = scale_of(type, amax_of(x + i, tile_of(f)),
                       pow2 || f->format == MLA_CACHE_FP8_584);
      put_scale(f, entry, i / tile_of(f), scale);
    }
    uint32_t code = direct_code(type, (float)x[i] / scale);
    if (type == MLA_I4)
      entry[i / 2] = (unsigned char)(entry[i / 2] | code << 4 * (i % 2));
    else
      entry[i] = (unsigned char)code;
  }
  for (int64_t i = 0; has_plain_rope(f) && i < f->rope; i++) {
    uint16_t code = bf16_of(x[f->latent + i]);
    memcpy(entry + rope_byte(f) + 2 * i, &code, 2);
  }
}

/* --------------------------------------------------------------- reading */

static float get_scale(const direct_format *f, const unsigned char *entry,
                       int64_t i) {
  float scale;
  const unsigned char *at = entry + scale_byte(f, i);
  if (f->format == MLA_CACHE_FP8_584) return ldexpf(1, *at - 127);
  memcpy(&scale, at, 4);
  return scale;
}

void direct_read(const direct_format *f, const unsigned char *entry, double one,
                 double *values) {
  int32_t type = code_type(f->format);
  for (int64_t i = 0; i < coded(f); i++) {
    float scale = (float)one;
    if (has_scales(f)) scale = get_scale(f, entry, i / tile_of(f));
    uint32_t code = entry[i];
    if (type == MLA_I4) code = entry[i / 2] >> 4 * (i % 2) & 0xF;
    values[i] = (double)((float)direct_value(type, code) * scale);
  }
  for (int64_t i = 0; has_plain_rope(f) && i < f->rope; i++) {
    uint16_t code;
    memcpy(&code, entry + rope_byte(f) + 2 * i, 2);
    uint32_t bits = (uint32_t)code << 16;
    float value;
    memcpy(&value, &bits, 4);
    values[f->latent + i] = (double)value;
  }
}

int64_t direct_byte(const direct_format *f, int64_t page, int64_t offset,
                    int64_t e) {
  int64_t row = f->latent + 2 * f->rope;
  if (f->format != MLA_CACHE_FP8_584) return offset * f->entry + e;
  if (e < row) return offset * row + e;
  return page * row + offset * 8 + e - row;
}
