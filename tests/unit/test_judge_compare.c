/* One output against what it should be: what is caught, and what is said. */
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "compare.h"
#include "dmath.h"
#include "dtype.h"
#include "generate.h"
#include "tensor.h"

/* A vector, its expectation, and a right answer to be spoilt. */
typedef struct bench {
  mla_vector v;
  mla_expectation e;
  mla_numerics numerics;
  int32_t slot;
  unsigned char *got;
  mla_output_verdict o;
} bench;

static int64_t offset_of(const mla_tensor *t, const int64_t *index) {
  int64_t at = 0;
  for (int a = 0; a < t->rank; a++) at += index[a] * t->stride[a];
  return at;
}

static void answer_rows(bench *b, mla_expected_view view) {
  const mla_tensor *t = &b->v.tensor[b->slot];
  int lse = b->slot == MLA_T_LSE;
  for (int64_t r = 0; r < view.rows; r++) {
    int64_t rest = view.row_index ? view.row_index[r] : r;
    int64_t index[MLA_MAX_RANK] = {0};
    for (int a = t->rank - (lse ? 1 : 2); a >= 0; a--) {
      index[a] = rest % t->shape[a];
      rest /= t->shape[a];
    }
    for (int64_t d = 0; d < view.width; d++)
      mla_put(b->got, t->dtype, offset_of(t, index) + d,
              view.value[r * view.width + d]);
  }
}

static bench begin(const char *id, int32_t slot) {
  bench b;
  mla_case c;
  int32_t index;
  mla_error err = mla_error_init();
  memset(&b, 0, sizeof b);
  b.slot = slot;
  ck_assert_msg(mla_case_parse(id, &c, &err) == MLA_OK, "%s", err.message);
  ck_assert_int_eq(mla_generate(&c, 42, MLA_POISON_NAN, &b.v, &err), MLA_OK);
  ck_assert_int_eq(mla_expectation_make(&b.v, NULL, NULL, &b.e, &err), MLA_OK);
  size_t extent = (size_t)mla_tensor_extent(&b.v.tensor[slot]);
  b.got = malloc(extent);
  memcpy(b.got, b.v.tensor[slot].data, extent);
  mla_expected_view view = mla_expectation_of(&b.e, slot, &index);
  if (view.bytes)
    memcpy(b.got, view.bytes, extent);
  else
    answer_rows(&b, view);
  return b;
}

static int judged(bench *b) {
  mla_error err = mla_error_init();
  unsigned char poison = b->v.role[b->slot] == MLA_ROLE_OUT ? 0xff : 0;
  ck_assert_int_eq(mla_compare_output(&b->v, &b->e, b->slot, &b->numerics,
                                      b->got, poison, &b->o, &err),
                   MLA_OK);
  return !mla_output_fails(&b->o);
}

static void finish(bench *b) {
  free(b->got);
  mla_expectation_free(&b->e);
  mla_vector_free(&b->v);
}

static void put(bench *b, int64_t i, int64_t j, int64_t k, double x) {
  const mla_tensor *t = &b->v.tensor[b->slot];
  int64_t index[MLA_MAX_RANK] = {i, j, k};
  mla_put(b->got, t->dtype, offset_of(t, index), x);
}

static double get(bench *b, int64_t i, int64_t j, int64_t k) {
  const mla_tensor *t = &b->v.tensor[b->slot];
  int64_t index[MLA_MAX_RANK] = {i, j, k};
  return mla_get(b->got, t->dtype, offset_of(t, index));
}

static const char decode[] =
    "decode:f32:b3,h4,q=2+0+1,page16,len=20+3+9,l64,r8,strides=odd,tail=2";

