/*
 * planted_batch.c - steps element by element, and mistakes where they are
 * made.
 */
#include "planted_batch.h"

#include <string.h>

#define FAULT(b, id) ((b)->fault == PLANTED_BATCH_##id)

/* A request at its place. */
typedef struct place {
  int32_t request, rows, had; /* had: rows of the step before */
  int64_t context;
  int32_t count, id[MLA_BATCH_WIDTH]; /* its blocks */
} place;

typedef struct builder {
  const mla_batch_case *c;
  int32_t fault, a, step;
  int32_t live, rows, was_live; /* was: of the step before */
  int64_t requests, tokens;     /* of the launch */
  place place[MLA_BATCH_REQUESTS];
  mla_batch_step *to;
  const mla_batch_step *last; /* the step before, or NULL */
} builder;

static int64_t *array_of(builder *b, int array, int64_t count) {
  b->to->count[array] = count;
  return mla_batch_values(b->to, array);
}

/* ------------------------------------------------------------------ places */

static int is_later(const builder *b, int32_t request) {
  int32_t most = b->c->threshold;
  if (most <= 0) return 0;
  if (FAULT(b, ORDER_THRESHOLD)) most += b->a;
  return b->c->rows[request] > most;
}

static void swap_order(const builder *b, int32_t *order) {
  int32_t n = b->c->requests, decodes = 0, i = 0;
  for (int32_t r = 0; r < n; r++) order[r] = r, decodes += !is_later(b, r);
  for (int32_t k = n - 1; k >= decodes; k--) {
    if (is_later(b, k)) continue;
    while (!is_later(b, i)) i++;
    order[i] = k;
    order[k] = i++;
  }
}

static void find_order(const builder *b, int32_t *order) {
  int32_t p = 0;
  if (FAULT(b, ORDER_SWAPPED)) {
    swap_order(b, order);
    return;
  }
  for (int32_t r = 0; r < b->c->requests; r++)
    if (!is_later(b, r)) order[p++] = r;
  for (int32_t r = 0; r < b->c->requests; r++)
    if (is_later(b, r)) order[p++] = r;
}

static void first_places(builder *b) {
  const mla_batch_case *c = b->c;
  int32_t order[MLA_BATCH_REQUESTS];
  find_order(b, order);
  b->live = c->requests;
  for (int32_t p = 0; p < b->live; p++) {
    place *at = &b->place[p];
    at->request = order[p];
    at->rows = c->rows[order[p]];
    at->context = c->context[order[p]];
    for (int32_t i = c->starts[order[p]]; i < c->starts[order[p] + 1]; i++)
      at->id[at->count++] = c->blocks[i];
  }
}

static void next_places(builder *b, const mla_batch_turn *turn) {
  b->was_live = b->live;
  b->live = turn->requests;
  for (int32_t p = 0; p < b->live; p++) {
    place *at = &b->place[p];
    int32_t more = FAULT(b, NEXT_ONE)        ? 1
                   : FAULT(b, NEXT_REJECTED) ? at->rows
                                             : turn->kept[p];
    at->had = at->rows;
    at->context += more;
    at->rows = turn->rows[p];
    for (int32_t i = turn->more_starts[p]; i < turn->more_starts[p + 1]; i++)
      if (at->count < MLA_BATCH_WIDTH) at->id[at->count++] = turn->more[i];
  }
}

static void measure(builder *b) {
  const mla_batch_case *c = b->c;
  b->rows = 0;
  for (int32_t p = 0; p < b->live; p++) b->rows += b->place[p].rows;
  b->requests = c->pad_requests ? c->pad_requests : b->live;
  b->tokens = c->pad_requests ? c->pad_tokens : b->rows;
}

/* ------------------------------------------------------------------- slots */

/* How many of a place's blocks a table can hold. */
static int32_t width_of(const builder *b) {
  int32_t most = 1;
  if (!FAULT(b, NEXT_WIDTH)) return b->c->table_width;
  for (int32_t r = 0; r < b->c->requests; r++) {
    int32_t n = b->c->starts[r + 1] - b->c->starts[r];
    if (n > most) most = n;
  }
  return most;
}

static int64_t block_of(const builder *b, const place *at, int64_t i) {
  return i >= 0 && i < at->count && i < width_of(b) ? at->id[i] : 0;
}

