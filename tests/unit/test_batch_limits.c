/*
 * test_batch_limits.c - one rule of splits, and what is reserved by it: no
 * step within the bounds needs more workspace than was reserved.
 */
#include <string.h>

#include "batch_fixture.h"
#include "check_main.h"

START_TEST(splits_by_hand) {
  const struct {
    int64_t length;
    int32_t units, invariant, splits;
  } table[] = {{0, 64, 0, 1},       {1, 64, 0, 1},
               {512, 64, 0, 1},     {513, 64, 0, 2},
               {1024, 64, 0, 2},    {1025, 64, 0, 4},
               {2048, 64, 0, 4},    {2049, 64, 0, 8},
               {65536, 64, 0, 128}, {65537, 64, 0, 128},
               {65537, 3, 0, 6},    {INT64_MAX, 132, 0, 264},
               {4096, 0, 0, 1},     {65537, 64, 1, 1},
               {1025, 1, 0, 2},     {INT64_MAX, INT32_MAX, 0, INT32_MAX}};
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    ck_assert_int_eq(
        mla_num_splits(table[i].length, table[i].units, table[i].invariant),
        table[i].splits);
}
END_TEST

START_TEST(splits_never_decrease) {
  for (int32_t units = 1; units < 40; units += 3) {
    int32_t before = 1;
    for (int64_t length = 0; length < 40000; length += 101) {
      int32_t splits = mla_num_splits(length, units, 0);
      ck_assert(splits >= before && splits <= 2 * units);
      before = splits;
    }
  }
}
END_TEST

/* ------------------------------------------------------------ workspace */

static mla_problem decode_problem(draws *d) {
  mla_problem p = mla_problem_init(MLA_OP_DECODE);
  p.flags = MLA_CAUSAL | MLA_RETURN_LSE;
  p.q_dtype = p.out_dtype = MLA_BF16;
  p.cache_format = MLA_CACHE_BF16;
  p.num_heads = draw(d, 1, 16);
  p.kv_lora_rank = 16 * draw(d, 1, 32);
  p.qk_rope_head_dim = 8 * draw(d, 1, 8);
  p.block_size = draw(d, 1, 64);
  p.scale = 0.1;
  return p;
}

static mla_batch_bounds draw_bounds(draws *d) {
  mla_batch_bounds b;
  memset(&b, 0, sizeof b);
  b.size = (uint32_t)sizeof b;
  b.compute_units = draw(d, 1, 160);
  b.batch_invariant = draw(d, 0, 4) == 0;
  b.requests = draw(d, 1, 256);
  b.max_query_len = draw(d, 1, 8);
  b.tokens = b.requests * b.max_query_len;
  b.max_seq_len = draw(d, 1, draw(d, 0, 1) ? 100000 : 3000);
  b.table_width = b.max_seq_len;
  b.num_blocks = draw(d, 1, 10000);
  return b;
}

static void shrink(int64_t *value, draws *d) {
  int64_t most = *value;
  *value = draw(d, 0, 2) ? draw(d, 0, (int32_t)most) : most;
}

/* Some step within the bounds: another number of everything but the device. */
static mla_batch_bounds draw_within(const mla_batch_bounds *bounds, draws *d) {
  mla_batch_bounds b = *bounds;
  shrink(&b.requests, d);
  shrink(&b.tokens, d);
  shrink(&b.max_query_len, d);
  shrink(&b.max_seq_len, d);
  shrink(&b.num_blocks, d);
  shrink(&b.table_width, d);
  return b;
}

static uint64_t workspace(mla_device *dev, const mla_problem *p,
                          const mla_batch_bounds *bounds) {
  mla_limits limits = mla_limits_init();
  mla_answer answer = mla_answer_init();
  mla_error err = mla_error_init();
  ck_assert_int_eq(mla_batch_limits(bounds, &limits, &err), MLA_OK);
  mla_status status = mla_query(dev, p, &limits, &answer, &err);
  ck_assert_msg(status == MLA_OK, "%s", err.message);
  ck_assert_msg(answer.supported, "%s", answer.reason);
  return answer.workspace_bytes;
}

