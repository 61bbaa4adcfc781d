/*
 * Sparse decode of the reference: lists of slots with holes, strangers and
 * repetitions, a second cache, and the table it stands for.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "oracle_fixture.h"

#define CLOSE 8e-15
enum {
  TOKENS = 5,
  HEADS = 3,
  LATENT = 6,
  ROPE = 3,
  WIDTH = LATENT + ROPE,
  SIZE = 4,
  BLOCKS = 5,
  CAPACITY = SIZE * BLOCKS,
  TOPK = 8,
  EXTRA_SIZE = 3,
  EXTRA_BLOCKS = 2,
  EXTRA_TOPK = 4
};

/* Rows: as a selector leaves it; holes in front; holes between, strangers on
   both sides; one slot three times; nothing at all. */
static const int64_t lists[TOKENS * TOPK] = {
    7,  3,  19, 0,  12,        -1, -1,        -1, /* */
    -1, -1, -1, 5,  4,         -1, 6,         11, /* */
    2,  20, -7, 13, INT32_MAX, 8,  INT32_MIN, 1,  /* */
    9,  9,  10, 9,  14,        -1, -1,        -1, /* */
    -1, 20, -1, -2, -1,        21, -1,        -1};
static const int64_t lengths[TOKENS] = {4, 8, 4, 0, 8};
static const int64_t extra_lists[TOKENS * EXTRA_TOPK] = {0,  5,  -1, -1, /* */
                                                         6,  1,  1,  -3, /* */
                                                         -1, -1, -1, -1, /* */
                                                         2,  3,  4,  9,  /* */
                                                         -1, 5,  6,  0};
static const int64_t extra_lengths[TOKENS] = {1, 4, 4, 2, 3};

static void setup(fixture *f, uint64_t flags) {
  fixture_init(f, MLA_OP_DECODE);
  mla_problem *p = &f->problem;
  p->flags = MLA_SPARSE | MLA_RETURN_LSE | flags;
  p->num_heads = HEADS;
  p->kv_lora_rank = LATENT;
  p->qk_rope_head_dim = ROPE;
  p->block_size = SIZE;
  p->topk = TOPK;
  fixture_tensor(f, MLA_T_Q, MLA_F64, 1, TOKENS, HEADS, WIDTH, 0);
  fixture_tensor(f, MLA_T_CACHE, MLA_F64, 2, BLOCKS, SIZE, WIDTH, 0);
  fixture_tensor(f, MLA_T_INDICES, MLA_I32, 3, TOKENS, TOPK, 0, 0);
  fixture_tensor(f, MLA_T_OUT, MLA_F64, 1, TOKENS, HEADS, LATENT, 0);
  fixture_tensor(f, MLA_T_LSE, MLA_F64, 1, TOKENS, HEADS, 0, 0);
  fixture_tensor(f, MLA_T_SINK, MLA_F64, 0, HEADS, 0, 0, 0);
  fixture_bell(f, MLA_T_Q, 1);
  fixture_bell(f, MLA_T_CACHE, 1);
  fixture_bell(f, MLA_T_SINK, 1);
  fixture_set_ints(f, MLA_T_INDICES, lists);
}

static void add_lengths(fixture *f) {
  fixture_tensor(f, MLA_T_TOPK_LEN, MLA_I32, 0, TOKENS, 0, 0, 0);
  fixture_set_ints(f, MLA_T_TOPK_LEN, lengths);
}

static void add_extra(fixture *f) {
  f->problem.flags |= MLA_EXTRA_CACHE;
  f->problem.extra_topk = EXTRA_TOPK;
  f->problem.extra_block_size = EXTRA_SIZE;
  fixture_tensor(f, MLA_T_EXTRA_CACHE, MLA_F64, 1, EXTRA_BLOCKS, EXTRA_SIZE,
                 WIDTH, 0);
  fixture_tensor(f, MLA_T_EXTRA_INDICES, MLA_I32, 0, TOKENS, EXTRA_TOPK, 0, 0);
  fixture_bell(f, MLA_T_EXTRA_CACHE, 1);
  fixture_set_ints(f, MLA_T_EXTRA_INDICES, extra_lists);
}

