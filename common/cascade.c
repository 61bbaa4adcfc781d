/*
 * cascade.c - decode of requests with a common prefix: the prefix once, as
 * one request with all rows; the rest request by request; merged by lse.
 */
#include "compose_internal.h"
#include "dtype.h"
#include "error.h"
#include "tensor.h"

enum { PREFIX, SUFFIX, JOIN };                             /* parts */
enum { PREFIX_LEN, PREFIX_ROWS, SUFFIX_LENS, OUTS, LSES }; /* c->at */
enum { OUT_STRIDE, LSE_STRIDE }; /* c->size: from part to part */

/* ------------------------------------------------------------- describing */

static mla_status describe(mla_composed *c, mla_error *err) {
  mla_problem partial = mla_compose_partial(c);
  mla_problem prefix = partial;
  mla_problem join = mla_compose_merging(c, mla_problem_v_dim(&c->problem), 1);
  (void)err;
  if (c->problem.flags & MLA_BATCH_INVARIANT)
    mla_compose_refuse(c,
                       "flags: a row's bits depend on what its mates have in "
                       "common, so a cascade is not batch-invariant");
  if (c->problem.flags & MLA_SPARSE)
    mla_compose_refuse(c, "flags: a list of slots has no prefix");
  c->answer.determinism = MLA_DETERMINISM_RUN_TO_RUN;
  prefix.flags &= ~MLA_CAUSAL;
  mla_compose_part *part = mla_compose_add(c, "the prefix", &prefix);
  part->limits.requests = 1;
  part->limits.max_query_len = c->limits.tokens;
  mla_compose_add(c, "the rest", &partial);
  mla_compose_add(c, "the merge", &join)->limits.parts = 2;
  return MLA_OK;
}

static void lay_out(mla_composed *c) {
  int32_t wide = mla_compose_wide(c);
  int64_t h = c->problem.num_heads, width = c->part[JOIN].problem.v_head_dim;
  uint64_t element = (uint64_t)mla_dtype_bits(wide) / 8;
  c->at[PREFIX_LEN] = mla_compose_reserve_index(c, 1, sizeof(int32_t));
  c->at[PREFIX_ROWS] = mla_compose_reserve_index(c, 2, sizeof(int32_t));
  c->at[SUFFIX_LENS] = mla_compose_reserve_index(
      c, (uint64_t)c->limits.requests, sizeof(int32_t));
  c->size[OUT_STRIDE] =
      mla_compose_padded(c, c->limits.tokens * h * width, wide);
  c->size[LSE_STRIDE] = mla_compose_padded(c, c->limits.tokens * h, wide);
  c->at[OUTS] =
      mla_compose_reserve(c, 2 * (uint64_t)c->size[OUT_STRIDE], element);
  c->at[LSES] =
      mla_compose_reserve(c, 2 * (uint64_t)c->size[LSE_STRIDE], element);
}

/* ---------------------------------------------------------------- a step */

static int32_t rows_of(const mla_step *s, int64_t b) {
  return s->query_start_loc[b + 1] - s->query_start_loc[b];
}

/* Keys that the first row of a request sees: what a prefix may be at most. */
static int64_t seen_by_all(const mla_step *s, int64_t b, int causal) {
  return (int64_t)s->seq_lens[b] - (causal ? rows_of(s, b) - 1 : 0);
}

static mla_status check_request(const mla_composed *c, const mla_step *s,
                                int64_t b, mla_error *err) {
  int64_t most = seen_by_all(s, b, (c->problem.flags & MLA_CAUSAL) != 0);
  if (rows_of(s, b) == 0 || s->prefix_len <= most || s->prefix_len == 0)
    return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, "prefix_len",
                  "step.prefix_len is %lld, but the first row of request %lld "
                  "sees only %lld keys",
                  (long long)s->prefix_len, (long long)b,
                  (long long)(most > 0 ? most : 0));
}

static int64_t first_with_rows(const mla_step *s) {
  int64_t b = 0;
  while (rows_of(s, b) == 0) b++;
  return b;
}

/* Whole blocks of the prefix; fewer, or none, where a backend wants tables to
   begin at multiples of more than an id. */