static int64_t narrow(int64_t slot, int32_t bits) {
  int64_t turn = INT64_C(1) << bits;
  int64_t low = slot % turn;
  return low >= turn / 2 ? low - turn : low;
}

static int64_t slot_at(const builder *b, const place *at, int64_t position) {
  int64_t size = b->c->block_size;
  if (position < 0) return -1; /* of a builder that is off by one */
  int64_t slot = block_of(b, at, position / size) * size + position % size;
  int first = position > 0 && position % size == 0;
  int64_t behind = block_of(b, at, position / size - 1) * size + size;
  if (FAULT(b, SLOT_PAGE))
    return block_of(b, at, position / b->a) * b->a + position % b->a;
  if (FAULT(b, SLOT_EDGE) && first) return behind;
  if (FAULT(b, SLOT_BEFORE) && first) return behind - size;
  if (FAULT(b, NEXT_PAGE) && first && b->step > 0 && position == at->context)
    return behind;
  if (FAULT(b, SLOT_CONSECUTIVE)) return at->id[0] * size + position;
  return FAULT(b, SLOT_BITS) ? narrow(slot, b->a) : slot;
}

static int64_t padding_slot(const builder *b, int64_t row) {
  if (FAULT(b, PAD_SLOT)) return 0;
  if (FAULT(b, PAD_STALE) && b->last &&
      row < b->last->count[MLA_BATCH_SLOT_MAPPING])
    return mla_batch_values_of(b->last, MLA_BATCH_SLOT_MAPPING)[row];
  return -1;
}

static void put_slots(builder *b) {
  int64_t *positions = array_of(b, MLA_BATCH_POSITIONS, b->tokens);
  int64_t *slots = array_of(b, MLA_BATCH_SLOT_MAPPING, b->tokens);
  int64_t i = 0;
  for (int32_t p = 0; p < b->live; p++)
    for (int32_t t = 0; t < b->place[p].rows; t++, i++) {
      int64_t position = b->place[p].context + t;
      if (FAULT(b, POSITION_OFF)) position += b->a;
      if (FAULT(b, LENS_SHORT)) position -= b->place[p].rows;
      positions[i] = FAULT(b, POSITION_ZERO) ? t : position;
      slots[i] =
          slot_at(b, &b->place[p], FAULT(b, SLOT_CONTEXT) ? t : position);
    }
  for (; i < b->tokens; i++) {
    positions[i] = 0;
    slots[i] = padding_slot(b, i);
  }
}

/* ----------------------------------------------------------------- lengths */

static int64_t visible(const builder *b, const place *at, int32_t t) {
  int64_t length = at->context + at->rows;
  if (FAULT(b, LENS_SHORT))
    return b->c->causal ? at->context - at->rows + t + 1 : at->context;
  if (FAULT(b, ROW_MASKED)) return at->context + t + 1;
  if (!b->c->causal || FAULT(b, ROW_ALL)) return length;
  if (FAULT(b, ROW_FIRST)) return at->context + 1;
  if (FAULT(b, ROW_TOP_LEFT)) return t + 1;
  return at->context + t + 1 + (FAULT(b, ROW_OFF) ? b->a : 0);
}

static int64_t length_at(const builder *b, int64_t p) {
  const int64_t *before =
      b->last ? mla_batch_values_of(b->last, MLA_BATCH_SEQ_LENS) : NULL;
  if (p < b->live) {
    const place *at = &b->place[p];
    if (FAULT(b, NEXT_LENS) && before) return before[p];
    int lacks = FAULT(b, LENS_CONTEXT) || FAULT(b, LENS_SHORT);
    return at->context + (lacks ? 0 : at->rows);
  }
  if (FAULT(b, PAD_ENDED) && before && p < b->was_live) return before[p];
  return FAULT(b, PAD_LENGTH) ? 1 : 0;
}

static void put_lengths(builder *b) {
  int64_t *lens = array_of(b, MLA_BATCH_SEQ_LENS, b->requests);
  int64_t *rows = array_of(b, MLA_BATCH_ROW_LENS, b->tokens), i = 0;
  for (int64_t p = 0; p < b->requests; p++) lens[p] = length_at(b, p);
  for (int32_t p = 0; p < b->live; p++)
    for (int32_t t = 0; t < b->place[p].rows; t++)
      rows[i++] = visible(b, &b->place[p], t);
  while (i < b->tokens) rows[i++] = 0;
}

