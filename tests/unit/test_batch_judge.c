/* The judge of batch building: names of cases, the plain builder and the
   library's over random ones, and every planted mistake caught and named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_compare.h"
#include "batch_explain.h"
#include "batch_json.h"
#include "batch_judge.h"
#include "check_main.h"
#include "planted.h"
#include "planted_batch.h"
#include "rng.h"
#include "suite.h"

/* -------------------------------------------------------------------- names */

START_TEST(canonical_names) {
  static const char *const names[][2] = {
      {"batch:b1,page16,q1", "batch:b1,page16,q1"},
      {"batch:b1", "batch:b1,page16,q1"},
      {"batch:q=1+2,b2", "batch:b2,page16,q=1+2"},
      {"batch:b2,q=3+3,ctx=0+0", "batch:b2,page16,q3"},
      {"batch:b2,full,pad=0+3,ctx=7", "batch:b2,page16,ctx=7,q1,pad=0+3,full"},
      {"batch:b2,page=5,units16,interleave=1", "batch:b2,page5,q1"}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    mla_batch_recipe r;
    char id[MLA_BATCH_ID_MAX];
    ck_assert_int_eq(mla_batch_case_parse(names[i][0], &r, NULL), MLA_OK);
    ck_assert_int_eq(mla_batch_case_print(&r, id, sizeof id),
                     (int)strlen(names[i][1]));
    ck_assert_str_eq(id, names[i][1]);
  }
}
END_TEST

START_TEST(names_that_are_none) {
  static const char *const names[] = {
      "decode:b1",        "batch:b25",      "batch:nonsense",
      "batch:b2,q=1+2+3", "batch:b3,q=1+2", "batch:page0",
      "batch:pad=3",      "batch:b",        "batch:fully",
      "batch:b1,",        "batch:q=1+",     "batch:next=8",
      "batch:ctx=-1",     "batch:full=1",   "batch:b1,q=99999999999999999999"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    mla_batch_recipe r;
    mla_error err = mla_error_init();
    ck_assert_msg(
        mla_batch_case_parse(names[i], &r, &err) == MLA_INVALID_ARGUMENT, "%s",
        names[i]);
    ck_assert(err.message[0]);
  }
}
END_TEST

/* What follows from a name may be too much for a case. */
START_TEST(cases_too_large) {
  static const char *const names[] = {"batch:b2,q=512", "batch:b1,ctx=9999",
                                      "batch:b24,pad=1+0"};
  mla_batch_case *c = malloc(sizeof *c);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    mla_error err = mla_error_init();
    ck_assert_msg(
        mla_batch_case_draw(names[i], 42, c, &err) == MLA_INVALID_ARGUMENT,
        "%s", names[i]);
    ck_assert(strstr(err.message, "than a case may have") ||
              strstr(err.message, "what a case may have"));
  }
  free(c);
}
END_TEST

/* ----------------------------------------------------------------- builders */

typedef struct bench {
  mla_suite suite;
  mla_batch_case *c;
  mla_batch_answer *right, *wrong;
} bench;

static void open_bench(bench *b) {
  memset(b, 0, sizeof *b);
  ck_assert_int_eq(mla_suite_load("batch", &b->suite, NULL), MLA_OK);
  b->c = malloc(sizeof *b->c);
  b->right = mla_batch_answer_new();
  b->wrong = mla_batch_answer_new();
}

static void close_bench(bench *b) {
  mla_suite_free(&b->suite);
  free(b->c);
  free(b->right);
  free(b->wrong);
}

static void take_case(bench *b, int64_t i) {
  const mla_suite_entry *e = &b->suite.entry[i];
  mla_error err = mla_error_init();
  mla_status status = mla_batch_case_draw(e->id, e->seed, b->c, &err);
  ck_assert_msg(status == MLA_OK, "%s: %s", e->id, err.message);
  ck_assert_str_eq(b->c->id, e->id);
  memset(b->wrong, 0, sizeof *b->wrong);
  planted_batch_build(b->c, PLANTED_BATCH_NONE, 0, b->right);
}

static int64_t below(mla_rng rng, uint64_t *at, int64_t n) {
  return mla_rng_below(rng, (*at)++, (uint32_t)n);
}

static void draw_recipe(mla_batch_recipe *r, mla_rng rng, uint64_t *at) {
  ck_assert_int_eq(mla_batch_case_parse("batch:b1", r, NULL), MLA_OK);
  r->requests = below(rng, at, 9);
  r->page = 1 + below(rng, at, 20);
  for (int64_t b = 0; b < r->requests; b++) {
    r->context[b] = below(rng, at, 2) ? below(rng, at, 60) : 0;
    r->rows[b] = below(rng, at, below(rng, at, 2) ? 3 : 20);
  }
  r->threshold = below(rng, at, 4);
  r->pad[0] = below(rng, at, 3);
  r->pad[1] = below(rng, at, 5);
  r->next = below(rng, at, 5);
  r->draft = 1 + below(rng, at, 4);
  r->reject = below(rng, at, 2);
  r->end = below(rng, at, 2);
  r->full = below(rng, at, 2);
  r->units = 1 + below(rng, at, 20);
  r->ranks = below(rng, at, 5);
  r->interleave = 1 + below(rng, at, 20);
  r->spare = below(rng, at, 3);
}

