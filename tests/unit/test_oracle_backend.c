/*
 * "ref" behind the vtable: what it says yes and no to, options, sizes, run.
 */
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "host_backends.h"
#include "oracle_fixture.h"

static const mla_backend *ref(void) {
  return mla_ref_backend(MLA_ABI_MAJOR, MLA_ABI_MINOR);
}

/* Enough work for the oracle to take threads. */
static const int64_t seqs[] = {300, 500}, queries[] = {4, 5};
static const requests two = {2, seqs, queries};

static void setup(fixture *f) {
  fixture_init(f, MLA_OP_DECODE);
  f->problem.flags = MLA_CAUSAL;
  f->problem.num_heads = 4;
  f->problem.kv_lora_rank = 40;
  f->problem.qk_rope_head_dim = 2;
  f->problem.block_size = 4;
  fixture_decode(f, two, 0);
}

static mla_answer ask(const mla_problem *problem) {
  mla_answer answer = mla_answer_init();
  mla_limits limits = mla_limits_init();
  ck_assert_int_eq(ref()->query(NULL, problem, &limits, &answer, NULL), MLA_OK);
  return answer;
}

START_TEST(another_major_is_no_backend) {
  ck_assert(mla_ref_backend(MLA_ABI_MAJOR + 1, 0) == NULL);
  ck_assert(mla_ref_backend(MLA_ABI_MAJOR, 99) != NULL);
  ck_assert_str_eq(ref()->name, "ref");
  ck_assert_int_eq(ref()->device_count(NULL), 1);
}
END_TEST

START_TEST(every_plain_operation_gets_a_yes) {
  mla_problem p = mla_problem_init((mla_op)(_i + 1));
  p.q_dtype = p.out_dtype = p.weight_dtype = MLA_BF16;
  p.cache_format = MLA_CACHE_BF16;
  mla_answer answer = ask(&p);
  ck_assert_int_eq(answer.supported, 1);
  ck_assert_int_eq(answer.determinism, MLA_DETERMINISM_BATCH_INVARIANT);
  ck_assert_double_eq(answer.numerics.u_acc, 0x1p-53);
}
END_TEST

static const struct {
  const char *word; /* in the reason */
  uint64_t flags;
  int32_t window, q, out, format;
} refused[] = {
    {"window", 0, 128, MLA_F32, MLA_F32, MLA_CACHE_F32},
    {"ALIBI", MLA_ALIBI, 0, MLA_F32, MLA_F32, MLA_CACHE_F32},
    {"OUTPUT_SCALE", MLA_OUTPUT_SCALE, 0, MLA_F32, MLA_F32, MLA_CACHE_F32},
    {"q_dtype", 0, 0, MLA_FP8_E4M3, MLA_F32, MLA_CACHE_F32},
    {"out_dtype", 0, 0, MLA_F32, MLA_I8, MLA_CACHE_F32},
    {"cache_format", 0, 0, MLA_F16, MLA_F16, MLA_CACHE_FP8_DS_MLA},
    {"cache_format", 0, 0, MLA_F16, MLA_F16, MLA_CACHE_FP8_584},
    {"cache_format", 0, 0, MLA_BF16, MLA_BF16, MLA_CACHE_F16},
    {"cache_format", 0, 0, MLA_F16, MLA_F16, MLA_CACHE_F32},
};

START_TEST(a_no_names_the_field) {
  mla_backend_plan *plan = NULL;
  mla_error err = mla_error_init();
  mla_limits limits = mla_limits_init();
  mla_handle *handle;
  mla_problem p = mla_problem_init(MLA_OP_DECODE);
  p.flags = refused[_i].flags;
  p.window = refused[_i].window;
  p.q_dtype = refused[_i].q;
  p.out_dtype = refused[_i].out;
  p.cache_format = refused[_i].format;
  mla_answer answer = ask(&p);
  ck_assert_int_eq(answer.supported, 0);
  ck_assert_msg(strstr(answer.reason, refused[_i].word) != NULL, "%s",
                answer.reason);
  ck_assert_int_eq(ref()->open(0, NULL, &handle, NULL), MLA_OK);
  ck_assert_int_eq(ref()->plan(handle, &p, &limits, &plan, &err),
                   MLA_UNSUPPORTED);
  ck_assert_str_eq(err.message, answer.reason);
  ref()->close(handle);
}
END_TEST

