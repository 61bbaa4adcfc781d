/*
 * mla_prefill_mfma_cdna.h - prefill's attention on matrix cores: bf16 or f16,
 * keys of 128 + 64 columns, values of 128, up-projected before
 * (mla_upproject_mfma_cdna.h).
 *
 * A block serves 128 query rows of a request and head, a wave 32 of them, over
 * the keys of a part. Both products are taken transposed, S^T = K Q^T and
 * O^T = V^T P^T: a lane then holds scores of one row only (the other half of
 * them is with the lane 32 away), and as they come out of the first product
 * they go into the second. Rows of a tile of K are put down with bits 2 and 3
 * of their number exchanged: then eight scores in a lane's registers are those
 * of eight neighbouring keys, and V^T is read by 16 bytes.
 *
 * Between parts a row's sums are kept as they are, so that its bits do not
 * depend on how the context was cut.
 */
#ifndef MLA_PREFILL_MFMA_CDNA_H
#define MLA_PREFILL_MFMA_CDNA_H

#include "gpu_merge.h"
#include "mla_upproject_mfma_cdna.h"

enum {
  MLA_PREFILL_CHUNKS = MLA_PREFILL_DK / 8, /* of 16 bytes in a key */
  MLA_PREFILL_K_STRIDE = MLA_PREFILL_CHUNKS + 1,
  MLA_PREFILL_V_STRIDE = MLA_PREFILL_KEYS / 8 + 1,
  /* A row's sums between parts: acc, then two totals and the maximum. */
  MLA_PREFILL_KEPT = MLA_PREFILL_DV + 4
};

typedef mla_u32x4 mla_prefill_key[MLA_PREFILL_K_STRIDE];
typedef mla_u32x4 mla_prefill_value[MLA_PREFILL_V_STRIDE];

/* This thread's part of a tile on its way: two chunks of keys, one of their
   rope part, two of values. */
typedef struct mla_prefill_tile {
  mla_u32x4 k[2], rope, v[2];
} mla_prefill_tile;

MLA_DEV mla_prefill_tile mla_prefill_fetch(const mla_prefill_args &a, int head,
                                           int slot) {
  const int64_t at = (head * a.slots + slot) * MLA_PREFILL_DV;
  const mla_u32x4 *k = mla_mfma_chunks(a.k, at);
  const mla_u32x4 *v = mla_mfma_chunks(a.v, at);
  const int64_t row = slot + MLA_TID / 8;
  mla_prefill_tile t;
  MLA_UNROLL
  for (int i = 0; i < 2; i++) {
    t.k[i] = k[MLA_TID + i * MLA_PREFILL_THREADS];
    t.v[i] = v[MLA_TID + i * MLA_PREFILL_THREADS];
  }
  t.rope =
      *mla_mfma_chunks(a.latents, row * a.width + a.latent + MLA_TID % 8 * 8);
  return t;
}

/* Bits 2 and 3 exchanged. */
MLA_DEV int mla_prefill_place(int key) {
  return (key & ~12) | (key & 4) << 1 | (key & 8) >> 1;
}

MLA_DEV void mla_prefill_keep(mla_prefill_key *keys, mla_prefill_value *values,
                              const mla_prefill_tile &t) {
  MLA_UNROLL
  for (int i = 0; i < 2; i++) {
    const int chunk = MLA_TID + i * MLA_PREFILL_THREADS;
    keys[mla_prefill_place(chunk / 16)][chunk % 16] = t.k[i];
    values[chunk / 4][chunk % 4] = t.v[i];
  }
  keys[mla_prefill_place(MLA_TID / 8)][MLA_PREFILL_DV / 8 + MLA_TID % 8] =
      t.rope;
}

template <int DT>
MLA_DEV void mla_prefill_scores(const mla_prefill_key *keys, const mla_u32x4 *q,
                                mla_f32x16 *s) {
  const int n = MLA_LANE % 32, g = MLA_LANE / 32;
  *s = mla_f32x16{};
  MLA_UNROLL
  for (int c = 0; c < MLA_PREFILL_CHUNKS / 2; c++) {
    const mla_u32x4 k = keys[n][2 * c + g];
    MLA_MFMA_32(DT, mla_low_half(k), mla_low_half(q[c]), s);
    MLA_MFMA_32(DT, mla_high_half(k), mla_high_half(q[c]), s);
  }
}

/* The softmax of a row so far, in log2; total: of this lane's keys. */
typedef struct mla_prefill_sums {
  float top, total;
} mla_prefill_sums;

/* Register r is key 16 (r / 8) + 8 (lane / 32) + r % 8 of the tile; those from
   `limit` on are not seen. */
