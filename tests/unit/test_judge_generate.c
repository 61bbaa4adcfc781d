/* Data of cases: poison where nobody may read, numbers as they were asked. */
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "dmath.h"
#include "dtype.h"
#include "expect.h"
#include "generate_fixture.h"
#include "problem_check.h"
#include "suite.h"
#include "tensor.h"

static double at(const mla_vector *v, int slot, int64_t offset) {
  return mla_get(v->tensor[slot].data, v->tensor[slot].dtype, offset);
}

static int64_t index_at(const mla_vector *v, int slot, int64_t offset) {
  return mla_get_int(v->tensor[slot].data, v->tensor[slot].dtype, offset);
}

/* Every generated call is lawful: all of smoke, whatever the poison. */
START_TEST(calls_are_lawful) {
  static const mla_poison poisons[] = {MLA_POISON_NAN, MLA_POISON_LARGE,
                                       MLA_POISON_ZERO};
  mla_suite smoke;
  ck_assert_int_eq(mla_suite_load("smoke", &smoke, NULL), MLA_OK);
  for (int64_t i = 0; i < smoke.count; i++) {
    if (strchr(smoke.entry[i].id, '!')) continue;
    for (int k = 0; k < 3; k++) {
      mla_vector v;
      mla_error err = mla_error_init();
      mla_answer any = mla_answer_init();
      make_vector(smoke.entry[i].id, poisons[k], &v);
      mla_args args = mla_vector_args(&v);
      mla_limits limits = mla_vector_limits(&v);
      mla_status status = mla_limits_check(&v.problem, &limits, &err);
      if (status == MLA_OK)
        status = mla_args_check(&v.problem, &limits, &any, &args, 1, &err);
      ck_assert_msg(status == MLA_OK, "%s: %s", v.id, err.message);
      mla_vector_free(&v);
    }
  }
  mla_suite_free(&smoke);
}
END_TEST

START_TEST(a_call_is_a_function_of_its_name) {
  mla_vector a, b;
  make_vector("decode:bf16:b2,h3,q2,page16,len=20+9,strides=odd",
              MLA_POISON_NAN, &a);
  make_vector("decode:bf16:b2,h3,q2,page16,len=20+9,strides=odd",
              MLA_POISON_NAN, &b);
  for (int s = 0; s < MLA_T_COUNT; s++) {
    ck_assert_int_eq(a.role[s], b.role[s]);
    if (a.role[s])
      ck_assert_mem_eq(a.tensor[s].data, b.tensor[s].data,
                       (size_t)mla_tensor_extent(&a.tensor[s]));
  }
  mla_vector_free(&a);
  mla_vector_free(&b);
}
END_TEST

/* Tails of pages, unused pages, gaps, padding rows, unused table entries. */
START_TEST(what_must_not_be_read_is_poison) {
  mla_vector v;
  make_vector(
      "decode:f32:b2,h1,q1,page4,len=5+3,l8,r4,width=2,tail=1,gap=3,"
      "strides=odd",
      MLA_POISON_NAN, &v);
  const mla_tensor *cache = &v.tensor[MLA_T_CACHE];
  const mla_tensor *table = &v.tensor[MLA_T_BLOCK_TABLE];
  const mla_tensor *q = &v.tensor[MLA_T_Q];
  int64_t lens[2] = {5, 3}, finite = 0;
  for (int64_t b = 0; b < 2; b++)
    for (int64_t j = 0; j < 8; j++) {
      int64_t block = index_at(&v, MLA_T_BLOCK_TABLE, mla_at2(table, b, j / 4));
      if (j >= lens[b] && (block < 0 || block >= cache->shape[0])) continue;
      for (int64_t d = 0; d < 12; d++) {
        double x = at(&v, MLA_T_CACHE, mla_at3(cache, block, j % 4, d));
        ck_assert_int_eq(mla_isnan(x) != 0, j >= lens[b]);
      }
    }
  for (int64_t i = 0; i < mla_tensor_extent(cache) / 4; i++)
    finite += !mla_isnan(at(&v, MLA_T_CACHE, i));
  ck_assert_int_eq(finite, (5 + 3) * 12);
  for (int64_t b = 0; b < 2; b++)
    for (int64_t w = b ? 1 : 2; w < table->shape[1]; w++) {
      int64_t block = index_at(&v, MLA_T_BLOCK_TABLE, mla_at2(table, b, w));
      ck_assert(block < 0 || block >= cache->shape[0]);
    }
  for (int64_t d = 0; d < q->shape[2]; d++) {
    ck_assert(!mla_isnan(at(&v, MLA_T_Q, mla_at3(q, 1, 0, d))));
    ck_assert(mla_isnan(at(&v, MLA_T_Q, mla_at3(q, 2, 0, d))));
  }
  const unsigned char *out = v.tensor[MLA_T_OUT].data;
  for (int64_t i = 0; i < mla_tensor_extent(&v.tensor[MLA_T_OUT]); i++)
    ck_assert_int_eq(out[i], 0xff);
  mla_vector_free(&v);
}
END_TEST

