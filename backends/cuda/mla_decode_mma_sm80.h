/*
 * mla_decode_mma_sm80.h - dense decode by matrix products of warps: bf16 or
 * f16, keys of up to 576 columns whose first, up to 512, are the values.
 *
 * A block serves 16, 32 or 64 rows of one request, a row being a (query token,
 * head) pair, over a range of its keys. Keys pass through shared memory once,
 * 32 a stage, as K and as V; while a stage is multiplied the next ones are on
 * their way there. Scores: a warp takes 16 rows and 8 keys (16 of 64 rows'
 * blocks). Values: a warp takes all keys, 16 or 32 rows and its share of the
 * columns, so that what it reads of V serves two products. Between the two,
 * maxima and probabilities go through shared memory.
 *
 * Whatever the block's rows, a row's sums are taken in the same order: its
 * bits follow from its request's data and the split rule alone.
 */
#ifndef MLA_DECODE_MMA_SM80_H
#define MLA_DECODE_MMA_SM80_H

#include "gpu_attend.h"
#include "gpu_merge.h"
#include "sm80_mma.h"

enum {
  SM80_THREADS = 256,
  SM80_WARP = 32,
  SM80_KEYS = 32, /* of a stage */
  SM80_P_STRIDE = SM80_KEYS / 8 + 1,
  SM80_SUMS = SM80_KEYS / 8, /* of a row: keys 8i..8i + 7 of every stage */
  SM80_HALVES = SM80_THREADS * 2 * 16, /* bytes */
  SM80_MOST_DK = 576,
  SM80_MOST_DV = 512
};

typedef struct mla_sm80_decode {
  mla_attend_args a; /* strides in elements, of 16 bits */
  int groups;        /* of rows, a request */
  int stages;        /* 2 to 4 */
  int least;         /* keys of a split: 0, mla_split_keys() says */
  int q_whole, k_whole;
  int direct;   /* one split: out is written, not parts */
  float scale2; /* of scores, in log2 */
  mla_merge_args m;
} mla_sm80_decode;

/* What a block of so many rows has of warps: for scores SM80_GROUPS of keys
   by tiles of 16 rows, for values tiles by shares of the columns. */
template <int ROWS>
struct sm80_shape {
  enum {
    TILES = ROWS / 16,
    GROUPS = TILES == 4 ? 2 : 4,
    KEY_TILES = SM80_SUMS / GROUPS, /* of 8 keys, a warp */
    PAIR = TILES == 1 ? 1 : 2,      /* tiles of rows a warp has of values */
    SHARES = TILES == 4 ? 4 : 8,
    STEPS = SM80_MOST_DV / 16 / SHARES /* of 16 columns, a warp */
  };
};

/* The block's shared memory; floats[]: tops [GROUPS][ROWS], keeps [ROWS],
   sums [SM80_SUMS][ROWS]. */
typedef struct sm80_places {
  sm80_chunk *q, *keys, *p;
  float *tops, *keeps, *sums;
  sm80_four *halves; /* of 64 rows: scores on their way to another warp */
  int stride, stage; /* chunks of a row, of a stage */
} sm80_places;

/* Chunks that hold dk columns in whole steps of 32. */
#define SM80_CHUNKS(dk) (((dk) + 31) / 32 * 4)

template <int ROWS>
MLA_DEV sm80_places sm80_places_of(sm80_chunk *pool, int dk, int stages) {
  sm80_places s;
  s.stride = SM80_STRIDE(SM80_CHUNKS(dk));
  s.stage = SM80_KEYS * s.stride;
  s.q = pool;
  s.keys = s.q + ROWS * s.stride;
  s.p = s.keys + stages * s.stage;
  s.tops = (float *)(s.p + ROWS * SM80_P_STRIDE);
  s.keeps = s.tops + sm80_shape<ROWS>::GROUPS * ROWS;
  s.sums = s.keeps + ROWS;
  s.halves = (sm80_four *)(s.sums + SM80_SUMS * ROWS);
  return s;
}

