/*
 * batch.c - where the arrays of a step lie, and what its padding holds.
 */
#include <string.h>

#include "batch_internal.h"
#include "error.h"
#include "sized.h"
#include "tensor.h"

/* --------------------------------------------------------------- memory */

/* A running sum of bytes; UINT64_MAX once it has overflowed. */
static uint64_t add_bytes(uint64_t sum, uint64_t count, uint64_t each) {
  if (sum == UINT64_MAX || count > (UINT64_MAX / 2 - sum) / each)
    return UINT64_MAX;
  return sum + count * each;
}

static mla_status check_room(const mla_batch_room *room, mla_error *err) {
  if (room->block_size < 1)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "block_size",
                    "room.block_size is %d, at least 1", room->block_size);
  if (room->requests < 1 || room->requests > INT32_MAX)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "requests",
                    "room.requests is %lld, it is 1 to %d",
                    (long long)room->requests, INT32_MAX);
  if (room->tokens < 1 || room->tokens > INT32_MAX)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "tokens",
                    "room.tokens is %lld, it is 1 to %d",
                    (long long)room->tokens, INT32_MAX);
  if (room->table_width < 1 || room->table_width > INT32_MAX)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "table_width",
                    "room.table_width is %lld, it is 1 to %d",
                    (long long)room->table_width, INT32_MAX);
  return MLA_OK;
}

/* Wide elements first, so that every array is aligned. */
static uint64_t bytes_of(const mla_batch_room *room) {
  uint64_t requests = (uint64_t)room->requests;
  uint64_t tokens = (uint64_t)room->tokens;
  uint64_t bytes = add_bytes(0, tokens, 2 * sizeof(int64_t));
  bytes = add_bytes(bytes, tokens, 2 * sizeof(int32_t));
  bytes = add_bytes(bytes, 4 * requests + 1, sizeof(int32_t));
  bytes =
      add_bytes(bytes, requests * (uint64_t)room->table_width, sizeof(int32_t));
  return bytes > SIZE_MAX / 2 ? 0 : bytes;
}

uint64_t mla_batch_bytes(const mla_batch_room *room) {
  mla_batch_room own;
  mla_status status =
      mla_sized_read(&own, (uint32_t)sizeof own, room,
                     MLA_SIZE_WITH(mla_batch_room, table_width), "room", NULL);
  if (status != MLA_OK || check_room(&own, NULL) != MLA_OK) return 0;
  return bytes_of(&own);
}

static int32_t *take(int32_t **rest, int64_t count) {
  int32_t *array = *rest;
  *rest += count;
  return array;
}

static void lay_out(mla_batch *batch, void *memory) {
  const mla_batch_room *room = &batch->room;
  batch->positions = memory;
  batch->slot_mapping = batch->positions + room->tokens;
  int32_t *rest = (int32_t *)(batch->slot_mapping + room->tokens);
  batch->rows = take(&rest, room->tokens);
  batch->token_ids = take(&rest, room->tokens);
  batch->query_start_loc = take(&rest, room->requests + 1);
  batch->seq_lens = take(&rest, room->requests);
  batch->block_counts = take(&rest, room->requests);
  batch->order = take(&rest, room->requests);
  batch->block_table = take(&rest, room->requests * room->table_width);
}

mla_status mla_batch_place(mla_batch *batch, const mla_batch_room *room,
                           void *memory, uint64_t bytes, mla_error *err) {
  mla_batch_room own;
  if (!batch)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "batch", "batch is NULL");
  mla_status status =
      mla_sized_read(&own, (uint32_t)sizeof own, room,
                     MLA_SIZE_WITH(mla_batch_room, table_width), "room", err);
  if (status == MLA_OK) status = check_room(&own, err);
  if (status != MLA_OK) return status;
  uint64_t need = bytes_of(&own);
  if (!need)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "room",
                    "room has %lld requests of %lld blocks, whose table no "
                    "memory holds",
                    (long long)own.requests, (long long)own.table_width);
  if (!memory || (uintptr_t)memory % sizeof(int64_t))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "memory",
                    "memory is %s, a multiple of %d is needed",
                    memory ? "misaligned" : "NULL", (int)sizeof(int64_t));
  if (bytes < need)
    return mla_fail(err, MLA_WORKSPACE_TOO_SMALL, "bytes",
                    "bytes is %llu, the room needs %llu",
                    (unsigned long long)bytes, (unsigned long long)need);
  memset(batch, 0, sizeof *batch);
  batch->size = (uint32_t)sizeof *batch;
  batch->room = own;
  lay_out(batch, memory);
  batch->query_start_loc[0] = 0;
  return MLA_OK;
}

