/*
 * norm.c - RMSNorm.
 */
#include "norm.h"

#include "dmath.h"
#include "dtype.h"
#include "tensor.h"

static void norm_row(const mla_tensor *x, const mla_tensor *weight, double eps,
                     const mla_tensor *y, int64_t row) {
  int64_t width = x->shape[1];
  double sum = 0;
  for (int64_t i = 0; i < width; i++) {
    double value = mla_get(x->data, x->dtype, mla_at2(x, row, i));
    sum += value * value;
  }
  double root = mla_sqrt(sum / (double)width + eps);
  for (int64_t i = 0; i < width; i++) {
    double value = mla_get(x->data, x->dtype, mla_at2(x, row, i));
    double w = mla_get(weight->data, weight->dtype, mla_at1(weight, i));
    mla_put(y->data, y->dtype, mla_at2(y, row, i), value / root * w);
  }
}

void mla_rms_norm(const mla_tensor *x, const mla_tensor *weight, double eps,
                  const mla_tensor *y) {
  for (int64_t row = 0; row < x->shape[0]; row++) {
    norm_row(x, weight, eps, y, row);
  }
}

void mla_scale_rows(const mla_tensor *x, double factor) {
  if (factor == 1) return;
  for (int64_t row = 0; row < x->shape[0]; row++) {
    for (int64_t i = 0; i < x->shape[1]; i++) {
      int64_t at = mla_at2(x, row, i);
      mla_put(x->data, x->dtype, at, mla_get(x->data, x->dtype, at) * factor);
    }
  }
}
