/* Files of vectors: ours say what the reference says, and broken ones are
   refused with a sentence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "docket.h"
#include "expect.h"
#include "file_text.h"
#include "vector_file.h"

#ifndef GOLDEN_DIR
#error "GOLDEN_DIR is given by the build"
#endif

/* Stored values are the reference's, bit for bit: every pair of files. */
START_TEST(the_reference_says_what_is_stored) {
  mla_docket *d = mla_docket_new();
  mla_error err = mla_error_init();
  int32_t stored = 0;
  ck_assert_msg(mla_docket_add_path(d, GOLDEN_DIR "/v1", &err) == MLA_OK, "%s",
                err.message);
  for (int32_t i = 0; i < mla_docket_count(d); i++) {
    mla_vector v;
    mla_expectation e;
    if (mla_docket_at(d, i)->kind != MLA_ITEM_STORED) continue;
    ck_assert_msg(mla_docket_vector(d, i, MLA_POISON_NAN, &v, &err) == MLA_OK,
                  "%s: %s", mla_docket_at(d, i)->id, err.message);
    ck_assert_int_eq(v.stored_exactly, 1);
    ck_assert_int_eq(mla_expectation_make(&v, NULL, NULL, &e, &err), MLA_OK);
    ck_assert_msg(mla_expectation_check(&v, &e, &err) == MLA_OK, "%s: %s", v.id,
                  err.message);
    mla_expectation_free(&e);
    mla_vector_free(&v);
    stored++;
  }
  ck_assert_int_gt(stored, 200);
  mla_docket_free(d);
}
END_TEST

/* ------------------------------------------------------------ broken files */

static const char *const path = "test_vectors.json";

static void write_file(const char *text) {
  mla_error err = mla_error_init();
  ck_assert_msg(mla_file_write(path, text, strlen(text), &err) == MLA_OK, "%s",
                err.message);
}

/* Opens and loads every case of a file; the sentence of the first failure. */
static mla_status load_all(mla_error *err) {
  mla_vector_file *file;
  mla_status status = mla_vector_file_open(path, &file, err);
  if (status != MLA_OK) return status;
  for (int32_t i = 0; i < mla_vector_file_count(file); i++) {
    mla_vector v;
    if (mla_vector_file_at(file, i)->kind != MLA_VECTOR_STORED) continue;
    if (status == MLA_OK) {
      status = mla_vector_file_load(file, i, &v, err);
      mla_vector_free(&v);
    }
  }
  mla_vector_file_close(file);
  return status;
}

#define HEAD                                   \
  "{\"format\":\"mla-vectors\",\"version\":1," \
  "\"expected_by\":\"me\",\"cases\":["
#define CASE(members) HEAD "{\"kind\":\"stored\",\"id\":\"x\"," members "}]}"
#define PROBLEM                                                            \
  "\"problem\":{\"op\":\"matmul\",\"q_dtype\":\"f32\",\"out_dtype\":"      \
  "\"f32\",\"weight_dtype\":\"f32\",\"q_lora_rank\":2,\"hidden_size\":2}," \
  "\"limits\":{\"tokens\":1}"

