/* Sizes that follow from cases, their work, and the limits of profiles. */
#include <string.h>

#include "batch_case.h"
#include "case.h"
#include "check_main.h"
#include "generate.h"
#include "invalid.h"
#include "op_table.h"
#include "problem_check.h"
#include "suite.h"

static mla_case parse(const char *id) {
  mla_case c;
  mla_error err = mla_error_init();
  ck_assert_msg(mla_case_parse(id, &c, &err) == MLA_OK, "%s", err.message);
  return c;
}

static void work(const char *id, double flops) {
  mla_case c = parse(id);
  ck_assert_msg(mla_case_flops(&c) == flops, "%s: %.1f, not %.1f", id,
                mla_case_flops(&c), flops);
}

START_TEST(work_is_counted) {
  /* 2 * rows * keys * (D + v_dim) */
  work("decode:bf16:b1,h1,q1,page64,len=10", 2 * 10 * (576 + 512.0));
  work("decode:bf16:b2,h3,q1,page64,len=10+5", 2 * 3 * 15 * (576 + 512.0));
  /* causal: rows see 9 and 10 of 10 keys */
  work("decode:bf16:b1,h1,q2,page64,len=10", 2 * 19 * (576 + 512.0));
  work("decode:bf16:b1,h1,q2,page64,len=10,full", 2 * 20 * (576 + 512.0));
  /* more queries than keys: rows see 0, 0, 1, 2 */
  work("decode:bf16:b1,h1,q4,page64,len=2", 2 * 3 * (576 + 512.0));
  work("decode:bf16:h4,kvh2,len=8,d128,dv64,sepv", 2 * 4 * 8 * (128 + 64.0));
  /* attention and the up-projection of 6 keys */
  work("prefill:bf16:h2,q2,page64,ctx=4",
       2 * 2 * (11 * (128 + 64 + 128.0) + 6 * 512 * (128 + 128.0)));
  work("merge:f32:n3,h2,s5,v7", 2 * 3 * 2 * 5 * 7.0);
  work("q_absorb:bf16:n3,h2,l5,p7", 2 * 3 * 2 * 5 * 7.0);
  work("v_expand:bf16:n3,h2,l5,v7", 2 * 3 * 2 * 5 * 7.0);
  work("matmul:f32:m3,n5,k7", 2 * 3 * 5 * 7.0);
  work("absorb:bf16:h2,l4", 0);
  work("absorb:bf16:h2,l4,p3,v5,lq7,hid9,fusedq,fusedo",
       2 * 2 * 4 * (3 * 7.0 + 5 * 9.0));
  work("kv_copy:bf16:copies1", 0);
}
END_TEST

START_TEST(problems_and_limits_follow) {
  mla_case c = parse(
      "decode:bf16:b3,h5,q=2+0+1,page16,len=33+0+16,r32,dv64,tail=4,sink,"
      "base2,splits=3,width=2,spare=7");
  mla_problem p = mla_case_problem(&c);
  mla_limits l = mla_case_limits(&c);
  ck_assert_uint_eq(p.flags,
                    MLA_CAUSAL | MLA_RETURN_LSE | MLA_LSE_BASE2 | MLA_HAS_SINK);
  ck_assert_int_eq(mla_problem_head_dim(&p), 544);
  ck_assert_int_eq(mla_problem_v_dim(&p), 64);
  ck_assert_int_eq(l.tokens, 7);
  ck_assert_int_eq(l.max_query_len, 2);
  ck_assert_int_eq(l.max_seq_len, 33);
  ck_assert_int_eq(l.num_blocks, 3 + 0 + 1 + 7);
  ck_assert_int_eq(l.table_width, 3 + 2);
  ck_assert_int_eq(l.num_splits, 3);
  ck_assert_int_eq(mla_case_sym(&c, MLA_S_W), 5);
  ck_assert_int_eq(mla_case_sym(&c, MLA_S_NB), 11);
  c = parse("prefill:bf16:b2,q=5+0,page16,ctx=17+3");
  p = mla_case_problem(&c);
  l = mla_case_limits(&c);
  ck_assert(p.flags & MLA_CONTEXT);
  ck_assert_int_eq(l.max_seq_len, 22);
  ck_assert_int_eq(l.table_width, 2);
  ck_assert_int_eq(l.num_blocks, 2 + 1 + 2);
  c = parse("prefill:bf16:b2,q5");
  p = mla_case_problem(&c);
  ck_assert(!(p.flags & MLA_CONTEXT));
}
END_TEST

/* A valid case passes every check of libmla, loose limits or not. */
START_TEST(all_cases_are_lawful) {
  for (int i = 0; mla_suite_builtin(i); i++) {
    mla_suite suite;
    ck_assert_int_eq(mla_suite_load(mla_suite_builtin(i), &suite, NULL),
                     MLA_OK);
    for (int64_t k = 0; k < suite.count; k++) {
      if (mla_batch_case_is(suite.entry[k].id)) continue;
      mla_case c = parse(suite.entry[k].id);
      mla_problem p = mla_case_problem(&c);
      mla_limits l = mla_case_limits(&c);
      mla_error err = mla_error_init();
      mla_status status = mla_problem_check(&p, &err);
      if (status == MLA_OK) status = mla_limits_check(&p, &l, &err);
      ck_assert_msg(status == MLA_OK, "%s: %s", suite.entry[k].id, err.message);
    }
    mla_suite_free(&suite);
  }
}
END_TEST