START_TEST(library_and_plain_builder_agree) {
  mla_rng rng = mla_rng_named(7, "recipes");
  uint64_t at = 0;
  int64_t compared = 0;
  mla_batch_case *c = malloc(sizeof *c);
  for (int i = 0; i < 2000; i++) {
    mla_batch_recipe r, again;
    mla_verdict v;
    char id[MLA_BATCH_ID_MAX];
    draw_recipe(&r, rng, &at);
    mla_batch_case_print(&r, id, sizeof id);
    ck_assert_int_eq(mla_batch_case_parse(id, &again, NULL), MLA_OK);
    if (mla_batch_case_draw(id, (uint64_t)i, c, NULL) != MLA_OK) continue;
    ck_assert_str_eq(c->id, id);
    mla_batch_judge(c, NULL, &v);
    ck_assert_msg(v.kind == MLA_VERDICT_PASS, "%s: %s", id, v.reason);
    compared++;
  }
  ck_assert(compared > 1500);
  free(c);
}
END_TEST

/* -------------------------------------------------------------------- faults
 */

static int hunts(const char *list, const char *cls) {
  const char *at = strstr(list, cls);
  return at && (at[strlen(cls)] == ',' || at[strlen(cls)] == '\0');
}

/* A case that hunts the class catches it, and it is named there. */
static void require_caught(bench *b, int32_t fault, int32_t a) {
  const planted_batch_fault *f = planted_batch_at(fault);
  int caught = 0;
  for (int64_t i = 0; i < b->suite.count && !caught; i++) {
    mla_batch_diff diff;
    mla_look look;
    if (!hunts(b->suite.entry[i].hunts, f->cls)) continue;
    take_case(b, i);
    planted_batch_build(b->c, fault, a, b->wrong);
    mla_batch_differ(b->c, b->right, b->wrong, &diff);
    if (!diff.wrong) continue;
    mla_batch_explain(b->c, b->right, b->wrong, &look);
    ck_assert_msg(strcmp(look.cls, f->cls) == 0, "%s in %s looks like %s",
                  f->name, b->c->id, look.cls);
    ck_assert_int_eq(look.of, diff.wrong);
    caught = 1;
  }
  ck_assert_msg(caught, "%s is not caught by a case that hunts %s", f->name,
                f->cls);
}

START_TEST(every_fault_is_caught_and_named) {
  const planted_batch_fault *f = planted_batch_at(_i);
  bench b;
  open_bench(&b);
  ck_assert(planted_class_known(f->cls));
  ck_assert_int_eq(planted_fault_find(f->name), PLANTED_NONE);
  require_caught(&b, _i, f->a);
  require_caught(&b, _i, f->a2);
  close_bench(&b);
}
END_TEST

START_TEST(chance_is_not_taken_for_a_fault) {
  bench b;
  mla_look look;
  mla_rng rng = mla_rng_named(5, "chance");
  open_bench(&b);
  for (int64_t i = 0; i < b.suite.count; i++) {
    take_case(&b, i);
    *b.wrong = *b.right;
    for (int a = 0; a <= MLA_BATCH_SLOT_MAPPING; a++)
      for (int64_t k = 0; k < b.wrong->step[0].count[a]; k++)
        mla_batch_values(&b.wrong->step[0], a)[k] =
            1000000 + mla_rng_below(rng, (uint64_t)k, 1000000);
    mla_batch_explain(b.c, b.right, b.wrong, &look);
    ck_assert_str_eq(look.cls, "");
  }
  close_bench(&b);
}
END_TEST

/* ---------------------------------------------------------------- sentences */

