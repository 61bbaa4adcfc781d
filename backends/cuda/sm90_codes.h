/*
 * sm90_codes.h - codes of 8 bits times a scale, as bf16, for sm_90a.
 */
#ifndef MLA_SM90_CODES_H
#define MLA_SM90_CODES_H

#include "sm90_num.h"

/* What a key is made of: 576 numbers of SM90_TYPE; 512 codes with a scale a
   tile of 128, then bf16; or 576 codes. */
enum { KEYS_NUMBERS, KEYS_656, KEYS_E4M3, KEYS_I8 };

MLA_DEV void codes_e4m3(uint32_t codes, float (&v)[4]) {
  asm("{\n.reg .b32 low, high;\n.reg .b16 l, h, a, b, c, d;\n"
      "mov.b32 {l, h}, %4;\n"
      "cvt.rn.f16x2.e4m3x2 low, l;\ncvt.rn.f16x2.e4m3x2 high, h;\n"
      "mov.b32 {a, b}, low;\nmov.b32 {c, d}, high;\n"
      "cvt.f32.f16 %0, a;\ncvt.f32.f16 %1, b;\n"
      "cvt.f32.f16 %2, c;\ncvt.f32.f16 %3, d;\n}"
      : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
      : "r"(codes));
}
/* Turned, a byte is 128 more, and exact as the last of 2^23. */
MLA_DEV void codes_i8(uint32_t codes, float (&v)[4]) {
  const uint32_t up = codes ^ 0x80808080u, high = 0x4b000000u;
#pragma unroll
  for (int i = 0; i < 4; i++)
    v[i] = __uint_as_float(__byte_perm(up, high, 0x7440 + i)) - 8388736.0f;
}

/* Each product is rounded to f32, then to bf16. */
template <int Kind>
MLA_DEV uint2 codes_four(uint32_t codes, float scale) {
  float v[4];
  if (Kind == KEYS_I8)
    codes_i8(codes, v);
  else
    codes_e4m3(codes, v);
  return make_uint2(sm90_pack(v[0] * scale, v[1] * scale),
                    sm90_pack(v[2] * scale, v[3] * scale));
}
template <int Kind>
MLA_DEV uint4 codes_eight(uint32_t a, uint32_t b, float scale) {
  const uint2 lo = codes_four<Kind>(a, scale), hi = codes_four<Kind>(b, scale);
  return make_uint4(lo.x, lo.y, hi.x, hi.y);
}

#endif
