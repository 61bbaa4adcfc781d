/*
 * mla_decode_mfma_cdna.h - dense decode on matrix cores: bf16 or f16, keys of
 * 576 columns whose first 512 are the values.
 *
 * A block serves 64 rows of one request, a row being a (query token, head)
 * pair, over a range of its keys; each of four waves has 16 rows. Both
 * products are taken transposed, S^T = K Q^T and O^T = V^T P^T: then a lane
 * holds scores of one row alone, and as they come out of the first product
 * they go into the second. Keys pass through shared memory once, in tiles of
 * 32 that serve as K and as V; the next tile is on its way meanwhile, in
 * registers. V^T is had by turning 4 x 4 elements about in registers, which
 * puts columns in an order of its own: tile i of a group of 64 columns holds
 * columns 4n + i.
 */
#ifndef MLA_DECODE_MFMA_CDNA_H
#define MLA_DECODE_MFMA_CDNA_H

#include "gpu_attend.h"
#include "hip_mfma.h"

enum {
  MLA_MFMA_THREADS = 256,
  MLA_MFMA_WAVE = 64,
  MLA_MFMA_ROWS = 64, /* of a block */
  MLA_MFMA_KEYS = 32, /* of a tile */
  MLA_MFMA_DK = 576,
  MLA_MFMA_DV = 512,
  MLA_MFMA_CHUNKS = MLA_MFMA_DK / 8, /* of 16 bytes in a key */
  /* Eight lanes load a key; a chunk of padding keeps keys off each other's
     banks. */
  MLA_MFMA_LOADS = MLA_MFMA_CHUNKS / 8,
  MLA_MFMA_STRIDE = MLA_MFMA_CHUNKS + 1
};

/* f16 P times this: what the hardware flushes then is below 2^-26. */
#define MLA_MFMA_F16_LIFT 4096.0f

typedef mla_u32x4 mla_mfma_key[MLA_MFMA_STRIDE];

/* Keys a split takes of a request that has n. */
MLA_DEV int mla_mfma_split_keys(int n, int splits) {
  const int even = (n + splits - 1) / splits;
  const int per = (even + MLA_MFMA_KEYS - 1) / MLA_MFMA_KEYS * MLA_MFMA_KEYS;
  return per < 4 * MLA_MFMA_KEYS ? 4 * MLA_MFMA_KEYS : per;
}

MLA_DEV const mla_u32x4 *mla_mfma_chunks(const void *base, int64_t element) {
  return (const mla_u32x4 *)((const uint16_t *)base + element);
}

/* This lane's part of a key, zeros past the last: a tail may hold anything. */
MLA_DEV void mla_mfma_fetch(const mla_attend_args &a, int request, int j,
                            int end, mla_u32x4 *to) {
  const mla_u32x4 zero = {0, 0, 0, 0};
  const int part = MLA_TID % 8;
  if (j < end) {
    const int64_t id = a.table[request * a.table_row + j / a.block_size];
    const mla_u32x4 *key =
        mla_mfma_chunks(a.cache, id * a.k_block + j % a.block_size * a.k_row);
    MLA_UNROLL
    for (int i = 0; i < MLA_MFMA_LOADS; i++) to[i] = key[part + 8 * i];
  } else {
    MLA_UNROLL
    for (int i = 0; i < MLA_MFMA_LOADS; i++) to[i] = zero;
  }
}

MLA_DEV mla_u32x2 mla_low_half(mla_u32x4 v) {
  return mla_u32x2{v[0], v[1]};
}
MLA_DEV mla_u32x2 mla_high_half(mla_u32x4 v) {
  return mla_u32x2{v[2], v[3]};
}

/* Scores of 32 keys against this wave's 16 rows: s[t][r] is key
   16t + 4g + r. */
template <int DT>
MLA_DEV void mla_mfma_scores(const mla_mfma_key *tile, const mla_u32x4 *q,
                             mla_f32x4 *s) {
  const int n = MLA_LANE % 16, g = MLA_LANE / 16;
  const mla_f32x4 zero = {0, 0, 0, 0};
  s[0] = s[1] = zero;
  MLA_UNROLL
  for (int c = 0; c < MLA_MFMA_CHUNKS / 4; c++) {
    const mla_u32x4 k0 = tile[n][4 * c + g];
    const mla_u32x4 k1 = tile[16 + n][4 * c + g];
    s[0] = MLA_MFMA_16(DT, mla_low_half(k0), mla_low_half(q[c]), s[0]);
    s[1] = MLA_MFMA_16(DT, mla_low_half(k1), mla_low_half(q[c]), s[1]);
    s[0] = MLA_MFMA_16(DT, mla_high_half(k0), mla_high_half(q[c]), s[0]);
    s[1] = MLA_MFMA_16(DT, mla_high_half(k1), mla_high_half(q[c]), s[1]);
  }
}