mla_status mla_batch_check(const mla_batch *batch, mla_error *err) {
  if (!batch)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "batch", "batch is NULL");
  if (batch->size != sizeof *batch || !batch->positions)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "batch",
                    "batch has size %u and %s; mla_batch_place comes first",
                    batch->size, batch->positions ? "memory" : "no memory");
  return MLA_OK;
}

/* -------------------------------------------------------- rows, padding */

void mla_batch_fill_rows(mla_batch *batch, int64_t place) {
  const int32_t *table = mla_batch_table(batch, place);
  int64_t first = batch->query_start_loc[place];
  int64_t end = batch->query_start_loc[place + 1];
  int64_t size = batch->room.block_size;
  int64_t position = batch->seq_lens[place] - (end - first);
  for (int64_t i = first; i < end; i++, position++) {
    batch->positions[i] = position;
    batch->slot_mapping[i] =
        (int64_t)table[position / size] * size + position % size;
  }
}

static void end_place(mla_batch *batch, int64_t place) {
  int32_t *table = mla_batch_table(batch, place);
  batch->query_start_loc[place + 1] = (int32_t)batch->live_tokens;
  batch->seq_lens[place] = 0;
  batch->block_counts[place] = 0;
  batch->order[place] = -1;
  for (int64_t w = 0; w < batch->room.table_width; w++)
    table[w] = batch->pad_block;
}

void mla_batch_fill_padding(mla_batch *batch) {
  batch->requests =
      batch->pad_requests ? batch->pad_requests : batch->live_requests;
  batch->tokens = batch->pad_tokens ? batch->pad_tokens : batch->live_tokens;
  for (int64_t b = batch->live_requests; b < batch->requests; b++)
    end_place(batch, b);
  for (int64_t i = batch->live_tokens; i < batch->tokens; i++) {
    batch->positions[i] = 0;
    batch->slot_mapping[i] = -1;
    batch->rows[i] = -1;
    batch->token_ids[i] = 0;
  }
}

void mla_batch_count_decodes(mla_batch *batch) {
  int64_t b = 0;
  while (b < batch->live_requests &&
         mla_batch_rows_of(batch, b) <= batch->decode_threshold)
    b++;
  batch->decodes = b;
  batch->decode_tokens = batch->query_start_loc[b];
}

mla_status mla_batch_pad(mla_batch *batch, int64_t requests, int64_t tokens,
                         mla_error *err) {
  mla_status status = mla_batch_check(batch, err);
  if (status != MLA_OK) return status;
  if (requests < batch->live_requests || requests > batch->room.requests)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "requests",
                    "requests is %lld, the step has %lld and there is room "
                    "for %lld",
                    (long long)requests, (long long)batch->live_requests,
                    (long long)batch->room.requests);
  if (tokens < batch->live_tokens || tokens > batch->room.tokens)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "tokens",
                    "tokens is %lld, the step has %lld and there is room for "
                    "%lld",
                    (long long)tokens, (long long)batch->live_tokens,
                    (long long)batch->room.tokens);
  batch->pad_requests = requests;
  batch->pad_tokens = tokens;
  mla_batch_fill_padding(batch);
  return MLA_OK;
}

/* ---------------------------------------------------------------- views */

void mla_batch_row_lens(const mla_batch *batch, int causal, int32_t *lens) {
  for (int64_t b = 0; b < batch->live_requests; b++) {
    int32_t first = batch->query_start_loc[b],
            rows = mla_batch_rows_of(batch, b);
    for (int32_t t = 0; t < rows; t++)
      lens[first + t] = batch->seq_lens[b] - (causal ? rows - t - 1 : 0);
  }
  for (int64_t i = batch->live_tokens; i < batch->tokens; i++) lens[i] = 0;
}

void mla_batch_tensors(const mla_batch *batch, mla_tensor *tensor) {
  const int64_t tokens[1] = {batch->tokens};
  const int64_t requests[1] = {batch->requests};
  const int64_t starts[1] = {batch->requests + 1};
  const int64_t table[2] = {batch->requests, batch->room.table_width};
  tensor[MLA_T_SLOT_MAPPING] =
      mla_tensor_dense(batch->slot_mapping, MLA_I64, 1, tokens);
  tensor[MLA_T_SEQ_LENS] =
      mla_tensor_dense(batch->seq_lens, MLA_I32, 1, requests);
  tensor[MLA_T_QUERY_START_LOC] =
      mla_tensor_dense(batch->query_start_loc, MLA_I32, 1, starts);
  tensor[MLA_T_BLOCK_TABLE] =
      mla_tensor_dense(batch->block_table, MLA_I32, 2, table);
}
