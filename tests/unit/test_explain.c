/* What failures look like: planted faults known again, chance not taken for
   one, and the tables complete. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "dtype.h"
#include "explain.h"
#include "planted.h"
#include "registry.h"
#include "suite.h"
#include "tensor.h"

static mla_device *open_planted(const char *options) {
  mla_device *device = NULL;
  const mla_backend *entered;
  mla_error err = mla_error_init();
  (void)mla_registry_add(mla_planted_backend(MLA_ABI_MAJOR, MLA_ABI_MINOR),
                         "test", &entered, &err);
  ck_assert_msg(mla_open("planted", 0, options, &device, &err) == MLA_OK, "%s",
                err.message);
  return device;
}

static void make(const char *id, mla_vector *v) {
  mla_case c;
  mla_error err = mla_error_init();
  ck_assert_msg(mla_case_parse(id, &c, &err) == MLA_OK, "%s", err.message);
  ck_assert_int_eq(mla_generate(&c, 42, MLA_POISON_NAN, v, &err), MLA_OK);
}

static mla_verdict judge(const char *options, const char *id) {
  mla_vector v;
  mla_verdict verdict;
  mla_judge_observer observer = {mla_explain_observe, NULL};
  mla_judge_options how = mla_judge_defaults();
  mla_device *device = open_planted(options);
  how.observer = &observer;
  make(id, &v);
  mla_judge_vector(device, &v, &how, &verdict);
  mla_vector_free(&v);
  mla_close(device);
  return verdict;
}

static const char two[] = "decode:bf16:b2,h4,q2,page16,len=40+17,l64,r8";

START_TEST(without_a_fault_it_passes) {
  mla_verdict verdict = judge("fault=none", two);
  ck_assert_msg(verdict.kind == MLA_VERDICT_PASS, "%s", verdict.reason);
  ck_assert_str_eq(verdict.look.cls, "");
}
END_TEST

static const char lists[] =
    "decode:bf16:b2,h3,q2,page4,len=40+29,topk=16,l64,r8,lists=holes,tlen";
static const char chosen[] =
    "index:bf16:b2,h5,q=3+2,page4,len=41+29,topk=8,d=16,logits";

/* Parameters that no probe starts from; one head, one request; no help by
   what the case hunts. */