/* What a block does, and which row is which. */
typedef struct sm80_work {
  int request, first, begin, queries, seq;
  int split, lo, hi;
} sm80_work;
typedef struct sm80_row {
  int active, token, head, limit; /* limit: it sees the keys below */
} sm80_row;

MLA_DEV sm80_work sm80_work_of(const mla_sm80_decode &x, int rows) {
  const mla_attend_args &a = x.a;
  sm80_work w;
  w.request = (int)blockIdx.x / x.groups;
  w.first = (int)blockIdx.x % x.groups * rows;
  w.begin = a.start[w.request * a.start_step];
  w.queries = a.start[(w.request + 1) * a.start_step] - w.begin;
  w.seq = a.seq_lens[w.request * a.seq_lens_step];
  w.split = (int)blockIdx.y;
  int per = x.least ? (w.seq + a.splits - 1) / a.splits
                    : mla_split_keys(w.seq, a.splits);
  if (x.least) {
    per = (per + SM80_KEYS - 1) / SM80_KEYS * SM80_KEYS;
    if (per < x.least) per = x.least;
  }
  const int64_t lo = (int64_t)w.split * per;
  w.lo = lo < w.seq ? (int)lo : w.seq;
  w.hi = w.seq - w.lo < per ? w.seq : w.lo + per;
  return w;
}

MLA_DEV sm80_row sm80_row_of(const mla_sm80_decode &x, const sm80_work &w,
                             int row) {
  sm80_row r = {0, 0, 0, 0};
  const int query = (w.first + row) / x.a.heads;
  r.head = (w.first + row) % x.a.heads;
  r.active = query < w.queries;
  if (!r.active) return r;
  r.token = w.begin + query;
  r.limit = x.a.causal ? w.seq - w.queries + query + 1 : w.seq;
  if (r.limit > w.hi) r.limit = w.hi;
  return r;
}

/* ----------------------------------------------------------------- bringing
 */

/* The key that a thread brings an eighth of, and its page, asked for a stage
   before it is needed. */
typedef struct sm80_next {
  int key, page, offset;
} sm80_next;

MLA_DEV sm80_next sm80_look_up(const mla_sm80_decode &x, const sm80_work &w,
                               int key) {
  sm80_next n = {key, 0, 0};
  if (key >= w.hi) return n;
  const int block = key / x.a.block_size;
  n.offset = key - block * x.a.block_size;
  n.page = x.a.table[w.request * x.a.table_row + block];
  return n;
}

/* A stage of keys; behind the last key and the last column are zeros. */
MLA_DEV void sm80_bring_keys(const mla_sm80_decode &x, const sm80_work &w,
                             const sm80_places &s, int dk, int stage,
                             sm80_next *next) {
  const int part = MLA_TID % 8, live = next->key < w.hi;
  const uint16_t *from = (const uint16_t *)x.a.cache +
                         next->page * x.a.k_block + next->offset * x.a.k_row;
  sm80_chunk *to = s.keys + stage * s.stage + (MLA_TID / 8) * s.stride + part;
  if (!live) from = (const uint16_t *)x.a.cache;
  for (int c = part; c < SM80_CHUNKS(dk); c += 8, to += 8)
    sm80_bring(to, from + 8 * c, live ? dk - 8 * c : 0, x.k_whole);
  *next = sm80_look_up(x, w, next->key + SM80_KEYS);
}

template <int ROWS>
MLA_DEV void sm80_bring_q(const mla_sm80_decode &x, const sm80_work &w,
                          const sm80_places &s, int dk) {
  for (int row = MLA_TID / 8; row < ROWS; row += SM80_THREADS / 8) {
    const sm80_row r = sm80_row_of(x, w, row);
    const uint16_t *from =
        (const uint16_t *)x.a.q + r.token * x.a.q_token + r.head * x.a.q_head;
    if (!r.active) from = (const uint16_t *)x.a.q;
    for (int c = MLA_TID % 8; c < SM80_CHUNKS(dk); c += 8)
      sm80_bring(s.q + row * s.stride + c, from + 8 * c,
                 r.active ? dk - 8 * c : 0, x.q_whole);
  }
}

