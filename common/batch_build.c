/*
 * batch_build.c - a step from its requests.
 */
#include <string.h>

#include "batch_internal.h"
#include "error.h"
#include "sized.h"

/* --------------------------------------------------------------- checks */

static mla_status check_arrays(const mla_batch_input *in, mla_error *err) {
  const struct {
    const char *name;
    const void *array;
  } arrays[] = {{"context_lens", in->context_lens},
                {"query_lens", in->query_lens},
                {"block_starts", in->block_starts}};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
    if (!arrays[i].array && in->requests > 0)
      return mla_fail(err, MLA_INVALID_ARGUMENT, arrays[i].name,
                      "%s is NULL, but there are %lld requests", arrays[i].name,
                      (long long)in->requests);
  return MLA_OK;
}

static mla_status check_counts(const mla_batch *batch,
                               const mla_batch_input *in, mla_error *err) {
  if (in->requests < 0 || in->requests > batch->room.requests)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "requests",
                    "requests is %lld, there is room for 0 to %lld",
                    (long long)in->requests, (long long)batch->room.requests);
  if (in->num_blocks < 1)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "num_blocks",
                    "num_blocks is %lld, at least 1",
                    (long long)in->num_blocks);
  if (in->decode_threshold < 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "decode_threshold",
                    "decode_threshold is %d, at least 0", in->decode_threshold);
  return check_arrays(in, err);
}

static mla_status check_lengths(const mla_batch_input *in, int64_t b,
                                mla_error *err) {
  int32_t context = in->context_lens[b], rows = in->query_lens[b];
  if (context < 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "context_lens",
                    "context_lens[%lld] is %d, at least 0", (long long)b,
                    context);
  if (rows < 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "query_lens",
                    "query_lens[%lld] is %d, at least 0", (long long)b, rows);
  if (rows > INT32_MAX - context)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "query_lens",
                    "query_lens[%lld] is %d, with a context of %d at most %d",
                    (long long)b, rows, context, INT32_MAX - context);
  return MLA_OK;
}

static mla_status check_list(const mla_batch *batch, const mla_batch_input *in,
                             int64_t b, mla_error *err) {
  int64_t first = in->block_starts[b], end = in->block_starts[b + 1];
  int64_t length = (int64_t)in->context_lens[b] + in->query_lens[b];
  if (end < first)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "block_starts",
                    "block_starts[%lld] is %lld, less than the %lld before it",
                    (long long)(b + 1), (long long)end, (long long)first);
  if (end - first > batch->room.table_width)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "block_starts",
                    "block_starts gives request %lld %lld blocks, the table "
                    "holds %lld",
                    (long long)b, (long long)(end - first),
                    (long long)batch->room.table_width);
  if (end - first < mla_batch_blocks(batch, length))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "block_starts",
                    "block_starts gives request %lld %lld blocks, its %lld "
                    "entries need %lld of %d",
                    (long long)b, (long long)(end - first), (long long)length,
                    (long long)mla_batch_blocks(batch, length),
                    batch->room.block_size);
  if (end > first && !in->block_ids)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "block_ids",
                    "block_ids is NULL, but block_starts counts %lld",
                    (long long)end);
  for (int64_t i = first; i < end; i++)
    if (in->block_ids[i] < 0 || in->block_ids[i] >= in->num_blocks)
      return mla_fail(err, MLA_INVALID_ARGUMENT, "block_ids",
                      "block_ids[%lld] is %d, the cache has blocks 0 to %lld",
                      (long long)i, in->block_ids[i],
                      (long long)(in->num_blocks - 1));
  return MLA_OK;
}

static mla_status check_input(const mla_batch *batch, const mla_batch_input *in,
                              mla_error *err) {
  int64_t tokens = 0;
  mla_status status = check_counts(batch, in, err);
  if (status == MLA_OK && in->requests > 0 && in->block_starts[0] != 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "block_starts",
                    "block_starts[0] is %lld, it must be 0",
                    (long long)in->block_starts[0]);
  for (int64_t b = 0; status == MLA_OK && b < in->requests; b++) {
    status = check_lengths(in, b, err);
    if (status == MLA_OK) status = check_list(batch, in, b, err);
    if (status == MLA_OK) tokens += in->query_lens[b];
    if (tokens > batch->room.tokens)
      return mla_fail(err, MLA_INVALID_ARGUMENT, "query_lens",
                      "query_lens[%lld] is %d, which makes %lld rows; there is "
                      "room for %lld",
                      (long long)b, in->query_lens[b], (long long)tokens,
                      (long long)batch->room.tokens);
  }
  return status;
}

/* ---------------------------------------------------------------- order */

/* Decodes first, else as they come: order[], stable. */
static void choose_order(mla_batch *batch, const mla_batch_input *in) {
  int64_t place = 0;
  int32_t most = in->decode_threshold;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t b = 0; b < in->requests; b++) {
      int later = most > 0 && in->query_lens[b] > most;
      if (later == pass) batch->order[place++] = (int32_t)b;
    }
}

/* ----------------------------------------------------------------- rows */

static void put_request(mla_batch *batch, const mla_batch_input *in,
                        int64_t place) {
  int64_t b = batch->order[place], first = in->block_starts[b];
  int64_t count = in->block_starts[b + 1] - first;
  int32_t *table = mla_batch_table(batch, place);
  for (int64_t w = 0; w < batch->room.table_width; w++)
    table[w] = w < count ? in->block_ids[first + w] : batch->pad_block;
  batch->block_counts[place] = (int32_t)count;
  batch->seq_lens[place] = in->context_lens[b] + in->query_lens[b];
  batch->query_start_loc[place + 1] =
      batch->query_start_loc[place] + in->query_lens[b];
  mla_batch_fill_rows(batch, place);
}

/* Where each row's token stands in the input. */
static void put_sources(mla_batch *batch, const mla_batch_input *in) {
  for (int64_t pass = 0, row = 0; pass < 2; pass++) {
    int64_t from = 0;
    for (int64_t b = 0; b < in->requests; b++) {
      int later =
          in->decode_threshold > 0 && in->query_lens[b] > in->decode_threshold;
      for (int64_t t = 0; later == pass && t < in->query_lens[b]; t++, row++) {
        batch->rows[row] = (int32_t)(from + t);
        batch->token_ids[row] = in->token_ids ? in->token_ids[from + t] : 0;
      }
      from += in->query_lens[b];
    }
  }
}

mla_status mla_batch_build(mla_batch *batch, const mla_batch_input *input,
                           mla_error *err) {
  mla_batch_input in;
  mla_status status = mla_batch_check(batch, err);
  if (status == MLA_OK)
    status = mla_sized_read(&in, (uint32_t)sizeof in, input,
                            MLA_SIZE_WITH(mla_batch_input, block_starts),
                            "input", err);
  if (status == MLA_OK) status = check_input(batch, &in, err);
  if (status != MLA_OK) return status;
  batch->decode_threshold = in.decode_threshold;
  batch->num_blocks = in.num_blocks;
  batch->pad_requests = batch->pad_tokens = 0;
  batch->live_requests = in.requests;
  choose_order(batch, &in);
  batch->query_start_loc[0] = 0;
  for (int64_t place = 0; place < in.requests; place++)
    put_request(batch, &in, place);
  batch->live_tokens = batch->query_start_loc[in.requests];
  put_sources(batch, &in);
  mla_batch_fill_padding(batch);
  mla_batch_count_decodes(batch);
  return MLA_OK;
}
