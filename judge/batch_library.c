/*
 * batch_library.c - what the library's own builder makes of a case.
 */
#include <stdlib.h>
#include <string.h>

#include "batch_case.h"
#include "error.h"
#include "mla/context_parallel.h"

typedef struct maker {
  const mla_batch_case *c;
  mla_batch batch;
  void *memory;
  mla_error *err;
} maker;

static void put_ints(mla_batch_step *to, int array, const int32_t *from,
                     int64_t count) {
  int64_t *value = mla_batch_values(to, array);
  for (int64_t i = 0; i < count; i++) value[i] = from[i];
  to->count[array] = count;
}

static void put_longs(mla_batch_step *to, int array, const int64_t *from,
                      int64_t count) {
  memcpy(mla_batch_values(to, array), from, (size_t)count * sizeof *from);
  to->count[array] = count;
}

static void put_pair(mla_batch_step *to, int array, int64_t a, int64_t b) {
  const int64_t pair[] = {a, b};
  put_longs(to, array, pair, 2);
}

/* ------------------------------------------------------------------ a step */

/* The bounds of the largest step: what is reserved once. */
static mla_batch_bounds largest(const maker *m) {
  const mla_batch_room *room = &m->batch.room;
  mla_batch_bounds b =
      mla_batch_measure(&m->batch, m->c->units, m->c->invariant);
  b.requests = room->requests;
  b.tokens = b.max_query_len = room->tokens;
  b.max_seq_len = room->table_width * room->block_size;
  return b;
}

static mla_status put_splits(maker *m, mla_batch_step *to) {
  mla_limits now = mla_limits_init(), reserved = mla_limits_init();
  mla_batch_bounds step =
      mla_batch_measure(&m->batch, m->c->units, m->c->invariant);
  mla_batch_bounds most = largest(m);
  mla_status status = mla_batch_limits(&step, &now, m->err);
  if (status == MLA_OK) status = mla_batch_limits(&most, &reserved, m->err);
  put_pair(to, MLA_BATCH_SPLITS, now.num_splits, reserved.num_splits);
  return status;
}

static mla_status put_ranks(maker *m, mla_batch_step *to) {
  const mla_batch *b = &m->batch;
  const mla_cp_table table = {b->block_table, b->room.table_width,
                              b->room.table_width};
  static const size_t wide = (size_t)MLA_BATCH_ROWS * MLA_BATCH_WIDTH;
  int32_t lens[MLA_BATCH_ROWS], starts[MLA_BATCH_ROWS + 1];
  int32_t *ids = malloc(wide * sizeof *ids);
  mla_status status = ids ? MLA_OK : MLA_OUT_OF_MEMORY;
  int64_t *slots = mla_batch_values(to, MLA_BATCH_RANK_SLOTS);
  int64_t *lengths = mla_batch_values(to, MLA_BATCH_RANK_LENS);
  for (int32_t r = 0; status == MLA_OK && r < m->c->ranks; r++) {
    mla_cp_map map = {m->c->ranks, m->c->interleave, r, m->c->block_size};
    status = mla_cp_slots(&map, b, &table, slots + r * b->tokens, m->err);
    if (status == MLA_OK)
      status =
          mla_cp_rows(&map, b, &table, m->c->causal, lens, starts, ids, m->err);
    for (int64_t i = 0; status == MLA_OK && i < b->tokens; i++)
      lengths[r * b->tokens + i] = lens[i];
  }
  free(ids);
  to->count[MLA_BATCH_RANK_SLOTS] = to->count[MLA_BATCH_RANK_LENS] =
      m->c->ranks * b->tokens;
  return status;
}

static mla_status put_step(maker *m, mla_batch_step *to) {
  const mla_batch *b = &m->batch;
  int32_t lens[MLA_BATCH_ROWS];
  put_longs(to, MLA_BATCH_POSITIONS, b->positions, b->tokens);
  put_longs(to, MLA_BATCH_SLOT_MAPPING, b->slot_mapping, b->tokens);
  put_ints(to, MLA_BATCH_QUERY_START_LOC, b->query_start_loc, b->requests + 1);
  put_ints(to, MLA_BATCH_SEQ_LENS, b->seq_lens, b->requests);
  put_ints(to, MLA_BATCH_BLOCK_TABLE, b->block_table,
           b->requests * b->room.table_width);
  mla_batch_row_lens(b, m->c->causal, lens);
  put_ints(to, MLA_BATCH_ROW_LENS, lens, b->tokens);
  put_ints(to, MLA_BATCH_ORDER, b->order, b->requests);
  put_ints(to, MLA_BATCH_ROW_SOURCES, b->rows, b->tokens);
  put_ints(to, MLA_BATCH_TOKEN_IDS, b->token_ids, b->tokens);
  put_pair(to, MLA_BATCH_DECODES, b->decodes, b->decode_tokens);
  mla_status status = put_splits(m, to);
  return status == MLA_OK ? put_ranks(m, to) : status;
}

/* ------------------------------------------------------------------- steps */

static mla_status first_step(maker *m) {
  const mla_batch_case *c = m->c;
  int64_t starts[MLA_BATCH_REQUESTS + 1];
  mla_batch_input in = {(uint32_t)sizeof in, c->threshold, c->requests,
                        c->num_blocks,       c->context,   c->rows,
                        c->blocks,           starts,       c->tokens};
  for (int32_t b = 0; b <= c->requests; b++) starts[b] = c->starts[b];
  mla_status status = mla_batch_build(&m->batch, &in, m->err);
  if (status == MLA_OK && c->pad_requests)
    status = mla_batch_pad(&m->batch, c->pad_requests, c->pad_tokens, m->err);
  return status;
}

static mla_status next_step(maker *m, const mla_batch_turn *turn) {
  mla_batch_next next = {
      (uint32_t)sizeof next, 0, turn->requests, turn->kept, turn->rows,
      turn->tokens};
  mla_status status = MLA_OK;
  for (int32_t p = 0; status == MLA_OK && p < turn->requests; p++)
    status = mla_batch_extend(&m->batch, p, turn->more + turn->more_starts[p],
                              turn->more_starts[p + 1] - turn->more_starts[p],
                              m->err);
  return status == MLA_OK ? mla_batch_advance(&m->batch, &next, m->err)
                          : status;
}

static mla_status all_steps(maker *m, mla_batch_answer *to) {
  mla_status status = first_step(m);
  if (status == MLA_OK) status = put_step(m, &to->step[0]);
  for (int32_t t = 0; status == MLA_OK && t < m->c->turns; t++) {
    status = next_step(m, &m->c->turn[t]);
    if (status == MLA_OK) status = put_step(m, &to->step[t + 1]);
  }
  return status;
}

mla_status mla_batch_case_build(const mla_batch_case *c, mla_batch_answer *to,
                                mla_error *err) {
  const mla_batch_room room = {(uint32_t)sizeof room, c->block_size,
                               c->room_requests, c->room_tokens,
                               c->table_width};
  uint64_t bytes = mla_batch_bytes(&room);
  maker m;
  memset(&m, 0, sizeof m);
  m.c = c;
  m.err = err;
  m.memory = bytes ? malloc((size_t)bytes) : NULL;
  if (!m.memory)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "batch", "no memory for a batch");
  to->steps = c->turns + 1;
  mla_status status = mla_batch_place(&m.batch, &room, m.memory, bytes, err);
  if (status == MLA_OK) status = all_steps(&m, to);
  free(m.memory);
  return status;
}
