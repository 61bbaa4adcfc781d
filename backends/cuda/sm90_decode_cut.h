/*
 * sm90_decode_cut.h - another plan for requests' pages: cut where requests
 * end, found by one warp of a CTA for all of it.
 *
 * Equal parts, as sm90_decode_plan.h has them, leave most parts with the end
 * of one request and the beginning of the next: two pieces, and a position
 * more than the blocks alone would need. Where the longest part is no longer
 * for it, requests begin where parts do: with parts for all, each request
 * takes whole ones; else each part takes as many requests, of the longest's
 * length. Requests that are about as long need no looking for.
 *
 * It takes 150 instructions to look for that, and instructions that come for
 * the first time cost more than what they do. So another warp goes through the
 * same motions before the kernels ahead have ended, with whatever stands where
 * lengths will, and throws it away. What both load goes past the first-level
 * cache, which would keep it.
 */
#ifndef MLA_SM90_DECODE_CUT_H
#define MLA_SM90_DECODE_CUT_H

#include "sm90_decode_piece.h"

enum { MLA_CUT_REQUESTS = 1024 }; /* at most */

/* What requests' stretches are multiples of, and its inverse; 0: any length. A
   request holds no more units than there are parts, so that a quotient in
   binary32 is off by one at most. */
typedef struct mla_cut_unit {
  int blocks;
  float inverse;
} mla_cut_unit;

MLA_DEV mla_cut_unit mla_cut_unit_of(int blocks) {
  return {blocks, __fdividef(1.0f, (float)blocks)};
}

/* How the row is laid out and cut. */
typedef struct mla_cut {
  int total, share;
  mla_cut_unit unit;
} mla_cut;

struct mla_cut_place : mla_plan_place {
  mla_cut_unit unit;
};

/* How much of the row a request takes: with its fixed cost, or up to where
   the next may begin. An empty one is written too. */
MLA_DEV int mla_cut_stretch(int blocks, const mla_cut_unit &unit) {
  if (!unit.blocks) return blocks + MLA_SM90_COST;
  const int near = (int)((float)blocks * unit.inverse) * unit.blocks;
  const int less = near < blocks ? near : near - unit.blocks; /* or equal */
  const int more = less + unit.blocks;
  return more < blocks || blocks < 1 ? more + unit.blocks : more;
}
MLA_DEV int mla_plan_on(const mla_cut_place &at, int blocks) {
  return mla_cut_stretch(blocks, at.unit);
}

MLA_DEV int mla_cut_blocks(const mla_decode_plan &p, int b) {
  const int seq = __ldcg(p.seq_lens + b * p.seq_lens_step);
  return seq > 0 ? mla_plan_up(seq) : 0;
}
MLA_DEV mla_plan_request mla_cut_request(const mla_decode_plan &p, int b) {
  mla_plan_request r = {0, 0, 0, 0};
  if (b >= p.requests) return r;
  r.blocks = mla_cut_blocks(p, b);
  r.seq = __ldcg(p.seq_lens + b * p.seq_lens_step);
  r.token = __ldcg(p.start + b * p.start_step);
  r.end_token = __ldcg(p.start + (b + 1) * p.start_step);
  return r;
}

/* Requests' blocks, in shared memory, and a lane's run of requests; all blocks,
   and the most of a request. */
typedef struct mla_cut_run {
  const int *blocks;
  int begin, end;
  int total, longest;
} mla_cut_run;

MLA_DEV mla_cut_run mla_cut_begin(const mla_decode_plan &p, int *blocks) {
  const int run = (p.requests + 31) / 32, begin = MLA_LANE * run;
  int sum = 0, longest = 0;
#pragma unroll 4
  for (int b = MLA_LANE; b < p.requests; b += 32) {
    const int n = mla_cut_blocks(p, b);
    blocks[b] = n;
    sum += n;
    if (n > longest) longest = n;
  }
  __syncwarp();
  return {blocks, begin, begin + run < p.requests ? begin + run : p.requests,
          __reduce_add_sync(0xffffffffu, sum),
          __reduce_max_sync(0xffffffffu, longest)};
}

MLA_DEV int mla_cut_run_stretch(const mla_cut_run &r,
                                const mla_cut_unit &unit) {
  int sum = 0;
#pragma unroll 1
  for (int b = r.begin; b < r.end; b++)
    sum += mla_cut_stretch(r.blocks[b], unit);
  return sum;
}

/* The shortest parts that requests fit into whole; equal ones if they are no
   longer. */
