/*
 * Lists of sparse attention: the holes, strangers and repetitions that a case
 * asks for, in every batch alike.
 */
#include <stdlib.h>
#include <string.h>

#include "case_sparse.h"
#include "check_main.h"
#include "dmath.h"
#include "dtype.h"
#include "expect.h"
#include "generate_fixture.h"
#include "problem_check.h"
#include "tensor.h"

static void make(const char *id, mla_vector *v) {
  make_vector(id, MLA_POISON_NAN, v);
}

static int64_t entry(const mla_vector *v, int slot, int64_t token, int64_t i) {
  const mla_tensor *t = &v->tensor[slot];
  return mla_get_int(t->data, t->dtype, mla_at2(t, token, i));
}

/* Slots that lie in the cache, of a row. */
static int64_t inside(const mla_vector *v, int64_t token, int64_t from,
                      int64_t end) {
  const mla_tensor *cache = &v->tensor[MLA_T_CACHE];
  int64_t n = 0;
  for (int64_t i = from; i < end; i++) {
    int64_t slot = entry(v, MLA_T_INDICES, token, i);
    n += slot >= 0 && slot < cache->shape[0] * cache->shape[1];
  }
  return n;
}

static int64_t times(const mla_vector *v, int64_t token, int64_t value) {
  int64_t n = 0;
  for (int64_t i = 0; i < v->problem.topk; i++)
    n += entry(v, MLA_T_INDICES, token, i) == value;
  return n;
}

#define BASE "decode:f32:b2,h1,q=1+2,page4,len=11+30,topk=24,l8,r4"

START_TEST(a_selector_leaves_holes_only_behind) {
  mla_vector v;
  make(BASE, &v);
  ck_assert_int_eq((int)(v.problem.flags & (MLA_SPARSE | MLA_CAUSAL)),
                   (int)MLA_SPARSE);
  ck_assert_int_eq((int)inside(&v, 0, 0, 11), 11);
  for (int64_t i = 11; i < 24; i++)
    ck_assert_int_eq((int)entry(&v, MLA_T_INDICES, 0, i), -1);
  for (int64_t t = 1; t < 3; t++)
    ck_assert_int_eq((int)inside(&v, t, 0, 24), 24);
  for (int64_t t = 0; t < 3; t++)
    for (int64_t i = 0; i < (t ? 24 : 11); i++)
      ck_assert_int_eq((int)times(&v, t, entry(&v, MLA_T_INDICES, t, i)), 1);
  mla_vector_free(&v);
}
END_TEST

START_TEST(holes_and_strangers_stand_between) {
  mla_vector v;
  int64_t below = 0, above = 0, just = 0;
  make(BASE ",lists=holes", &v);
  int64_t end = v.tensor[MLA_T_CACHE].shape[0] * 4;
  for (int64_t t = 0; t < 3; t++) {
    ck_assert_int_eq((int)entry(&v, MLA_T_INDICES, t, 0), -1);
    for (int64_t i = 0; i < 24; i++) {
      int64_t slot = entry(&v, MLA_T_INDICES, t, i);
      below += slot < -1;
      above += slot >= end;
      just += slot == end;
    }
    ck_assert_int_ge((int)inside(&v, t, 0, 24), 8);
  }
  ck_assert(below > 0 && above > 0 && just > 0);
  mla_vector_free(&v);
}
END_TEST

START_TEST(other_patterns_are_what_they_say) {
  mla_vector v;
  make(BASE ",lists=late", &v);
  ck_assert_int_eq((int)inside(&v, 2, 0, 18), 0);
  ck_assert_int_eq((int)inside(&v, 2, 18, 24), 6);
  mla_vector_free(&v);
  make(BASE ",lists=repeat", &v);
  ck_assert_int_eq((int)times(&v, 2, entry(&v, MLA_T_INDICES, 2, 0)), 2);
  ck_assert_int_eq((int)times(&v, 1, entry(&v, MLA_T_INDICES, 1, 0)), 3);
  mla_vector_free(&v);
  make(BASE ",lists=rows", &v);
  ck_assert_int_eq((int)inside(&v, 0, 0, 24), 11);
  ck_assert_int_eq((int)times(&v, 1, -1), 24);
  mla_vector_free(&v);
  make(BASE ",lists=none", &v);
  for (int64_t t = 0; t < 3; t++)
    ck_assert_int_eq((int)inside(&v, t, 0, 24), 0);
  mla_vector_free(&v);
}
END_TEST

/* What stands past a list's length would be taken for a key, and is NaN. */
START_TEST(lengths_end_before_poison) {
  mla_vector v;
  int seen = 0;
  make("decode:f32:b5,h1,q1,page4,len=40,topk=6,l8,r4,tlen", &v);
  const mla_tensor *cache = &v.tensor[MLA_T_CACHE];
  const mla_tensor *length = &v.tensor[MLA_T_TOPK_LEN];
  for (int64_t t = 0; t < 5; t++) {
    int64_t n = mla_get_int(length->data, MLA_I32, mla_at1(length, t));
    ck_assert(n >= 0 && n <= 6);
    seen |= 1 << n;
    ck_assert_int_eq((int)inside(&v, t, 0, 6), 6);
    for (int64_t i = n; i < 6; i++) {
      int64_t slot = entry(&v, MLA_T_INDICES, t, i);
      ck_assert(mla_isnan(
          mla_get(cache->data, MLA_F32, mla_at2(cache, slot / 4, slot % 4))));
    }
  }
  ck_assert_int_eq(seen, 1 << 0 | 1 << 1 | 1 << 3 | 1 << 5 | 1 << 6);
  mla_vector_free(&v);
}
END_TEST

