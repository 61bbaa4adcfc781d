/*
 * batch_draw.c - from the name of a case of batch building to its requests.
 */
#include <stdlib.h>
#include <string.h>

#include "batch_case.h"
#include "error.h"
#include "rng.h"

typedef struct draws {
  mla_rng rng;
  uint64_t at;
} draws;

static int32_t draw(draws *d, int64_t least, int64_t most) {
  return (int32_t)(least + mla_rng_below(d->rng, d->at++,
                                         (uint32_t)(most - least + 1)));
}

static mla_status too_large(mla_error *err, const char *what) {
  return mla_fail(err, MLA_INVALID_ARGUMENT, "case",
                  "batch: %s more than a case may have", what);
}

/* ------------------------------------------------------------------ order */

void mla_batch_case_order(const mla_batch_case *c, int32_t *place) {
  int32_t p = 0;
  for (int later = 0; later < 2; later++)
    for (int32_t b = 0; b < c->requests; b++)
      if ((c->threshold > 0 && c->rows[b] > c->threshold) == later)
        place[p++] = b;
}

/* ------------------------------------------------------------------- steps */

/* The lengths that places have after each step, to give them blocks. */
typedef struct lengths {
  int32_t live, rows[MLA_BATCH_REQUESTS];
  int64_t context[MLA_BATCH_REQUESTS];
} lengths;

static void draw_turn(const mla_batch_recipe *r, draws *d, lengths *at,
                      mla_batch_turn *turn) {
  int32_t n = 0;
  turn->requests = at->live;
  if (r->end && at->live > 1) turn->requests = draw(d, at->live / 2, at->live);
  for (int32_t p = 0; p < turn->requests; p++) {
    int32_t had = at->rows[p];
    turn->kept[p] = r->reject && had > 1 ? draw(d, 1, had) : had;
    turn->rows[p] = draw(d, 1, r->draft);
    at->context[p] += turn->kept[p];
    at->rows[p] = turn->rows[p];
    n += turn->rows[p];
  }
  at->live = turn->requests;
  for (int32_t i = 0; i < n && i < MLA_BATCH_ROWS; i++)
    turn->tokens[i] = draw(d, 1, 100000);
}

static int64_t blocks_for(const mla_batch_case *c, int64_t length) {
  return (length + c->block_size - 1) / c->block_size;
}

/* ------------------------------------------------------------------ blocks */

/* Every block once, in an order that no list follows from. */
typedef struct supply {
  int32_t *id;
  int64_t next, count;
} supply;

static mla_status new_supply(const mla_batch_recipe *r, draws *d, int64_t count,
                             supply *s, mla_batch_case *c, mla_error *err) {
  s->id = malloc((size_t)count * sizeof *s->id + 1);
  s->next = 0;
  s->count = count;
  if (!s->id) return mla_fail(err, MLA_OUT_OF_MEMORY, "case", "no memory");
  for (int64_t i = 0; i < count; i++) s->id[i] = (int32_t)i;
  for (int64_t i = count - 1; i > 0; i--) {
    int32_t k = draw(d, 0, i), id = s->id[i];
    s->id[i] = s->id[k];
    s->id[k] = id;
  }
  c->num_blocks = count;
  if (!r->far) return MLA_OK;
  /* Blocks of a cache whose slots need more than 32 bits. */
  int64_t apart = INT32_MAX / count;
  for (int64_t i = 0; i < count; i++)
    s->id[i] = (int32_t)(s->id[i] * apart + 3 % apart);
  c->num_blocks = INT32_MAX;
  return MLA_OK;
}

static void take(supply *s, int32_t *to, int64_t count) {
  for (int64_t i = 0; i < count; i++) to[i] = s->id[s->next++];
}

static void give_first(mla_batch_case *c, supply *s, int64_t *has) {
  for (int32_t b = 0; b < c->requests; b++) {
    has[b] = blocks_for(c, (int64_t)c->context[b] + c->rows[b]);
    take(s, c->blocks + c->starts[b], has[b]);
    c->starts[b + 1] = c->starts[b] + (int32_t)has[b];
  }
}

