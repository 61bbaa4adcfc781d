/*
 * Merging of the reference: against direct sums, and what infinities, NaN and
 * sinks mean in it.
 */
#include <math.h>
#include <stdlib.h>

#include "check_main.h"
#include "oracle_fixture.h"

#define PARTS 5
#define TOKENS 3
#define HEADS 2
#define WIDTH 9
#define ROWS (TOKENS * HEADS)
#define CLOSE 4e-15

static void setup(fixture *f, uint64_t flags, int64_t pad) {
  fixture_init(f, MLA_OP_MERGE);
  f->problem.flags = flags | MLA_RETURN_LSE;
  f->problem.num_heads = HEADS;
  f->problem.v_head_dim = WIDTH;
  fixture_tensor(f, MLA_T_PARTS, MLA_F64, pad, PARTS, TOKENS, HEADS, WIDTH);
  fixture_tensor(f, MLA_T_PART_LSES, MLA_F64, pad, PARTS, TOKENS, HEADS, 0);
  fixture_tensor(f, MLA_T_SINK, MLA_F64, 0, HEADS, 0, 0, 0);
  fixture_tensor(f, MLA_T_OUT, MLA_F64, pad, TOKENS, HEADS, WIDTH, 0);
  fixture_tensor(f, MLA_T_LSE, MLA_F64, pad, TOKENS, HEADS, 0, 0);
  fixture_bell(f, MLA_T_PARTS, 1);
  fixture_bell(f, MLA_T_PART_LSES, 4);
  fixture_bell(f, MLA_T_SINK, 2);
}

static void set_part(fixture *f, int64_t part, int64_t row, double lse,
                     double value) {
  fixture_set(f, MLA_T_PART_LSES, part * ROWS + row, lse);
  for (int64_t d = 0; d < WIDTH; d++)
    fixture_set(f, MLA_T_PARTS, (part * ROWS + row) * WIDTH + d, value);
}

static double weight(const fixture *f, int64_t part, int64_t row) {
  double lse = fixture_get(f, MLA_T_PART_LSES, part * ROWS + row);
  if (isinf(lse)) return 0;
  return f->problem.flags & MLA_LSE_BASE2 ? exp2(lse) : exp(lse);
}

/* Element d (WIDTH: the lse) of a row, by plain sums of e^lse. */
static double expected(const fixture *f, int64_t row, int64_t d) {
  double sum = 0, value = 0;
  for (int64_t i = 0; i < PARTS; i++) {
    double w = weight(f, i, row);
    if (w == 0) continue;
    sum += w;
    if (d < WIDTH)
      value += w * fixture_get(f, MLA_T_PARTS, (i * ROWS + row) * WIDTH + d);
  }
  if (d == WIDTH)
    return f->problem.flags & MLA_LSE_BASE2 ? log2(sum) : log(sum);
  if (sum == 0) return 0;
  if (f->problem.flags & MLA_HAS_SINK)
    sum += exp(fixture_get(f, MLA_T_SINK, row % HEADS));
  return value / sum;
}

static double got(const fixture *f, int64_t row, int64_t d) {
  return d == WIDTH ? fixture_get(f, MLA_T_LSE, row)
                    : fixture_get(f, MLA_T_OUT, row * WIDTH + d);
}

static void compare(const fixture *f) {
  for (int64_t row = 0; row < ROWS; row++)
    for (int64_t d = 0; d <= WIDTH; d++) {
      double a = expected(f, row, d), b = got(f, row, d);
      ck_assert_double_le(largest_difference(&a, &b, 1), CLOSE);
    }
}

static const uint64_t flag_sets[] = {0, MLA_LSE_BASE2, MLA_HAS_SINK,
                                     MLA_HAS_SINK | MLA_LSE_BASE2};

START_TEST(live_and_dead_parts_by_direct_sums) {
  fixture f;
  setup(&f, flag_sets[_i], _i);
  set_part(&f, 0, 0, INFINITY, NAN); /* never read */
  set_part(&f, 3, 0, -INFINITY, NAN);
  for (int64_t i = 1; i < PARTS; i++) set_part(&f, i, 1, -INFINITY, NAN);
  for (int64_t i = 0; i < PARTS; i++)
    set_part(&f, i, 2, i % 2 ? INFINITY : -INFINITY, NAN);
  fixture_run(&f);
  compare(&f);
  ck_assert(got(&f, 2, 0) == 0);
  ck_assert(got(&f, 2, WIDTH) == -INFINITY);
  fixture_free(&f);
}
END_TEST

