/* The CPU backend's kernels, each level of this machine: exp and tanh in units
   of the last place, softmax's corners, products and conversions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "cpu_exp.h"
#include "cpu_kernel_fixture.h"
#include "half.h"

#define LANES MLA_CPU_LANES

/* Distance in units of the last place of the f32 nearest to want; below the
   normal range, in units of the smallest subnormal. */
static double ulps(float got, double want) {
  float near = (float)want;
  if (got == near) return 0.0;
  float a = fabsf(near) < 0x1p-126f ? 0x1p-126f : fabsf(near);
  int e;
  frexpf(a, &e);
  return fabs((double)got - want) / ldexp(1.0, e - 24);
}

START_TEST(exp_within_two_ulp) {
  double worst = 0.0, worst_small = 0.0;
  for (int i = 0; i < 4000000; i++) {
    float x = -104.5f + (float)i * (193.2f / 4000000.0f);
    double u = ulps(mla_cpu_expf(x), exp((double)x));
    if (x >= -87.0f && u > worst) worst = u;
    if (x < -87.0f && u > worst_small) worst_small = u;
  }
  printf("  exp: %.3f ulp, subnormal results %.3f\n", worst, worst_small);
  ck_assert(worst <= 2.0 && worst_small <= 2.0);
  ck_assert(mla_cpu_expf(0.0f) == 1.0f);
  ck_assert(mla_cpu_expf(-INFINITY) == 0.0f);
  ck_assert(mla_cpu_expf(-1e30f) == 0.0f);
  ck_assert(mla_cpu_expf(INFINITY) == INFINITY);
  ck_assert(isnan(mla_cpu_expf(NAN)));
}
END_TEST

START_TEST(tanh_within_three_ulp) {
  double worst = 0.0;
  for (int i = -2000000; i < 2000000; i++) {
    float x = (float)i * 6e-6f;
    double u = ulps(mla_cpu_tanhf(x), tanh((double)x));
    if (u > worst) worst = u;
  }
  printf("  tanh: %.3f ulp\n", worst);
  ck_assert(worst <= 3.0);
  ck_assert(mla_cpu_tanhf(1e-20f) == 1e-20f);
  ck_assert(mla_cpu_tanhf(-INFINITY) == -1.0f);
  ck_assert(isnan(mla_cpu_tanhf(NAN)));
}
END_TEST

/* ------------------------------------------------------------- each level */

START_TEST(conversions_are_exact) {
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  static uint16_t code[65536 + 3], back[65536 + 3];
  static float wide[65536 + 3];
  for (int i = 0; i < 65536 + 3; i++) code[i] = (uint16_t)i;
  /* Odd counts and addresses reach every tail. */
  for (int type = MLA_CPU_F16; type <= MLA_CPU_BF16; type++)
    for (int from = 0; from < 3; from++) {
      int64_t n = 65536 - from * 5;
      t->load[type](wide + from, code + from, n);
      t->store[type](back + from, wide + from, n);
      for (int64_t i = from; i < from + n; i++) {
        float want = type == MLA_CPU_F16 ? mla_f16_to_f32(code[i])
                                         : mla_bf16_to_f32(code[i]);
        uint16_t nan = type == MLA_CPU_F16 ? 0x7E00 : 0x7FC0;
        if (isnan(want)) {
          REQUIRE(isnan(wide[i]) && back[i] == nan, "NaN code %04x", code[i]);
          continue;
        }
        REQUIRE(memcmp(&wide[i], &want, 4) == 0 && back[i] == code[i],
                "code %04x reads %a, writes %04x", code[i], (double)wide[i],
                back[i]);
      }
    }
}
END_TEST