template <int DT>
MLA_DEV uint32_t mla_mfma_pair(float low, float high) {
  if (DT == MLA_BF16)
    return mla_float_to_bf16(low) | (uint32_t)mla_float_to_bf16(high) << 16;
  return mla_float_to_f16(low * MLA_MFMA_F16_LIFT) |
         (uint32_t)mla_float_to_f16(high * MLA_MFMA_F16_LIFT) << 16;
}

/* O^T += V^T P^T for 16 keys: p are this lane's four. */
template <int DT>
MLA_DEV void mla_mfma_values(const mla_mfma_key *keys, mla_u32x2 p,
                             mla_f32x4 *acc) {
  const int n = MLA_LANE % 16, g = MLA_LANE / 16;
  MLA_UNROLL
  for (int q = 0; q < MLA_MFMA_DV / 64; q++) {
    mla_u32x2 v[4];
    MLA_UNROLL
    for (int j = 0; j < 4; j++)
      v[j] = ((const mla_u32x2 *)keys[4 * g + j])[16 * q + n];
    MLA_UNROLL
    for (int i = 0; i < 4; i++) {
      /* Column 4n + i of the four keys. */
      const int word = i / 2, shift = i % 2 * 16;
      const mla_u32x2 column = {
          (v[0][word] >> shift & 0xffff) | v[1][word] >> shift << 16,
          (v[2][word] >> shift & 0xffff) | v[3][word] >> shift << 16};
      acc[4 * q + i] = MLA_MFMA_16(DT, column, p, acc[4 * q + i]);
    }
  }
}

/* A lane's row: which it is, what it sees, and its softmax so far. */
typedef struct mla_mfma_row {
  int active, token, head, visible;
  float top, total; /* total: of this lane's keys */
} mla_mfma_row;

MLA_DEV mla_mfma_row mla_mfma_row_of(const mla_attend_args &a, int first,
                                     int begin, int queries, int seq) {
  mla_mfma_row r = {0, 0, 0, 0, MLA_NEG_INF, 0};
  const int row = first + MLA_WAVE_ID * 16 + MLA_LANE % 16;
  const int query = row / a.heads;
  r.active = query < queries;
  r.token = begin + query;
  r.head = row % a.heads;
  if (r.active) r.visible = a.causal ? seq - queries + query + 1 : seq;
  return r;
}

/* Of four lanes that share a row. */
MLA_DEV float mla_mfma_max4(float v) {
  v = fmaxf(v, MLA_SHFL_XOR(v, 16));
  return fmaxf(v, MLA_SHFL_XOR(v, 32));
}
MLA_DEV float mla_mfma_sum4(float v) {
  v += MLA_SHFL_XOR(v, 16);
  return v + MLA_SHFL_XOR(v, 32);
}

/* Scores of keys j0.. into probabilities; what came before is scaled. */
template <int DT>
MLA_DEV void mla_mfma_softmax(float scale, int j0, int end, mla_mfma_row *r,
                              const mla_f32x4 *s, mla_u32x2 *p,
                              mla_f32x4 *acc) {
  const int g = MLA_LANE / 16;
  const int limit = r->visible < end ? r->visible : end;
  float x[8], top = MLA_NEG_INF, sum = 0;
  MLA_UNROLL
  for (int i = 0; i < 8; i++) {
    const int j = j0 + i / 4 * 16 + 4 * g + i % 4;
    x[i] = j < limit ? s[i / 4][i % 4] * scale : MLA_NEG_INF;
    top = fmaxf(top, x[i]);
  }
  top = fmaxf(r->top, mla_mfma_max4(top));
  const float base = top == MLA_NEG_INF ? 0.0f : top;
  const float keep = MLA_EXP2((r->top - base) * MLA_LOG2E);
  MLA_UNROLL
  for (int i = 0; i < 8; i++) {
    x[i] = MLA_EXP2((x[i] - base) * MLA_LOG2E);
    sum += x[i];
  }
  p[0] =
      mla_u32x2{mla_mfma_pair<DT>(x[0], x[1]), mla_mfma_pair<DT>(x[2], x[3])};
  p[1] =
      mla_u32x2{mla_mfma_pair<DT>(x[4], x[5]), mla_mfma_pair<DT>(x[6], x[7])};
  r->total = r->total * keep + sum;
  r->top = top;
  /* The maximum seldom rises once some keys are seen. */
  if (MLA_ANY_LANE(keep != 1.0f)) {
    MLA_UNROLL
    for (int i = 0; i < MLA_MFMA_DV / 16; i++) acc[i] *= keep;
  }
}

