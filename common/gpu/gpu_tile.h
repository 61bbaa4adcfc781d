/*
 * gpu_tile.h - one query row a wave against a tile of keys in shared memory:
 * scores, a running softmax, values.
 *
 * At most 16 keys a tile. Lanes with one number modulo 16 share a key's
 * score, so that a wave adds up 16 keys in the exchanges that one takes.
 */
#ifndef MLA_GPU_TILE_H
#define MLA_GPU_TILE_H

#include "gpu_num.h"

enum { MLA_TILE_KEYS = 16 };

/* Floats from a key of a tile to the next, and columns of a key that a lane
   takes of `lanes` that share it: lanes then read different banks. */
#define MLA_TILE_STEP(width) (((width) + 30) / 32 * 32 + 1)
MLA_DEV int mla_tile_run(int width, int lanes) {
  return ((width + lanes - 1) / lanes + 15) / 32 * 32 + 16;
}

/* What a wave sees of a tile, all in shared memory. */
typedef struct mla_tile {
  const float *q, *k, *v;
  float *p; /* [MLA_TILE_KEYS], the wave's own */
  int k_step, v_step, dk, dv;
  int n; /* keys there are */
  float scale, cap;
} mla_tile;

/* A row so far; C: columns of dv a lane holds. */
template <int C>
struct mla_row_sums {
  float acc[C], top, total;
};

/* Of key lane % 16, every lane that shares it; past the last anything. */
MLA_DEV float mla_tile_score(const mla_tile &x) {
  const int key = MLA_LANE % MLA_TILE_KEYS;
  const int run = mla_tile_run(x.dk, MLA_WAVE / MLA_TILE_KEYS);
  const int first = MLA_LANE / MLA_TILE_KEYS * run;
  const int end = first + run < x.dk ? first + run : x.dk;
  const float *k = x.k + key * x.k_step;
  float s = 0, odd = 0; /* two chains: neither waits for the other */
  if (key < x.n) {
    int d = first;
    for (; d + 1 < end; d += 2) {
      s += x.q[d] * k[d];
      odd += x.q[d + 1] * k[d + 1];
    }
    if (d < end) s += x.q[d] * k[d];
  }
  s += odd;
  for (int m = MLA_TILE_KEYS; m < MLA_WAVE; m *= 2) s += MLA_SHFL_XOR(s, m);
  s *= x.scale;
  return x.cap > 0 ? x.cap * tanhf(s / x.cap) : s;
}

template <int C>
MLA_DEV void mla_row_begin(mla_row_sums<C> *r) {
  for (int c = 0; c < C; c++) r->acc[c] = 0;
  r->top = MLA_NEG_INF;
  r->total = 0;
}

/* The tile added to the row, of its keys those whose lanes say live. */
template <int C>
MLA_DEV void mla_row_add(const mla_tile &x, int live, mla_row_sums<C> *r) {
  const float score = mla_tile_score(x);
  const float s = live ? score : MLA_NEG_INF;
  const float top = fmaxf(r->top, mla_lanes_max(s, MLA_TILE_KEYS));
  /* All -inf so far (a score of -inf is lawful): nothing to add yet. */
  const float base = top == MLA_NEG_INF ? 0.0f : top;
  const float p = live ? expf(s - base) : 0.0f;
  const float keep = expf(r->top - base);
  r->total = r->total * keep + mla_lanes_sum(p, MLA_TILE_KEYS);
  if (MLA_LANE < MLA_TILE_KEYS) x.p[MLA_LANE] = p;
  MLA_WAVE_SYNC();
  /* A tile's sum first: additions to acc stay few. */
  float sum[C];
  for (int c = 0; c < C; c++) sum[c] = 0;
  for (int j = 0; j < x.n; j++) {
    const float pj = x.p[j];
    const float *v = x.v + j * x.v_step;
    for (int c = 0; c < C; c++) {
      const int d = c * MLA_WAVE + MLA_LANE;
      if (d < x.dv) sum[c] += pj * v[d];
    }
  }
  for (int c = 0; c < C; c++) r->acc[c] = r->acc[c] * keep + sum[c];
  r->top = top;
}

/* The partial result of a row. */
template <int C>
MLA_DEV void mla_row_store(const mla_row_sums<C> &r, int empty, int dv,
                           float *out, float *lse) {
  for (int c = 0; c < C; c++) {
    const int d = c * MLA_WAVE + MLA_LANE;
    if (d < dv) out[d] = empty ? 0.0f : r.acc[c] / r.total;
  }
  if (MLA_LANE == 0) *lse = empty ? MLA_NEG_INF : r.top + logf(r.total);
}

#endif
