#include "oracle_row.h"

#include "dmath.h"

double mla_dot(const double *a, const double *b, int64_t n) {
  double lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int l = 0; l < 8; l++) lane[l] += a[i + l] * b[i + l];
  for (int l = 0; i + l < n; l++) lane[l] += a[i + l] * b[i + l];
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
         ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

void mla_row_scores(const mla_keys *keys, const double *q, int64_t from,
                    int64_t to, double *s) {
  for (int64_t j = from; j < to; j++) {
    double x = keys->scale * mla_dot(q, keys->k + j * keys->k_stride, keys->d);
    if (keys->cap > 0) x = keys->cap * mla_tanh(x / keys->cap);
    s[j - from] = x;
  }
}

mla_softmax mla_row_softmax(const double *s, int64_t n, double *e) {
  mla_softmax row = {-mla_inf(), 0, -mla_inf()};
  if (n <= 0) return row;
  for (int64_t j = 0; j < n; j++)
    if (s[j] > row.m) row.m = s[j];
  for (int64_t j = 0; j < n; j++) {
    e[j] = mla_exp(s[j] - row.m);
    row.sum += e[j];
  }
  row.lse = row.m + mla_log(row.sum);
  return row;
}

void mla_row_values(const mla_keys *keys, int64_t from, int64_t to,
                    const double *e, double sum, double *out) {
  int64_t dv = keys->dv;
  for (int64_t d = 0; d < dv; d++) out[d] = 0;
  if (to <= from) return;
  for (int64_t j = from; j < to; j++) {
    const double *v = keys->v + j * keys->v_stride;
    double w = e[j - from];
    for (int64_t d = 0; d < dv; d++) out[d] += w * v[d];
  }
  for (int64_t d = 0; d < dv; d++) out[d] /= sum;
}

double mla_sink_apply(double lse, double sink, int64_t dv, double *out) {
  if (mla_isinf(sink) < 0 || mla_isinf(lse) < 0) return 1;
  double keep = 1 / (1 + mla_exp(sink - lse));
  for (int64_t d = 0; d < dv; d++) out[d] *= keep;
  return keep;
}