/* Every kind of f32: rounding to 16 bits as half.h does. */
START_TEST(narrowing_rounds_to_nearest_even) {
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  enum { count = 1 << 20 };
  static float x[count];
  static uint16_t got[count];
  mla_rng rng = mla_rng_named(7, "narrowing");
  for (int i = 0; i < count; i++) {
    uint32_t bits = (uint32_t)mla_rng_bits(rng, (uint64_t)i);
    /* Half of them within f16's range; half of those on ties. */
    if (i % 2) bits = (bits & 0x8FFFFFFFu) | 0x30000000u;
    if (i % 4 == 1) bits = (bits & 0xFFFFE000u) | 0x1000u;
    if (i % 8 == 2) bits = (bits & 0xFFFF0000u) | 0x8000u;
    memcpy(&x[i], &bits, 4);
  }
  for (int type = MLA_CPU_F16; type <= MLA_CPU_BF16; type++) {
    t->store[type](got, x, count);
    for (int i = 0; i < count; i++) {
      uint16_t want =
          type == MLA_CPU_F16 ? mla_f32_to_f16(x[i]) : mla_f32_to_bf16(x[i]);
      REQUIRE(got[i] == want, "%a: %04x, not %04x", (double)x[i], got[i], want);
    }
  }
}
END_TEST

/* Every address within a line, counts that end anywhere; nothing beside. */
START_TEST(streams_copy) {
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  enum { room = 512 };
  _Alignas(64) unsigned char from[room], to[room], want[room];
  for (int i = 0; i < room; i++) from[i] = (unsigned char)(i * 7 + 1);
  for (int at = 0; at < 65; at++)
    for (int n = 0; n < 300; n += n < 70 ? 1 : 13) {
      memset(to, 0xA5, room);
      memset(want, 0xA5, room);
      memcpy(want + at, from + n % 5, (size_t)n);
      t->stream(to + at, from + n % 5, n);
      t->settle();
      REQUIRE(memcmp(to, want, room) == 0, "%d bytes at %d", n, at);
    }
}
END_TEST

static double one_sum(const float *a, int64_t col, const float *b, int64_t k,
                      double *magnitude) {
  double sum = 0.0;
  *magnitude = 0.0;
  for (int64_t p = 0; p < k; p++) {
    double term = (double)a[p * col] * (double)b[p * LANES];
    sum += term;
    *magnitude += fabs(term);
  }
  return sum;
}

/* One shape of product, both ways to walk a, with and without beta. */
static void check_product(const mla_cpu_table *t, int64_t m, int64_t k,
                          int64_t row, int64_t col) {
  int64_t size = (m - 1) * row + (k - 1) * col + 1;
  float *a = malloc((size_t)size * 4), *b = panel_of(k * LANES);
  float *c = panel_of((m + 1) * LANES), *old = panel_of((m + 1) * LANES);
  float *beta = panel_of(LANES);
  fill(a, size, "a");
  fill(b, k * LANES, "b");
  fill(beta, LANES, "beta");
  for (int with = 0; with < 2; with++) {
    fill(c, (m + 1) * LANES, "c");
    memcpy(old, c, (size_t)((m + 1) * LANES) * 4);
    t->product(m, k, a, row, col, b, with ? beta : NULL, c);
    for (int64_t i = 0; i < m * LANES; i++) {
      double scale, before = (double)beta[i % LANES] * (double)old[i];
      double want = one_sum(a + i / LANES * row, col, b + i % LANES, k, &scale);
      if (with) want += before;
      double bound = 0x1p-24 * (double)(k + 2) * (scale + fabs(before));
      REQUIRE(fabs((double)c[i] - want) <= bound, "m %d k %d at %d: %g, not %g",
              (int)m, (int)k, (int)i, (double)c[i], want);
    }
    REQUIRE(memcmp(c + m * LANES, old + m * LANES, LANES * 4) == 0,
            "row %d of %d was written", (int)m, (int)m);
  }
  free(a);
  free(b);
  free(c);
  free(old);
  free(beta);
}

START_TEST(products) {
  static const int64_t ms[] = {1, 2, 3, 5, 6, 7, 11, 12, 13, 28, 29, 64};
  static const int64_t ks[] = {1, 2, 3, 17, 64, 288};
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  for (int i = 0; i < 12; i++)
    for (int j = 0; j < 6; j++) {
      check_product(t, ms[i], ks[j], ks[j] + 3, 1);
      check_product(t, ms[i], ks[j], 1, ms[i] + 5);
    }
}
END_TEST

