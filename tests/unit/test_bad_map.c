/*
 * test_bad_map.c - maps of wrong values, and digests of outputs.
 */
#include <string.h>

#include "bad_map.h"
#include "check_main.h"
#include "output_digest.h"
#include "tensor.h"

START_TEST(a_small_tensor_has_a_cell_for_each_value) {
  static mla_bad_count count;
  mla_bad_map map;
  const int64_t shape[3] = {2, 3, 5}, one[3] = {1, 2, 4}, two[3] = {0, 1, 0};
  memset(&count, 0, sizeof count);
  mla_bad_draw(&count, 3, shape, &map);
  ck_assert_int_eq(map.rows, 0);
  mla_bad_mark(&count, 3, shape, one);
  mla_bad_mark(&count, 3, shape, two);
  mla_bad_draw(&count, 3, shape, &map);
  ck_assert_int_eq(map.rows, 6);
  ck_assert_int_eq(map.cols, 5);
  for (int r = 0; r < 6; r++)
    for (int k = 0; k < 5; k++)
      ck_assert_int_eq(map.cell[r][k],
                       (r == 5 && k == 4) || (r == 1 && k == 0) ? '9' : '0');
}
END_TEST

/* 40 rows in 16 cells: each stands for two or three; 100 columns in 64. */
START_TEST(a_cell_is_full_when_all_it_stands_for_is_wrong) {
  static mla_bad_count count;
  mla_bad_map map;
  const int64_t shape[2] = {40, 100};
  int64_t index[2], rows_seen = 0;
  memset(&count, 0, sizeof count);
  for (index[0] = 0; index[0] < 40; index[0]++)
    for (index[1] = 0; index[1] < 100; index[1]++)
      if (index[0] != 7 || index[1] == 99)
        mla_bad_mark(&count, 2, shape, index);
  mla_bad_draw(&count, 2, shape, &map);
  ck_assert_int_eq(map.rows, MLA_MAP_ROWS);
  ck_assert_int_eq(map.cols, MLA_MAP_COLS);
  for (int r = 0; r < MLA_MAP_ROWS; r++) {
    int64_t from[2], to[2] = {40, 0};
    mla_map_index(&map, r, 2, shape, from);
    if (r + 1 < MLA_MAP_ROWS) mla_map_index(&map, r + 1, 2, shape, to);
    rows_seen += to[0] - from[0];
    int has_seven = from[0] <= 7 && 7 < to[0];
    for (int k = 0; k < MLA_MAP_COLS - 1; k++) {
      if (has_seven)
        ck_assert(map.cell[r][k] > '0' && map.cell[r][k] < '9');
      else
        ck_assert_int_eq(map.cell[r][k], '9');
    }
    ck_assert_int_eq(map.cell[r][MLA_MAP_COLS - 1] == '9', 1);
  }
  ck_assert_int_eq(rows_seen, 40);
}
END_TEST

START_TEST(one_of_many_shows) {
  static mla_bad_count count;
  mla_bad_map map;
  const int64_t shape[3] = {64, 128, 512}, index[3] = {63, 127, 511};
  int64_t at[3];
  memset(&count, 0, sizeof count);
  mla_bad_mark(&count, 3, shape, index);
  mla_bad_draw(&count, 3, shape, &map);
  ck_assert_int_eq(map.cell[15][63], '1');
  ck_assert_int_eq(map.cell[15][62], '0');
  mla_map_index(&map, 15, 3, shape, at);
  ck_assert_int_eq(at[0], 60);
  ck_assert_int_eq(at[1], 0);
}
END_TEST

START_TEST(a_digest_is_of_values_not_of_gaps_and_not_of_rows_that_are_dead) {
  uint16_t dense[6] = {1, 2, 3, 4, 5, 6}, wide[8] = {1, 2, 3, 9, 4, 5, 6, 8};
  const int64_t shape[2] = {2, 3};
  mla_tensor a = mla_tensor_dense(dense, MLA_BF16, 2, shape), b = a;
  b.data = wide;
  b.stride[0] = 4;
  uint64_t digest = mla_output_digest(&a, -1, a.data);
  ck_assert(digest == mla_output_digest(&b, -1, b.data));
  wide[3] = 77;
  ck_assert(digest == mla_output_digest(&b, -1, b.data));
  wide[6] = 7;
  ck_assert(digest != mla_output_digest(&b, -1, b.data));
  ck_assert(mla_output_digest(&a, 1, a.data) ==
            mla_output_digest(&b, 1, b.data));
  ck_assert(mla_output_digest(&a, 1, a.data) != digest);
  ck_assert(mla_output_digest(&a, 0, a.data) !=
            mla_output_digest(&a, 1, a.data));
}
END_TEST

/* The published XXH64 of the bytes, so that every host says the same. */
START_TEST(a_digest_is_the_same_everywhere) {
  uint32_t value[2] = {0x64636261, 0x68676665}; /* "abcdefgh" */
  const int64_t shape[1] = {2};
  mla_tensor t = mla_tensor_dense(value, MLA_F32, 1, shape);
  ck_assert_uint_eq(mla_output_digest(&t, -1, t.data),
                    UINT64_C(0x3ad351775b4634b7));
}
END_TEST

int main(void) {
  Suite *s = suite_create("bad_map");
  TCase *t = tcase_create("maps");
  tcase_add_test(t, a_small_tensor_has_a_cell_for_each_value);
  tcase_add_test(t, a_cell_is_full_when_all_it_stands_for_is_wrong);
  tcase_add_test(t, one_of_many_shows);
  tcase_add_test(
      t, a_digest_is_of_values_not_of_gaps_and_not_of_rows_that_are_dead);
  tcase_add_test(t, a_digest_is_the_same_everywhere);
  suite_add_tcase(s, t);
  return check_main(s);
}
