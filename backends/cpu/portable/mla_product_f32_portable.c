/*
 * The product that everything rests on: rows broadcast, lanes in vectors. Two
 * rows at a time fill the sixteen registers of a baseline x86-64.
 */
#include "cpu_kernels.h"

mla_cpu_product_fn mla_product_f32_portable;
mla_cpu_pack_fn mla_pack_f32_portable;

#define LANES MLA_CPU_LANES

static void put_row(float *c, const float *sum, const float *beta) {
  if (!beta) {
    for (int x = 0; x < LANES; x++) c[x] = sum[x];
  } else {
    for (int x = 0; x < LANES; x++) c[x] = beta[x] * c[x] + sum[x];
  }
}

static void two_rows(int64_t k, const float *a, int64_t row, int64_t col,
                     const float *b, const float *beta, float *c) {
  float sum0[LANES] = {0}, sum1[LANES] = {0};
  for (int64_t p = 0; p < k; p++, b += LANES) {
    float a0 = a[p * col], a1 = a[p * col + row];
    for (int x = 0; x < LANES; x++) {
      sum0[x] += a0 * b[x];
      sum1[x] += a1 * b[x];
    }
  }
  put_row(c, sum0, beta);
  put_row(c + LANES, sum1, beta);
}

static void one_row(int64_t k, const float *a, int64_t col, const float *b,
                    const float *beta, float *c) {
  float sum[LANES] = {0};
  for (int64_t p = 0; p < k; p++, b += LANES) {
    float a0 = a[p * col];
    for (int x = 0; x < LANES; x++) sum[x] += a0 * b[x];
  }
  put_row(c, sum, beta);
}

void mla_product_f32_portable(int64_t m, int64_t k, const float *a, int64_t row,
                              int64_t col, const float *b, const float *beta,
                              float *c) {
  int64_t i = 0;
  for (; i + 2 <= m; i += 2)
    two_rows(k, a + i * row, row, col, b, beta, c + i * LANES);
  if (i < m) one_row(k, a + i * row, col, b, beta, c + i * LANES);
}

void mla_pack_f32_portable(float *panel, const float *rows, int64_t ld,
                           int64_t k, float scale) {
  for (int64_t p = 0; p < k; p++, panel += LANES)
    for (int x = 0; x < LANES; x++) panel[x] = scale * rows[x * ld + p];
}
