/*
 * sharded_decode.c - decode in shards of the keys, on one device: what ranks
 * do apart, one after another, and the same merge.
 *
 * A shard needs no copy of its keys: with g the greatest common divisor of
 * interleave and block size, blocks of g entries are views of the cache, and
 * each lies on one rank. Each row is a request of its own, without a mask.
 */
#include "compose_internal.h"
#include "dtype.h"
#include "error.h"
#include "mla/context_parallel.h"
#include "tensor.h"

enum { SHARD, JOIN };                              /* parts */
enum { ROW_STARTS, ROW_LENS, TABLES, OUTS, LSES }; /* c->at */
/* c->size: entries of a view's block, columns of its table, and from part to
   part */
enum { GRAIN, WIDTH, OUT_STRIDE, LSE_STRIDE };

static int32_t common_divisor(int32_t a, int32_t b) {
  while (b) {
    int32_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static mla_cp_map map_of(const mla_composed *c, int32_t rank) {
  mla_cp_map map = {c->what.ranks, c->what.interleave, rank,
                    (int32_t)c->size[GRAIN]};
  return map;
}

/* ------------------------------------------------------------- describing */

static void refuse_formats(mla_composed *c) {
  if (c->problem.flags & MLA_SPARSE)
    mla_compose_refuse(c, "flags: a list of slots is not sharded");
  if (c->problem.cache_format == MLA_CACHE_FP8_584 &&
      c->size[GRAIN] != c->problem.block_size)
    mla_compose_refuse(c,
                       "cache_format: blocks of fp8_584 are not divided; "
                       "interleave must be a multiple of block_size");
}

static mla_status describe(mla_composed *c, mla_error *err) {
  mla_problem shard = mla_compose_partial(c);
  mla_problem join = mla_compose_merging(c, mla_problem_v_dim(&c->problem), 1);
  int32_t grain = common_divisor(c->what.interleave, c->problem.block_size);
  int64_t views = c->problem.block_size / grain;
  (void)err;
  c->size[GRAIN] = grain;
  refuse_formats(c);
  mla_cp_map map = map_of(c, 0); /* the first rank never has fewer */
  int64_t most = mla_cp_local_len(&map, c->limits.max_seq_len);
  c->size[WIDTH] = (most + grain - 1) / grain;
  shard.flags &= ~MLA_CAUSAL;
  shard.block_size = grain;
  mla_limits *l = &mla_compose_add(c, "a shard", &shard)->limits;
  if (l->num_blocks > INT64_MAX / views) {
    mla_compose_refuse(c, "num_blocks: too many");
    return MLA_OK;
  }
  l->requests = l->tokens;
  l->max_query_len = 1;
  l->max_seq_len = most;
  l->num_blocks *= views;
  l->table_width = c->size[WIDTH];
  mla_compose_add(c, "the merge", &join)->limits.parts = c->what.ranks;
  return MLA_OK;
}

static void lay_out(mla_composed *c) {
  int32_t wide = mla_compose_wide(c);
  uint64_t size = (uint64_t)mla_dtype_bits(wide) / 8;
  uint64_t ranks = (uint64_t)c->what.ranks, rows = (uint64_t)c->limits.tokens;
  int64_t h = c->problem.num_heads;
  int64_t each = mla_compose_padded(c, c->limits.tokens, MLA_I32);
  int64_t table =
      mla_compose_padded(c, c->limits.tokens * c->size[WIDTH], MLA_I32);
  c->at[ROW_STARTS] = mla_compose_reserve_index(c, rows + 1, sizeof(int32_t));
  c->at[ROW_LENS] =
      mla_compose_reserve_index(c, ranks * (uint64_t)each, sizeof(int32_t));
  c->at[TABLES] =
      mla_compose_reserve_index(c, ranks * (uint64_t)table, sizeof(int32_t));
  c->size[OUT_STRIDE] = mla_compose_padded(
      c, c->limits.tokens * h * c->part[JOIN].problem.v_head_dim, wide);
  c->size[LSE_STRIDE] = mla_compose_padded(c, c->limits.tokens * h, wide);
  c->at[OUTS] =
      mla_compose_reserve(c, ranks * (uint64_t)c->size[OUT_STRIDE], size);
  c->at[LSES] =
      mla_compose_reserve(c, ranks * (uint64_t)c->size[LSE_STRIDE], size);
}

/* ---------------------------------------------------------------- a step */

/* A view of smaller blocks needs entries at one distance throughout. */
static mla_status check_stride(const mla_composed *c, const mla_tensor *cache,
                               const char *name, mla_error *err) {
  int64_t dense = c->problem.block_size * cache->stride[1];
  if (!cache->data || c->size[GRAIN] == c->problem.block_size ||
      cache->shape[0] == 1 || cache->stride[0] == dense)
    return MLA_OK;
  return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                  "%s.stride[0] is %lld, but shards of %d positions in blocks "
                  "of %d need %lld",
                  name, (long long)cache->stride[0], c->what.interleave,
                  c->problem.block_size, (long long)dense);
}

static mla_status check(const mla_composed *c, const mla_compose_call *call,
                        mla_error *err) {
  mla_status status = check_stride(c, &call->tensor[MLA_T_CACHE], "cache", err);
  if (status == MLA_OK)
    status = check_stride(c, &call->tensor[MLA_T_V_CACHE], "v_cache", err);
  if (status != MLA_OK) return status;
  if (!call->step.block_table)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "block_table",
                    "step.block_table is NULL, but shards need the ids");
  return MLA_OK;
}

