/*
 * sm90_decode_plan.h - who computes what: the same arithmetic in the decode
 * kernel, in the merge, and on the host.
 *
 * All requests' 64-key blocks, plus a fixed cost a request, are laid out in a
 * row and cut into equal parts, one part a CTA. A request that lies in several
 * parts is merged. Every CTA finds its place by scanning the lengths: no
 * kernel before it, and a captured graph follows new lengths.
 */
#ifndef MLA_SM90_DECODE_PLAN_H
#define MLA_SM90_DECODE_PLAN_H

#include "gpu_request.h"

enum {
  MLA_SM90_BLOCK = 64,
  MLA_SM90_COST = 5,
  MLA_SM90_FEW = 32,
  MLA_SM90_MOST_PARTS = 256, /* the merge has a thread each */
  MLA_SM90_ROWS = 64,
  /* Blocks that a merge would cost: alone, and where all units are busy. */
  MLA_SM90_FEW_BLOCKS = 4,
  MLA_SM90_FULL_BLOCKS = 16
};

/* Where keys are listed a token is a request of its own. Lengths may be NULL:
   every list is as long as it is wide. Width 0: none. */
typedef struct mla_plan_lists {
  const int32_t *lengths, *more_lengths;
  int64_t step, more_step;
  int width, more_width; /* entries, of the second cache's lists too */
  int stretch, share;    /* sm90_listed_cut.h; 0: as other requests */
} mla_plan_lists;

typedef struct mla_decode_plan {
  const int32_t *seq_lens, *start;
  int64_t seq_lens_step, start_step;
  mla_plan_lists lists;
  int requests, parts;
  /* Were all requests as long: parts each takes, requests a part takes. */
  int parts_each, requests_each;
  int whole; /* blocks at most of a request, where none is split; else 0 */
} mla_decode_plan;

MLA_DEV int mla_plan_up(int keys) {
  return (keys + MLA_SM90_BLOCK - 1) / MLA_SM90_BLOCK;
}
/* Entries of list b of either cache. */
MLA_DEV int mla_plan_list(const mla_plan_lists &l, int b) {
  return mla_list_entries(l.lengths, l.step, l.width, b);
}
MLA_DEV int mla_plan_more(const mla_plan_lists &l, int b) {
  return mla_list_entries(l.more_lengths, l.more_step, l.more_width, b);
}

MLA_DEV int mla_plan_blocks(const mla_decode_plan &p, int b) {
  if (p.lists.width)
    return mla_plan_up(mla_plan_list(p.lists, b)) +
           mla_plan_up(mla_plan_more(p.lists, b));
  return mla_plan_up(p.seq_lens[b * p.seq_lens_step]);
}

/* A request's first token. */
MLA_DEV int mla_plan_token(const mla_decode_plan &p, int b) {
  return p.lists.width ? b : p.start[b * p.start_step];
}

/* Sum over one wave of lanes' values, and that of the lanes before. */
MLA_DEV int mla_wave_scan(int v, int *before) {
  int sum = v;
  for (int m = 1; m < 32; m *= 2) {
    int other = __shfl_up_sync(0xffffffffu, sum, m);
    if (MLA_LANE >= m) sum += other;
  }
  *before = sum - v;
  return __shfl_sync(0xffffffffu, sum, 31);
}

/* Positions a part holds: two at least, unless that leaves few parts. */
MLA_DEV int mla_plan_share(const mla_decode_plan &p, int total) {
  const int share = (total + p.parts - 1) / p.parts;
  return share < 2 && total >= MLA_SM90_FEW ? 2 : share;
}

/* What a piece is made of. */
typedef struct mla_plan_request {
  int blocks, seq, token, end_token; /* seq: 0 where keys are listed */
} mla_plan_request;