/* A row's and a lane's bits depend on no other row and no other lane. */
START_TEST(product_rows_are_alike) {
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  enum { m = 29, k = 100 };
  float a[m * k];
  float *b = panel_of(k * LANES), *c = panel_of(m * LANES);
  fill(a, k, "a");
  fill(b, k, "b");
  for (int i = 1; i < m; i++) memcpy(a + i * k, a, k * sizeof *a);
  for (int p = k; p-- > 0;)
    for (int x = 0; x < LANES; x++) b[p * LANES + x] = b[p];
  t->product(m, k, a, k, 1, b, NULL, c);
  for (int i = 1; i < m * LANES; i++)
    REQUIRE(c[i] == c[0], "element %d differs from element 0", i);
  free(b);
  free(c);
}
END_TEST

START_TEST(packing) {
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  float rows[LANES * 40];
  float *panel = panel_of(37 * LANES);
  fill(rows, LANES * 40, "rows");
  for (int k = 1; k <= 37; k++) {
    t->pack(panel, rows, 40, k, 0.37f);
    for (int p = 0; p < k; p++)
      for (int x = 0; x < LANES; x++)
        REQUIRE(panel[p * LANES + x] == 0.37f * rows[x * 40 + p],
                "k %d, lane %d", p, x);
  }
  free(panel);
}
END_TEST

/* Lane 0 sees nothing ever, lane 1 nothing in the first block, lane 2 a NaN
   that is hidden, lane 3 one that is not, lane 4 scores of 1e30. */
static void softmax_scores(float *s, int n, int block) {
  fill(s, n * LANES, block ? "second" : "first");
  s[5 * LANES + 2] = NAN;
  s[3 * LANES + 3] = block ? 0.0f : NAN;
  for (int j = 0; j < n; j++) s[j * LANES + 4] *= 1e30f;
}

START_TEST(softmax_corners) {
  enum { n = 7 };
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  float *s = panel_of(n * LANES), *kept = panel_of(n * LANES);
  float *m = panel_of(LANES), *l = panel_of(LANES), *beta = panel_of(LANES);
  double top[LANES], sum[LANES];
  for (int x = 0; x < LANES; x++) {
    m[x] = -INFINITY;
    l[x] = 0.0f;
    top[x] = -INFINITY;
    sum[x] = 0.0;
  }
  for (int block = 0; block < 2; block++) {
    int32_t visible[LANES];
    for (int x = 0; x < LANES; x++) visible[x] = n;
    visible[0] = 0;
    visible[1] = block ? n : 0;
    visible[2] = 5;
    softmax_scores(s, n, block);
    memcpy(kept, s, n * LANES * sizeof *s);
    t->softmax(n, s, visible, m, l, beta);
    for (int x = 0; x < LANES; x++) {
      double old = top[x];
      for (int j = 0; j < visible[x]; j++)
        if ((double)kept[j * LANES + x] > top[x])
          top[x] = (double)kept[j * LANES + x];
      if (sum[x] > 0.0) sum[x] *= exp(old - top[x]);
      for (int j = 0; j < n; j++) {
        double p =
            j < visible[x] ? exp((double)kept[j * LANES + x] - top[x]) : 0.0;
        sum[x] += p;
        if (x == 3 && j == 3 && !block) continue;
        REQUIRE(fabs((double)s[j * LANES + x] - p) <= 1e-6 * p + 1e-38,
                "lane %d key %d: %g, not %g", x, j, (double)s[j * LANES + x],
                p);
      }
      if (x != 3)
        REQUIRE(fabs((double)l[x] - sum[x]) <= 2e-6 * sum[x], "l[%d]", x);
      REQUIRE((double)m[x] == top[x], "m[%d]", x);
    }
  }
  ck_assert(l[0] == 0.0f && isnan(l[3]));
  free(s);
  free(kept);
  free(m);
  free(l);
  free(beta);
}
END_TEST

