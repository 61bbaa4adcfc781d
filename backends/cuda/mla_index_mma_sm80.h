/*
 * mla_index_mma_sm80.h - the selector's logits (gpu_index.h) on the matrix
 * units of sm_80 and later: keys of 128 codes with a scale each, up to 64
 * heads, bf16 or f16 queries.
 *
 * A warp multiplies 32 keys, rows of A, by all heads, columns of B. Keys come
 * from memory as A has them: the order in which 128 columns are added up is
 * free, so that a lane's part of a row is 32 neighbours, and step s of 16
 * columns has the s-th four of each. Queries lie in shared memory as B has
 * them. Sums over heads are a lane's, then its three neighbours'.
 */
#ifndef MLA_INDEX_MMA_SM80_H
#define MLA_INDEX_MMA_SM80_H

#include "gpu_index.h"
#include "sm80_mma.h"

enum {
  SM80_INDEX_WIDTH = 128,
  SM80_INDEX_HEADS = 64, /* at most */
  SM80_INDEX_THREADS = 128,
  SM80_INDEX_KEYS = 128, /* of a block at once, 32 a warp */
  SM80_INDEX_STEPS = SM80_INDEX_WIDTH / 16
};

struct alignas(8) sm80_b_pair {
  uint32_t word[2];
};
typedef sm80_b_pair sm80_index_queries[SM80_INDEX_HEADS][32];

/* Four codes as numbers, their products with the scale rounded. */
template <int DT>
MLA_DEV void sm80_codes(uint32_t codes, float scale, uint32_t *low,
                        uint32_t *high) {
  float v[4];
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  asm("{\n.reg .b32 x, y;\n.reg .b16 l, h, a, b, c, d;\n"
      "mov.b32 {l, h}, %4;\n"
      "cvt.rn.f16x2.e4m3x2 x, l;\ncvt.rn.f16x2.e4m3x2 y, h;\n"
      "mov.b32 {a, b}, x;\nmov.b32 {c, d}, y;\n"
      "cvt.f32.f16 %0, a;\ncvt.f32.f16 %1, b;\n"
      "cvt.f32.f16 %2, c;\ncvt.f32.f16 %3, d;\n}"
      : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
      : "r"(codes));
#else
  for (int i = 0; i < 4; i++)
    v[i] = mla_code_to_float(MLA_FP8_E4M3, codes >> 8 * i & 255u);
#endif
  *low = sm80_pair<DT>(v[0] * scale, v[1] * scale);
  *high = sm80_pair<DT>(v[2] * scale, v[3] * scale);
}

/* This lane's 32 columns of a key, in all steps' fragments of A: rows g
   (half 0) or g + 8. Keys that there are not are zeros. */
template <int DT>
MLA_DEV void sm80_index_key(const mla_index_args &a, int request, int64_t key,
                            int64_t n, int half,
                            uint32_t (&to)[SM80_INDEX_STEPS][4]) {
  sm80_chunk codes[2] = {};
  float scale = 0;
  if (key < n) {
    const int64_t id = a.table[request * a.table_row + key / a.block_size];
    const mla_entry_place p =
        mla_entry_at(a.entry, a.cache, id, key % a.block_size, 0);
    const sm80_chunk *from = (const sm80_chunk *)p.row + MLA_LANE % 4 * 2;
    codes[0] = from[0];
    codes[1] = from[1];
    scale = mla_entry_scale(a.entry, p.scales, 0);
  }
  SM80_UNROLL
  for (int s = 0; s < SM80_INDEX_STEPS; s++)
    sm80_codes<DT>(codes[s / 4].word[s % 4], scale, &to[s][half],
                   &to[s][half + 2]);
}

