/* Shrinking: by rules that are known, and on the planted backend. */
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "explain.h"
#include "planted.h"
#include "registry.h"
#include "shrink.h"

static mla_case parse(const char *id) {
  mla_case c;
  mla_error err = mla_error_init();
  ck_assert_msg(mla_case_parse(id, &c, &err) == MLA_OK, "%s", err.message);
  return c;
}

static void shrinks_to(const char *id, int (*fails)(void *, const mla_case *),
                       int gently, const char *wanted) {
  char got[MLA_CASE_ID_MAX];
  mla_case c = parse(id);
  mla_shrunk shrunk;
  mla_shrink_how how = {fails, NULL, 60, gently};
  mla_shrink(&c, 0, &how, &shrunk);
  mla_case_print(&shrunk.smallest, got, sizeof got);
  ck_assert_str_eq(got, wanted);
}

static int always(void *context, const mla_case *c) {
  (void)context;
  (void)c;
  return 1;
}

static int never(void *context, const mla_case *c) {
  (void)context;
  (void)c;
  return 0;
}

static int longer_than_a_page(void *context, const mla_case *c) {
  (void)context;
  for (int64_t b = 0; b < c->num[MLA_K_REQUESTS]; b++)
    if (mla_case_at(c, MLA_K_LEN, b) > c->num[MLA_K_PAGE]) return 1;
  return 0;
}

/* Needs an empty request before one that is not. */
static int after_an_empty_one(void *context, const mla_case *c) {
  (void)context;
  for (int64_t b = 0; b + 1 < c->num[MLA_K_REQUESTS]; b++)
    if (mla_case_at(c, MLA_K_LEN, b) == 0 &&
        mla_case_at(c, MLA_K_LEN, b + 1) > 0)
      return 1;
  return 0;
}

static int wide_in_many_heads(void *context, const mla_case *c) {
  (void)context;
  return c->num[MLA_K_HEADS] > 16 && c->num[MLA_K_LORA] >= 100 &&
         c->num[MLA_K_SINK];
}

START_TEST(everything_goes_that_can) {
  shrinks_to(
      "decode:bf16:b3,h128,q=4+1+2,page64,len=4000+1+70,l512,r64,base2,"
      "sink,splits=7,pages=reversed,strides=odd,tail=3,loose",
      always, 0, "decode:bf16:b1,h1,q1,page1,len=0,l1,r1");
  shrinks_to("prefill:bf16:b2,h5,q=20+9,page16,ctx=33+12,chunk=16", always, 0,
             "prefill:bf16:b1,h1,q1,page1,ctx=0,l1,r1,p1,v1");
  shrinks_to("matmul:bf16:m17,n48,k256,strides=odd", always, 0,
             "matmul:bf16:m1,n1,k1");
}
END_TEST

START_TEST(nothing_goes_that_must_stay) {
  static const char id[] = "decode:bf16:b3,h4,q1,page16,len=40+0+17,l64,r8";
  shrinks_to(id, never, 0, id);
}
END_TEST

START_TEST(what_a_failure_needs_stays) {
  shrinks_to("decode:bf16:b4,h16,q1,page64,len=65+64+0+1023",
             longer_than_a_page, 0, "decode:bf16:b1,h1,q1,page1,len=2,l1,r1");
  shrinks_to("decode:bf16:b5,h4,q1,page16,len=40+7+0+17+5,l64,r8",
             after_an_empty_one, 0, "decode:bf16:b2,h1,q1,page1,len=0+1,l1,r1");
  shrinks_to("decode:bf16:b2,h40,q1,page16,len=40+17,sink,base2",
             wide_in_many_heads, 0,
             "decode:bf16:b1,h17,q1,page1,len=0,l100,r1,sink");
}
END_TEST

START_TEST(gently_stops_where_classes_differ) {
  shrinks_to("decode:bf16:b3,h128,q=4+1+2,page64,len=4000+1+70,sink", always, 1,
             "decode:bf16:b1,h3,q3,page64,len=33,sink");
}
END_TEST

static int lasts(void *context, const mla_case *c) {
  int *calls = context;
  (void)c;
  return ++*calls < 0;
}

