/*
 * test_batch_build.c - a step from its requests: every element, the order,
 * padding, and that a mistake writes nothing.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "batch_fixture.h"
#include "check_main.h"

/* Two requests that a person can check. */
START_TEST(by_hand) {
  const int32_t context[] = {5, 3}, rows[] = {3, 1};
  const int32_t ids[] = {7, 2, 9, 4, 0}, tokens[] = {10, 11, 12, 20};
  const int64_t starts[] = {0, 2, 5};
  const mla_batch_room room = {sizeof room, 4, 4, 8, 3};
  mla_batch_input in = {sizeof in, 1,   2,      10,    context,
                        rows,      ids, starts, tokens};
  batch_memory m;
  batch_memory_new(&m, &room);
  m.batch.pad_block = -9;
  ck_assert_int_eq(mla_batch_build(&m.batch, &in, NULL), MLA_OK);
  ck_assert_int_eq(mla_batch_pad(&m.batch, 3, 6, NULL), MLA_OK);
  const int64_t positions[] = {3, 5, 6, 7, 0, 0};
  const int64_t slots[] = {9 * 4 + 3, 2 * 4 + 1, 2 * 4 + 2, 2 * 4 + 3, -1, -1};
  const int32_t start[] = {0, 1, 4, 4}, lens[] = {4, 8, 0};
  const int32_t table[] = {9, 4, 0, 7, 2, -9, -9, -9, -9};
  const int32_t order[] = {1, 0, -1}, from[] = {3, 0, 1, 2, -1, -1};
  const int32_t ids_out[] = {20, 10, 11, 12, 0, 0};
  ck_assert_mem_eq(m.batch.positions, positions, sizeof positions);
  ck_assert_mem_eq(m.batch.slot_mapping, slots, sizeof slots);
  ck_assert_mem_eq(m.batch.query_start_loc, start, sizeof start);
  ck_assert_mem_eq(m.batch.seq_lens, lens, sizeof lens);
  ck_assert_mem_eq(m.batch.block_table, table, sizeof table);
  ck_assert_mem_eq(m.batch.order, order, sizeof order);
  ck_assert_mem_eq(m.batch.rows, from, sizeof from);
  ck_assert_mem_eq(m.batch.token_ids, ids_out, sizeof ids_out);
  ck_assert_int_eq(m.batch.decodes, 1);
  ck_assert_int_eq(m.batch.decode_tokens, 1);
  batch_memory_free(&m);
}
END_TEST

/* A permutation, decodes first, each kind in the input's order. */
static void require_order(const mla_batch *batch, const step_requests *r) {
  int64_t at = 0, threshold = r->input.decode_threshold, from = 0;
  int64_t begin[FIXTURE_REQUESTS + 1] = {0};
  for (int64_t b = 0; b < r->input.requests; b++)
    begin[b + 1] = begin[b] + r->rows[b];
  for (int prefill = 0; prefill < 2; prefill++)
    for (int64_t b = 0; b < r->input.requests; b++) {
      int is_prefill = threshold && r->rows[b] > threshold;
      if (is_prefill != prefill) continue;
      ck_assert_int_eq(batch->order[at++], b);
      for (int64_t t = 0; t < r->rows[b]; t++, from++) {
        ck_assert_int_eq(batch->rows[from], begin[b] + t);
        ck_assert_int_eq(batch->token_ids[from], r->tokens[begin[b] + t]);
      }
    }
  int64_t decodes = 0, rows = 0;
  for (int64_t b = 0; threshold && b < r->input.requests; b++)
    if (r->rows[b] <= threshold) decodes++, rows += r->rows[b];
  if (!threshold) return;
  ck_assert_int_eq(batch->decodes, decodes);
  ck_assert_int_eq(batch->decode_tokens, rows);
}