START_TEST(unknown_flags_are_an_error) {
  mla_answer answer = mla_answer_init();
  mla_limits limits = mla_limits_init();
  mla_error err = mla_error_init();
  mla_problem p = mla_problem_init(MLA_OP_MERGE);
  p.q_dtype = p.out_dtype = MLA_F32;
  p.flags = (uint64_t)1 << 40;
  ck_assert_int_eq(ref()->query(NULL, &p, &limits, &answer, &err),
                   MLA_INVALID_ARGUMENT);
  ck_assert_str_eq(err.field, "flags");
}
END_TEST

START_TEST(options_are_threads_or_an_error) {
  static const char *const bad[] = {"threads=",      "threads=0", "threads=2x",
                                    "threads=-1",    "cores=2",   "threads=2;a",
                                    "threads=99999", "=",         "threads"};
  static const char *const good[] = {"", "threads=1", "threads=2;",
                                     ";threads=16"};
  mla_handle *handle;
  mla_error err = mla_error_init();
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    ck_assert_msg(ref()->open(0, bad[i], &handle, &err) == MLA_INVALID_ARGUMENT,
                  "%s", bad[i]);
    ck_assert_str_eq(err.field, "options");
  }
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    ck_assert_int_eq(ref()->open(0, good[i], &handle, &err), MLA_OK);
    ref()->close(handle);
  }
  ck_assert_int_eq(ref()->open(1, NULL, &handle, &err), MLA_NOT_AVAILABLE);
}
END_TEST

/* A host of an earlier minor has shorter structs: no byte beyond is touched. */
START_TEST(shorter_structs_are_respected) {
  mla_answer answer = mla_answer_init(), untouched;
  mla_limits limits = mla_limits_init();
  mla_problem p = mla_problem_init(MLA_OP_MERGE);
  p.q_dtype = p.out_dtype = MLA_F32;
  memset(&answer, 0x5a, sizeof answer);
  untouched = answer;
  answer.size = (uint32_t)offsetof(mla_answer, kernel);
  ck_assert_int_eq(ref()->query(NULL, &p, &limits, &answer, NULL), MLA_OK);
  ck_assert_int_eq(answer.supported, 1);
  ck_assert_int_eq(answer.size, offsetof(mla_answer, kernel));
  ck_assert_mem_eq(answer.kernel, untouched.kernel,
                   sizeof answer - offsetof(mla_answer, kernel));
  p.size = (uint32_t)offsetof(mla_problem, window);
  p.window = 5; /* beyond the size: not there */
  ck_assert_int_eq(ref()->query(NULL, &p, &limits, &answer, NULL), MLA_OK);
  ck_assert_int_eq(answer.supported, 1);
}
END_TEST

START_TEST(a_plan_runs_with_any_threads_to_the_same_bits) {
  static const char *const options[] = {"threads=1", "threads=3"};
  double *bits[2];
  for (int i = 0; i < 2; i++) {
    fixture f;
    mla_handle *handle;
    mla_backend_plan *plan;
    setup(&f);
    f.limits.num_splits = 3;
    ck_assert_int_eq(ref()->open(0, options[i], &handle, NULL), MLA_OK);
    ck_assert_int_eq(ref()->plan(handle, &f.problem, &f.limits, &plan, NULL),
                     MLA_OK);
    memset(&f.limits, 0xff, sizeof f.limits); /* a plan keeps its own */
    ck_assert_int_eq(ref()->run(plan, &f.args, NULL, 0, NULL, NULL), MLA_OK);
    direct x = direct_attention(&f);
    bits[i] = fixture_values(&f, MLA_T_OUT);
    ck_assert_double_le(largest_difference(bits[i], x.out, x.rows * x.width),
                        8e-15);
    direct_free(&x);
    ref()->plan_free(plan);
    ref()->close(handle);
    fixture_free(&f);
  }
  ck_assert_mem_eq(bits[0], bits[1], 9 * 4 * 40 * sizeof(double));
  free(bits[0]);
  free(bits[1]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("oracle_backend");
  TCase *tests = tcase_create("ref");
  tcase_add_test(tests, another_major_is_no_backend);
  tcase_add_loop_test(tests, every_plain_operation_gets_a_yes, 0, 10);
  tcase_add_loop_test(tests, a_no_names_the_field, 0,
                      (int)(sizeof refused / sizeof refused[0]));
  tcase_add_test(tests, unknown_flags_are_an_error);
  tcase_add_test(tests, options_are_threads_or_an_error);
  tcase_add_test(tests, shorter_structs_are_respected);
  tcase_add_test(tests, a_plan_runs_with_any_threads_to_the_same_bits);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