/* The keys of a token, one after another: [n][WIDTH]. */
static int64_t keys_of(const fixture *f, int64_t token, int extra, double *k) {
  int slot = extra ? MLA_T_EXTRA_CACHE : MLA_T_CACHE;
  int64_t capacity = extra ? EXTRA_SIZE * EXTRA_BLOCKS : CAPACITY, n = 0;
  int64_t count = extra ? EXTRA_TOPK : TOPK;
  int length = extra ? MLA_T_EXTRA_TOPK_LEN : MLA_T_TOPK_LEN;
  int64_t end =
      f->tensor[length].data ? (int64_t)fixture_get(f, length, token) : count;
  for (int64_t i = 0; i < end; i++) {
    int64_t at =
        extra ? extra_lists[token * EXTRA_TOPK + i] : lists[token * TOPK + i];
    if (at < 0 || at >= capacity) continue;
    for (int64_t d = 0; d < WIDTH; d++)
      k[n * WIDTH + d] = fixture_get(f, slot, at * WIDTH + d);
    n++;
  }
  return n;
}

static void check_row(const fixture *f, int64_t token, int64_t head,
                      const double *k, int64_t n) {
  double s[TOPK + EXTRA_TOPK], m = -INFINITY, sum = 0;
  int64_t row = token * HEADS + head;
  for (int64_t j = 0; j < n; j++) {
    s[j] = 0;
    for (int64_t d = 0; d < WIDTH; d++)
      s[j] += fixture_get(f, MLA_T_Q, row * WIDTH + d) * k[j * WIDTH + d];
    s[j] *= f->problem.scale;
    m = fmax(m, s[j]);
  }
  for (int64_t j = 0; j < n; j++) sum += exp(s[j] - m);
  double lse = n ? m + log(sum) : -INFINITY, got;
  got = fixture_get(f, MLA_T_LSE, row);
  ck_assert(n ? fabs(got - lse) < CLOSE : got == -INFINITY);
  if (f->problem.flags & MLA_HAS_SINK)
    sum += exp(fixture_get(f, MLA_T_SINK, head) - m);
  for (int64_t d = 0; d < LATENT; d++) {
    double out = 0;
    for (int64_t j = 0; j < n; j++) out += exp(s[j] - m) * k[j * WIDTH + d];
    got = fixture_get(f, MLA_T_OUT, row * LATENT + d);
    ck_assert(n ? fabs(got - out / sum) < CLOSE : got == 0);
  }
}

static void check_all(const fixture *f) {
  double k[(TOPK + EXTRA_TOPK) * WIDTH];
  for (int64_t t = 0; t < TOKENS; t++) {
    int64_t n = keys_of(f, t, 0, k);
    if (f->problem.flags & MLA_EXTRA_CACHE)
      n += keys_of(f, t, 1, k + n * WIDTH);
    for (int64_t h = 0; h < HEADS; h++) check_row(f, t, h, k, n);
  }
}

static const int32_t splits[] = {0, 1, 2, 3, 8, 100};

/* Bits of _i: a sink, lengths of lists, a second cache, its lengths. */
START_TEST(lists_are_the_direct_answer) {
  fixture f;
  setup(&f, _i & 1 ? MLA_HAS_SINK : 0);
  if (_i & 2) add_lengths(&f);
  if (_i & 4) add_extra(&f);
  if (_i & 8) {
    fixture_tensor(&f, MLA_T_EXTRA_TOPK_LEN, MLA_I32, 0, TOKENS, 0, 0, 0);
    fixture_set_ints(&f, MLA_T_EXTRA_TOPK_LEN, extra_lengths);
  }
  for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
    f.limits.num_splits = splits[i];
    fixture_run(&f);
    check_all(&f);
  }
  fixture_free(&f);
}
END_TEST

