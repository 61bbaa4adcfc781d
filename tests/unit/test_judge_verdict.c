/* Backends that misbehave, each in one way, and the verdict on each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "invalid.h"
#include "judge.h"
#include "registry.h"
#include "wayward.h"

static mla_device *open_with(const char *backend, const char *fault) {
  mla_device *device = NULL;
  char options[64];
  mla_error err = mla_error_init();
  snprintf(options, sizeof options, "fault=%s", fault);
  const mla_backend *found;
  (void)mla_registry_add(wayward_backend(), "test", &found, &err);
  (void)mla_registry_add(wayward_device_backend(), "test", &found, &err);
  ck_assert_msg(mla_open(backend, 0, options, &device, &err) == MLA_OK, "%s",
                err.message);
  return device;
}

static mla_verdict verdict_on(const char *backend, const char *fault,
                              const char *id) {
  mla_case c;
  mla_vector v;
  mla_verdict verdict;
  mla_change change;
  mla_error err = mla_error_init();
  mla_judge_options options = mla_judge_defaults();
  mla_device *device = open_with(backend, fault);
  ck_assert_msg(mla_case_parse(id, &c, &err) == MLA_OK, "%s", err.message);
  int invalid = c.edit[0] != '\0';
  if (invalid)
    ck_assert_msg(mla_change_parse(c.edit, &change, &err) == MLA_OK, "%s",
                  err.message);
  c.edit[0] = '\0';
  ck_assert_int_eq(mla_generate(&c, 42, MLA_POISON_NAN, &v, &err), MLA_OK);
  if (invalid)
    mla_judge_invalid(device, &v, &change, &verdict);
  else
    mla_judge_vector(device, &v, &options, &verdict);
  mla_vector_free(&v);
  mla_close(device);
  return verdict;
}

static const char decode[] =
    "decode:bf16:b3,h4,q=2+0+1,page16,len=20+3+9,l64,r8,strides=odd,tail=2";
static const char write[] = "kv_write:bf16:n9,page4,nb3,l64,r8,gap=8";

static const char *const valid_cases[] = {
    decode,
    write,
    "decode:f32:b2,h3,q1,page4,len=0+5,l64,r8,splits=3",
    "prefill:bf16:b2,h3,q=5+3,page4,ctx=9+0,l64,r8,p16,v32,chunk=4",
    "merge:f32:n4,h3,s3,v8,empty=some",
    "kv_read:bf16:b2,page4,len=3+5,l64,r8,tail=2",
    "kv_copy:f32:nb6,copies2,page4,l64,r8,within",
    "absorb:bf16:h2,l8,r8,p4,v4,lq6,hid10,fusedq,fusedo",
    "q_absorb:bf16:n3,h2,l8,p4",
    "v_expand:bf16:n3,h2,l8,v4",
    "matmul:f32:m3,n4,k5"};

START_TEST(who_behaves_passes) {
  static const char *const backends[] = {"wayward", "wayward-device"};
  for (size_t i = 0; i < sizeof valid_cases / sizeof valid_cases[0]; i++)
    for (int k = 0; k < 2; k++) {
      mla_verdict v = verdict_on(backends[k], "none", valid_cases[i]);
      ck_assert_msg(v.kind == MLA_VERDICT_PASS, "%s on %s: %s %s",
                    valid_cases[i], backends[k], v.reason, v.fences);
      ck_assert_int_gt(v.outputs, 0);
      ck_assert_int_eq(v.repeated, 2);
      ck_assert_str_eq(v.kernel, "wayward_none");
    }
}
END_TEST

/* fault, case, verdict, a word of the reason or the fence */
static const struct {
  const char *fault, *id;
  int32_t kind;
  const char *says;
} faults[] = {
    {"query-error", decode, MLA_VERDICT_FAIL, "refuses a lawful problem"},
    {"no-reason", decode, MLA_VERDICT_FAIL, "without a reason"},
    {"nothing", decode, MLA_VERDICT_UNSUPPORTED, "this port does less"},
    {"u-acc", decode, MLA_VERDICT_FAIL, "declares u_acc"},
    {"u-p", decode, MLA_VERDICT_FAIL, "declares u_p"},
    {"u-mid", decode, MLA_VERDICT_FAIL, "declares u_mid"},
    {"dequant", decode, MLA_VERDICT_FAIL, "declares dequant 4"},
    {"q-round", decode, MLA_VERDICT_FAIL, "declares q_round -1"},
    {"determinism", decode, MLA_VERDICT_FAIL, "declares determinism 9"},
    {"plan", decode, MLA_VERDICT_FAIL, "the plan fails with UNSUPPORTED"},
    {"run", decode, MLA_VERDICT_FAIL, "the run fails with DEVICE_ERROR"},
    {"idle", decode, MLA_VERDICT_FAIL, ""},
    {"value", decode, MLA_VERDICT_FAIL, ""},
    {"nan", decode, MLA_VERDICT_FAIL, ""},
    {"lse", decode, MLA_VERDICT_FAIL, ""},
    {"byte", write, MLA_VERDICT_FAIL, ""},
    {"input", decode, MLA_VERDICT_FAIL, "input q was written, at byte 0"},
    {"before", decode, MLA_VERDICT_FAIL, "memory before out"},
    {"behind", decode, MLA_VERDICT_FAIL, "memory behind out"},
    {"workspace", decode, MLA_VERDICT_FAIL, "memory behind the workspace"},
    {"gap", decode, MLA_VERDICT_FAIL, ""},
    {"flicker", decode, MLA_VERDICT_FAIL, ""},
    {"zero", decode, MLA_VERDICT_FAIL, ""},
    {"splits", decode, MLA_VERDICT_FAIL, "splits=3"},
    {"empty-positive", "decode:f32:b2,h2,q1,page16,len=0+3,l64,r8",
     MLA_VERDICT_PASS, ""},
    {"empty-silent", "decode:f32:b2,h2,q1,page16,len=0+3,l64,r8",
     MLA_VERDICT_FAIL, ""},
};
#define FAULTS ((int)(sizeof faults / sizeof faults[0]))