START_TEST(fold_corners) {
  enum { n = 3 };
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  float *a = panel_of((n + 2) * LANES), *b = panel_of((n + 2) * LANES);
  float was[(n + 2) * LANES];
  fill(a, (n + 2) * LANES, "a");
  fill(b, (n + 2) * LANES, "b");
  for (int x = 0; x < LANES; x++)
    a[(n + 1) * LANES + x] = b[(n + 1) * LANES + x] = 2.5f;
  for (int i = 0; i < n + 2; i++) { /* part b is empty in lane 0, a in 1 */
    b[i * LANES] = i == n ? -INFINITY : 0.0f;
    a[i * LANES + 1] = i == n ? -INFINITY : 0.0f;
    a[i * LANES + 2] = b[i * LANES + 2] = i == n ? -INFINITY : 0.0f;
  }
  memcpy(was, a, sizeof was);
  t->fold(n, a + n * LANES, a + (n + 1) * LANES, a, b + n * LANES,
          b + (n + 1) * LANES, b);
  for (int i = 0; i < n + 2; i++) {
    ck_assert(a[i * LANES] == was[i * LANES]);
    ck_assert(a[i * LANES + 1] == b[i * LANES + 1]);
    ck_assert(a[i * LANES + 2] == was[i * LANES + 2]);
  }
  for (int x = 3; x < LANES; x++) {
    double ma = (double)was[n * LANES + x], mb = (double)b[n * LANES + x];
    double top = ma > mb ? ma : mb;
    double want = exp(ma - top) * (double)was[x] + exp(mb - top) * (double)b[x];
    ck_assert(fabs((double)a[x] - want) <= 1e-6 * 8.0);
  }
  free(a);
  free(b);
}
END_TEST

START_TEST(soft_cap) {
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  float *s = panel_of(9 * LANES), *was = panel_of(9 * LANES);
  fill(s, 9 * LANES, "scores");
  for (int i = 0; i < LANES; i++) s[i] *= 1e30f;
  memcpy(was, s, 9 * LANES * sizeof *s);
  t->softcap(9, s, 1.7f);
  for (int i = 0; i < 9 * LANES; i++) {
    double want = (double)1.7f * tanh((double)was[i] / (double)1.7f);
    REQUIRE(fabs((double)s[i] - want) <= 5e-7 * fabs(want), "%a", (double)s[i]);
  }
  free(s);
  free(was);
}
END_TEST

/* Weighted sums of every type, widths of every remainder, a start and more. */
START_TEST(rows_are_blended) {
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  enum { most = 150, rows = 5 };
  static float wide[rows][most], sum[most + 1], was[most + 1], weight[rows];
  static uint16_t code[rows][most];
  for (int k = 0; k < rows * 2 * MLA_CPU_TYPES; k++) {
    int type = k % MLA_CPU_TYPES, parts = k / MLA_CPU_TYPES % rows + 1;
    int add = k >= rows * MLA_CPU_TYPES, n = k == 3 ? most : 37 + 11 * parts;
    const void *part[rows];
    fill(weight, rows, "weights");
    fill(was, most + 1, "sum");
    for (int i = 0; i < rows; i++) {
      fill(wide[i], most, i % 2 ? "odd" : "even");
      part[i] = wide[i];
      if (type == MLA_CPU_F32) continue;
      t->store[type](code[i], wide[i], most);
      t->load[type](wide[i], code[i], most);
      part[i] = code[i];
    }
    memcpy(sum, was, sizeof sum);
    t->blend[type](n, parts, part, weight, 64, add, sum);
    for (int c = 0; c < n; c++) {
      double want = add ? (double)was[c] : 0.0, size = fabs(want);
      for (int i = 0; i < parts; i++) {
        want += (double)weight[i] * (double)wide[i][c];
        size += fabs((double)weight[i] * (double)wide[i][c]);
      }
      REQUIRE(fabs((double)sum[c] - want) <= 0x1p-24 * 6.0 * size,
              "type %d, %d parts, column %d of %d", type, parts, c, n);
    }
    ck_assert(sum[n] == was[n]);
  }
}
END_TEST

/* -------------------------------------------------------------- few rows */

enum { few_k = 150, few_n = 31, few_rows = 8 };

/* Keys of a type, queries and weights; what kernels make of them. */
typedef struct few {
  int type;
  float wide[few_n][few_k]; /* keys as f32 */
  uint16_t code[few_n][few_k];
  const void *key[few_n];
  float plain[few_rows][160];
  _Alignas(32) float q[few_rows][160]; /* in the kernels' order */
  float weight[few_rows][MLA_CPU_BLOCK], beta[few_rows];
  float scores[few_rows][64], acc[few_rows][160];
} few;

