/*
 * test_safetensors.c - arrays go through a file unchanged, and a file that
 * lies is refused with a sentence.
 */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file_text.h"
#include "mla/mla.h"
#include "rng.h"
#include "safetensors.h"

/* A file from a header and n bytes of data. */
static unsigned char *make_file(const char *header, size_t n, uint64_t *count) {
  size_t length = strlen(header);
  unsigned char *bytes = calloc(1, 8 + length + n);
  ck_assert_ptr_nonnull(bytes);
  for (int i = 0; i < 8; i++) {
    bytes[i] = (unsigned char)((uint64_t)length >> (8 * i) & 0xFF);
  }
  memcpy(bytes + 8, header, length);
  for (size_t i = 0; i < n; i++) bytes[8 + length + i] = (unsigned char)i;
  *count = 8 + length + n;
  return bytes;
}

static mla_status parse(const char *header, size_t n, mla_st **file,
                        mla_error *err) {
  uint64_t count;
  unsigned char *bytes = make_file(header, n, &count);
  *err = mla_error_init();
  mla_status status = mla_st_parse(bytes, count, file, err);
  free(bytes);
  return status;
}

/* One of each type whose order in memory matters, and some that it does not. */
static unsigned char *sample(uint64_t *count) {
  static const double f64[2] = {1.5, -2.25};
  static const float f32[3] = {1.0f, 0.5f, -3.0f};
  static const int32_t i32[2] = {-2, 70000};
  static const int64_t i64[1] = {INT64_C(-5000000000)};
  static const uint16_t bf16[2] = {0x3F80, 0xC000};
  static const uint8_t u8[3] = {1, 2, 255};
  const int64_t two[1] = {2}, three[1] = {3}, square[2] = {3, 1};
  mla_st_writer *w = mla_st_writer_new();
  unsigned char *bytes;
  mla_error err = mla_error_init();
  ck_assert_int_eq(mla_st_writer_add(w, "u8", MLA_U8, 1, three, u8, &err), 0);
  ck_assert_int_eq(mla_st_writer_add(w, "b", MLA_BF16, 1, two, bf16, &err), 0);
  ck_assert_int_eq(mla_st_writer_add(w, "f32", MLA_F32, 2, square, f32, &err),
                   0);
  ck_assert_int_eq(mla_st_writer_add(w, "i32", MLA_I32, 1, two, i32, &err), 0);
  ck_assert_int_eq(mla_st_writer_add(w, "f64", MLA_F64, 1, two, f64, &err), 0);
  ck_assert_int_eq(mla_st_writer_add(w, "i64", MLA_I64, 0, NULL, i64, &err), 0);
  ck_assert_int_eq(mla_st_writer_meta(w, "z", "old", &err), 0);
  ck_assert_int_eq(mla_st_writer_meta(w, "a", "quo\"te\n", &err), 0);
  ck_assert_int_eq(mla_st_writer_meta(w, "z", "new", &err), 0);
  ck_assert_int_eq(mla_st_writer_serialise(w, &bytes, count, &err), MLA_OK);
  mla_st_writer_free(w);
  return bytes;
}

START_TEST(arrays_come_back) {
  uint64_t count;
  unsigned char *bytes = sample(&count);
  mla_st *f;
  mla_error err = mla_error_init();
  ck_assert_int_eq(mla_st_parse(bytes, count, &f, &err), MLA_OK);
  ck_assert_int_eq(mla_st_count(f), 6);
  ck_assert_str_eq(mla_st_at(f, 0)->name, "b");
  ck_assert_ptr_null(mla_st_at(f, 6));
  ck_assert_ptr_null(mla_st_find(f, "nothing"));
  const mla_st_tensor *t = mla_st_find(f, "f32");
  ck_assert_int_eq(t->rank, 2);
  ck_assert_int_eq((int)t->shape[0], 3);
  ck_assert(((const float *)t->data)[2] == -3.0f);
  ck_assert(((const double *)mla_st_find(f, "f64")->data)[1] == -2.25);
  ck_assert_int_eq(((const int32_t *)mla_st_find(f, "i32")->data)[1], 70000);
  ck_assert(*(const int64_t *)mla_st_find(f, "i64")->data ==
            INT64_C(-5000000000));
  ck_assert_uint_eq(((const uint16_t *)mla_st_find(f, "b")->data)[1], 0xC000);
  ck_assert_uint_eq(((const uint8_t *)mla_st_find(f, "u8")->data)[2], 255);
  ck_assert_str_eq(mla_st_meta(f, "z"), "new");
  ck_assert_str_eq(mla_st_meta(f, "a"), "quo\"te\n");
  ck_assert_ptr_null(mla_st_meta(f, "b"));
  mla_st_close(f);
  free(bytes);
}
END_TEST

