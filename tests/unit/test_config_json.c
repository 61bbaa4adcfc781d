/*
 * test_config_json.c - layers as the config.json of published models have
 * them, and what must be refused.
 */
#include "config_json.h"

#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "dmath.h"
#include "mla/mla.h"

#define SIZES(hidden, heads, q_lora, kv_lora, nope, rope, v)    \
  "\"hidden_size\":" #hidden ",\"num_attention_heads\":" #heads \
  ",\"q_lora_rank\":" #q_lora ",\"kv_lora_rank\":" #kv_lora     \
  ",\"qk_nope_head_dim\":" #nope ",\"qk_rope_head_dim\":" #rope \
  ",\"v_head_dim\":" #v
#define TOY SIZES(64, 2, null, 16, 8, 4, 8)

static mla_layer_config parse(const char *json) {
  mla_layer_config config;
  mla_error err = mla_error_init();
  mla_status status = mla_config_parse(json, strlen(json), &config, &err);
  ck_assert_msg(status == MLA_OK, "%s", err.message);
  return config;
}

static void refused(const char *json, mla_status expected, const char *word) {
  mla_layer_config config;
  mla_error err = mla_error_init();
  mla_status status = mla_config_parse(json, strlen(json), &config, &err);
  ck_assert_msg(status == expected, "%s: %s for %s", mla_status_name(status),
                err.message, json);
  ck_assert_msg(strstr(err.message, word) != NULL, "\"%s\" lacks \"%s\"",
                err.message, word);
}

static int near(double a, double b) {
  return mla_fabs(a - b) <= 1e-12 * b;
}

/* ------------------------------------------------------------------ models */

START_TEST(deepseek_v2_lite) {
  mla_layer_config c = parse("{\"model_type\":\"deepseek_v2\"," SIZES(
      2048, 16, null, 512, 128, 64,
      128) ",\"attention_bias\":false,"
           "\"max_position_embeddings\":163840,\"rms_norm_eps\":1e-06,"
           "\"rope_scaling\":{\"beta_fast\":32,\"beta_slow\":1,\"factor\":40,"
           "\"mscale\":0.707,\"mscale_all_dim\":0.707,"
           "\"original_max_position_embeddings\":4096,\"type\":\"yarn\"},"
           "\"rope_theta\":10000,\"num_key_value_heads\":16}");
  ck_assert_int_eq(c.hidden_size, 2048);
  ck_assert_int_eq(c.num_heads, 16);
  ck_assert_int_eq(c.q_lora_rank, 0);
  ck_assert_int_eq(c.kv_lora_rank, 512);
  ck_assert_int_eq(c.rope.type, MLA_ROPE_YARN);
  ck_assert_int_eq(c.rope.dim, 64);
  ck_assert_int_eq(c.rope.half_split, 0);
  ck_assert(c.rope.factor == 40 && c.rope.mscale == 0.707);
  ck_assert(mla_rope_attention_factor(&c.rope) == 1);
  ck_assert(near(mla_layer_softmax_scale(&c), 0.1147213867929261));
}
END_TEST

