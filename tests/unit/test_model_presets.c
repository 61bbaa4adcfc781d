/* Models: their sizes, their cases, and how they are called. */
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "file_text.h"
#include "model_presets.h"

static mla_status load(const char *name, mla_suite *suite, mla_error *err) {
  *err = mla_error_init();
  return mla_suite_load(name, suite, err);
}

/* What holds of every attention of this kind, and of names. */
START_TEST(sizes_are_sizes) {
  int count = 0;
  for (; mla_model_at(count); count++) {
    const mla_model *m = mla_model_at(count);
    ck_assert_ptr_eq(mla_model_find(m->name), m);
    ck_assert_str_ne(m->source, "");
    ck_assert_int_eq(m->hidden_size % 256, 0);
    ck_assert_int_gt(m->num_heads, 0);
    ck_assert_int_eq(m->kv_lora_rank % 64, 0);
    ck_assert_int_eq(m->qk_rope_head_dim % 2, 0);
    ck_assert_int_ge(m->qk_nope_head_dim, m->qk_rope_head_dim);
    ck_assert_int_gt(m->v_head_dim, 0);
    ck_assert_int_eq(m->index_n_heads > 0, m->index_topk > 0);
    ck_assert_int_eq(m->index_n_heads > 0, m->index_head_dim > 0);
  }
  ck_assert_int_eq(count, 11);
  ck_assert_ptr_null(mla_model_at(count));
  ck_assert_ptr_null(mla_model_at(-1));
  ck_assert_ptr_eq(mla_model_find("DeepSeek-V3"),
                   mla_model_find("deepseek-r1"));
  ck_assert_ptr_null(mla_model_find("deepseek"));
}
END_TEST

/* Each case parses, has the model's heads, and stands there once. */
START_TEST(every_model_has_cases_wherever_its_heads_divide) {
  static const int shards[] = {1, 8, 16};
  for (int i = 0; mla_model_at(i); i++) {
    const mla_model *m = mla_model_at(i);
    for (int k = 0; k < 3; k++) {
      char name[80];
      mla_suite suite;
      mla_error err;
      snprintf(name, sizeof name, "model:%s:tp%d", m->name, shards[k]);
      mla_status status = load(name, &suite, &err);
      if (m->num_heads % shards[k]) {
        ck_assert_int_eq(status, MLA_INVALID_ARGUMENT);
        ck_assert_str_eq(err.field, "num_heads");
        continue;
      }
      ck_assert_msg(status == MLA_OK, "%s: %s", name, err.message);
      ck_assert_int_eq(suite.count, m->index_n_heads ? 17 : 14);
      ck_assert_str_eq(suite.name, name);
      int seen[32] = {0};
      for (int64_t e = 0; e < suite.count; e++) {
        mla_case c;
        ck_assert_int_eq(mla_case_parse(suite.entry[e].id, &c, NULL), MLA_OK);
        mla_problem p = mla_case_problem(&c);
        ck_assert_int_eq(suite.entry[e].optional, 0);
        seen[c.op]++;
        if (c.op != MLA_OP_DECODE && c.op != MLA_OP_PREFILL) continue;
        ck_assert_int_eq(p.num_heads, m->num_heads / shards[k]);
        ck_assert_int_eq(p.kv_lora_rank, m->kv_lora_rank);
        ck_assert_int_eq(p.qk_rope_head_dim, m->qk_rope_head_dim);
        double width = m->qk_nope_head_dim + m->qk_rope_head_dim;
        ck_assert_double_eq_tol(p.scale * p.scale * width, 1, 1e-12);
      }
      static const int needed[] = {
          MLA_OP_KV_WRITE, MLA_OP_KV_READ, MLA_OP_ABSORB, MLA_OP_Q_ABSORB,
          MLA_OP_V_EXPAND, MLA_OP_DECODE,  MLA_OP_PREFILL};
      for (size_t n = 0; n < sizeof needed / sizeof needed[0]; n++)
        ck_assert_int_gt(seen[needed[n]], 0);
      ck_assert_int_eq(seen[MLA_OP_INDEX], m->index_n_heads > 0);
      ck_assert_int_eq(seen[MLA_OP_MAP_INDICES], m->index_n_heads > 0);
      mla_suite_free(&suite);
    }
  }
}
END_TEST