/* The bytes of the file, spelled out: the same on every machine. */
START_TEST(bytes_are_these) {
  static const char header[] =
      "{\"__metadata__\":{\"k\":\"v\"},"
      "\"w\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
      "\"a\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[8,9]}}";
  static const unsigned char data[9] = {0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0, 0xFF};
  static const float w[2] = {1.0f, -2.0f};
  static const int8_t a[1] = {-1};
  const int64_t wide[2] = {1, 2}, one[1] = {1};
  size_t used = strlen(header), length = (used + 7) / 8 * 8;
  unsigned char *bytes;
  uint64_t count;
  mla_st_writer *writer = mla_st_writer_new();
  ck_assert_int_eq(mla_st_writer_add(writer, "a", MLA_I8, 1, one, a, NULL), 0);
  ck_assert_int_eq(mla_st_writer_add(writer, "w", MLA_F32, 2, wide, w, NULL),
                   0);
  ck_assert_int_eq(mla_st_writer_meta(writer, "k", "v", NULL), 0);
  ck_assert_int_eq(mla_st_writer_serialise(writer, &bytes, &count, NULL), 0);
  ck_assert_uint_eq(count, 8 + length + sizeof data);
  ck_assert_uint_eq(bytes[0], length);
  for (int i = 1; i < 8; i++) ck_assert_uint_eq(bytes[i], 0);
  ck_assert_mem_eq(bytes + 8, header, used);
  for (size_t i = used; i < length; i++) ck_assert_int_eq(bytes[8 + i], ' ');
  ck_assert_mem_eq(bytes + 8 + length, data, sizeof data);
  free(bytes);
  mla_st_writer_free(writer);
}
END_TEST

START_TEST(files_are_saved_and_opened) {
  const char *path = "test_safetensors.tmp";
  uint64_t count;
  unsigned char *bytes = sample(&count);
  const int64_t none[2] = {0, 7};
  mla_error err = mla_error_init();
  mla_st_writer *w = mla_st_writer_new();
  ck_assert_int_eq(mla_st_writer_add(w, "empty", MLA_F32, 2, none, NULL, &err),
                   MLA_OK);
  ck_assert_int_eq(mla_st_writer_save(w, path, &err), MLA_OK);
  mla_st *f;
  ck_assert_int_eq(mla_st_open(path, &f, &err), MLA_OK);
  const mla_st_tensor *t = mla_st_find(f, "empty");
  ck_assert_ptr_null(t->data);
  ck_assert_int_eq((int)t->shape[1], 7);
  mla_st_close(f);
  mla_st_writer_free(w);
  ck_assert_int_eq(remove(path), 0);
  ck_assert_int_eq(mla_st_open(path, &f, &err), MLA_NOT_AVAILABLE);
  ck_assert_ptr_null(f);
  ck_assert_ptr_nonnull(strstr(err.message, path));
  ck_assert_int_eq(mla_st_open(".", &f, &err), MLA_NOT_AVAILABLE);
  w = mla_st_writer_new();
  ck_assert_int_eq(mla_st_writer_save(w, "no/such/directory/x", &err),
                   MLA_NOT_AVAILABLE);
  mla_st_writer_free(w);
  free(bytes);
}
END_TEST

