/* Tensors from and to DLPack's numbers. */
#include <string.h>

#include "check_main.h"
#include "mla/dlpack.h"

/* DLPack 1.1's numbers, written out again. */
static const struct {
  int32_t dtype;
  uint8_t code, bits;
} types[] = {
    {MLA_F64, 2, 64},      {MLA_F32, 2, 32},      {MLA_F16, 2, 16},
    {MLA_BF16, 4, 16},     {MLA_FP8_E4M3, 10, 8}, {MLA_FP8_E4M3FNUZ, 11, 8},
    {MLA_FP8_E5M2, 12, 8}, {MLA_E8M0, 14, 8},     {MLA_I8, 0, 8},
    {MLA_I4, 0, 4},        {MLA_U8, 1, 8},        {MLA_I32, 0, 32},
    {MLA_I64, 0, 64},
};

START_TEST(types_go_both_ways) {
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    mla_dlpack_type t = mla_dlpack_type_of(types[i].dtype);
    ck_assert_int_eq(t.code, types[i].code);
    ck_assert_int_eq(t.bits, types[i].bits);
    ck_assert_int_eq(t.lanes, 1);
    ck_assert_int_eq(mla_dlpack_dtype(types[i].code, types[i].bits, 1),
                     types[i].dtype);
  }
}
END_TEST

START_TEST(other_types_are_refused) {
  ck_assert_int_eq(mla_dlpack_dtype(2, 32, 4), MLA_DTYPE_NONE); /* lanes */
  ck_assert_int_eq(mla_dlpack_dtype(2, 32, 0), MLA_DTYPE_NONE);
  ck_assert_int_eq(mla_dlpack_dtype(8, 8, 1), MLA_DTYPE_NONE);  /* e4m3 */
  ck_assert_int_eq(mla_dlpack_dtype(6, 8, 1), MLA_DTYPE_NONE);  /* bool */
  ck_assert_int_eq(mla_dlpack_dtype(1, 32, 1), MLA_DTYPE_NONE); /* uint32 */
  ck_assert_int_eq(mla_dlpack_type_of(0).lanes, 0);
  ck_assert_int_eq(mla_dlpack_type_of(-1).lanes, 0);
  ck_assert_int_eq(mla_dlpack_type_of(MLA_I64 + 1).lanes, 0);
}
END_TEST

START_TEST(devices_have_spaces) {
  ck_assert_int_eq(mla_dlpack_space(1), MLA_MEMORY_HOST);
  ck_assert_int_eq(mla_dlpack_space(2), MLA_MEMORY_CUDA);
  ck_assert_int_eq(mla_dlpack_space(3), MLA_MEMORY_HOST);
  ck_assert_int_eq(mla_dlpack_space(10), MLA_MEMORY_ROCM);
  ck_assert_int_eq(mla_dlpack_space(11), MLA_MEMORY_HOST);
  ck_assert_int_eq(mla_dlpack_space(13), MLA_MEMORY_CUDA);
  ck_assert_int_eq(mla_dlpack_space(7), 0); /* Vulkan */
  ck_assert_int_eq(mla_dlpack_space(-1), 0);
}
END_TEST

START_TEST(a_strided_tensor_is_taken_as_it_is) {
  char memory[64];
  const int64_t shape[] = {2, 3}, strides[] = {100, 1};
  mla_tensor t;
  int32_t space = 0;
  memset(&t, 0xA5, sizeof t);
  ck_assert_int_eq(
      mla_dlpack_import(memory, 1, 4, 16, 1, 2, shape, strides, 32, &t, &space),
      MLA_OK);
  ck_assert_ptr_eq(t.data, memory + 32);
  ck_assert_int_eq(t.dtype, MLA_BF16);
  ck_assert_int_eq(t.rank, 2);
  ck_assert_int_eq(t.shape[0], 2);
  ck_assert_int_eq(t.shape[1], 3);
  ck_assert_int_eq(t.stride[0], 100);
  ck_assert_int_eq(t.stride[1], 1);
  ck_assert_int_eq(t.shape[2], 0);
  ck_assert_int_eq(t.stride[4], 0);
  ck_assert_int_eq(space, MLA_MEMORY_HOST);
}
END_TEST

START_TEST(without_strides_it_is_dense) {
  const int64_t shape[] = {7, 0, 5, 3, 2};
  const int64_t huge[] = {4, INT64_MAX / 2, 3};
  mla_tensor t;
  ck_assert_int_eq(
      mla_dlpack_import(NULL, 2, 1, 8, 1, 5, shape, NULL, 8, &t, NULL), MLA_OK);
  ck_assert_ptr_null(t.data);
  ck_assert_int_eq(t.stride[4], 1);
  ck_assert_int_eq(t.stride[3], 2);
  ck_assert_int_eq(t.stride[2], 6);
  ck_assert_int_eq(t.stride[1], 30);
  ck_assert_int_eq(t.stride[0], 30);
  ck_assert_int_eq(
      mla_dlpack_import(NULL, 1, 1, 8, 1, 3, huge, NULL, 0, &t, NULL), MLA_OK);
  ck_assert_int_eq(t.stride[1], 3);
  ck_assert_int_eq(t.stride[0], INT64_MAX);
  ck_assert_int_eq(
      mla_dlpack_import(NULL, 1, 2, 32, 1, 0, NULL, NULL, 0, &t, NULL), MLA_OK);
  ck_assert_int_eq(t.rank, 0);
}
END_TEST

START_TEST(nonsense_leaves_the_tensor_alone) {
  const int64_t shape[] = {2, 3, 1, 1, 1, 1}, negative[] = {2, -1};
  mla_tensor t, before;
  memset(&t, 0xA5, sizeof t);
  before = t;
  ck_assert_int_eq(
      mla_dlpack_import(NULL, 1, 2, 32, 1, 6, shape, NULL, 0, &t, NULL),
      MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(
      mla_dlpack_import(NULL, 1, 2, 32, 1, -1, shape, NULL, 0, &t, NULL),
      MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(
      mla_dlpack_import(NULL, 1, 2, 32, 1, 2, NULL, NULL, 0, &t, NULL),
      MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(
      mla_dlpack_import(NULL, 1, 2, 32, 1, 2, negative, NULL, 0, &t, NULL),
      MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(
      mla_dlpack_import(NULL, 1, 5, 64, 1, 2, shape, NULL, 0, &t, NULL),
      MLA_UNSUPPORTED);
  ck_assert_int_eq(
      mla_dlpack_import(NULL, 7, 2, 32, 1, 2, shape, NULL, 0, &t, NULL),
      MLA_UNSUPPORTED);
  ck_assert_mem_eq(&t, &before, sizeof t);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("dlpack");
  TCase *tests = tcase_create("dlpack");
  tcase_add_test(tests, types_go_both_ways);
  tcase_add_test(tests, other_types_are_refused);
  tcase_add_test(tests, devices_have_spaces);
  tcase_add_test(tests, a_strided_tensor_is_taken_as_it_is);
  tcase_add_test(tests, without_strides_it_is_dense);
  tcase_add_test(tests, nonsense_leaves_the_tensor_alone);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
