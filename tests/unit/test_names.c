/* Names of the enums, starts of descriptions, defaults behind zeros. */
#include <string.h>

#include "check_main.h"
#include "mla/mla.h"

typedef const char *(*name_fn)(int32_t value);
typedef int32_t (*value_fn)(const char *name);

/* Values first..last all have names of their own, and find back. */
static void check_names(name_fn name, value_fn value, int32_t first,
                        int32_t last, int32_t unknown) {
  for (int32_t i = first; i <= last; i++) {
    ck_assert_ptr_nonnull(name(i));
    ck_assert_int_eq(value(name(i)), i);
  }
  ck_assert_ptr_null(name(first - 1));
  ck_assert_ptr_null(name(last + 1));
  ck_assert_ptr_null(name(INT32_MAX));
  ck_assert_ptr_null(name(INT32_MIN));
  ck_assert_int_eq(value("nonsense"), unknown);
  ck_assert_int_eq(value(""), unknown);
  ck_assert_int_eq(value(NULL), unknown);
}

START_TEST(every_value_has_a_name) {
  check_names(mla_op_name, mla_op_from_name, MLA_OP_KV_WRITE,
              MLA_OP_MAP_INDICES, MLA_OP_NONE);
  check_names(mla_slot_name, mla_slot_from_name, MLA_T_Q, MLA_T_COUNT - 1, -1);
  check_names(mla_dtype_name, mla_dtype_from_name, MLA_F64, MLA_I64,
              MLA_DTYPE_NONE);
  check_names(mla_format_name, mla_format_from_name, MLA_CACHE_F64,
              MLA_CACHE_FP8_INDEX, MLA_CACHE_NONE);
}
END_TEST

/* Names stand in case ids and files: they are pinned. */
START_TEST(names_are_these) {
  ck_assert_str_eq(mla_op_name(MLA_OP_V_EXPAND), "v_expand");
  ck_assert_str_eq(mla_slot_name(MLA_T_QUERY_START_LOC), "query_start_loc");
  ck_assert_str_eq(mla_slot_name(MLA_T_W_UV_O), "w_uv_o");
  ck_assert_str_eq(mla_dtype_name(MLA_BF16), "bf16");
  ck_assert_str_eq(mla_dtype_name(MLA_FP8_E4M3FNUZ), "fp8_e4m3fnuz");
  ck_assert_str_eq(mla_format_name(MLA_CACHE_FP8_DS_MLA), "fp8_ds_mla");
  ck_assert_str_eq(mla_format_name(MLA_CACHE_INT4_TOKEN), "int4_token");
}
END_TEST

START_TEST(statuses_have_names) {
  ck_assert_str_eq(mla_status_name(MLA_OK), "OK");
  ck_assert_str_eq(mla_status_name(MLA_INVALID_ARGUMENT), "INVALID_ARGUMENT");
  ck_assert_str_eq(mla_status_name(MLA_WORKSPACE_TOO_SMALL),
                   "WORKSPACE_TOO_SMALL");
  ck_assert_str_eq(mla_status_name(MLA_VERSION_MISMATCH), "VERSION_MISMATCH");
  ck_assert_str_eq(mla_status_name((mla_status)99), "UNKNOWN_STATUS");
}
END_TEST

START_TEST(types_have_sizes) {
  static const int32_t bits[] = {0, 64, 32, 16, 16, 8,  8,
                                 8, 8,  8,  4,  8,  32, 64};
  for (int32_t dtype = MLA_DTYPE_NONE; dtype <= MLA_I64; dtype++) {
    ck_assert_int_eq(mla_dtype_bits(dtype), bits[dtype]);
  }
  ck_assert_int_eq(mla_dtype_bits(-1), 0);
  ck_assert_int_eq(mla_dtype_bits(MLA_I64 + 1), 0);
}
END_TEST

static int is_zero(const void *memory, size_t from, size_t to) {
  const unsigned char *byte = memory;
  for (size_t i = from; i < to; i++) {
    if (byte[i]) return 0;
  }
  return 1;
}