static void put_starts(builder *b) {
  int64_t *starts = array_of(b, MLA_BATCH_QUERY_START_LOC, b->requests + 1);
  starts[0] = 0;
  for (int64_t p = 0; p < b->requests; p++)
    starts[p + 1] = starts[p] + (p < b->live ? b->place[p].rows : 0);
  if (FAULT(b, PAD_START) && b->live < b->requests)
    starts[b->requests] = b->tokens;
  if (FAULT(b, START_ZERO)) {
    memmove(starts, starts + 1, (size_t)b->requests * sizeof *starts);
    b->to->count[MLA_BATCH_QUERY_START_LOC] = b->requests;
  }
  if (FAULT(b, NEXT_STARTS) && b->last) {
    int64_t n = b->last->count[MLA_BATCH_QUERY_START_LOC];
    const int64_t *before =
        mla_batch_values_of(b->last, MLA_BATCH_QUERY_START_LOC);
    for (int64_t p = 0; p <= b->requests && p < n; p++) starts[p] = before[p];
  }
}

/* ------------------------------------------------------- tables and tokens */

static void put_table(builder *b) {
  int64_t width = b->c->table_width;
  int64_t *table = array_of(b, MLA_BATCH_BLOCK_TABLE, b->requests * width);
  for (int64_t p = 0; p < b->requests; p++)
    for (int64_t w = 0; w < width; w++) {
      const place *at = &b->place[p];
      for (int32_t k = 0; FAULT(b, ORDER_TABLE) && k < b->live; k++)
        if (b->place[k].request == p && p < b->live) at = &b->place[k];
      table[p * width + w] = p < b->live ? block_of(b, at, w) : 0;
    }
}

/* Where the rows of a request begin in the input. */
static int64_t first_of(const builder *b, int32_t request) {
  int64_t first = 0;
  for (int32_t r = 0; r < request; r++) first += b->c->rows[r];
  return first;
}

static void put_tokens(builder *b) {
  int64_t *order = array_of(b, MLA_BATCH_ORDER, b->requests);
  int64_t *sources = array_of(b, MLA_BATCH_ROW_SOURCES, b->tokens);
  int64_t *ids = array_of(b, MLA_BATCH_TOKEN_IDS, b->tokens), i = 0;
  const int32_t *given =
      b->step ? b->c->turn[b->step - 1].tokens : b->c->tokens;
  for (int64_t p = 0; p < b->requests; p++)
    order[p] = p < b->live ? b->place[p].request : -1;
  for (int32_t p = 0; p < b->live; p++)
    for (int32_t t = 0; t < b->place[p].rows; t++, i++) {
      int moves = !b->step && !FAULT(b, ORDER_TOKENS);
      sources[i] = moves ? first_of(b, b->place[p].request) + t : i;
      ids[i] = given[sources[i]];
      if (FAULT(b, NEXT_TOKENS) && b->last &&
          i < b->last->count[MLA_BATCH_TOKEN_IDS])
        ids[i] = mla_batch_values_of(b->last, MLA_BATCH_TOKEN_IDS)[i];
    }
  for (; i < b->tokens; i++) sources[i] = -1, ids[i] = 0;
}

static void put_decodes(builder *b) {
  int64_t *decodes = array_of(b, MLA_BATCH_DECODES, 2);
  decodes[0] = decodes[1] = 0;
  while (decodes[0] < b->live) {
    const place *at = &b->place[decodes[0]];
    int32_t most = b->c->threshold;
    if (FAULT(b, ORDER_THRESHOLD) && !b->step) most += b->a;
    if (at->rows > most) break;
    if (FAULT(b, NEXT_DECODES) && b->step && is_later(b, at->request)) break;
    decodes[1] += at->rows;
    decodes[0]++;
  }
}

/* ------------------------------------------------------------------ splits */

