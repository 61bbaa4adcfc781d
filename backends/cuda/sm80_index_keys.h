/*
 * sm80_index_keys.h - what the selector's logits by matrix products are made
 * of, on sm_80 and later: index keys of 128 codes with a scale each, and
 * queries of up to 64 heads, both in f16.
 *
 * f16 holds every code; a key's scale comes to its logit. bf16 queries are
 * multiplied by a power of two a head, which its weight is divided by: the
 * largest is then just below 2^15, and what lies 2^32 below it is exact still.
 *
 * A lane has keys 8 * i + lane / 4 of a warp's. The order in which 128 columns
 * are added up is free: with t = lane % 4, its part of a key is columns 16 * t
 * to 16 * t + 15 of each half, and step s of 16 columns has the four of them
 * from 4 * (s % 4) on, of half s / 4. A lane copies what it alone reads.
 */
#ifndef MLA_SM80_INDEX_KEYS_H
#define MLA_SM80_INDEX_KEYS_H

#include "gpu_index_args.h"
#include "sm80_mma.h"

enum {
  SM80_INDEX_WIDTH = 128,
  SM80_INDEX_HEADS = 64, /* at most */
  SM80_INDEX_THREADS = 128,
  SM80_INDEX_STEPS = SM80_INDEX_WIDTH / 16
};

/* Four codes as f16. */
MLA_DEV void sm80_codes(uint32_t codes, uint32_t *low, uint32_t *high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, l;\ncvt.rn.f16x2.e4m3x2 %1, h;\n}"
      : "=r"(*low), "=r"(*high)
      : "r"(codes));
#else
  float v[4];
  for (int i = 0; i < 4; i++)
    v[i] = mla_code_to_float(MLA_FP8_E4M3, codes >> 8 * i & 255u);
  *low = sm80_pair<MLA_F16>(v[0], v[1]);
  *high = sm80_pair<MLA_F16>(v[2], v[3]);
#endif
}

/* Where keys lie. */
typedef struct sm80_index_pages {
  const unsigned char *cache;
  int block;               /* bytes from one to the next */
  int page, shift, scales; /* keys; its power of two, or -1; bytes before */
} sm80_index_pages;

static inline sm80_index_pages sm80_index_pages_of(const mla_index_args &a) {
  const int page = a.block_size;
  return {(const unsigned char *)a.cache, (int)a.entry.block, page,
          page & (page - 1) ? -1 : __builtin_ctz((unsigned)page),
          page * SM80_INDEX_WIDTH};
}

/* Where a lane's keys are. */
template <int Keys>
struct sm80_index_place {
  int id[Keys], offset[Keys];
};

/* From j on; past the last of n, which is one at least, the last. */
template <int Keys>
MLA_DEV sm80_index_place<Keys> sm80_index_find(const sm80_index_pages &p,
                                               const int32_t *table, int j,
                                               int n) {
  sm80_index_place<Keys> at;
  SM80_UNROLL
  for (int i = 0; i < Keys; i++) {
    const int wanted = j + 8 * i + MLA_LANE / 4;
    const int key = wanted < n ? wanted : n - 1;
    const int page = p.shift >= 0 ? key >> p.shift : key / p.page;
    at.offset[i] = key - page * p.page;
    at.id[i] = table[page];
  }
  return at;
}

/* A lane's chunks on their way, two a key, and its keys' scales. */
template <int Keys>
MLA_DEV void sm80_index_bring(const sm80_index_pages &p,
                              const sm80_index_place<Keys> &at,
                              sm80_chunk (*to)[32], float (&scale)[Keys]) {
  SM80_UNROLL
  for (int i = 0; i < Keys; i++) {
    const unsigned char *page = p.cache + (int64_t)at.id[i] * p.block;
    const unsigned char *from =
        page + (at.offset[i] * SM80_INDEX_WIDTH + MLA_LANE % 4 * 16);
    SM80_COPY(&to[2 * i][MLA_LANE], from, 16);
    SM80_COPY(&to[2 * i + 1][MLA_LANE], from + 64, 16);
    scale[i] = *(const float *)(page + (p.scales + 4 * at.offset[i]));
  }
}

/* What there is past the last key. */
MLA_DEV void sm80_index_fill(float *row, int64_t n, int64_t end,
                             int64_t blocks) {
  for (int64_t i = n + blockIdx.y * SM80_INDEX_THREADS + MLA_TID; i < end;
       i += blocks * SM80_INDEX_THREADS)
    row[i] = MLA_NEG_INF;
}

