/*
 * Short cuts of the CPU backend's kernels give the bits of the long way:
 * panels whose first lanes alone are in use, and exp where no result is
 * subnormal. Each level of this machine.
 */
#include <math.h>
#include <string.h>

#include "check_main.h"
#include "cpu_table.h"
#include "rng.h"

#define LANES MLA_CPU_LANES
enum { HALF = LANES / 2, MOST = 41, DEPTH = 70 };

/* The table of a level; NULL: this machine does not run it. */
static const mla_cpu_table *table_of(int isa) {
  static mla_cpu_table table;
  if (!(mla_cpu_isa_detect() & MLA_CPU_BIT(isa))) return NULL;
  table = mla_cpu_table_for(mla_cpu_isa_set(isa) & mla_cpu_isa_detect());
  return &table;
}

static void fill(float *x, int64_t n, float size, const char *name) {
  mla_rng rng = mla_rng_named(3, name);
  for (int64_t i = 0; i < n; i++)
    x[i] = size * (float)mla_rng_bell(rng, (uint64_t)i);
}

/* Of `rows` rows, whatever the lanes above hold. */
static void check_lanes(const float *got, const float *want, int64_t rows) {
  for (int64_t i = 0; i < rows; i++)
    ck_assert(memcmp(got + i * LANES, want + i * LANES, HALF * sizeof(float)) ==
              0);
}

START_TEST(half_a_product) {
  static _Alignas(64) float b[DEPTH * LANES], got[(MOST + 1) * LANES],
      want[(MOST + 1) * LANES];
  static float a[MOST * (DEPTH + 3)], beta[LANES];
  const mla_cpu_table *t = table_of(_i);
  if (!t || !t->product_half) return;
  fill(a, MOST * (DEPTH + 3), 1, "a");
  fill(b, DEPTH * LANES, 1, "b");
  fill(beta, LANES, 1, "beta");
  for (int64_t m = 1; m <= MOST; m++)
    for (int with = 0; with < 4; with++) {
      int64_t row = with & 1 ? DEPTH + 3 : 1, col = with & 1 ? 1 : MOST;
      fill(got, (MOST + 1) * LANES, 1, "c");
      memcpy(want, got, sizeof want);
      t->product(m, DEPTH, a, row, col, b, with & 2 ? beta : NULL, want);
      t->product_half(m, DEPTH, a, row, col, b, with & 2 ? beta : NULL, got);
      check_lanes(got, want, m + 1); /* the row behind is left alone */
    }
}
END_TEST

START_TEST(half_a_softmax) {
  static _Alignas(64) float got[MOST * LANES], want[MOST * LANES];
  _Alignas(64) float m[2][LANES], l[2][LANES], beta[2][LANES];
  int32_t visible[LANES];
  const mla_cpu_table *t = table_of(_i);
  if (!t || !t->softmax_half) return;
  for (int x = 0; x < LANES; x++) {
    visible[x] = MOST - 3 * x;
    m[0][x] = m[1][x] = x % 2 ? -INFINITY : 0.5f;
    l[0][x] = l[1][x] = x % 2 ? 0.0f : 2.0f;
  }
  for (int masked = 0; masked < 2; masked++) {
    fill(got, MOST * LANES, 3, "scores");
    got[2 * LANES + 1] = NAN;
    memcpy(want, got, sizeof want);
    t->softmax(MOST, want, masked ? visible : NULL, m[0], l[0], beta[0]);
    t->softmax_half(MOST, got, masked ? visible : NULL, m[1], l[1], beta[1]);
    check_lanes(got, want, MOST);
    check_lanes(m[1], m[0], 1);
    check_lanes(l[1], l[0], 1);
    check_lanes(beta[1], beta[0], 1);
  }
}
END_TEST

/* One lane far below makes the whole panel go the long way. */
START_TEST(plain_exp_is_the_same) {
  static _Alignas(64) float near[MOST * LANES], far[MOST * LANES];
  _Alignas(64) float m[2][LANES], l[2][LANES], beta[2][LANES];
  const mla_cpu_table *t = table_of(_i);
  if (!t) return;
  fill(near, MOST * LANES, 12, "scores");
  memcpy(far, near, sizeof far);
  for (int x = 0; x < LANES; x++) {
    m[0][x] = m[1][x] = -INFINITY;
    l[0][x] = l[1][x] = 0.0f;
  }
  far[5 * LANES] = far[6 * LANES + HALF] = -1e4f;
  near[7 * LANES + 3] = far[7 * LANES + 3] = NAN;
  t->softmax(MOST, near, NULL, m[0], l[0], beta[0]);
  t->softmax(MOST, far, NULL, m[1], l[1], beta[1]);
  for (int i = 0; i < MOST * LANES; i++)
    if (i % HALF != 0) ck_assert(memcmp(&near[i], &far[i], sizeof(float)) == 0);
  ck_assert(isnan(l[0][3]) && isnan(l[1][3]) && isnan(near[7 * LANES + 3]));
  ck_assert(far[5 * LANES] == 0.0f && far[6 * LANES + HALF] == 0.0f);
}
END_TEST

int main(void) {
  Suite *s = suite_create("cpu half");
  TCase *t = tcase_create("kernels");
  tcase_add_loop_test(t, half_a_product, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, half_a_softmax, 0, MLA_CPU_ISA_COUNT);
  tcase_add_loop_test(t, plain_exp_is_the_same, 0, MLA_CPU_ISA_COUNT);
  suite_add_tcase(s, t);
  return check_main(s);
}
