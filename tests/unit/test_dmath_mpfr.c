/*
 * How far exp, log and the rest are from the exact result, by MPFR, against
 * the bounds of dmath.h. Prints the largest error found of each.
 */
#include <stdio.h>

#include "check_main.h"
#include "dmath.h"
#include "dmath_core.h"
#include "mpfr_ulp.h"
#include "rng.h"

#define PRECISION 256
#define SAMPLES 10000

typedef struct function {
  const char *name;
  double (*ours)(double);
  int (*exact)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
  double bound;
} function;

enum { EXP, LOG, LOG1P, TANH, SIN, COS, SQRT, FUNCTIONS };
static const function functions[FUNCTIONS] = {
    {"exp", mla_exp, mpfr_exp, MLA_EXP_ULPS},
    {"log", mla_log, mpfr_log, MLA_LOG_ULPS},
    {"log1p", mla_log1p, mpfr_log1p, MLA_LOG1P_ULPS},
    {"tanh", mla_tanh, mpfr_tanh, MLA_TANH_ULPS},
    {"sin", mla_sin, mpfr_sin, MLA_SIN_ULPS},
    {"cos", mla_cos, mpfr_cos, MLA_COS_ULPS},
    {"sqrt", mla_sqrt, mpfr_sqrt, MLA_SQRT_ULPS},
};

/* The largest error so far of one function, and where. */
typedef struct worst {
  const function *f;
  mpfr_t argument, exact;
  double error, at;
} worst;

static worst worst_start(const function *f) {
  worst w = {.f = f, .error = 0, .at = 0};
  mpfr_init2(w.argument, PRECISION);
  mpfr_init2(w.exact, PRECISION);
  return w;
}

static void try_one(worst *w, double x) {
  mpfr_set_d(w->argument, x, MPFR_RNDN);
  w->f->exact(w->exact, w->argument, MPFR_RNDN);
  double error = mpfr_ulp_error(w->exact, w->f->ours(x));
  if (error > w->error) {
    w->error = error;
    w->at = x;
  }
}

static void worst_end(worst *w, const char *what) {
  printf("%-6s %-22s %.4f ulp, bound %.3f, at %a\n", w->f->name, what, w->error,
         w->f->bound, w->at);
  fflush(stdout);
  ck_assert_msg(w->error <= w->f->bound, "%s(%a): %g ulp, bound %g", w->f->name,
                w->at, w->error, w->f->bound);
  mpfr_clear(w->argument);
  mpfr_clear(w->exact);
}

/* x, its neighbours, and the same with the other sign. */
static void try_around(worst *w, double x) {
  for (int sign = 1; sign >= -1; sign -= 2) {
    try_one(w, sign * x);
    try_one(w, nextafter(sign * x, INFINITY));
    try_one(w, nextafter(sign * x, -INFINITY));
  }
}

/* Uniform between low and high, or so by exponent if both are positive and
   far apart. */
static const struct {
  int function;
  double low, high;
} ranges[] = {
    {EXP, -708, 709.7},     {EXP, -745.2, -708},  {EXP, -2, 2},
    {EXP, 0x1p-60, 1},      {EXP, -50, 0},        {LOG, 0x1p-1074, 0x1p1023},
    {LOG, 0.5, 2},          {LOG, 0.99, 1.01},    {LOG, 1 - 0x1p-20, 1},
    {LOG1P, -0.999, 1},     {LOG1P, -0.02, 0.02}, {LOG1P, 0x1p-60, 0x1p1000},
    {LOG1P, -1, -0.999},    {TANH, 0x1p-40, 32},  {TANH, -3, 3},
    {TANH, -0.05, 0.05},    {SIN, -4, 4},         {SIN, 0x1p-40, 0x1p31},
    {SIN, -0x1p31, 0x1p31}, {COS, -4, 4},         {COS, 0x1p-40, 0x1p31},
    {COS, -0x1p31, 0x1p31}, {SQRT, 1, 4},         {SQRT, 0x1p-1074, 0x1p1023},
};
#define RANGES (int)(sizeof ranges / sizeof ranges[0])

START_TEST(random_arguments) {
  double low = ranges[_i].low, high = ranges[_i].high;
  worst w = worst_start(&functions[ranges[_i].function]);
  mla_rng rng = mla_rng_named((uint64_t)_i, "random_arguments");
  int by_exponent = low > 0 && high / low > 100;
  for (uint64_t i = 0; i < SAMPLES; i++) {
    double u = (double)(int64_t)(mla_rng_bits(rng, i) >> 11) * 0x1p-53;
    double x = low + u * (high - low);
    if (by_exponent) x = exp2(log2(low) + u * (log2(high) - log2(low)));
    try_one(&w, x);
  }
  char what[64];
  snprintf(what, sizeof what, "%.7g .. %.7g", low, high);
  worst_end(&w, what);
}
END_TEST

