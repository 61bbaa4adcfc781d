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

double mla_dot_squares(const double *a, const double *b, int64_t n) {
  double lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int l = 0; l < 8; l++) {
      double x = a[i + l] * b[i + l];
      lane[l] += x * x;
    }
  for (int l = 0; i + l < n; l++) {
    double x = a[i + l] * b[i + l];
    lane[l] += x * x;
  }
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
         ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

double mla_dot_flushed(const double *a, const double *b, int64_t n,
                       double tiny) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    double x = mla_fabs(a[i]), y = mla_fabs(b[i]);
    if (x < tiny || y < tiny) sum += x * y;
  }
  return sum;
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

/* Four keys at a time, so that out is loaded and stored less often; each
   element still adds key after key. */
void mla_row_add_values(const mla_keys *keys, int64_t from, int64_t to,
                        const double *e, double *restrict out) {
  int64_t dv = keys->dv, stride = keys->v_stride, j = from;
  for (; j + 4 <= to; j += 4) {
    const double *v0 = keys->v + j * stride, *v1 = v0 + stride;
    const double *v2 = v1 + stride, *v3 = v2 + stride;
    const double *w = e + (j - from);
    for (int64_t d = 0; d < dv; d++) {
      double x = out[d] + w[0] * v0[d];
      x += w[1] * v1[d];
      x += w[2] * v2[d];
      out[d] = x + w[3] * v3[d];
    }
  }
  for (; j < to; j++) {
    const double *v = keys->v + j * stride;
    double w = e[j - from];
    for (int64_t d = 0; d < dv; d++) out[d] += w * v[d];
  }
}

int mla_has_subnormal(const double *x, int64_t rows, int64_t width,
                      int64_t stride, double tiny) {
  for (int64_t i = 0; i < rows; i++) {
    int found = 0;
    for (int64_t d = 0; d < width; d++) {
      double size =
          x[i * stride + d] < 0 ? -x[i * stride + d] : x[i * stride + d];
      found |= size < tiny && size > 0;
    }
    if (found) return 1;
  }
  return 0;
}

void mla_keys_look(mla_keys *keys, int64_t n) {
  keys->subnormal_k =
      mla_has_subnormal(keys->k, n, keys->d, keys->k_stride, keys->tiny);
  keys->subnormal_v =
      mla_has_subnormal(keys->v, n, keys->dv, keys->v_stride, keys->tiny);
}

double mla_sink_keep(double lse, double sink) {
  if (mla_isinf(sink) < 0 || mla_isinf(lse) < 0) return 1;
  return 1 / (1 + mla_exp(sink - lse));
}

void mla_sink_apply(double lse, double sink, int64_t dv, double *out) {
  double keep = mla_sink_keep(lse, sink);
  for (int64_t d = 0; d < dv && keep != 1; d++) out[d] *= keep;
}