START_TEST(deepseek_v3_in_both_forms) {
  mla_layer_config old_form = parse("{\"model_type\":\"deepseek_v3\"," SIZES(
      7168, 128, 1536, 512, 128, 64,
      128) ","
           "\"max_position_embeddings\":163840,\"rms_norm_eps\":1e-06,"
           "\"rope_scaling\":{\"beta_fast\":32,\"beta_slow\":1,\"factor\":40,"
           "\"mscale\":1.0,\"mscale_all_dim\":1.0,"
           "\"original_max_position_embeddings\":4096,\"type\":\"yarn\"},"
           "\"rope_theta\":10000}");
  mla_layer_config new_form = parse("{\"model_type\":\"deepseek_v3\"," SIZES(
      7168, 128, 1536, 512, 128, 64,
      128) ","
           "\"max_position_embeddings\":163840,\"rms_norm_eps\":1e-06,"
           "\"rope_interleave\":true,\"rope_parameters\":{\"beta_fast\":32.0,"
           "\"beta_slow\":1.0,\"factor\":40.0,\"mscale\":1.0,"
           "\"mscale_all_dim\":1.0,\"original_max_position_embeddings\":4096,"
           "\"rope_theta\":10000.0,\"rope_type\":\"yarn\",\"type\":\"yarn\"}}");
  ck_assert_int_eq(old_form.q_lora_rank, 1536);
  ck_assert(near(mla_layer_softmax_scale(&old_form), 0.1352337788608801));
  ck_assert(old_form.rope.factor == new_form.rope.factor);
  ck_assert(old_form.rope.theta == new_form.rope.theta);
  ck_assert(old_form.rope.beta_fast == new_form.rope.beta_fast);
  ck_assert(old_form.rope.beta_slow == new_form.rope.beta_slow);
  ck_assert(old_form.rope.original_max_position ==
            new_form.rope.original_max_position);
  ck_assert_int_eq(old_form.rope.type, new_form.rope.type);
  ck_assert_int_eq(old_form.rope.half_split, new_form.rope.half_split);
}
END_TEST

START_TEST(kimi_k2) {
  mla_layer_config c = parse("{\"model_type\":\"kimi_k2\"," SIZES(
      7168, 64, 1536, 512, 128, 64,
      128) ","
           "\"max_position_embeddings\":131072,\"rms_norm_eps\":1e-06,"
           "\"rope_scaling\":{\"beta_fast\":1.0,\"beta_slow\":1.0,\"factor\":"
           "32.0,"
           "\"mscale\":1.0,\"mscale_all_dim\":1.0,"
           "\"original_max_position_embeddings\":4096,\"type\":\"yarn\"},"
           "\"rope_theta\":50000.0}");
  ck_assert_int_eq(c.num_heads, 64);
  ck_assert(c.rope.beta_fast == 1 && c.rope.theta == 50000);
}
END_TEST

START_TEST(a_model_inside_another) {
  mla_layer_config c = parse(
      "{\"model_type\":\"kimi_k25\",\"hidden_size\":9,\"text_config\":{" SIZES(
          7168, 64, 1536, 512, 128, 64, 128) ",\"rope_theta\":50000.0}}");
  ck_assert_int_eq(c.hidden_size, 7168);
  ck_assert(c.rope.theta == 50000);
}
END_TEST

#define MINICPM3                                                              \
  "{\"model_type\":\"minicpm3\",\"hidden_size\":2560,\"num_attention_heads\"" \
  ":40,\"q_lora_rank\":768,\"kv_lora_rank\":256,\"qk_nope_head_dim\":64,"     \
  "\"qk_rope_head_dim\":32,\"rms_norm_eps\":1e-05,"                           \
  "\"max_position_embeddings\":32768"

START_TEST(minicpm3) {
  refused(MINICPM3
          ",\"rope_scaling\":{\"type\":\"longrope\","
          "\"long_factor\":[1.0],\"short_factor\":[1.0],"
          "\"original_max_position_embeddings\":32768}}",
          MLA_UNSUPPORTED, "longrope");
  mla_layer_config c = parse(MINICPM3 ",\"rope_scaling\":null}");
  ck_assert_int_eq(c.v_head_dim, 64);
  ck_assert_int_eq(c.rope.half_split, 1);
  ck_assert_int_eq(c.rope.type, MLA_ROPE_PLAIN);
  ck_assert(c.rope.theta == 10000);
  ck_assert(c.q_norm_eps == 1e-5 && c.kv_norm_eps == 1e-5);
  c = parse(MINICPM3 ",\"rope_interleave\":true}");
  ck_assert_int_eq(c.rope.half_split, 0);
}
END_TEST