START_TEST(says_where) {
  bench b;
  mla_batch_diff diff;
  char text[320];
  open_bench(&b);
  ck_assert_int_eq(
      mla_batch_case_draw("batch:b3,page16,ctx=0+15+16,q=16+1+1,pad=1+2", 42,
                          b.c, NULL),
      MLA_OK);
  planted_batch_build(b.c, PLANTED_BATCH_NONE, 0, b.right);
  *b.wrong = *b.right;
  mla_batch_values(&b.wrong->step[0], MLA_BATCH_POSITIONS)[17] = 3;
  mla_batch_values(&b.wrong->step[0], MLA_BATCH_SLOT_MAPPING)[19] = 0;
  mla_batch_differ(b.c, b.right, b.wrong, &diff);
  mla_batch_diff_print(b.c, b.right, &diff, text, sizeof text);
  ck_assert_str_eq(text,
                   "step 0: positions[17] is 3, not 16 (place 2, request 2, "
                   "its row 0, position 16: block 1 at 0); 2 of 121 values are "
                   "wrong: 1 of positions, 1 of slot_mapping");
  /* Nobody reads table entries behind the last block in use. */
  *b.wrong = *b.right;
  mla_batch_values(&b.wrong->step[0], MLA_BATCH_BLOCK_TABLE)[1] = 77;
  mla_batch_differ(b.c, b.right, b.wrong, &diff);
  ck_assert_int_eq(diff.wrong, 0);
  /* What is absent, and what is too much, is wrong. */
  b.wrong->step[0].count[MLA_BATCH_SEQ_LENS] = 3;
  b.wrong->step[0].count[MLA_BATCH_ORDER] = 5;
  mla_batch_differ(b.c, b.right, b.wrong, &diff);
  ck_assert_int_eq(diff.wrong, 2);
  mla_batch_diff_print(b.c, b.right, &diff, text, sizeof text);
  ck_assert(strstr(text, "seq_lens[3] is absent, not 0 (padding)"));
  close_bench(&b);
}
END_TEST

/* --------------------------------------------------------------------- JSON */

START_TEST(json_and_back) {
  bench b;
  mla_batch_case *c = malloc(sizeof *c);
  open_bench(&b);
  for (int64_t i = 0; i < b.suite.count; i++) {
    mla_error err = mla_error_init();
    mla_verdict v;
    take_case(&b, i);
    cJSON *json = mla_batch_json(b.c, b.right);
    mla_status status = mla_batch_json_read(json, c, b.wrong, &err);
    ck_assert_msg(status == MLA_OK, "%s: %s", b.c->id, err.message);
    mla_batch_judge(c, b.wrong, &v);
    ck_assert_msg(v.kind == MLA_VERDICT_PASS, "%s: %s", c->id, v.reason);
    cJSON_Delete(json);
  }
  free(c);
  close_bench(&b);
}
END_TEST

/* Each member of what is given spoilt in turn: a sentence, never a crash. */
START_TEST(broken_json) {
  static const char *const spoilt[] = {"-1", "1e9",          "\"x\"", "[[-1]]",
                                       "[]", "[2147483647]", "{}",    "1.5"};
  bench b;
  mla_batch_case *c = malloc(sizeof *c);
  int64_t refused = 0;
  open_bench(&b);
  for (int64_t i = 0; i < b.suite.count; i += 5) {
    take_case(&b, i);
    cJSON *json = mla_batch_json(b.c, b.right);
    int members =
        cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "given"));
    for (int m = 0; m < members; m++)
      for (size_t s = 0; s < sizeof spoilt / sizeof spoilt[0]; s++) {
        cJSON *copy = cJSON_Duplicate(json, 1);
        cJSON *given = cJSON_GetObjectItemCaseSensitive(copy, "given");
        mla_error err = mla_error_init();
        mla_verdict v;
        cJSON_ReplaceItemInArray(given, m, cJSON_Parse(spoilt[s]));
        /* cJSON forgets the name of what it replaces by place. */
        cJSON *item = cJSON_GetArrayItem(given, m);
        cJSON *was = cJSON_GetArrayItem(
            cJSON_GetObjectItemCaseSensitive(json, "given"), m);
        cJSON_DetachItemViaPointer(given, item);
        cJSON_AddItemToObject(given, was->string, item);
        if (mla_batch_json_read(copy, c, b.wrong, &err) == MLA_OK) {
          mla_batch_judge(c, b.wrong, &v);
        } else {
          ck_assert(err.message[0]);
          refused++;
        }
        cJSON_Delete(copy);
      }
    cJSON_Delete(json);
  }
  ck_assert(refused > 500);
  free(c);
  close_bench(&b);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("batch_judge");
  TCase *tcase = tcase_create("judge");
  tcase_set_timeout(tcase, 60);
  tcase_add_test(tcase, canonical_names);
  tcase_add_test(tcase, names_that_are_none);
  tcase_add_test(tcase, cases_too_large);
  tcase_add_test(tcase, library_and_plain_builder_agree);
  tcase_add_loop_test(tcase, every_fault_is_caught_and_named, 1,
                      PLANTED_BATCH_COUNT);
  tcase_add_test(tcase, chance_is_not_taken_for_a_fault);
  tcase_add_test(tcase, says_where);
  tcase_add_test(tcase, json_and_back);
  tcase_add_test(tcase, broken_json);
  suite_add_tcase(suite, tcase);
  return check_main(suite);
}
