/* The CPU backend's kernels for a matrix unit, each level of this machine,
   against the plain loops or sums in f64. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "cpu_kernel_fixture.h"
#include "half.h"

#define LANES MLA_CPU_LANES

static void fill_codes(uint16_t *x, int64_t n, const char *name) {
  mla_rng rng = mla_rng_named(13, name);
  for (int64_t i = 0; i < n; i++)
    x[i] = mla_f32_to_bf16((float)mla_rng_bell(rng, (uint64_t)i));
}

static uint16_t *codes_of(int64_t n) {
  return (uint16_t *)(void *)panel_of(n / 2 + 16);
}

static void rows_of(mla_cpu_tile_rows *rows, const uint16_t *at, int64_t ld,
                    int n) {
  for (int i = 0; i < n / 16; i++) {
    rows[i].at = at + 16 * i * ld;
    rows[i].ld = ld;
  }
}

/* What tiles are filled with, against the plain loops, and nothing beyond. */
START_TEST(tiles_are_filled) {
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  mla_cpu_table plain = mla_cpu_table_for(0);
  enum { ld = 100, size = 40 * MLA_CPU_TILE_BLOCK };
  uint16_t *codes = codes_of(ld * MLA_CPU_TILE_BLOCK);
  uint16_t *got = codes_of(size), *want = codes_of(size);
  mla_cpu_tile_rows rows[MLA_CPU_TILE_BLOCK / 16];
  const uint16_t *lane[LANES];
  static const int counts[] = {1, 2, 31, 32, 33, 95, 96, 256};
  fill_codes(codes, ld * MLA_CPU_TILE_BLOCK, "rows");
  rows_of(rows, codes, ld, MLA_CPU_TILE_BLOCK);
  for (int x = 0; x < LANES; x++) lane[x] = codes + x * ld;
  for (int i = 0; i < 8; i++) {
    memset(got, 0xA5, size * 2);
    memset(want, 0xA5, size * 2);
    t->tile_values(got, rows, counts[i], 64);
    plain.tile_values(want, rows, counts[i], 64);
    REQUIRE(memcmp(got, want, size * 2) == 0, "values %d", counts[i]);
    if (counts[i] > ld) continue;
    t->tile_queries(got, lane, counts[i]);
    plain.tile_queries(want, lane, counts[i]);
    REQUIRE(memcmp(got, want, size * 2) == 0, "queries %d", counts[i]);
  }
  free(codes);
  free(got);
  free(want);
}
END_TEST

/* What each lane sees in the test below: all, less, nothing. */
static void sees_of(int turn, int n, int32_t *sees) {
  for (int x = 0; x < LANES; x++) sees[x] = turn ? (x * 37 + n) % (n + 1) : n;
}

/*
 * The softmax of tiles is that of cpu_softmax.h but for roundings: a score and
 * its scale meet in one, and the sum may run in two chains. Weights are those
 * of the plain loops to one unit of bf16, and 0 where nothing is seen.
 */