/* Each profile keeps the limit that it states. */
START_TEST(profiles_keep_their_size) {
  static const struct {
    const char *name;
    double limit;
  } table[] = {
      {"smoke", 3e9}, {"full", 200e9}, {"dense", 60e9}, {"prefill", 60e9}};
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    mla_suite suite;
    ck_assert_int_eq(mla_suite_load(table[i].name, &suite, NULL), MLA_OK);
    ck_assert_msg(suite.limit == table[i].limit, "%s", table[i].name);
    ck_assert_msg(mla_suite_flops(&suite) <= table[i].limit, "%s: %.3f GFLOP",
                  table[i].name, mla_suite_flops(&suite) / 1e9);
    ck_assert_int_gt(suite.count, 0);
    mla_suite_free(&suite);
  }
}
END_TEST

/* The rules of docs/hazards.md: smoke has a valid case for each operation,
   and full contains all that smoke has. */
START_TEST(smoke_has_every_operation) {
  mla_suite smoke, full;
  char seen[16] = {0};
  ck_assert_int_eq(mla_suite_load("smoke", &smoke, NULL), MLA_OK);
  ck_assert_int_eq(mla_suite_load("full", &full, NULL), MLA_OK);
  for (int64_t i = 0; i < smoke.count; i++) {
    mla_case c = parse(smoke.entry[i].id);
    int found = 0;
    ck_assert(smoke.entry[i].hunts[0]);
    if (!c.edit[0]) seen[c.op] = 1;
    for (int64_t k = 0; k < full.count && !found; k++)
      found = strcmp(smoke.entry[i].id, full.entry[k].id) == 0;
    ck_assert_msg(found, "%s is not in full", smoke.entry[i].id);
  }
  for (int op = MLA_OP_KV_WRITE; op <= MLA_OP_MATMUL; op++)
    ck_assert_msg(seen[op], "no case of %s", mla_op_name(op));
  mla_suite_free(&smoke);
  mla_suite_free(&full);
}
END_TEST

static void bad_profile(const char *text, const char *says) {
  mla_suite suite;
  mla_error err = mla_error_init();
  ck_assert_int_eq(mla_suite_parse("mine", text, &suite, &err),
                   MLA_INVALID_ARGUMENT);
  ck_assert_msg(strstr(err.message, says) != NULL, "%s", err.message);
  mla_suite_free(&suite);
}

START_TEST(profiles_are_read) {
  mla_suite suite;
  mla_error err = mla_error_init();
  const char *text =
      "@title mine\n@limit 1e6\n# a remark\n\n"
      "  decode:f32:len=3,b1   TAIL-NAN TABLE seed=7 \r\n"
      "?decode:f32:b1,h1,q1,page64,len=3\n"
      "decode:f32:b1,h1,q1,page64,len=3    seed=7\n";
  ck_assert_msg(mla_suite_parse("mine", text, &suite, &err) == MLA_OK, "%s",
                err.message);
  ck_assert_int_eq(suite.count, 2); /* the third is the first again */
  ck_assert_str_eq(suite.title, "mine");
  ck_assert_str_eq(suite.entry[0].id, "decode:f32:b1,h1,q1,page64,len=3");
  ck_assert_str_eq(suite.entry[0].hunts, "TAIL-NAN, TABLE");
  ck_assert_uint_eq(suite.entry[0].seed, 7);
  ck_assert_uint_eq(suite.entry[1].seed, MLA_SUITE_SEED);
  ck_assert_int_eq(suite.entry[0].optional, 0);
  ck_assert_int_eq(suite.entry[1].optional, 1);
  mla_suite_free(&suite);
  bad_profile("\ndecode:f32:zz9\n", "mine, line 2");
  bad_profile("decode:f32:b1 tail\n", "no hazard class: \"tail\"");
  bad_profile("decode:f32:b1 seed=x\n", "no seed");
  bad_profile("@limit -3\n", "no limit");
  bad_profile("@include nobody\n", "no profile called \"nobody\"");
  bad_profile("@what\n", "unknown: \"@what\"");
  ck_assert_int_eq(mla_suite_load("no-such-profile", &suite, &err),
                   MLA_NOT_AVAILABLE);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sizes of cases");
  TCase *tcase = tcase_create("sizes");
  tcase_add_test(tcase, work_is_counted);
  tcase_add_test(tcase, problems_and_limits_follow);
  tcase_add_test(tcase, all_cases_are_lawful);
  tcase_add_test(tcase, profiles_keep_their_size);
  tcase_add_test(tcase, smoke_has_every_operation);
  tcase_add_test(tcase, profiles_are_read);
  suite_add_tcase(suite, tcase);
  return check_main(suite);
}