MLA_DEV mla_plan_request mla_plan_request_of(const mla_decode_plan &p, int b) {
  mla_plan_request r = {0, 0, 0, 0};
  if (b >= p.requests) return r;
  r.blocks = mla_plan_blocks(p, b);
  r.seq = p.lists.width ? 0 : p.seq_lens[b * p.seq_lens_step];
  r.token = mla_plan_token(p, b);
  r.end_token = mla_plan_token(p, b + 1);
  return r;
}
MLA_DEV mla_plan_request mla_plan_from_lane(const mla_plan_request &r,
                                            int lane) {
  return {MLA_SHFL(r.blocks, lane), MLA_SHFL(r.seq, lane),
          MLA_SHFL(r.token, lane), MLA_SHFL(r.end_token, lane)};
}

/* Where one part begins: its share, its first request and that one's place.
   request == requests: the part is empty. */
typedef struct mla_plan_place {
  int total, share, request, begin;
  mla_plan_request of; /* the request */
} mla_plan_place;

/* How much further the next request begins. */
MLA_DEV int mla_plan_on(const mla_plan_place &at, int blocks) {
  (void)at;
  return blocks + MLA_SM90_COST;
}

/* Length of a request's stretch, and of the stretches of a lane's run. */
MLA_DEV int mla_plan_stretch(const mla_decode_plan &p, int b) {
  return b < p.requests ? mla_plan_blocks(p, b) + MLA_SM90_COST : 0;
}
MLA_DEV int mla_plan_run(const mla_decode_plan &p, int b0, int run) {
  int sum = 0;
#pragma unroll 4
  for (int i = 0; i < run; i++) sum += mla_plan_stretch(p, b0 + i);
  return sum;
}

/* One request: nothing to look for, and no part has two. An empty one is
   written too. */
MLA_DEV mla_plan_place mla_plan_of_one(const mla_decode_plan &p, int part) {
  mla_plan_place at = {0, 0, 0, 0, mla_plan_request_of(p, 0)};
  at.total = at.of.blocks > 1 ? at.of.blocks : 1;
  at.share = mla_plan_share(p, at.total);
  if (part * at.share >= at.total) at.request = 1, at.begin = at.total;
  return at;
}

/*
 * The request that holds the first position of a part. A lane sums a run of
 * requests, its loads independent; one scan; then the lane that holds the
 * position walks its run. The first of a run is loaded whole before all that:
 * with up to 32 requests it is the one.
 */
MLA_DEV mla_plan_place mla_plan_of_part(const mla_decode_plan &p, int part) {
  if (p.requests == 1) return mla_plan_of_one(p, part);
  const int run = (p.requests + 31) / 32;
  int before, b = MLA_LANE * run;
  const mla_plan_request first = mla_plan_request_of(p, b);
  const int mine = run == 1 && b < p.requests ? first.blocks + MLA_SM90_COST
                                              : mla_plan_run(p, b, run);
  mla_plan_place at = {};
  at.total = mla_wave_scan(mine, &before);
  at.share = mla_plan_share(p, at.total);
  at.request = p.requests;
  at.begin = at.total;
  const int find = part * at.share;
  const int holds = mine && before <= find && find < before + mine;
  const unsigned hit = __ballot_sync(0xffffffffu, holds);
  if (!hit) return at;
  const int holder = __ffs((int)hit) - 1;
  if (holds)
    for (int n; n = mla_plan_stretch(p, b), before + n <= find; b++)
      before += n;
  at.request = MLA_SHFL(b, holder);
  at.begin = MLA_SHFL(before, holder);
  at.of = at.request == holder * run ? mla_plan_from_lane(first, holder)
                                     : mla_plan_request_of(p, at.request);
  return at;
}

/* What the merge needs to know of a request that is split: its query rows,
   and the parts that hold some of it. A request that is split begins in one
   part and goes beyond it, so there is one a part at most. */
typedef struct mla_plan_split {
  int first_token, rows; /* rows 0: not split */
  int part, last_part;
} mla_plan_split;

/* A request's last part, from its place. */
MLA_DEV int mla_plan_last(int begin, int blocks, int share) {
  return (begin + (blocks > 0 ? blocks : 1) - 1) / share;
}

/* Scratch of a piece: two a part, its last request's and an earlier one's
   rest, told apart by whether the request begins in the part. */
MLA_DEV int mla_plan_piece(int part, int begins) {
  return 2 * part + (begins ? 1 : 0);
}

#endif
