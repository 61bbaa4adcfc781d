/*
 * mla_prefill_mma_sm80.h - prefill's attention by matrix products of warps:
 * bf16 or f16, keys of 128 + 64 columns, values of 128, up-projected before
 * (mla_upproject_mma_sm80.h).
 *
 * A block serves 128 query rows of a request and head, a warp 16 of them, over
 * the keys of a part, 64 a stage, two stages. A warp keeps its rows of q in
 * registers; scores as they come out of the first product are, rounded, in the
 * right registers for the second.
 */
#ifndef MLA_PREFILL_MMA_SM80_H
#define MLA_PREFILL_MMA_SM80_H

#include "gpu_merge.h"
#include "mla_upproject_mma_sm80.h"

enum {
  SM80_PREFILL_STEPS = MLA_PREFILL_DK / 16,
  SM80_PREFILL_K_STRIDE = MLA_PREFILL_DK / 8 + 1,
  SM80_PREFILL_V_STRIDE = MLA_PREFILL_DV / 8 + 1,
  SM80_PREFILL_V_AT = SM80_PREFILL_KEYS * SM80_PREFILL_K_STRIDE,
  SM80_PREFILL_STAGE =
      SM80_PREFILL_V_AT + SM80_PREFILL_KEYS * SM80_PREFILL_V_STRIDE,
  /* A stage, then the other, where q lies before it is used. */
  SM80_PREFILL_BYTES =
      (SM80_PREFILL_STAGE + MLA_PREFILL_ROWS * SM80_PREFILL_K_STRIDE) * 16,
  /* Floats of a row on its way out, off the others' banks. */
  SM80_PREFILL_OUT = MLA_PREFILL_DV + 8,
  SM80_PREFILL_PARTS = MLA_PREFILL_DV / 16, /* of a row's sums: 16 columns */
  /* A row's sums between parts: acc, then four totals and the maximum. */
  SM80_PREFILL_KEPT = MLA_PREFILL_DV + 8
};

/* Two rows of a lane, g and g + 8 of its warp's: the softmax so far, in log2;
   total: of this lane's keys; acc[][4n + 2h + i]: row h, column 8n + 2t + i. */
typedef struct sm80_prefill_sums {
  float top[2], total[2];
  float acc[SM80_PREFILL_PARTS][8];
} sm80_prefill_sums;

typedef struct sm80_prefill_row {
  int active, token, limit; /* it sees the keys of the part below the limit */
} sm80_prefill_row;

/* Four threads bring a key, its rope part and its value. */
MLA_DEV void sm80_prefill_bring(const mla_prefill_args &a, int head, int slot,
                                sm80_chunk *stage) {
  const int row = MLA_TID / 4, part = MLA_TID % 4;
  const int64_t at = (head * a.slots + slot + row) * MLA_PREFILL_DV + 8 * part;
  const uint16_t *rope =
      a.latents + (slot + row) * a.width + a.latent + 8 * part;
  sm80_chunk *key = stage + row * SM80_PREFILL_K_STRIDE + part;
  sm80_chunk *value =
      stage + SM80_PREFILL_V_AT + row * SM80_PREFILL_V_STRIDE + part;
  SM80_UNROLL
  for (int i = 0; i < MLA_PREFILL_DV / 32; i++) {
    sm80_bring(key + 4 * i, a.k + at + 32 * i, 8, 1);
    sm80_bring(value + 4 * i, a.v + at + 32 * i, 8, 1);
  }
  SM80_UNROLL
  for (int i = 0; i < MLA_PREFILL_ROPE / 32; i++)
    sm80_bring(key + MLA_PREFILL_DV / 8 + 4 * i, rope + 32 * i, 8, 1);
}

/* The block's rows of q into shared memory; those that are not are zeros. */
MLA_DEV void sm80_prefill_bring_q(const mla_prefill_args &a,
                                  const mla_prefill_keys &k, int first,
                                  int head, sm80_chunk *to) {
  for (int row = MLA_TID / 8; row < MLA_PREFILL_ROWS;
       row += MLA_PREFILL_THREADS / 8) {
    const int active = first + row < k.queries;
    const uint16_t *from = (const uint16_t *)a.q;
    if (active) from += (k.begin + first + row) * a.q_token + head * a.q_head;
    for (int c = MLA_TID % 8; c < MLA_PREFILL_DK / 8; c += 8)
      sm80_bring(to + row * SM80_PREFILL_K_STRIDE + c, from + 8 * c,
                 active ? 8 : 0, a.q_whole);
  }
}

