/*
 * test_truth_made.c - files of outputs made here, by plain loops: every key of
 * the form is understood, and nothing false, foreign or broken passes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "dmath.h"
#include "layer_direct.h"
#include "mla/mla.h"
#include "truth.h"
#include "truth_file.h"
#include "truth_fixture.h"

#define TRUTH_PATH "test_truth_made.tmp.safetensors"

enum { T = DIRECT_T, HIDDEN = DIRECT_HIDDEN, L = DIRECT_L };
enum { WIDE = DIRECT_H * DIRECT_V, ROWS = 3 };

/* A made file: what it says, and what it holds. */
typedef struct made {
  char json[4096];
  double output[T * HIDDEN], kv_c[T * L], attention[T * WIDE];
  double rows_attention[ROWS * WIDE];
  int32_t rows[ROWS], topk[T * DIRECT_TOPK];
} made;

static const char with_everything[] =
    "{\"case\":\"made\",\"seed\":77,\"tokens\":7,\"first_position\":2,"
    "\"config\":{\"hidden_size\":10,\"num_attention_heads\":3,"
    "\"num_key_value_heads\":3,\"q_lora_rank\":9,\"kv_lora_rank\":8,"
    "\"qk_nope_head_dim\":6,\"qk_rope_head_dim\":4,\"v_head_dim\":5,"
    "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":100.0,"
    "\"llama_4_scaling_beta\":0.5,\"original_max_position_embeddings\":4},"
    "\"index\":{}},\"rope_interleave\":true,\"rope_table\":\"exact\","
    "\"mla_scale_q_lora\":1.75,\"mla_scale_kv_lora\":0.625,"
    "\"rms_norm_eps\":{\"q_a_layernorm\":0.5,\"kv_a_layernorm\":0.25},"
    "\"params\":{\"q_a_proj.weight\":[9,10],\"q_a_layernorm.weight\":[9],"
    "\"q_b_proj.weight\":[30,9],\"kv_a_proj_with_mqa.weight\":[12,10],"
    "\"kv_a_layernorm.weight\":[8],\"kv_b_proj.weight\":[33,8],"
    "\"o_proj.weight\":[10,15]}}";

static void edit(made *m, const char *from, const char *to) {
  edit_json(m->json, sizeof m->json, from, to);
}

static void save_without(const made *m, const char *left_out) {
  const int64_t output[2] = {T, HIDDEN}, kv_c[2] = {T, L};
  const int64_t rows[1] = {ROWS}, wide[2] = {ROWS, WIDE};
  const int64_t list[2] = {T, DIRECT_TOPK};
  const struct {
    const char *name;
    int32_t dtype, rank;
    const int64_t *shape;
    const void *data;
  } all[] = {{"output", MLA_F64, 2, output, m->output},
             {"kv_c", MLA_F64, 2, kv_c, m->kv_c},
             {"rows", MLA_I32, 1, rows, m->rows},
             {"attn_output_rows", MLA_F64, 2, wide, m->rows_attention},
             {"topk_indices", MLA_I32, 2, list, m->topk}};
  mla_st_writer *w = mla_st_writer_new();
  int count = strstr(m->json, "index_topk") ? 5 : 4;
  for (int i = 0; i < count; i++) {
    if (strcmp(all[i].name, left_out) == 0) continue;
    ck_assert_int_eq(
        mla_st_writer_add(w, all[i].name, all[i].dtype, all[i].rank,
                          all[i].shape, all[i].data, NULL),
        MLA_OK);
  }
  ck_assert_int_eq(mla_st_writer_meta(w, "truth", m->json, NULL), MLA_OK);
  ck_assert_int_eq(mla_st_writer_save(w, TRUTH_PATH, NULL), MLA_OK);
  mla_st_writer_free(w);
}

static void save(const made *m) {
  save_without(m, "");
}

/* Fills the outputs by plain loops from what the JSON says. */
static void fill(made *m) {
  mla_truth_file truth;
  direct_layer d;
  mla_error err = mla_error_init();
  double scale;
  save(m);
  mla_status status = mla_truth_open(TRUTH_PATH, &truth, &err);
  ck_assert_msg(status == MLA_OK, "%s", err.message);
  memset(&d, 0, sizeof d);
  d.config = truth.config;
  d.first_position = truth.first_position;
  ck_assert_int_eq(mla_truth_weights(&truth, &d.weights, &err), MLA_OK);
  ck_assert_int_eq(mla_truth_hidden(&truth, MLA_F64, &d.hidden, &err), MLA_OK);
  direct_layer_run(&d, m->attention, m->output, m->kv_c);
  if (d.config.index_topk) direct_layer_choose(&d, m->topk);
  scale = d.config.mla_scale_kv_lora;
  for (int i = 0; i < T * L && scale > 0; i++) m->kv_c[i] /= scale;
  for (int r = 0; r < ROWS; r++) {
    memcpy(m->rows_attention + r * WIDE, m->attention + m->rows[r] * WIDE,
           WIDE * sizeof(double));
  }
  direct_layer_free(&d);
  mla_truth_close(&truth);
}

