/*
 * The selector of sparse attention, and positions turned into slots, against
 * direct loops; the budget of logits against healthy and faulty sums in f32.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "dtype.h"
#include "oracle_fixture.h"

enum { HEADS = 4, WIDTH = 8, SIZE = 4, TOPK = 5, LOGITS = 17 };
static const int64_t seqs[] = {7, 2, 16, 0, 11};
static const int64_t queries[] = {1, 3, 2, 2, 0};
static const requests ragged = {5, seqs, queries};
#define TOKENS 8 /* and two of padding */

/* Lengths, table and keys are those of a decode of one wide head. */
static void setup(fixture *f, int32_t format) {
  fixture_init(f, MLA_OP_DECODE);
  mla_problem *p = &f->problem;
  p->num_heads = HEADS;
  p->head_dim = p->v_dim = WIDTH;
  p->block_size = SIZE;
  p->cache_format = format;
  fixture_decode(f, ragged, 1);
  p->op = MLA_OP_INDEX;
  p->flags = MLA_RETURN_LOGITS;
  p->topk = TOPK;
  f->tensor[MLA_T_OUT].data = f->tensor[MLA_T_LSE].data = NULL;
  f->tensor[MLA_T_SINK].data = NULL;
  fixture_tensor(f, MLA_T_INDEX_WEIGHTS, MLA_F64, 1, TOKENS + 2, HEADS, 0, 0);
  fixture_bell(f, MLA_T_INDEX_WEIGHTS, 1);
  fixture_tensor(f, MLA_T_LOGITS, MLA_F64, 1, TOKENS + 2, LOGITS, 0, 0);
  fixture_tensor(f, MLA_T_POSITIONS, MLA_I32, 2, TOKENS + 2, TOPK, 0, 0);
  for (int64_t i = 0; i < (TOKENS + 2) * TOPK; i++)
    fixture_set(f, MLA_T_POSITIONS, i, 77);
}

/* The request of a token, and how many positions it sees. */
static int64_t seen(int64_t token, int64_t *request) {
  int64_t b = 0;
  for (; token >= queries[b]; b++) token -= queries[b];
  int64_t n = seqs[b] - queries[b] + token + 1;
  *request = b;
  return n < 0 ? 0 : n;
}

static double key_at(const fixture *f, int64_t b, int64_t j, int64_t d) {
  int64_t width = f->tensor[MLA_T_BLOCK_TABLE].shape[1];
  int64_t block =
      (int64_t)fixture_get(f, MLA_T_BLOCK_TABLE, b * width + j / SIZE);
  return fixture_get(f, MLA_T_CACHE, (block * SIZE + j % SIZE) * WIDTH + d);
}

static double logit_of(const fixture *f, int64_t token, int64_t b, int64_t j) {
  double logit = 0;
  for (int64_t h = 0; h < HEADS; h++) {
    double s = 0;
    for (int64_t d = 0; d < WIDTH; d++)
      s += fixture_get(f, MLA_T_Q, (token * HEADS + h) * WIDTH + d) *
           key_at(f, b, j, d);
    if (s > 0)
      logit += s * fixture_get(f, MLA_T_INDEX_WEIGHTS, token * HEADS + h);
  }
  return logit;
}

/* Every chosen position is visible and once there; none that is left out has
   a larger logit, nor an equal one at a lower position. */
static void check_choice(const fixture *f, int64_t token, int64_t n) {
  int taken[LOGITS] = {0};
  double least = INFINITY;
  int64_t last = -1;
  for (int64_t i = 0; i < TOPK; i++) {
    int64_t j = (int64_t)fixture_get(f, MLA_T_POSITIONS, token * TOPK + i);
    if (i >= n) {
      ck_assert_int_eq(j, -1);
      continue;
    }
    ck_assert(j >= 0 && j < n && !taken[j]);
    taken[j] = 1;
    double logit = fixture_get(f, MLA_T_LOGITS, token * LOGITS + j);
    ck_assert(logit <= least);
    ck_assert(logit < least || j > last);
    least = logit;
    last = j;
  }
  for (int64_t j = 0; j < n; j++) {
    double logit = fixture_get(f, MLA_T_LOGITS, token * LOGITS + j);
    if (!taken[j]) ck_assert(logit < least || (logit == least && j > last));
  }
}