template <int DT>
MLA_DEV void sm80_prefill_scores(const sm80_chunk *keys,
                                 const uint32_t (&q)[SM80_PREFILL_STEPS][4],
                                 float (&s)[SM80_PREFILL_KEYS / 8][4]) {
  SM80_UNROLL
  for (int n = 0; n < SM80_PREFILL_KEYS / 8; n++) {
    SM80_UNROLL
    for (int i = 0; i < 4; i++) s[n][i] = 0;
  }
  SM80_UNROLL
  for (int k = 0; k < SM80_PREFILL_STEPS; k++) {
    SM80_UNROLL
    for (int n = 0; n < SM80_PREFILL_KEYS / 8; n += 2) {
      uint32_t b[4];
      SM80_LOAD4(sm80_b_row(keys, SM80_PREFILL_K_STRIDE, 8 * n, 16 * k), b);
      SM80_MMA(DT, q[k], &b[0], s[n]);
      SM80_MMA(DT, q[k], &b[2], s[n + 1]);
    }
  }
}

/* Of tile j0.. what a row does not see. */
MLA_DEV void sm80_prefill_hide(const sm80_prefill_row *row, int j0,
                               float (&s)[SM80_PREFILL_KEYS / 8][4]) {
  const int first = j0 + MLA_LANE % 4 * 2;
  SM80_UNROLL
  for (int n = 0; n < SM80_PREFILL_KEYS / 8; n++) {
    SM80_UNROLL
    for (int i = 0; i < 4; i++)
      if (first + 8 * n + i % 2 >= row[i / 2].limit) s[n][i] = MLA_NEG_INF;
  }
}