START_TEST(who_misbehaves_is_caught) {
  static const char *const backends[] = {"wayward", "wayward-device"};
  for (int k = 0; k < 2; k++) {
    mla_verdict v = verdict_on(backends[k], faults[_i].fault, faults[_i].id);
    ck_assert_msg(v.kind == faults[_i].kind, "%s on %s: %s, %s %s",
                  faults[_i].fault, backends[k], mla_verdict_name(v.kind),
                  v.reason, v.fences);
    ck_assert_msg(
        strstr(v.reason, faults[_i].says) || strstr(v.fences, faults[_i].says),
        "%s: \"%s\" \"%s\"", faults[_i].fault, v.reason, v.fences);
  }
}
END_TEST

/* A claim of batch invariance is part of the question. */
START_TEST(the_verdict_says_what_was_seen) {
  mla_verdict v = verdict_on("wayward", "flicker", decode);
  ck_assert(v.differs || v.output[0].bad);
  v = verdict_on("wayward", "idle", decode);
  ck_assert_int_eq(v.outputs, 2);
  ck_assert_int_eq(v.output[0].slot, MLA_T_OUT);
  ck_assert_int_eq(v.output[0].unwritten, 3 * 4 * 64);
  ck_assert_int_eq(v.output[1].unwritten, 3 * 4);
  v = verdict_on("wayward", "lse", decode);
  ck_assert_int_eq(v.output[0].bad, 0);
  ck_assert_int_eq(v.output[1].bad, 1);
  ck_assert(mla_verdict_worst(&v, 1) > 1);
  ck_assert(mla_verdict_worst(&v, 0) <= 1);
  v = verdict_on("wayward", "gap", decode);
  ck_assert_ptr_nonnull(strstr(v.output[0].outside, "bytes of out"));
}
END_TEST