static void same_cases(const char *a, const char *b, int wanted) {
  mla_suite one, two;
  mla_error err;
  ck_assert_int_eq(load(a, &one, &err), MLA_OK);
  mla_status status = load(b, &two, &err);
  ck_assert_msg(status == MLA_OK, "%s", err.message);
  int same = one.count == two.count;
  for (int64_t i = 0; i < one.count && same; i++)
    same = strcmp(one.entry[i].id, two.entry[i].id) == 0;
  ck_assert_int_eq(same, wanted);
  mla_suite_free(&one);
  mla_suite_free(&two);
}

static void write_config(const char *path, const char *more) {
  char text[800];
  mla_error err = mla_error_init();
  int n = snprintf(
      text, sizeof text,
      "{\"hidden_size\": 7168, \"num_attention_heads\": 128, \"q_lora_rank\": "
      "1536, \"kv_lora_rank\": 512, \"qk_nope_head_dim\": 128, "
      "\"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"rms_norm_eps\": 1e-6, "
      "\"rope_theta\": 10000%s}",
      more);
  ck_assert_int_eq(mla_file_write(path, text, (size_t)n, &err), MLA_OK);
}

/* YaRN's factor on the softmax scale is the config's to say. */
START_TEST(a_config_json_is_a_model) {
  write_config("model_config.json", "");
  same_cases("model:deepseek-v3", "model:model_config.json", 1);
  same_cases("model:deepseek-v3:tp8", "model:model_config.json:tp8", 1);
  same_cases("model:deepseek-v3:tp8", "model:model_config.json", 0);
  write_config("model_yarn.json",
               ", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 40, "
               "\"mscale\": 1.0, \"mscale_all_dim\": 1.0, \"beta_fast\": 32, "
               "\"beta_slow\": 1, \"original_max_position_embeddings\": 4096}");
  same_cases("model:deepseek-v3", "model:model_yarn.json", 0);
  mla_suite suite;
  mla_error err;
  mla_case c;
  ck_assert_int_eq(load("model:model_yarn.json", &suite, &err), MLA_OK);
  ck_assert_int_eq(mla_case_parse(suite.entry[0].id, &c, NULL), MLA_OK);
  /* 192^-1/2 (0.1 ln 40 + 1)^2 */
  ck_assert_double_eq_tol(mla_case_problem(&c).scale, 0.1352337788608801,
                          1e-15);
  mla_suite_free(&suite);
}
END_TEST

static void refused(const char *name, mla_status wanted, const char *says) {
  mla_suite suite;
  mla_error err;
  mla_status status = load(name, &suite, &err);
  ck_assert_msg(status == wanted, "%s: %s", name, mla_status_name(status));
  ck_assert_msg(strstr(err.message, says) != NULL, "%s: %s", name, err.message);
  mla_suite_free(&suite);
}

START_TEST(what_is_no_model) {
  refused("model:nobody", MLA_NOT_AVAILABLE, "nobody");
  refused("model:", MLA_NOT_AVAILABLE, "no model");
  refused("model:deepseek-v3:tp", MLA_INVALID_ARGUMENT, ":tp8");
  refused("model:deepseek-v3:tp0", MLA_INVALID_ARGUMENT, ":tp8");
  refused("model:deepseek-v3:tp8x", MLA_INVALID_ARGUMENT, ":tp8");
  refused("model:deepseek-v3:tp3", MLA_INVALID_ARGUMENT, "do not divide");
  refused("model:glm-4.7-flash:tp8", MLA_INVALID_ARGUMENT, "20 heads");
  mla_error err = mla_error_init();
  ck_assert_int_eq(mla_file_write("model_bad.json", "{}", 2, &err), MLA_OK);
  refused("model:model_bad.json", MLA_INVALID_ARGUMENT, "hidden_size");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("model_presets");
  TCase *tests = tcase_create("model_presets");
  tcase_add_test(tests, sizes_are_sizes);
  tcase_add_test(tests, every_model_has_cases_wherever_its_heads_divide);
  tcase_add_test(tests, a_config_json_is_a_model);
  tcase_add_test(tests, what_is_no_model);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