/* All but the stages that are not needed yet have come. */
MLA_DEV void sm80_wait_stages(int stages) {
  if (stages == 2)
    SM80_WAIT(0);
  else if (stages == 3)
    SM80_WAIT(1);
  else
    SM80_WAIT(2);
}

/* ---------------------------------------------------------------- computing
 */

/* Steps of 16 columns that the first of two sums takes: an even number. What
   a score is does not depend on who computes it. */
#define SM80_HALF(steps) (((steps) / 2 + 1) / 2 * 2)

/* Of one row tile and 8 keys, both halves. */
template <int DT>
MLA_DEV void sm80_scores(const sm80_chunk *q, const sm80_chunk *keys, int steps,
                         float (&s)[1][4]) {
  const int half = SM80_HALF(steps);
  float sum[2][4] = {};
  SM80_UNROLL
  for (int k = 0; k < half; k += 2) {
    SM80_UNROLL
    for (int h = 0; h < 2; h++) {
      const int at = 2 * (k + h * half);
      if (k + h * half >= steps) continue;
      uint32_t a[2][4], b[4];
      SM80_LOAD4(q + at, a[0]);
      SM80_LOAD4(q + at + 2, a[1]);
      SM80_LOAD4(keys + at, b);
      SM80_MMA(DT, a[0], &b[0], sum[h]);
      SM80_MMA(DT, a[1], &b[2], sum[h]);
    }
  }
  SM80_UNROLL
  for (int i = 0; i < 4; i++) s[0][i] = sum[0][i] + sum[1][i];
}

/* Of two row tiles and 16 keys, so many steps of 16 columns. */
template <int DT>
MLA_DEV void sm80_half_scores(const sm80_chunk *q, const sm80_chunk *keys,
                              int stride, int steps, float (&s)[2][2][4]) {
  SM80_UNROLL
  for (int i = 0; i < 16; i++) s[i / 8][i / 4 % 2][i % 4] = 0;
  SM80_UNROLL
  for (int k = 0; k < steps; k++) {
    uint32_t a[2][4], b[4];
    SM80_LOAD4(q + 2 * k, a[0]);
    SM80_LOAD4(q + 16 * stride + 2 * k, a[1]);
    SM80_LOAD4(keys + 2 * k, b);
    SM80_UNROLL
    for (int m = 0; m < 2; m++) {
      SM80_MMA(DT, a[m], &b[0], s[m][0]);
      SM80_MMA(DT, a[m], &b[2], s[m][1]);
    }
  }
}

/* Of two row tiles one is this warp's, the other's sums it gives away. */
MLA_DEV void sm80_give(sm80_four *others, int own, const float (&s)[2][2][4]) {
  SM80_UNROLL
  for (int n = 0; n < 2; n++) {
    sm80_four v;
    SM80_UNROLL
    for (int i = 0; i < 4; i++) v.v[i] = own ? s[0][n][i] : s[1][n][i];
    others[n * SM80_WARP + MLA_LANE] = v;
  }
}

MLA_DEV void sm80_take(const sm80_four *mine, int own,
                       const float (&s)[2][2][4], float (&score)[2][4]) {
  SM80_UNROLL
  for (int n = 0; n < 2; n++) {
    const sm80_four v = mine[n * SM80_WARP + MLA_LANE];
    SM80_UNROLL
    for (int i = 0; i < 4; i++)
      score[n][i] = (own ? s[1][n][i] : s[0][n][i]) + v.v[i];
  }
}

