/*
 * sm80_topk.h - how the k-th largest of a row is found, for the kernels of
 * mla_topk_*.
 *
 * Numbers are counted in 2048 bins of equal width between the least and the
 * largest; what lies in the bin of the k-th is gathered, unless it is much, and
 * compared with each other, or counted again by digits of its bits. Whole
 * numbers come to the same in any order. NaN is taken for -infinity.
 */
#ifndef MLA_SM80_TOPK_H
#define MLA_SM80_TOPK_H

#include "gpu_topk.h"
#include "sm80_mma.h"

enum {
  SM80_TOPK_THREADS = 1024,
  SM80_TOPK_WARPS = SM80_TOPK_THREADS / 32,
  SM80_TOPK_KEPT = 32768, /* numbers, at most */
  SM80_TOPK_BINS = 2 * SM80_TOPK_THREADS,
  SM80_TOPK_FEW = 2048,
  SM80_TOPK_LOADS = 8,  /* of a thread, on their way at once */
  SM80_TOPK_PAIRS = 128 /* that are compared with each other */
};

/* What a block shares. */
typedef struct sm80_topk_shared {
  uint32_t bins[SM80_TOPK_BINS];
  float few[SM80_TOPK_FEW];
  uint32_t warps[2][SM80_TOPK_WARPS];
  float least[SM80_TOPK_WARPS], most[SM80_TOPK_WARPS];
  uint32_t digit, rank, same, count;
} sm80_topk_shared;

/* Numbers. Of the bins: the lower end, halved, and how many there are to half a
   unit; the bin of the k-th. How many of its numbers are wanted, and how many
   there are. */
typedef struct sm80_topk_row {
  const float *x;
  int n;
  float half_least, bins;
  uint32_t bin, rank, same;
} sm80_topk_row;

/* Numbers i, i + step, ... before end, where there is none NaN. */
MLA_DEV void sm80_topk_load(const sm80_topk_row &r, int i, int step, int end,
                            float (&v)[SM80_TOPK_LOADS]) {
  SM80_UNROLL
  for (int u = 0; u < SM80_TOPK_LOADS; u++)
    v[u] = i + u * step < end ? fmaxf(r.x[i + u * step], MLA_NEG_INF) : NAN;
}

/* body(i, number) for i = first, first + step, ... before end. */
template <class Body>
MLA_DEV void sm80_topk_each(const sm80_topk_row &r, int first, int step,
                            int end, Body body) {
  for (int i = first; i < end; i += SM80_TOPK_LOADS * step) {
    float v[SM80_TOPK_LOADS];
    sm80_topk_load(r, i, step, end, v);
    SM80_UNROLL
    for (int u = 0; u < SM80_TOPK_LOADS; u++)
      if (v[u] == v[u]) body(i + u * step, v[u]);
  }
}
template <class Body>
MLA_DEV void sm80_topk_all(const sm80_topk_row &r, Body body) {
  sm80_topk_each(r, MLA_TID, SM80_TOPK_THREADS, r.n, body);
}

/* Over a warp's lanes: each v becomes its sum up to this one. */
template <int N>
MLA_DEV void sm80_topk_scan(uint32_t (&v)[N]) {
  SM80_UNROLL
  for (int m = 1; m < 32; m *= 2) {
    SM80_UNROLL
    for (int i = 0; i < N; i++) {
      const uint32_t other = MLA_SHFL(v[i], (MLA_LANE - m) & 31);
      if (MLA_LANE >= m) v[i] += other;
    }
  }
}

/* Over a block's warps, of each of which v is the sum: each v becomes that of
   those before this one; all of all. Between two calls all threads meet. */
template <int N>
MLA_DEV void sm80_topk_sum(uint32_t (&v)[N],
                           uint32_t (&warps)[2][SM80_TOPK_WARPS],
                           uint32_t (&all)[N]) {
  SM80_UNROLL
  for (int i = 0; i < N; i++)
    if (MLA_LANE == 0) warps[i][MLA_WAVE_ID] = v[i];
  MLA_BARRIER();
  SM80_UNROLL
  for (int i = 0; i < N; i++) all[i] = warps[i][MLA_LANE];
  sm80_topk_scan(all);
  SM80_UNROLL
  for (int i = 0; i < N; i++) {
    const uint32_t before = MLA_SHFL(all[i], (MLA_WAVE_ID - 1) & 31);
    v[i] = MLA_WAVE_ID ? before : 0;
    all[i] = MLA_SHFL(all[i], 31);
  }
}

/* What mla_ordered() made whole. */
MLA_DEV float sm80_topk_number(uint32_t ordered) {
  return __uint_as_float(ordered >> 31 ? ordered & 0x7fffffffu : ~ordered);
}
/* The largest of a warp's numbers, none of which is NaN. */
MLA_DEV float sm80_topk_most(float x) {
  return sm80_topk_number(SM80_MOST(mla_ordered(x)));
}

/* ------------------------------------------------------------------- bins */

/* The least and the largest number of a row but -infinity, by all threads. The
   row is kept meanwhile, unless kept is NULL. */