START_TEST(the_right_answer_passes) {
  static const struct {
    const char *id;
    int32_t slot;
  } table[] = {{decode, MLA_T_OUT},
               {decode, MLA_T_LSE},
               {"decode:bf16:b2,h1,q1,page16,len=0+3,l64,r8", MLA_T_LSE},
               {"decode:bf16:h4,len=32,dist=exact", MLA_T_OUT},
               {"decode:bf16:h4,len=32,dist=onehot", MLA_T_OUT},
               {"merge:f32:n3,h3,s3,v8,dist=nan", MLA_T_OUT},
               {"merge:f32:n3,h3,s3,v8,dist=nan", MLA_T_LSE},
               {"kv_write:bf16:n9,page4,nb3,l64,r8", MLA_T_CACHE},
               {"kv_read:bf16:b2,page4,len=3+5,l64,r8,tail=2", MLA_T_DST},
               {"absorb:bf16:h2,l8,r8,p4,v4", MLA_T_W_UK},
               {"absorb:bf16:h2,l8,r8,p4,v4", MLA_T_W_UV}};
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    bench b = begin(table[i].id, table[i].slot);
    ck_assert_msg(judged(&b), "%s: %lld bad, %lld unwritten, %s", table[i].id,
                  (long long)b.o.bad, (long long)b.o.unwritten, b.o.outside);
    ck_assert_int_gt(b.o.checked, 0);
    ck_assert_str_eq(b.o.where, "");
    finish(&b);
  }
}
END_TEST

START_TEST(one_value_is_found_and_named) {
  bench b = begin(decode, MLA_T_OUT);
  double right = get(&b, 2, 3, 17);
  put(&b, 2, 3, 17, right + 1e-3);
  ck_assert(!judged(&b));
  ck_assert_int_eq(b.o.bad, 1);
  ck_assert_int_eq(b.o.checked, 3 * 4 * 64);
  ck_assert(b.o.worst > 1 && b.o.worst < 1e6);
  ck_assert_str_eq(b.o.at, "request 2, token 0, head 3, dim 17");
  ck_assert_str_eq(b.o.where, "request 2, token 0, head 3, dim 17");
  ck_assert(b.o.budget > 0 && b.o.budget < 1e-5);
  ck_assert(mla_fabs(b.o.max_abs - 1e-3) < 1e-6);
  finish(&b);
}
END_TEST

START_TEST(a_head_is_named_as_one) {
  bench b = begin(decode, MLA_T_OUT);
  for (int64_t n = 0; n < 3; n++)
    for (int64_t d = 0; d < 64; d++) put(&b, n, 1, d, get(&b, n, 1, d) + 1);
  ck_assert(!judged(&b));
  ck_assert_int_eq(b.o.bad, 3 * 64);
  ck_assert_str_eq(b.o.where,
                   "requests 0 to 2, 3 tokens (row 0 to 2), head 1, "
                   "all 64 dims");
  finish(&b);
}
END_TEST

/* Half the budget passes, twice does not. */
START_TEST(the_budget_is_the_line) {
  bench b = begin(decode, MLA_T_OUT);
  double right = get(&b, 0, 0, 0);
  ck_assert(judged(&b));
  double budget[3 * 4 * 64];
  int32_t view;
  (void)mla_expectation_of(&b.e, MLA_T_OUT, &view);
  mla_expected_budget(b.e.expected, view, &b.numerics, budget);
  put(&b, 0, 0, 0, right + 0.5 * budget[0]);
  ck_assert(judged(&b));
  ck_assert(b.o.worst > 0.3);
  put(&b, 0, 0, 0, right + 2 * budget[0]);
  ck_assert(!judged(&b));
  ck_assert(b.o.worst > 1.5 && b.o.worst < 2.5);
  finish(&b);
}
END_TEST

START_TEST(nan_and_infinity_never_pass) {
  bench b = begin(decode, MLA_T_OUT);
  const double odd[] = {mla_nan(), mla_inf(), -mla_inf()};
  for (int i = 0; i < 3; i++) {
    double right = get(&b, 0, 0, 0);
    put(&b, 0, 0, 0, odd[i]);
    ck_assert(!judged(&b));
    ck_assert(mla_isinf(b.o.worst) > 0);
    ck_assert_int_eq(b.o.not_finite, 1);
    put(&b, 0, 0, 0, right);
  }
  finish(&b);
}
END_TEST