static void check_all(const fixture *f) {
  for (int64_t t = 0; t < TOKENS; t++) {
    int64_t b, n = seen(t, &b);
    for (int64_t j = 0; j < LOGITS; j++) {
      double got = fixture_get(f, MLA_T_LOGITS, t * LOGITS + j);
      if (j < n)
        ck_assert_double_eq_tol(got, logit_of(f, t, b, j), 1e-14);
      else
        ck_assert(got == -INFINITY);
    }
    check_choice(f, t, n);
  }
  for (int64_t i = TOKENS * TOPK; i < (TOKENS + 2) * TOPK; i++)
    ck_assert(fixture_get(f, MLA_T_POSITIONS, i) == 77);
  for (int64_t i = TOKENS * LOGITS; i < (TOKENS + 2) * LOGITS; i++)
    ck_assert(isnan(fixture_get(f, MLA_T_LOGITS, i)));
}

START_TEST(logits_and_choices_are_the_direct_ones) {
  fixture f;
  setup(&f, _i ? MLA_CACHE_BF16 : MLA_CACHE_F64);
  fixture_run(&f);
  check_all(&f);
  fixture_free(&f);
}
END_TEST

/* All logits 0, and then all of them negative: hidden positions never win. */
START_TEST(ties_go_to_the_lowest_position) {
  fixture f;
  setup(&f, MLA_CACHE_F64);
  for (int64_t i = 0; i < TOKENS * HEADS * WIDTH; i++)
    fixture_set(&f, MLA_T_Q, i, 0);
  fixture_run(&f);
  check_all(&f);
  for (int64_t i = 0; i < TOPK; i++)
    ck_assert(fixture_get(&f, MLA_T_POSITIONS, i) == (double)i);
  fixture_bell(&f, MLA_T_Q, 1);
  for (int64_t i = 0; i < TOKENS * HEADS; i++)
    fixture_set(&f, MLA_T_INDEX_WEIGHTS, i, -1);
  fixture_run(&f);
  check_all(&f);
  fixture_free(&f);
}
END_TEST

START_TEST(choices_need_no_logits) {
  static const int64_t rows[] = {0, 3, 5, 7, 9};
  const mla_selection some = {5, rows};
  fixture f;
  setup(&f, MLA_CACHE_F64);
  fixture_run(&f);
  mla_expected *x = fixture_expect(&f, &some);
  ck_assert_int_eq(mla_expected_count(x), 2);
  f.problem.flags = 0;
  f.tensor[MLA_T_LOGITS].data = NULL;
  mla_expected *y = fixture_expect(&f, NULL);
  ck_assert_int_eq(mla_expected_count(y), 1);
  mla_expected_view a = mla_expected_at(x, 0), b = mla_expected_at(y, 0);
  int64_t wide, narrow;
  const double *some_logits = mla_expected_logits(x, &wide);
  const double *all_logits = mla_expected_logits(y, &narrow);
  ck_assert_int_eq(a.rows, 4);
  ck_assert_int_eq(b.rows, TOKENS);
  ck_assert_int_eq(wide, LOGITS);
  ck_assert_int_eq(narrow, 16);
  for (int64_t r = 0; r < a.rows; r++) {
    int64_t t = a.row_index[r];
    ck_assert_mem_eq(a.value + r * TOPK, b.value + t * TOPK,
                     TOPK * sizeof *a.value);
    ck_assert_mem_eq(some_logits + r * wide, all_logits + t * narrow,
                     (size_t)narrow * sizeof *all_logits);
  }
  for (int64_t i = 0; i < TOKENS * TOPK; i++)
    ck_assert(b.value[i] == fixture_get(&f, MLA_T_POSITIONS, i));
  mla_expected_free(x);
  mla_expected_free(y);
  fixture_free(&f);
}
END_TEST