static const struct {
  const char *text, *says;
} broken[] = {
    {"", "no JSON"},
    {"[1]", "format is not"},
    {"{\"format\":\"mla-vectors\"}", "version is not 1"},
    {"{\"format\":\"mla-vectors\",\"version\":2}", "version is not 1"},
    {"{\"format\":\"mla-vectors\",\"version\":1}", "expected_by"},
    {"{\"format\":\"mla-vectors\",\"version\":1,\"expected_by\":\"me\"}",
     "cases is no list"},
    {"{\"format\":\"mla-vectors\",\"version\":1,\"expected_by\":\"me\","
     "\"cases\":[],\"colour\":1}",
     "\"colour\" is no member"},
    {"{\"format\":\"mla-vectors\",\"version\":1,\"expected_by\":\"me\","
     "\"cases\":[],\"agreement\":0.5}",
     "agreement is 0.5"},
    {"{\"format\":\"mla-vectors\",\"version\":1,\"expected_by\":\"me\","
     "\"cases\":[],\"tensors\":\"../x\"}",
     "beside this one"},
    {HEAD "{\"kind\":\"odd\",\"id\":\"x\"}]}", "case 0: kind"},
    {HEAD "{\"kind\":\"seeded\"}]}", "case 0: id"},
    {HEAD "{\"kind\":\"seeded\",\"id\":\"x\",\"seed\":-1}]}", "case 0: seed"},
    {HEAD "{\"kind\":\"seeded\",\"id\":\"x\",\"hunts\":[1]}]}",
     "case 0: hunts"},
    {HEAD "{\"kind\":\"invalid\",\"id\":\"x\",\"set\":{}}]}",
     "case 0: set, status or field"},
    {CASE("\"seed\":1"), "problem"},
    {CASE("\"problem\":{\"op\":\"sing\"},\"limits\":{}"), "op"},
    {CASE("\"problem\":{\"scale\":\"x\"}"), "scale"},
    {CASE("\"problem\":{\"flags\":[\"odd\"]}"), "flags"},
    {CASE("\"problem\":{\"colour\":1}"), "unknown member"},
    {CASE(PROBLEM), "tensors"},
    {CASE(PROBLEM ",\"tensors\":{\"nobody\":{}}"), "no slot"},
    {CASE(PROBLEM ",\"tensors\":{\"a\":{\"dtype\":\"f32\"}}"), "shape"},
    {CASE(PROBLEM ",\"tensors\":{\"a\":{\"dtype\":\"f32\",\"shape\":[1,2],"
                  "\"stride\":[2]}}"),
     "stride"},
    {CASE(PROBLEM ",\"tensors\":{\"a\":{\"dtype\":\"f32\",\"shape\":[1e30]}}"),
     "shape"},
    {CASE(PROBLEM ",\"tensors\":{\"a\":{\"dtype\":\"f32\",\"shape\":[1,2],"
                  "\"alias\":\"a\"}}"),
     "alias"},
    {CASE(PROBLEM ",\"tensors\":{\"a\":{\"dtype\":\"f32\",\"shape\":[1,2]}}"),
     "the call needs it"},
    {CASE(PROBLEM ",\"tensors\":{\"a\":{\"dtype\":\"f32\",\"shape\":[1,2]},"
                  "\"b\":{\"dtype\":\"f32\",\"shape\":[2,2]},"
                  "\"out\":{\"dtype\":\"f32\",\"shape\":[1,2]}}"),
     "out: no expectation"},
};
#define BROKEN ((int)(sizeof broken / sizeof broken[0]))

START_TEST(broken_files_are_refused) {
  mla_error err = mla_error_init();
  write_file(broken[_i].text);
  mla_status status = load_all(&err);
  ck_assert_msg(status == MLA_INVALID_ARGUMENT, "%s: %s", broken[_i].text,
                mla_status_name(status));
  ck_assert_msg(strstr(err.message, broken[_i].says) != NULL, "%s: %s",
                broken[_i].text, err.message);
  remove(path);
}
END_TEST

/* A broken file among others must not be passed over. */
START_TEST(nothing_is_passed_over) {
  mla_docket *d = mla_docket_new();
  mla_error err = mla_error_init();
  write_file("{\"format\":");
  ck_assert_int_eq(mla_docket_add_path(d, ".", &err), MLA_INVALID_ARGUMENT);
  write_file("{\"format\":\"mla-vector\",\"cases\":[]}");
  ck_assert_int_eq(mla_docket_add_path(d, ".", &err), MLA_INVALID_ARGUMENT);
  ck_assert_ptr_nonnull(strstr(err.message, "of no format"));
  write_file("{\"format\":\"something else\"}");
  ck_assert_int_eq(mla_docket_add_path(d, path, &err), MLA_INVALID_ARGUMENT);
  ck_assert_ptr_nonnull(strstr(err.message, "no vectors of a known form"));
  remove(path);
  ck_assert_int_eq(mla_docket_add_path(d, "no-such-file", &err),
                   MLA_NOT_AVAILABLE);
  ck_assert_int_eq(mla_docket_count(d), 0);
  mla_docket_free(d);
}
END_TEST