START_TEST(any_requests) {
  draws d = draws_from((uint64_t)_i);
  for (int round = 0; round < 40; round++) {
    step_requests r;
    batch_memory m;
    requests_random(&r, &d);
    mla_batch_room room = room_for(&r, draw(&d, 0, 5));
    batch_memory_new(&m, &room);
    m.batch.pad_block = draw(&d, -1, 1);
    ck_assert_int_eq(mla_batch_build(&m.batch, &r.input, NULL), MLA_OK);
    require_step(&m.batch, &r);
    require_order(&m.batch, &r);
    int64_t b = draw(&d, (int)r.input.requests, (int)room.requests);
    int64_t n = draw(&d, (int)requests_tokens(&r), (int)room.tokens);
    ck_assert_int_eq(mla_batch_pad(&m.batch, b, n, NULL), MLA_OK);
    if (b) ck_assert_int_eq(m.batch.requests, b);
    if (n) ck_assert_int_eq(m.batch.tokens, n);
    require_step(&m.batch, &r);
    batch_memory_free(&m);
    requests_free(&r);
  }
}
END_TEST

START_TEST(rows_see) {
  draws d = draws_from(77);
  for (int round = 0; round < 60; round++) {
    step_requests r;
    batch_memory m;
    int32_t *lens;
    requests_random(&r, &d);
    mla_batch_room room = room_for(&r, 3);
    batch_memory_new(&m, &room);
    ck_assert_int_eq(mla_batch_build(&m.batch, &r.input, NULL), MLA_OK);
    ck_assert_int_eq(mla_batch_pad(&m.batch, room.requests, room.tokens, NULL),
                     MLA_OK);
    lens = malloc((size_t)room.tokens * sizeof *lens);
    for (int causal = 0; causal < 2; causal++) {
      mla_batch_row_lens(&m.batch, causal, lens);
      for (int64_t p = 0; p < m.batch.live_requests; p++) {
        int64_t b = m.batch.order[p], first = m.batch.query_start_loc[p];
        for (int64_t t = 0; t < r.rows[b]; t++)
          ck_assert_int_eq(lens[first + t], causal ? r.context[b] + t + 1
                                                   : r.context[b] + r.rows[b]);
      }
      for (int64_t i = m.batch.live_tokens; i < m.batch.tokens; i++)
        ck_assert_int_eq(lens[i], 0);
    }
    free(lens);
    batch_memory_free(&m);
    requests_free(&r);
  }
}
END_TEST

/* --------------------------------------------------------------- errors */

/* A lawful input that each fault changes. */
typedef struct bench {
  int32_t context[3], rows[3], ids[6];
  int64_t starts[4];
  mla_batch_input in;
} bench;

static void bench_make(bench *x) {
  const bench lawful = {
      {5, 0, 8},
      {1, 4, 2},
      {0, 1, 2, 3, 4, 5},
      {0, 2, 3, 6},
      {sizeof(mla_batch_input), 1, 3, 6, NULL, NULL, NULL, NULL, NULL}};
  *x = lawful;
  x->in.context_lens = x->context;
  x->in.query_lens = x->rows;
  x->in.block_ids = x->ids;
  x->in.block_starts = x->starts;
}

static void no_size(bench *x) {
  x->in.size = 4;
}
static void many_requests(bench *x) {
  x->in.requests = 4;
}
static void few_requests(bench *x) {
  x->in.requests = -1;
}
static void no_blocks(bench *x) {
  x->in.num_blocks = 0;
}
static void bad_threshold(bench *x) {
  x->in.decode_threshold = -1;
}
static void no_context(bench *x) {
  x->in.context_lens = NULL;
}
static void no_query(bench *x) {
  x->in.query_lens = NULL;
}
static void no_starts(bench *x) {
  x->in.block_starts = NULL;
}
static void no_ids(bench *x) {
  x->in.block_ids = NULL;
}
static void bad_context(bench *x) {
  x->context[1] = -1;
}
static void bad_query(bench *x) {
  x->rows[2] = -3;
}
static void long_query(bench *x) {
  x->context[1] = INT_MAX - 2;
  x->rows[1] = 3;
}
static void many_rows(bench *x) {
  x->rows[1] = 12;
}
static void late_start(bench *x) {
  x->starts[0] = 1;
}
static void falling_starts(bench *x) {
  x->starts[2] = 1;
}
static void short_list(bench *x) {
  x->starts[1] = 1;
}
static void long_list(bench *x) {
  x->starts[3] = 8;
}
static void bad_id(bench *x) {
  x->ids[3] = 6;
}
static void negative_id(bench *x) {
  x->ids[5] = -1;
}