START_TEST(descriptions_start_sized_and_zero) {
  mla_problem problem = mla_problem_init(MLA_OP_DECODE);
  mla_limits limits = mla_limits_init();
  mla_answer answer = mla_answer_init();
  mla_error error = mla_error_init();
  ck_assert_uint_eq(problem.size, sizeof problem);
  ck_assert_int_eq(problem.op, MLA_OP_DECODE);
  ck_assert(is_zero(&problem, 8, sizeof problem));
  ck_assert_uint_eq(limits.size, sizeof limits);
  ck_assert(is_zero(&limits, 4, sizeof limits));
  ck_assert_uint_eq(answer.size, sizeof answer);
  ck_assert(is_zero(&answer, 4, sizeof answer));
  ck_assert_uint_eq(error.size, sizeof error);
  ck_assert(is_zero(&error, 4, sizeof error));
}
END_TEST

static mla_problem deepseek(int32_t format) {
  mla_problem problem = mla_problem_init(MLA_OP_DECODE);
  problem.cache_format = format;
  problem.kv_lora_rank = 512;
  problem.qk_rope_head_dim = 64;
  return problem;
}

START_TEST(zeros_have_defaults) {
  mla_problem problem = deepseek(MLA_CACHE_BF16);
  ck_assert_int_eq(mla_problem_head_dim(&problem), 576);
  ck_assert_int_eq(mla_problem_v_dim(&problem), 512);
  ck_assert_int_eq(mla_problem_kv_heads(&problem), 1);
  problem.head_dim = 192;
  problem.v_dim = 128;
  problem.num_kv_heads = 8;
  ck_assert_int_eq(mla_problem_head_dim(&problem), 192);
  ck_assert_int_eq(mla_problem_v_dim(&problem), 128);
  ck_assert_int_eq(mla_problem_kv_heads(&problem), 8);
  problem.head_dim = 0;
  problem.kv_lora_rank = INT32_MAX;
  ck_assert_int_eq(mla_problem_head_dim(&problem), 0);
}
END_TEST

/* Bytes or elements of an entry, D = 576: the table of docs/spec.md. */
START_TEST(entries_have_the_sizes_of_the_specification) {
  static const int64_t entry[] = {0,   576, 576, 576, 576, 576, 576,
                                  576, 656, 0,   592, 592, 304};
  for (int32_t format = 0; format <= MLA_CACHE_INT4_TOKEN; format++) {
    mla_problem problem = deepseek(format);
    if (format == MLA_CACHE_FP8_584) continue; /* of width 512 */
    ck_assert_int_eq(mla_problem_entry(&problem), entry[format]);
  }
  mla_problem problem = deepseek(MLA_CACHE_FP8_584);
  problem.kv_lora_rank = 448;
  ck_assert_int_eq(mla_problem_entry(&problem), 584);
  problem.kv_lora_rank = 440; /* no whole number of scales */
  ck_assert_int_eq(mla_problem_entry(&problem), 0);
  problem = deepseek(MLA_CACHE_FP8_DS_MLA);
  problem.kv_lora_rank = 500;
  ck_assert_int_eq(mla_problem_entry(&problem), 0);
  ck_assert_int_eq((problem = deepseek(99), mla_problem_entry(&problem)), 0);
}
END_TEST

/* Only decode has a head_dim of its own; elsewhere it must not matter. */
START_TEST(entry_of_a_writer_ignores_head_dim) {
  mla_problem problem = deepseek(MLA_CACHE_F16);
  problem.head_dim = 192;
  ck_assert_int_eq(mla_problem_entry(&problem), 192);
  problem.op = MLA_OP_KV_WRITE;
  ck_assert_int_eq(mla_problem_entry(&problem), 576);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("names");
  TCase *tests = tcase_create("names");
  tcase_add_test(tests, every_value_has_a_name);
  tcase_add_test(tests, names_are_these);
  tcase_add_test(tests, statuses_have_names);
  tcase_add_test(tests, types_have_sizes);
  tcase_add_test(tests, descriptions_start_sized_and_zero);
  tcase_add_test(tests, zeros_have_defaults);
  tcase_add_test(tests, entries_have_the_sizes_of_the_specification);
  tcase_add_test(tests, entry_of_a_writer_ignores_head_dim);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
