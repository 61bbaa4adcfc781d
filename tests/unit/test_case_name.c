/* Names of cases: read, printed, refused with the place of the fault. */
#include <stdio.h>
#include <string.h>

#include "batch_case.h"
#include "case.h"
#include "check_main.h"
#include "suite.h"

static void canonical(const char *id, const char *expected) {
  mla_case c;
  char text[MLA_CASE_ID_MAX];
  mla_error err = mla_error_init();
  ck_assert_msg(mla_case_parse(id, &c, &err) == MLA_OK, "%s: %s", id,
                err.message);
  int n = mla_case_print(&c, text, sizeof text);
  ck_assert_str_eq(text, expected);
  ck_assert_int_eq(n, (int)strlen(expected));
}

/* Refused, the character and a word of the sentence. */
static void refused(const char *id, int character, const char *says) {
  mla_case c;
  char place[40];
  mla_error err = mla_error_init();
  ck_assert_msg(mla_case_parse(id, &c, &err) == MLA_INVALID_ARGUMENT,
                "\"%s\" is taken", id);
  ck_assert_str_eq(err.field, "case");
  snprintf(place, sizeof place, "character %d:", character);
  ck_assert_msg(!character || strstr(err.message, place), "%s: %s, not %s", id,
                err.message, place);
  ck_assert_msg(strstr(err.message, says) != NULL, "%s: %s", id, err.message);
}

START_TEST(names_are_canonical) {
  canonical("decode:bf16:b4,h128,q1,page64,len=65+64+0+1023",
            "decode:bf16:b4,h128,q1,page64,len=65+64+0+1023");
  canonical("decode:bf16:len=7,page64,q=1,h=128,b2",
            "decode:bf16:b2,h128,q1,page64,len=7");
  canonical("decode:bf16:b2,h1,q=3+3,page1,len=9+9",
            "decode:bf16:b2,h1,q3,page1,len=9");
  canonical("decode:bf16:b2,h1,q=3+4,page1,len=9",
            "decode:bf16:b2,h1,q=3+4,page1,len=9");
  canonical("decode:bf16:", "decode:bf16:b1,h1,q1,page64,len=1");
  canonical("decode:bf16:l512,r64,amp=2,spare=2,dist=bell,act=bf16,out=bf16",
            "decode:bf16:b1,h1,q1,page64,len=1");
  canonical("decode:bf16:base2,full,scale=0.10,amp=1e-3",
            "decode:bf16:b1,h1,q1,page64,len=1,scale=0.1,amp=0.001,full,"
            "base2");
  canonical("decode:fp8_ds_mla:act=bf16",
            "decode:fp8_ds_mla:b1,h1,q1,page64,len=1");
  canonical("decode:bf16:amp=1e2,scale=8e3",
            "decode:bf16:b1,h1,q1,page64,len=1,scale=8000,amp=100");
  canonical("decode:bf16:amp=1e6,scale=0.1000000001",
            "decode:bf16:b1,h1,q1,page64,len=1,scale=0.1000000001,amp=1e+06");
  canonical("prefill:bf16:b2,ctx=0", "prefill:bf16:b2,h1,q1,ctx=0");
  canonical("kv_read:f32:start=0,out=bf16",
            "kv_read:f32:b1,page64,len=1,start=0,out=bf16");
  canonical("matmul:f32:k3,n2,m1", "matmul:f32:m1,n2,k3");
  canonical("decode:bf16:limit=4096,unaligned,strides=turned",
            "decode:bf16:b1,h1,q1,page64,len=1,strides=turned,unaligned,"
            "limit=4096");
  canonical("decode:bf16:b1!seq_lens[0]=-1",
            "decode:bf16:b1,h1,q1,page64,len=1!seq_lens[0]=-1");
}
END_TEST

