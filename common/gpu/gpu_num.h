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

/* Four words at once, from and to a multiple of 16 bytes. */
struct alignas(16) mla_words4 {
  uint32_t w[4];
};
/* N numbers as they lie, in words: 4, or 8 for eight of f32. */
template <int DT, int N>
struct mla_some {
  enum { words = N * (DT == MLA_F32 ? 4 : 2) / 4 };
  MLA_DEV void load(const void *p, int64_t i, uint32_t (&w)[words]) {
    const typename mla_elem<DT>::bits *from =
        (const typename mla_elem<DT>::bits *)p + i;
    for (int j = 0; j < words; j += 4) {
      const mla_words4 x = ((const mla_words4 *)from)[j / 4];
      for (int k = 0; k < 4; k++) w[j + k] = x.w[k];
    }
  }
  MLA_DEV float at(const uint32_t (&w)[words], int c) {
    if (DT == MLA_F32) return __uint_as_float(w[c % words]);
    const uint16_t bits = (uint16_t)(w[c / 2 % words] >> (16 * (c % 2)));
    return DT == MLA_BF16 ? mla_bf16_to_float(bits) : mla_f16_to_float(bits);
  }
};
template <int Words>
MLA_DEV void mla_put_words(void *to, const uint32_t (&w)[Words]) {
  for (int j = 0; j < Words; j += 4) {
    mla_words4 x;
    for (int k = 0; k < 4; k++) x.w[k] = w[j + k];
    ((mla_words4 *)to)[j / 4] = x;
  }
}

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

MLA_DEV uint16_t mla_float_to_half(int dtype, float v) {
  return dtype == MLA_BF16 ? mla_float_to_bf16(v) : mla_float_to_f16(v);
}
/* N of them, 4 or 8, or 1: 16 bytes at once, or four of 16 bits. */
struct alignas(8) mla_words2 {
  uint32_t w[2];
};
template <int N>
MLA_DEV void mla_put_any(void *p, int dtype, int64_t i, const float (&v)[N]) {
  if constexpr (N == 1) {
    mla_store_any(p, dtype, i, v[0]);
  } else if (dtype == MLA_F32) {
    uint32_t w[N];
    for (int k = 0; k < N; k++) w[k] = __float_as_uint(v[k]);
    mla_put_words<N>((float *)p + i, w);
  } else {
    uint32_t w[N / 2];
    for (int k = 0; k < N; k += 2)
      w[k / 2] = mla_float_to_half(dtype, v[k]) |
                 (uint32_t)mla_float_to_half(dtype, v[k + 1]) << 16;
    if constexpr (N == 4)
      *(mla_words2 *)((uint16_t *)p + i) = mla_words2{{w[0], w[1]}};
    else
      mla_put_words<N / 2>((uint16_t *)p + i, w);
  }
}

#endif