static int64_t prefix_blocks(const mla_composed *c,
                             const mla_compose_call *call) {
  const mla_tensor *table = &call->tensor[MLA_T_BLOCK_TABLE];
  int64_t blocks = call->step.prefix_len / c->problem.block_size;
  int64_t unit = (int64_t)(c->answer.tensor_alignment / sizeof(int32_t));
  if (c->itself || unit <= 1 || call->rows == 0) return blocks;
  if (mla_at1(table, first_with_rows(&call->step)) % unit) return 0;
  return blocks / unit * unit;
}

int64_t mla_cascade_prefix(const mla_composed *c,
                           const mla_compose_call *call) {
  int64_t page = c->problem.block_size;
  return call->step.prefix_len / page * page;
}

/* In host memory it can be seen whether the blocks are the same. */
static mla_status check_blocks(const mla_composed *c,
                               const mla_compose_call *call, mla_error *err) {
  const mla_tensor *table = &call->tensor[MLA_T_BLOCK_TABLE];
  const int32_t *id = table->data;
  int64_t blocks = prefix_blocks(c, call);
  int64_t first = call->rows ? first_with_rows(&call->step) : 0;
  for (int64_t b = first; call->rows && b < call->step.requests; b++) {
    if (rows_of(&call->step, b) == 0) continue;
    for (int64_t w = 0; w < blocks; w++)
      if (id[mla_at2(table, b, w)] != id[mla_at2(table, first, w)])
        return mla_fail(err, MLA_INVALID_ARGUMENT, "prefix_len",
                        "step.prefix_len is %lld, but block_table[%lld][%lld] "
                        "is %d and that of request %lld is %d",
                        (long long)call->step.prefix_len, (long long)b,
                        (long long)w, id[mla_at2(table, b, w)],
                        (long long)first, id[mla_at2(table, first, w)]);
  }
  return MLA_OK;
}

static mla_status check(const mla_composed *c, const mla_compose_call *call,
                        mla_error *err) {
  mla_status status = MLA_OK;
  if (call->step.prefix_len < 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "prefix_len",
                    "step.prefix_len is %lld, at least 0",
                    (long long)call->step.prefix_len);
  for (int64_t b = 0; status == MLA_OK && b < call->step.requests; b++)
    status = check_request(c, &call->step, b, err);
  return status == MLA_OK && c->host ? check_blocks(c, call, err) : status;
}

/* ---------------------------------------------------------------- running */

static mla_status upload(mla_composed *c, const mla_compose_call *call,
                         int64_t prefix, mla_error *err) {
  int32_t *lens = mla_compose_host(c, c->at[SUFFIX_LENS]);
  int32_t *rows = mla_compose_host(c, c->at[PREFIX_ROWS]);
  *(int32_t *)mla_compose_host(c, c->at[PREFIX_LEN]) = (int32_t)prefix;
  rows[0] = 0;
  rows[1] = (int32_t)call->rows;
  for (int64_t b = 0; b < call->step.requests; b++) {
    int64_t rest = call->step.seq_lens[b] - prefix;
    lens[b] = rest > 0 ? (int32_t)rest : 0;
  }
  return mla_compose_upload(c, call, err);
}

/* [2,N,H,Dv] and [2,N,H] */
static mla_tensor outs_of(const mla_composed *c, const mla_compose_call *call) {
  const int64_t shape[4] = {2, call->rows, c->problem.num_heads,
                            c->part[JOIN].problem.v_head_dim};
  mla_tensor t =
      mla_compose_tensor(call, c->at[OUTS], mla_compose_wide(c), 4, shape);
  t.stride[0] = c->size[OUT_STRIDE];
  return t;
}
static mla_tensor lses_of(const mla_composed *c, const mla_compose_call *call) {
  const int64_t shape[3] = {2, call->rows, c->problem.num_heads};
  mla_tensor t =
      mla_compose_tensor(call, c->at[LSES], mla_compose_wide(c), 3, shape);
  t.stride[0] = c->size[LSE_STRIDE];
  return t;
}

/* Part `s` of a tensor of parts. */
static mla_tensor part_of(const mla_tensor *parts, int64_t s) {
  mla_tensor part = mla_compose_rows(parts, s, 1);
  part.rank--;
  for (int axis = 0; axis < part.rank; axis++) {
    part.shape[axis] = parts->shape[axis + 1];
    part.stride[axis] = parts->stride[axis + 1];
  }
  return part;
}

