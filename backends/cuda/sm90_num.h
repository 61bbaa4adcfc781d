/*
 * sm90_num.h - single instructions on numbers, and what products take.
 */
#ifndef MLA_SM90_NUM_H
#define MLA_SM90_NUM_H

#include "sm90_type.h"

#define MLA_LOG2_E 1.4426950408889634f
#define MLA_LN_2 0.69314718055994531f

/* A number in a register of its own: what follows from it is worked out where
   it is needed, and not kept in registers that there are not. */
MLA_DEV int sm90_here(int v) {
  asm volatile("" : "+r"(v));
  return v;
}

MLA_DEV float sm90_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

MLA_DEV uint32_t sm90_pack_bf16(float lo, float hi) {
  uint32_t v;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(hi), "f"(lo));
  return v;
}

MLA_DEV uint32_t sm90_pack_f16(float lo, float hi) {
  uint32_t v;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(hi), "f"(lo));
  return v;
}

MLA_DEV uint32_t sm90_pack_as(int dtype, float lo, float hi) {
  return dtype == MLA_BF16 ? sm90_pack_bf16(lo, hi) : sm90_pack_f16(lo, hi);
}
MLA_DEV uint32_t sm90_pack(float lo, float hi) {
  return sm90_pack_as(SM90_TYPE, lo, hi);
}

/* P as the A operand of its products: of 16 keys each. */
template <int Steps>
MLA_DEV void sm90_pack_p(const float (&p)[8 * Steps],
                         uint32_t (&out)[Steps][4]) {
#pragma unroll
  for (int k = 0; k < Steps; k++)
#pragma unroll
    for (int i = 0; i < 4; i++)
      out[k][i] = sm90_pack(p[8 * k + 2 * i], p[8 * k + 2 * i + 1]);
}

#endif