/* Of tile 4q + i, register r: column 64q + 16g + 4r + i. */
MLA_DEV void mla_mfma_write(const mla_attend_args &a, const mla_mfma_row &r,
                            int split, float total, float scale,
                            const mla_f32x4 *acc) {
  if (!r.active) return;
  const int g = MLA_LANE / 16;
  const int64_t row = ((int64_t)r.token * a.heads + r.head) * a.splits + split;
  const int empty = r.top == MLA_NEG_INF;
  if (g == 0) a.part_lse[row] = empty ? MLA_NEG_INF : r.top + logf(total);
  if (empty) return; /* nobody reads a part whose lse is infinite */
  const float inverse = scale / total;
  mla_f32x4 *to = (mla_f32x4 *)(a.part_out + row * MLA_MFMA_DV);
  MLA_UNROLL
  for (int q = 0; q < MLA_MFMA_DV / 64; q++) MLA_UNROLL
  for (int k = 0; k < 4; k++)
    to[16 * q + 4 * g + k] =
        mla_f32x4{acc[4 * q][k] * inverse, acc[4 * q + 1][k] * inverse,
                  acc[4 * q + 2][k] * inverse, acc[4 * q + 3][k] * inverse};
}

/* Grid: x request x group of rows, y split. */
template <int DT>
MLA_KERNEL mla_decode_mfma(mla_attend_args a, int groups) {
  MLA_SHARED_TILE(mla_u32x4, tile, MLA_MFMA_KEYS, MLA_MFMA_STRIDE);
  const int request = (int)blockIdx.x / groups;
  const int first = (int)blockIdx.x % groups * MLA_MFMA_ROWS;
  const int split = (int)blockIdx.y;
  const int begin = a.start[request * a.start_step];
  const int queries = a.start[(request + 1) * a.start_step] - begin;
  const int rows = queries * a.heads;
  if (first >= rows) return;
  const int seq = a.seq_lens[request * a.seq_lens_step];
  const int per = mla_mfma_split_keys(seq, a.splits);
  const int lo = split * per, hi = lo + per < seq ? lo + per : seq;
  mla_mfma_row r = mla_mfma_row_of(a, first, begin, queries, seq);
  const int wave_has_rows = first + MLA_WAVE_ID * 16 < rows;
  const mla_u32x4 zero = {0, 0, 0, 0};
  mla_u32x4 q[MLA_MFMA_CHUNKS / 4], next[MLA_MFMA_LOADS];
  mla_f32x4 acc[MLA_MFMA_DV / 16];
  const mla_u32x4 *row =
      mla_mfma_chunks(a.q, r.token * a.q_token + r.head * a.q_head);
  MLA_UNROLL
  for (int c = 0; c < MLA_MFMA_CHUNKS / 4; c++)
    q[c] = r.active ? row[4 * c + MLA_LANE / 16] : zero;
  MLA_UNROLL
  for (int i = 0; i < MLA_MFMA_DV / 16; i++) acc[i] = mla_f32x4{0, 0, 0, 0};
  const int own = MLA_TID / 8;
  if (lo < hi) mla_mfma_fetch(a, request, lo + own, hi, next);
  for (int j0 = lo; j0 < hi; j0 += MLA_MFMA_KEYS) {
    MLA_BARRIER();
    MLA_UNROLL
    for (int i = 0; i < MLA_MFMA_LOADS; i++)
      tile[own][MLA_TID % 8 + 8 * i] = next[i];
    MLA_BARRIER();
    if (j0 + MLA_MFMA_KEYS < hi)
      mla_mfma_fetch(a, request, j0 + MLA_MFMA_KEYS + own, hi, next);
    if (!wave_has_rows) continue;
    mla_f32x4 s[2];
    mla_u32x2 p[2];
    mla_mfma_scores<DT>(tile, q, s);
    mla_mfma_softmax<DT>(a.scale, j0, hi, &r, s, p, acc);
    mla_mfma_values<DT>(tile, p[0], acc);
    mla_mfma_values<DT>(tile + 16, p[1], acc);
  }
  if (!wave_has_rows) return;
  const float lift = DT == MLA_F16 ? 1.0f / MLA_MFMA_F16_LIFT : 1.0f;
  mla_mfma_write(a, r, split, mla_mfma_sum4(r.total), lift, acc);
}

#endif