/* Keys written in 132 bytes and read again: the choice is that of the keys as
   they are stored. */
START_TEST(stored_keys_are_what_is_chosen_by) {
  enum { KEYS = 11, WIDE = 128 };
  static const int64_t slots[] = {7, 2, 0, 9, 4, 11, 3, 8, 1, 6, 5};
  static const int64_t table[] = {0, 1, 2}, length[] = {10}, starts[] = {0, 1};
  fixture f;
  fixture_init(&f, MLA_OP_KV_WRITE);
  mla_problem *p = &f.problem;
  p->q_dtype = MLA_F32;
  p->cache_format = MLA_CACHE_FP8_INDEX;
  p->kv_lora_rank = WIDE;
  p->block_size = SIZE;
  ck_assert_int_eq(mla_problem_entry(p), 132);
  fixture_tensor(&f, MLA_T_KV_C, MLA_F32, 0, KEYS, WIDE, 0, 0);
  fixture_bell(&f, MLA_T_KV_C, 1);
  fixture_tensor(&f, MLA_T_SLOT_MAPPING, MLA_I64, 0, KEYS, 0, 0, 0);
  fixture_set_ints(&f, MLA_T_SLOT_MAPPING, slots);
  mla_tensor *cache =
      fixture_tensor(&f, MLA_T_CACHE, MLA_U8, 0, 3, SIZE, 132, 0);
  fixture_run(&f);
  const unsigned char *byte = cache->data;
  double keys[3 * SIZE * WIDE] = {0};
  for (int64_t i = 0; i < KEYS; i++) {
    const unsigned char *block = byte + slots[i] / SIZE * SIZE * 132;
    double scale = mla_get(block + SIZE * WIDE, MLA_F32, slots[i] % SIZE);
    for (int64_t d = 0; d < WIDE; d++)
      keys[slots[i] * WIDE + d] =
          mla_decode(MLA_FP8_E4M3, block[slots[i] % SIZE * WIDE + d]) * scale;
    ck_assert(scale > 0);
  }
  p->op = MLA_OP_INDEX;
  p->num_heads = 2;
  p->kv_lora_rank = 0;
  p->head_dim = WIDE;
  p->topk = 3;
  p->flags = MLA_RETURN_LOGITS;
  fixture_tensor(&f, MLA_T_Q, MLA_F32, 0, 1, 2, WIDE, 0);
  fixture_bell(&f, MLA_T_Q, 1);
  fixture_tensor(&f, MLA_T_INDEX_WEIGHTS, MLA_F32, 0, 1, 2, 0, 0);
  fixture_set(&f, MLA_T_INDEX_WEIGHTS, 0, 0.75);
  fixture_set(&f, MLA_T_INDEX_WEIGHTS, 1, 0.5);
  fixture_tensor(&f, MLA_T_BLOCK_TABLE, MLA_I32, 0, 1, 3, 0, 0);
  fixture_tensor(&f, MLA_T_SEQ_LENS, MLA_I32, 0, 1, 0, 0, 0);
  fixture_tensor(&f, MLA_T_QUERY_START_LOC, MLA_I32, 0, 2, 0, 0, 0);
  fixture_set_ints(&f, MLA_T_BLOCK_TABLE, table);
  fixture_set_ints(&f, MLA_T_SEQ_LENS, length);
  fixture_set_ints(&f, MLA_T_QUERY_START_LOC, starts);
  fixture_tensor(&f, MLA_T_POSITIONS, MLA_I32, 0, 1, 3, 0, 0);
  fixture_tensor(&f, MLA_T_LOGITS, MLA_F32, 0, 1, 10, 0, 0);
  fixture_run(&f);
  for (int64_t j = 0; j < 10; j++) {
    double logit = 0;
    for (int64_t h = 0; h < 2; h++) {
      double s = 0;
      for (int64_t d = 0; d < WIDE; d++)
        s += fixture_get(&f, MLA_T_Q, h * WIDE + d) *
             (double)(float)keys[j * WIDE + d];
      if (s > 0) logit += s * (h ? 0.5 : 0.75);
    }
    ck_assert_double_eq_tol(fixture_get(&f, MLA_T_LOGITS, j), logit,
                            1e-6 * (1 + fabs(logit)));
  }
  fixture_free(&f);
}
END_TEST