/* The ends of every step of exp's table, of its range, of every binade. */
START_TEST(edges_of_exp) {
  worst w = worst_start(&functions[EXP]);
  for (int n = 0; n < 70000; n += n < 300 ? 1 : 61) {
    try_around(&w, (n + 0.5) * (log(2) / 64));
  }
  for (int e = -1074; e <= 10; e++) try_around(&w, ldexp(1, e));
  const double ends[] = {
      709.782712893384,  709.79, 708.3964185322641, 745.1332191019411, 745.14,
      744.4400719213812, 1e300,  INFINITY};
  for (int i = 0; i < 8; i++) try_around(&w, ends[i]);
  worst_end(&w, "edges");
}
END_TEST

/* Rows of log's table, where they wrap, around 1, powers of two. */
START_TEST(edges_of_log) {
  worst w = worst_start(&functions[LOG]), w1 = worst_start(&functions[LOG1P]);
  for (int i = 0; i <= 256; i++) {
    for (int k = -3; k <= 3; k++) {
      double x = ldexp(1 + i / 256.0, k);
      try_around(&w, x);
      try_around(&w1, x);
      try_around(&w1, x - 1);
    }
  }
  for (int e = -1074; e < 1024; e++) {
    try_around(&w, ldexp(1, e));
    try_around(&w1, ldexp(1, e));
    if (e >= -53 && e < 0) {
      try_around(&w, 1 - ldexp(1, e));
      try_around(&w, 1 + ldexp(1, e));
      try_around(&w1, 1 - ldexp(1, e));
    }
  }
  try_around(&w, INFINITY);
  try_around(&w1, INFINITY);
  worst_end(&w, "edges");
  worst_end(&w1, "edges");
}
END_TEST

START_TEST(edges_of_tanh) {
  worst w = worst_start(&functions[TANH]);
  for (int e = -1074; e <= 10; e++) try_around(&w, ldexp(1, e));
  for (int n = 0; n < 4000; n++) {
    try_around(&w, (n + 0.5) * (log(2) / 128));
  }
  for (int i = 170; i < 230; i++) try_around(&w, i / 10.0);
  try_around(&w, INFINITY);
  worst_end(&w, "edges");
}
END_TEST

/* The numbers nearest to multiples of pi / 2, where all but the last bits of
   the argument cancel, and to the middles between them. */
START_TEST(angles_near_multiples_of_a_quarter_turn) {
  worst s = worst_start(&functions[SIN]), c = worst_start(&functions[COS]);
  mpfr_t angle;
  mpfr_init2(angle, PRECISION);
  mla_rng rng = mla_rng_named(1, "quarter turns");
  for (uint64_t i = 0; i < 3000; i++) {
    uint32_t quarters = mla_rng_below(rng, i, i % 2 ? 4000 : 2734261102u);
    mpfr_const_pi(angle, MPFR_RNDN);
    mpfr_mul_ui(angle, angle, quarters, MPFR_RNDN);
    mpfr_div_ui(angle, angle, 4, MPFR_RNDN);
    try_around(&s, mpfr_get_d(angle, MPFR_RNDN));
    try_around(&c, mpfr_get_d(angle, MPFR_RNDN));
  }
  for (int e = -1074; e <= 30; e++) {
    try_around(&s, ldexp(1, e));
    try_around(&c, ldexp(1, e));
  }
  mpfr_clear(angle);
  worst_end(&s, "near quarter turns");
  worst_end(&c, "near quarter turns");
}
END_TEST

/* What rotary embedding asks: positions up to 2^20 times theta^(-2i/R). */
START_TEST(angles_of_positions) {
  worst s = worst_start(&functions[SIN]), c = worst_start(&functions[COS]);
  mla_rng rng = mla_rng_named(1, "positions");
  for (uint64_t i = 0; i < SAMPLES; i++) {
    double frequency = mla_pow(10000, -(double)(int)(i % 32) / 32);
    double position = mla_rng_below(rng, i, (1u << 20) + 1);
    try_one(&s, position * frequency);
    try_one(&c, position * frequency);
  }
  worst_end(&s, "positions");
  worst_end(&c, "positions");
}
END_TEST

START_TEST(squares_and_neighbours) {
  worst w = worst_start(&functions[SQRT]);
  mla_rng rng = mla_rng_named(1, "squares");
  for (uint64_t i = 0; i < 5000; i++) {
    double root = mla_rng_below(rng, i, 1u << 26) + 1.0;
    try_around(&w, root * root);
    ck_assert_double_eq(mla_sqrt(root * root), root);
    try_around(&w, (root + 0x1p26) * (root + 0x1p27));
  }
  for (int e = -1074; e < 1024; e++) try_around(&w, ldexp(1, e));
  worst_end(&w, "squares");
}
END_TEST