static const struct {
  const char *options, *id, *cls;
} known[] = {
    {"fault=yarn-factor;x=1.43", two, "YARN"},
    {"fault=yarn-factor;x=0.81;head=2", two, "YARN"},
    {"fault=mtp-off-by;a=-3", two, "MTP-MASK"},
    {"fault=mtp-no-mask;request=1", two, "MTP-MASK"},
    {"fault=tail-v;head=3", two, "TAIL-NAN"},
    {"fault=tile-lost;a=11;head=0", two, "PAGE-SIZE"},
    {"fault=rope-pairs;request=0", two, "ROPE-STYLE"},
    {"fault=vdim-rope", two, "VDIM"},
    {"fault=lse-partial;a=3", two, "LSE-LAYOUT"},
    {"fault=lse-transposed", two, "LSE-LAYOUT"},
    {"fault=table-row", two, "TABLE"},
    {"fault=honesty-numerics;a=6", two, "HONESTY"},
    {"fault=honesty-nothing", two, "HONESTY"},
    {"fault=honesty-refuse", two, "HONESTY"},
    {"fault=honesty-input", two, "HONESTY"},
    {"fault=overrun;a=9", two, "HEADS"},
    {"fault=race-row;a=3", two, "RACE"},
    {"fault=noncausal", "decode:bf16:b2,h4,q3,page16,len=20+9,l64,r8,full",
     "NONCAUSAL"},
    {"fault=heads-drop;a=7", "decode:bf16:b2,h10,q1,page16,len=20+9,l64,r8",
     "HEADS"},
    {"fault=heads-wrap;a=7", "decode:bf16:b2,h10,q1,page16,len=20+9,l64,r8",
     "HEADS"},
    {"fault=split-type;a=5",
     "decode:f32:b2,h4,q1,page16,len=40+17,l64,r8,splits=3", "SPLIT-REDUCE"},
    {"fault=rescale-sum;a=12", "decode:bf16:b2,h4,q1,page16,len=65+33,l64,r8",
     "SPLIT-REDUCE"},
    {"fault=rescale-values;a=64",
     "decode:bf16:b2,h4,q1,page64,len=300+5,l64,r8", "SPLIT-REDUCE"},
    {"fault=out-cut", "decode:bf16:b2,h4,q1,page16,len=65+33,l64,r8", "RANGE"},
    {"fault=out-cut", "decode:f16:b2,h4,q1,page16,len=65+33,l64,r8", "RANGE"},
    {"fault=ws-zeroed", "decode:f32:b2,h4,q1,page16,len=40+17,l64,r8,splits=3",
     "WORKSPACE"},
    {"fault=ws-overrun;a=3", two, "WORKSPACE"},
    {"fault=empty-split", "decode:bf16:b2,h3,q2,page16,len=65+3,l64,r8",
     "EMPTY-SPLIT"},
    {"fault=range-merge", "decode:bf16:b2,h3,q2,page16,len=65+3,l64,r8,amp=100",
     "RANGE"},
    {"fault=table-consecutive",
     "decode:bf16:b4,h2,q2,page16,len=65+64+3+203,l64,r8", "TABLE"},
    {"fault=table-short;a=40",
     "decode:bf16:b2,h3,q1,page8,len=20+3,l64,r8,strides=odd", "TABLE"},
    {"fault=ws-kept", two, "WORKSPACE"},
    {"fault=ws-kept", "decode:f32:b2,h4,q1,page16,len=40+17,l64,r8,replay",
     "WORKSPACE"},
    {"fault=ws-cached", two, "WORKSPACE"},
    {"fault=plan-runs", two, "STALE-META"},
    {"fault=plan-runs", "decode:f32:b2,h4,q1,page16,len=40+17,l64,r8,replay",
     "STALE-META"},
    {"fault=race-late;a=4", two, "RACE"},
    {"fault=address-bits", "kv_write:f32:n20,page16,nb2,l48,r16,strides=odd",
     "STRIDES"},
    {"fault=address-bits;a=4", "kv_write:bf16:n37,page16,nb5,unaligned",
     "STRIDES"},
    {"fault=address-bits",
     "decode:f32:b2,h4,q1,page16,len=40+17,l64,r8,unaligned", "STRIDES"},
    {"fault=ws-short;a=5", two, "WORKSPACE"},
    {"fault=invariance-batch",
     "decode:f32:b5,h4,q1,page16,len=70+33+40+1+16,l64,r8", "INVARIANCE"},
    {"fault=pad-zero", "decode:bf16:b2,h4,q1,page16,len=20+9,l64,r8,tail=3",
     "GRAPH-PAD"},
    {"fault=empty-row-finite;x=-777",
     "decode:bf16:b3,h4,q1,page16,len=20+0+9,l64,r8", "EMPTY-ROW"},
    {"fault=stale-lens", "decode:bf16:b2,h4,q1,page16,len=70+33,l64,r8,replay",
     "STALE-META"},
    {"fault=chunk-only",
     "prefill:f32:b2,h3,q=5+7,page4,ctx=21+17,l64,r8,p16,v32,chunk=8",
     "CTX-CHUNK"},
    {"fault=absorb-flat", "prefill:bf16:b2,h3,q=5+7,l64,r8,p16,v32", "ABSORB"},
    {"fault=tile-turned", "absorb:bf16:h5,l200,r8,p80,v64,w=fp8_e4m3",
     "TILE-SCALE"},
    {"fault=tile-partial", "absorb:bf16:h5,l200,r8,p80,v64,w=fp8_e4m3",
     "TILE-SCALE"},
    {"fault=absorb-head;a=3", "q_absorb:bf16:n3,h5,l64,p16", "ABSORB"},
    {"fault=slot-compact", "kv_write:bf16:n19,page4,nb6,l64,r8,slots=holes",
     "SLOT-WRITE"},
    {"fault=prefix-order", "kv_copy:bf16:nb7,nbs3,copies5,page4,l64,r8",
     "PREFIX"},
    {"fault=cascade-mask;head=1",
     "decode:bf16:b3,h4,q2,page4,len=40+29+17,l64,r8,prefix=13,cascade",
     "PREFIX"},
    {"fault=empty-merge-inf", "merge:f32:n4,h3,s5,v40,empty=some",
     "EMPTY-MERGE"},
    {"fault=empty-merge-first", "merge:f32:n7,h3,s3,v16,dist=nan,empty=some",
     "EMPTY-MERGE"},
    {"fault=race-stage", "kv_write:bf16:n20,page4,nb9,l64,r8,crowd", "RACE"},
    {"fault=thread-opener", "absorb:bf16:h2,l64,p16,v16,crowd", "HONESTY"},
    {"fault=thread-table", "merge:f32:n5,h3,s3,v48,crowd", "HONESTY"},
    {"fault=lse-base-merge;head=1", "merge:bf16:n4,h3,s5,v40", "LSE-BASE"},
    {"fault=sparse-stops;head=1", lists, "SPARSE-IDX"},
    {"fault=sparse-turned", lists, "SPARSE-IDX"},
    {"fault=sparse-cut;a=3;head=2", lists, "SPARSE-IDX"},
    {"fault=sparse-first-tile;a=6;head=0",
     "decode:f32:b2,h3,q1,page4,len=40+29,topk=16,l64,r8,lists=late",
     "SPARSE-IDX"},
    {"fault=sparse-extra-page",
     "decode:f32:b2,h3,q2,page4,len=40+29,topk=9,extra=7,xpage=3,l64,r8",
     "SPARSE-IDX"},
    {"fault=yarn-factor;x=1.43", lists, "YARN"},
    {"fault=map-clamps",
     "map_indices:f32:b2,q3,page4,len=40+29,topk=16,lists=holes", "SPARSE-IDX"},
    {"fault=table-row", "map_indices:f32:b2,q3,page4,len=40+29,topk=16",
     "TABLE"},
    {"fault=topk-shares;a=3", chosen, "TOPK"},
    {"fault=topk-holes;a=3", chosen, "TOPK"},
    {"fault=topk-twice", chosen, "TOPK"},
    {"fault=topk-order", chosen, "TOPK"},
    {"fault=topk-filler;a=7", "index:bf16:b2,h3,q3,page4,len=30+9,topk=8,d=16",
     "TOPK"},
    {"fault=topk-front", "index:bf16:b2,h3,q3,page4,len=9+6,topk=12,d=16",
     "TOPK"},
    {"fault=topk-race",
     "index:bf16:b2,h3,q3,page4,len=30+9,topk=8,d=16,dist=equal", "TOPK"},
    {"fault=indexer-odd", chosen, "INDEXER"},
    {"fault=indexer-page", chosen, "INDEXER"},
    {"fault=indexer-axis", chosen, "INDEXER"},
    {"fault=indexer-heads;a=3", chosen, "INDEXER"},
    {"fault=mtp-first", chosen, "MTP-MASK"},
    {"fault=invariance-batch", chosen, "INVARIANCE"},
    {"fault=page-tuned;a=4", chosen, "PAGE-SIZE"}, /* wrong in other pages */
};

