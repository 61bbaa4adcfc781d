/*
 * batch_advance.c - the next step in the arrays of the last.
 */
#include <string.h>

#include "batch_internal.h"
#include "error.h"
#include "sized.h"

mla_status mla_batch_extend(mla_batch *batch, int64_t place,
                            const int32_t *block_ids, int64_t count,
                            mla_error *err) {
  mla_status status = mla_batch_check(batch, err);
  if (status != MLA_OK) return status;
  if (place < 0 || place >= batch->live_requests)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "place",
                    "place is %lld, the step has %lld requests",
                    (long long)place, (long long)batch->live_requests);
  int64_t free_entries = batch->room.table_width - batch->block_counts[place];
  if (count < 0 || count > free_entries)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "count",
                    "count is %lld, the table's row %lld has room for %lld",
                    (long long)count, (long long)place,
                    (long long)free_entries);
  if (count && !block_ids)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "block_ids",
                    "block_ids is NULL, but count is %lld", (long long)count);
  for (int64_t i = 0; i < count; i++)
    if (block_ids[i] < 0 || block_ids[i] >= batch->num_blocks)
      return mla_fail(err, MLA_INVALID_ARGUMENT, "block_ids",
                      "block_ids[%lld] is %d, the cache has blocks 0 to %lld",
                      (long long)i, block_ids[i],
                      (long long)(batch->num_blocks - 1));
  int32_t *row = mla_batch_table(batch, place) + batch->block_counts[place];
  for (int64_t i = 0; i < count; i++) row[i] = block_ids[i];
  batch->block_counts[place] += (int32_t)count;
  return MLA_OK;
}

/* --------------------------------------------------------------- checks */

static int32_t next_rows(const mla_batch_next *next, int64_t place) {
  return next->query_lens ? next->query_lens[place] : 1;
}

/* Entries in the cache once the last step is over. */
static int32_t next_context(const mla_batch *batch, const mla_batch_next *next,
                            int64_t place) {
  if (!next->kept) return batch->seq_lens[place];
  return batch->seq_lens[place] - mla_batch_rows_of(batch, place) +
         next->kept[place];
}

static mla_status check_place(const mla_batch *batch,
                              const mla_batch_next *next, int64_t b,
                              mla_error *err) {
  int32_t rows = mla_batch_rows_of(batch, b), more = next_rows(next, b);
  if (next->kept && (next->kept[b] < 0 || next->kept[b] > rows))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "kept",
                    "kept[%lld] is %d, the step had %d rows of it",
                    (long long)b, next->kept[b], rows);
  if (more < 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "query_lens",
                    "query_lens[%lld] is %d, at least 0", (long long)b, more);
  int64_t length = (int64_t)next_context(batch, next, b) + more;
  if (length > INT32_MAX)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "query_lens",
                    "query_lens[%lld] is %d, which makes %lld entries, at most "
                    "%d",
                    (long long)b, more, (long long)length, INT32_MAX);
  int64_t need = mla_batch_blocks(batch, length);
  if (need > batch->block_counts[b])
    return mla_fail(err, MLA_INVALID_ARGUMENT, "block_table",
                    "block_table's row %lld has %d blocks, the %lld entries "
                    "need %lld",
                    (long long)b, batch->block_counts[b], (long long)length,
                    (long long)need);
  return MLA_OK;
}

static mla_status check_tokens(const mla_batch *batch, int64_t tokens,
                               mla_error *err) {
  int64_t most = batch->pad_tokens ? batch->pad_tokens : batch->room.tokens;
  if (tokens <= most) return MLA_OK;
  return mla_fail(
      err, MLA_INVALID_ARGUMENT, "query_lens",
      "query_lens make %lld rows, but %s %lld", (long long)tokens,
      batch->pad_tokens ? "the launch is padded to" : "there is room for",
      (long long)most);
}

static mla_status check_next(const mla_batch *batch, const mla_batch_next *next,
                             mla_error *err) {
  int64_t tokens = 0;
  mla_status status = MLA_OK;
  if (next->requests < 0 || next->requests > batch->live_requests)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "requests",
                    "requests is %lld, the step has %lld",
                    (long long)next->requests, (long long)batch->live_requests);
  for (int64_t b = 0; status == MLA_OK && b < next->requests; b++) {
    status = check_place(batch, next, b, err);
    tokens += next_rows(next, b);
  }
  return status == MLA_OK ? check_tokens(batch, tokens, err) : status;
}

/* -------------------------------------------------------------- in place */

/* Row b + 1 of query_start_loc is the last step's until it has been read. */
static void advance_places(mla_batch *batch, const mla_batch_next *next) {
  int32_t old_start = 0, start = 0;
  for (int64_t b = 0; b < next->requests; b++) {
    int32_t old_end = batch->query_start_loc[b + 1];
    int32_t rejected = next->kept ? old_end - old_start - next->kept[b] : 0;
    int32_t rows = next_rows(next, b);
    batch->seq_lens[b] += rows - rejected;
    start += rows;
    batch->query_start_loc[b + 1] = start;
    old_start = old_end;
  }
}

mla_status mla_batch_advance(mla_batch *batch, const mla_batch_next *next,
                             mla_error *err) {
  mla_batch_next own;
  mla_status status = mla_batch_check(batch, err);
  if (status == MLA_OK)
    status =
        mla_sized_read(&own, (uint32_t)sizeof own, next,
                       MLA_SIZE_WITH(mla_batch_next, requests), "next", err);
  if (status == MLA_OK) status = check_next(batch, &own, err);
  if (status != MLA_OK) return status;
  advance_places(batch, &own);
  batch->live_requests = own.requests;
  batch->live_tokens = batch->query_start_loc[own.requests];
  for (int64_t b = 0; b < own.requests; b++) mla_batch_fill_rows(batch, b);
  for (int64_t i = 0; i < batch->live_tokens; i++) {
    batch->rows[i] = (int32_t)i;
    batch->token_ids[i] = own.sampled ? own.sampled[i] : 0;
  }
  mla_batch_fill_padding(batch);
  mla_batch_count_decodes(batch);
  return MLA_OK;
}