/* ----------------------------------------------------------------- budget */

/* All in f32: sums over d, then over heads. `skip`: a head left out. */
static double in_f32(const fixture *f, int64_t token, int64_t b, int64_t j,
                     int64_t skip) {
  float logit = 0;
  for (int64_t h = 0; h < HEADS; h++) {
    float s = 0;
    for (int64_t d = 0; d < WIDTH; d++)
      s += (float)fixture_get(f, MLA_T_Q, (token * HEADS + h) * WIDTH + d) *
           (float)key_at(f, b, j, d);
    float w = (float)fixture_get(f, MLA_T_INDEX_WEIGHTS, token * HEADS + h);
    if (s > 0 && h != skip) logit += w * s;
  }
  return (double)logit;
}

/* The formula of docs/tolerance.md, by hand. */
static double allowed(const fixture *f, int64_t token, int64_t b, int64_t j) {
  double u = 0x1p-24, scores = 0, sums = 0, y = 0, weight = 0;
  for (int64_t h = 0; h < HEADS; h++) {
    double s = 0, squares = 0;
    double w = fixture_get(f, MLA_T_INDEX_WEIGHTS, token * HEADS + h);
    for (int64_t d = 0; d < WIDTH; d++) {
      double x = fixture_get(f, MLA_T_Q, (token * HEADS + h) * WIDTH + d) *
                 key_at(f, b, j, d);
      s += x;
      squares += x * x;
    }
    weight += fabs(w);
    if (s <= -6 * u * sqrt(WIDTH * squares)) continue;
    scores += w * w * squares;
    if (s <= 0) continue;
    sums += w * w * s * s;
    y += w * s;
  }
  double subnormal =
      6 * sqrt(HEADS) + HEADS / 8.0 + weight * (6 * sqrt(WIDTH) + WIDTH / 8.0);
  return 6 * u * (sqrt(WIDTH * scores) + sqrt(HEADS * sums)) +
         (WIDTH + HEADS) / 8.0 * u * fabs(y) + (u + 4 * u) * fabs(y) +
         0x1p-150 + subnormal * u * 0x1p-126;
}

START_TEST(logits_have_their_budget) {
  fixture f;
  setup(&f, MLA_CACHE_F32);
  f.problem.q_dtype = MLA_F32;
  fixture_tensor(&f, MLA_T_Q, MLA_F32, 0, TOKENS + 2, HEADS, WIDTH, 0);
  fixture_bell(&f, MLA_T_Q, 1);
  fixture_tensor(&f, MLA_T_INDEX_WEIGHTS, MLA_F32, 0, TOKENS + 2, HEADS, 0, 0);
  fixture_bell(&f, MLA_T_INDEX_WEIGHTS, 1);
  mla_expected *x = fixture_expect(&f, NULL);
  mla_expected_view v = mla_expected_at(x, 1);
  double budget[TOKENS * LOGITS], worst = 0;
  mla_expected_budget(x, 1, NULL, budget);
  ck_assert_int_eq(v.rows * v.width, TOKENS * LOGITS);
  for (int64_t t = 0; t < TOKENS; t++) {
    int64_t b, n = seen(t, &b);
    for (int64_t j = 0; j < LOGITS; j++) {
      double y = v.value[t * LOGITS + j], mine = budget[t * LOGITS + j];
      if (j >= n) {
        ck_assert(mine == 0);
        continue;
      }
      ck_assert_double_eq_tol(mine, allowed(&f, t, b, j), 1e-9 * mine);
      worst = fmax(worst, fabs(in_f32(&f, t, b, j, -1) - y) / mine);
      if (y != 0)
        for (int64_t h = 0; h < HEADS; h++) {
          double fault = in_f32(&f, t, b, j, h);
          ck_assert(fault == in_f32(&f, t, b, j, -1) || fabs(fault - y) > mine);
        }
    }
  }
  ck_assert_msg(worst > 0 && worst < 1, "worst error / budget %g", worst);
  mla_expected_free(x);
  fixture_free(&f);
}
END_TEST