static int64_t unit_of_lens(const mla_composed *c) {
  return mla_compose_padded(c, c->limits.tokens, MLA_I32);
}
static int64_t unit_of_table(const mla_composed *c) {
  return mla_compose_padded(c, c->limits.tokens * c->size[WIDTH], MLA_I32);
}

/* The views' ids for the first `length` entries that a rank has of a request,
   whose blocks are `ids`. */
static void put_ids(const mla_composed *c, const mla_cp_map *map,
                    const int32_t *ids, int64_t length, int32_t *row) {
  int64_t grain = c->size[GRAIN], page = c->problem.block_size;
  for (int64_t i = 0; i * grain < length; i++) {
    int64_t position = mla_cp_position(map, i * grain);
    row[i] = (int32_t)(ids[position / page] * (page / grain) +
                       position % page / grain);
  }
}

static void put_rank(const mla_composed *c, const mla_compose_call *call,
                     int32_t rank) {
  const mla_step *s = &call->step;
  mla_cp_map map = map_of(c, rank);
  int32_t *lens =
      (int32_t *)mla_compose_host(c, c->at[ROW_LENS]) + rank * unit_of_lens(c);
  int32_t *table =
      (int32_t *)mla_compose_host(c, c->at[TABLES]) + rank * unit_of_table(c);
  int causal = (c->problem.flags & MLA_CAUSAL) != 0;
  for (int64_t b = 0; b < s->requests; b++) {
    const int32_t *ids = s->block_table + b * s->table_stride;
    int64_t end = s->query_start_loc[b + 1];
    for (int64_t i = s->query_start_loc[b]; i < end; i++) {
      int64_t n = (int64_t)s->seq_lens[b] - (causal ? end - i - 1 : 0);
      int64_t length = mla_cp_local_len(&map, n > 0 ? n : 0);
      lens[i] = (int32_t)length;
      put_ids(c, &map, ids, length, table + i * c->size[WIDTH]);
    }
  }
}

static mla_status upload(mla_composed *c, const mla_compose_call *call,
                         mla_error *err) {
  int32_t *starts = mla_compose_host(c, c->at[ROW_STARTS]);
  for (int64_t i = 0; i <= call->rows; i++) starts[i] = (int32_t)i;
  for (int32_t rank = 0; rank < c->what.ranks; rank++) put_rank(c, call, rank);
  return mla_compose_upload(c, call, err);
}

/* ---------------------------------------------------------------- running */

static mla_tensor view_of(const mla_composed *c, const mla_tensor *cache) {
  int64_t grain = c->size[GRAIN], views = c->problem.block_size / grain;
  mla_tensor t = *cache;
  if (!t.data || views == 1) return t;
  t.shape[0] *= views;
  t.shape[1] = grain;
  t.stride[0] = grain * t.stride[1];
  return t;
}