/* Padding rows attend to nothing, whatever the poison. */
START_TEST(padding_rows_list_nothing) {
  static const mla_poison poisons[] = {MLA_POISON_NAN, MLA_POISON_LARGE,
                                       MLA_POISON_ZERO};
  mla_vector v;
  make_vector(BASE ",tail=2,extra=3", poisons[_i], &v);
  for (int64_t t = 3; t < 5; t++) {
    ck_assert_int_eq((int)times(&v, t, -1), 24);
    for (int64_t i = 0; i < 3; i++)
      ck_assert_int_eq((int)entry(&v, MLA_T_EXTRA_INDICES, t, i), -1);
  }
  ck_assert_int_eq((int)v.tensor[MLA_T_OUT].shape[0], 5);
  mla_vector_free(&v);
}
END_TEST

/* ----------------------------------------------------------------- grouping */

static const struct {
  const char *id, *other;
  int slot;
} same[] = {
    {BASE ",lists=holes,extra=5",
     BASE ",lists=holes,extra=5,pages=reversed,strides=odd,spare=7", MLA_T_OUT},
    {"decode:f32:b1,h1,q1,page4,len=11,topk=24,l8,r4,lists=holes,extra=5",
     BASE ",lists=holes,extra=5", MLA_T_OUT},
    {"index:f32:b1,h2,q3,page4,len=30,topk=8,d=16",
     "index:f32:b2,h2,q=3+1,page4,len=30+5,topk=8,d=16,pages=inorder,tail=2",
     MLA_T_POSITIONS},
};

START_TEST(rows_keep_their_lists_in_any_batch) {
  mla_vector a, b;
  int64_t n, m;
  make(same[_i].id, &a);
  make(same[_i].other, &b);
  double *x = expected_of(&a, same[_i].slot, &n);
  double *y = expected_of(&b, same[_i].slot, &m);
  ck_assert(n > 0 && m >= n);
  ck_assert_mem_eq(x, y, (size_t)n * sizeof *x);
  free(x);
  free(y);
  mla_vector_free(&a);
  mla_vector_free(&b);
}
END_TEST

/* Logits of both signs, and more positions than are hidden. */
START_TEST(logits_have_both_signs) {
  mla_vector v;
  int64_t n, below = 0, above = 0, hidden = 0;
  make("index:bf16:b2,h2,q3,page4,len=30+9,topk=8,d=16,logits,room=3", &v);
  double *x = expected_of(&v, MLA_T_LOGITS, &n);
  for (int64_t i = 0; i < n; i++) {
    below += x[i] < 0 && !mla_isinf(x[i]);
    above += x[i] > 0;
    hidden += mla_isinf(x[i]) < 0;
  }
  ck_assert(below > 10 && above > 10);
  ck_assert_int_eq((int)hidden, 6 * 33 - (28 + 29 + 30) - (7 + 8 + 9));
  free(x);
  mla_vector_free(&v);
}
END_TEST

/* -------------------------------------------------------------- refusals */

static const char *const contradictions[] = {
    "decode:f32:b1,h1,q1,page4,len=3,extra=4",
    "decode:f32:b1,h1,q1,page4,len=3,lists=holes",
    "decode:f32:b1,h1,q1,page4,len=3,topk=4,full",
    "decode:f32:b1,h1,q1,page4,len=3,topk=4,sepv",
    "decode:f32:b1,h1,q1,page4,len=3,topk=4,xpage=2",
    "decode:f32:b1,h1,q1,page4,len=3,topk=4,dist=exact",
    "decode:fp8_index:b1,h1,q1,page4,len=3",
    "index:fp8_584:b1,h1,q1,page4,len=3,topk=4",
    "index:fp8_index:b1,h1,q1,page4,len=3,topk=4,d=30",
    "index:f32:b1,h1,q1,page4,len=3,topk=0",
    "kv_write:fp8_index:n3,page4,nb2,l128",
    "map_indices:fp8_e4m3:b1,q1,page4,len=3,topk=4",
};

START_TEST(contradictions_are_told) {
  mla_case c;
  mla_error err = mla_error_init();
  ck_assert_msg(
      mla_case_parse(contradictions[_i], &c, &err) == MLA_INVALID_ARGUMENT,
      "%s is taken", contradictions[_i]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("generate_sparse");
  TCase *tests = tcase_create("generate_sparse");
  tcase_add_test(tests, a_selector_leaves_holes_only_behind);
  tcase_add_test(tests, holes_and_strangers_stand_between);
  tcase_add_test(tests, other_patterns_are_what_they_say);
  tcase_add_test(tests, lengths_end_before_poison);
  tcase_add_loop_test(tests, padding_rows_list_nothing, 0, 3);
  tcase_add_loop_test(tests, rows_keep_their_lists_in_any_batch, 0,
                      (int)(sizeof same / sizeof same[0]));
  tcase_add_test(tests, logits_have_both_signs);
  tcase_add_loop_test(tests, contradictions_are_told, 0,
                      (int)(sizeof contradictions / sizeof contradictions[0]));
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