/* Invalid calls: refused by libmla before the backend is asked to run. */
START_TEST(refusals_are_judged) {
  static const struct {
    const char *id;
    int32_t kind;
    const char *says;
  } table[] = {
      {"decode:f32:b1,h2,len=5!problem.scale=0", MLA_VERDICT_PASS, ""},
      {"decode:f32:b1,h2,len=5!q.data=null", MLA_VERDICT_PASS, ""},
      {"decode:f32:b1,h2,len=5!seq_lens[0]=-1", MLA_VERDICT_PASS, ""},
      {"decode:f32:b1,h2,len=5!problem.window=3:UNSUPPORTED", MLA_VERDICT_PASS,
       ""},
      /* expectations that are wrong */
      {"decode:f32:b1,h2,len=5!problem.scale=2", MLA_VERDICT_FAIL,
       "returns OK, INVALID_ARGUMENT was to be expected"},
      {"decode:f32:b1,h2,len=5!problem.scale=0:UNSUPPORTED", MLA_VERDICT_FAIL,
       "query does not say no"},
      {"decode:f32:b1,h2,len=5!problem.scale=0:INVALID_ARGUMENT:window",
       MLA_VERDICT_FAIL, "blames \"scale\""},
      {"decode:f32:b1,h2,len=5!seq_lens[0]=4", MLA_VERDICT_FAIL, "returns OK"},
      {"decode:f32:b1,h2,len=5!workspace=1", MLA_VERDICT_UNSUPPORTED,
       "needs no workspace"},
      {"decode:f32:b1,h2,len=5!seq_lens[7]=4", MLA_VERDICT_ERROR, "outside"},
      {"decode:f32:b1,h2,len=5!problem.scale=two", MLA_VERDICT_ERROR,
       "no value"}};
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    mla_verdict v = verdict_on("wayward", "none", table[i].id);
    ck_assert_msg(v.kind == table[i].kind, "%s: %s %s", table[i].id,
                  mla_verdict_name(v.kind), v.reason);
    ck_assert_msg(strstr(v.reason, table[i].says) != NULL, "%s: %s",
                  table[i].id, v.reason);
  }
  mla_verdict v =
      verdict_on("wayward", "workspace", "decode:f32:h2,len=5!workspace=1");
  ck_assert_msg(v.kind == MLA_VERDICT_PASS, "%s", v.reason);
  v = verdict_on("wayward-device", "none",
                 "decode:f32:h2,len=5!seq_lens[0]=-1");
  ck_assert_int_eq(v.kind, MLA_VERDICT_UNSUPPORTED);
  v = verdict_on("wayward-device", "none", "decode:f32:h2,len=5!q.data=null");
  ck_assert_msg(v.kind == MLA_VERDICT_PASS, "%s", v.reason);
}
END_TEST

START_TEST(changes_are_read) {
  static const char *const bad[] = {"",
                                    "scale=0",
                                    "problem.scal=0",
                                    "problem.scale",
                                    "q=3",
                                    "q.shape=3",
                                    "q.shape[9]=3",
                                    "q.colour=3",
                                    "nobody=3",
                                    "seq_lens[=3",
                                    "seq_lens[0=3",
                                    "problem.scale[0]=1",
                                    "q.rank[0]=1",
                                    "problem.scale=0:NONSENSE",
                                    "workspace[0]=1"};
  mla_change c;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    mla_error err = mla_error_init();
    ck_assert_msg(mla_change_parse(bad[i], &c, &err) == MLA_INVALID_ARGUMENT,
                  "\"%s\" is taken", bad[i]);
    ck_assert(err.message[0]);
  }
  ck_assert_int_eq(mla_change_parse("block_table[0,1]=99", &c, NULL), MLA_OK);
  ck_assert_str_eq(c.object, "block_table");
  ck_assert_int_eq(c.indices, 2);
  ck_assert_int_eq(c.index[1], 1);
  ck_assert_str_eq(c.field, "block_table");
  ck_assert_int_eq(mla_change_parse("workspace=1", &c, NULL), MLA_OK);
  ck_assert_int_eq(c.status, MLA_WORKSPACE_TOO_SMALL);
  ck_assert_str_eq(c.field, "workspace_bytes");
  ck_assert_int_eq(
      mla_change_parse("problem.window=4:UNSUPPORTED:flags", &c, NULL), MLA_OK);
  ck_assert_int_eq(c.status, MLA_UNSUPPORTED);
  ck_assert_str_eq(c.field, "flags");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("verdicts");
  TCase *tcase = tcase_create("judge");
  tcase_add_test(tcase, who_behaves_passes);
  tcase_add_loop_test(tcase, who_misbehaves_is_caught, 0, FAULTS);
  tcase_add_test(tcase, the_verdict_says_what_was_seen);
  tcase_add_test(tcase, refusals_are_judged);
  tcase_add_test(tcase, changes_are_read);
  suite_add_tcase(suite, tcase);
  return check_main(suite);
}