static int64_t splits_for(const builder *b, int64_t length, int reserve) {
  int64_t most = 2 * (int64_t)b->c->units, parts = (length + 511) / 512;
  int64_t power = 1;
  if (FAULT(b, SPLITS_EDGE)) parts = length / 512 + 1;
  if (FAULT(b, SPLITS_UNITS)) most = b->a * (int64_t)b->c->units;
  if (b->c->invariant && !FAULT(b, SPLITS_INVARIANT)) return 1;
  while (power < parts) power *= 2;
  if (FAULT(b, SPLITS_RESERVED) && reserve) power = parts ? parts : 1;
  if (FAULT(b, SPLITS_CAP) && !reserve) return power;
  return power < most ? power : most;
}

static void put_splits(builder *b) {
  int64_t *splits = array_of(b, MLA_BATCH_SPLITS, 2), length = 0;
  int64_t most = 2 * (int64_t)b->c->units;
  for (int32_t p = 0; p < b->live; p++) {
    int64_t n = b->place[p].context + b->place[p].rows;
    if (n > length) length = n;
  }
  splits[0] = splits_for(b, length, 0);
  splits[1] = splits_for(b, (int64_t)b->c->table_width * b->c->block_size, 1);
  if (FAULT(b, SPLITS_MATES) && !b->c->invariant)
    splits[0] = most > b->live ? most / (b->live ? b->live : 1) : 1;
}

/* ------------------------------------------------------------------- ranks */

static int64_t local_len(const builder *b, int64_t n, int64_t rank) {
  int64_t width = FAULT(b, RANK_INTERLEAVE) ? 1 : b->c->interleave, count = 0;
  for (int64_t j = 0; j < n; j++) count += j / width % b->c->ranks == rank;
  int64_t turn = width * b->c->ranks, rest = n % turn - rank * width;
  if (FAULT(b, RANK_SHARE) && rest > width) count += rest - width;
  return count;
}

static int64_t rank_len(const builder *b, const place *at, int32_t t,
                        int64_t rank) {
  int64_t length = at->context + at->rows;
  int64_t n =
      b->c->causal || FAULT(b, RANK_MASKED) ? at->context + t + 1 : length;
  if (!FAULT(b, RANK_MASK)) return local_len(b, n, rank);
  int64_t bound = local_len(b, length, rank) - (length - n);
  return bound > 0 ? bound : 0;
}

static int64_t rank_slot(const builder *b, const place *at, int64_t position,
                         int64_t rank) {
  int64_t width = b->c->interleave, turn = width * b->c->ranks;
  int64_t size = b->c->block_size;
  int64_t local = position / turn * width + position % width;
  if (position / width % b->c->ranks != rank && !FAULT(b, RANK_ALL)) return -1;
  if (FAULT(b, RANK_INDEX)) local = position;
  return block_of(b, at, local / size) * size + local % size;
}

static void put_ranks(builder *b) {
  int64_t all = b->c->ranks * b->tokens;
  int64_t *slots = array_of(b, MLA_BATCH_RANK_SLOTS, all);
  int64_t *lens = array_of(b, MLA_BATCH_RANK_LENS, all);
  for (int64_t rank = 0; rank < b->c->ranks; rank++) {
    int64_t i = rank * b->tokens;
    for (int32_t p = 0; p < b->live; p++)
      for (int32_t t = 0; t < b->place[p].rows; t++, i++) {
        const place *at = &b->place[p];
        slots[i] = rank_slot(b, at, at->context + t, rank);
        lens[i] = rank_len(b, at, t, rank);
      }
    for (; i < (rank + 1) * b->tokens; i++) slots[i] = -1, lens[i] = 0;
  }
}

/* ------------------------------------------------------------------- steps */

static void put_step(builder *b) {
  measure(b);
  put_slots(b);
  put_lengths(b);
  put_starts(b);
  put_table(b);
  put_tokens(b);
  put_decodes(b);
  put_splits(b);
  put_ranks(b);
}

void planted_batch_build(const mla_batch_case *c, int32_t fault, int32_t a,
                         mla_batch_answer *to) {
  builder b;
  memset(&b, 0, sizeof b);
  b.c = c;
  b.fault = fault;
  b.a = a;
  to->steps = c->turns + 1;
  for (b.step = 0; b.step <= c->turns; b.step++) {
    if (b.step)
      next_places(&b, &c->turn[b.step - 1]);
    else
      first_places(&b);
    b.to = &to->step[b.step];
    b.last = b.step ? &to->step[b.step - 1] : NULL;
    put_step(&b);
  }
}