START_TEST(tiles_are_weighed) {
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  mla_cpu_table plain = mla_cpu_table_for(0);
  enum { size = MLA_CPU_TILE_BLOCK * LANES };
  static const int counts[] = {1, 31, 32, 33, 95, 256};
  float *s = panel_of(size), *kept = panel_of(size);
  uint16_t *got = codes_of(size), *want = codes_of(size);
  fill(s, size, "s");
  for (int turn = 0; turn < 12; turn++) {
    int n = counts[turn / 2], full = (n + 31) / 32 * 32 * LANES;
    float m[2][LANES], l[2][LANES], beta[2][LANES];
    int32_t sees[LANES];
    sees_of(turn % 2, n, sees);
    for (int i = 0; i < 2 * LANES; i++) {
      m[i / LANES][i % LANES] = i % LANES == 3 ? -INFINITY : 0.25f;
      l[i / LANES][i % LANES] = i % LANES == 3 ? 0.0f : 2.0f;
    }
    for (int i = n * LANES; i < size; i++) s[i] = NAN; /* never looked at */
    memcpy(kept, s, size * sizeof *s);
    t->tile_softmax(n, s, 1.75f, turn % 2 ? sees : NULL, m[0], l[0], beta[0],
                    got);
    REQUIRE(memcmp(kept, s, size * sizeof *s) == 0, "scores have changed");
    plain.tile_softmax(n, s, 1.75f, sees, m[1], l[1], beta[1], want);
    for (int x = 0; x < LANES; x++) {
      REQUIRE(m[0][x] == m[1][x], "maximum of lane %d of %d", x, n);
      REQUIRE(fabsf(beta[0][x] - beta[1][x]) <= 4e-7f, "beta %d", x);
      REQUIRE(fabsf(l[0][x] - l[1][x]) <= 4e-6f * l[1][x], "sum %d", x);
    }
    for (int i = 0; i < full; i++) {
      int key = i / (32 * LANES) * 32 + i % 32, x = i / 32 % LANES;
      REQUIRE(got[i] - want[i] <= 1 && want[i] - got[i] <= 1,
              "weight %d of lane %d of %d: %x, not %x", key, x, n, got[i],
              want[i]);
      if (key >= sees[x]) REQUIRE(got[i] == 0, "weight of a hidden key");
    }
    fill(s, size, "s");
  }
  free(s);
  free(kept);
  free(got);
  free(want);
}
END_TEST

/* m and l of the two below, with what is not a number among them. */
static void fill_state(float *m, float *l, const char *name) {
  fill(m, LANES, name);
  fill(l, LANES, "l");
  m[2] = -INFINITY;
}

/* What becomes of m, l and acc, against the plain loops. */
START_TEST(tiles_are_folded) {
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  mla_cpu_table plain = mla_cpu_table_for(0);
  enum { parts = 3, size = 6 * 16 * LANES };
  float m[2][LANES], l[2][LANES], m2[LANES], l2[LANES];
  float a[2][parts * LANES], b[2][parts * LANES];
  float *sum[2] = {panel_of(size), panel_of(size)}, *acc[parts];
  for (int i = 0; i < 2; i++) {
    fill_state(m[i], l[i], "m");
    m[i][5] = NAN;
  }
  for (int k = 1; k < parts; k++) {
    fill_state(m2, l2, k == 1 ? "first" : "second");
    m2[3] = -INFINITY;
    t->tile_join(m[0], l[0], m2, l2, a[0] + k * LANES, b[0] + k * LANES);
    plain.tile_join(m[1], l[1], m2, l2, a[1] + k * LANES, b[1] + k * LANES);
    for (int x = 0; x < LANES; x++) {
      int at = k * LANES + x;
      if (x == 5) {
        REQUIRE(isnan(m[0][x]) && isnan(a[0][at]), "NaN is lost");
        a[0][at] = a[1][at] = b[0][at] = b[1][at] = 0.5f;
        continue;
      }
      REQUIRE(m[0][x] == m[1][x], "maximum %d", x);
      REQUIRE(fabsf(l[0][x] - l[1][x]) <= 1e-6f * (1.0f + fabsf(l[1][x])),
              "sum %d", x);
      REQUIRE(fabsf(a[0][at] - a[1][at]) <= 4e-7f &&
                  fabsf(b[0][at] - b[1][at]) <= 4e-7f,
              "factors %d", x);
    }
  }
  for (int k = 0; k < parts; k++) {
    acc[k] = panel_of(size);
    fill(acc[k], size, k ? "part" : "first part");
  }
  t->tile_blend(6, parts, (const float *const *)acc, a[1], b[1], 16, sum[0]);
  plain.tile_blend(6, parts, (const float *const *)acc, a[1], b[1], 0, sum[1]);
  t->tile_blend(6, parts, (const float *const *)acc, a[1], b[1], 0, acc[0]);
  for (int i = 0; i < size; i++) {
    REQUIRE(fabsf(sum[0][i] - sum[1][i]) <= 1e-6f * (1.0f + fabsf(sum[1][i])),
            "number %d: %g, not %g", i, (double)sum[0][i], (double)sum[1][i]);
    REQUIRE(sum[0][i] == acc[0][i], "number %d, in place", i);
  }
  for (int k = 0; k < parts; k++) free(acc[k]);
  free(sum[0]);
  free(sum[1]);
}
END_TEST

