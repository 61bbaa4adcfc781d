/*
 * mla_decode_mfma_cdna.h - dense decode on matrix cores: bf16 or f16, keys of
 * 576 columns whose first 512 are the values, plain or in 8 bits
 * (mla_keys_mfma_cdna.h).
 *
 * A block serves 64 rows of one request, a row being a (query token, head)
 * pair, over a range of its keys; each of four waves has 16 rows. Both
 * products are taken transposed, S^T = K Q^T and O^T = V^T P^T: then a lane
 * holds scores of one row alone, and as they come out of the first product
 * they go into the second. Keys pass through shared memory once, in tiles of
 * 16 that serve as K and as V; the next tile is on its way meanwhile, in
 * registers. V^T is had by turning 4 x 4 elements about in registers, which
 * puts columns in an order of its own: tile i of a group of 64 columns holds
 * columns 4n + i.
 *
 * All of it fits 256 registers, so that two blocks share a CU, and results of
 * matrix instructions need not be moved to be scaled.
 */
#ifndef MLA_DECODE_MFMA_CDNA_H
#define MLA_DECODE_MFMA_CDNA_H

#include "gpu_attend.h"
#include "gpu_merge.h"
#include "mla_keys_mfma_cdna.h"

enum {
  MLA_MFMA_ROWS = 64,   /* of a block */
  MLA_MFMA_LEAST = 128, /* keys of a split */
  MLA_MFMA_QUADS = MLA_MFMA_CHUNKS / 4,
  /* Of q, a lane has 18 chunks, of each quad one: the last three wait in
     shared memory, where each lane finds its own again. */
  MLA_MFMA_HELD = MLA_MFMA_QUADS - 3
};

/* f16 P times this: what the hardware flushes then is below 2^-26. */
#define MLA_MFMA_F16_LIFT 4096.0f

typedef mla_u32x4 mla_mfma_rest[MLA_MFMA_THREADS];

/* Keys a split takes of a request that has n. */
MLA_DEV int mla_mfma_split_keys(int n, int splits) {
  const int even = (n + splits - 1) / splits;
  const int per = (even + MLA_MFMA_KEYS - 1) / MLA_MFMA_KEYS * MLA_MFMA_KEYS;
  return per < MLA_MFMA_LEAST ? MLA_MFMA_LEAST : per;
}

/* The keys of a request, in pages: those below hi, of which a row sees those
   below its limit. */
typedef struct mla_mfma_paged {
  enum { LISTED = 0 };
  int request, hi, limit;
} mla_mfma_paged;

/* Where a key lies; strides are bytes here. NULL: past the last. */
MLA_DEV const unsigned char *mla_mfma_key_at(const mla_attend_args &a,
                                             const mla_mfma_paged &from,
                                             int j) {
  if (j >= from.hi) return NULL;
  const int64_t id = a.table[from.request * a.table_row + j / a.block_size];
  return (const unsigned char *)a.cache + id * a.k_block +
         j % a.block_size * a.k_row;
}

/* Whether any row sees something of a tile. */
MLA_DEV int mla_mfma_some(const mla_mfma_paged &, const int *) {
  return 1;
}

/* Scores of keys j0.. that this lane's row does not see; r is key 4g + r. */
MLA_DEV void mla_mfma_hide(const mla_mfma_paged &from, const int *, int j0,
                           mla_f32x4 *s) {
  const int first = j0 + MLA_LANE / 16 * 4;
  MLA_UNROLL
  for (int i = 0; i < 4; i++)
    if (first + i >= from.limit) (*s)[i] = MLA_NEG_INF;
}

/* Scores of 16 keys against this wave's 16 rows; register r is key 4g + r.
   Two sums: one would wait for itself. */
template <int DT>
MLA_DEV mla_f32x4 mla_mfma_scores(const mla_mfma_key *tile, const mla_u32x4 *q,
                                  const mla_mfma_rest *rest) {
  const int n = MLA_LANE % 16, g = MLA_LANE / 16;
  mla_f32x4 even = {0, 0, 0, 0}, odd = {0, 0, 0, 0};
  MLA_UNROLL
  for (int c = 0; c < MLA_MFMA_QUADS; c++) {
    const mla_u32x4 k = tile[n][4 * c + g];
    const mla_u32x4 own =
        c < MLA_MFMA_HELD ? q[c] : rest[c - MLA_MFMA_HELD][MLA_TID];
    even = MLA_MFMA_16(DT, mla_low_half(k), mla_low_half(own), even);
    odd = MLA_MFMA_16(DT, mla_high_half(k), mla_high_half(own), odd);
  }
  return even + odd;
}

