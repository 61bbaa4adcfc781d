/*
 * mla_topk_sm80.h - the k largest of a row of logits (gpu_topk.h says which)
 * for sm_80 and later: one block a row, which it keeps in shared memory if
 * there is room.
 *
 * Numbers are counted in 2048 bins of equal width between the least and the
 * largest; what lies in the bin of the k-th is gathered, unless it is much, and
 * counted again by digits of its bits. Whole numbers come to the same in any
 * order. Each thread writes those of a run of positions that are chosen, so
 * that they ascend. NaN is taken for -infinity.
 */
#ifndef MLA_TOPK_SM80_H
#define MLA_TOPK_SM80_H

#include "gpu_topk.h"
#include "sm80_mma.h"

enum {
  SM80_TOPK_THREADS = 1024,
  SM80_TOPK_WARPS = SM80_TOPK_THREADS / 32,
  SM80_TOPK_KEPT = 32768, /* numbers, at most */
  SM80_TOPK_BINS = 2 * SM80_TOPK_THREADS,
  SM80_TOPK_FEW = 2048
};

/* What a block shares. */
typedef struct sm80_topk_shared {
  uint32_t bins[SM80_TOPK_BINS];
  float few[SM80_TOPK_FEW];
  uint32_t warps[SM80_TOPK_WARPS];
  float least[SM80_TOPK_WARPS], most[SM80_TOPK_WARPS];
  uint32_t digit, rank, same, count;
} sm80_topk_shared;

/* Numbers, one more place behind each 32 where gaps is all ones, so that runs
   of a thread lie in banks of their own. Of the bins: the lower end, halved,
   and how many there are to half a unit; the bin of the k-th. How many of its
   numbers are wanted, and how many there are. */
typedef struct sm80_topk_row {
  const float *x;
  int n, gaps;
  float half_least, bins;
  uint32_t bin, rank, same;
} sm80_topk_row;

/* body(i, number) for i = first, first + step, ... before end, eight of them
   loaded at once. */
template <class Body>
MLA_DEV void sm80_topk_each(const sm80_topk_row &r, int first, int step,
                            int end, Body body) {
  for (int at = first; at < end; at += 8 * step) {
    float v[8];
    SM80_UNROLL
    for (int u = 0; u < 8; u++) {
      const int i = at + u * step;
      if (i < end) v[u] = fmaxf(r.x[i + (i >> 5 & r.gaps)], MLA_NEG_INF);
    }
    SM80_UNROLL
    for (int u = 0; u < 8; u++)
      if (at + u * step < end) body(at + u * step, v[u]);
  }
}
template <class Body>
MLA_DEV void sm80_topk_all(const sm80_topk_row &r, Body body) {
  sm80_topk_each(r, MLA_TID, SM80_TOPK_THREADS, r.n, body);
}

/* Over a block's threads: the sum of v of those before this one; *all of all.
   Between two calls all threads meet. */
MLA_DEV uint32_t sm80_topk_sum(uint32_t v, uint32_t *warps, uint32_t *all) {
  uint32_t sum = v;
  SM80_UNROLL
  for (int m = 1; m < 32; m *= 2) {
    const uint32_t other = MLA_SHFL(sum, (MLA_LANE - m) & 31);
    if (MLA_LANE >= m) sum += other;
  }
  if (MLA_LANE == 31) warps[MLA_WAVE_ID] = sum;
  MLA_BARRIER();
  uint32_t total = warps[MLA_LANE];
  SM80_UNROLL
  for (int m = 1; m < 32; m *= 2) {
    const uint32_t other = MLA_SHFL(total, (MLA_LANE - m) & 31);
    if (MLA_LANE >= m) total += other;
  }
  const uint32_t before = MLA_SHFL(total, (MLA_WAVE_ID - 1) & 31);
  *all = MLA_SHFL(total, 31);
  return sum - v + (MLA_WAVE_ID ? before : 0);
}

/* ------------------------------------------------------------------- bins */

/* Where bins lie: between the least and the largest number but -infinity. No
   width, or one that is no number, leaves all in the first. The row is kept
   meanwhile, unless kept is NULL. */