START_TEST(writer_refuses) {
  const int64_t one[1] = {1}, below[1] = {-1};
  const int64_t huge[2] = {INT64_MAX / 2, 3};
  const float x = 0;
  mla_st_writer *w = mla_st_writer_new();
  const int bad = MLA_INVALID_ARGUMENT;
  ck_assert_int_eq(mla_st_writer_add(w, "x", MLA_F32, 1, one, &x, NULL), 0);
  ck_assert_int_eq(mla_st_writer_add(w, "x", MLA_F32, 1, one, &x, NULL), bad);
  ck_assert_int_eq(
      mla_st_writer_add(w, "__metadata__", MLA_F32, 1, one, &x, NULL), bad);
  ck_assert_int_eq(mla_st_writer_add(w, "y", MLA_I4, 1, one, &x, NULL), bad);
  ck_assert_int_eq(mla_st_writer_add(w, "y", 99, 1, one, &x, NULL), bad);
  ck_assert_int_eq(mla_st_writer_add(w, "y", MLA_F32, 9, one, &x, NULL), bad);
  ck_assert_int_eq(mla_st_writer_add(w, "y", MLA_F32, 1, below, &x, NULL), bad);
  ck_assert_int_eq(mla_st_writer_add(w, "y", MLA_F32, 2, huge, &x, NULL), bad);
  ck_assert_int_eq(mla_st_writer_add(w, "y", MLA_F32, 1, one, NULL, NULL), bad);
  mla_st_writer_free(w);
}
END_TEST

/* Each header, with so many bytes of data, and a word of the refusal. */
static const struct {
  const char *header;
  size_t bytes;
  const char *word;
} hostile[] = {
    {"", 0, "JSON"},
    {"[]", 0, "JSON"},
    {"{", 0, "JSON"},
    {"{} x", 0, "JSON"},
    {"{}", 1, "after the last"},
    {"{\"a\":1}", 0, "exactly"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "exactly"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1]}}", 4,
     "data_offsets"},
    {"{\"a\":{\"dtype\":\"Q9\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "dtype"},
    {"{\"a\":{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4,
     "shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4,
     "shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[\"1\"],\"data_offsets\":[0,4]}}", 4,
     "shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", 4,
     "shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],"
     "\"data_offsets\":[0,4]}}",
     4, "shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1e300],\"data_offsets\":[0,4]}}", 4,
     "shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],"
     "\"data_offsets\":[0,4]}}",
     4, "shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4503599627370496,4096],"
     "\"data_offsets\":[0,4]}}",
     4, "differ in size"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
     "differ in size"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4,
     "begin, end"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4,
     "begin, end"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3,
     "cut short"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[9007199254740992],"
     "\"data_offsets\":[0,9007199254740992]}}",
     4, "cut short"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}", 5,
     "gap"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
     3, "gap"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
     2, "twice"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "not a string"},
    {"{\"__metadata__\":[]}", 0, "not an object"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice"},
};
#define HOSTILE ((int)(sizeof hostile / sizeof hostile[0]))

START_TEST(lies_are_refused) {
  mla_st *f;
  mla_error err;
  mla_status status = parse(hostile[_i].header, hostile[_i].bytes, &f, &err);
  ck_assert_int_eq(status, MLA_INVALID_ARGUMENT);
  ck_assert_ptr_null(f);
  ck_assert_msg(strstr(err.message, hostile[_i].word) != NULL,
                "\"%s\" does not say \"%s\"", err.message, hostile[_i].word);
}
END_TEST

START_TEST(length_is_not_believed) {
  unsigned char bytes[16] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
  mla_st *f;
  const int bad = MLA_INVALID_ARGUMENT;
  ck_assert_int_eq(mla_st_parse(bytes, 16, &f, NULL), bad);
  memset(bytes, 0, sizeof bytes);
  bytes[0] = 9; /* one more than there is */
  ck_assert_int_eq(mla_st_parse(bytes, 16, &f, NULL), bad);
  for (uint64_t n = 0; n < 9; n++) {
    ck_assert_int_eq(mla_st_parse(bytes, n, &f, NULL), bad);
  }
}
END_TEST

/* Cut anywhere, or with any one byte wrong: refused or read, never worse (the
   sanitizers watch). Cuts are always refused. */