/* --------------------------------------------------------------- the slots */

START_TEST(positions_become_slots) {
  static const int64_t starts[] = {0, 1, 1, 3};
  static const int64_t table[] = {5, 0, -1, 2, 9, INT32_MAX, 7, 1, INT32_MIN};
  static const int64_t positions[] = {
      0,  5, 8,         11, -1, 12,                           /* request 0 */
      11, 0, 4,         3,  -9, 2,                            /* request 2 */
      -1, 7, INT32_MAX, 8,  9,  INT32_MIN, 1, 1, 1, 1, 1, 1}; /* padding */
  static const int64_t slots[] = {20, 1,  -1, -1, -1, -1,     /* */
                                  -1, 28, 4,  31, -1, 30,     /* */
                                  -1, 7,  -1, -1, -1, -1,     /* */
                                  77, 77, 77, 77, 77, 77};
  fixture f;
  fixture_init(&f, MLA_OP_MAP_INDICES);
  f.problem.block_size = SIZE;
  f.problem.topk = 6;
  fixture_tensor(&f, MLA_T_POSITIONS, MLA_I32, 1, 4, 6, 0, 0);
  fixture_tensor(&f, MLA_T_BLOCK_TABLE, MLA_I32, 2, 3, 3, 0, 0);
  fixture_tensor(&f, MLA_T_QUERY_START_LOC, MLA_I32, 0, 4, 0, 0, 0);
  fixture_tensor(&f, MLA_T_INDICES, MLA_I32, 3, 4, 6, 0, 0);
  fixture_set_ints(&f, MLA_T_POSITIONS, positions);
  fixture_set_ints(&f, MLA_T_BLOCK_TABLE, table);
  fixture_set_ints(&f, MLA_T_QUERY_START_LOC, starts);
  for (int64_t i = 0; i < 24; i++) fixture_set(&f, MLA_T_INDICES, i, 77);
  fixture_run(&f);
  for (int64_t i = 0; i < 24; i++)
    ck_assert_msg(fixture_get(&f, MLA_T_INDICES, i) == (double)slots[i],
                  "entry %d is %g", (int)i, fixture_get(&f, MLA_T_INDICES, i));
  mla_expected *x = fixture_expect(&f, NULL);
  mla_expected_view v = mla_expected_at(x, 0);
  double budget[18];
  mla_expected_budget(x, 0, NULL, budget);
  ck_assert_int_eq(v.rows, 3);
  for (int64_t i = 0; i < 18; i++)
    ck_assert(v.value[i] == (double)slots[i] && budget[i] == 0);
  mla_expected_free(x);
  fixture_free(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("oracle_index");
  TCase *tests = tcase_create("index");
  tcase_add_loop_test(tests, logits_and_choices_are_the_direct_ones, 0, 2);
  tcase_add_test(tests, ties_go_to_the_lowest_position);
  tcase_add_test(tests, choices_need_no_logits);
  tcase_add_test(tests, stored_keys_are_what_is_chosen_by);
  tcase_add_test(tests, logits_have_their_budget);
  tcase_add_test(tests, positions_become_slots);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