static made *make(void) {
  made *m = calloc(1, sizeof *m);
  ck_assert_ptr_nonnull(m);
  snprintf(m->json, sizeof m->json, "%s", with_everything);
  m->rows[1] = 3;
  m->rows[2] = T - 1;
  return m;
}

static void expect(made *m, int verdict, const char *reason) {
  save(m);
  mla_truth_result r = judge_truth(TRUTH_PATH, "ref");
  ck_assert_msg(r.verdict == verdict, "%s", truth_line(&r));
  ck_assert_msg(strstr(r.reason, reason) != NULL, "\"%s\" lacks \"%s\"",
                r.reason, reason);
  remove(TRUTH_PATH);
}

static void drop_q_lora(made *m) {
  edit(m, "\"q_lora_rank\":9,", "");
  edit(m,
       "\"q_a_proj.weight\":[9,10],\"q_a_layernorm.weight\":[9],"
       "\"q_b_proj.weight\":[30,9]",
       "\"q_proj.weight\":[30,10]");
}

/* Every key of the form, against plain loops: to the last few bits. */
START_TEST(every_key_is_understood) {
  made *m = make();
  if (_i == 1) {
    drop_q_lora(m);
    edit(m, "\"rope_interleave\":true", "\"rope_interleave\":false");
    edit(m, "\"mla_scale_kv_lora\":0.625,", "");
    edit(m, "\"llama_4_scaling_beta\":0.5,", "");
  }
  if (_i == 2)
    edit(m, "\"mla_scale_q_lora\":1.75", "\"mla_scale_q_lora\":true");
  if (_i == 3) edit(m, "\"rope_table\":\"exact\",", "");
  fill(m);
  save(m);
  mla_truth_result r = judge_truth(TRUTH_PATH, "ref");
  ck_assert_msg(r.verdict == MLA_TRUTH_PASS, "%s", truth_line(&r));
  ck_assert_msg(r.output_error <= 1e-13, "%s", truth_line(&r));
  ck_assert_msg(r.attention_error <= 1e-13, "%s", truth_line(&r));
  ck_assert_msg(r.latent_error <= 1e-14, "%s", truth_line(&r));
  remove(TRUTH_PATH);
  free(m);
}
END_TEST

/* An indexer that turns interleaved pairs, or half-split ones. */
static void add_indexer(made *m, const char *interleave) {
  char pairs[64];
  edit(m, "\"seed\":77", "\"seed\":5"); /* where either pairing chooses
                                           differently, and eps matters */
  edit(m, "\"index\":{}",
       "\"index\":{\"index_n_heads\":2,\"index_head_dim\":6,"
       "\"index_topk\":3}");
  edit(m, "\"params\":{",
       "\"params\":{\"indexer.wq_b.weight\":[12,9],"
       "\"indexer.wk.weight\":[6,10],\"indexer.k_norm.weight\":[6],"
       "\"indexer.k_norm.bias\":[6],\"indexer.weights_proj.weight\":[2,10],");
  edit(m, "\"kv_a_layernorm\":0.25",
       "\"kv_a_layernorm\":0.25,\"indexer.k_norm\":0.125");
  snprintf(pairs, sizeof pairs, "\"indexer_rope_interleave\":%s,\"rope_table\"",
           interleave);
  edit(m, "\"rope_table\"", pairs);
}

START_TEST(an_indexer_turns_either_pairs) {
  made *m = make();
  add_indexer(m, _i ? "true" : "false");
  fill(m);
  save(m);
  mla_truth_result r = judge_truth(TRUTH_PATH, "ref");
  ck_assert_msg(r.verdict == MLA_TRUTH_PASS, "%s", truth_line(&r));
  ck_assert_msg(r.output_error <= 1e-13, "%s", truth_line(&r));
  ck_assert_int_eq((int)r.choices, 15 * T);
  ck_assert_int_eq(r.combinations, 16);
  edit(m, _i ? "interleave\":true,\"rope_table" : "interleave\":false",
       _i ? "interleave\":false,\"rope_table" : "interleave\":true");
  expect(m, MLA_TRUTH_FAIL, "");
  free(m);
}
END_TEST

