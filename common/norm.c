/*
 * norm.c - RMSNorm and LayerNorm.
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

static double element(const mla_tensor *t, int64_t offset) {
  return mla_get(t->data, t->dtype, offset);
}

/* Two passes: the mean first, so that nothing large cancels. */
static void layer_norm_row(const mla_tensor *x, const mla_tensor *weight,
                           const mla_tensor *bias, double eps,
                           const mla_tensor *y, int64_t row) {
  int64_t width = x->shape[1];
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < width; i++) sum += element(x, mla_at2(x, row, i));
  double mean = sum / (double)width;
  for (int64_t i = 0; i < width; i++) {
    double apart = element(x, mla_at2(x, row, i)) - mean;
    squares += apart * apart;
  }
  double root = mla_sqrt(squares / (double)width + eps);
  for (int64_t i = 0; i < width; i++) {
    double apart = element(x, mla_at2(x, row, i)) - mean;
    double value = apart / root * element(weight, mla_at1(weight, i));
    mla_put(y->data, y->dtype, mla_at2(y, row, i),
            value + element(bias, mla_at1(bias, i)));
  }
}

void mla_layer_norm(const mla_tensor *x, const mla_tensor *weight,
                    const mla_tensor *bias, double eps, const mla_tensor *y) {
  for (int64_t row = 0; row < x->shape[0]; row++) {
    layer_norm_row(x, weight, bias, eps, y, row);
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
