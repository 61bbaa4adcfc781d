/*
 * gpu_topk.h - the k largest of a row of logits, of equal ones the earlier
 * positions; one block a row, no atomics, the same choice every time.
 *
 * The k-th largest is found digit by digit: every thread counts its elements
 * in columns of its own. Chosen positions are written in ascending order.
 */
#ifndef MLA_GPU_TOPK_H
#define MLA_GPU_TOPK_H

#include "gpu_index.h"

enum {
  MLA_TOPK_THREADS = 512,
  MLA_TOPK_DIGITS = 16,
  MLA_TOPK_GROUPS = MLA_TOPK_THREADS / MLA_TOPK_DIGITS, /* of 16 threads */
  MLA_TOPK_LOADS = 16 /* of a thread on their way at once */
};

/* Whole numbers in the order of the floats; 0 is NaN's alone. */
MLA_DEV uint32_t mla_ordered(float x) {
  const uint32_t bits = __float_as_uint(x + 0.0f); /* one zero */
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0;
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* Elements i, i + step, ... before n; those past it are the first again. */
MLA_DEV void mla_topk_load(const float *row, int64_t i, int64_t step, int64_t n,
                           uint32_t (&x)[MLA_TOPK_LOADS]) {
  MLA_UNROLL
  for (int u = 0; u < MLA_TOPK_LOADS; u++)
    x[u] = mla_ordered(row[i + u * step < n ? i + u * step : i]);
}

typedef uint32_t mla_topk_counts[MLA_TOPK_DIGITS][MLA_TOPK_THREADS];
typedef uint32_t mla_topk_parts[MLA_TOPK_DIGITS][MLA_TOPK_GROUPS];

/* The number that the k-th largest has; *ties: how many of those equal to it
   are among the k. All threads get it. */
MLA_DEV uint32_t mla_topk_border(const float *row, int64_t n, uint32_t k,
                                 mla_topk_counts &counts, mla_topk_parts &parts,
                                 uint32_t *totals, uint32_t *ties) {
  const int bin = MLA_TID / MLA_TOPK_GROUPS, chunk = MLA_TID % MLA_TOPK_GROUPS;
  uint32_t prefix = 0, known = 0;
  for (int shift = 28; shift >= 0; shift -= 4) {
    for (int d = 0; d < MLA_TOPK_DIGITS; d++) counts[d][MLA_TID] = 0;
    for (int64_t i = MLA_TID; i < n; i += MLA_TOPK_LOADS * MLA_TOPK_THREADS) {
      uint32_t x[MLA_TOPK_LOADS];
      mla_topk_load(row, i, MLA_TOPK_THREADS, n, x);
      MLA_UNROLL
      for (int u = 0; u < MLA_TOPK_LOADS; u++)
        if (i + u * MLA_TOPK_THREADS < n && (x[u] & known) == prefix)
          counts[x[u] >> shift & 15][MLA_TID]++;
    }
    MLA_BARRIER();
    uint32_t sum = 0;
    for (int i = 0; i < 16; i++)
      sum += counts[bin][chunk + MLA_TOPK_GROUPS * i];
    parts[bin][chunk] = sum;
    MLA_BARRIER();
    if (MLA_TID < MLA_TOPK_DIGITS) {
      sum = 0;
      for (int i = 0; i < MLA_TOPK_GROUPS; i++) sum += parts[MLA_TID][i];
      totals[MLA_TID] = sum;
    }
    MLA_BARRIER();
    int digit = 15;
    for (; digit > 0 && totals[digit] < k; digit--) k -= totals[digit];
    prefix |= (uint32_t)digit << shift;
    known |= 15u << shift;
  }
  *ties = k;
  return prefix;
}

/* Of all threads before this one, what counts[which] says, added up. */
MLA_DEV int64_t mla_topk_before(const mla_topk_counts &counts,
                                const mla_topk_parts &parts, int which) {
  int64_t sum = 0;
  for (int i = 0; i < MLA_TID / 16; i++) sum += parts[which][i];
  for (int i = MLA_TID / 16 * 16; i < MLA_TID; i++) sum += counts[which][i];
  return sum;
}

/* Grid: x token. Rows of logits as gpu_index.h left them. */
MLA_KERNEL_OF(MLA_TOPK_THREADS)
mla_topk_rows(mla_index_args a, int32_t *positions, int64_t positions_row,
              int topk) {
  MLA_SHARED_TILE(uint32_t, counts, MLA_TOPK_DIGITS, MLA_TOPK_THREADS);
  MLA_SHARED_TILE(uint32_t, parts, MLA_TOPK_DIGITS, MLA_TOPK_GROUPS);
  MLA_SHARED_TILE(uint32_t, totals, 1, MLA_TOPK_DIGITS);
  const int64_t local = blockIdx.x;
  const int token = a.token0 + (int)local;
  int request;
  const int64_t n = mla_index_visible(a, token, &request);
  const float *row = a.logits + local * a.row_len;
  int32_t *to = positions + token * positions_row;
  if (n < 0) return;
  if (n <= topk) {
    for (int i = MLA_TID; i < topk; i += MLA_TOPK_THREADS)
      to[i] = i < n ? i : -1;
    return;
  }
  uint32_t ties;
  const uint32_t border =
      mla_topk_border(row, n, (uint32_t)topk, counts, parts, totals[0], &ties);
  /* A run of positions each, so that the order is theirs. */
  const int64_t each = (n + MLA_TOPK_THREADS - 1) / MLA_TOPK_THREADS;
  const int64_t lo = MLA_TID * each, hi = lo + each < n ? lo + each : n;
  uint32_t above = 0, equal = 0;
  uint32_t x[MLA_TOPK_LOADS];
  for (int64_t i = lo; i < hi; i += MLA_TOPK_LOADS) {
    mla_topk_load(row, i, 1, hi, x);
    MLA_UNROLL
    for (int u = 0; u < MLA_TOPK_LOADS; u++) {
      above += i + u < hi && x[u] > border;
      equal += i + u < hi && x[u] == border;
    }
  }
  counts[0][MLA_TID] = above;
  counts[1][MLA_TID] = equal;
  MLA_BARRIER();
  if (MLA_TID < 2 * MLA_TOPK_GROUPS) {
    const int which = MLA_TID / MLA_TOPK_GROUPS;
    const int group = MLA_TID % MLA_TOPK_GROUPS;
    uint32_t sum = 0;
    for (int i = 0; i < 16; i++) sum += counts[which][group * 16 + i];
    parts[which][group] = sum;
  }
  MLA_BARRIER();
  int64_t rank = mla_topk_before(counts, parts, 1);
  int64_t at = mla_topk_before(counts, parts, 0) + (rank < ties ? rank : ties);
  for (int64_t i = lo; i < hi; i += MLA_TOPK_LOADS) {
    mla_topk_load(row, i, 1, hi, x);
    MLA_UNROLL
    for (int u = 0; u < MLA_TOPK_LOADS; u++)
      if (i + u < hi && (x[u] > border || (x[u] == border && rank++ < ties)))
        to[at++] = (int32_t)(i + u);
  }
}

#endif