/* Scores of a warp's rows and keys; all warps of the block together. */
template <int DT>
MLA_DEV void sm80_score_tile(const sm80_places &s, const sm80_chunk *keys,
                             int steps, int row0, int key, int scores,
                             float (&score)[1][4]) {
  if (scores)
    sm80_scores<DT>(sm80_a_row(s.q, s.stride, row0, 0),
                    sm80_b8_row(keys, s.stride, key, 0), steps, score);
}

template <int DT>
MLA_DEV void sm80_score_tile(const sm80_places &s, const sm80_chunk *keys,
                             int steps, int row0, int key, int,
                             float (&score)[2][4]) {
  const int own = row0 / 16 % 2, half = SM80_HALF(steps);
  const sm80_chunk *q = sm80_a_row(s.q, s.stride, row0 / 32 * 32, 0);
  const sm80_chunk *k = sm80_b_row(keys, s.stride, key, 0);
  float sum[2][2][4];
  sm80_half_scores<DT>(q + own * 2 * half, k + own * 2 * half, s.stride,
                       own ? steps - half : half, sum);
  sm80_give(s.halves + 2 * SM80_WARP * (MLA_WAVE_ID ^ 1), own, sum);
  MLA_BARRIER();
  sm80_take(s.halves + 2 * SM80_WARP * MLA_WAVE_ID, own, sum, score);
}

/* Two rows of a lane: row g and row g + 8 of its warp's tile. */
template <int N>
struct sm80_sums {
  float top[2], total[2][N];
  int limit[2];
};

/* Scaled and masked; the maxima of the warp's keys into shared memory. */
template <int N>
MLA_DEV void sm80_mask(float scale, int key0, const sm80_sums<N> &r,
                       float (&s)[N][4], float *tops) {
  SM80_UNROLL
  for (int h = 0; h < 2; h++) {
    float top = MLA_NEG_INF;
    SM80_UNROLL
    for (int n = 0; n < N; n++) {
      SM80_UNROLL
      for (int i = 0; i < 2; i++) {
        const int key = key0 + 8 * n + MLA_LANE % 4 * 2 + i;
        float *v = &s[n][2 * h + i];
        *v = key < r.limit[h] ? *v * scale : MLA_NEG_INF;
        top = fmaxf(top, *v);
      }
    }
    top = sm80_max4(top);
    if (MLA_LANE % 4 == 0) tops[MLA_LANE / 4 + 8 * h] = top;
  }
}

/* Probabilities into shared memory; keeps: what earlier sums are scaled by. */
template <int DT, int ROWS>
MLA_DEV void sm80_softmax(
    const sm80_places &s, int row0, int group,
    sm80_sums<sm80_shape<ROWS>::KEY_TILES> *r,
    const float (&score)[sm80_shape<ROWS>::KEY_TILES][4]) {
  typedef sm80_shape<ROWS> shape;
  SM80_UNROLL
  for (int h = 0; h < 2; h++) {
    const int row = row0 + MLA_LANE / 4 + 8 * h;
    float top = r->top[h];
    SM80_UNROLL
    for (int g = 0; g < shape::GROUPS; g++)
      top = fmaxf(top, s.tops[g * ROWS + row]);
    const float base = top == MLA_NEG_INF ? 0.0f : top;
    const float keep = SM80_EXP2(r->top[h] - base);
    r->top[h] = top;
    if (group == 0 && MLA_LANE % 4 == 0) s.keeps[row] = keep;
    uint32_t *to = (uint32_t *)(s.p + row * SM80_P_STRIDE) + MLA_LANE % 4;
    SM80_UNROLL
    for (int n = 0; n < shape::KEY_TILES; n++) {
      const float low = SM80_EXP2(score[n][2 * h] - base + sm80_lift<DT>());
      const float high =
          SM80_EXP2(score[n][2 * h + 1] - base + sm80_lift<DT>());
      r->total[h][n] = r->total[h][n] * keep + (low + high);
      to[4 * (group * shape::KEY_TILES + n)] = sm80_pair<DT>(low, high);
    }
  }
}