START_TEST(planted_faults_are_known_again) {
  char sentence[400];
  mla_verdict verdict = judge(known[_i].options, known[_i].id);
  ck_assert_int_eq(verdict.kind, MLA_VERDICT_FAIL);
  mla_look_print(&verdict.look, sentence, sizeof sentence);
  ck_assert_msg(strcmp(verdict.look.cls, known[_i].cls) == 0,
                "%s on %s looks like \"%s\"", known[_i].options, known[_i].id,
                sentence);
}
END_TEST

/* One wrong number, a different one in each of `count` rows, is nothing that
   a mistake of the list gives. */
static void spoil(mla_vector *v, const mla_expectation *e, int count,
                  unsigned char *got) {
  const mla_tensor *t = &v->tensor[MLA_T_OUT];
  int32_t index;
  mla_expected_view view = mla_expectation_of(e, MLA_T_OUT, &index);
  for (int64_t r = 0; r < view.rows; r++)
    for (int64_t d = 0; d < view.width; d++) {
      double x = view.value[r * view.width + d];
      if (r < count && d == r % 7) x += 0.25 + 0.125 * (double)r;
      mla_put(got, t->dtype, r * view.width + d, x);
    }
}

static void fill_lse(const mla_vector *v, const mla_expectation *e,
                     unsigned char *got) {
  int32_t index;
  mla_expected_view view = mla_expectation_of(e, MLA_T_LSE, &index);
  for (int64_t r = 0; r < view.rows; r++)
    mla_put(got, v->tensor[MLA_T_LSE].dtype, r, view.value[r]);
}