/* ----------------------------------------------------------- disagreement */

static mla_vector made(const char *id) {
  mla_case c;
  mla_vector v;
  ck_assert_int_eq(mla_case_parse(id, &c, NULL), MLA_OK);
  ck_assert_int_eq(mla_generate(&c, 42, MLA_POISON_NAN, &v, NULL), MLA_OK);
  return v;
}

/* A stored value that the reference does not reproduce is the vector's
   fault, by a bit when it says it is ours, by more when it is another's. */
START_TEST(stored_values_judge_the_reference) {
  mla_vector v = made("matmul:f32:m3,n4,k5");
  mla_expectation e;
  mla_error err = mla_error_init();
  int32_t index;
  ck_assert_int_eq(mla_expectation_make(&v, NULL, NULL, &e, &err), MLA_OK);
  mla_expected_view view = mla_expectation_of(&e, MLA_T_OUT, &index);
  double values[12];
  memcpy(values, view.value, sizeof values);
  v.stored[MLA_T_OUT] = (mla_stored){3, 4, values, NULL, 0};
  v.stored_exactly = 1;
  ck_assert_int_eq(mla_expectation_check(&v, &e, &err), MLA_OK);
  values[7] *= 1 + 1e-15;
  ck_assert_int_eq(mla_expectation_check(&v, &e, &err), MLA_INVALID_ARGUMENT);
  ck_assert_ptr_nonnull(strstr(err.message, "row 1, column 3 of out"));
  v.stored_exactly = 0;
  v.stored_agreement = 1e-9;
  ck_assert_int_eq(mla_expectation_check(&v, &e, &err), MLA_OK);
  values[7] *= 1 + 1e-6;
  ck_assert_int_eq(mla_expectation_check(&v, &e, &err), MLA_INVALID_ARGUMENT);
  mla_expectation_free(&e);
  mla_vector_free(&v);
}
END_TEST

/* Kept answers are the same answers; another question is another file. */
START_TEST(kept_answers_are_the_same) {
  static const char *const ids[] = {"decode:bf16:b2,h3,q1,len=9+0,l64,r8",
                                    "kv_write:bf16:n9,page4,nb3,l64,r8",
                                    "absorb:bf16:h2,l8,r8,p4,v4"};
  for (int i = 0; i < 3; i++) {
    mla_vector v = made(ids[i]);
    mla_expectation first, second;
    mla_error err = mla_error_init();
    ck_assert_msg(mla_expectation_make(&v, NULL, ".", &first, &err) == MLA_OK,
                  "%s", err.message);
    ck_assert_int_eq(mla_expectation_make(&v, NULL, ".", &second, &err),
                     MLA_OK);
    ck_assert_uint_eq(mla_expectation_digest(&v, &first),
                      mla_expectation_digest(&v, &second));
    mla_expectation_free(&first);
    mla_expectation_free(&second);
    mla_vector_free(&v);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("vectors");
  TCase *tcase = tcase_create("files");
  tcase_set_timeout(tcase, 120);
  tcase_add_test(tcase, the_reference_says_what_is_stored);
  tcase_add_loop_test(tcase, broken_files_are_refused, 0, BROKEN);
  tcase_add_test(tcase, nothing_is_passed_over);
  tcase_add_test(tcase, stored_values_judge_the_reference);
  tcase_add_test(tcase, kept_answers_are_the_same);
  suite_add_tcase(suite, tcase);
  return check_main(suite);
}