START_TEST(reserved_workspace_never_grows) {
  static const char *const backends[] = {"ref", "cpu"};
  if (!mla_backend_find(backends[_i])) return;
  draws d = draws_from((uint64_t)_i + 5);
  mla_device *dev;
  ck_assert_int_eq(mla_open(backends[_i], 0, NULL, &dev, NULL), MLA_OK);
  for (int round = 0; round < 400; round++) {
    mla_problem p = decode_problem(&d);
    mla_batch_bounds bounds = draw_bounds(&d);
    if (bounds.batch_invariant) p.flags |= MLA_BATCH_INVARIANT;
    uint64_t reserved = workspace(dev, &p, &bounds);
    for (int step = 0; step < 10; step++) {
      mla_batch_bounds now = draw_within(&bounds, &d);
      uint64_t need = workspace(dev, &p, &now);
      ck_assert_msg(need <= reserved, "%llu bytes reserved, a step needs %llu",
                    (unsigned long long)reserved, (unsigned long long)need);
    }
  }
  mla_close(dev);
}
END_TEST

/* ---------------------------------------------------------------- steps */

START_TEST(measures_a_step) {
  draws d = draws_from(9);
  for (int round = 0; round < 60; round++) {
    step_requests r;
    batch_memory m;
    int64_t rows = 0, length = 0;
    requests_random(&r, &d);
    mla_batch_room room = room_for(&r, 2);
    batch_memory_new(&m, &room);
    ck_assert_int_eq(mla_batch_build(&m.batch, &r.input, NULL), MLA_OK);
    ck_assert_int_eq(mla_batch_pad(&m.batch, room.requests, room.tokens, NULL),
                     MLA_OK);
    for (int64_t b = 0; b < r.input.requests; b++) {
      if (r.rows[b] > rows) rows = r.rows[b];
      if (r.context[b] + r.rows[b] > length) length = r.context[b] + r.rows[b];
    }
    mla_batch_bounds bounds = mla_batch_measure(&m.batch, 7, 1);
    ck_assert_int_eq(bounds.max_query_len, rows);
    ck_assert_int_eq(bounds.max_seq_len, length);
    ck_assert_int_eq(bounds.requests, room.requests);
    ck_assert_int_eq(bounds.tokens, room.tokens);
    ck_assert_int_eq(bounds.table_width, room.table_width);
    ck_assert_int_eq(bounds.num_blocks, FIXTURE_BLOCKS);
    ck_assert_int_eq(bounds.compute_units, 7);
    ck_assert_int_eq(bounds.batch_invariant, 1);
    batch_memory_free(&m);
    requests_free(&r);
  }
}
END_TEST

START_TEST(limits_by_hand) {
  mla_batch_bounds bounds = {sizeof bounds, 2, 0, 0, 3, 9, 4, 1500, 70, 25};
  mla_limits limits = mla_limits_init();
  ck_assert_int_eq(mla_batch_limits(&bounds, &limits, NULL), MLA_OK);
  ck_assert_int_eq(limits.num_splits, 4);
  ck_assert_int_eq(limits.requests, 3);
  ck_assert_int_eq(limits.tokens, 9);
  ck_assert_int_eq(limits.max_query_len, 4);
  ck_assert_int_eq(limits.max_seq_len, 1500);
  ck_assert_int_eq(limits.num_blocks, 70);
  ck_assert_int_eq(limits.table_width, 25);
}
END_TEST

START_TEST(bad_bounds) {
  mla_error err = mla_error_init();
  for (int i = 0; i < 7; i++) {
    mla_batch_bounds b = {sizeof b, 2, 0, 0, 3, 9, 4, 1500, 70, 25};
    mla_limits limits = mla_limits_init();
    mla_limits before = limits;
    int64_t *members[] = {&b.requests,    &b.tokens,     &b.max_query_len,
                          &b.max_seq_len, &b.num_blocks, &b.table_width};
    if (i < 6)
      *members[i] = -1;
    else
      b.compute_units = -1;
    ck_assert_int_eq(mla_batch_limits(&b, &limits, &err), MLA_INVALID_ARGUMENT);
    ck_assert(strstr(err.message, "is -1, at least 0") != NULL);
    ck_assert_mem_eq(&limits, &before, sizeof limits);
  }
  ck_assert_int_eq(mla_batch_limits(NULL, NULL, &err), MLA_INVALID_ARGUMENT);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("batch_limits");
  TCase *tcase = tcase_create("limits");
  tcase_add_test(tcase, splits_by_hand);
  tcase_add_test(tcase, splits_never_decrease);
  tcase_add_loop_test(tcase, reserved_workspace_never_grows, 0, 2);
  tcase_add_test(tcase, measures_a_step);
  tcase_add_test(tcase, limits_by_hand);
  tcase_add_test(tcase, bad_bounds);
  suite_add_tcase(suite, tcase);
  return check_main(suite);
}