/* To each place what its next step lacks, right before it. */
static int give_more(mla_batch_case *c, supply *s, int64_t *has) {
  int32_t place[MLA_BATCH_REQUESTS];
  int64_t context[MLA_BATCH_REQUESTS];
  mla_batch_case_order(c, place);
  for (int32_t p = 0; p < c->requests; p++) context[p] = c->context[place[p]];
  for (int32_t t = 0; t < c->turns; t++) {
    mla_batch_turn *turn = &c->turn[t];
    for (int32_t p = 0; p < turn->requests; p++) {
      context[p] += turn->kept[p];
      int64_t need = blocks_for(c, context[p] + turn->rows[p]);
      int64_t more = need > has[place[p]] ? need - has[place[p]] : 0;
      if (turn->more_starts[p] + more > MLA_BATCH_WIDTH) return 0;
      if (s) take(s, turn->more + turn->more_starts[p], more);
      turn->more_starts[p + 1] = turn->more_starts[p] + (int32_t)more;
      has[place[p]] += more;
    }
  }
  return 1;
}

/* Twice: to count the blocks, and to deal them out. */
static mla_status give_blocks(const mla_batch_recipe *r, draws *d,
                              mla_batch_case *c, mla_error *err) {
  int64_t has[MLA_BATCH_REQUESTS], most = 0, all = 0;
  supply s;
  for (int32_t b = 0; b < c->requests; b++)
    has[b] = blocks_for(c, (int64_t)c->context[b] + c->rows[b]);
  if (!give_more(c, NULL, has)) return too_large(err, "blocks: there are");
  for (int32_t b = 0; b < c->requests; b++) {
    all += has[b];
    if (has[b] > most) most = has[b];
  }
  if (most + r->spare > MLA_BATCH_WIDTH)
    return too_large(err, "the table is wider: there are");
  c->table_width = (int32_t)(most + r->spare > 0 ? most + r->spare : 1);
  mla_status status = new_supply(r, d, all + all / 4 + 3, &s, c, err);
  if (status != MLA_OK) return status;
  give_first(c, &s, has);
  give_more(c, &s, has);
  free(s.id);
  return MLA_OK;
}

/* ---------------------------------------------------------------- the case */

static void copy_recipe(const mla_batch_recipe *r, mla_batch_case *c) {
  c->block_size = (int32_t)r->page;
  c->threshold = (int32_t)r->threshold;
  c->causal = !r->full;
  c->invariant = (int32_t)r->invariant;
  c->units = (int32_t)r->units;
  c->ranks = (int32_t)r->ranks;
  c->interleave = (int32_t)r->interleave;
  c->requests = (int32_t)r->requests;
  c->turns = (int32_t)r->next;
  for (int64_t b = 0; b < r->requests; b++) {
    c->context[b] = (int32_t)r->context[b];
    c->rows[b] = (int32_t)r->rows[b];
  }
}

static int64_t sum(const int32_t *x, int32_t n) {
  int64_t total = 0;
  for (int32_t i = 0; i < n; i++) total += x[i];
  return total;
}

/* A padded launch holds every step that follows. */
static void draw_padding(const mla_batch_recipe *r, mla_batch_case *c) {
  int64_t tokens = sum(c->rows, c->requests) + r->pad[1];
  if (!r->pad[0] && !r->pad[1]) return;
  for (int32_t t = 0; t < c->turns; t++) {
    int64_t n = sum(c->turn[t].rows, c->turn[t].requests);
    if (n > tokens) tokens = n;
  }
  c->pad_requests = c->requests + (int32_t)r->pad[0];
  c->pad_tokens = (int32_t)(tokens ? tokens : 1);
}

static mla_status draw_all(const mla_batch_recipe *r, uint64_t seed,
                           mla_batch_case *c, mla_error *err) {
  draws d = {mla_rng_named(seed, "batch"), 0};
  int32_t place[MLA_BATCH_REQUESTS];
  lengths at;
  copy_recipe(r, c);
  if (sum(c->rows, c->requests) > MLA_BATCH_ROWS)
    return too_large(err, "there are rows,");
  for (int64_t i = 0; i < sum(c->rows, c->requests); i++)
    c->tokens[i] = draw(&d, 1, 100000);
  mla_batch_case_order(c, place);
  at.live = c->requests;
  for (int32_t p = 0; p < c->requests; p++) {
    at.context[p] = c->context[place[p]];
    at.rows[p] = c->rows[place[p]];
  }
  for (int32_t t = 0; t < c->turns; t++) draw_turn(r, &d, &at, &c->turn[t]);
  draw_padding(r, c);
  return give_blocks(r, &d, c, err);
}