MLA_DEV mla_cut mla_cut_of(const mla_decode_plan &p, const mla_cut_run &r) {
  const int each = p.requests_each;
  int unit = each > 1 ? r.longest : mla_plan_share(p, r.total);
  mla_cut cut = {r.total + MLA_SM90_COST * p.requests, 0, {0, 0}};
  cut.share = mla_plan_share(p, cut.total);
  if (unit < 1) unit = 1;
#pragma unroll 1
  for (; unit * each <= cut.share; unit++) {
    const mla_cut_unit of = mla_cut_unit_of(unit);
    const int stretch = mla_cut_run_stretch(r, of);
    const int total = __reduce_add_sync(0xffffffffu, stretch);
    if (total <= p.parts * unit * each) return {total, unit * each, of};
  }
  return cut;
}

/* A part's first request, were all as long. */
MLA_DEV int mla_cut_alike(const mla_decode_plan &p, int part) {
  const int request = part / p.parts_each * p.requests_each;
  return request < p.requests ? request : p.requests;
}

/* Its place then, each part of `unit` blocks a request. */
MLA_DEV mla_cut_place mla_cut_place_alike(const mla_decode_plan &p, int unit,
                                          int request,
                                          const mla_plan_request &of) {
  const int stretch = unit * p.parts_each;
  mla_cut_place at = {};
  at.share = unit * p.requests_each;
  at.unit = mla_cut_unit_of(stretch);
  at.total = p.requests * stretch;
  at.request = request;
  at.begin = request * stretch;
  at.of = of;
  return at;
}

/* That unit; 0 where the longest part would be a block and a sixteenth longer
   than the mean. */
MLA_DEV int mla_cut_unit_alike(const mla_decode_plan &p, const mla_cut_run &r) {
  const int unit = (r.longest + p.parts_each - 1) / p.parts_each;
  const float longest = (float)unit * (float)(p.requests_each * p.parts);
  if (16.0f * longest > 17.0f * (float)r.total + 16.0f * (float)p.parts)
    return 0;
  return unit < 1 ? 1 : unit;
}

/* As mla_plan_of_part, of these parts; blocks: room for requests. */
MLA_DEV mla_cut_place mla_cut_of_part(const mla_decode_plan &p, int part,
                                      int *blocks) {
  const int alike = mla_cut_alike(p, part);
  if (p.whole)
    return mla_cut_place_alike(p, p.whole, alike, mla_cut_request(p, alike));
  /* With up to 32 requests one of these is it. */
  const mla_plan_request near = mla_cut_request(p, MLA_LANE);
  mla_plan_request likely = {0, 0, 0, 0};
  if (p.requests > 32) likely = mla_cut_request(p, alike);
  const mla_cut_run r = mla_cut_begin(p, blocks);
  if (p.requests <= 32) likely = mla_plan_from_lane(near, alike);
  const int unit = mla_cut_unit_alike(p, r);
  if (unit) return mla_cut_place_alike(p, unit, alike, likely);
  const mla_cut cut = mla_cut_of(p, r);
  const int mine = mla_cut_run_stretch(r, cut.unit);
  int before, b = r.begin;
  mla_wave_scan(mine, &before);
  mla_cut_place at = {};
  at.total = at.begin = cut.total;
  at.share = cut.share;
  at.unit = cut.unit;
  at.request = p.requests;
  const int find = part * at.share;
  const int holds = mine && before <= find && find < before + mine;
  const unsigned hit = __ballot_sync(0xffffffffu, holds);
  if (!hit) return at;
  const int holder = __ffs((int)hit) - 1;
#pragma unroll 1
  while (holds && b + 1 < r.end) {
    const int n = mla_cut_stretch(r.blocks[b], at.unit);
    if (before + n > find) break;
    before += n;
    b++;
  }
  at.request = MLA_SHFL(b, holder);
  at.begin = MLA_SHFL(before, holder);
  const mla_plan_request of = at.request < 32
                                  ? mla_plan_from_lane(near, at.request)
                                  : mla_cut_request(p, at.request);
  at.of = of;
  return at;
}

/* A warp asks for the table of the request that is this part's if all are as
   long: what the kernels ahead write there, the second-level cache has too. */
MLA_DEV void sm90_expect_table(const mla_sm90_args &a) {
  const int request = mla_cut_alike(a.plan, (int)blockIdx.y);
  const int page = 32 * MLA_LANE; /* a line's first */
  if (request < a.plan.requests && page < a.table_width)
    prefetch_line(a.table + request * a.table_row + page);
}

/* The place of this CTA's part, by one of two warps. */
MLA_DEV void sm90_find_cut(const mla_sm90_args &a, mla_cut_place *place,
                           int finder) {
  __shared__ int blocks[2][MLA_CUT_REQUESTS];
  const mla_cut_place at =
      mla_cut_of_part(a.plan, (int)blockIdx.y, blocks[finder]);
  if (MLA_LANE == 0) *place = at;
  __syncwarp();
}

#endif