template <int DT>
MLA_DEV void mla_prefill_softmax(float scale, int limit, mla_prefill_sums *sums,
                                 const mla_f32x16 &scores, mla_f32x16 *acc,
                                 uint32_t *p) {
  const int mine = limit - MLA_LANE / 32 * 8;
  float s[16], top = MLA_NEG_INF;
  MLA_UNROLL
  for (int r = 0; r < 16; r++) {
    s[r] = r / 8 * 16 + r % 8 < mine ? scores[r] * scale : MLA_NEG_INF;
    top = fmaxf(top, s[r]);
  }
  top = fmaxf(top, MLA_SHFL_XOR(top, 32));
  top = fmaxf(top, sums->top);
  const float base = top == MLA_NEG_INF ? 0.0f : top;
  const float keep = MLA_EXP2(sums->top - base);
  float total = 0;
  MLA_UNROLL
  for (int r = 0; r < 16; r++) {
    s[r] = MLA_EXP2(s[r] - base);
    total += s[r];
  }
  MLA_UNROLL
  for (int i = 0; i < 8; i++) p[i] = mla_pair_of<DT>(s[2 * i], s[2 * i + 1]);
  sums->total = sums->total * keep + total;
  sums->top = top;
  /* The maximum seldom rises once some keys are seen. */
  if (MLA_ANY_LANE(keep != 1.0f)) {
    MLA_UNROLL
    for (int d = 0; d < MLA_PREFILL_DV / 32; d++) acc[d] *= keep;
  }
}

/* O^T += V^T P^T for 32 keys. */
template <int DT>
MLA_DEV void mla_prefill_values(const mla_prefill_value *values,
                                const uint32_t *p, mla_f32x16 *acc) {
  const int n = MLA_LANE % 32, g = MLA_LANE / 32;
  MLA_UNROLL
  for (int t = 0; t < 2; t++) {
    MLA_UNROLL
    for (int d = 0; d < MLA_PREFILL_DV / 32; d++) {
      const mla_u32x4 v = values[32 * d + n][2 * t + g];
      MLA_MFMA_32(DT, mla_low_half(v), (mla_u32x2{p[4 * t], p[4 * t + 1]}),
                  &acc[d]);
      MLA_MFMA_32(DT, mla_high_half(v), (mla_u32x2{p[4 * t + 2], p[4 * t + 3]}),
                  &acc[d]);
    }
  }
}

MLA_DEV float *mla_prefill_kept(const mla_prefill_args &a, int token,
                                int head) {
  return a.kept + ((int64_t)token * a.heads + head) * MLA_PREFILL_KEPT;
}

MLA_DEV void mla_prefill_restore(const float *from, mla_prefill_sums *sums,
                                 mla_f32x16 *acc) {
  const int g = MLA_LANE / 32;
  MLA_UNROLL
  for (int i = 0; i < MLA_PREFILL_DV / 8; i++) {
    const mla_f32x4 four = *(const mla_f32x4 *)(from + 8 * i + 4 * g);
    MLA_UNROLL
    for (int r = 0; r < 4; r++) acc[i / 4][i % 4 * 4 + r] = four[r];
  }
  sums->total = from[MLA_PREFILL_DV + g];
  sums->top = from[MLA_PREFILL_DV + 2];
}

MLA_DEV mla_f32x4 mla_prefill_four(const mla_f32x16 *acc, int i) {
  const mla_f32x16 &d = acc[i / 4];
  const int r = i % 4 * 4;
  return mla_f32x4{d[r], d[r + 1], d[r + 2], d[r + 3]};
}

MLA_DEV void mla_prefill_save(float *to, const mla_prefill_sums &sums,
                              const mla_f32x16 *acc) {
  const int g = MLA_LANE / 32;
  MLA_UNROLL
  for (int i = 0; i < MLA_PREFILL_DV / 8; i++)
    *(mla_f32x4 *)(to + 8 * i + 4 * g) = mla_prefill_four(acc, i);
  to[MLA_PREFILL_DV + g] = sums.total;
  if (g == 0) to[MLA_PREFILL_DV + 2] = sums.top;
}

MLA_DEV void mla_prefill_store(void *out, int dtype, int whole, int64_t at,
                               mla_f32x4 v) {
  if (!whole)
    for (int r = 0; r < 4; r++) mla_store_any(out, dtype, at + r, v[r]);
  else if (dtype == MLA_F32)
    *(mla_f32x4 *)((float *)out + at) = v;
  else if (dtype == MLA_BF16)
    *(mla_u32x2 *)((uint16_t *)out + at) = mla_u32x2{
        mla_pair_of<MLA_BF16>(v[0], v[1]), mla_pair_of<MLA_BF16>(v[2], v[3])};
  else
    *(mla_u32x2 *)((uint16_t *)out + at) = mla_u32x2{
        mla_pair_of<MLA_F16>(v[0], v[1]), mla_pair_of<MLA_F16>(v[2], v[3])};
}

