/*
 * hip_mfma.h - CDNA's matrix instructions, by registers.
 *
 * D[16][16] += A[16][16] B[16][16], one wave of 64 lanes. With n = lane % 16
 * and g = lane / 16, lane holds
 *   A[n][4g + j], B[4g + j][n]   j = 0..3, two of 16 bits a register
 *   D[4g + r][n]                 r = 0..3, f32
 * so what one product gives as D is, rounded, the B of the next.
 *
 * D[32][32] += A[32][8] B[8][32]: with n = lane % 32 and g = lane / 32
 *   A[n][4g + j], B[4g + j][n]   j = 0..3
 *   D[8i + 4g + r][n]            r = 0..3 of register 4i + r, i = 0..3
 * so that registers 4i.. of D are, rounded, a B of rows 8i to 8i + 7.
 *
 * gfx90a takes subnormal bf16 and f16 for zero and gives none: below 6.1e-5
 * f16 is lost there.
 */
#ifndef MLA_HIP_MFMA_H
#define MLA_HIP_MFMA_H

#include "gpu_num.h"

/* What lies in memory as one of these is read as another. */
typedef uint32_t mla_u32x2 __attribute__((vector_size(8), may_alias));
typedef uint32_t mla_u32x4 __attribute__((vector_size(16), may_alias));
typedef float mla_f32x4 __attribute__((vector_size(16), may_alias));
typedef float mla_f32x16 __attribute__((vector_size(64), may_alias));

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
template <int DT>
MLA_DEV void mla_mfma_32(mla_u32x2 a, mla_u32x2 b, mla_f32x16 *d,
                         const char *file, int line) {
  const uint32_t give[4] = {a[0], a[1], b[0], b[1]};
  float to[16];
  for (int r = 0; r < 16; r++) to[r] = (*d)[r];
  emu_mfma_32(give, to, DT == MLA_BF16, file, line);
  for (int r = 0; r < 16; r++) (*d)[r] = to[r];
}
#define MLA_MFMA_32(type, a, b, d) \
  mla_mfma_32<type>(a, b, d, __FILE__, __LINE__)
#define MLA_TO_F16(x) mla_float_to_f16(x)
#define MLA_FROM_F16(bits) mla_f16_to_float(bits)
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
template <int DT>
MLA_DEV void mla_mfma_32(mla_u32x2 a, mla_u32x2 b, mla_f32x16 *d) {
  if (DT == MLA_BF16)
    *d = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(
        __builtin_bit_cast(mla_bf16x4, a), __builtin_bit_cast(mla_bf16x4, b),
        *d, 0, 0, 0);
  else
    *d = __builtin_amdgcn_mfma_f32_32x32x8f16(__builtin_bit_cast(mla_f16x4, a),
                                              __builtin_bit_cast(mla_f16x4, b),
                                              *d, 0, 0, 0);
}
#define MLA_MFMA_32(type, a, b, d) mla_mfma_32<type>(a, b, d)
/* One instruction, to nearest. */
#define MLA_TO_F16(x) __builtin_bit_cast(uint16_t, (_Float16)(x))
#define MLA_FROM_F16(bits) ((float)__builtin_bit_cast(_Float16, bits))
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

MLA_DEV mla_u32x2 mla_low_half(mla_u32x4 v) {
  return mla_u32x2{v[0], v[1]};
}
MLA_DEV mla_u32x2 mla_high_half(mla_u32x4 v) {
  return mla_u32x2{v[2], v[3]};
}

/* Two rounded into a register. A NaN stays one as long as its payload is not
   all ones, which no instruction makes. */
template <int DT>
MLA_DEV uint32_t mla_pair_of(float low, float high) {
  if (DT != MLA_BF16) return MLA_TO_F16(low) | (uint32_t)MLA_TO_F16(high) << 16;
  const uint32_t l = __float_as_uint(low), h = __float_as_uint(high);
  return (l + 0x7fff + (l >> 16 & 1)) >> 16 |
         ((h + 0x7fff + (h >> 16 & 1)) & 0xffff0000u);
}

/* Eight elements; whole: they are known to lie at a multiple of 16 bytes. */
MLA_DEV mla_u32x4 mla_mfma_chunk(const void *base, int64_t element, int whole) {
  const uint16_t *e = (const uint16_t *)base + element;
  if (whole) return *(const mla_u32x4 *)e;
  mla_u32x4 v;
  MLA_UNROLL
  for (int i = 0; i < 4; i++) v[i] = e[2 * i] | (uint32_t)e[2 * i + 1] << 16;
  return v;
}

MLA_DEV const mla_u32x4 *mla_mfma_chunks(const void *base, int64_t element) {
  return (const mla_u32x4 *)((const uint16_t *)base + element);
}

#endif