/* The decode that both parts begin with. */
static void set_part(const mla_composed *c, const mla_compose_call *call,
                     int64_t s, mla_tensor tensor[MLA_T_COUNT]) {
  mla_tensor outs = outs_of(c, call), lses = lses_of(c, call);
  for (int i = 0; i < MLA_T_COUNT; i++) tensor[i] = call->tensor[i];
  tensor[MLA_T_SINK] = (mla_tensor){0};
  tensor[MLA_T_Q] = mla_compose_rows(&call->tensor[MLA_T_Q], 0, call->rows);
  tensor[MLA_T_OUT] = part_of(&outs, s);
  tensor[MLA_T_LSE] = part_of(&lses, s);
}

/* The common blocks, as one request with all rows. */
static mla_status run_prefix(mla_composed *c, const mla_compose_call *call,
                             mla_error *err) {
  mla_tensor tensor[MLA_T_COUNT];
  set_part(c, call, 1, tensor);
  tensor[MLA_T_BLOCK_TABLE] = mla_compose_rows(&call->tensor[MLA_T_BLOCK_TABLE],
                                               first_with_rows(&call->step), 1);
  tensor[MLA_T_SEQ_LENS] =
      mla_compose_vector(call, c->at[PREFIX_LEN], MLA_I32, 1);
  tensor[MLA_T_QUERY_START_LOC] =
      mla_compose_vector(call, c->at[PREFIX_ROWS], MLA_I32, 2);
  return mla_compose_run(c, call, PREFIX, tensor, err);
}

/* What follows them, by tables that begin later. A table that ends with the
   prefix stays: nothing of it is read. */
static mla_status run_suffix(mla_composed *c, const mla_compose_call *call,
                             int64_t blocks, mla_error *err) {
  mla_tensor tensor[MLA_T_COUNT];
  mla_tensor *table = &tensor[MLA_T_BLOCK_TABLE];
  set_part(c, call, 0, tensor);
  if (blocks < table->shape[1]) {
    table->data = (int32_t *)table->data + blocks;
    table->shape[1] -= blocks;
  }
  tensor[MLA_T_SEQ_LENS] = mla_compose_vector(call, c->at[SUFFIX_LENS], MLA_I32,
                                              call->step.requests);
  return mla_compose_run(c, call, SUFFIX, tensor, err);
}

static mla_status merge(mla_composed *c, const mla_compose_call *call,
                        int64_t parts, mla_error *err) {
  mla_tensor outs = outs_of(c, call), lses = lses_of(c, call);
  return mla_compose_join(c, call, JOIN, mla_compose_rows(&outs, 0, parts),
                          mla_compose_rows(&lses, 0, parts), 0, call->rows,
                          err);
}

static mla_status run(mla_composed *c, const mla_compose_call *call,
                      mla_error *err) {
  int64_t blocks = prefix_blocks(c, call);
  mla_status status = upload(c, call, blocks * c->problem.block_size, err);
  if (status == MLA_OK) status = run_suffix(c, call, blocks, err);
  if (status == MLA_OK && blocks) status = run_prefix(c, call, err);
  if (status == MLA_OK) status = merge(c, call, blocks ? 2 : 1, err);
  return status;
}

const mla_composer mla_composer_cascade = {"cascade", MLA_OP_DECODE, describe,
                                           lay_out,   check,         run};

/* ------------------------------------------------------ the longest prefix */

/* How many leading blocks of two rows are the same, at most `blocks`. */
static int64_t same_blocks(const int32_t *a, const int32_t *b, int64_t blocks) {
  int64_t w = 0;
  while (w < blocks && a[w] == b[w]) w++;
  return w;
}

int64_t mla_common_prefix(const mla_step *step, int64_t table_width,
                          int32_t block_size, int causal) {
  int64_t blocks = table_width, requests = 0, first = -1;
  for (int64_t b = 0; b < step->requests; b++) {
    if (rows_of(step, b) == 0) continue;
    int64_t most = seen_by_all(step, b, causal) / block_size;
    if (most < blocks) blocks = most > 0 ? most : 0;
    if (first < 0) first = b;
    requests++;
    blocks = same_blocks(step->block_table + first * step->table_stride,
                         step->block_table + b * step->table_stride, blocks);
  }
  return requests > 1 ? blocks * block_size : 0;
}
