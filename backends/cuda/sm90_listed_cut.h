/*
 * sm90_listed_cut.h - the plan where keys are listed. If no list has a length
 * of its own the host knows all of them, and cuts where they end: each begins
 * with a part, or each part has as many lists.
 */
#ifndef MLA_SM90_LISTED_CUT_H
#define MLA_SM90_LISTED_CUT_H

#include "sm90_decode_plan.h"

struct mla_list_place : mla_plan_place {
  int stretch; /* of every list; 0: its blocks and the fixed cost */
};

MLA_DEV int mla_plan_on(const mla_list_place &at, int blocks) {
  return at.stretch ? at.stretch : blocks + MLA_SM90_COST;
}

/* As mla_plan_of_part. */
MLA_DEV mla_list_place mla_lists_of_part(const mla_decode_plan &p, int part) {
  mla_list_place at = {};
  at.stretch = p.lists.stretch;
  if (!at.stretch) {
    static_cast<mla_plan_place &>(at) = mla_plan_of_part(p, part);
    return at;
  }
  at.share = p.lists.share;
  at.total = p.requests * at.stretch;
  at.request = part * at.share / at.stretch;
  at.begin = at.request * at.stretch;
  at.of = mla_plan_request_of(p, at.request);
  return at;
}

static inline int mla_lists_up(int64_t n, int64_t unit) {
  return (int)((n + unit - 1) / unit);
}

/* Sets stretch and share where that makes the longest part no longer than
   equal ones would be; 0 elsewhere. */
static inline void mla_lists_cut(mla_decode_plan *p) {
  mla_plan_lists *l = &p->lists;
  const int64_t n = p->requests, parts = p->parts;
  const int blocks = mla_lists_up(l->width, MLA_SM90_BLOCK) +
                     mla_lists_up(l->more_width, MLA_SM90_BLOCK);
  const int equal = mla_lists_up(n * (blocks + MLA_SM90_COST), parts);
  if (n < 2 || l->lengths || l->more_lengths || !blocks) return;
  if (n > parts) {
    const int share = mla_lists_up(n, parts) * blocks;
    /* Equal parts have the same number of blocks, but for a piece's cost. */
    if (share > mla_lists_up(n * blocks, parts) + MLA_SM90_COST) return;
    l->stretch = blocks;
    l->share = share;
    return;
  }
  int unit = mla_lists_up(n * blocks, parts);
  if (unit < 2 && n * blocks >= MLA_SM90_FEW) unit = 2;
  while (mla_lists_up(blocks, unit) * n > parts) unit++;
  if (unit > equal) return;
  l->stretch = mla_lists_up(blocks, unit) * unit;
  l->share = unit;
}

/* Every list is one part's: there is nothing to merge. */
static inline int mla_lists_whole(const mla_decode_plan &p) {
  return p.lists.stretch && p.lists.share % p.lists.stretch == 0;
}

#endif