START_TEST(nan_shows) {
  fixture f;
  setup(&f, flag_sets[_i], 0);
  fixture_set(&f, MLA_T_PART_LSES, 1 * ROWS + 0, NAN);
  fixture_set(&f, MLA_T_PARTS, (2 * ROWS + 1) * WIDTH + 4, NAN);
  fixture_run(&f);
  for (int64_t d = 0; d <= WIDTH; d++) {
    ck_assert(isnan(got(&f, 0, d)));
    ck_assert_int_eq(isnan(got(&f, 1, d)) != 0, d == 4);
    ck_assert(isfinite(got(&f, 2, d)));
  }
  fixture_free(&f);
}
END_TEST

START_TEST(one_part_passes_through) {
  fixture f;
  setup(&f, flag_sets[_i] & MLA_LSE_BASE2, 0);
  for (int64_t i = 0; i < PARTS; i++)
    for (int64_t row = 0; row < ROWS; row++)
      if (i != 2) set_part(&f, i, row, -INFINITY, NAN);
  fixture_run(&f);
  for (int64_t row = 0; row < ROWS; row++) {
    ck_assert_double_eq(got(&f, row, WIDTH),
                        fixture_get(&f, MLA_T_PART_LSES, 2 * ROWS + row));
    for (int64_t d = 0; d < WIDTH; d++)
      ck_assert_double_eq(
          got(&f, row, d),
          fixture_get(&f, MLA_T_PARTS, (2 * ROWS + row) * WIDTH + d));
  }
  fixture_free(&f);
}
END_TEST

START_TEST(far_apart_parts_do_not_overflow) {
  fixture f;
  setup(&f, 0, 0);
  set_part(&f, 0, 0, 5000, 3);
  set_part(&f, 1, 0, -5000, 7);
  fixture_run(&f);
  ck_assert_double_eq(got(&f, 0, WIDTH), 5000);
  ck_assert_double_eq(got(&f, 0, 0), 3);
  fixture_free(&f);
}
END_TEST

/* Merging the first parts, then the rest: the same but for rounding. */
START_TEST(merging_is_associative) {
  fixture whole, front;
  setup(&whole, flag_sets[_i] & MLA_LSE_BASE2, 0);
  setup(&front, flag_sets[_i] & MLA_LSE_BASE2, 0);
  front.tensor[MLA_T_PARTS].shape[0] = 3;
  front.tensor[MLA_T_PART_LSES].shape[0] = 3;
  fixture_run(&whole);
  fixture_run(&front);
  double *out = fixture_values(&whole, MLA_T_OUT);
  double *lse = fixture_values(&whole, MLA_T_LSE);
  for (int64_t row = 0; row < ROWS; row++) {
    set_part(&whole, 0, row, -INFINITY, NAN);
    set_part(&whole, 1, row, -INFINITY, NAN);
    fixture_set(&whole, MLA_T_PART_LSES, 2 * ROWS + row, got(&front, row, 9));
    for (int64_t d = 0; d < WIDTH; d++)
      fixture_set(&whole, MLA_T_PARTS, (2 * ROWS + row) * WIDTH + d,
                  got(&front, row, d));
  }
  fixture_run(&whole);
  double *out2 = fixture_values(&whole, MLA_T_OUT);
  double *lse2 = fixture_values(&whole, MLA_T_LSE);
  ck_assert_double_le(largest_difference(out, out2, ROWS * WIDTH), CLOSE);
  ck_assert_double_le(largest_difference(lse, lse2, ROWS), CLOSE);
  free(out);
  free(lse);
  free(out2);
  free(lse2);
  fixture_free(&whole);
  fixture_free(&front);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("oracle_merge");
  TCase *tests = tcase_create("merge");
  tcase_add_loop_test(tests, live_and_dead_parts_by_direct_sums, 0, 4);
  tcase_add_loop_test(tests, nan_shows, 0, 4);
  tcase_add_loop_test(tests, one_part_passes_through, 0, 2);
  tcase_add_test(tests, far_apart_parts_do_not_overflow);
  tcase_add_loop_test(tests, merging_is_associative, 0, 2);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