static mla_look look_at_chance(int count) {
  mla_vector v;
  mla_expectation e;
  mla_verdict verdict;
  mla_answer answer = mla_answer_init();
  mla_error err = mla_error_init();
  make(two, &v);
  ck_assert_int_eq(mla_expectation_make(&v, NULL, NULL, &e, &err), MLA_OK);
  mla_limits limits = mla_vector_limits(&v);
  mla_evidence evidence = {.answer = &answer,
                           .limits = &limits,
                           .expectation = &e,
                           .poison = MLA_POISON_NAN};
  unsigned char *out =
      calloc(1, (size_t)mla_tensor_extent(&v.tensor[MLA_T_OUT]));
  unsigned char *lse =
      calloc(1, (size_t)mla_tensor_extent(&v.tensor[MLA_T_LSE]));
  ck_assert_ptr_nonnull(out);
  ck_assert_ptr_nonnull(lse);
  spoil(&v, &e, count, out);
  fill_lse(&v, &e, lse);
  evidence.got[MLA_T_OUT] = out;
  evidence.got[MLA_T_LSE] = lse;
  memset(&verdict, 0, sizeof verdict);
  verdict.outputs = 1;
  verdict.output[0].slot = MLA_T_OUT;
  verdict.output[0].bad = count;
  mla_explain(&v, &evidence, NULL, &verdict);
  free(out);
  free(lse);
  mla_expectation_free(&e);
  mla_vector_free(&v);
  return verdict.look;
}

START_TEST(chance_looks_like_nothing) {
  static const int counts[] = {1, 2, 3, 5};
  mla_look look = look_at_chance(counts[_i]);
  ck_assert_msg(look.of == 0, "%d wrong numbers look like %s (%s)", counts[_i],
                look.cls, look.fault);
}
END_TEST

START_TEST(deaths_have_classes) {
  mla_vector v;
  mla_look look;
  make("decode:bf16:b2,h1,q1,page16,len=0+5,l8,r8", &v);
  mla_explain_death(NULL, SIGSEGV, &look);
  ck_assert_str_eq(look.cls, "OOB-READ");
  mla_explain_death(&v, SIGBUS, &look);
  ck_assert_str_eq(look.cls, "GRAPH-PAD");
  mla_explain_death(&v, SIGILL, &look);
  ck_assert_str_eq(look.cls, "CPU-ISA");
  mla_explain_death(&v, SIGABRT, &look);
  ck_assert_str_eq(look.cls, "HONESTY");
  mla_explain_death(&v, 0, &look);
  ck_assert_str_eq(look.cls, "SPLIT-REDUCE");
  mla_explain_death(&v, SIGTERM, &look);
  ck_assert_str_eq(look.cls, "");
  mla_vector_free(&v);
}
END_TEST

START_TEST(looks_are_sentences) {
  char text[200];
  mla_look look;
  memset(&look, 0, sizeof look);
  ck_assert_int_eq(mla_look_print(&look, text, sizeof text), 0);
  ck_assert_str_eq(text, "");
  mla_look_set(&look, "HEADS", "every a-th of a heads, at x, a row too");
  look.a = 12;
  look.x = 0.5;
  mla_look_print(&look, text, sizeof text);
  ck_assert_str_eq(text, "HEADS: every 12-th of 12 heads, at 0.5, 12 row too");
  look.a = 0;
  look.x = 0;
  look.reproduced = 7;
  look.of = 8;
  strcpy(look.also, "VDIM");
  mla_look_print(&look, text, sizeof text);
  ck_assert_str_eq(text,
                   "HEADS: every a-th of a heads, at x, a row too (reproduces "
                   "7 of 8, as VDIM does)");
  ck_assert_int_gt(mla_look_print(&look, text, 8), 8);
  ck_assert_int_lt((int)strlen(text), 8);
}
END_TEST