/* Scores of row h into probabilities; what earlier sums are scaled by. */
template <int DT>
MLA_DEV float sm80_prefill_softmax(float scale, int h, sm80_prefill_sums *r,
                                   float (&s)[SM80_PREFILL_KEYS / 8][4]) {
  float top = MLA_NEG_INF;
  SM80_UNROLL
  for (int n = 0; n < SM80_PREFILL_KEYS / 8; n++)
    top = fmaxf(top, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
  top = fmaxf(sm80_max4(top) * scale, r->top[h]);
  const float base = top == MLA_NEG_INF ? 0.0f : top;
  const float keep = SM80_EXP2(r->top[h] - base);
  const float add = sm80_lift<DT>() - base;
  float total = 0;
  SM80_UNROLL
  for (int n = 0; n < SM80_PREFILL_KEYS / 8; n++) {
    SM80_UNROLL
    for (int i = 2 * h; i < 2 * h + 2; i++) {
      s[n][i] = SM80_EXP2(s[n][i] * scale + add);
      total += s[n][i];
    }
  }
  r->total[h] = r->total[h] * keep + total;
  r->top[h] = top;
  return keep;
}

/* The maximum seldom rises once some keys are seen. */
MLA_DEV void sm80_prefill_rescale(const float *keep, sm80_prefill_sums *r) {
  if (!SM80_ANY_LANE(keep[0] != 1.0f || keep[1] != 1.0f)) return;
  SM80_UNROLL
  for (int d = 0; d < SM80_PREFILL_PARTS; d++) {
    SM80_UNROLL
    for (int i = 0; i < 8; i++) r->acc[d][i] *= keep[i / 2 % 2];
  }
}

template <int DT>
MLA_DEV void sm80_prefill_values(const sm80_chunk *values,
                                 const float (&s)[SM80_PREFILL_KEYS / 8][4],
                                 sm80_prefill_sums *r) {
  SM80_UNROLL
  for (int j = 0; j < SM80_PREFILL_KEYS / 16; j++) {
    uint32_t p[4];
    SM80_UNROLL
    for (int i = 0; i < 4; i++)
      p[i] = sm80_pair<DT>(s[2 * j + i / 2][i % 2 * 2],
                           s[2 * j + i / 2][i % 2 * 2 + 1]);
    SM80_UNROLL
    for (int d = 0; d < SM80_PREFILL_PARTS; d++) {
      uint32_t b[4];
      SM80_LOAD4_TURNED(
          sm80_turned_row(values, SM80_PREFILL_V_STRIDE, 16 * j, 16 * d), b);
      SM80_MMA(DT, p, &b[0], &r->acc[d][0]);
      SM80_MMA(DT, p, &b[2], &r->acc[d][4]);
    }
  }
}

/* ------------------------------------------------------------------ writing
 */

MLA_DEV int sm80_prefill_column(int d, int n) {
  return 16 * d + 8 * n + MLA_LANE % 4 * 2;
}

/* The warp's rows into its part of shared memory, to be written by whole
   rows. */
MLA_DEV void sm80_prefill_stage_out(float *to, const sm80_prefill_sums &r) {
  SM80_UNROLL
  for (int d = 0; d < SM80_PREFILL_PARTS; d++) {
    SM80_UNROLL
    for (int i = 0; i < 8; i += 2)
      *(sm80_two *)(to + (MLA_LANE / 4 + i / 2 % 2 * 8) * SM80_PREFILL_OUT +
                    sm80_prefill_column(d, i / 4)) =
          sm80_two{{r.acc[d][i], r.acc[d][i + 1]}};
  }
  MLA_WAVE_SYNC();
}

MLA_DEV float *sm80_prefill_kept(const mla_prefill_args &a, int token,
                                 int head) {
  return a.kept + ((int64_t)token * a.heads + head) * SM80_PREFILL_KEPT;
}

MLA_DEV void sm80_prefill_restore(const float *from, int h,
                                  sm80_prefill_sums *r) {
  SM80_UNROLL
  for (int d = 0; d < SM80_PREFILL_PARTS; d++) {
    SM80_UNROLL
    for (int i = 0; i < 4; i++)
      r->acc[d][i / 2 * 4 + 2 * h + i % 2] =
          from[sm80_prefill_column(d, i / 2) + i % 2];
  }
  r->total[h] = from[MLA_PREFILL_DV + MLA_LANE % 4];
  r->top[h] = from[MLA_PREFILL_DV + 4];
}

/* Four columns of a row a lane. */
MLA_DEV void sm80_prefill_save(float *to, const float *from) {
  *(sm80_four *)(to + 4 * MLA_LANE) = *(const sm80_four *)(from + 4 * MLA_LANE);
}

/* What a row is multiplied by; its lse is written. All lanes of the warp. */
template <int DT>
MLA_DEV float sm80_prefill_end(const mla_prefill_args &a, int head,
                               const sm80_prefill_row &row, int h,
                               const sm80_prefill_sums &r) {
  const int empty = r.top[h] == MLA_NEG_INF;
  const float total = sm80_sum4(r.total[h]);
  const float lse2 =
      empty ? MLA_NEG_INF : r.top[h] + log2f(total) - sm80_lift<DT>();
  float inverse = empty ? 0.0f : 1.0f / total;
  if (a.sink && !empty)
    inverse *=
        1.0f /
        (1.0f + SM80_EXP2(a.sink[head * a.sink_step] * MLA_LOG2E - lse2));
  if (a.lse && row.active && MLA_LANE % 4 == 0)
    a.lse[row.token * a.lse_token + head * a.lse_head] =
        a.lse_base2 || empty ? lse2 : lse2 * MLA_LN2;
  return inverse;
}

/* The warp's rows, from shared memory; head: of this launch. */
template <int DT>
MLA_DEV void sm80_prefill_write(const mla_prefill_args &a,
                                const mla_prefill_keys &k, int first, int head,
                                const sm80_prefill_row *row,
                                const sm80_prefill_sums &r, const float *from) {
  const float upper = sm80_prefill_end<DT>(a, a.head0 + head, row[0], 0, r);
  const float lower = sm80_prefill_end<DT>(a, a.head0 + head, row[1], 1, r);
  for (int n = 0; n < 16; n++) {
    const float factor = MLA_SHFL(n < 8 ? upper : lower, n % 8 * 4);
    if (first + n >= k.queries) continue;
    const sm80_four x =
        *(const sm80_four *)(from + n * SM80_PREFILL_OUT + 4 * MLA_LANE);
    float v[4];
    for (int i = 0; i < 4; i++) v[i] = x.v[i] * factor;
    sm80_put4(a.out, a.out_dtype,
              (k.begin + first + n) * a.o_token + (a.head0 + head) * a.o_head +
                  4 * MLA_LANE,
              4, v);
  }
}

/* The same between parts, with what the softmax needs to go on. */
MLA_DEV void sm80_prefill_keep(const mla_prefill_args &a,
                               const mla_prefill_keys &k, int first, int head,
                               const sm80_prefill_row *row,
                               const sm80_prefill_sums &r, const float *from) {
  for (int n = 0; n < 16 && first + n < k.queries; n++)
    sm80_prefill_save(sm80_prefill_kept(a, k.begin + first + n, head),
                      from + n * SM80_PREFILL_OUT);
  SM80_UNROLL
  for (int h = 0; h < 2; h++) {
    if (!row[h].active) continue;
    float *to = sm80_prefill_kept(a, row[h].token, head) + MLA_PREFILL_DV;
    to[MLA_LANE % 4] = r.total[h];
    if (MLA_LANE % 4 == 0) to[4] = r.top[h];
  }
}

/* Grid: x 128 rows of a request, the last first; y head. */
template <int DT>
SM80_KERNEL(MLA_PREFILL_THREADS, 1)
mla_prefill_mma(mla_prefill_args a, mla_prefill_part p) {
  MLA_DYNAMIC_SHARED(sm80_chunk, sm80_pool);
  const int unit = a.tiles - 1 - (int)blockIdx.x, head = (int)blockIdx.y;
  const int b = mla_prefill_request(p, MLA_PREFILL_ROWS, unit);
  const mla_prefill_keys k = mla_prefill_keys_of<SM80_PREFILL_KEYS>(p, b);
  const int first =
      (unit - (k.begin / MLA_PREFILL_ROWS + b)) * MLA_PREFILL_ROWS;
  if (first >= k.queries || (p.chunk && k.length == 0)) return;
  const int from = first + MLA_WAVE_ID * 16;
  const int hi = mla_prefill_limit(a, p, k, first + MLA_PREFILL_ROWS - 1);
  const int warp_hi =
      from < k.queries ? mla_prefill_limit(a, p, k, from + 15) : 0;
  const int warp_all = mla_prefill_limit(a, p, k, from);
  const int restores = k.context > 0 && (!p.chunk || p.first > 0);
  sm80_prefill_row row[2];
  sm80_prefill_sums sums = {};
  uint32_t q[SM80_PREFILL_STEPS][4];
  SM80_UNROLL
  for (int h = 0; h < 2; h++) {
    const int own = from + MLA_LANE / 4 + 8 * h;
    row[h].active = own < k.queries;
    row[h].token = k.begin + own;
    row[h].limit = mla_prefill_limit(a, p, k, own);
    sums.top[h] = MLA_NEG_INF;
    if (row[h].active && restores)
      sm80_prefill_restore(sm80_prefill_kept(a, row[h].token, head), h, &sums);
  }
  sm80_chunk *now = sm80_pool, *next = sm80_pool + SM80_PREFILL_STAGE;
  sm80_prefill_bring_q(a, k, first, a.head0 + head, next);
  sm80_prefill_bring(a, head, k.base, now);
  SM80_COMMIT();
  SM80_WAIT(0);
  MLA_BARRIER();
  SM80_UNROLL
  for (int i = 0; i < SM80_PREFILL_STEPS; i++)
    SM80_LOAD4(sm80_a_row(next, SM80_PREFILL_K_STRIDE, from - first, 16 * i),
               q[i]);
  for (int j0 = 0; j0 < hi; j0 += SM80_PREFILL_KEYS) {
    SM80_WAIT(0);
    MLA_BARRIER();
    if (j0 + SM80_PREFILL_KEYS < hi)
      sm80_prefill_bring(a, head, k.base + j0 + SM80_PREFILL_KEYS, next);
    SM80_COMMIT();
    if (j0 < warp_hi) {
      float s[SM80_PREFILL_KEYS / 8][4], keep[2];
      sm80_prefill_scores<DT>(now, q, s);
      if (j0 + SM80_PREFILL_KEYS > warp_all) sm80_prefill_hide(row, j0, s);
      SM80_UNROLL
      for (int h = 0; h < 2; h++)
        keep[h] = sm80_prefill_softmax<DT>(a.scale, h, &sums, s);
      sm80_prefill_rescale(keep, &sums);
      sm80_prefill_values<DT>(now + SM80_PREFILL_V_AT, s, &sums);
    }
    sm80_chunk *used = now;
    now = next;
    next = used;
  }
  SM80_WAIT(0);
  MLA_BARRIER();
  if (from >= k.queries) return;
  float *out = (float *)sm80_pool + (from - first) * SM80_PREFILL_OUT;
  sm80_prefill_stage_out(out, sums);
  if (p.chunk)
    sm80_prefill_keep(a, k, from, head, row, sums, out);
  else
    sm80_prefill_write<DT>(a, k, from, head, row, sums, out);
}

#endif