static mla_tensor out_of(const mla_composed *c, const mla_compose_call *call,
                         int32_t rank) {
  const int64_t shape[3] = {call->rows, c->problem.num_heads,
                            c->part[JOIN].problem.v_head_dim};
  uint64_t size = (uint64_t)mla_dtype_bits(mla_compose_wide(c)) / 8;
  uint64_t skip = (uint64_t)(rank * c->size[OUT_STRIDE]) * size;
  return mla_compose_tensor(call, c->at[OUTS] + skip, mla_compose_wide(c), 3,
                            shape);
}
static mla_tensor lse_of(const mla_composed *c, const mla_compose_call *call,
                         int32_t rank) {
  const int64_t shape[2] = {call->rows, c->problem.num_heads};
  uint64_t size = (uint64_t)mla_dtype_bits(mla_compose_wide(c)) / 8;
  uint64_t skip = (uint64_t)(rank * c->size[LSE_STRIDE]) * size;
  return mla_compose_tensor(call, c->at[LSES] + skip, mla_compose_wide(c), 2,
                            shape);
}

static mla_status run_shard(const mla_composed *c, const mla_compose_call *call,
                            int32_t rank, mla_error *err) {
  mla_tensor tensor[MLA_T_COUNT];
  const int64_t table[2] = {call->rows, c->size[WIDTH]};
  uint64_t lens_at = (uint64_t)(rank * unit_of_lens(c)) * sizeof(int32_t);
  uint64_t table_at = (uint64_t)(rank * unit_of_table(c)) * sizeof(int32_t);
  for (int i = 0; i < MLA_T_COUNT; i++) tensor[i] = call->tensor[i];
  tensor[MLA_T_SINK] = (mla_tensor){0};
  tensor[MLA_T_Q] = mla_compose_rows(&call->tensor[MLA_T_Q], 0, call->rows);
  tensor[MLA_T_CACHE] = view_of(c, &call->tensor[MLA_T_CACHE]);
  tensor[MLA_T_V_CACHE] = view_of(c, &call->tensor[MLA_T_V_CACHE]);
  tensor[MLA_T_BLOCK_TABLE] =
      mla_compose_tensor(call, c->at[TABLES] + table_at, MLA_I32, 2, table);
  tensor[MLA_T_SEQ_LENS] =
      mla_compose_vector(call, c->at[ROW_LENS] + lens_at, MLA_I32, call->rows);
  tensor[MLA_T_QUERY_START_LOC] =
      mla_compose_vector(call, c->at[ROW_STARTS], MLA_I32, call->rows + 1);
  tensor[MLA_T_OUT] = out_of(c, call, rank);
  tensor[MLA_T_LSE] = lse_of(c, call, rank);
  return mla_compose_run(c, call, SHARD, tensor, err);
}

/* [W,N,H,Dv] or [W,N,H] from the part of rank 0. */
static mla_tensor all_parts(const mla_composed *c, mla_tensor t, int stride) {
  for (int axis = t.rank; axis > 0; axis--) {
    t.shape[axis] = t.shape[axis - 1];
    t.stride[axis] = t.stride[axis - 1];
  }
  t.rank++;
  t.shape[0] = c->what.ranks;
  t.stride[0] = c->size[stride];
  return t;
}

static mla_status merge(const mla_composed *c, const mla_compose_call *call,
                        mla_error *err) {
  return mla_compose_join(
      c, call, JOIN, all_parts(c, out_of(c, call, 0), OUT_STRIDE),
      all_parts(c, lse_of(c, call, 0), LSE_STRIDE), 0, call->rows, err);
}

static mla_status run(mla_composed *c, const mla_compose_call *call,
                      mla_error *err) {
  mla_status status = upload(c, call, err);
  for (int32_t rank = 0; status == MLA_OK && rank < c->what.ranks; rank++)
    status = run_shard(c, call, rank, err);
  return status == MLA_OK ? merge(c, call, err) : status;
}

const mla_composer mla_composer_sharded = {
    "sharded decode", MLA_OP_DECODE, describe, lay_out, check, run};