/* No slot that nobody lists is read: NaN there is never seen. */
START_TEST(only_listed_entries_are_read) {
  static const int64_t never[] = {15, 16, 17, 18};
  fixture f;
  setup(&f, 0);
  for (int i = 0; i < 4; i++)
    for (int64_t d = 0; d < WIDTH; d++)
      fixture_set(&f, MLA_T_CACHE, never[i] * WIDTH + d, NAN);
  fixture_run(&f);
  check_all(&f);
  fixture_free(&f);
}
END_TEST

/* The same answers, unrounded, of all rows and of some; and their budgets. */
START_TEST(expectations_are_those_of_a_run) {
  static const int64_t rows[] = {2, 4, 9, 13};
  const mla_selection some = {4, rows};
  fixture f;
  setup(&f, MLA_HAS_SINK);
  add_extra(&f);
  fixture_run(&f);
  for (int part = 0; part < 2; part++) {
    mla_expected *x = fixture_expect(&f, part ? &some : NULL);
    ck_assert_int_eq(mla_expected_count(x), 2);
    for (int32_t i = 0; i < 2; i++) {
      mla_expected_view v = mla_expected_at(x, i);
      double budget[TOKENS * HEADS * LATENT];
      mla_expected_budget(x, i, NULL, budget);
      ck_assert_int_eq(v.rows, part ? 4 : TOKENS * HEADS);
      for (int64_t j = 0; j < v.rows * v.width; j++) {
        int64_t row = v.row_index ? v.row_index[j / v.width] : j / v.width;
        double got = fixture_get(&f, v.slot, row * v.width + j % v.width);
        ck_assert(v.value[j] == got);
        ck_assert(isinf(got) || got == 0 ? budget[j] >= 0 : budget[j] > 0);
      }
    }
    mla_expected_free(x);
  }
  fixture_free(&f);
}
END_TEST

/* Slots of all positions in their order: the bits of dense decode. */
START_TEST(a_full_list_is_dense_decode) {
  static const int64_t seq[] = {7, 13}, queries[] = {1, 2};
  const requests r = {2, seq, queries};
  fixture f;
  fixture_init(&f, MLA_OP_DECODE);
  f.problem.num_heads = HEADS;
  f.problem.kv_lora_rank = LATENT;
  f.problem.qk_rope_head_dim = ROPE;
  f.problem.block_size = SIZE;
  fixture_decode(&f, r, 1);
  fixture_run(&f);
  double *out = fixture_values(&f, MLA_T_OUT);
  double *lse = fixture_values(&f, MLA_T_LSE);
  int64_t width = f.tensor[MLA_T_BLOCK_TABLE].shape[1];
  fixture_tensor(&f, MLA_T_INDICES, MLA_I32, 0, 5, 13, 0, 0);
  for (int64_t t = 0; t < 3; t++)
    for (int64_t j = 0; j < seq[t > 0]; j++)
      fixture_set(
          &f, MLA_T_INDICES, t * 13 + j,
          fixture_get(&f, MLA_T_BLOCK_TABLE, (t > 0) * width + j / SIZE) *
                  SIZE +
              (double)(j % SIZE));
  f.problem.flags |= MLA_SPARSE;
  f.problem.topk = 13;
  fixture_run(&f);
  for (int64_t i = 0; i < 3 * HEADS * LATENT; i++)
    ck_assert(fixture_get(&f, MLA_T_OUT, i) == out[i]);
  for (int64_t i = 0; i < 3 * HEADS; i++)
    ck_assert(fixture_get(&f, MLA_T_LSE, i) == lse[i]);
  free(out);
  free(lse);
  fixture_free(&f);
}
END_TEST

/* Over packed entries: sparse decode of every slot in its order is dense
   decode of a table of all blocks in theirs. */
static const int32_t packed[] = {MLA_CACHE_FP8_DS_MLA, MLA_CACHE_FP8_584,
                                 MLA_CACHE_FP8_E4M3,   MLA_CACHE_FP8_TOKEN,
                                 MLA_CACHE_INT8_TOKEN, MLA_CACHE_INT4_TOKEN};