MLA_DEV void sm80_topk_range(sm80_topk_shared &s, sm80_topk_row &r,
                             float *kept) {
  float least = -MLA_NEG_INF, most = MLA_NEG_INF;
  sm80_topk_all(r, [&](int i, float x) {
    if (x > MLA_NEG_INF) least = fminf(least, x);
    most = fmaxf(most, x);
    if (kept) kept[i + (i >> 5)] = x;
  });
  if (kept) r.x = kept, r.gaps = ~0;
  least = -mla_wave_max(-least);
  most = mla_wave_max(most);
  if (MLA_LANE == 0) {
    s.least[MLA_WAVE_ID] = least;
    s.most[MLA_WAVE_ID] = most;
  }
  MLA_BARRIER();
  least = -mla_wave_max(-s.least[MLA_LANE]);
  most = mla_wave_max(s.most[MLA_LANE]);
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

/* The largest bin whose numbers, with those above, are r.rank or more: then
   r.rank of its r.same numbers are wanted. */
MLA_DEV uint32_t sm80_topk_find(sm80_topk_shared &s, sm80_topk_row &r) {
  MLA_BARRIER();
  const int bin = SM80_TOPK_BINS - 1 - 2 * MLA_TID;
  const uint32_t first = s.bins[bin], second = s.bins[bin - 1];
  uint32_t all;
  const uint32_t above = sm80_topk_sum(first + second, s.warps, &all);
  if (above < r.rank && r.rank <= above + first + second) {
    const int later = r.rank > above + first;
    s.digit = (uint32_t)(bin - later);
    s.rank = r.rank - above - (later ? first : 0);
    s.same = later ? second : first;
  }
  MLA_BARRIER();
  r.rank = s.rank;
  r.same = s.same;
  return s.digit;
}

/* Of the numbers in r.bin the one of rank r.rank, by digits of 11, 11 and 10
   bits. */
MLA_DEV float sm80_topk_digits(sm80_topk_shared &s, sm80_topk_row &r) {
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
    prefix |= sm80_topk_find(s, r) << shift;
  }
  return __uint_as_float(prefix >> 31 ? prefix & 0x7fffffffu : ~prefix);
}

/* The numbers in r.bin, gathered: all in one bin, without width. */
MLA_DEV sm80_topk_row sm80_topk_gather(sm80_topk_shared &s,
                                       const sm80_topk_row &r) {
  sm80_topk_all(r, [&](int, float x) {
    if (sm80_topk_bin(r, x) == r.bin) s.few[SM80_COUNT(&s.count)] = x;
  });
  MLA_BARRIER();
  return {s.few, (int)r.same, 0, 0, 0, 0, r.rank, r.same};
}

/* The k-th largest; r.rank: how many of the r.same equal to it are chosen. */
MLA_DEV float sm80_topk_border(sm80_topk_shared &s, sm80_topk_row &r,
                               float *kept) {
  sm80_topk_range(s, r, kept);
  sm80_topk_no_bins(s);
  sm80_topk_all(
      r, [&](int, float x) { SM80_COUNT(&s.bins[sm80_topk_bin(r, x)]); });
  r.bin = sm80_topk_find(s, r);
  if (r.same > SM80_TOPK_FEW) return sm80_topk_digits(s, r);
  sm80_topk_row few = sm80_topk_gather(s, r);
  const float border = sm80_topk_digits(s, few);
  r.rank = few.rank;
  return border;
}

/* ------------------------------------------------------------------ output */

/* A run of positions each, so that the order is theirs. */
MLA_DEV void sm80_topk_put(const sm80_topk_row &r, float border,
                           sm80_topk_shared &s, int32_t *to) {
  const int each = (r.n + SM80_TOPK_THREADS - 1) / SM80_TOPK_THREADS;
  const int lo = MLA_TID * each, hi = lo + each < r.n ? lo + each : r.n;
  uint32_t above = 0, equal = 0, all;
  sm80_topk_each(r, lo, 1, hi, [&](int, float x) {
    above += x > border;
    equal += x == border;
  });
  uint32_t at = sm80_topk_sum(above, s.warps, &all);
  MLA_BARRIER();
  uint32_t ties = sm80_topk_sum(equal, s.warps, &all);
  at += ties < r.rank ? ties : r.rank;
  if (above + equal == 0) return;
  sm80_topk_each(r, lo, 1, hi, [&](int i, float x) {
    if (x > border || (x == border && ties++ < r.rank)) to[at++] = i;
  });
}

/* Grid: x token. Rows of logits as gpu_index.h left them; room: how long one
   may be to be kept. */
SM80_KERNEL(SM80_TOPK_THREADS, 1)
mla_topk_kept(mla_index_args a, int32_t *positions, int64_t positions_row,
              int topk, int room) {
  MLA_DYNAMIC_SHARED(float, kept);
  MLA_SHARED_TILE(sm80_topk_shared, shared, 1, 1);
  sm80_topk_shared &s = shared[0][0];
  const int64_t local = blockIdx.x;
  const int token = a.token0 + (int)local;
  int request;
  const int n = mla_index_visible(a, token, &request);
  int32_t *to = positions + token * positions_row;
  if (n < 0) return;
  if (n <= topk) {
    for (int i = MLA_TID; i < topk; i += SM80_TOPK_THREADS)
      to[i] = i < n ? i : -1;
    return;
  }
  sm80_topk_row r = {
      a.logits + local * a.row_len, n, 0, 0, 0, 0, (uint32_t)topk, 0};
  const float border = sm80_topk_border(s, r, n <= room ? kept : NULL);
  sm80_topk_put(r, border, s, to);
}

#endif
