/*
 * mla_topk_cluster_sm90.cuh - the k largest of a row of logits for sm_90a: as
 * mla_topk_sm80.h, by the CTAs of a cluster, each with a run of the row.
 *
 * They tell each other their ends, how many numbers their bins hold, what lies
 * in the bin of the k-th, and how many they have chosen; what follows from that
 * each finds for itself. All of what is asked of the others is on its way at
 * once. A short row is the first CTA's.
 */
#ifndef MLA_TOPK_CLUSTER_SM90_CUH
#define MLA_TOPK_CLUSTER_SM90_CUH

#include "sm80_topk.h"
#include "sm90_async.h"
#include "sm90_cluster.h"

enum { SM90_TOPK_RUN = 8192 }; /* numbers that are not worth sharing out */

/* What a CTA shares: held numbers in own.few, of the bin of the k-th, and all
   that others have of it, too. */
typedef struct sm90_topk_shared {
  sm80_topk_shared own;
  float all[SM80_TOPK_FEW];
  float ends[2];
  uint32_t held, chosen[2];
} sm90_topk_shared;

/* Of a number of each CTA, this lane's. */
template <int Size, class T>
MLA_DEV uint32_t sm90_topk_of_each(const T *at) {
  return cluster_load_u32(cluster_address(smem_address(at), MLA_LANE % Size));
}

/* Where bins lie, the same for all. */
template <int Size>
MLA_DEV void sm90_topk_range(sm90_topk_shared &s, sm80_topk_row &r,
                             float *kept) {
  float least, most;
  sm80_topk_ends(s.own, r, kept, &least, &most);
  if (MLA_TID == 0) s.ends[0] = least, s.ends[1] = most;
  cluster_sync();
  least = __uint_as_float(sm90_topk_of_each<Size>(&s.ends[0]));
  most = __uint_as_float(sm90_topk_of_each<Size>(&s.ends[1]));
  sm80_topk_spread(r, -sm80_topk_most(-least), sm80_topk_most(most));
}

/* As sm80_topk_find, of all CTAs' bins. */
template <int Size>
MLA_DEV uint32_t sm90_topk_find(sm80_topk_shared &s, sm80_topk_row &r) {
  const uint32_t at = smem_address(&s.bins[sm80_topk_own() - 1]);
  uint2 v[Size];
  uint32_t first = 0, second = 0;
  cluster_sync();
#pragma unroll
  for (int c = 0; c < Size; c++)
    v[c] = cluster_load_u32x2(cluster_address(at, c));
#pragma unroll
  for (int c = 0; c < Size; c++) {
    first += v[c].y;
    second += v[c].x;
  }
  return sm80_topk_settle(s, r, first, second);
}

/* Everybody's part of the bin of the k-th, one CTA's after another's. */
template <int Size>
MLA_DEV void sm90_topk_gather(sm90_topk_shared &s, const sm80_topk_row &r) {
  sm80_topk_gather(s.own, r);
  MLA_BARRIER();
  if (MLA_TID == 0) s.held = s.own.count;
  cluster_sync();
  uint32_t end[1] = {sm90_topk_of_each<Size>(&s.held)};
  sm80_topk_scan(end);
  for (uint32_t i = MLA_TID; i / 32 * 32 < r.same; i += SM80_TOPK_THREADS) {
    uint32_t rank = 0, before = 0;
#pragma unroll
    for (int c = 0; c < Size - 1; c++) {
      const uint32_t next = MLA_SHFL(end[0], c);
      if (next <= i) rank = c + 1, before = next;
    }
    if (i < r.same) {
      const uint32_t at = smem_address(s.own.few) + 4 * (i - before);
      s.all[i] = __uint_as_float(cluster_load_u32(cluster_address(at, rank)));
    }
  }
  MLA_BARRIER();
}

/* As sm80_topk_border. Of bins in turn none is cleared while it is read. */
template <int Size>
MLA_DEV float sm90_topk_border(sm90_topk_shared &s, sm80_topk_row &r,
                               float *kept) {
  sm90_topk_range<Size>(s, r, kept);
  sm80_topk_count(s.own, r);
  r.bin = sm90_topk_find<Size>(s.own, r);
  if (r.same > SM80_TOPK_FEW) {
    cluster_sync();
    return sm80_topk_digits(
        s.own, r, [](sm80_topk_shared &own, sm80_topk_row &row) {
          const uint32_t digit = sm90_topk_find<Size>(own, row);
          cluster_sync();
          return digit;
        });
  }
  sm90_topk_gather<Size>(s, r);
  return sm80_topk_of_few(s.own, r, s.all);
}

/* Adds to own what the CTAs before this one have of all. */
template <int Size>
MLA_DEV void sm90_topk_before(sm90_topk_shared &s, int rank,
                              const uint32_t *all, uint32_t *own) {
  if (MLA_TID == 0) s.chosen[0] = all[0], s.chosen[1] = all[1];
  cluster_sync();
  uint32_t sum[2] = {sm90_topk_of_each<Size>(&s.chosen[0]),
                     sm90_topk_of_each<Size>(&s.chosen[1])};
  sm80_topk_scan(sum);
  for (int i = 0; rank > 0 && i < 2; i++) own[i] += MLA_SHFL(sum[i], rank - 1);
}

/* Grid: x the CTAs of a token's cluster, token after token. Rows of logits as
   gpu_index.h left them; room: how long a run may be to be kept, SM90_TOPK_RUN
   at least. Which they are is found while logits are still made. */
template <int Size>
static __global__ void __launch_bounds__(SM80_TOPK_THREADS, 2)
    mla_topk_cluster(const mla_index_args a, int32_t *positions,
                     int64_t positions_row, int topk, int room) {
  extern __shared__ float kept[];
  __shared__ sm90_topk_shared s;
  const int rank = cluster_rank();
  const int64_t local = blockIdx.x / Size;
  const int token = a.token0 + (int)local;
  int request;
  const int n = mla_index_visible(a, token, &request);
  int32_t *to = positions + token * positions_row;
  pdl_wait();
  if (n < 0) return;
  if (n <= topk) {
    sm80_topk_put_all(n, topk, to, MLA_TID + rank * SM80_TOPK_THREADS,
                      Size * SM80_TOPK_THREADS);
    return;
  }
  if (n <= SM90_TOPK_RUN) {
    if (rank == 0)
      sm80_topk_alone(s.own, a.logits + local * a.row_len, n, topk, kept, to);
    return;
  }
  const int first = (int)((int64_t)n * rank / Size);
  sm80_topk_row r = {};
  r.x = a.logits + local * a.row_len + first;
  r.n = (int)((int64_t)n * (rank + 1) / Size) - first;
  r.rank = (uint32_t)topk;
  const float border = sm90_topk_border<Size>(s, r, r.n <= room ? kept : NULL);
  sm80_topk_put(s.own, r, border, first, to,
                [&](const uint32_t *all, uint32_t *own) {
                  sm90_topk_before<Size>(s, rank, all, own);
                });
  cluster_sync(); /* nobody leaves while it is read */
}

#endif