static const struct {
  void (*break_it)(bench *);
  const char *field, *value;
} faults[] = {
    {no_size, "input", "4"},
    {many_requests, "requests", "4"},
    {few_requests, "requests", "-1"},
    {no_blocks, "num_blocks", "0"},
    {bad_threshold, "decode_threshold", "-1"},
    {no_context, "context_lens", "NULL"},
    {no_query, "query_lens", "NULL"},
    {no_starts, "block_starts", "NULL"},
    {no_ids, "block_ids", "NULL"},
    {bad_context, "context_lens", "context_lens[1] is -1"},
    {bad_query, "query_lens", "query_lens[2] is -3"},
    {long_query, "query_lens", "at most 2"},
    {many_rows, "block_starts", "need 3 of 4"},
    {late_start, "block_starts", "block_starts[0] is 1"},
    {falling_starts, "block_starts", "block_starts[2] is 1"},
    {short_list, "block_starts", "6 entries need 2"},
    {long_list, "block_starts", "5 blocks, the table holds 4"},
    {bad_id, "block_ids", "block_ids[3] is 6"},
    {negative_id, "block_ids", "block_ids[5] is -1"},
};

START_TEST(bad_input_writes_nothing) {
  const mla_batch_room room = {sizeof room, 4, 3, 12, 4};
  bench x;
  batch_memory m;
  mla_error err = mla_error_init();
  bench_make(&x);
  batch_memory_new(&m, &room);
  ck_assert_int_eq(mla_batch_build(&m.batch, &x.in, NULL), MLA_OK);
  unsigned char *before = batch_memory_copy(&m);
  faults[_i].break_it(&x);
  mla_status status = mla_batch_build(&m.batch, &x.in, &err);
  ck_assert(status == MLA_INVALID_ARGUMENT || status == MLA_VERSION_MISMATCH);
  ck_assert_str_eq(err.field, faults[_i].field);
  ck_assert_msg(strstr(err.message, faults[_i].value) != NULL, "%s",
                err.message);
  ck_assert(batch_memory_same(&m, before));
  free(before);
  batch_memory_free(&m);
}
END_TEST

START_TEST(rows_beyond_the_room) {
  const mla_batch_room room = {sizeof room, 4, 3, 6, 4};
  bench x;
  batch_memory m;
  mla_error err = mla_error_init();
  bench_make(&x);
  batch_memory_new(&m, &room);
  ck_assert_int_eq(mla_batch_build(&m.batch, &x.in, &err),
                   MLA_INVALID_ARGUMENT);
  ck_assert_str_eq(err.message,
                   "query_lens[2] is 2, which makes 7 rows; there is room for "
                   "6");
  batch_memory_free(&m);
}
END_TEST

START_TEST(bad_padding) {
  const mla_batch_room room = {sizeof room, 4, 5, 12, 4};
  const int64_t bad[][2] = {{2, 7}, {3, 6}, {6, 7}, {3, 13}};
  bench x;
  batch_memory m;
  bench_make(&x);
  batch_memory_new(&m, &room);
  ck_assert_int_eq(mla_batch_build(&m.batch, &x.in, NULL), MLA_OK);
  unsigned char *before = batch_memory_copy(&m);
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(mla_batch_pad(&m.batch, bad[i][0], bad[i][1], NULL),
                     MLA_INVALID_ARGUMENT);
  ck_assert(batch_memory_same(&m, before));
  free(before);
  batch_memory_free(&m);
}
END_TEST