/* acc of a warp: tiles of rows by steps of 16 columns, a step two products
   wide. */
#define SM80_ACC(rows) \
  float(&acc)[sm80_shape<rows>::PAIR][sm80_shape<rows>::STEPS][8]

/* What came before, scaled where a maximum rose: seldom, after some keys. */
template <int ROWS>
MLA_DEV void sm80_rescale(const float *keeps, int row0, SM80_ACC(ROWS)) {
  typedef sm80_shape<ROWS> shape;
  float keep[shape::PAIR][2];
  int rose = 0;
  SM80_UNROLL
  for (int m = 0; m < shape::PAIR; m++) {
    SM80_UNROLL
    for (int h = 0; h < 2; h++) {
      keep[m][h] = keeps[row0 + 16 * m + 8 * h + MLA_LANE / 4];
      rose |= keep[m][h] != 1.0f;
    }
  }
  if (!SM80_ANY_LANE(rose)) return;
  SM80_UNROLL
  for (int m = 0; m < shape::PAIR; m++) {
    SM80_UNROLL
    for (int i = 0; i < shape::STEPS; i++) {
      SM80_UNROLL
      for (int r = 0; r < 8; r++) acc[m][i][r] *= keep[m][r / 2 % 2];
    }
  }
}

/* acc += P V over a stage; `share` and every SHARES-th after it are the
   warp's steps of 16 columns. */
template <int DT, int ROWS>
MLA_DEV void sm80_values(const sm80_places &s, const sm80_chunk *keys, int dv,
                         int row0, int share, SM80_ACC(ROWS)) {
  typedef sm80_shape<ROWS> shape;
  const sm80_chunk *v = sm80_turned_row(keys, s.stride, 0, 16 * share);
  SM80_UNROLL
  for (int k = 0; k < SM80_KEYS / 16; k++) {
    uint32_t p[shape::PAIR][4];
    SM80_UNROLL
    for (int m = 0; m < shape::PAIR; m++)
      SM80_LOAD4(sm80_a_row(s.p, SM80_P_STRIDE, row0 + 16 * m, 16 * k), p[m]);
    SM80_UNROLL
    for (int i = 0; i < shape::STEPS; i++) {
      if (16 * (share + i * shape::SHARES) >= dv) continue;
      uint32_t b[4];
      SM80_LOAD4_TURNED(v + 16 * k * s.stride + 2 * shape::SHARES * i, b);
      SM80_UNROLL
      for (int m = 0; m < shape::PAIR; m++) {
        SM80_MMA(DT, p[m], &b[0], &acc[m][i][0]);
        SM80_MMA(DT, p[m], &b[2], &acc[m][i][4]);
      }
    }
  }
}

/* ------------------------------------------------------------------ writing
 */

/* The sums of a row, from shared memory; in log2. */
typedef struct sm80_end {
  int empty;
  float factor, lse2;
} sm80_end;

template <int DT, int ROWS>
MLA_DEV sm80_end sm80_end_of(const sm80_places &s, int row) {
  const float top = s.tops[row];
  float total[SM80_SUMS];
  SM80_UNROLL
  for (int i = 0; i < SM80_SUMS; i++) total[i] = s.sums[i * ROWS + row];
  const float sum = (total[0] + total[1]) + (total[2] + total[3]);
  sm80_end e = {top == MLA_NEG_INF, 0.0f, MLA_NEG_INF};
  if (e.empty) return e;
  e.factor = 1.0f / sum;
  e.lse2 = top + log2f(sum) - sm80_lift<DT>();
  return e;
}

/* Where a row goes, and what it is multiplied by; keep: what a sink leaves of
   it. The bits are those that mla_merge_rows() gives a single part. */
typedef struct sm80_target {
  void *to;
  int dtype, empty;
  int64_t at;
  float factor, keep;
} sm80_target;