/* Four columns of a head for each lane and step. */
MLA_DEV void sm80_index_load_queries(const mla_index_args &a, int64_t token,
                                     sm80_index_queries &to) {
  for (int i = MLA_TID; i < SM80_INDEX_HEADS * 32; i += SM80_INDEX_THREADS) {
    const int lane = i % 32, step = i / 32 % SM80_INDEX_STEPS;
    const int h = i / 32 / SM80_INDEX_STEPS * 8 + lane / 4;
    sm80_b_pair v = {{0, 0}};
    if (h < a.heads)
      v = *(const sm80_b_pair *)((const uint16_t *)a.q + token * a.q_token +
                                 h * a.q_head + lane % 4 * 32 + step * 4);
    to[i / 32][lane] = v;
  }
}

/* One row's share of the weighted sum. */
MLA_DEV float sm80_index_weigh(const float *w, const float *dot) {
  return w[0] * (dot[0] > 0 ? dot[0] : 0.0f) +
         w[1] * (dot[1] > 0 ? dot[1] : 0.0f);
}

/* 32 keys from j on: sum[i] is of key 8 * i + lane / 4, this lane's heads. */
template <int DT>
MLA_DEV void sm80_index_keys(const mla_index_args &a, int request, int64_t j,
                             int64_t n, const sm80_index_queries &q,
                             const float *weight, float (&sum)[4]) {
  uint32_t key[2][SM80_INDEX_STEPS][4];
  SM80_UNROLL
  for (int i = 0; i < 4; i++) {
    sm80_index_key<DT>(a, request, j + 8 * i + MLA_LANE / 4, n, i % 2,
                       key[i / 2]);
    sum[i] = 0;
  }
  for (int h = 0; h < a.heads; h += 8) {
    float dot[2][4] = {};
    SM80_UNROLL
    for (int s = 0; s < SM80_INDEX_STEPS; s++) {
      const sm80_b_pair b = q[h + s][MLA_LANE];
      SM80_MMA(DT, key[0][s], b.word, dot[0]);
      SM80_MMA(DT, key[1][s], b.word, dot[1]);
    }
    const float *w = weight + h + MLA_LANE % 4 * 2;
    SM80_UNROLL
    for (int i = 0; i < 4; i++)
      sum[i] += sm80_index_weigh(w, &dot[i / 2][i % 2 * 2]);
  }
}

/* Grid: x token, y blocks that share its keys. fills: what is not visible
   becomes -inf. */
template <int DT>
SM80_KERNEL(SM80_INDEX_THREADS, 4)
mla_index_mma(mla_index_args a, int fills) {
  MLA_SHARED_TILE(sm80_b_pair, q, SM80_INDEX_HEADS, 32);
  MLA_SHARED_TILE(float, weight, 1, SM80_INDEX_HEADS);
  const int64_t local = blockIdx.x;
  const int token = a.token0 + (int)local;
  int request;
  const int64_t n = mla_index_visible(a, token, &request);
  const int64_t end = fills ? a.columns : n;
  float *row = a.logits + local * a.row_len;
  if (n < 0) return;
  sm80_index_load_queries(a, token, q);
  if (MLA_TID < SM80_INDEX_HEADS)
    weight[0][MLA_TID] =
        MLA_TID < a.heads ? a.weights[token * a.weights_token + MLA_TID] : 0.0f;
  MLA_BARRIER();
  for (int64_t j0 = (int64_t)blockIdx.y * SM80_INDEX_KEYS; j0 < end;
       j0 += a.blocks * SM80_INDEX_KEYS) {
    const int64_t j = j0 + 32 * MLA_WAVE_ID;
    float sum[4];
    sm80_index_keys<DT>(a, request, j, n, q, weight[0], sum);
    SM80_UNROLL
    for (int i = 0; i < 4; i++) {
      const int64_t key = j + 8 * i + MLA_LANE / 4;
      const float logit = sm80_sum4(sum[i]);
      if (MLA_LANE % 4 == 0 && key < end)
        row[key] = key < n ? logit : MLA_NEG_INF;
    }
  }
}

#endif
