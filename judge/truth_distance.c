#include "truth_distance.h"

#include "dmath.h"
#include "dtype.h"
#include "tensor.h"

void mla_measure(mla_distance *d, double got, double expected) {
  double difference = mla_fabs(got - expected);
  if (!(difference <= mla_inf())) difference = mla_inf();
  if (difference > d->difference) d->difference = difference;
  if (mla_fabs(expected) > d->largest) d->largest = mla_fabs(expected);
}

double mla_relative(const mla_distance *d) {
  if (d->difference == 0) return 0;
  return d->largest > 0 ? d->difference / d->largest : mla_inf();
}

double mla_rows_distance(const mla_tensor *got, const mla_tensor *expected,
                         double scale) {
  mla_distance d = {0, 0};
  int64_t count = mla_tensor_count(expected);
  for (int64_t i = 0; i < count; i++) {
    mla_measure(&d, mla_get(got->data, got->dtype, i) / scale,
                mla_get(expected->data, expected->dtype, i));
  }
  return mla_relative(&d);
}