MLA_DEV void sm80_topk_ends(sm80_topk_shared &s, sm80_topk_row &r, float *kept,
                            float *low, float *high) {
  float least = -MLA_NEG_INF, most = MLA_NEG_INF;
  sm80_topk_all(r, [&](int i, float x) {
    if (x > MLA_NEG_INF) least = fminf(least, x);
    most = fmaxf(most, x);
    if (kept) kept[i] = x;
  });
  if (kept) r.x = kept;
  least = -sm80_topk_most(-least);
  most = sm80_topk_most(most);
  if (MLA_LANE == 0) {
    s.least[MLA_WAVE_ID] = least;
    s.most[MLA_WAVE_ID] = most;
  }
  MLA_BARRIER();
  *low = -sm80_topk_most(-s.least[MLA_LANE]);
  *high = sm80_topk_most(s.most[MLA_LANE]);
}

/* Bins between two numbers. No width, or one that is no number, leaves all in
   the first. */
MLA_DEV void sm80_topk_spread(sm80_topk_row &r, float least, float most) {
  r.half_least = 0.5f * least;
  const float width = 0.5f * most - r.half_least;
  const float bins = (SM80_TOPK_BINS - 1) / width;
  r.bins = bins > 0 && bins < -MLA_NEG_INF ? bins : 0.0f;
}

/* Never less for a larger number. */
MLA_DEV uint32_t sm80_topk_bin(const sm80_topk_row &r, float x) {
  const float at = (0.5f * x - r.half_least) * r.bins;
  return (uint32_t)fminf(fmaxf(at, 0.0f), SM80_TOPK_BINS - 1);
}

MLA_DEV void sm80_topk_no_bins(sm80_topk_shared &s) {
  s.bins[MLA_TID] = 0;
  s.bins[SM80_TOPK_THREADS + MLA_TID] = 0;
  if (MLA_TID == 0) s.count = 0;
  MLA_BARRIER();
}

/* The upper one of a thread's two bins. */
MLA_DEV int sm80_topk_own() {
  return SM80_TOPK_BINS - 1 - 2 * MLA_TID;
}

/* The largest bin whose numbers, with those above, are r.rank or more: then
   r.rank of its r.same numbers are wanted. A thread knows how many its two bins
   hold, the upper one first. */
MLA_DEV uint32_t sm80_topk_settle(sm80_topk_shared &s, sm80_topk_row &r,
                                  uint32_t first, uint32_t second) {
  uint32_t own[1] = {first + second}, all[1];
  sm80_topk_scan(own);
  uint32_t above = own[0] - first - second;
  own[0] = MLA_SHFL(own[0], 31);
  sm80_topk_sum(own, s.warps, all);
  above += own[0];
  if (above < r.rank && r.rank <= above + first + second) {
    const int later = r.rank > above + first;
    s.digit = (uint32_t)(sm80_topk_own() - later);
    s.rank = r.rank - above - (later ? first : 0);
    s.same = later ? second : first;
  }
  MLA_BARRIER();
  r.rank = s.rank;
  r.same = s.same;
  return s.digit;
}
MLA_DEV uint32_t sm80_topk_find(sm80_topk_shared &s, sm80_topk_row &r) {
  MLA_BARRIER();
  const int bin = sm80_topk_own();
  return sm80_topk_settle(s, r, s.bins[bin], s.bins[bin - 1]);
}

/* Of the numbers in r.bin the one of rank r.rank, by digits of 11, 11 and 10
   bits; find as sm80_topk_find. */
template <class Find>
MLA_DEV float sm80_topk_digits(sm80_topk_shared &s, sm80_topk_row &r,
                               Find find) {
  uint32_t prefix = 0;
  for (int pass = 0; pass < 3; pass++) {
    const int shift = pass == 0 ? 21 : pass == 1 ? 10 : 0;
    const uint32_t known = pass == 0 ? 0 : pass == 1 ? ~0u << 21 : ~0u << 10;
    const uint32_t digits = pass == 2 ? 1023 : 2047;
    sm80_topk_no_bins(s);
    sm80_topk_all(r, [&](int, float x) {
      const uint32_t bits = mla_ordered(x);
      if ((bits & known) == prefix && sm80_topk_bin(r, x) == r.bin)
        SM80_COUNT(&s.bins[bits >> shift & digits]);
    });
    prefix |= find(s, r) << shift;
  }
  return sm80_topk_number(prefix);
}

/* The numbers in r.bin go to s.few, s.count of them. */
MLA_DEV void sm80_topk_gather(sm80_topk_shared &s, const sm80_topk_row &r) {
  sm80_topk_all(r, [&](int, float x) {
    if (sm80_topk_bin(r, x) == r.bin) s.few[SM80_COUNT(&s.count)] = x;
  });
}
/* The border, from all of r's bin, wherever they are now: compared with each
   other, or by digits, all in one bin without width. */
