#include "oracle_merge.h"

#include "dmath.h"

double mla_merge_row(int64_t count, int64_t dv, const double *parts,
                     int64_t part_stride, const double *lse, double ln_base,
                     double *weight, double *out, double *largest) {
  double m = -mla_inf(), sum = 0;
  int64_t live = 0;
  for (int64_t d = 0; d < dv; d++) out[d] = 0;
  for (int64_t i = 0; i < count; i++) {
    weight[i] = 0;
    if (mla_isinf(lse[i])) continue;
    live++;
    if (lse[i] > m) m = lse[i];
  }
  *largest = m;
  if (live == 0) return -mla_inf();
  for (int64_t i = 0; i < count; i++) {
    if (mla_isinf(lse[i])) continue;
    const double *part = parts + i * part_stride;
    weight[i] = mla_exp((lse[i] - m) * ln_base);
    sum += weight[i];
    for (int64_t d = 0; d < dv; d++) out[d] += weight[i] * part[d];
  }
  for (int64_t d = 0; d < dv; d++) out[d] /= sum;
  return m + mla_log(sum) / ln_base;
}