static few *few_of(const mla_cpu_table *t, int type) {
  few *x = aligned_alloc(64, (sizeof *x + 63) / 64 * 64);
  ck_assert_ptr_nonnull(x);
  memset(x, 0, sizeof *x);
  x->type = type;
  fill(x->wide[0], few_n * few_k, "keys");
  fill(x->plain[0], few_rows * 160, "queries");
  fill(x->weight[0], few_rows * MLA_CPU_BLOCK, "weights");
  fill(x->beta, few_rows, "beta");
  for (int i = 0; i < few_rows; i++) {
    memcpy(x->q[i], x->plain[i], sizeof x->q[i]);
    if (t->spread[type]) t->spread[type](x->q[i], x->plain[i], few_k, 1.0f);
  }
  for (int j = 0; j < few_n; j++) {
    x->key[j] = x->wide[j];
    if (type == MLA_CPU_F32) continue;
    x->key[j] = x->code[j];
    t->store[type](x->code[j], x->wide[j], few_k);
    t->load[type](x->wide[j], x->code[j], few_k);
  }
  return x;
}

/* Rows `at` and on, keys in shares; acc starts as the queries. */
static void run_few(const mla_cpu_table *t, few *x, int at, int rows,
                    int keys) {
  const float *q[few_rows];
  float *s[few_rows], *acc[few_rows];
  for (int i = 0; i < rows; i++) {
    q[i] = x->q[at + i];
    acc[i] = x->acc[at + i];
    memcpy(acc[i], x->plain[at + i], sizeof x->acc[0]);
  }
  for (int j = 0; j < few_n; j += keys) {
    for (int i = 0; i < rows; i++) s[i] = x->scores[at + i] + j;
    t->dots[x->type](few_n - j < keys ? few_n - j : keys, few_k, x->key + j,
                     rows, q, s, keys < few_n ? NULL : x->key);
  }
  t->mix[x->type](few_k, few_n, x->key, rows, x->weight[at], x->beta + at, acc,
                  keys < few_n ? x->key : NULL);
}

/* Of acc: even columns first, of each whole sixteen of bf16. */
static int place(int type, int c) {
  if (type != MLA_CPU_BF16 || c >= few_k / 16 * 16) return c;
  return c / 16 * 16 + c % 16 / 2 + c % 2 * 8;
}

static void check_few(const few *x, int i) {
  for (int j = 0; j < few_n; j++) {
    double want = 0, size = 0;
    for (int c = 0; c < few_k; c++) {
      double term = (double)x->wide[j][c] * (double)x->plain[i][c];
      want += term;
      size += fabs(term);
    }
    REQUIRE(fabs((double)x->scores[i][j] - want) <= 0x1p-24 * 30.0 * size,
            "row %d, key %d", i, j);
  }
  for (int c = 0; c < few_k; c++) {
    int at = place(x->type, c);
    double want = (double)x->beta[i] * (double)x->plain[i][at];
    double size = fabs(want);
    for (int j = 0; j < few_n; j++) {
      double term = (double)x->weight[i][j] * (double)x->wide[j][c];
      want += term;
      size += fabs(term);
    }
    REQUIRE(fabs((double)x->acc[i][at] - want) <= 0x1p-24 * 36.0 * size,
            "row %d, column %d", i, c);
  }
}

/* The sums, and that a row's bits depend neither on how many rows there are
   nor on the shares in which keys come, nor on hints. */
START_TEST(few_rows_are_alike) {
  const mla_cpu_table *t = table_of(_i);
  for (int type = 0; t && type < MLA_CPU_TYPES; type++) {
    if (!t->dots[type]) continue;
    few *x = few_of(t, type), *y = few_of(t, type);
    run_few(t, x, 0, few_rows, few_n);
    for (int i = 0; i < few_rows; i++) check_few(x, i);
    static const int shares[] = {few_n, 12, 5};
    for (int s = 0; s < 3; s++)
      for (int rows = 1; rows <= few_rows; rows *= 2) {
        for (int at = 0; at < few_rows; at += rows)
          run_few(t, y, at, rows, shares[s]);
        REQUIRE(memcmp(x->scores, y->scores, sizeof x->scores) == 0,
                "type %d, %d rows, share %d: scores", type, rows, s);
        for (int i = 0; i < few_rows; i++)
          REQUIRE(memcmp(x->acc[i], y->acc[i], few_k * sizeof(float)) == 0,
                  "type %d, %d rows, share %d: values", type, rows, s);
      }
    free(x);
    free(y);
  }
}
END_TEST