START_TEST(no_case_is_begun_after_the_time) {
  int calls = 0;
  mla_case c = parse("decode:bf16:b9,h128,q1,page64,len=4000");
  mla_shrunk shrunk;
  mla_shrink_how how = {lasts, &calls, 0, 0};
  mla_shrink(&c, 0, &how, &shrunk);
  ck_assert_int_eq(shrunk.changed, 0);
  ck_assert_int_le(calls, 1);
}
END_TEST

/* -------------------------------------------------------- on the backend */

static void smallest_of(const char *options, const char *id, mla_shrunk *s,
                        mla_verdict *first) {
  mla_vector v;
  mla_device *device = NULL;
  const mla_backend *entered;
  mla_error err = mla_error_init();
  mla_judge_observer observer = {mla_explain_observe, NULL};
  mla_judge_options how = mla_judge_defaults();
  mla_case c = parse(id);
  how.observer = &observer;
  (void)mla_registry_add(mla_planted_backend(MLA_ABI_MAJOR, MLA_ABI_MINOR),
                         "test", &entered, &err);
  ck_assert_int_eq(mla_open("planted", 0, options, &device, &err), MLA_OK);
  ck_assert_int_eq(mla_generate(&c, 42, MLA_POISON_NAN, &v, &err), MLA_OK);
  mla_judge_vector(device, &v, &how, first);
  ck_assert_int_eq(first->kind, MLA_VERDICT_FAIL);
  mla_shrink_vector(device, &v, first, NULL, 60, s);
  mla_vector_free(&v);
  mla_close(device);
}

START_TEST(the_smallest_fails_alike) {
  static const struct {
    const char *options, *id, *cls;
  } row[] = {{"fault=page-tail",
              "decode:bf16:b4,h5,q1,page16,len=40+17+33+8,l64,r8", "PAGE-SIZE"},
             {"fault=heads-drop;a=4",
              "decode:bf16:b2,h10,q2,page16,len=20+9,l64,r8", "HEADS"},
             {"fault=mtp-top-left",
              "decode:bf16:b3,h4,q=3+1+4,page16,len=20+9+31", "MTP-MASK"},
             {"fault=race-row;a=2",
              "decode:bf16:b3,h4,q2,page16,len=20+9+31,l64,r8", "RACE"},
             {"fault=slot-negative", "kv_write:bf16:n37,page16,nb5,slots=holes",
              "SLOT-WRITE"}};
  mla_shrunk s;
  mla_verdict first;
  smallest_of(row[_i].options, row[_i].id, &s, &first);
  ck_assert_str_eq(first.look.cls, row[_i].cls);
  ck_assert_int_eq(s.verdict.kind, MLA_VERDICT_FAIL);
  ck_assert_str_eq(s.verdict.look.cls, row[_i].cls);
  ck_assert_int_gt(s.changed, 0);
  mla_case c = parse(row[_i].id);
  ck_assert(mla_case_bytes(&s.smallest) < mla_case_bytes(&c));
  if (mla_key_use_of(c.op, MLA_K_REQUESTS))
    ck_assert_int_eq(s.smallest.num[MLA_K_REQUESTS], 1);
}
END_TEST

/* The head that is dropped first is head 4 of 5. */
START_TEST(no_more_heads_than_needed) {
  mla_shrunk s;
  mla_verdict first;
  smallest_of("fault=heads-drop;a=4",
              "decode:bf16:b2,h10,q2,page16,len=20+9,l64,r8", &s, &first);
  ck_assert_int_eq(s.smallest.num[MLA_K_HEADS], 5);
}
END_TEST

static void add_tests(TCase *tc) {
  tcase_set_timeout(tc, 300);
  tcase_add_test(tc, everything_goes_that_can);
  tcase_add_test(tc, nothing_goes_that_must_stay);
  tcase_add_test(tc, what_a_failure_needs_stays);
  tcase_add_test(tc, gently_stops_where_classes_differ);
  tcase_add_test(tc, no_case_is_begun_after_the_time);
  tcase_add_loop_test(tc, the_smallest_fails_alike, 0, 5);
  tcase_add_test(tc, no_more_heads_than_needed);
}

int main(void) {
  Suite *suite = suite_create("shrink");
  TCase *tc = tcase_create("shrink");
  add_tests(tc);
  suite_add_tcase(suite, tc);
  return check_main(suite);
}