START_TEST(damage_is_survived) {
  uint64_t count;
  unsigned char *bytes = sample(&count);
  mla_st *f;
  for (uint64_t n = 0; n < count; n++) {
    ck_assert_int_ne(mla_st_parse(bytes, n, &f, NULL), MLA_OK);
  }
  mla_rng rng = mla_rng_named(1, "damage");
  for (uint64_t i = 0; i < 4 * count; i++) {
    uint64_t at = i % count;
    unsigned char kept = bytes[at];
    bytes[at] = (unsigned char)mla_rng_bits(rng, i);
    if (mla_st_parse(bytes, count, &f, NULL) == MLA_OK) mla_st_close(f);
    bytes[at] = kept;
  }
  free(bytes);
}
END_TEST

START_TEST(awry_arrays_are_aligned) {
  mla_st *f;
  mla_error err;
  ck_assert_int_eq(
      parse("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
            "\"b\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[1,9]}}  ",
            9, &f, &err),
      MLA_OK);
  const mla_st_tensor *b = mla_st_find(f, "b");
  ck_assert_uint_eq((uintptr_t)b->data % 8, 0);
  ck_assert(*(const int64_t *)b->data == INT64_C(0x0807060504030201));
  mla_st_close(f);
}
END_TEST

START_TEST(types_without_a_dtype) {
  mla_st *f;
  mla_error err;
  mla_tensor view;
  ck_assert_int_eq(
      parse("{\"a\":{\"dtype\":\"U16\",\"shape\":[1],\"data_offsets\":[0,2]},"
            "\"b\":{\"dtype\":\"I8\",\"shape\":[1,1,1,1,1,2],"
            "\"data_offsets\":[2,4]},"
            "\"c\":{\"dtype\":\"I8\",\"shape\":[2,3],"
            "\"data_offsets\":[4,10]}}",
            10, &f, &err),
      MLA_OK);
  ck_assert_int_eq(mla_st_find(f, "a")->dtype, MLA_DTYPE_NONE);
  ck_assert_str_eq(mla_st_find(f, "a")->dtype_name, "U16");
  ck_assert_int_eq(mla_st_view(mla_st_find(f, "a"), &view, &err),
                   MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(mla_st_view(mla_st_find(f, "b"), &view, &err),
                   MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(mla_st_view(mla_st_find(f, "c"), &view, &err), MLA_OK);
  ck_assert_int_eq((int)view.stride[0], 3);
  ck_assert_int_eq(((const int8_t *)view.data)[5], 9);
  mla_st_close(f);
}
END_TEST

/* What many write at once is whole at every moment, and nobody is refused. */
#define WRITERS 6
#define ROUNDS 200

static int write_and_read(const char *path, const char *text, size_t count) {
  mla_error err = mla_error_init();
  for (int i = 0; i < ROUNDS; i++) {
    if (mla_file_write(path, text, count, &err) != MLA_OK) return 1;
    char *got = mla_file_text(path, &err);
    int same = got && strlen(got) == count && memcmp(got, text, count) == 0;
    free(got);
    if (!same) return 1;
  }
  return 0;
}

START_TEST(files_are_whole_for_many_writers) {
  enum { COUNT = 1 << 18 };
  static const char path[] = "test_safetensors.many";
  char *text = malloc(COUNT);
  pid_t pid[WRITERS];
  ck_assert_ptr_nonnull(text);
  memset(text, 'x', COUNT);
  for (int i = 0; i < WRITERS; i++) {
    pid[i] = fork();
    if (pid[i] == 0) _exit(write_and_read(path, text, COUNT));
  }
  for (int i = 0; i < WRITERS; i++) {
    int status = -1;
    ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
    ck_assert_int_eq(status, 0);
  }
  ck_assert_int_eq(remove(path), 0);
  free(text);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("safetensors");
  TCase *tests = tcase_create("safetensors");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, arrays_come_back);
  tcase_add_test(tests, bytes_are_these);
  tcase_add_test(tests, files_are_saved_and_opened);
  tcase_add_test(tests, files_are_whole_for_many_writers);
  tcase_add_test(tests, writer_refuses);
  tcase_add_loop_test(tests, lies_are_refused, 0, HOSTILE);
  tcase_add_test(tests, length_is_not_believed);
  tcase_add_test(tests, damage_is_survived);
  tcase_add_test(tests, awry_arrays_are_aligned);
  tcase_add_test(tests, types_without_a_dtype);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