/* By a warp together: its first lane writes the lse. */
MLA_DEV sm80_target sm80_target_of(const mla_sm80_decode &x, const sm80_work &w,
                                   const sm80_row &r, const sm80_end &e,
                                   int dv) {
  const float lse = e.empty ? MLA_NEG_INF : e.lse2 * MLA_LN2;
  const int64_t part =
      ((int64_t)r.token * x.a.heads + r.head) * x.a.splits + w.split;
  sm80_target t = {x.a.part_out, MLA_F32, e.empty, part * dv, e.factor, 1.0f};
  if (!x.direct) {
    if (MLA_LANE == 0) x.a.part_lse[part] = lse;
    return t;
  }
  const mla_merge_args &m = x.m;
  t.to = m.out;
  t.dtype = m.out_dtype;
  t.at = r.token * m.o_token + r.head * m.o_head;
  if (m.sink && !e.empty)
    t.keep = 1.0f / (1.0f + expf(m.sink[r.head * m.sink_step] - lse));
  if (m.lse && MLA_LANE == 0)
    m.lse[r.token * m.lse_token + r.head * m.lse_head] =
        m.out_base2 ? lse * MLA_LOG2E : lse;
  return t;
}

/* Floats of a row on its way out: whole steps, and off each other's banks. */
MLA_DEV int sm80_out_stride(int dv) {
  return (dv + 15) / 16 * 16 + 8;
}

/* acc into shared memory, where q and the keys were: to be written by whole
   rows, in a loop that the instruction cache holds. */
template <int ROWS>
MLA_DEV void sm80_stage_out(float *to, int dv, int row0, int share,
                            const SM80_ACC(ROWS)) {
  typedef sm80_shape<ROWS> shape;
  const int stride = sm80_out_stride(dv);
  to += (row0 + MLA_LANE / 4) * stride + 16 * share + MLA_LANE % 4 * 2;
  SM80_UNROLL
  for (int m = 0; m < shape::PAIR; m++) {
    SM80_UNROLL
    for (int i = 0; i < shape::STEPS; i++) {
      if (16 * (share + i * shape::SHARES) >= dv) continue;
      SM80_UNROLL
      for (int r = 0; r < 8; r += 2) {
        const int row = 16 * m + r / 2 % 2 * 8;
        *(sm80_two *)(to + row * stride + 16 * shape::SHARES * i + r / 4 * 8) =
            sm80_two{{acc[m][i][r], acc[m][i][r + 1]}};
      }
    }
  }
}

/* A row by a warp. */
MLA_DEV void sm80_write_row(const sm80_target &t, int dv, const float *from) {
  for (int d = 4 * MLA_LANE; d < dv; d += 4 * MLA_WAVE) {
    const sm80_four x = *(const sm80_four *)(from + d);
    float v[4];
    for (int i = 0; i < 4; i++)
      v[i] = t.empty ? 0.0f : x.v[i] * t.factor * t.keep;
    sm80_put4(t.to, t.dtype, t.at + d, dv - d, v);
  }
}

template <int DT, int ROWS>
MLA_DEV void sm80_write(const mla_sm80_decode &x, const sm80_work &w,
                        const sm80_places &s, int dv) {
  const float *from = (const float *)s.q;
  for (int row = MLA_WAVE_ID; row < ROWS; row += SM80_THREADS / SM80_WARP) {
    const sm80_row r = sm80_row_of(x, w, row);
    if (!r.active) continue;
    const sm80_end e = sm80_end_of<DT, ROWS>(s, row);
    const sm80_target t = sm80_target_of(x, w, r, e, dv);
    /* Nobody reads a part without a key. */
    if (x.direct || !e.empty)
      sm80_write_row(t, dv, from + row * sm80_out_stride(dv));
  }
}

/* ------------------------------------------------------------------- kernel
 */

/* Grid: x request x group of rows, y split. DK, DV: the widths, or 0 for those
   of the arguments. */