START_TEST(glm) {
  mla_layer_config c = parse("{\"model_type\":\"glm4_moe_lite\"," SIZES(
      2048, 20, 768, 512, 192, 64,
      256) ","
           "\"partial_rotary_factor\":1.0,\"rope_scaling\":null,"
           "\"rope_theta\":1000000,\"rms_norm_eps\":1e-05}");
  ck_assert_int_eq(c.qk_nope_head_dim, 192);
  ck_assert_int_eq(c.v_head_dim, 256);
  ck_assert(c.rope.theta == 1e6);
  ck_assert(near(mla_layer_softmax_scale(&c), 1.0 / 16));
  c = parse("{\"model_type\":\"glm_moe_dsa\"," SIZES(
      6144, 64, 2048, 512, 192, 64,
      256) ","
           "\"index_head_dim\":128,\"index_n_heads\":32,\"index_topk\":2048,"
           "\"rope_parameters\":{\"rope_theta\":1000000,\"rope_type\":"
           "\"default\"}}");
  ck_assert_int_eq(c.index_topk, 2048);
  ck_assert_int_eq(c.index_n_heads, 32);
  ck_assert_int_eq(c.index_head_dim, 128);
}
END_TEST

START_TEST(mistral_4) {
  mla_layer_config c = parse("{\"model_type\":\"mistral4\"," SIZES(
      4096, 32, 1024, 256, 64, 64,
      128) ","
           "\"max_position_embeddings\":1048576,\"rope_interleave\":true,"
           "\"rope_parameters\":{\"beta_fast\":32.0,\"beta_slow\":1.0,"
           "\"factor\":128.0,\"llama_4_scaling_beta\":0.1,\"mscale\":1.0,"
           "\"mscale_all_dim\":1.0,\"original_max_position_embeddings\":8192,"
           "\"rope_theta\":10000.0,\"rope_type\":\"yarn\",\"type\":\"yarn\"}}");
  ck_assert(c.rope.llama_4_beta == 0.1);
  ck_assert(c.rope.original_max_position == 8192);
  ck_assert(mla_rope_query_scale(&c.rope, 8191) == 1);
  ck_assert(mla_rope_query_scale(&c.rope, 8192) > 1.069);
}
END_TEST

START_TEST(longcat) {
  const char *json =
      "{\"model_type\":\"longcat_flash\"," SIZES(6144, 64, 1536, 512, 128, 64,
                                                 128) ","
      "\"mla_scale_q_lora\":true,\"mla_scale_kv_lora\":true,"
      "\"rope_theta\":10000000.0,\"rms_norm_eps\":1e-05}";
  mla_layer_config c = parse(json);
  ck_assert(c.mla_scale_q_lora == 2);
  ck_assert(near(c.mla_scale_kv_lora * c.mla_scale_kv_lora, 12));
  c = parse("{" SIZES(
      6144, 64, 1536, 512, 128, 64,
      128) ","
           "\"mla_scale_q_lora\":1.5,\"mla_scale_kv_lora\":false}");
  ck_assert(c.mla_scale_q_lora == 1.5);
  ck_assert(c.mla_scale_kv_lora == 0);
}
END_TEST

/* ------------------------------------------------------- what may be absent */

START_TEST(defaults) {
  mla_layer_config c = parse("{" TOY "}");
  ck_assert_int_eq(c.q_lora_rank, 0);
  ck_assert_int_eq(c.index_topk, 0);
  ck_assert(c.q_norm_eps == 1e-6 && c.rope.theta == 10000);
  ck_assert_int_eq(c.rope.table, MLA_ROPE_TABLE_EXACT);
  c = parse("{" TOY
            ",\"max_position_embeddings\":4096,\"rope_parameters\":{"
            "\"rope_type\":\"yarn\",\"original_max_position_embeddings\":1024,"
            "\"attention_factor\":1.5,\"truncate\":false}}");
  ck_assert(c.rope.factor == 4);
  ck_assert(c.rope.attention_factor == 1.5);
  ck_assert_int_eq(c.rope.no_truncation, 1);
}
END_TEST