/* All lanes of the wave; what is not active writes nothing. */
MLA_DEV void mla_prefill_write(const mla_prefill_args &a, int token, int head,
                               int active, const mla_prefill_sums &sums,
                               const mla_f32x16 *acc) {
  const int g = MLA_LANE / 32, empty = sums.top == MLA_NEG_INF;
  const float total = sums.total + MLA_SHFL_XOR(sums.total, 32);
  if (!active) return;
  const float lse2 = empty ? MLA_NEG_INF : sums.top + log2f(total);
  float inverse = empty ? 0.0f : 1.0f / total;
  if (a.sink && !empty)
    inverse *=
        1.0f / (1.0f + MLA_EXP2(a.sink[head * a.sink_step] * MLA_LOG2E - lse2));
  const int64_t at = token * a.o_token + head * a.o_head + 4 * g;
  MLA_UNROLL
  for (int i = 0; i < MLA_PREFILL_DV / 8; i++)
    mla_prefill_store(a.out, a.out_dtype, a.out_whole, at + 8 * i,
                      mla_prefill_four(acc, i) * inverse);
  if (a.lse && g == 0)
    a.lse[token * a.lse_token + head * a.lse_head] =
        a.lse_base2 ? lse2 : lse2 * MLA_LN2;
}

/* Grid: x 128 rows of a request, the last first; y head. */
template <int DT>
MLA_TWO_WAVES MLA_KERNEL mla_prefill_mfma(mla_prefill_args a,
                                          mla_prefill_part p) {
  MLA_SHARED_TILE(mla_u32x4, keys, MLA_PREFILL_KEYS, MLA_PREFILL_K_STRIDE);
  MLA_SHARED_TILE(mla_u32x4, values, MLA_PREFILL_DV, MLA_PREFILL_V_STRIDE);
  const int unit = a.tiles - 1 - (int)blockIdx.x, head = (int)blockIdx.y;
  const int b = mla_prefill_request(p, MLA_PREFILL_ROWS, unit);
  const mla_prefill_keys k = mla_prefill_keys_of<MLA_PREFILL_KEYS>(p, b);
  const int first =
      (unit - (k.begin / MLA_PREFILL_ROWS + b)) * MLA_PREFILL_ROWS;
  if (first >= k.queries || (p.chunk && k.length == 0)) return;
  const int from = first + MLA_WAVE_ID * 32, row = from + MLA_LANE % 32;
  const int active = row < k.queries, token = k.begin + row;
  const int wave_has_rows = from < k.queries;
  const int hi = mla_prefill_limit(a, p, k, first + MLA_PREFILL_ROWS - 1);
  const int wave_hi = mla_prefill_limit(a, p, k, from + 31);
  const int limit = mla_prefill_limit(a, p, k, row);
  mla_u32x4 q[MLA_PREFILL_CHUNKS / 2];
  mla_f32x16 acc[MLA_PREFILL_DV / 32] = {};
  mla_prefill_sums sums = {MLA_NEG_INF, 0};
  const int64_t query = token * a.q_token + (a.head0 + head) * a.q_head;
  MLA_UNROLL
  for (int c = 0; c < MLA_PREFILL_CHUNKS / 2; c++) {
    q[c] = mla_u32x4{0, 0, 0, 0};
    if (active)
      q[c] = mla_mfma_chunk(a.q, query + 16 * c + MLA_LANE / 32 * 8, a.q_whole);
  }
  if (active && k.context > 0 && (!p.chunk || p.first > 0))
    mla_prefill_restore(mla_prefill_kept(a, token, head), &sums, acc);
  mla_prefill_tile next = mla_prefill_fetch(a, head, k.base);
  for (int j0 = 0; j0 < hi; j0 += MLA_PREFILL_KEYS) {
    MLA_BARRIER();
    mla_prefill_keep(keys, values, next);
    MLA_BARRIER();
    if (j0 + MLA_PREFILL_KEYS < hi)
      next = mla_prefill_fetch(a, head, k.base + j0 + MLA_PREFILL_KEYS);
    if (!wave_has_rows || j0 >= wave_hi) continue;
    uint32_t probabilities[8];
    mla_f32x16 s;
    mla_prefill_scores<DT>(keys, q, &s);
    mla_prefill_softmax<DT>(a.scale, limit - j0, &sums, s, acc, probabilities);
    mla_prefill_values<DT>(values, probabilities, acc);
  }
  if (!wave_has_rows) return;
  if (!p.chunk)
    mla_prefill_write(a, token, a.head0 + head, active, sums, acc);
  else if (active)
    mla_prefill_save(mla_prefill_kept(a, token, head), sums, acc);
}

#endif
