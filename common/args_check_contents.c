/*
 * args_check_contents.c - what index tensors in host memory say.
 */
#include "args_check.h"
#include "error.h"
#include "tensor.h"

static int32_t at_i32(const mla_tensor *t, int64_t i) {
  return ((const int32_t *)t->data)[mla_at1(t, i)];
}

static int64_t blocks_for(int64_t length, int32_t block_size) {
  return length / block_size + (length % block_size != 0);
}

/* ------------------------------------------------------ packed requests */

/* `offsets` count up from 0 to at most `total`, which `whose` has. */
static mla_status check_offsets(const char *name, const int32_t *offsets,
                                int64_t requests, int64_t total,
                                mla_error *err) {
  if (offsets[0] != 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s[0] is %d, it must be 0", name, offsets[0]);
  for (int64_t b = 0; b < requests; b++)
    if (offsets[b + 1] < offsets[b])
      return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                      "%s[%lld] is %d, less than the %d before it", name,
                      (long long)(b + 1), offsets[b + 1], offsets[b]);
  if (offsets[requests] > total)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s[%lld] is %d, but there are only %lld rows", name,
                    (long long)requests, offsets[requests], (long long)total);
  return MLA_OK;
}

static mla_status check_prefill_length(const mla_problem *p, int64_t b,
                                       int32_t rows, int32_t length,
                                       mla_error *err) {
  if (length < rows)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "seq_lens",
                    "seq_lens[%lld] is %d, but the request has %d query rows",
                    (long long)b, length, rows);
  if (length != rows && !(p->flags & MLA_CONTEXT))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "seq_lens",
                    "seq_lens[%lld] is %d, but without MLA_CONTEXT it is the "
                    "request's %d query rows",
                    (long long)b, length, rows);
  return MLA_OK;
}

static mla_status check_rows(const mla_limits *l, int64_t b, int32_t rows,
                             mla_error *err) {
  if (rows <= l->max_query_len) return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, "query_start_loc",
                  "query_start_loc gives request %lld %d rows, but "
                  "limits.max_query_len is %lld",
                  (long long)b, rows, (long long)l->max_query_len);
}

static mla_status check_request(const mla_problem *p, const mla_limits *l,
                                int64_t b, int32_t rows, int32_t length,
                                mla_error *err) {
  mla_status st = check_rows(l, b, rows, err);
  if (st != MLA_OK) return st;
  if (length < 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "seq_lens",
                    "seq_lens[%lld] is %d, at least 0", (long long)b, length);
  if (length > l->max_seq_len)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "seq_lens",
                    "seq_lens[%lld] is %d, but limits.max_seq_len is %lld",
                    (long long)b, length, (long long)l->max_seq_len);
  return p->op == MLA_OP_PREFILL ? check_prefill_length(p, b, rows, length, err)
                                 : MLA_OK;
}

mla_status mla_lengths_check(const mla_problem *problem,
                             const mla_limits *limits,
                             const int32_t *query_start_loc,
                             const int32_t *seq_lens, int64_t requests,
                             int64_t tokens, mla_error *err) {
  mla_status st =
      check_offsets("query_start_loc", query_start_loc, requests, tokens, err);
  for (int64_t b = 0; st == MLA_OK && b < requests; b++)
    st = check_request(problem, limits, b,
                       query_start_loc[b + 1] - query_start_loc[b], seq_lens[b],
                       err);
  return st;
}

mla_status mla_starts_check(const mla_limits *limits,
                            const int32_t *query_start_loc, int64_t requests,
                            int64_t tokens, mla_error *err) {
  mla_status st =
      check_offsets("query_start_loc", query_start_loc, requests, tokens, err);
  for (int64_t b = 0; st == MLA_OK && b < requests; b++)
    st =
        check_rows(limits, b, query_start_loc[b + 1] - query_start_loc[b], err);
  return st;
}

/* ---------------------------------------------------------- block table */

/* What an index tensor's element asks of the cache: positions [first, end)
   of a request. */
typedef struct wish {
  const char *field;
  int64_t index, value; /* of the element */
  int64_t request, first, end;
} wish;

static mla_status check_ids(const mla_problem *p, const mla_tensor *table,
                            int64_t blocks, const wish *w, mla_error *err) {
  const int32_t *row =
      (const int32_t *)table->data + mla_at1(table, w->request);
  int64_t end = blocks_for(w->end, p->block_size);
  for (int64_t j = w->first / p->block_size; j < end; j++)
    if (row[j] < 0 || row[j] >= blocks)
      return mla_fail(err, MLA_INVALID_ARGUMENT, "block_table",
                      "block_table[%lld][%lld] is %d, but cache has blocks 0 "
                      "to %lld",
                      (long long)w->request, (long long)j, row[j],
                      (long long)(blocks - 1));
  return MLA_OK;
}

/* They lie in the request's row of the table; that of used ones, in known
   blocks. */
static mla_status check_table(const mla_problem *p, const mla_args *args,
                              const mla_dims *dims, const wish *w, int used,
                              mla_error *err) {
  int64_t width = dims->value[MLA_S_W];
  if (blocks_for(w->end, p->block_size) > width)
    return mla_fail(err, MLA_INVALID_ARGUMENT, w->field,
                    "%s[%lld] is %lld, which needs %lld cache entries, but "
                    "block_table's %lld blocks of %d hold %lld",
                    w->field, (long long)w->index, (long long)w->value,
                    (long long)w->end, (long long)width, p->block_size,
                    (long long)(width * p->block_size));
  if (!used || w->first >= w->end) return MLA_OK;
  return check_ids(p, mla_given(args, MLA_T_BLOCK_TABLE), dims->value[MLA_S_NB],
                   w, err);
}

/* ------------------------------------------------------------ operations */

