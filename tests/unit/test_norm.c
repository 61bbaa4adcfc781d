/*
 * test_norm.c - both norms on numbers that can be checked by hand, and the same
 * on any type and stride.
 */
#include "norm.h"

#include <string.h>

#include "check_main.h"
#include "dmath.h"
#include "dtype.h"
#include "mla/mla.h"
#include "tensor.h"

/* mean(x^2) = (9 + 16 + 0 + 0) / 4 = 6.25, its root 2.5. */
START_TEST(by_hand) {
  const int64_t shape[2] = {2, 4}, width[1] = {4};
  double x[8] = {3, -4, 0, 0, 1, 1, 1, 1}, y[8];
  double w[4] = {1, 10, 1, 2};
  mla_tensor tx = mla_tensor_dense(x, MLA_F64, 2, shape);
  mla_tensor ty = mla_tensor_dense(y, MLA_F64, 2, shape);
  mla_tensor tw = mla_tensor_dense(w, MLA_F64, 1, width);
  mla_rms_norm(&tx, &tw, 0, &ty);
  const double expected[8] = {3 / 2.5, -16, 0, 0, 1, 10, 1, 2};
  for (int i = 0; i < 8; i++) {
    ck_assert(mla_fabs(y[i] - expected[i]) <= 4e-15);
  }
  /* eps is under the root: mean 6.25 + 36 = 42.25 = 6.5^2. */
  mla_rms_norm(&tx, &tw, 36, &ty);
  ck_assert(mla_fabs(y[0] - 3 / 6.5) <= 1e-16);
  ck_assert(mla_fabs(y[1] + 40 / 6.5) <= 1e-15);
}
END_TEST

/* mean 2, variance (1 + 1 + 9 + 9) / 4 = 5; eps 4 makes the root 3. */
START_TEST(layer_norm_by_hand) {
  const int64_t shape[2] = {2, 4}, width[1] = {4};
  double x[8] = {1, 3, -1, 5, 7, 7, 7, 7};
  double w[4] = {1, 3, 1, -2}, b[4] = {0, 1, 0.5, 0};
  mla_tensor tx = mla_tensor_dense(x, MLA_F64, 2, shape);
  mla_tensor tw = mla_tensor_dense(w, MLA_F64, 1, width);
  mla_tensor tb = mla_tensor_dense(b, MLA_F64, 1, width);
  mla_layer_norm(&tx, &tw, &tb, 4, &tx);
  const double expected[8] = {-1 / 3.0, 2, -0.5, -2, 0, 1, 0.5, 0};
  for (int i = 0; i < 8; i++) {
    ck_assert(mla_fabs(x[i] - expected[i]) <= 1e-15);
  }
}
END_TEST

START_TEST(zeros_stay_zero) {
  const int64_t shape[2] = {1, 3}, width[1] = {3};
  double x[3] = {0, 0, 0}, w[3] = {1, 1, 1};
  mla_tensor tx = mla_tensor_dense(x, MLA_F64, 2, shape);
  mla_tensor tw = mla_tensor_dense(w, MLA_F64, 1, width);
  mla_rms_norm(&tx, &tw, 1e-6, &tx);
  for (int i = 0; i < 3; i++) ck_assert(x[i] == 0);
}
END_TEST

/* The left part of wider rows, in place, each type rounded once. */
START_TEST(types_and_strides) {
  static const int32_t types[] = {MLA_F32, MLA_F16, MLA_BF16};
  const int32_t type = types[_i];
  const int64_t wide[2] = {3, 7}, width[1] = {5}, dense[2] = {3, 5};
  unsigned char memory[3 * 7 * 4];
  double x[15], y[15], w[5];
  for (int i = 0; i < 21; i++) mla_put(memory, type, i, i % 5 - 2.25);
  for (int i = 0; i < 5; i++) w[i] = 1 + i / 16.0;
  mla_tensor view = mla_tensor_dense(memory, type, 2, wide);
  mla_tensor tx = mla_tensor_dense(x, MLA_F64, 2, dense);
  mla_tensor ty = mla_tensor_dense(y, MLA_F64, 2, dense);
  mla_tensor tw = mla_tensor_dense(w, MLA_F64, 1, width);
  view.shape[1] = 5;
  for (int r = 0; r < 3; r++) {
    for (int i = 0; i < 5; i++) x[5 * r + i] = mla_get(memory, type, 7 * r + i);
  }
  mla_rms_norm(&tx, &tw, 1e-6, &ty);
  mla_rms_norm(&view, &tw, 1e-6, &view);
  for (int r = 0; r < 3; r++) {
    for (int i = 0; i < 7; i++) {
      double got = mla_get(memory, type, 7 * r + i);
      double want =
          i < 5 ? mla_round_to(type, y[5 * r + i]) : (7 * r + i) % 5 - 2.25;
      ck_assert(got == want);
    }
  }
}
END_TEST

START_TEST(rows_are_scaled) {
  const int64_t wide[2] = {2, 3};
  float x[6] = {1, 2, 3, 4, 5, 6};
  mla_tensor t = mla_tensor_dense(x, MLA_F32, 2, wide);
  t.shape[1] = 2;
  mla_scale_rows(&t, 0.5);
  const float expected[6] = {0.5f, 1, 3, 2, 2.5f, 6};
  for (int i = 0; i < 6; i++) ck_assert(x[i] == expected[i]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("norm");
  TCase *tests = tcase_create("norm");
  tcase_add_test(tests, by_hand);
  tcase_add_test(tests, layer_norm_by_hand);
  tcase_add_test(tests, zeros_stay_zero);
  tcase_add_loop_test(tests, types_and_strides, 0, 3);
  tcase_add_test(tests, rows_are_scaled);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