/* One position in one row, and an eps that is not the one. */
START_TEST(wrong_choices_are_found) {
  made *m = make();
  add_indexer(m, "true");
  fill(m);
  int32_t *last = m->topk + (T - 1) * DIRECT_TOPK, right = last[1];
  while (last[1] == right || last[1] == last[0] || last[1] == last[2])
    last[1] = (last[1] + 1) % T;
  save(m);
  mla_truth_result r = judge_truth(TRUTH_PATH, "ref");
  ck_assert_int_eq(r.verdict, MLA_TRUTH_FAIL);
  ck_assert_int_eq((int)r.wrong_choices, 15);
  ck_assert_ptr_nonnull(strstr(truth_line(&r),
                               "90 of 105 choices equal "
                               "(sparse prefill, page 1)"));
  last[1] = right;
  edit(m, "\"indexer.k_norm\":0.125", "\"indexer.k_norm\":0.9");
  expect(m, MLA_TRUTH_FAIL, "");
  free(m);
}
END_TEST

/* What the file says of its scales is used, and a broken rule is told. */
START_TEST(scales_of_the_file_count) {
  made *m = make();
  edit(m, "\"rope_table\"", "\"softmax_scale\":0.8,\"rope_table\"");
  fill(m);
  expect(m, MLA_TRUTH_PASS, "softmax_scale is 0.8");
  edit(m, "\"softmax_scale\":0.8", "\"softmax_scale\":0.81");
  expect(m, MLA_TRUTH_FAIL, "softmax_scale is 0.81");
  edit(m, "\"softmax_scale\":0.81",
       "\"softmax_scale\":0.8,"
       "\"attention_scaling\":1.01");
  expect(m, MLA_TRUTH_FAIL, "attention_scaling is 1.01");
  free(m);
}
END_TEST

/* Each says what was not run, and must be found out. */
static const struct {
  const char *from, *to;
} lies[] = {
    {"\"mla_scale_q_lora\":1.75,", ""},
    {"\"mla_scale_kv_lora\":0.625,", ""},
    {"\"llama_4_scaling_beta\":0.5,", ""},
    {"\"llama_4_scaling_beta\":0.5", "\"llama_4_scaling_beta\":0.51"},
    {"\"original_max_position_embeddings\":4",
     "\"original_max_position_embeddings\":5"},
    {"\"rope_interleave\":true", "\"rope_interleave\":false"},
    {"\"rope_theta\":100.0", "\"rope_theta\":101.0"},
    {"\"q_a_layernorm\":0.5", "\"q_a_layernorm\":0.501"},
    {"\"kv_a_layernorm\":0.25", "\"kv_a_layernorm\":0.251"},
    {"\"first_position\":2", "\"first_position\":3"},
    {"\"seed\":77", "\"seed\":78"},
};
#define LIES ((int)(sizeof lies / sizeof lies[0]))

START_TEST(a_lie_is_found_out) {
  made *m = make();
  fill(m);
  edit(m, lies[_i].from, lies[_i].to);
  expect(m, MLA_TRUTH_FAIL, "");
  free(m);
}
END_TEST

START_TEST(a_wrong_number_is_found) {
  made *m = make();
  double largest = 0;
  fill(m);
  made good = *m;
  for (int i = 0; i < T * HIDDEN; i++) {
    if (mla_fabs(m->output[i]) > largest) largest = mla_fabs(m->output[i]);
  }
  m->output[17] += 0.9e-6 * largest;
  expect(m, MLA_TRUTH_PASS, "");
  m->output[17] += 0.2e-6 * largest;
  expect(m, MLA_TRUTH_FAIL, "");
  *m = good;
  m->output[T * HIDDEN - 1] = mla_nan();
  expect(m, MLA_TRUTH_FAIL, "");
  *m = good;
  m->kv_c[3] += 1e-4;
  expect(m, MLA_TRUTH_FAIL, "");
  *m = good;
  m->rows_attention[ROWS * WIDE - 1] += 1e-4;
  expect(m, MLA_TRUTH_FAIL, "");
  *m = good;
  memset(m->output, 0, sizeof m->output);
  expect(m, MLA_TRUTH_FAIL, "");
  free(m);
}
END_TEST

static const struct {
  const char *from, *to, *word;
} foreign[] = {
    {"\"params\":{", "\"params\":{\"o_proj.bias\":[10],", "o_proj.bias"},
    {"\"default\"", "\"longrope\"", "longrope"},
};
#define FOREIGN ((int)(sizeof foreign / sizeof foreign[0]))

START_TEST(what_is_foreign_never_passes) {
  made *m = make();
  fill(m);
  edit(m, foreign[_i].from, foreign[_i].to);
  expect(m, MLA_TRUTH_UNSUPPORTED, foreign[_i].word);
  free(m);
}
END_TEST