/* ------------------------------------------------------------ regrouping */

static int same_answers(const char *a, const char *b) {
  mla_vector va, vb;
  int64_t na, nb;
  make_vector(a, MLA_POISON_NAN, &va);
  make_vector(b, MLA_POISON_NAN, &vb);
  double *xa = expected_of(&va, MLA_T_OUT, &na);
  double *xb = expected_of(&vb, MLA_T_OUT, &nb);
  int same = na == nb && memcmp(xa, xb, (size_t)na * sizeof *xa) == 0;
  free(xa);
  free(xb);
  mla_vector_free(&va);
  mla_vector_free(&vb);
  return same;
}

/* A benchmark asks four rows of each of four tokens, both ends among them; all
   of what costs little. */
START_TEST(few_rows_are_asked) {
  mla_vector v;
  mla_expectation e;
  mla_error err = mla_error_init();
  make_vector("decode:f32:b6,h16,q1,page16,len=2000", MLA_POISON_NAN, &v);
  ck_assert_int_eq(mla_expectation_few(&v, NULL, &e, &err), MLA_OK);
  ck_assert_int_eq(e.rows, 16);
  ck_assert_int_eq(e.rows_total, 6 * 16);
  ck_assert_int_eq(e.row[0], 0);
  ck_assert_int_eq(e.row[15], 6 * 16 - 1);
  mla_expectation_free(&e);
  mla_vector_free(&v);
  make_vector("decode:f32:b6,h16,q1,page16,len=20", MLA_POISON_NAN, &v);
  ck_assert_int_eq(mla_expectation_few(&v, NULL, &e, &err), MLA_OK);
  ck_assert_int_eq(e.rows, 6 * 16);
  mla_expectation_free(&e);
  mla_vector_free(&v);
}
END_TEST

/* The same requests in other pages, strides and limits ask the same. */
START_TEST(layout_is_not_part_of_the_question) {
  const char *base = "decode:f32:b2,h3,q2,page16,len=20+9,l64,r8";
  static const char *const others[] = {
      "decode:f32:b2,h3,q2,page1,len=20+9,l64,r8",
      "decode:f32:b2,h3,q2,page53,len=20+9,l64,r8,pages=reversed",
      "decode:f32:b2,h3,q2,page16,len=20+9,l64,r8,strides=odd,gap=5",
      "decode:f32:b2,h3,q2,page16,len=20+9,l64,r8,strides=turned,unaligned",
      "decode:f32:b2,h3,q2,page16,len=20+9,l64,r8,limit=5000",
      "decode:f32:b2,h3,q2,page16,len=20+9,l64,r8,width=4,spare=9,loose",
      "decode:f32:b2,h3,q2,page16,len=20+9,l64,r8,splits=7"};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    ck_assert_msg(same_answers(base, others[i]), "%s", others[i]);
}
END_TEST

/* A head's tokens lie together; what has no heads stays as it was. */
START_TEST(turned_axes_change_places) {
  mla_vector v;
  make_vector("decode:f32:b2,h3,q=2+5,page16,len=20+9,strides=turned",
              MLA_POISON_NAN, &v);
  const mla_tensor *q = &v.tensor[MLA_T_Q], *lse = &v.tensor[MLA_T_LSE];
  ck_assert_int_eq(q->stride[0], 576);
  ck_assert_int_eq(q->stride[1], 7 * 576);
  ck_assert_int_eq(v.tensor[MLA_T_OUT].stride[1], 7 * 512);
  ck_assert_int_eq(lse->stride[0], 3);
  ck_assert_int_eq(lse->stride[1], 1);
  mla_vector_free(&v);
}
END_TEST