/* Rows of acc: each times its number; one of them, columns in their order. */
START_TEST(tiles_are_lines) {
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  enum { columns = 96, size = columns * LANES };
  float *acc = panel_of(size), *kept = panel_of(size);
  float line[columns], times[LANES];
  fill(acc, size, "acc");
  fill(times, LANES, "times");
  memcpy(kept, acc, size * sizeof *acc);
  t->tile_scale(columns / 16, acc, times);
  for (int i = 0; i < size; i++)
    REQUIRE(acc[i] == kept[i] * times[i / 16 % LANES], "number %d", i);
  for (int x = 0; x < LANES; x++) {
    t->tile_line(line, acc, x, columns, 0.5f);
    for (int c = 0; c < columns; c++) {
      int at = MLA_CPU_TILE_COLUMN(c);
      REQUIRE(line[c] == 0.5f * acc[(at / 16 * LANES + x) * 16 + at % 16],
              "lane %d column %d", x, c);
    }
  }
  free(acc);
  free(kept);
}
END_TEST

/* Products to rows and to pairs; infinities and NaN among codes. */
START_TEST(tiles_are_narrowed) {
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  mla_cpu_table plain = mla_cpu_table_for(0);
  enum { n = 96, ld = 24, size = n * 32 };
  float *c = panel_of(n * LANES);
  uint16_t *got = codes_of(size), *want = codes_of(size);
  fill(c, n * LANES, "c");
  memset(got, 0xA5, size * 2);
  memset(want, 0xA5, size * 2);
  t->tile_narrow(got + 3, ld, c, n);
  plain.tile_narrow(want + 3, ld, c, n);
  REQUIRE(memcmp(got, want, size * 2) == 0, "rows");
  t->tile_pairs(got, c, n);
  plain.tile_pairs(want, c, n);
  REQUIRE(memcmp(got, want, size * 2) == 0, "pairs");
  for (int i = 1; i <= 70; i++) {
    memset(got, 0, size * 2);
    got[i] = 0x7F80u; /* behind the end */
    REQUIRE(t->tile_finite(got, i), "%d numbers are finite", i);
    got[i - 1] = i % 2 ? 0xFF80u : 0x7FC1u;
    REQUIRE(!t->tile_finite(got, i), "the last of %d is not", i);
  }
  free(c);
  free(got);
  free(want);
}
END_TEST

static void check_sums(const float *c, const uint16_t *a, int64_t row,
                       int64_t m, int64_t k, const float *b, int first) {
  for (int64_t i = 0; i < m; i++)
    for (int x = 0; x < LANES; x++) {
      double want = first, scale = first;
      for (int64_t p = 0; p < k; p++) {
        double term =
            (double)mla_bf16_to_f32(a[i * row + p]) * (double)b[p * LANES + x];
        want += term;
        scale += fabs(term);
      }
      double off = fabs((double)c[i * LANES + x] - want);
      REQUIRE(off <= 0x1p-24 * (double)(k / 32 + 18) * scale,
              "row %d lane %d: off by %g", (int)i, x, off);
    }
}

/* Scores of every number of panels, and of tiles of keys, all panels alike or
   each a tile less than the next. */