static const struct {
  const char *json;
  mla_status status;
  const char *word;
} refusals[] = {
    {"", MLA_INVALID_ARGUMENT, "JSON"},
    {"[1]", MLA_INVALID_ARGUMENT, "object"},
    {"{}", MLA_INVALID_ARGUMENT, "hidden_size is missing"},
    {"{\"hidden_size\":64,\"num_attention_heads\":2,\"kv_lora_rank\":16,"
     "\"qk_nope_head_dim\":8,\"qk_rope_head_dim\":4}",
     MLA_INVALID_ARGUMENT, "v_head_dim is missing"},
    {"{" SIZES(64, 2, null, 16, 8, 7, 8) "}", MLA_INVALID_ARGUMENT, "even"},
    {"{" SIZES(64, 2, null, 16, 8, 3, 8) "}", MLA_INVALID_ARGUMENT, "even"},
    {"{" SIZES(0, 2, null, 16, 8, 4, 8) "}", MLA_INVALID_ARGUMENT,
     "hidden_size is 0"},
    {"{" SIZES(64, -2, null, 16, 8, 4, 8) "}", MLA_INVALID_ARGUMENT, "-2"},
    {"{" SIZES(64, 2.5, null, 16, 8, 4, 8) "}", MLA_INVALID_ARGUMENT, "whole"},
    {"{" SIZES(64, 1e9, null, 16, 8, 4, 8) "}", MLA_INVALID_ARGUMENT,
     "nope + rope"},
    {"{" SIZES(64, 1e300, null, 16, 8, 4, 8) "}", MLA_INVALID_ARGUMENT,
     "whole"},
    {"{" SIZES("64", 2, null, 16, 8, 4, 8) "}", MLA_INVALID_ARGUMENT,
     "not a number"},
    {"{" TOY ",\"attention_bias\":true}", MLA_UNSUPPORTED, "biases"},
    {"{" TOY ",\"partial_rotary_factor\":0.5}", MLA_UNSUPPORTED,
     "partial_rotary_factor"},
    {"{" TOY ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}",
     MLA_UNSUPPORTED, "linear"},
    {"{" TOY ",\"rope_parameters\":{\"rope_type\":\"llama3\"}}",
     MLA_UNSUPPORTED, "llama3"},
    {"{" TOY ",\"rope_parameters\":{\"rope_type\":7}}", MLA_UNSUPPORTED,
     "rope_type"},
    {"{" TOY ",\"rope_parameters\":{\"full_attention\":{}}}", MLA_UNSUPPORTED,
     "full_attention"},
    {"{" TOY ",\"rope_parameters\":[]}", MLA_INVALID_ARGUMENT, "object"},
    {"{" TOY ",\"rope_theta\":\"x\"}", MLA_INVALID_ARGUMENT, "rope_theta"},
    {"{" TOY ",\"rope_scaling\":{\"type\":\"yarn\"}}", MLA_INVALID_ARGUMENT,
     "factor"},
    {"{" TOY ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}}",
     MLA_INVALID_ARGUMENT, "original_max_position_embeddings is 0"},
    {"{" TOY ",\"rope_interleave\":1}", MLA_INVALID_ARGUMENT,
     "rope_interleave"},
    {"{" TOY ",\"mla_scale_q_lora\":true}", MLA_INVALID_ARGUMENT, "no rank"},
    {"{" TOY ",\"rms_norm_eps\":-1}", MLA_INVALID_ARGUMENT, "rms_norm_eps"},
};
#define REFUSALS ((int)(sizeof refusals / sizeof refusals[0]))

START_TEST(refused_with_a_sentence) {
  refused(refusals[_i].json, refusals[_i].status, refusals[_i].word);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("config_json");
  TCase *tests = tcase_create("config_json");
  tcase_add_test(tests, deepseek_v2_lite);
  tcase_add_test(tests, deepseek_v3_in_both_forms);
  tcase_add_test(tests, kimi_k2);
  tcase_add_test(tests, a_model_inside_another);
  tcase_add_test(tests, minicpm3);
  tcase_add_test(tests, glm);
  tcase_add_test(tests, mistral_4);
  tcase_add_test(tests, longcat);
  tcase_add_test(tests, defaults);
  tcase_add_loop_test(tests, refused_with_a_sentence, 0, REFUSALS);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