static double pow_error(double x, double y) {
  mpfr_t a, b;
  mpfr_init2(a, PRECISION);
  mpfr_init2(b, PRECISION);
  mpfr_set_d(a, x, MPFR_RNDN);
  mpfr_set_d(b, y, MPFR_RNDN);
  mpfr_pow(a, a, b, MPFR_RNDN);
  double error = mpfr_ulp_error(a, mla_pow(x, y));
  mpfr_clear(a);
  mpfr_clear(b);
  ck_assert_msg(error <= MLA_POW_ULPS, "pow(%a, %a): %g ulp", x, y, error);
  return error;
}

START_TEST(pow_of_rotary_bases) {
  const double bases[] = {10000, 500000, 1e6, 8e6, 1.6e5, 2};
  double largest = 0;
  for (int b = 0; b < 6; b++) {
    for (int r = 2; r <= 256; r += 2) {
      for (int i = 0; i < r / 2; i += 1 + r / 64) {
        largest = fmax(largest, pow_error(bases[b], -2.0 * i / r));
      }
    }
  }
  printf("%-6s %-22s %.4f ulp, bound %.3f\n", "pow", "rotary bases", largest,
         MLA_POW_ULPS);
  fflush(stdout);
}
END_TEST

/* Results over the whole range, from bases near 1 too. */
START_TEST(pow_of_anything) {
  mla_rng rng = mla_rng_named(1, "pow");
  double largest = 0;
  for (uint64_t i = 0; i < SAMPLES; i++) {
    double u = (double)(int64_t)(mla_rng_bits(rng, 2 * i) >> 11) * 0x1p-52 - 1;
    double v =
        (double)(int64_t)(mla_rng_bits(rng, 2 * i + 1) >> 11) * 0x1p-52 - 1;
    double x = i % 2 ? exp(700 * u) : 1 + u * 0x1p-9;
    double y = v * 750 / fabs(log(x)); /* a little beyond both ends */
    largest = fmax(largest, pow_error(x, y));
  }
  printf("%-6s %-22s %.4f ulp, bound %.3f\n", "pow", "anything", largest,
         MLA_POW_ULPS);
  fflush(stdout);
}
END_TEST

/* value = hi + lo, to the last bit of lo. */
static void check_pair(mpfr_ptr value, double hi, double lo) {
  mpfr_sub_d(value, value, hi, MPFR_RNDN);
  ck_assert_double_eq(mpfr_get_d(value, MPFR_RNDN), lo);
}

START_TEST(tables_are_what_they_say) {
  mpfr_t value;
  mpfr_init2(value, PRECISION);
  for (int j = 0; j < 64; j++) {
    mpfr_set_d(value, j / 64.0, MPFR_RNDN);
    mpfr_exp2(value, value, MPFR_RNDN);
    ck_assert_double_eq(mpfr_get_d(value, MPFR_RNDN), mla_exp2_table[j][0]);
    check_pair(value, mla_exp2_table[j][0], mla_exp2_table[j][1]);
  }
  for (int i = 0; i < 128; i++) {
    const double *row = mla_log_table[i];
    double middle = (1 + (i + 0.5) / 128) / (i < 53 ? 1 : 2);
    ck_assert_double_le(fabs(row[0] * middle - 1), 0x1p-7);
    ck_assert_double_eq(row[0] * 512, floor(row[0] * 512));
    ck_assert_double_eq(ldexp(row[1], 42), floor(ldexp(row[1], 42)));
    mpfr_set_d(value, row[0], MPFR_RNDN);
    mpfr_log(value, value, MPFR_RNDN);
    mpfr_neg(value, value, MPFR_RNDN);
    check_pair(value, row[1], row[2]);
  }
  mpfr_clear(value);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("dmath_mpfr");
  TCase *tests = tcase_create("dmath_mpfr");
  tcase_set_timeout(tests, 60);
  tcase_add_loop_test(tests, random_arguments, 0, RANGES);
  tcase_add_test(tests, edges_of_exp);
  tcase_add_test(tests, edges_of_log);
  tcase_add_test(tests, edges_of_tanh);
  tcase_add_test(tests, angles_near_multiples_of_a_quarter_turn);
  tcase_add_test(tests, angles_of_positions);
  tcase_add_test(tests, squares_and_neighbours);
  tcase_add_test(tests, pow_of_rotary_bases);
  tcase_add_test(tests, pow_of_anything);
  tcase_add_test(tests, tables_are_what_they_say);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