static mla_status check_attention(const mla_problem *p, const mla_limits *l,
                                  const mla_args *args, const mla_dims *dims,
                                  mla_error *err) {
  const int32_t *start = mla_given(args, MLA_T_QUERY_START_LOC)->data;
  const int32_t *lens = mla_given(args, MLA_T_SEQ_LENS)->data;
  int64_t requests = dims->value[MLA_S_B];
  mla_status st =
      mla_lengths_check(p, l, start, lens, requests, dims->value[MLA_S_N], err);
  if (!mla_given(args, MLA_T_BLOCK_TABLE)) return st;
  for (int64_t b = 0; st == MLA_OK && b < requests; b++) {
    int32_t rows = start[b + 1] - start[b];
    wish w = {"seq_lens", b, lens[b], b, 0, lens[b]};
    if (p->op == MLA_OP_PREFILL) w.end -= rows; /* new tokens are beside it */
    st = check_table(p, args, dims, &w, rows > 0, err);
  }
  return st;
}

static mla_status check_gather(const mla_problem *p, const mla_limits *l,
                               const mla_args *args, const mla_dims *dims,
                               mla_error *err) {
  const int32_t *cu = mla_given(args, MLA_T_CU_SEQ_LENS)->data;
  const mla_tensor *starts = mla_given(args, MLA_T_SEQ_STARTS);
  int64_t requests = dims->value[MLA_S_B];
  mla_status st = check_offsets("cu_seq_lens", cu, requests,
                                dims->value[MLA_S_GATHERED], err);
  for (int64_t b = 0; st == MLA_OK && b < requests; b++) {
    int64_t first = starts ? at_i32(starts, b) : 0;
    int32_t length = cu[b + 1] - cu[b];
    if (first < 0)
      return mla_fail(err, MLA_INVALID_ARGUMENT, "seq_starts",
                      "seq_starts[%lld] is %lld, at least 0", (long long)b,
                      (long long)first);
    if (length > l->max_seq_len)
      return mla_fail(err, MLA_INVALID_ARGUMENT, "cu_seq_lens",
                      "cu_seq_lens gives request %lld %d entries, but "
                      "limits.max_seq_len is %lld",
                      (long long)b, length, (long long)l->max_seq_len);
    wish w = {"cu_seq_lens", b + 1, cu[b + 1], b, first, first + length};
    if (starts) w = (wish){"seq_starts", b, first, b, first, first + length};
    if (length) st = check_table(p, args, dims, &w, 1, err);
  }
  return st;
}

static mla_status check_slots(const mla_problem *p, const mla_args *args,
                              const mla_dims *dims, mla_error *err) {
  const mla_tensor *map = mla_given(args, MLA_T_SLOT_MAPPING);
  int64_t blocks = dims->value[MLA_S_NB];
  for (int64_t i = 0; i < dims->value[MLA_S_SLOTS]; i++) {
    int64_t slot = ((const int64_t *)map->data)[mla_at1(map, i)];
    if (slot >= 0 && slot / p->block_size >= blocks)
      return mla_fail(err, MLA_INVALID_ARGUMENT, "slot_mapping",
                      "slot_mapping[%lld] is %lld, but cache's %lld blocks of "
                      "%d hold %lld",
                      (long long)i, (long long)slot, (long long)blocks,
                      p->block_size, (long long)(blocks * p->block_size));
  }
  return MLA_OK;
}

static mla_status check_copies(const mla_args *args, const mla_dims *dims,
                               mla_error *err) {
  const mla_tensor *map = mla_given(args, MLA_T_BLOCK_MAPPING);
  for (int64_t i = 0; i < dims->value[MLA_S_COPIES]; i++) {
    const int64_t *pair = (const int64_t *)map->data + mla_at1(map, i);
    for (int side = 0; side < 2; side++) {
      int64_t blocks = dims->value[side ? MLA_S_NB : MLA_S_NBS];
      if (pair[side] < 0 || pair[side] >= blocks)
        return mla_fail(err, MLA_INVALID_ARGUMENT, "block_mapping",
                        "block_mapping[%lld][%d] is %lld, but %s has blocks 0 "
                        "to %lld",
                        (long long)i, side, (long long)pair[side],
                        side ? "cache" : "src_cache", (long long)(blocks - 1));
    }
  }
  return MLA_OK;
}

static mla_status check_index(const mla_problem *p, const mla_limits *l,
                              const mla_args *args, const mla_dims *dims,
                              mla_error *err) {
  mla_status st = check_attention(p, l, args, dims, err);
  return st == MLA_OK ? mla_logits_check(args, err) : st;
}

static mla_status check_map(const mla_limits *l, const mla_args *args,
                            const mla_dims *dims, mla_error *err) {
  return mla_starts_check(l, mla_given(args, MLA_T_QUERY_START_LOC)->data,
                          dims->value[MLA_S_B], dims->value[MLA_S_N], err);
}

mla_status mla_contents_check(const mla_problem *problem,
                              const mla_limits *limits, const mla_args *args,
                              const mla_dims *dims, mla_error *err) {
  switch (problem->op) {
    case MLA_OP_KV_WRITE: return check_slots(problem, args, dims, err);
    case MLA_OP_KV_READ: return check_gather(problem, limits, args, dims, err);
    case MLA_OP_KV_COPY: return check_copies(args, dims, err);
    case MLA_OP_DECODE:
    case MLA_OP_PREFILL:
      return problem->flags & MLA_SPARSE
                 ? mla_lists_check(problem, args, err)
                 : check_attention(problem, limits, args, dims, err);
    case MLA_OP_INDEX: return check_index(problem, limits, args, dims, err);
    case MLA_OP_MAP_INDICES: return check_map(limits, args, dims, err);
    default: return MLA_OK;
  }
}
