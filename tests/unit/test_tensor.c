/* Sizes and offsets of tensors, and the caller's error. */
#include <string.h>

#include "check_main.h"
#include "error.h"
#include "tensor.h"

static mla_tensor make(int32_t dtype, int32_t rank, const int64_t *shape) {
  return mla_tensor_dense(NULL, dtype, rank, shape);
}

START_TEST(dense_is_row_major) {
  const int64_t shape[] = {2, 3, 5, 7};
  char byte;
  mla_tensor t = mla_tensor_dense(&byte, MLA_BF16, 4, shape);
  ck_assert_ptr_eq(t.data, &byte);
  ck_assert_int_eq(t.dtype, MLA_BF16);
  ck_assert_int_eq(t.rank, 4);
  ck_assert_int_eq(t.stride[0], 105);
  ck_assert_int_eq(t.stride[1], 35);
  ck_assert_int_eq(t.stride[2], 7);
  ck_assert_int_eq(t.stride[3], 1);
  ck_assert_int_eq(t.shape[4], 0);
  ck_assert_int_eq(mla_tensor_count(&t), 210);
  ck_assert_int_eq(mla_tensor_extent(&t), 420);
  ck_assert_int_eq(mla_at4(&t, 1, 2, 4, 6), 209);
  ck_assert_int_eq(mla_at3(&t, 1, 2, 4), 203);
  ck_assert_int_eq(mla_at2(&t, 1, 2), 175);
  ck_assert_int_eq(mla_at1(&t, 1), 105);
}
END_TEST

START_TEST(extent_follows_strides) {
  const int64_t shape[] = {3, 4};
  mla_tensor t = make(MLA_F32, 2, shape);
  t.stride[0] = 100;
  ck_assert_int_eq(mla_tensor_extent(&t), 4 * (2 * 100 + 3 + 1));
  ck_assert_int_eq(mla_tensor_count(&t), 12);
  t.dtype = MLA_I4;
  t.stride[0] = 5; /* 14 nibbles */
  ck_assert_int_eq(mla_tensor_extent(&t), 7);
  t.stride[0] = 6; /* 16 of them */
  ck_assert_int_eq(mla_tensor_extent(&t), 8);
  t.shape[1] = 3; /* 15 */
  ck_assert_int_eq(mla_tensor_extent(&t), 8);
}
END_TEST

START_TEST(sizes_beyond_int32_are_ordinary) {
  const int64_t shape[] = {1 << 20, 64, 576};
  mla_tensor t = make(MLA_BF16, 3, shape);
  const int64_t count = INT64_C(38654705664);
  ck_assert_int_eq(mla_tensor_count(&t), count);
  ck_assert_int_eq(mla_tensor_extent(&t), 2 * count);
  ck_assert_int_eq(mla_at3(&t, (1 << 20) - 1, 63, 575), count - 1);
}
END_TEST

START_TEST(empty_and_scalar) {
  const int64_t shape[] = {INT64_MAX, 0, INT64_MAX};
  mla_tensor t = make(MLA_F64, 3, shape);
  ck_assert_int_eq(mla_tensor_count(&t), 0);
  ck_assert_int_eq(mla_tensor_extent(&t), 0);
  t = make(MLA_F64, 0, shape);
  ck_assert_int_eq(mla_tensor_count(&t), 1);
  ck_assert_int_eq(mla_tensor_extent(&t), 8);
  const int64_t rows[] = {4, 0};
  t = make(MLA_F64, 2, rows);
  ck_assert_int_eq(t.stride[0], 1);
}
END_TEST

START_TEST(overflow_is_told) {
  const int64_t square[] = {INT64_C(1) << 32, INT64_C(1) << 31};
  mla_tensor t = make(MLA_I8, 2, square); /* 2^63 elements */
  ck_assert_int_eq(mla_tensor_count(&t), -1);
  ck_assert_int_eq(mla_tensor_extent(&t), -1);
  t.shape[1]--;
  ck_assert_int_gt(mla_tensor_count(&t), 0);
  t.dtype = MLA_F16; /* fits in elements, not in bytes */
  ck_assert_int_eq(mla_tensor_extent(&t), -1);
  const int64_t pair[] = {2, 2};
  t = make(MLA_I8, 2, pair);
  t.stride[0] = INT64_MAX - 2;
  ck_assert_int_eq(mla_tensor_extent(&t), INT64_MAX);
  t.stride[0] = INT64_MAX - 1;
  ck_assert_int_eq(mla_tensor_extent(&t), -1);
}
END_TEST

START_TEST(nonsense_is_told) {
  const int64_t shape[] = {2, 2};
  mla_tensor t = make(MLA_F32, 2, shape);
  t.shape[0] = -1;
  ck_assert_int_eq(mla_tensor_count(&t), -1);
  t = make(MLA_F32, 2, shape);
  t.stride[0] = -2;
  ck_assert_int_eq(mla_tensor_extent(&t), -1);
  t = make(99, 2, shape);
  ck_assert_int_eq(mla_tensor_extent(&t), -1);
  t.rank = MLA_MAX_RANK + 1;
  ck_assert_int_eq(mla_tensor_count(&t), -1);
  t.rank = -1;
  ck_assert_int_eq(mla_tensor_count(&t), -1);
}
END_TEST

START_TEST(fail_fills_the_error) {
  mla_error err = mla_error_init();
  err.backend_code = 5;
  mla_status status = mla_fail(&err, MLA_INVALID_ARGUMENT, "seq_lens",
                               "seq_lens[%d] is %d, not %s", 3, -1, "allowed");
  ck_assert_int_eq(status, MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(err.status, MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(err.backend_code, 0);
  ck_assert_str_eq(err.field, "seq_lens");
  ck_assert_str_eq(err.message, "seq_lens[3] is -1, not allowed");
  ck_assert_int_eq(mla_fail(NULL, MLA_UNSUPPORTED, "op", "no"),
                   MLA_UNSUPPORTED);
}
END_TEST

START_TEST(fail_cuts_long_texts) {
  char text[1000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  mla_error err = mla_error_init();
  mla_fail(&err, MLA_UNSUPPORTED, text, "%s", text);
  ck_assert_uint_eq(strlen(err.field), sizeof err.field - 1);
  ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
}
END_TEST

/* A caller's shorter struct: nothing past its size is touched. */
START_TEST(fail_respects_the_size) {
  for (uint32_t size = 0; size < sizeof(mla_error); size++) {
    mla_error err;
    memset(&err, 0x5A, sizeof err);
    err.size = size;
    mla_fail(&err, MLA_UNSUPPORTED, "field", "message");
    const unsigned char *byte = (const unsigned char *)&err;
    for (size_t i = size > 4 ? size : 4; i < sizeof err; i++) {
      ck_assert_uint_eq(byte[i], 0x5A);
    }
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("tensor");
  TCase *tests = tcase_create("tensor");
  tcase_add_test(tests, dense_is_row_major);
  tcase_add_test(tests, extent_follows_strides);
  tcase_add_test(tests, sizes_beyond_int32_are_ordinary);
  tcase_add_test(tests, empty_and_scalar);
  tcase_add_test(tests, overflow_is_told);
  tcase_add_test(tests, nonsense_is_told);
  tcase_add_test(tests, fail_fills_the_error);
  tcase_add_test(tests, fail_cuts_long_texts);
  tcase_add_test(tests, fail_respects_the_size);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