static void packed_cache(fixture *f, int32_t format) {
  static const int64_t table[] = {0, 1}, one[] = {8}, starts[] = {0, 1};
  mla_problem *p = &f->problem;
  p->flags = MLA_RETURN_LSE;
  p->q_dtype = MLA_F32;
  p->num_heads = 2;
  p->kv_lora_rank = 256;
  p->qk_rope_head_dim = 64;
  p->block_size = 4;
  p->k_scale = 0.01;
  p->cache_format = format;
  int64_t entry = mla_problem_entry(p);
  int plain = format == MLA_CACHE_FP8_E4M3;
  fixture_tensor(f, MLA_T_Q, MLA_F32, 0, 1, 2, 320, 0);
  fixture_bell(f, MLA_T_Q, 0.25);
  mla_tensor *cache = fixture_tensor(
      f, MLA_T_CACHE, plain ? MLA_FP8_E4M3 : MLA_U8, 0, 2, 4, entry, 0);
  cache->stride[0] = 4 * entry > 2 * 576 * 4 ? 4 * entry : 2 * 576 * 4;
  free(f->memory[MLA_T_CACHE]);
  cache->data = f->memory[MLA_T_CACHE] = calloc(2, (size_t)cache->stride[0]);
  unsigned char *byte = cache->data;
  for (int64_t i = 0; i < 2 * cache->stride[0]; i++)
    byte[i] = (unsigned char)(0x30 + i * 37 % 9); /* no NaN, no huge scale */
  fixture_tensor(f, MLA_T_BLOCK_TABLE, MLA_I32, 0, 1, 2, 0, 0);
  fixture_tensor(f, MLA_T_SEQ_LENS, MLA_I32, 0, 1, 0, 0, 0);
  fixture_tensor(f, MLA_T_QUERY_START_LOC, MLA_I32, 0, 2, 0, 0, 0);
  fixture_set_ints(f, MLA_T_BLOCK_TABLE, table);
  fixture_set_ints(f, MLA_T_SEQ_LENS, one);
  fixture_set_ints(f, MLA_T_QUERY_START_LOC, starts);
  fixture_tensor(f, MLA_T_OUT, MLA_F64, 0, 1, 2, 256, 0);
  fixture_tensor(f, MLA_T_LSE, MLA_F32, 0, 1, 2, 0, 0);
}

START_TEST(packed_entries_are_read_as_by_a_table) {
  static const int64_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
  fixture f;
  fixture_init(&f, MLA_OP_DECODE);
  packed_cache(&f, packed[_i]);
  fixture_run(&f);
  double *out = fixture_values(&f, MLA_T_OUT);
  ck_assert(isfinite(out[0]) && out[0] != 0);
  f.problem.flags |= MLA_SPARSE;
  f.problem.topk = 8;
  fixture_tensor(&f, MLA_T_INDICES, MLA_I32, 0, 1, 8, 0, 0);
  fixture_set_ints(&f, MLA_T_INDICES, all);
  fixture_run(&f);
  for (int64_t i = 0; i < 512; i++)
    ck_assert(fixture_get(&f, MLA_T_OUT, i) == out[i]);
  free(out);
  fixture_free(&f);
}
END_TEST

START_TEST(values_apart_are_refused) {
  fixture f;
  const char *field;
  setup(&f, MLA_SEPARATE_V);
  ck_assert_ptr_nonnull(mla_oracle_refusal(&f.problem, &field));
  ck_assert_str_eq(field, "flags");
  fixture_free(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("oracle_sparse");
  TCase *tests = tcase_create("sparse");
  tcase_add_loop_test(tests, lists_are_the_direct_answer, 0, 16);
  tcase_add_test(tests, only_listed_entries_are_read);
  tcase_add_test(tests, expectations_are_those_of_a_run);
  tcase_add_test(tests, a_full_list_is_dense_decode);
  tcase_add_loop_test(tests, packed_entries_are_read_as_by_a_table, 0, 6);
  tcase_add_test(tests, values_apart_are_refused);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