/* Values beyond f16 round to its infinity, of their own sign. */
START_TEST(what_overflows_is_infinite) {
  bench b = begin("matmul:f32:m2,n5,k9,out=f16,dist=big", MLA_T_OUT);
  ck_assert(judged(&b));
  ck_assert_int_eq(b.o.not_finite, 0);
  double right = get(&b, 0, 1, 0);
  ck_assert(mla_isinf(right));
  put(&b, 0, 1, 0, -right);
  ck_assert(!judged(&b));
  put(&b, 0, 1, 0, right > 0 ? 65504 : -65504);
  ck_assert(!judged(&b));
  finish(&b);
}
END_TEST

START_TEST(an_expected_nan_must_be_one) {
  bench b = begin("merge:f32:n3,h3,s3,v8,dist=nan", MLA_T_OUT);
  ck_assert(mla_isnan(get(&b, 0, 0, 0)));
  put(&b, 0, 0, 0, 0);
  ck_assert(!judged(&b));
  finish(&b);
}
END_TEST

START_TEST(what_was_not_written_shows) {
  bench b = begin(decode, MLA_T_OUT);
  const mla_tensor *t = &b.v.tensor[MLA_T_OUT];
  memset(b.got + 4 * mla_at3(t, 1, 2, 0), 0xff, 64 * 4);
  ck_assert(!judged(&b));
  ck_assert_int_eq(b.o.unwritten, 64);
  ck_assert_str_eq(b.o.where, "request 0, token 1, head 2, all 64 dims");
  finish(&b);
  /* even where a NaN is to be expected */
  b = begin("merge:f32:n3,h3,s3,v8,dist=nan", MLA_T_OUT);
  memset(b.got, 0xff, 8 * 4);
  ck_assert(!judged(&b));
  ck_assert_int_eq(b.o.unwritten, 8);
  finish(&b);
}
END_TEST

START_TEST(gaps_and_padding_rows_stay) {
  bench b = begin(decode, MLA_T_OUT);
  const mla_tensor *t = &b.v.tensor[MLA_T_OUT];
  b.got[4 * (mla_at3(t, 0, 0, 63) + 1)] = 0; /* behind a row */
  ck_assert(!judged(&b));
  ck_assert_int_eq(b.o.bad, 0);
  ck_assert_ptr_nonnull(strstr(b.o.outside, "1 bytes of out"));
  finish(&b);
  b = begin(decode, MLA_T_OUT);
  put(&b, 3, 0, 0, 0); /* a padding row */
  ck_assert(!judged(&b));
  ck_assert_ptr_nonnull(strstr(b.o.outside, "4 bytes of out"));
  finish(&b);
}
END_TEST

START_TEST(empty_rows_have_one_lse) {
  const char *id = "decode:f32:b2,h2,q1,page16,len=0+3,l64,r8";
  bench b = begin(id, MLA_T_LSE);
  ck_assert_int_eq(mla_isinf(get(&b, 0, 0, 0)), -1);
  put(&b, 0, 1, 0, mla_inf());
  ck_assert(!judged(&b));
  ck_assert_str_eq(b.o.at, "request 0, token 0, head 1");
  b.numerics.lse_empty_positive = 1;
  ck_assert(judged(&b));
  put(&b, 1, 1, 0, mla_inf()); /* that row is not empty */
  ck_assert(!judged(&b));
  put(&b, 1, 1, 0, -1e30);
  ck_assert(!judged(&b));
  finish(&b);
  b = begin(id, MLA_T_LSE);
  put(&b, 0, 0, 0, -1e30);
  ck_assert(!judged(&b));
  finish(&b);
}
END_TEST