template <int DT, int ROWS, int DK, int DV>
SM80_KERNEL(SM80_THREADS, 1)
mla_decode_mma(mla_sm80_decode x) {
  typedef sm80_shape<ROWS> shape;
  MLA_DYNAMIC_SHARED(sm80_chunk, sm80_pool);
  const int dk = DK ? DK : x.a.dk, dv = DV ? DV : x.a.dv;
  const sm80_work w = sm80_work_of(x, ROWS);
  if (w.first >= w.queries * x.a.heads) return;
  const sm80_places s = sm80_places_of<ROWS>(sm80_pool, dk, x.stages);
  const int scores = MLA_WAVE_ID < shape::TILES * shape::GROUPS;
  const int row0 = MLA_WAVE_ID % shape::TILES * 16;
  const int group = MLA_WAVE_ID / shape::TILES;
  const int v_row0 = MLA_WAVE_ID / shape::SHARES * 16 * shape::PAIR;
  const int share = MLA_WAVE_ID % shape::SHARES;
  sm80_sums<shape::KEY_TILES> sums = {};
  float acc[shape::PAIR][shape::STEPS][8] = {};
  SM80_UNROLL
  for (int h = 0; h < 2; h++) {
    sums.top[h] = MLA_NEG_INF;
    sums.limit[h] = sm80_row_of(x, w, row0 + MLA_LANE / 4 + 8 * h).limit;
  }
  sm80_next next = sm80_look_up(x, w, w.lo + MLA_TID / 8);
  sm80_bring_q<ROWS>(x, w, s, dk);
  for (int i = 0; i + 1 < x.stages; i++) {
    if (w.lo + i * SM80_KEYS < w.hi) sm80_bring_keys(x, w, s, dk, i, &next);
    SM80_COMMIT();
  }
  int stage = 0, filled = x.stages - 1;
  for (int j0 = w.lo; j0 < w.hi; j0 += SM80_KEYS) {
    sm80_wait_stages(x.stages);
    MLA_BARRIER();
    if (j0 + (x.stages - 1) * SM80_KEYS < w.hi)
      sm80_bring_keys(x, w, s, dk, filled, &next);
    SM80_COMMIT();
    filled = filled + 1 == x.stages ? 0 : filled + 1;
    const sm80_chunk *keys = s.keys + stage * s.stage;
    stage = stage + 1 == x.stages ? 0 : stage + 1;
    const int key = 8 * group * shape::KEY_TILES;
    float score[shape::KEY_TILES][4];
    sm80_score_tile<DT>(s, keys, SM80_CHUNKS(dk) / 2, row0, key, scores, score);
    if (scores)
      sm80_mask(x.scale2, j0 + key, sums, score, s.tops + group * ROWS + row0);
    MLA_BARRIER();
    if (scores) sm80_softmax<DT, ROWS>(s, row0, group, &sums, score);
    MLA_BARRIER();
    sm80_rescale<ROWS>(s.keeps, v_row0, acc);
    sm80_values<DT, ROWS>(s, keys, dv, v_row0, share, acc);
  }
  SM80_WAIT(0);
  MLA_BARRIER();
  SM80_UNROLL
  for (int h = 0; scores && h < 2; h++) {
    const int row = row0 + MLA_LANE / 4 + 8 * h;
    SM80_UNROLL
    for (int n = 0; n < shape::KEY_TILES; n++) {
      const float total = sm80_sum4(sums.total[h][n]);
      if (MLA_LANE % 4 == 0)
        s.sums[(group * shape::KEY_TILES + n) * ROWS + row] = total;
    }
    if (group == 0 && MLA_LANE % 4 == 0) s.tops[row] = sums.top[h];
  }
  sm80_stage_out<ROWS>((float *)s.q, dv, v_row0, share, acc);
  MLA_BARRIER();
  sm80_write<DT, ROWS>(x, w, s, dv);
}

#endif
