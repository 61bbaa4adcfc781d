/*
 * test_truth.c - the stored outputs of other people's layers agree with the
 * reference, and every operation of cpu on the way with its budget.
 */
#include "truth.h"

#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "mla/mla.h"
#include "truth_file.h"
#include "truth_fixture.h"

#define TRUTH_PATH "test_truth.tmp.safetensors"

/* ------------------------------------------------------------ stored files */

static const char *const stored[] = {"tiny_v3", "tiny_v3_far", "tiny_noq",
                                     "tiny_neox"};

static const char *stored_path(const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/external/%s.safetensors", MLA_GOLDEN_DIR,
           name);
  return path;
}

/* Half the tolerance: the files are known to agree to 3e-7. */
START_TEST(reference_agrees) {
  mla_truth_result r = judge_truth(stored_path(stored[_i]), "ref");
  ck_assert_msg(r.verdict == MLA_TRUTH_PASS, "%s", truth_line(&r));
  ck_assert_str_eq(r.name, stored[_i]);
  ck_assert_str_eq(r.reason, "");
  ck_assert_int_eq(r.activation, MLA_F64);
  ck_assert_int_eq(r.combinations, 14);
  ck_assert_int_ge(r.distinct, 2);
  ck_assert(r.output_error > 0 && r.output_error <= 5e-7);
  ck_assert(r.attention_error > 0 && r.attention_error <= 5e-7);
  ck_assert(r.latent_error > 0 && r.latent_error <= 5e-7);
}
END_TEST

START_TEST(stored_metadata_follows_the_rules) {
  mla_truth_file truth;
  mla_error err = mla_error_init();
  ck_assert_int_eq(mla_truth_open(stored_path("tiny_v3_far"), &truth, &err),
                   MLA_OK);
  ck_assert_int_eq(truth.config.rope.table, MLA_ROPE_TABLE_F32);
  ck_assert_int_eq((int)truth.first_position, 2011);
  ck_assert_int_eq(truth.config.rope.type, MLA_ROPE_YARN);
  ck_assert_str_eq(truth.remark, "");
  mla_truth_close(&truth);
}
END_TEST

/* A stored file with one thing changed in what it says. */
static void restate(const char *name, const char *from, const char *to) {
  char json[4096];
  mla_st *file;
  mla_st_writer *w = mla_st_writer_new();
  ck_assert_int_eq(mla_st_open(stored_path(name), &file, NULL), MLA_OK);
  snprintf(json, sizeof json, "%s", mla_st_meta(file, "truth"));
  edit_json(json, sizeof json, from, to);
  for (int32_t i = 0; i < mla_st_count(file); i++) {
    const mla_st_tensor *t = mla_st_at(file, i);
    ck_assert_int_eq(mla_st_writer_add(w, t->name, t->dtype, t->rank, t->shape,
                                       t->data, NULL),
                     MLA_OK);
  }
  ck_assert_int_eq(mla_st_writer_meta(w, "truth", json, NULL), MLA_OK);
  ck_assert_int_eq(mla_st_writer_save(w, TRUTH_PATH, NULL), MLA_OK);
  mla_st_writer_free(w);
  mla_st_close(file);
}

/* Far from position 0 the rounding of the tables shows. */
START_TEST(tables_are_told_apart) {
  restate("tiny_v3_far", "\"rope_table\": \"f32\"",
          "\"rope_table\": \"exact\"");
  mla_truth_result r = judge_truth(TRUTH_PATH, "ref");
  ck_assert_msg(r.verdict == MLA_TRUTH_FAIL, "%s", truth_line(&r));
  ck_assert(r.output_error > 1e-6 && r.output_error < 1e-5);
  remove(TRUTH_PATH);
}
END_TEST

START_TEST(cpu_is_held_to_its_budget) {
  mla_truth_result r = judge_truth(stored_path(stored[_i]), "cpu");
  ck_assert_msg(r.verdict == MLA_TRUTH_PASS, "%s", truth_line(&r));
  ck_assert_int_eq(r.activation, MLA_F32);
  ck_assert_int_eq(r.combinations, 14);
  ck_assert(r.stages > 500);
  ck_assert(r.stage_ratio > 0 && r.stage_ratio <= 1);
  ck_assert_ptr_nonnull(strstr(truth_line(&r), "error/budget"));
}
END_TEST

/* One page size and number of splits of the many: sparse prefill, the front
   densely, sparse decode. */
START_TEST(reference_agrees_with_an_indexer) {
  static const int32_t page[] = {16}, splits[] = {2};
  const mla_truth_options few = {page, 1, splits, 1};
  mla_truth_result r = judge_truth_by(stored_path("dsa_small"), "ref", &few);
  ck_assert_msg(r.verdict == MLA_TRUTH_PASS, "%s", truth_line(&r));
  ck_assert_str_eq(r.reason, "");
  ck_assert_int_eq(r.combinations, 3);
  ck_assert_int_eq((int)r.choices, 2 * 200);
  ck_assert_int_eq((int)r.wrong_choices, 0);
  ck_assert(r.output_error > 0 && r.attention_error > 0);
  ck_assert_ptr_nonnull(strstr(truth_line(&r), "400 of 400 choices equal"));
}
END_TEST

START_TEST(files_are_told_apart) {
  ck_assert_int_eq(mla_truth_is(stored_path("tiny_v3")), 1);
  ck_assert_int_eq(mla_truth_is("no such file"), 0);
  mla_st_writer *w = mla_st_writer_new();
  ck_assert_int_eq(mla_st_writer_save(w, TRUTH_PATH, NULL), MLA_OK);
  ck_assert_int_eq(mla_truth_is(TRUTH_PATH), 0);
  mla_st_writer_free(w);
  remove(TRUTH_PATH);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("truth");
  TCase *tests = tcase_create("truth");
  tcase_set_timeout(tests, 120);
  tcase_add_loop_test(tests, reference_agrees, 0, 4);
  tcase_add_test(tests, stored_metadata_follows_the_rules);
  tcase_add_test(tests, tables_are_told_apart);
  tcase_add_loop_test(tests, cpu_is_held_to_its_budget, 0, 2);
  tcase_add_test(tests, reference_agrees_with_an_indexer);
  tcase_add_test(tests, files_are_told_apart);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