/* Its keys in all steps' fragments of A: rows g or, i odd, g + 8. Where a scale
   is negative, codes are turned, since relu comes before it. */
template <int Keys>
MLA_DEV void sm80_index_open(sm80_chunk (*from)[32], const float (&scale)[Keys],
                             uint32_t (&to)[Keys / 2][SM80_INDEX_STEPS][4]) {
  SM80_UNROLL
  for (int i = 0; i < Keys; i++) {
    const int negative = SM80_ANY_LANE(scale[i] < 0);
    SM80_UNROLL
    for (int half = 0; half < 2; half++) {
      sm80_chunk c = from[2 * i + half][MLA_LANE];
      SM80_UNROLL
      for (int k = 0; k < 4; k++) {
        uint32_t *step = to[i / 2][4 * half + k];
        if (negative && scale[i] < 0) c.word[k] ^= 0x80808080u;
        sm80_codes(c.word[k], &step[i % 2], &step[i % 2 + 2]);
      }
    }
  }
}

/* Of four lanes' sums a key's logit. A scale that is no number leaves 0, as
   relu does. */
MLA_DEV float sm80_index_logit(float sum, float scale) {
  const float all = sm80_sum4(sum);
  return scale == scale ? all * fabsf(scale) : 0.0f;
}

/* Two heads' share of a key's sum. */
MLA_DEV float sm80_index_weigh(float sum, float w0, float w1,
                               const float *dot) {
  sum += w0 * (dot[0] > 0 ? dot[0] : 0.0f);
  return sum + w1 * (dot[1] > 0 ? dot[1] : 0.0f);
}

/* Four neighbours of a query. */
struct alignas(8) sm80_index_four {
  uint32_t word[2];
};

/* The exponent's bits of the power by which a head is multiplied; v: a lane's
   of its bf16 numbers. */
MLA_DEV uint32_t sm80_index_power(const sm80_index_four &v) {
  uint32_t most = 0;
  for (int i = 0; i < 2; i++) {
    const uint32_t low = v.word[i] & 0x7fffu, high = v.word[i] >> 16 & 0x7fffu;
    most = most > low ? most : low;
    most = most > high ? most : high;
  }
  for (int m = 16; m > 0; m /= 2) {
    const uint32_t other = MLA_SHFL_XOR(most, m);
    most = most > other ? most : other;
  }
  const uint32_t exponent = most >> 7;
  if (exponent == 255 || most == 0) return 127;
  return exponent > 15 ? 268 - exponent : 253;
}

/* A token's queries, and weights, those of heads that there are not 0; a head a
   warp at a time: put(h, v) takes columns 4 * lane to 4 * lane + 3. */
template <int DT, class Put>
MLA_DEV void sm80_index_queries(const mla_index_args &a, int64_t token,
                                float *weight, Put put) {
  for (int h = MLA_WAVE_ID; h < SM80_INDEX_HEADS;
       h += SM80_INDEX_THREADS / 32) {
    sm80_index_four v = {{0, 0}};
    if (h < a.heads)
      v = *(const sm80_index_four *)((const uint16_t *)a.q + token * a.q_token +
                                     h * a.q_head + 4 * MLA_LANE);
    uint32_t power = 127;
    if (DT == MLA_BF16) {
      power = sm80_index_power(v);
      const float up = __uint_as_float(power << 23);
      for (int i = 0; i < 2; i++)
        v.word[i] =
            sm80_pair<MLA_F16>(__uint_as_float(v.word[i] << 16) * up,
                               __uint_as_float(v.word[i] & 0xffff0000u) * up);
    }
    put(h, v);
    if (MLA_LANE == 0)
      weight[h] = h < a.heads ? a.weights[token * a.weights_token + h] *
                                    __uint_as_float((254 - power) << 23)
                              : 0.0f;
  }
}

/* A lane's logits of a warp's keys from j on, by one lane of four. */
template <int Keys>
MLA_DEV void sm80_index_put(float *row, int j, int n,
                            const float (&logit)[Keys]) {
  SM80_UNROLL
  for (int i = 0; i < Keys; i++) {
    const int key = j + 8 * i + MLA_LANE / 4;
    if (MLA_LANE % 4 == 0 && key < n) row[key] = logit[i];
  }
}

#endif