/* ------------------------------------------------------------- int8 codes */

/* Every code, at every remainder. */
START_TEST(codes_are_widened) {
  const mla_cpu_table *t = table_of(_i);
  if (!t || !t->codes) return;
  enum { most = 256 };
  signed char code[most];
  int16_t wide[most + 1];
  for (int i = 0; i < most; i++) code[i] = (signed char)(i - 128);
  for (int n = most - 40; n <= most; n++) {
    wide[n] = 4711;
    t->widen_codes(wide, code, n);
    for (int i = 0; i < n; i++)
      REQUIRE(wide[i] == code[i], "code %d of %d", i - 128, n);
    ck_assert(wide[n] == 4711);
  }
}
END_TEST

static void fill_int8(int16_t *x, int64_t n, const char *name) {
  mla_rng rng = mla_rng_named(17, name);
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits = mla_rng_bits(rng, (uint64_t)i);
    /* The extremes are common: sums of them are what could overflow. */
    x[i] = bits % 3 ? (int16_t)(bits >> 8 & 1 ? 127 : -128)
                    : (int16_t)(signed char)(bits >> 16 & 0x7F);
  }
}

/* Powers of two as scales: every score is the very sum. */
START_TEST(codes_are_multiplied) {
  const mla_cpu_table *t = table_of(_i);
  if (!t || !t->codes) return;
  enum { most = 27, width = 576, row = 600 };
  static int16_t keys[most * row], shared[width * LANES + 32];
  int16_t *q = shared;
  while ((uintptr_t)q % 64) q++;
  float key_scale[most], q_scale[LANES], *c = panel_of(most * LANES);
  fill_int8(keys, most * row, "keys");
  fill_int8(q, width * LANES, "queries");
  for (int j = 0; j < most; j++) key_scale[j] = j % 2 ? 0.25f : 2.0f;
  for (int x = 0; x < LANES; x++) q_scale[x] = x % 3 ? 0.5f : 1.0f;
  for (int m = 1; m <= most; m++)
    for (int half = 0; half < 2; half++) {
      int pairs = m % 4 ? width / 2 : m;
      (half ? t->codes_half : t->codes)(m, pairs, keys, row, key_scale, q,
                                        q_scale, 4.0f, c);
      for (int j = 0; j < m; j++)
        for (int x = 0; x < (half ? LANES / 2 : LANES); x++) {
          int sum = 0;
          for (int p = 0; p < 2 * pairs; p++)
            sum += keys[j * row + p] * q[p / 2 * 2 * LANES + 2 * x + p % 2];
          float want = (float)sum * 4.0f * q_scale[x] * key_scale[j];
          REQUIRE(c[j * LANES + x] == want, "key %d of %d, lane %d: %a, not %a",
                  j, m, x, (double)c[j * LANES + x], (double)want);
        }
    }
  free(c);
}
END_TEST

int main(void) {
  Suite *s = suite_create("cpu kernels");
  TCase *f = tcase_create("functions"), *t = tcase_create("kernels");
  tcase_set_timeout(f, 60);
  tcase_add_test(f, exp_within_two_ulp);
  tcase_add_test(f, tanh_within_three_ulp);
  suite_add_tcase(s, f);
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, conversions_are_exact, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, narrowing_rounds_to_nearest_even, 0,
                      MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, streams_copy, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, rows_are_blended, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, products, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, product_rows_are_alike, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, packing, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, softmax_corners, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, fold_corners, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, soft_cap, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, few_rows_are_alike, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, codes_are_widened, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, codes_are_multiplied, 0, MLA_CPU_ISA_COUNT);
  suite_add_tcase(s, t);
  return check_main(s);
}
