/*
 * context_parallel.c - which rank has which key.
 */
#include "mla/context_parallel.h"

#include "batch_internal.h"
#include "error.h"

mla_status mla_cp_check(const mla_cp_map *map, mla_error *err) {
  if (!map) return mla_fail(err, MLA_INVALID_ARGUMENT, "map", "map is NULL");
  if (map->ranks < 1)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "ranks",
                    "map.ranks is %d, at least 1", map->ranks);
  if (map->interleave < 1)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "interleave",
                    "map.interleave is %d, at least 1", map->interleave);
  if (map->rank < 0 || map->rank >= map->ranks)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "rank",
                    "map.rank is %d, it is 0 to %d", map->rank, map->ranks - 1);
  if (map->block_size < 1)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "block_size",
                    "map.block_size is %d, at least 1", map->block_size);
  return MLA_OK;
}

/* ------------------------------------------------------------------- maps */

/* Positions of one turn through the ranks. */
static int64_t turn(const mla_cp_map *map) {
  return (int64_t)map->interleave * map->ranks;
}

int64_t mla_cp_local_len(const mla_cp_map *map, int64_t n) {
  int64_t i = map->interleave;
  int64_t rest = n % turn(map) - map->rank * i;
  if (rest < 0) rest = 0;
  if (rest > i) rest = i;
  return n / turn(map) * i + rest;
}

int32_t mla_cp_rank_of(const mla_cp_map *map, int64_t position) {
  return (int32_t)(position / map->interleave % map->ranks);
}

int64_t mla_cp_local_index(const mla_cp_map *map, int64_t position) {
  int64_t i = map->interleave;
  return position / turn(map) * i + position % i;
}

int64_t mla_cp_position(const mla_cp_map *map, int64_t local_index) {
  int64_t i = map->interleave;
  return local_index / i * turn(map) + map->rank * i + local_index % i;
}

/* ------------------------------------------------------------------ steps */

static mla_status check(const mla_cp_map *map, const mla_batch *batch,
                        const mla_cp_table *table, const void *out,
                        mla_error *err) {
  mla_status status = mla_cp_check(map, err);
  if (status == MLA_OK) status = mla_batch_check(batch, err);
  if (status != MLA_OK) return status;
  if (!table || !table->block_ids || table->width < 1 ||
      table->stride < table->width)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "table",
                    "table has %lld ids in rows %lld apart, at least 1 and no "
                    "overlap",
                    (long long)(table ? table->width : 0),
                    (long long)(table ? table->stride : 0));
  if (!out)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "out", "an output is NULL");
  for (int64_t b = 0; b < batch->live_requests; b++) {
    int64_t need = mla_cp_local_len(map, batch->seq_lens[b]);
    if (need > table->width * map->block_size)
      return mla_fail(err, MLA_INVALID_ARGUMENT, "table",
                      "table has %lld blocks of %d a row, but rank %d has %lld "
                      "entries of the request at place %lld",
                      (long long)table->width, map->block_size, map->rank,
                      (long long)need, (long long)b);
  }
  return MLA_OK;
}

mla_status mla_cp_slots(const mla_cp_map *map, const mla_batch *batch,
                        const mla_cp_table *table, int64_t *slots,
                        mla_error *err) {
  mla_status status = check(map, batch, table, slots, err);
  if (status != MLA_OK) return status;
  for (int64_t i = 0; i < batch->tokens; i++) slots[i] = -1;
  for (int64_t b = 0; b < batch->live_requests; b++) {
    const int32_t *ids = table->block_ids + b * table->stride;
    for (int64_t i = batch->query_start_loc[b];
         i < batch->query_start_loc[b + 1]; i++) {
      int64_t position = batch->positions[i];
      if (mla_cp_rank_of(map, position) != map->rank) continue;
      int64_t local = mla_cp_local_index(map, position);
      slots[i] = (int64_t)ids[local / map->block_size] * map->block_size +
                 local % map->block_size;
    }
  }
  return MLA_OK;
}

mla_status mla_cp_rows(const mla_cp_map *map, const mla_batch *batch,
                       const mla_cp_table *table, int causal, int32_t *seq_lens,
                       int32_t *query_start_loc, int32_t *block_table,
                       mla_error *err) {
  const void *outs = seq_lens && query_start_loc ? block_table : NULL;
  mla_status status = check(map, batch, table, outs, err);
  if (status != MLA_OK) return status;
  mla_batch_row_lens(batch, causal, seq_lens);
  for (int64_t i = 0; i <= batch->tokens; i++) query_start_loc[i] = (int32_t)i;
  for (int64_t i = 0; i < batch->tokens; i++)
    seq_lens[i] = (int32_t)mla_cp_local_len(map, seq_lens[i]);
  for (int64_t i = batch->live_tokens * table->width;
       i < batch->tokens * table->width; i++)
    block_table[i] = 0;
  for (int64_t b = 0; b < batch->live_requests; b++)
    for (int64_t i = batch->query_start_loc[b];
         i < batch->query_start_loc[b + 1]; i++)
      for (int64_t w = 0; w < table->width; w++)
        block_table[i * table->width + w] =
            table->block_ids[b * table->stride + w];
  return MLA_OK;
}