MLA_DEV float sm80_topk_of_few(sm80_topk_shared &s, sm80_topk_row &r,
                               const float *few) {
  const int n = (int)r.same;
  if (n > SM80_TOPK_PAIRS) {
    sm80_topk_row row = {few, n, 0, 0, 0, r.rank, r.same};
    const float border = sm80_topk_digits(s, row, sm80_topk_find);
    r.rank = row.rank;
    return border;
  }
  if (MLA_TID < n) {
    const float x = few[MLA_TID];
    uint32_t above = 0, same = 0;
    int is_first = 1; /* of equal ones, one tells */
    for (int i = 0; i < n; i++) {
      above += few[i] > x;
      same += few[i] == x;
      is_first &= i >= MLA_TID || few[i] != x;
    }
    if (is_first && above < r.rank && r.rank <= above + same) {
      s.least[0] = x;
      s.rank = r.rank - above;
    }
  }
  MLA_BARRIER();
  r.rank = s.rank;
  return s.least[0];
}

MLA_DEV void sm80_topk_count(sm80_topk_shared &s, const sm80_topk_row &r) {
  sm80_topk_no_bins(s);
  sm80_topk_all(
      r, [&](int, float x) { SM80_COUNT(&s.bins[sm80_topk_bin(r, x)]); });
}

/* The k-th largest; r.rank: how many of the r.same equal to it are chosen. */
MLA_DEV float sm80_topk_border(sm80_topk_shared &s, sm80_topk_row &r,
                               float *kept) {
  float least, most;
  sm80_topk_ends(s, r, kept, &least, &most);
  sm80_topk_spread(r, least, most);
  sm80_topk_count(s, r);
  r.bin = sm80_topk_find(s, r);
  if (r.same > SM80_TOPK_FEW) return sm80_topk_digits(s, r, sm80_topk_find);
  sm80_topk_gather(s, r);
  MLA_BARRIER();
  return sm80_topk_of_few(s, r, s.few);
}

/* ------------------------------------------------------------------ output */

/* The chosen of a warp's run lo .. hi - 1, of which own[0] numbers above the
   border come first and own[1] like it. */
MLA_DEV void sm80_topk_put_run(const sm80_topk_row &r, float border, int lo,
                               int hi, const uint32_t *own, int first,
                               int32_t *to) {
  const uint32_t own_bit = 1u << MLA_LANE, lower = own_bit - 1;
  uint32_t ties = own[1];
  to += own[0] + (ties < r.rank ? ties : r.rank);
  for (int i = lo; i < hi; i += 32 * SM80_TOPK_LOADS) {
    float v[SM80_TOPK_LOADS];
    sm80_topk_load(r, i + MLA_LANE, 32, hi, v);
    SM80_UNROLL
    for (int u = 0; u < SM80_TOPK_LOADS; u++) {
      uint32_t chosen = SM80_BALLOT(v[u] > border);
      const uint32_t equal = SM80_BALLOT(v[u] == border);
      if (equal) { /* seldom, and in all lanes alike */
        chosen |= SM80_BALLOT(v[u] == border &&
                              ties + __popc(equal & lower) < r.rank);
        ties += __popc(equal);
      }
      if (!chosen) continue;
      if (chosen & own_bit)
        to[__popc(chosen & lower)] = first + i + 32 * u + MLA_LANE;
      to += __popc(chosen);
    }
  }
}

/* What is chosen, a run of positions a warp, so that they ascend; position
   `first` is the row's first. before(all, own): where other blocks have runs of
   the row, adds to own how many numbers above the border, and how many like it,
   those before this one have, and tells them of all of this one's. */
template <class Before>
MLA_DEV void sm80_topk_put(sm80_topk_shared &s, const sm80_topk_row &r,
                           float border, int first, int32_t *to,
                           Before before) {
  const int each = (r.n + SM80_TOPK_THREADS - 1) / SM80_TOPK_THREADS * 32;
  const int lo = MLA_WAVE_ID * each, hi = lo + each < r.n ? lo + each : r.n;
  uint32_t own[2] = {0, 0}, all[2];
  sm80_topk_each(r, lo + MLA_LANE, 32, hi, [&](int, float x) {
    own[0] += x > border;
    own[1] += x == border;
  });
  sm80_topk_scan(own);
  own[0] = MLA_SHFL(own[0], 31);
  own[1] = MLA_SHFL(own[1], 31);
  sm80_topk_sum(own, s.warps, all);
  before(all, own);
  sm80_topk_put_run(r, border, lo, hi, own, first, to);
}

/* A row of no more than topk numbers: all, by `threads` threads. */
MLA_DEV void sm80_topk_put_all(int n, int topk, int32_t *to, int thread,
                               int threads) {
  for (int i = thread; i < topk; i += threads) to[i] = i < n ? i : -1;
}

/* The topk of a row of more, by one block. */
MLA_DEV void sm80_topk_alone(sm80_topk_shared &s, const float *x, int n,
                             int topk, float *kept, int32_t *to) {
  sm80_topk_row r = {};
  r.x = x;
  r.n = n;
  r.rank = (uint32_t)topk;
  const float border = sm80_topk_border(s, r, kept);
  sm80_topk_put(s, r, border, 0, to, [](const uint32_t *, uint32_t *) {});
}

#endif
