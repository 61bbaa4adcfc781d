#include "batch_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"

enum { GUARD = 64, PATTERN = 0xa5 };

draws draws_from(uint64_t seed) {
  draws d = {mla_rng_named(seed, "batch"), 0};
  return d;
}

int32_t draw(draws *d, int32_t least, int32_t most) {
  return least +
         (int32_t)mla_rng_below(d->rng, d->at++, (uint32_t)(most - least + 1));
}

/* ------------------------------------------------------------- requests */

static int64_t blocks_of(const step_requests *r, int64_t b) {
  int64_t length = (int64_t)r->context[b] + r->rows[b];
  return (length + r->block_size - 1) / r->block_size;
}

static void draw_lengths(step_requests *r, draws *d) {
  for (int64_t b = 0; b < r->input.requests; b++) {
    static const int32_t most[] = {0, 1, 1, 3, 17, FIXTURE_ROWS};
    r->rows[b] = draw(d, 0, most[draw(d, 0, 5)]);
    r->context[b] = draw(d, 0, 1) ? draw(d, 0, 40) : 0;
  }
}

static void draw_lists(step_requests *r, draws *d) {
  for (int64_t b = 0; b < r->input.requests; b++) {
    int64_t n = blocks_of(r, b) + draw(d, 0, 2);
    r->starts[b + 1] = r->starts[b] + n;
    if (n > r->table_width) r->table_width = n;
  }
  int64_t total = r->starts[r->input.requests];
  r->ids = malloc((size_t)total * sizeof *r->ids + 1);
  for (int64_t i = 0; i < total; i++)
    r->ids[i] = draw(d, 0, FIXTURE_BLOCKS - 1);
}

void requests_random(step_requests *r, draws *d) {
  memset(r, 0, sizeof *r);
  r->input.size = (uint32_t)sizeof r->input;
  r->input.requests = draw(d, 0, FIXTURE_REQUESTS);
  r->input.num_blocks = FIXTURE_BLOCKS;
  r->input.decode_threshold = draw(d, 0, 3);
  r->block_size = draw(d, 1, 20);
  draw_lengths(r, d);
  draw_lists(r, d);
  int64_t total = requests_tokens(r);
  r->tokens = malloc((size_t)total * sizeof *r->tokens + 1);
  for (int64_t i = 0; i < total; i++) r->tokens[i] = draw(d, 0, 100000);
  r->input.context_lens = r->context;
  r->input.query_lens = r->rows;
  r->input.block_ids = r->ids;
  r->input.block_starts = r->starts;
  r->input.token_ids = r->tokens;
}

void requests_free(step_requests *r) {
  free(r->ids);
  free(r->tokens);
}

int64_t requests_tokens(const step_requests *r) {
  int64_t sum = 0;
  for (int64_t b = 0; b < r->input.requests; b++) sum += r->rows[b];
  return sum;
}

int64_t slot_of(const step_requests *r, int64_t b, int64_t j) {
  int64_t id = r->ids[r->starts[b] + j / r->block_size];
  return id * r->block_size + j % r->block_size;
}

/* --------------------------------------------------------------- memory */

mla_batch_room room_for(const step_requests *r, int64_t more) {
  mla_batch_room room;
  memset(&room, 0, sizeof room);
  room.size = (uint32_t)sizeof room;
  room.block_size = r->block_size;
  room.requests = r->input.requests + more;
  room.tokens = requests_tokens(r) + more;
  room.table_width = r->table_width + more;
  if (room.requests < 1) room.requests = 1;
  if (room.tokens < 1) room.tokens = 1;
  if (room.table_width < 1) room.table_width = 1;
  return room;
}

void batch_memory_new(batch_memory *m, const mla_batch_room *room) {
  m->bytes = mla_batch_bytes(room);
  ck_assert(m->bytes > 0);
  m->memory = malloc((size_t)m->bytes + GUARD);
  memset(m->memory, PATTERN, (size_t)m->bytes + GUARD);
  ck_assert_int_eq(mla_batch_place(&m->batch, room, m->memory, m->bytes, NULL),
                   MLA_OK);
}

void batch_memory_free(batch_memory *m) {
  for (int i = 0; i < GUARD; i++)
    ck_assert_int_eq(m->memory[m->bytes + (uint64_t)i], PATTERN);
  free(m->memory);
}

unsigned char *batch_memory_copy(const batch_memory *m) {
  unsigned char *copy = malloc(sizeof m->batch + (size_t)m->bytes);
  memcpy(copy, &m->batch, sizeof m->batch);
  memcpy(copy + sizeof m->batch, m->memory, (size_t)m->bytes);
  return copy;
}

int batch_memory_same(const batch_memory *m, const unsigned char *copy) {
  return memcmp(copy, &m->batch, sizeof m->batch) == 0 &&
         memcmp(copy + sizeof m->batch, m->memory, (size_t)m->bytes) == 0;
}

/* ------------------------------------------------------------- the step */

static void require_request(const mla_batch *batch, const step_requests *r,
                            int64_t place) {
  int64_t b = batch->order[place], first = batch->query_start_loc[place];
  const int32_t *table = batch->block_table + place * batch->room.table_width;
  int64_t n = r->starts[b + 1] - r->starts[b];
  ck_assert_int_eq(batch->query_start_loc[place + 1] - first, r->rows[b]);
  ck_assert_int_eq(batch->seq_lens[place], r->context[b] + r->rows[b]);
  ck_assert_int_eq(batch->block_counts[place], n);
  for (int64_t w = 0; w < batch->room.table_width; w++)
    ck_assert_int_eq(table[w],
                     w < n ? r->ids[r->starts[b] + w] : batch->pad_block);
  for (int64_t t = 0; t < r->rows[b]; t++) {
    ck_assert_int_eq(batch->positions[first + t], r->context[b] + t);
    ck_assert_int_eq(batch->slot_mapping[first + t],
                     slot_of(r, b, r->context[b] + t));
  }
}

static void require_padding(const mla_batch *batch) {
  for (int64_t b = batch->live_requests; b < batch->requests; b++) {
    const int32_t *table = batch->block_table + b * batch->room.table_width;
    ck_assert_int_eq(batch->query_start_loc[b + 1], batch->live_tokens);
    ck_assert_int_eq(batch->seq_lens[b], 0);
    ck_assert_int_eq(batch->block_counts[b], 0);
    ck_assert_int_eq(batch->order[b], -1);
    for (int64_t w = 0; w < batch->room.table_width; w++)
      ck_assert_int_eq(table[w], batch->pad_block);
  }
  for (int64_t i = batch->live_tokens; i < batch->tokens; i++) {
    ck_assert_int_eq(batch->positions[i], 0);
    ck_assert_int_eq(batch->slot_mapping[i], -1);
    ck_assert_int_eq(batch->rows[i], -1);
    ck_assert_int_eq(batch->token_ids[i], 0);
  }
}

void require_step(const mla_batch *batch, const step_requests *r) {
  ck_assert_int_eq(batch->live_requests, r->input.requests);
  ck_assert_int_eq(batch->live_tokens, requests_tokens(r));
  ck_assert_int_eq(batch->query_start_loc[0], 0);
  for (int64_t p = 0; p < batch->live_requests; p++)
    require_request(batch, r, p);
  require_padding(batch);
}