/* One unit in the last place is a fault where nothing may round. */
START_TEST(exact_cases_compare_bits) {
  static const char *const ids[] = {"decode:bf16:h4,len=32,dist=onehot",
                                    "decode:bf16:h4,len=32,dist=exact",
                                    "matmul:bf16:m4,n4,k8,dist=exact"};
  for (int i = 0; i < 3; i++) {
    bench b = begin(ids[i], MLA_T_OUT);
    int64_t first = 0;
    while (mla_get(b.got, MLA_BF16, first) == 0) first++;
    ck_assert_int_ne(b.v.compare[MLA_T_OUT], MLA_COMPARE_BUDGET);
    uint16_t word;
    memcpy(&word, b.got + 2 * first, sizeof word);
    word ^= 1;
    memcpy(b.got + 2 * first, &word, sizeof word);
    ck_assert_msg(!judged(&b), "%s: bits 0x%04x", ids[i], word);
    finish(&b);
  }
}
END_TEST

/* A sum that is not quite 0 after a merge is no fault. */
START_TEST(exact_sums_may_err_in_f32) {
  bench b = begin("decode:bf16:h4,len=32,dist=exact", MLA_T_OUT);
  int64_t first = 0, n = mla_tensor_count(&b.v.tensor[MLA_T_OUT]);
  while (first < n && mla_get(b.got, MLA_BF16, first) != 0) first++;
  ck_assert_int_lt(first, n);
  mla_put(b.got, MLA_BF16, first, 2e-7);
  ck_assert(judged(&b));
  mla_put(b.got, MLA_BF16, first, 1.0 / 32);
  ck_assert(!judged(&b));
  finish(&b);
}
END_TEST

START_TEST(bytes_are_compared) {
  bench b = begin("kv_write:bf16:n9,page4,nb3,l64,r8,gap=8", MLA_T_CACHE);
  const mla_tensor *t = &b.v.tensor[MLA_T_CACHE];
  b.got[2 * mla_at3(t, 1, 2, 5)] ^= 1;
  ck_assert(!judged(&b));
  ck_assert_int_eq(b.o.bad, 1);
  ck_assert_str_eq(b.o.at, "block 1, offset 2, dim 5");
  finish(&b);
  b = begin("kv_write:bf16:n9,page4,nb3,l64,r8,gap=8", MLA_T_CACHE);
  b.got[2 * (mla_at3(t, 0, 3, 71) + 1)] ^= 1;
  ck_assert(!judged(&b));
  ck_assert_ptr_nonnull(strstr(b.o.outside, "in a gap"));
  finish(&b);
}
END_TEST

/* Any NaN equals any other in a plain cache. */
START_TEST(nan_is_a_class) {
  bench b = begin("kv_write:f32:n40,page16,nb3,l64,r8,dist=edge", MLA_T_CACHE);
  int64_t n = mla_tensor_extent(&b.v.tensor[MLA_T_CACHE]) / 4, i = 0;
  while (i < n && !mla_isnan(mla_get(b.got, MLA_F32, i))) i++;
  ck_assert_int_lt(i, n);
  memset(b.got + 4 * i, 0xff, 4);
  ck_assert(judged(&b));
  memset(b.got + 4 * i, 0, 4);
  ck_assert(!judged(&b));
  finish(&b);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("comparison");
  TCase *tcase = tcase_create("compare");
  tcase_add_test(tcase, the_right_answer_passes);
  tcase_add_test(tcase, one_value_is_found_and_named);
  tcase_add_test(tcase, a_head_is_named_as_one);
  tcase_add_test(tcase, the_budget_is_the_line);
  tcase_add_test(tcase, nan_and_infinity_never_pass);
  tcase_add_test(tcase, what_overflows_is_infinite);
  tcase_add_test(tcase, an_expected_nan_must_be_one);
  tcase_add_test(tcase, what_was_not_written_shows);
  tcase_add_test(tcase, gaps_and_padding_rows_stay);
  tcase_add_test(tcase, empty_rows_have_one_lse);
  tcase_add_test(tcase, exact_cases_compare_bits);
  tcase_add_test(tcase, exact_sums_may_err_in_f32);
  tcase_add_test(tcase, bytes_are_compared);
  tcase_add_test(tcase, nan_is_a_class);
  suite_add_tcase(suite, tcase);
  return check_main(suite);
}