/* ---------------------------------------------------------- malformed files */

static void malformed(const char *word) {
  mla_truth_result result;
  mla_device *dev;
  mla_error err = mla_error_init();
  ck_assert_int_eq(mla_open("ref", 0, NULL, &dev, NULL), MLA_OK);
  mla_status status = mla_truth_judge(TRUTH_PATH, dev, NULL, &result, &err);
  ck_assert_msg(status == MLA_INVALID_ARGUMENT, "%s is not refused (%s)", word,
                mla_status_name(status));
  ck_assert_int_ne(result.verdict, MLA_TRUTH_PASS);
  ck_assert_msg(strstr(err.message, word) != NULL, "\"%s\" lacks \"%s\"",
                err.message, word);
  mla_close(dev);
  remove(TRUTH_PATH);
}

static const struct {
  const char *from, *to, *word;
} broken[] = {
    {"\"index\":{}", "\"index_topk\":4", "index_n_heads"},
    {"\"index\":{}",
     "\"index_topk\":3,\"index_n_heads\":2,\"index_head_dim\":6", "index_wq_b"},
    {"\"rope_interleave\"",
     "\"indexer_rope_interleave\":false,"
     "\"rope_interleave\"",
     "index_topk"},
    {"{\"case\"", "[\"case\"", "truth.config"},
    {"\"config\"", "\"konfig\"", "truth.config"},
    {"\"seed\":77,", "", "seed"},
    {"\"seed\":77", "\"seed\":-1", "seed"},
    {"\"tokens\":7", "\"tokens\":0", "tokens"},
    {"\"tokens\":7", "\"tokens\":8", "output"},
    {"\"first_position\":2", "\"first_position\":1048576", "first_position"},
    {"\"hidden_size\":10", "\"hidden_size\":11", "output"},
    {"\"kv_lora_rank\":8", "\"kv_lora_rank\":7", "kv_c"},
    {"\"v_head_dim\":5", "\"v_head_dim\":4", "attn_output_rows"},
    {"\"qk_rope_head_dim\":4", "\"qk_rope_head_dim\":5", "even"},
    {"\"rope_table\":\"exact\"", "\"rope_table\":\"f16\"", "rope_table"},
    {"\"rope_interleave\":true", "\"rope_interleave\":\"yes\"",
     "rope_interleave"},
    {"\"mla_scale_q_lora\":1.75", "\"mla_scale_q_lora\":\"big\"",
     "mla_scale_q_lora"},
    {"\"params\":", "\"parameters\":", "params"},
    {"[30,9]", "[30,9,1]", "q_b_proj"},
    {"[30,9]", "[30,8]", "q_b_proj"},
    {"[30,9]", "[30,-9]", "q_b_proj"},
    {",\"o_proj.weight\":[10,15]", "", "o_proj"},
    {"\"q_a_proj.weight\":[9,10]",
     "\"q_a_proj.weight\":[9,10],\"q_a_proj\":[9,10]", "twice"},
};
#define BROKEN ((int)(sizeof broken / sizeof broken[0]))

START_TEST(broken_metadata_is_refused) {
  made *m = make();
  edit(m, broken[_i].from, broken[_i].to);
  save(m);
  malformed(broken[_i].word);
  free(m);
}
END_TEST

START_TEST(missing_outputs_are_refused) {
  static const char *const names[] = {"output", "kv_c", "rows",
                                      "attn_output_rows"};
  made *m = make();
  save_without(m, names[_i]);
  malformed(names[_i]);
  free(m);
}
END_TEST

START_TEST(rows_are_checked) {
  made *m = make();
  m->rows[1] = T;
  save(m);
  malformed("rows[1] is 7");
  free(m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("truth_made");
  TCase *tests = tcase_create("truth_made");
  tcase_set_timeout(tests, 120);
  tcase_add_loop_test(tests, every_key_is_understood, 0, 4);
  tcase_add_loop_test(tests, an_indexer_turns_either_pairs, 0, 2);
  tcase_add_test(tests, wrong_choices_are_found);
  tcase_add_test(tests, scales_of_the_file_count);
  tcase_add_loop_test(tests, a_lie_is_found_out, 0, LIES);
  tcase_add_test(tests, a_wrong_number_is_found);
  tcase_add_loop_test(tests, what_is_foreign_never_passes, 0, FOREIGN);
  tcase_add_loop_test(tests, broken_metadata_is_refused, 0, BROKEN);
  tcase_add_loop_test(tests, missing_outputs_are_refused, 0, 4);
  tcase_add_test(tests, rows_are_checked);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