/* Every other request's keys are NaN, the others' answers what they were. */
START_TEST(spoiled_requests_have_no_meaning) {
  mla_vector v;
  int64_t count;
  make_vector("decode:f32:b4,h2,q=1+2+1+3,page4,len=9+7+5+2,l8,r4,dist=nan",
              MLA_POISON_ZERO, &v);
  double *out = expected_of(&v, MLA_T_OUT, &count);
  ck_assert_int_eq(count, 7 * 2 * 8);
  for (int64_t i = 0; i < count; i++) {
    int64_t token = i / 16;
    int spoiled = token == 1 || token == 2 || token == 5 || token == 6;
    ck_assert_int_eq(mla_isnan(out[i]) != 0, spoiled); /* 4 sees no key */
  }
  free(out);
  mla_vector_free(&v);
}
END_TEST

/* Which request a token is of, where some have none. */
START_TEST(tokens_have_a_request) {
  mla_vector v;
  static const int64_t owner[] = {1, 1, 4, 5, 5, 5, -1, -1};
  static const int64_t within[] = {0, 1, 0, 0, 1, 2, 6, 7};
  make_vector("decode:f32:b7,h1,q=0+2+0+0+1+3+0,page4,len=5,tail=2",
              MLA_POISON_NAN, &v);
  for (int64_t t = 0; t < 8; t++) {
    int64_t at;
    ck_assert_int_eq(mla_vector_request(&v, t, &at), owner[t]);
    ck_assert_int_eq(at, within[t]);
  }
  mla_vector_free(&v);
}
END_TEST

/* A mask that changes nothing is not tested: causal and not must differ. */
START_TEST(masks_matter) {
  ck_assert(!same_answers("decode:f32:b1,h2,q2,page16,len=9,l64,r8",
                          "decode:f32:b1,h2,q2,page16,len=9,l64,r8,full"));
  ck_assert(!same_answers("prefill:f32:h2,q4,l64,r8,p16,v32",
                          "prefill:f32:h2,q4,l64,r8,p16,v32,full"));
}
END_TEST

/* ---------------------------------------------------------- distributions */

static void load_row(const mla_vector *v, int slot, int64_t offset, int64_t n,
                     double *row) {
  for (int64_t d = 0; d < n; d++) row[d] = at(v, slot, offset + d);
}

/* Largest probability of row (request 0, last token, head h) of a decode. */
static double largest_probability(const mla_vector *v, int64_t h) {
  const mla_tensor *q = &v->tensor[MLA_T_Q], *cache = &v->tensor[MLA_T_CACHE];
  const mla_tensor *table = &v->tensor[MLA_T_BLOCK_TABLE];
  int64_t width = q->shape[2], page = v->problem.block_size;
  int64_t n = index_at(v, MLA_T_SEQ_LENS, 0);
  double x[1024], y[1024], most = -1e300, sum = 0;
  double *score = malloc((size_t)n * sizeof *score);
  load_row(v, MLA_T_Q, mla_at3(q, 0, h, 0), width, x);
  for (int64_t j = 0; j < n; j++) {
    int64_t block = index_at(v, MLA_T_BLOCK_TABLE, mla_at2(table, 0, j / page));
    load_row(v, MLA_T_CACHE, mla_at3(cache, block, j % page, 0), width, y);
    score[j] = 0;
    for (int64_t d = 0; d < width; d++) score[j] += x[d] * y[d];
    score[j] *= v->problem.scale;
    if (score[j] > most) most = score[j];
  }
  for (int64_t j = 0; j < n; j++) sum += mla_exp(score[j] - most);
  free(score);
  return 1 / sum;
}

static double mean_probability(const char *id) {
  mla_vector v;
  double sum = 0;
  make_vector(id, MLA_POISON_NAN, &v);
  int64_t heads = v.problem.num_heads;
  for (int64_t h = 0; h < heads; h++) sum += largest_probability(&v, h);
  mla_vector_free(&v);
  return sum / (double)heads;
}

