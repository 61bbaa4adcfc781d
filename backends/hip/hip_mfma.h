/*
 * hip_mfma.h - CDNA's matrix instruction of 16 x 16 x 16, by registers.
 *
 * D[16][16] += A[16][16] B[16][16], one wave of 64 lanes. With n = lane % 16
 * and g = lane / 16, lane holds
 *   A[n][4g + j], B[4g + j][n]   j = 0..3, two of 16 bits a register
 *   D[4g + r][n]                 r = 0..3, f32
 * so what one product gives as D is, rounded, the B of the next. gfx90a takes
 * subnormal bf16 and f16 for zero and gives none: below 6.1e-5 f16 is lost
 * there.
 */
#ifndef MLA_HIP_MFMA_H
#define MLA_HIP_MFMA_H

#include "gpu_num.h"

/* What lies in memory as one of these is read as another. */
typedef uint32_t mla_u32x2 __attribute__((vector_size(8), may_alias));
typedef uint32_t mla_u32x4 __attribute__((vector_size(16), may_alias));
typedef float mla_f32x4 __attribute__((vector_size(16), may_alias));

#if defined(MLA_GPU_PLATFORM)

template <int DT>
MLA_DEV mla_f32x4 mla_mfma_16(mla_u32x2 a, mla_u32x2 b, mla_f32x4 d,
                              const char *file, int line) {
  const uint32_t give[4] = {a[0], a[1], b[0], b[1]};
  float to[4] = {d[0], d[1], d[2], d[3]};
  emu_mfma_16(give, to, DT == MLA_BF16, file, line);
  return mla_f32x4{to[0], to[1], to[2], to[3]};
}
#define MLA_MFMA_16(type, a, b, d) \
  mla_mfma_16<type>(a, b, d, __FILE__, __LINE__)
#define MLA_UNROLL
#define MLA_THREAD_AGAIN() MLA_TID
#define MLA_FORGET(x) (void)(x)
#define MLA_TWO_WAVES
#define MLA_EXP2(x) exp2f(x)
#define MLA_ANY_LANE(x) emu_any(x, __FILE__, __LINE__)

#else

typedef short mla_bf16x4 __attribute__((ext_vector_type(4)));
typedef _Float16 mla_f16x4 __attribute__((ext_vector_type(4)));

template <int DT>
MLA_DEV mla_f32x4 mla_mfma_16(mla_u32x2 a, mla_u32x2 b, mla_f32x4 d) {
  if (DT == MLA_BF16)
    return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(
        __builtin_bit_cast(mla_bf16x4, a), __builtin_bit_cast(mla_bf16x4, b), d,
        0, 0, 0);
  return __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_bit_cast(mla_f16x4, a),
                                               __builtin_bit_cast(mla_f16x4, b),
                                               d, 0, 0, 0);
}
#define MLA_MFMA_16(type, a, b, d) mla_mfma_16<type>(a, b, d)
#define MLA_UNROLL _Pragma("unroll")
/* MLA_TID without a register that lives from the beginning to the end. */
#define MLA_THREAD_AGAIN()                                   \
  ((int)(__builtin_amdgcn_readfirstlane(MLA_TID / 64) * 64 + \
         __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0))))
/* What was computed of a uniform x need not be kept for later. */
#define MLA_FORGET(x) asm volatile("" : "+s"(x))
/* Two waves a SIMD: at most 256 registers, none of them apart. */
#define MLA_TWO_WAVES __attribute__((amdgpu_waves_per_eu(2, 2)))
#define MLA_EXP2(x) __builtin_amdgcn_exp2f(x)
#define MLA_ANY_LANE(x) __any(x)

#endif
#endif
