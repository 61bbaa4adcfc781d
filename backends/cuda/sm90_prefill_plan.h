/*
 * sm90_prefill_plan.h - the order in which prefill's CTAs take their work.
 *
 * A tile is 128 query rows of a request; work is a tile of a head. Heads are
 * taken in sections small enough for their keys and values to stay in the
 * second-level cache; in a section the long tiles of a request come first.
 */
#ifndef MLA_SM90_PREFILL_PLAN_H
#define MLA_SM90_PREFILL_PLAN_H

#include "sm90_decode_plan.h"

enum { PREFILL_TILE = 128 };

typedef struct mla_prefill_plan {
  const int32_t *start;
  int64_t start_step;
  int requests, heads, section;
  const int32_t *seq_lens; /* NULL: there is no context */
  int64_t seq_lens_step;
  int chunk; /* slots a request has: a part of the context; 0: new tokens */
  int first; /* the first position of the chunk */
} mla_prefill_plan;

typedef struct prefill_work {
  int head;
  int first, length;   /* the request's rows */
  int tile;            /* of its rows */
  int keys, key_count; /* the first of the part, where they lie */
  int restores, keeps; /* sums of the part before, for the part behind */
} prefill_work;

MLA_DEV int prefill_start(const mla_prefill_plan &p, int b) {
  return p.start[b * p.start_step];
}
/* Keys of a request before its new tokens, from the part's first on. */
MLA_DEV int prefill_context(const mla_prefill_plan &p, int b) {
  if (!p.seq_lens) return 0;
  return p.seq_lens[b * p.seq_lens_step] -
         (prefill_start(p, b + 1) - prefill_start(p, b)) - p.first;
}
MLA_DEV int prefill_tiles(const mla_prefill_plan &p, int b) {
  if (b >= p.requests || (p.chunk && prefill_context(p, b) <= 0)) return 0;
  return (prefill_start(p, b + 1) - prefill_start(p, b) + PREFILL_TILE - 1) /
         PREFILL_TILE;
}

/* Tiles of all requests, and those before this lane's run of requests. */
typedef struct prefill_sums {
  int run, mine, before, tiles;
} prefill_sums;

MLA_DEV prefill_sums prefill_count(const mla_prefill_plan &p) {
  prefill_sums s;
  s.run = (p.requests + 31) / 32;
  s.mine = 0;
  for (int i = 0; i < s.run; i++)
    s.mine += prefill_tiles(p, MLA_LANE * s.run + i);
  s.tiles = mla_wave_scan(s.mine, &s.before);
  return s;
}

/* What the part has of request b. Parts go from the new tokens down. */
MLA_DEV void prefill_keys(const mla_prefill_plan &p, int b, prefill_work *w) {
  const int context = prefill_context(p, b);
  w->keys = p.chunk ? b * p.chunk : w->first;
  w->key_count = p.chunk ? min(context, p.chunk) : w->length;
  w->restores = p.chunk > 0;
  w->keeps = p.chunk ? p.first > 0 : context > 0;
}

/* All lanes of a wave ask together. */
MLA_DEV prefill_work prefill_find(const mla_prefill_plan &p,
                                  const prefill_sums &s, int work) {
  const int section = work / (s.tiles * p.section);
  const int head0 = section * p.section;
  const int heads = min(p.section, p.heads - head0);
  const int rest = work - s.tiles * head0;
  const int find = rest / heads;
  int b = MLA_LANE * s.run, before = s.before;
  const int holds = s.before <= find && find < s.before + s.mine;
  if (holds)
    for (int n; n = prefill_tiles(p, b), before + n <= find; b++) before += n;
  const int holder = __ffs((int)__ballot_sync(0xffffffffu, holds)) - 1;
  b = MLA_SHFL(b, holder);
  before = MLA_SHFL(before, holder);
  prefill_work w;
  w.head = head0 + rest % heads;
  w.first = prefill_start(p, b);
  w.length = prefill_start(p, b + 1) - w.first;
  w.tile = prefill_tiles(p, b) - 1 - (find - before);
  prefill_keys(p, b, &w);
  return w;
}

#endif