/* ------------------------------------------------------------------ tables */

START_TEST(every_class_is_planted_or_says_when) {
  const planted_class *c;
  int classes = 0;
  for (int32_t i = 0; (c = planted_class_at(i)) != NULL; i++) {
    int faults = 0;
    classes++;
    for (int32_t f = 1; f < PLANTED_COUNT; f++)
      faults += strcmp(planted_fault_at(f)->cls, c->name) == 0;
    ck_assert_msg((faults > 0) == (c->comes_with == NULL), "%s has %d faults",
                  c->name, faults);
  }
  ck_assert_int_eq(classes, 40);
}
END_TEST

START_TEST(faults_are_well_formed) {
  for (int32_t f = 1; f < PLANTED_COUNT; f++) {
    const planted_fault *fault = planted_fault_at(f);
    ck_assert_msg(planted_class_known(fault->cls), "%s: %s", fault->name,
                  fault->cls);
    ck_assert_int_eq(planted_fault_find(fault->name), f);
    ck_assert_msg(fault->tries == PLANTED_AS_IS || planted_has_variant(f),
                  "%s tries parameters, but has no variant", fault->name);
    ck_assert_msg(strlen(fault->what) < sizeof((mla_look *)0)->what, "%s",
                  fault->name);
  }
  ck_assert_int_eq(planted_fault_find("nothing"), PLANTED_NONE);
  ck_assert_str_eq(planted_fault_at(PLANTED_COUNT)->name, "none");
}
END_TEST

/* What smoke hunts is a class, and each planted class is hunted. */
START_TEST(smoke_hunts_every_planted_class) {
  mla_suite suite;
  mla_error err = mla_error_init();
  ck_assert_int_eq(mla_suite_load("smoke", &suite, &err), MLA_OK);
  for (int64_t i = 0; i < suite.count; i++) {
    char hunts[MLA_HUNTS_MAX];
    snprintf(hunts, sizeof hunts, "%s", suite.entry[i].hunts);
    for (char *w = strtok(hunts, ", "); w; w = strtok(NULL, ", "))
      ck_assert_msg(planted_class_known(w), "%s hunts %s", suite.entry[i].id,
                    w);
  }
  const planted_class *c;
  for (int32_t k = 0; (c = planted_class_at(k)) != NULL; k++) {
    int hunted = c->comes_with != NULL;
    for (int64_t i = 0; i < suite.count; i++)
      hunted |= strstr(suite.entry[i].hunts, c->name) != NULL;
    ck_assert_msg(hunted, "smoke does not hunt %s", c->name);
  }
  mla_suite_free(&suite);
}
END_TEST

START_TEST(wrong_options_are_refused) {
  static const char *const wrong[] = {"fault=nobody", "a", "b=1",
                                      "fault=heads-drop;a=0"};
  const mla_backend *b = mla_planted_backend(MLA_ABI_MAJOR, 0);
  mla_error err = mla_error_init();
  mla_handle *handle = NULL;
  ck_assert_int_eq(b->open(0, wrong[_i], &handle, &err), MLA_INVALID_ARGUMENT);
  ck_assert_msg(err.message[0], "no sentence");
  ck_assert_ptr_null(mla_planted_backend(MLA_ABI_MAJOR + 1, 0));
}
END_TEST

static void add_tests(TCase *tc) {
  tcase_set_timeout(tc, 300);
  tcase_add_test(tc, without_a_fault_it_passes);
  tcase_add_loop_test(tc, planted_faults_are_known_again, 0,
                      (int)(sizeof known / sizeof known[0]));
  tcase_add_loop_test(tc, chance_looks_like_nothing, 0, 4);
  tcase_add_test(tc, deaths_have_classes);
  tcase_add_test(tc, looks_are_sentences);
  tcase_add_test(tc, every_class_is_planted_or_says_when);
  tcase_add_test(tc, faults_are_well_formed);
  tcase_add_test(tc, smoke_hunts_every_planted_class);
  tcase_add_loop_test(tc, wrong_options_are_refused, 0, 4);
}

int main(void) {
  Suite *suite = suite_create("explain");
  TCase *tc = tcase_create("explain");
  add_tests(tc);
  suite_add_tcase(suite, tc);
  return check_main(suite);
}
