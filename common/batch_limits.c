/*
 * batch_limits.c - how large a step is, and what that reserves.
 */
#include <string.h>

#include "batch_internal.h"
#include "error.h"
#include "sized.h"

#define KEYS_A_SPLIT 512

int32_t mla_num_splits(int64_t max_seq_len, int32_t compute_units,
                       int batch_invariant) {
  int64_t most = compute_units > 0 ? 2 * (int64_t)compute_units : 1;
  int64_t want = max_seq_len > 0 ? (max_seq_len - 1) / KEYS_A_SPLIT + 1 : 1;
  int64_t splits = 1;
  if (batch_invariant) return 1;
  if (most > INT32_MAX) most = INT32_MAX;
  while (splits < want && splits < most) splits *= 2;
  return (int32_t)(splits < most ? splits : most);
}

mla_batch_bounds mla_batch_measure(const mla_batch *batch,
                                   int32_t compute_units, int batch_invariant) {
  mla_batch_bounds bounds;
  memset(&bounds, 0, sizeof bounds);
  bounds.size = (uint32_t)sizeof bounds;
  bounds.compute_units = compute_units;
  bounds.batch_invariant = batch_invariant;
  bounds.requests = batch->requests;
  bounds.tokens = batch->tokens;
  bounds.num_blocks = batch->num_blocks;
  bounds.table_width = batch->room.table_width;
  for (int64_t b = 0; b < batch->live_requests; b++) {
    int64_t rows = mla_batch_rows_of(batch, b), length = batch->seq_lens[b];
    if (rows > bounds.max_query_len) bounds.max_query_len = rows;
    if (length > bounds.max_seq_len) bounds.max_seq_len = length;
  }
  return bounds;
}

static int64_t at_least_one(int64_t n) {
  return n > 1 ? n : 1;
}

static mla_status check_bounds(const mla_batch_bounds *b, mla_error *err) {
  const struct {
    const char *name;
    int64_t value;
  } members[] = {{"compute_units", b->compute_units},
                 {"requests", b->requests},
                 {"tokens", b->tokens},
                 {"max_query_len", b->max_query_len},
                 {"max_seq_len", b->max_seq_len},
                 {"num_blocks", b->num_blocks},
                 {"table_width", b->table_width}};
  for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
    if (members[i].value < 0)
      return mla_fail(err, MLA_INVALID_ARGUMENT, members[i].name,
                      "bounds.%s is %lld, at least 0", members[i].name,
                      (long long)members[i].value);
  return MLA_OK;
}

mla_status mla_batch_limits(const mla_batch_bounds *bounds, mla_limits *limits,
                            mla_error *err) {
  mla_batch_bounds b;
  mla_limits own = mla_limits_init();
  mla_status status = mla_sized_read(
      &b, (uint32_t)sizeof b, bounds,
      MLA_SIZE_WITH(mla_batch_bounds, table_width), "bounds", err);
  if (status == MLA_OK) status = check_bounds(&b, err);
  if (status == MLA_OK)
    status = mla_sized_room(limits, MLA_SIZE_WITH(mla_limits, num_splits),
                            "limits", err);
  if (status != MLA_OK) return status;
  own.num_splits =
      mla_num_splits(b.max_seq_len, b.compute_units, b.batch_invariant);
  own.requests = at_least_one(b.requests);
  own.tokens = at_least_one(b.tokens);
  own.max_query_len = at_least_one(b.max_query_len);
  own.max_seq_len = at_least_one(b.max_seq_len);
  own.num_blocks = at_least_one(b.num_blocks);
  own.table_width = at_least_one(b.table_width);
  mla_sized_write(limits, &own, (uint32_t)sizeof own);
  return MLA_OK;
}
