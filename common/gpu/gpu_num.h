/*
 * gpu_num.h - number types on a device, by bits: the same on every platform.
 */
#ifndef MLA_GPU_NUM_H
#define MLA_GPU_NUM_H

#include "gpu_port.h"
#include "mla/backend.h"

MLA_DEV float mla_bf16_to_float(uint16_t v) {
  return __uint_as_float((uint32_t)v << 16);
}

MLA_DEV uint16_t mla_float_to_bf16(float f) {
  uint32_t u = __float_as_uint(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}

/* Subnormals by a multiplication that is exact; infinities and NaN kept. */
MLA_DEV float mla_f16_to_float(uint16_t v) {
  uint32_t sign = (uint32_t)(v & 0x8000) << 16, rest = v & 0x7fff;
  float f = __uint_as_float(rest << 13) * __uint_as_float(0x77800000u);
  if (rest >= 0x7c00) f = __uint_as_float(0x7f800000u | rest << 13);
  return __uint_as_float(__float_as_uint(f) | sign);
}

MLA_DEV uint16_t mla_float_to_f16(float f) {
  uint32_t u = __float_as_uint(f), a = u & 0x7fffffffu;
  uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
  if (a > 0x7f800000u) return 0x7e00;
  if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00);
  if (a < 0x38800000u) { /* below 2^-14: the adder rounds at 2^-24 */
    float t = __uint_as_float(a) + 0.5f;
    return (uint16_t)(sign | (__float_as_uint(t) - 0x3f000000u));
  }
  uint32_t r = a + 0xfffu + (a >> 13 & 1);
  return (uint16_t)(sign | (r - 0x38000000u) >> 13);
}

/* The element types of plain tensors as template arguments. */
template <int DT>
struct mla_elem;
template <>
struct mla_elem<MLA_F32> {
  typedef float bits;
  MLA_DEV float load(const void *p, int64_t i) { return ((const float *)p)[i]; }
};
template <>
struct mla_elem<MLA_BF16> {
  typedef uint16_t bits;
  MLA_DEV float load(const void *p, int64_t i) {
    return mla_bf16_to_float(((const uint16_t *)p)[i]);
  }
};
template <>
struct mla_elem<MLA_F16> {
  typedef uint16_t bits;
  MLA_DEV float load(const void *p, int64_t i) {
    return mla_f16_to_float(((const uint16_t *)p)[i]);
  }
};

/* The type as a value: for what is touched once. */
MLA_DEV float mla_load_any(const void *p, int dtype, int64_t i) {
  if (dtype == MLA_F32) return mla_elem<MLA_F32>::load(p, i);
  if (dtype == MLA_BF16) return mla_elem<MLA_BF16>::load(p, i);
  return mla_elem<MLA_F16>::load(p, i);
}

MLA_DEV void mla_store_any(void *p, int dtype, int64_t i, float v) {
  if (dtype == MLA_F32)
    ((float *)p)[i] = v;
  else if (dtype == MLA_BF16)
    ((uint16_t *)p)[i] = mla_float_to_bf16(v);
  else
    ((uint16_t *)p)[i] = mla_float_to_f16(v);
}

#endif