START_TEST(tiles_are_multiplied) {
  const mla_cpu_table *t = table_of(_i);
  if (!t || !t->tile_scores) return;
  enum { k = 96, most = 112, panel = MLA_CPU_TILE_BLOCK * LANES, all = 8 };
  uint16_t *keys = codes_of(most * k), *queries = codes_of(all * LANES * k);
  mla_cpu_tile_rows tiles[most / 16];
  float *wide = panel_of(all * LANES * k), *scores = panel_of(all * panel);
  float line[LANES * k];
  uint16_t code[LANES * k];
  const uint16_t *rows[LANES];
  fill_codes(keys, most * k, "keys");
  rows_of(tiles, keys, k, most);
  for (int x = 0; x < LANES; x++) rows[x] = code + x * k;
  for (int p = 0; p < all; p++) {
    fill_codes(code, LANES * k, p % 2 ? "odd" : "even");
    code[p] = 0x4000u + (uint16_t)p; /* no two panels alike */
    t->tile_queries(queries + p * LANES * k, rows, k);
    t->load[MLA_CPU_BF16](line, code, LANES * k);
    t->pack(wide + p * LANES * k, line, k, k, 1.0f);
  }
  t->tile_begin();
  for (int turn = 0; turn < 2 * all * most / 16; turn++) {
    int panels = 1 + turn / 2 % all, m = 16 + turn / 2 / all * 16;
    int64_t n16[all];
    for (int p = 0; p < panels; p++) {
      n16[p] = m - turn % 2 * 16 * (panels - 1 - p);
      if (n16[p] < 0) n16[p] = 0;
    }
    for (int x = 0; x < all * panel; x++) scores[x] = 7.0f;
    t->tile_scores(k, tiles, panels, n16, queries, scores);
    for (int p = 0; p < panels; p++)
      check_sums(scores + p * panel, keys, k, n16[p], k, wide + p * LANES * k,
                 0);
    for (int p = 0; p < all; p++)
      for (int x = p < panels ? m * LANES : 0; x < panel; x++)
        REQUIRE(scores[p * panel + x] == 7.0f, "written beyond panel %d", p);
  }
  t->tile_end();
  free(queries);
  free(wide);
  free(scores);
  free(keys);
}
END_TEST

/* acc against sums in f64 of n keys, `columns` columns; it began at `first`. */
static void check_acc(const mla_cpu_table *t, const float *acc,
                      const uint16_t *weights, const uint16_t *values,
                      int64_t ld, int n, int columns, int first) {
  float line[64];
  for (int x = 0; x < LANES; x++) {
    t->tile_line(line, acc, x, columns, 1.0f);
    for (int c = 0; c < columns; c++) {
      double want = first, scale = first;
      for (int j = 0; j < n; j++) {
        uint16_t w = weights[(j / 32 * LANES + x) * 32 + j % 32];
        double term = (double)mla_bf16_to_f32(w) *
                      (double)mla_bf16_to_f32(values[j * ld + c]);
        want += term;
        scale += fabs(term);
      }
      REQUIRE(fabs((double)line[c] - want) <=
                  0x1p-24 * (double)(n / 32 + 18) * scale,
              "lane %d column %d of %d: %g, not %g", x, c, n, (double)line[c],
              want);
    }
  }
}

/* Values x weights, on top of what is there and not. */
START_TEST(tiles_are_accumulated) {
  const mla_cpu_table *t = table_of(_i);
  if (!t || !t->tile_product) return;
  enum { ld = 80, n = 96, size = 64 * LANES };
  uint16_t *rows = codes_of(n * ld), *values = codes_of(n * 32);
  uint16_t *weights = codes_of(n * LANES);
  float *acc = panel_of(size);
  mla_cpu_tile_rows tiles[n / 16];
  fill_codes(rows, n * ld, "values");
  fill_codes(weights, n * LANES, "weights");
  rows_of(tiles, rows, ld, n);
  t->tile_begin();
  for (int turn = 0; turn < 6; turn++) {
    int add = turn % 2, keys = 32 * (1 + turn / 2);
    for (int x = 0; x < size; x++) acc[x] = 3.0f;
    t->tile_values(values, tiles, keys, 32);
    t->tile_product(keys, values, weights, add, acc);
    check_acc(t, acc, weights, rows + 32, ld, keys, 32, add ? 3 : 0);
    for (int x = size / 2; x < size; x++)
      REQUIRE(acc[x] == 3.0f, "written beyond 32 columns");
  }
  t->tile_end();
  free(weights);
  free(acc);
  free(rows);
  free(values);
}
END_TEST

int main(void) {
  Suite *s = suite_create("cpu tiles");
  TCase *t = tcase_create("tiles");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, tiles_are_filled, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, tiles_are_weighed, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, tiles_are_folded, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, tiles_are_lines, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, tiles_are_narrowed, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, tiles_are_multiplied, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, tiles_are_accumulated, 0, MLA_CPU_ISA_COUNT);
  suite_add_tcase(s, t);
  return check_main(s);
}