/* Three amplitudes: flat, ordinary, and one with most rows near 1. */
START_TEST(amplitudes_span_flat_to_peaked) {
  double flat = mean_probability("decode:bf16:h32,q1,page64,len=200,amp=0.25");
  double plain = mean_probability("decode:bf16:h32,q1,page64,len=200");
  double peaked = mean_probability("decode:bf16:h32,q1,page64,len=200,amp=8");
  ck_assert_msg(flat < 3.0 / 200, "flat %g", flat);
  ck_assert_msg(plain > 0.03 && plain < 0.6, "plain %g", plain);
  ck_assert_msg(peaked > 0.7, "peaked %g", peaked);
  double steep = mean_probability("decode:bf16:h32,q1,page64,len=200,amp=50");
  ck_assert_msg(steep > 0.9, "steep %g", steep);
  /* amp says what scores are like, whatever the scale and the sizes */
  double scaled =
      mean_probability("decode:bf16:h32,q1,page64,len=200,scale=3.7,amp=0.25");
  double narrow =
      mean_probability("decode:bf16:h32,q1,page64,len=200,l48,r16,amp=0.25");
  ck_assert_msg(scaled < 3.0 / 200 && narrow < 3.0 / 200, "%g %g", scaled,
                narrow);
}
END_TEST

START_TEST(needles_have_most_weight) {
  double needle =
      mean_probability("decode:bf16:h64,q1,page64,len=200,dist=needle");
  ck_assert_msg(needle > 0.6 && needle < 0.99, "needle %g", needle);
}
END_TEST

/* Cases that are compared bit for bit must leave nothing to round: what is
   expected is a number of the output's type, but for what keys with a
   probability of e^-100 and less add. */
static void is_representable(const char *id) {
  mla_vector v;
  int64_t n;
  make_vector(id, MLA_POISON_NAN, &v);
  double *x = expected_of(&v, MLA_T_OUT, &n);
  for (int64_t i = 0; i < n; i++)
    REQUIRE(mla_fabs(mla_round_to(v.problem.out_dtype, x[i]) - x[i]) < 1e-40,
            "%s: value %lld is %.17g", id, (long long)i, x[i]);
  free(x);
  mla_vector_free(&v);
}

START_TEST(onehot_cases_are_exact) {
  int seen = 0;
  for (int i = 0; mla_suite_builtin(i); i++) {
    mla_suite suite;
    if (strcmp(mla_suite_builtin(i), "big") == 0) continue;
    ck_assert_int_eq(mla_suite_load(mla_suite_builtin(i), &suite, NULL),
                     MLA_OK);
    for (int64_t k = 0; k < suite.count; k++) {
      const char *id = suite.entry[k].id;
      if (strncmp(id, "decode", 6) != 0 || !strstr(id, "dist=onehot")) continue;
      if (strstr(id, ":f32:") || strstr(id, ":f64:")) continue;
      is_representable(id);
      seen++;
    }
    mla_suite_free(&suite);
  }
  ck_assert_int_ge(seen, 5);
}
END_TEST

/* With few columns other keys weigh too, and bits are not asked for. */
START_TEST(onehot_of_few_columns_has_a_budget) {
  mla_vector v;
  make_vector("decode:f16:b1,h2,q2,page1,len=34,l1,r2,dist=onehot",
              MLA_POISON_NAN, &v);
  ck_assert_int_eq(v.compare[MLA_T_OUT], MLA_COMPARE_BUDGET);
  mla_vector_free(&v);
  make_vector("decode:f16:b1,h2,q2,page1,len=34,l62,r2,dist=onehot",
              MLA_POISON_NAN, &v);
  ck_assert_int_eq(v.compare[MLA_T_OUT], MLA_COMPARE_BITS);
  mla_vector_free(&v);
}
END_TEST

/* Each row of a one-hot case has a key of its own: all positions get a turn. */
START_TEST(onehot_rows_spread) {
  mla_vector v;
  int64_t n, distinct = 0;
  make_vector("decode:bf16:b1,h64,q1,page53,len=64,dist=onehot", MLA_POISON_NAN,
              &v);
  double *x = expected_of(&v, MLA_T_OUT, &n);
  int64_t width = n / 64;
  for (int64_t a = 0; a < 64; a++) {
    int fresh = 1;
    for (int64_t b = 0; b < a; b++)
      fresh &= memcmp(x + a * width, x + b * width, 16 * sizeof *x) != 0;
    distinct += fresh;
  }
  ck_assert_int_eq(distinct, 64);
  free(x);
  mla_vector_free(&v);
}
END_TEST

