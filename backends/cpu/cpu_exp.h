/*
 * cpu_exp.h - exp and tanh in f32, written so that loops over them vectorise.
 *
 * exp: at most 1 unit in the last place over [-87, 88]; gradual underflow
 * below; 0 from -104 on, -infinity included; +infinity above 88.73; NaN stays.
 * Our own least-maximum fit of (exp(r) - 1 - r) / r^2 on |r| <= ln 2 / 2.
 */
#ifndef MLA_CPU_EXP_H
#define MLA_CPU_EXP_H

#include "float_bits.h"

static inline float mla_cpu_expf(float x) {
  /* Adding 1.5 * 2^23 leaves the nearest integer in the low bits. */
  const float magic = 12582912.0f;
  float y = x < -104.0f ? -104.0f : x;
  y = y > 89.0f ? 89.0f : y;
  float t = y * 1.44269504f + magic;
  float whole = t - magic;
  /* ln 2 in two parts, the first with few bits: whole * part is exact. */
  float r = (y - whole * 0.693359375f) - whole * -2.12194440e-4f;
  float q = 0x1.6a23cep-10f;
  q = q * r + 0x1.123a20p-7f;
  q = q * r + 0x1.5558f2p-5f;
  q = q * r + 0x1.555492p-3f;
  q = q * r + 0x1.fffffcp-2f;
  float value = q * (r * r) + r + 1.0f;
  /* 2^n in two factors, each normal, so that results may be subnormal. The
     offset keeps the shift on unsigned numbers. */
  uint32_t n = mla_f32_bits(t) - mla_f32_bits(magic) + 512u;
  uint32_t half = n >> 1;
  float scale0 = mla_f32_of_bits((half - 256u + 127u) << 23);
  float scale1 = mla_f32_of_bits((n - half - 256u + 127u) << 23);
  return value * scale0 * scale1;
}

/* tanh: at most 3 units in the last place; small x keep their relative
   precision, which a soft cap far above the scores needs. */
static inline float mla_cpu_tanhf(float x) {
  float a = x < 0.0f ? -x : x;
  float e = mla_cpu_expf(a > 10.0f ? 20.0f : 2.0f * a);
  float large = 1.0f - 2.0f / (e + 1.0f);
  float y = x * x;
  float q = -0x1.75e1ccp-8f;
  q = q * y + 0x1.52269ap-6f;
  q = q * y + -0x1.b83c5ap-5f;
  q = q * y + 0x1.110726p-3f;
  q = q * y + -0x1.555532p-2f;
  float small = x + x * (y * q);
  float signed_large = x < 0.0f ? -large : large;
  return a < 0.625f ? small : signed_large;
}

#endif