START_TEST(bad_rooms) {
  const mla_batch_room bad[] = {
      {sizeof bad[0], 0, 1, 1, 1},
      {sizeof bad[0], 1, 0, 1, 1},
      {sizeof bad[0], 1, 1, 0, 1},
      {sizeof bad[0], 1, 1, 1, 0},
      {sizeof bad[0], 1, 1, (int64_t)INT32_MAX + 1, 1},
      {sizeof bad[0], 1, INT64_MAX / 2, 1, INT64_MAX / 2},
      {8, 1, 1, 1, 1}};
  int64_t memory[64];
  mla_batch batch;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    ck_assert_uint_eq(mla_batch_bytes(&bad[i]), 0);
    ck_assert_int_ne(
        mla_batch_place(&batch, &bad[i], memory, sizeof memory, NULL), MLA_OK);
  }
  ck_assert_uint_eq(mla_batch_bytes(NULL), 0);
}
END_TEST

START_TEST(bad_memory) {
  const mla_batch_room room = {sizeof room, 4, 2, 3, 2};
  uint64_t need = mla_batch_bytes(&room);
  int64_t memory[64];
  mla_batch batch;
  mla_error err = mla_error_init();
  ck_assert(need > 0 && need <= sizeof memory);
  ck_assert_int_eq(mla_batch_place(&batch, &room, memory, need - 1, &err),
                   MLA_WORKSPACE_TOO_SMALL);
  ck_assert_str_eq(err.field, "bytes");
  ck_assert_int_eq(mla_batch_place(&batch, &room, NULL, need, &err),
                   MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(
      mla_batch_place(&batch, &room, (char *)memory + 4, need, &err),
      MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(mla_batch_place(NULL, &room, memory, need, &err),
                   MLA_INVALID_ARGUMENT);
  memset(&batch, 0, sizeof batch);
  ck_assert_int_eq(mla_batch_pad(&batch, 1, 1, &err), MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(mla_batch_pad(NULL, 1, 1, &err), MLA_INVALID_ARGUMENT);
}
END_TEST

START_TEST(views) {
  const mla_batch_room room = {sizeof room, 4, 5, 12, 4};
  mla_tensor tensor[MLA_T_COUNT];
  bench x;
  batch_memory m;
  bench_make(&x);
  batch_memory_new(&m, &room);
  ck_assert_int_eq(mla_batch_build(&m.batch, &x.in, NULL), MLA_OK);
  memset(tensor, 0, sizeof tensor);
  mla_batch_tensors(&m.batch, tensor);
  ck_assert_ptr_eq(tensor[MLA_T_BLOCK_TABLE].data, m.batch.block_table);
  ck_assert_int_eq(tensor[MLA_T_BLOCK_TABLE].shape[0], 3);
  ck_assert_int_eq(tensor[MLA_T_BLOCK_TABLE].stride[0], 4);
  ck_assert_int_eq(tensor[MLA_T_QUERY_START_LOC].shape[0], 4);
  ck_assert_int_eq(tensor[MLA_T_SLOT_MAPPING].shape[0], 7);
  ck_assert_int_eq(tensor[MLA_T_SLOT_MAPPING].dtype, MLA_I64);
  ck_assert_int_eq(tensor[MLA_T_SEQ_LENS].shape[0], 3);
  ck_assert_ptr_null(tensor[MLA_T_CACHE].data);
  batch_memory_free(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("batch_build");
  TCase *tcase = tcase_create("build");
  tcase_add_test(tcase, by_hand);
  tcase_add_loop_test(tcase, any_requests, 0, 20);
  tcase_add_test(tcase, rows_see);
  tcase_add_loop_test(tcase, bad_input_writes_nothing, 0,
                      (int)(sizeof faults / sizeof faults[0]));
  tcase_add_test(tcase, rows_beyond_the_room);
  tcase_add_test(tcase, bad_padding);
  tcase_add_test(tcase, bad_rooms);
  tcase_add_test(tcase, bad_memory);
  tcase_add_test(tcase, views);
  suite_add_tcase(suite, tcase);
  return check_main(suite);
}