mla_status mla_batch_case_draw(const char *id, uint64_t seed, mla_batch_case *c,
                               mla_error *err) {
  mla_batch_recipe r;
  memset(c, 0, sizeof *c);
  mla_status status = mla_batch_case_parse(id, &r, err);
  if (status == MLA_OK) status = draw_all(&r, seed, c, err);
  if (status != MLA_OK) return status;
  mla_batch_case_print(&r, c->id, sizeof c->id);
  c->seed = seed;
  return mla_batch_case_check(c, err);
}

/* ----------------------------------------------------------------- checks */

static mla_status wrong(mla_error *err, const char *what) {
  return mla_fail(err, MLA_INVALID_ARGUMENT, "case",
                  "batch: %s beyond what a case may have", what);
}

static int fits(int64_t value, int64_t least, int64_t most) {
  return value >= least && value <= most;
}

static mla_status check_scalars(const mla_batch_case *c, mla_error *err) {
  if (!fits(c->table_width, 1, MLA_BATCH_WIDTH) ||
      !fits(c->block_size, 1, 1 << 20) || !fits(c->num_blocks, 1, INT32_MAX))
    return wrong(err, "block_size, num_blocks or table_width is");
  if (!fits(c->ranks, 0, MLA_BATCH_RANKS) || !fits(c->interleave, 1, 1 << 20) ||
      !fits(c->units, 1, 1 << 20) || c->threshold < 0)
    return wrong(err, "ranks, interleave, units or threshold is");
  return MLA_OK;
}

static mla_status check_requests(const mla_batch_case *c, mla_error *err) {
  if (!fits(c->requests, 0, MLA_BATCH_REQUESTS) ||
      !fits(c->turns, 0, MLA_BATCH_NEXT))
    return wrong(err, "the number of requests or steps is");
  for (int32_t b = 0; b < c->requests; b++)
    if (!fits(c->context[b], 0, 1 << 20) ||
        !fits(c->rows[b], 0, MLA_BATCH_ROWS) ||
        !fits(c->starts[b + 1] - c->starts[b], 0, c->table_width))
      return wrong(err, "a request's length or block list is");
  return MLA_OK;
}

static mla_status check_turns(const mla_batch_case *c, mla_error *err) {
  int32_t place[MLA_BATCH_REQUESTS], had[MLA_BATCH_REQUESTS];
  int32_t live = c->requests;
  mla_batch_case_order(c, place);
  for (int32_t p = 0; p < live; p++) had[p] = c->rows[place[p]];
  for (int32_t t = 0; t < c->turns; t++) {
    const mla_batch_turn *turn = &c->turn[t];
    if (!fits(turn->requests, 0, live))
      return wrong(err, "the number of requests that go on is");
    live = turn->requests;
    for (int32_t p = 0; p < live; p++) {
      if (!fits(turn->kept[p], 0, had[p]) ||
          !fits(turn->rows[p], 0, MLA_BATCH_ROWS))
        return wrong(err, "kept or query_lens of a next step is");
      had[p] = turn->rows[p];
    }
  }
  return MLA_OK;
}

mla_status mla_batch_case_check(mla_batch_case *c, mla_error *err) {
  mla_status status = check_scalars(c, err);
  if (status == MLA_OK) status = check_requests(c, err);
  if (status == MLA_OK) status = check_turns(c, err);
  if (status != MLA_OK) return status;
  int64_t most = sum(c->rows, c->requests), first = most;
  for (int32_t t = 0; t < c->turns; t++) {
    int64_t n = sum(c->turn[t].rows, c->turn[t].requests);
    if (n > most) most = n;
  }
  int padded = c->pad_requests || c->pad_tokens;
  if (padded && (!fits(c->pad_requests, c->requests, MLA_BATCH_REQUESTS) ||
                 !fits(c->pad_tokens, most, MLA_BATCH_ROWS) ||
                 !c->pad_requests || !c->pad_tokens))
    return wrong(err, "the padding is");
  if (!fits(most, first, MLA_BATCH_ROWS))
    return wrong(err, "the number of rows is");
  c->room_requests = padded ? c->pad_requests : c->requests;
  c->room_tokens = (int32_t)(padded ? c->pad_tokens : most);
  if (!c->room_requests) c->room_requests = 1;
  if (!c->room_tokens) c->room_tokens = 1;
  return MLA_OK;
}