START_TEST(faults_are_located) {
  refused("", 1, "no operation");
  refused("decode", 1, "no operation");
  refused("dekode:bf16:b1", 1, "dekode");
  refused("decode:bf61:b1", 8, "bf61");
  refused("decode:bf16", 8, "no format");
  refused("decode:bf16:b1,pagge16", 16, "pagge16");
  refused("decode:bf16:b1,,h2", 16, "no attribute");
  refused("decode:bf16:b1,", 15, "comma");
  refused("decode:bf16:b1,b2", 16, "twice");
  refused("decode:bf16:bx", 13, "no attribute");
  refused("decode:bf16:b=x", 15, "whole number");
  refused("decode:bf16:b-1", 13, "no attribute");
  refused("decode:bf16:b=-1", 15, "whole number");
  refused("decode:bf16:b0", 14, "out of range");
  refused("decode:bf16:h99999999999999999999", 14, "whole number");
  refused("decode:bf16:len=1+", 19, "whole number");
  refused("decode:bf16:len=1+x", 19, "whole number");
  refused("decode:bf16:full=1", 13, "takes no value");
  refused("decode:bf16:full7", 13, "takes no value");
  refused("decode:bf16:dist=bel", 18, "no value");
  refused("decode:bf16:scale=-1", 19, "0 or above");
  refused("decode:bf16:scale=nan", 19, "0 or above");
  refused("decode:bf16:scale=", 19, "not a number");
  refused("decode:bf16:out=none", 17, "no value");
  refused("decode:bf16:ctx=4", 13, "no attribute");
  refused("decode:bf16:b1!", 15, "no change");
}
END_TEST

START_TEST(contradictions_are_named) {
  refused("decode:bf16:b3,len=1+2", 0, "len has 2 values, but b is 3");
  refused("decode:bf16:kvh2", 0, "needs sepv");
  refused("decode:bf16:h3,kvh2,sepv", 0, "does not divide");
  refused("decode:bf16:dv577", 0, "wider than the key");
  refused("decode:fp8_ds_mla:sepv", 0, "holds latents");
  refused("decode:bf16:len=3,dist=exact", 0, "no power of two");
  refused("decode:bf16:q2,len=4,dist=exact", 0, "no power of two");
  refused("decode:bf16:len=2048,dist=exact", 0, "at most 1024");
  refused("decode:bf16:len=1025,dist=equal", 0, "at most 1024");
  refused("decode:bf16:len=4,dist=exact,sink", 0, "not exact");
  refused("decode:bf16:len=4,dist=onehot,cap=3", 0, "not exact");
  refused("decode:bf16:dist=edge", 0, "nothing that decode has");
  refused("decode:bf16:dist=nan", 0, "b is at least 2");
  refused("decode:fp8_ds_mla:b2,dist=nan", 0, "can hold NaN");
  refused("decode:bf16:b2,topk=4,extra=4,dist=nan", 0, "one cache");
  refused("prefill:fp8_ds_mla:b1", 0, "no type of activations");
  refused("merge:f32:s3,dist=exact", 0, "power of two");
  refused("merge:f32:s1,dist=nan", 0, "second part");
  refused("absorb:bf16:fusedq", 0, "needs lq");
  refused("absorb:bf16:fusedo", 0, "needs hid");
  refused("kv_write:bf16:n65,page64,nb1", 0, "do not fit");
  refused("kv_copy:bf16:nb4,copies5", 0, "only 4 targets");
  refused("kv_copy:bf16:nb4,copies3,within", 0, "only 2 targets");
}
END_TEST

/* What a short buffer gets is what snprintf would give. */
START_TEST(long_names_are_cut) {
  mla_case c;
  char text[8];
  ck_assert_int_eq(mla_case_parse("decode:bf16:b1", &c, NULL), MLA_OK);
  ck_assert_int_eq(mla_case_print(&c, text, sizeof text), 33);
  ck_assert_str_eq(text, "decode:");
  ck_assert_int_eq(mla_case_print(&c, NULL, 0), 33);
}
END_TEST

/* The name of every case of every profile is canonical already. */
START_TEST(profiles_print_as_they_read) {
  int64_t seen = 0;
  for (int i = 0; mla_suite_builtin(i); i++) {
    mla_suite suite;
    mla_error err = mla_error_init();
    ck_assert_msg(mla_suite_load(mla_suite_builtin(i), &suite, &err) == MLA_OK,
                  "%s", err.message);
    for (int64_t k = 0; k < suite.count; k++)
      if (!mla_batch_case_is(suite.entry[k].id))
        canonical(suite.entry[k].id, suite.entry[k].id);
    seen += suite.count;
    mla_suite_free(&suite);
  }
  ck_assert_int_gt(seen, 500);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("names of cases");
  TCase *tcase = tcase_create("names");
  tcase_add_test(tcase, names_are_canonical);
  tcase_add_test(tcase, faults_are_located);
  tcase_add_test(tcase, contradictions_are_named);
  tcase_add_test(tcase, long_names_are_cut);
  tcase_add_test(tcase, profiles_print_as_they_read);
  suite_add_tcase(suite, tcase);
  return check_main(suite);
}