template <int DT>
MLA_DEV uint32_t mla_mfma_pair(float low, float high) {
  const float lift = DT == MLA_F16 ? MLA_MFMA_F16_LIFT : 1.0f;
  return mla_pair_of<DT>(low * lift, high * lift);
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

/* What a block does, and for which of its rows a thread: 16 rows a wave, of
   which four lanes share each. */
typedef struct mla_mfma_work {
  int request, first, begin, queries, seq;
} mla_mfma_work;
typedef struct mla_mfma_row {
  int active, token, head, visible;
} mla_mfma_row;

MLA_DEV mla_mfma_row mla_mfma_row_of(const mla_attend_args &a,
                                     const mla_mfma_work &w, int heads,
                                     int thread) {
  mla_mfma_row r = {0, 0, 0, 0};
  const int row = w.first + thread / MLA_WAVE * 16 + thread % 16;
  const int query = row / heads;
  r.active = query < w.queries;
  r.token = w.begin + query;
  r.head = row % heads;
  if (r.active) r.visible = a.causal ? w.seq - w.queries + query + 1 : w.seq;
  return r;
}

/* The softmax of a row so far; total: of this lane's keys. */
typedef struct mla_mfma_sums {
  float top, total;
} mla_mfma_sums;

/* Of four lanes that share a row. */
MLA_DEV float mla_mfma_max4(float v) {
  v = fmaxf(v, MLA_SHFL_XOR(v, 16));
  return fmaxf(v, MLA_SHFL_XOR(v, 32));
}
MLA_DEV float mla_mfma_sum4(float v) {
  v += MLA_SHFL_XOR(v, 16);
  return v + MLA_SHFL_XOR(v, 32);
}

/* Scores into probabilities; what came before is scaled. */
template <int DT>
MLA_DEV mla_u32x2 mla_mfma_softmax(mla_mfma_sums *r, mla_f32x4 s,
                                   mla_f32x4 *acc) {
  float top = fmaxf(fmaxf(s[0], s[1]), fmaxf(s[2], s[3]));
  top = fmaxf(r->top, mla_mfma_max4(top));
  const float base = top == MLA_NEG_INF ? 0.0f : top;
  const float keep = MLA_EXP2((r->top - base) * MLA_LOG2E);
  MLA_UNROLL
  for (int i = 0; i < 4; i++) s[i] = MLA_EXP2((s[i] - base) * MLA_LOG2E);
  r->total = r->total * keep + ((s[0] + s[1]) + (s[2] + s[3]));
  r->top = top;
  /* The maximum seldom rises once some keys are seen. */
  if (MLA_ANY_LANE(keep != 1.0f)) {
    MLA_UNROLL
    for (int i = 0; i < MLA_MFMA_DV / 16; i++) acc[i] *= keep;
  }
  return mla_u32x2{mla_mfma_pair<DT>(s[0], s[1]),
                   mla_mfma_pair<DT>(s[2], s[3])};
}

/* Of tile 4q + i, register r: column 64q + 16g + 4r + i. */
MLA_DEV void mla_mfma_write(const mla_attend_args &a, const mla_mfma_row &r,
                            int split, const mla_mfma_sums &sums, float lift,
                            const mla_f32x4 *acc) {
  const float total = mla_mfma_sum4(sums.total);
  if (!r.active) return;
  const int g = MLA_LANE / 16;
  const int64_t row = ((int64_t)r.token * a.heads + r.head) * a.splits + split;
  const int empty = sums.top == MLA_NEG_INF;
  if (g == 0) a.part_lse[row] = empty ? MLA_NEG_INF : sums.top + logf(total);
  if (empty) return; /* nobody reads a part whose lse is infinite */
  const float inverse = 1.0f / (total * lift);
  mla_f32x4 *to = (mla_f32x4 *)(a.part_out + row * MLA_MFMA_DV);
  MLA_UNROLL
  for (int q = 0; q < MLA_MFMA_DV / 64; q++) {
    MLA_UNROLL
    for (int k = 0; k < 4; k++)
      to[16 * q + 4 * g + k] = mla_f32x4{acc[4 * q][k], acc[4 * q + 1][k],
                                         acc[4 * q + 2][k], acc[4 * q + 3][k]} *
                               inverse;
  }
}

/* A block's rows over keys lo to hi; from: where its keys are, for this lane's
   row (mla_mfma_paged, or a list). */
template <int DT, int KEYS, class FROM>
MLA_DEV void mla_mfma_attend(const mla_attend_args &a, const FROM &from,
                             const mla_mfma_work &w, const mla_mfma_row &r,
                             int heads, int lo, int hi, int split) {
  MLA_SHARED_TILE(mla_u32x4, tile, MLA_MFMA_KEYS, MLA_MFMA_STRIDE);
  MLA_SHARED_TILE(mla_u32x4, rest, MLA_MFMA_QUADS - MLA_MFMA_HELD,
                  MLA_MFMA_THREADS);
  MLA_SHARED_TILE(int, live, 1, MLA_MFMA_KEYS);
  const int wave_has_rows = w.first + MLA_WAVE_ID * 16 < w.queries * a.heads;
  const mla_u32x4 zero = {0, 0, 0, 0};
  mla_u32x4 q[MLA_MFMA_HELD];
  mla_mfma_loaded<KEYS> next;
  mla_f32x4 acc[MLA_MFMA_DV / 16];
  mla_mfma_sums sums = {MLA_NEG_INF, 0};
  const mla_u32x4 *row =
      mla_mfma_chunks(a.q, r.token * a.q_token + r.head * a.q_head);
  MLA_UNROLL
  for (int c = 0; c < MLA_MFMA_QUADS; c++) {
    const mla_u32x4 chunk = r.active ? row[4 * c + MLA_LANE / 16] : zero;
    if (c < MLA_MFMA_HELD)
      q[c] = chunk;
    else
      rest[c - MLA_MFMA_HELD][MLA_TID] = chunk;
  }
  MLA_UNROLL
  for (int i = 0; i < MLA_MFMA_DV / 16; i++) acc[i] = mla_f32x4{0, 0, 0, 0};
  const int own = MLA_TID / 16;
  const unsigned char *key = NULL;
  if (lo < hi) mla_mfma_take(key = mla_mfma_key_at(a, from, lo + own), &next);
  for (int j0 = lo; j0 < hi; j0 += MLA_MFMA_KEYS) {
    MLA_BARRIER();
    mla_mfma_keep<DT, KEYS>(tile, next, a.k_entry.one);
    if (FROM::LISTED && MLA_TID % 16 == 0) live[0][own] = key != NULL;
    MLA_BARRIER();
    if (j0 + MLA_MFMA_KEYS < hi)
      mla_mfma_take(key = mla_mfma_key_at(a, from, j0 + MLA_MFMA_KEYS + own),
                    &next);
    if (!wave_has_rows || !mla_mfma_some(from, live[0])) continue;
    mla_f32x4 s = mla_mfma_scores<DT>(tile, q, rest) * a.scale;
    mla_mfma_hide(from, live[0], j0, &s);
    const mla_u32x2 p = mla_mfma_softmax<DT>(&sums, s, acc);
    mla_mfma_values<DT>(tile, p, acc);
  }
  if (!wave_has_rows) return;
  MLA_FORGET(heads); /* and its reciprocal */
  mla_mfma_write(a, mla_mfma_row_of(a, w, heads, MLA_THREAD_AGAIN()), split,
                 sums, DT == MLA_F16 ? MLA_MFMA_F16_LIFT : 1.0f, acc);
}

/* Grid: x request x group of rows, y split. */
template <int DT, int KEYS>
MLA_TWO_WAVES MLA_KERNEL mla_decode_mfma(mla_attend_args a, int groups) {
  mla_mfma_work w;
  w.request = (int)blockIdx.x / groups;
  w.first = (int)blockIdx.x % groups * MLA_MFMA_ROWS;
  w.begin = a.start[w.request * a.start_step];
  w.queries = a.start[(w.request + 1) * a.start_step] - w.begin;
  w.seq = a.seq_lens[w.request * a.seq_lens_step];
  if (w.first >= w.queries * a.heads) return;
  const int split = (int)blockIdx.y;
  const int per = mla_mfma_split_keys(w.seq, a.splits);
  const int lo = split * per, hi = w.seq - lo < per ? w.seq : lo + per;
  const mla_mfma_row r = mla_mfma_row_of(a, w, a.heads, MLA_TID);
  const mla_mfma_paged from = {w.request, hi, r.visible < hi ? r.visible : hi};
  mla_mfma_attend<DT, KEYS>(a, from, w, r, a.heads, lo, hi, split);
}

#endif