/* ------------------------------------------------------------ other indices */

START_TEST(slots_have_holes_and_no_twins) {
  mla_vector v;
  int64_t holes = 0;
  char used[80] = {0};
  make_vector("kv_write:bf16:n37,page16,nb5,slots=holes", MLA_POISON_NAN, &v);
  for (int64_t i = 0; i < 37; i++) {
    int64_t slot = index_at(&v, MLA_T_SLOT_MAPPING, i);
    holes += slot < 0;
    if (slot < 0) continue;
    ck_assert_int_lt(slot, 80);
    ck_assert_int_eq(used[slot]++, 0);
  }
  ck_assert_int_gt(holes, 8);
  ck_assert_int_eq(index_at(&v, MLA_T_SLOT_MAPPING, 0), -1);
  ck_assert_int_eq(index_at(&v, MLA_T_SLOT_MAPPING, 36), -1);
  mla_vector_free(&v);
  make_vector("kv_write:bf16:n9,page4,nb3,slots=short", MLA_POISON_NAN, &v);
  ck_assert_int_eq(v.tensor[MLA_T_SLOT_MAPPING].shape[0], 5);
  mla_vector_free(&v);
}
END_TEST

START_TEST(copies_within_a_cache_do_not_chain) {
  mla_vector v;
  char target[9] = {0};
  make_vector("kv_copy:f32:nb9,copies4,page5,l48,r16,within", MLA_POISON_NAN,
              &v);
  ck_assert_ptr_eq(v.tensor[MLA_T_SRC_CACHE].data, v.tensor[MLA_T_CACHE].data);
  for (int64_t i = 0; i < 4; i++)
    target[index_at(&v, MLA_T_BLOCK_MAPPING, 2 * i + 1)]++;
  for (int64_t i = 0; i < 4; i++)
    ck_assert_int_eq(target[index_at(&v, MLA_T_BLOCK_MAPPING, 2 * i)], 0);
  for (int i = 0; i < 9; i++) ck_assert_int_le(target[i], 1);
  mla_vector_free(&v);
}
END_TEST

START_TEST(empty_parts_are_infinite_and_poison) {
  mla_vector v;
  int signs[2] = {0, 0};
  make_vector("merge:f32:n5,h8,s7,v16,empty=some", MLA_POISON_NAN, &v);
  const mla_tensor *l = &v.tensor[MLA_T_PART_LSES];
  for (int64_t i = 0; i < mla_tensor_count(l); i++) {
    double lse = at(&v, MLA_T_PART_LSES, i);
    int inf = mla_isinf(lse);
    if (inf) signs[inf > 0]++;
    for (int64_t d = 0; d < 16; d++)
      ck_assert_int_eq(mla_isnan(at(&v, MLA_T_PARTS, i * 16 + d)) != 0,
                       inf != 0);
  }
  ck_assert_int_gt(signs[0], 10);
  ck_assert_int_gt(signs[1], 10);
  mla_vector_free(&v);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("generated data");
  TCase *tcase = tcase_create("generate");
  tcase_set_timeout(tcase, 120);
  tcase_add_test(tcase, calls_are_lawful);
  tcase_add_test(tcase, a_call_is_a_function_of_its_name);
  tcase_add_test(tcase, what_must_not_be_read_is_poison);
  tcase_add_test(tcase, few_rows_are_asked);
  tcase_add_test(tcase, layout_is_not_part_of_the_question);
  tcase_add_test(tcase, turned_axes_change_places);
  tcase_add_test(tcase, spoiled_requests_have_no_meaning);
  tcase_add_test(tcase, tokens_have_a_request);
  tcase_add_test(tcase, masks_matter);
  tcase_add_test(tcase, amplitudes_span_flat_to_peaked);
  tcase_add_test(tcase, needles_have_most_weight);
  tcase_add_test(tcase, onehot_cases_are_exact);
  tcase_add_test(tcase, onehot_of_few_columns_has_a_budget);
  tcase_add_test(tcase, onehot_rows_spread);
  tcase_add_test(tcase, slots_have_holes_and_no_twins);
  tcase_add_test(tcase, copies_within_a_cache_do_not_chain);
  tcase_add_test(tcase, empty_parts_are_infinite_and_poison);
  suite_add_tcase(suite, tcase);
  return check_main(suite);
}
