/*
 * The caller's side: devices, queries, plans and runs on a backend that says
 * whatever a test wants it to; and structs of other minors.
 */
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "fixed_step.h"
#include "sized.h"
#include "witness.h"

static mla_error err;
static mla_device *dev;
static fixed_step *step;

static void setup(void) {
  err = mla_error_init();
  dev = witness_open();
  step = fixed_step_new(MLA_OP_DECODE, MLA_CAUSAL, MLA_CACHE_F32);
}

static void teardown(void) {
  fixed_step_free(step);
  mla_close(dev);
}

static void said(mla_status got, mla_status want, const char *field,
                 const char *says) {
  ck_assert_msg(got == want, "%s: %s", mla_status_name(got), err.message);
  ck_assert_int_eq(err.status, (int)want);
  ck_assert_str_eq(err.field, field);
  ck_assert_msg(strstr(err.message, says) != NULL, "\"%s\" is not in: %s", says,
                err.message);
}

static mla_plan *plan_of(void) {
  mla_plan *plan = NULL;
  mla_status st =
      mla_plan_create(dev, &step->problem, &step->limits, &plan, &err);
  ck_assert_msg(st == MLA_OK, "%s", err.message);
  return plan;
}

/* --------------------------------------------------------------- devices */

START_TEST(opening_what_is_not_there) {
  mla_device *none = dev;
  said(mla_open("nobody", 0, NULL, &none, &err), MLA_NOT_AVAILABLE, "backend",
       "ref");
  ck_assert_ptr_null(none);
  said(mla_open(NULL, 0, NULL, &none, &err), MLA_INVALID_ARGUMENT, "backend",
       "NULL");
  said(mla_open("witness", 0, NULL, NULL, &err), MLA_INVALID_ARGUMENT, "dev",
       "NULL");
  said(mla_open("witness", 1, NULL, &none, &err), MLA_INVALID_ARGUMENT,
       "device", "device is 1, backend witness has 1");
  said(mla_open("witness", -1, NULL, &none, &err), MLA_INVALID_ARGUMENT,
       "device", "-1");
  the_witness.devices = 0;
  said(mla_open("witness", 0, NULL, &none, &err), MLA_NOT_AVAILABLE, "device",
       "no device");
  ck_assert_int_eq(the_witness.opens, 1);
}
END_TEST

START_TEST(no_device_for_a_reason) {
  mla_device *none = NULL;
  the_witness.devices = 0;
  the_witness.fail_with = MLA_NOT_AVAILABLE;
  strcpy(the_witness.failure.field, "driver");
  strcpy(the_witness.failure.message, "driver is 1.0, 2.0 is needed");
  the_witness.failure.backend_code = 35;
  said(mla_open("witness", 0, NULL, &none, &err), MLA_NOT_AVAILABLE, "driver",
       "2.0 is needed");
  ck_assert_int_eq(err.backend_code, 35);
}
END_TEST

START_TEST(a_failed_open_leaves_nothing) {
  mla_device *none = dev;
  the_witness.fail_with = MLA_OUT_OF_MEMORY;
  said(mla_open("witness", 0, NULL, &none, &err), MLA_OUT_OF_MEMORY, "open",
       "open of backend witness failed: OUT_OF_MEMORY");
  ck_assert_ptr_null(none);
}
END_TEST

START_TEST(a_device_tells_about_itself) {
  mla_device_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  ck_assert_int_eq(mla_device_describe(dev, &info, &err), MLA_OK);
  ck_assert_int_eq(info.memory_space, MLA_MEMORY_HOST);
  ck_assert_int_eq(info.compute_units, 1);
  ck_assert_uint_eq(strlen(info.name), sizeof info.name - 1);
  ck_assert_str_eq(mla_device_backend(dev)->name, "witness");
  ck_assert_ptr_null(mla_device_handle(dev));
  info.size = 0;
  said(mla_device_describe(dev, &info, &err), MLA_VERSION_MISMATCH,
       "device_info", "0");
  said(mla_device_describe(dev, NULL, &err), MLA_INVALID_ARGUMENT,
       "device_info", "NULL");
  said(mla_device_describe(NULL, &info, &err), MLA_INVALID_ARGUMENT, "dev",
       "NULL");
}
END_TEST

START_TEST(nothing_is_closed_quietly) {
  mla_close(NULL);
  mla_plan_free(NULL);
  ck_assert_ptr_null(mla_device_backend(NULL));
  ck_assert_ptr_null(mla_device_handle(NULL));
  ck_assert_ptr_null(mla_plan_answer(NULL));
}
END_TEST

/* --------------------------------------------------------- query and plan */

START_TEST(a_query_hands_over_the_answer) {
  mla_answer answer = mla_answer_init();
  the_witness.answer.workspace_bytes = 77;
  the_witness.answer.numerics.u_p = 0.5;
  memset(the_witness.answer.kernel, 'k', sizeof the_witness.answer.kernel);
  ck_assert_int_eq(mla_query(dev, &step->problem, &step->limits, &answer, &err),
                   MLA_OK);
  ck_assert_int_eq(answer.supported, 1);
  ck_assert_uint_eq(answer.workspace_bytes, 77);
  ck_assert_double_eq(answer.numerics.u_p, 0.5);
  ck_assert_uint_eq(strlen(answer.kernel), sizeof answer.kernel - 1);
  ck_assert_mem_eq(&the_witness.problem, &step->problem, sizeof step->problem);
}
END_TEST

START_TEST(a_no_is_no_failure_of_query) {
  mla_answer answer = mla_answer_init();
  mla_plan *plan = NULL;
  the_witness.answer.supported = 0;
  strcpy(the_witness.answer.reason, "q_dtype: only f64");
  ck_assert_int_eq(mla_query(dev, &step->problem, &step->limits, &answer, &err),
                   MLA_OK);
  ck_assert_int_eq(answer.supported, 0);
  said(mla_plan_create(dev, &step->problem, &step->limits, &plan, &err),
       MLA_UNSUPPORTED, "problem", "q_dtype: only f64");
  ck_assert_ptr_null(plan);
  the_witness.answer.reason[0] = 0;
  said(mla_plan_create(dev, &step->problem, &step->limits, &plan, &err),
       MLA_UNSUPPORTED, "problem", "no reason given");
  ck_assert_int_eq(the_witness.plans, 0);
}
END_TEST

START_TEST(an_answer_that_breaks_a_rule) {
  mla_answer answer = mla_answer_init();
  the_witness.answer.workspace_alignment = 48;
  said(mla_query(dev, &step->problem, &step->limits, &answer, &err),
       MLA_DEVICE_ERROR, "alignment", "48");
  the_witness.answer.workspace_alignment = 0;
  the_witness.answer.tensor_alignment = 3;
  said(mla_query(dev, &step->problem, &step->limits, &answer, &err),
       MLA_DEVICE_ERROR, "alignment", "3");
  the_witness.answer.tensor_alignment = 0;
  the_witness.answer.supported = 2;
  said(mla_query(dev, &step->problem, &step->limits, &answer, &err),
       MLA_DEVICE_ERROR, "supported", "2");
}
END_TEST

START_TEST(null_arguments) {
  mla_answer answer = mla_answer_init();
  mla_plan *plan = NULL;
  mla_problem *p = &step->problem;
  mla_limits *l = &step->limits;
  mla_status st = MLA_INVALID_ARGUMENT;
  said(mla_query(NULL, p, l, &answer, &err), st, "dev", "NULL");
  said(mla_query(dev, NULL, l, &answer, &err), st, "problem", "NULL");
  said(mla_query(dev, p, NULL, &answer, &err), st, "limits", "NULL");
  said(mla_query(dev, p, l, NULL, &err), st, "answer", "NULL");
  said(mla_plan_create(NULL, p, l, &plan, &err), st, "dev", "NULL");
  said(mla_plan_create(dev, p, l, NULL, &err), st, "plan", "NULL");
  said(mla_run(NULL, &step->args, NULL, 0, NULL, &err), st, "plan", "NULL");
  plan = plan_of();
  said(mla_run(plan, NULL, NULL, 0, NULL, &err), st, "args", "NULL");
  step->args.tensor = NULL;
  said(mla_run(plan, &step->args, NULL, 0, NULL, &err), st, "args", "NULL");
  ck_assert_int_eq(mla_query(NULL, NULL, NULL, NULL, NULL), st);
  mla_plan_free(plan);
  ck_assert_int_eq(the_witness.frees, 1);
}
END_TEST

START_TEST(a_plan_keeps_copies) {
  static const int32_t starts[] = {0, 2, 2, 5}, lens[] = {10, 0, 16};
  step->limits.query_start_loc = starts;
  step->limits.seq_lens = lens;
  the_witness.answer.workspace_bytes = 64;
  mla_plan *plan = plan_of();
  ck_assert_ptr_eq(the_witness.limits.seq_lens, lens);
  ck_assert_uint_eq(mla_plan_answer(plan)->workspace_bytes, 64);
  step->problem = mla_problem_init(MLA_OP_NONE);
  step->limits = mla_limits_init();
  the_witness.answer = mla_answer_init();
  char *workspace = malloc(64);
  ck_assert_int_eq(mla_run(plan, &step->args, workspace, 64, NULL, &err),
                   MLA_OK);
  ck_assert_ptr_eq(the_witness.workspace, workspace);
  step->problem.op = MLA_OP_DECODE; /* for taking the step apart */
  free(workspace);
  mla_plan_free(plan);
}
END_TEST

START_TEST(workspace_is_checked) {
  the_witness.answer.workspace_bytes = 128;
  the_witness.answer.workspace_alignment = 64;
  mla_plan *plan = plan_of();
  char memory[256];
  char *aligned = memory + (64 - (uintptr_t)memory % 64) % 64;
  said(mla_run(plan, &step->args, aligned, 127, NULL, &err),
       MLA_WORKSPACE_TOO_SMALL, "workspace_bytes", "127, the plan needs 128");
  said(mla_run(plan, &step->args, NULL, 128, NULL, &err), MLA_INVALID_ARGUMENT,
       "workspace", "128");
  said(mla_run(plan, &step->args, aligned + 8, 128, NULL, &err),
       MLA_INVALID_ARGUMENT, "workspace", "8 bytes past a multiple of 64");
  ck_assert_int_eq(the_witness.runs, 0);
  ck_assert(fixed_step_untouched(step));
  ck_assert_int_eq(mla_run(plan, &step->args, aligned, 128, NULL, &err),
                   MLA_OK);
  mla_plan_free(plan);
}
END_TEST

/* A backend may leave its strings open, or say nothing at all. */
START_TEST(failures_are_handed_over) {
  mla_plan *plan = plan_of();
  the_witness.fail_with = MLA_DEVICE_ERROR;
  the_witness.failure.backend_code = 700;
  memset(the_witness.failure.field, 'f', sizeof the_witness.failure.field);
  memset(the_witness.failure.message, 'm', sizeof the_witness.failure.message);
  ck_assert_int_eq(mla_run(plan, &step->args, NULL, 0, NULL, &err),
                   MLA_DEVICE_ERROR);
  ck_assert_int_eq(err.backend_code, 700);
  ck_assert_uint_eq(strlen(err.field), sizeof err.field - 1);
  ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
  the_witness.failure.message[0] = 0;
  said(mla_run(plan, &step->args, NULL, 0, NULL, &err), MLA_DEVICE_ERROR, "run",
       "run of backend witness failed: DEVICE_ERROR");
  ck_assert_int_eq(err.backend_code, 0);
  ck_assert_int_eq(mla_run(plan, &step->args, NULL, 0, NULL, NULL),
                   MLA_DEVICE_ERROR);
  mla_plan_free(plan);
}
END_TEST

/* ---------------------------------------------- structs of other minors */

/* A caller's minor lacked the last members: they read 0. */
START_TEST(a_shorter_problem_reads_zero) {
  mla_answer answer = mla_answer_init();
  step->problem.logits_soft_cap = 30;
  step->problem.size = offsetof(mla_problem, logits_soft_cap);
  step->limits.seq_lens = (const int32_t *)16; /* not of that minor */
  step->limits.size = offsetof(mla_limits, seq_lens);
  ck_assert_int_eq(mla_query(dev, &step->problem, &step->limits, &answer, &err),
                   MLA_OK);
  ck_assert_uint_eq(the_witness.problem.size, sizeof(mla_problem));
  ck_assert_double_eq(the_witness.problem.scale, 0.25);
  ck_assert_double_eq(the_witness.problem.logits_soft_cap, 0);
  ck_assert_uint_eq(the_witness.limits.size, sizeof(mla_limits));
  ck_assert_ptr_null(the_witness.limits.seq_lens);
}
END_TEST

START_TEST(a_shorter_answer_is_not_overrun) {
  mla_answer answer, before;
  memset(&answer, 0x5A, sizeof answer);
  answer.size = offsetof(mla_answer, determinism);
  before = answer;
  the_witness.answer.workspace_bytes = 99;
  ck_assert_int_eq(mla_query(dev, &step->problem, &step->limits, &answer, &err),
                   MLA_OK);
  ck_assert_uint_eq(answer.size, offsetof(mla_answer, determinism));
  ck_assert_uint_eq(answer.workspace_bytes, 99);
  ck_assert_mem_eq((char *)&answer + answer.size, (char *)&before + answer.size,
                   sizeof answer - answer.size);
}
END_TEST

START_TEST(too_short_is_told) {
  mla_answer answer = mla_answer_init();
  step->problem.size = 0;
  said(mla_query(dev, &step->problem, &step->limits, &answer, &err),
       MLA_VERSION_MISMATCH, "problem", "problem.size is 0, at least 16");
  step->problem.size = (uint32_t)sizeof step->problem;
  step->limits.size = 7;
  said(mla_query(dev, &step->problem, &step->limits, &answer, &err),
       MLA_VERSION_MISMATCH, "limits", "7");
  step->limits.size = (uint32_t)sizeof step->limits;
  answer.size = 4;
  said(mla_query(dev, &step->problem, &step->limits, &answer, &err),
       MLA_VERSION_MISMATCH, "answer", "4");
  mla_plan *plan = plan_of();
  step->args.size = 8;
  said(mla_run(plan, &step->args, NULL, 0, NULL, &err), MLA_VERSION_MISMATCH,
       "args", "8");
  mla_plan_free(plan);
}
END_TEST

/* A caller's minor has more: fine, as long as it asks nothing of it. */
START_TEST(longer_must_be_zero) {
  struct {
    mla_problem problem;
    char more[24];
  } longer;
  struct {
    mla_answer answer;
    char more[24];
  } room;
  memset(&longer, 0, sizeof longer);
  memset(&room, 0x5A, sizeof room);
  longer.problem = step->problem;
  longer.problem.size = (uint32_t)sizeof longer;
  room.answer.size = (uint32_t)sizeof room;
  ck_assert_int_eq(
      mla_query(dev, &longer.problem, &step->limits, &room.answer, &err),
      MLA_OK);
  ck_assert_uint_eq(room.answer.size, sizeof room);
  for (size_t i = 0; i < sizeof room.more; i++)
    ck_assert_int_eq(room.more[i], 0);
  longer.more[23] = 1;
  said(mla_query(dev, &longer.problem, &step->limits, &room.answer, &err),
       MLA_VERSION_MISMATCH, "problem", "not 0");
}
END_TEST

/* An error struct without the message still gets the status. */
START_TEST(a_shorter_error_is_not_overrun) {
  mla_error before;
  mla_device *none = NULL;
  memset(&err, 0x5A, sizeof err);
  err.size = MLA_SIZE_WITH(mla_error, status);
  before = err;
  ck_assert_int_eq(mla_open("nobody", 0, NULL, &none, &err), MLA_NOT_AVAILABLE);
  ck_assert_int_eq(err.status, MLA_NOT_AVAILABLE);
  ck_assert_mem_eq((char *)&err + err.size, (char *)&before + err.size,
                   sizeof err - err.size);
}
END_TEST

START_TEST(the_version_is_this_one) {
  ck_assert_str_eq(mla_version(), MLA_VERSION_STRING);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("api");
  TCase *tests = tcase_create("api");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, opening_what_is_not_there);
  tcase_add_test(tests, no_device_for_a_reason);
  tcase_add_test(tests, a_failed_open_leaves_nothing);
  tcase_add_test(tests, a_device_tells_about_itself);
  tcase_add_test(tests, nothing_is_closed_quietly);
  tcase_add_test(tests, a_query_hands_over_the_answer);
  tcase_add_test(tests, a_no_is_no_failure_of_query);
  tcase_add_test(tests, an_answer_that_breaks_a_rule);
  tcase_add_test(tests, null_arguments);
  tcase_add_test(tests, a_plan_keeps_copies);
  tcase_add_test(tests, workspace_is_checked);
  tcase_add_test(tests, failures_are_handed_over);
  tcase_add_test(tests, a_shorter_problem_reads_zero);
  tcase_add_test(tests, a_shorter_answer_is_not_overrun);
  tcase_add_test(tests, too_short_is_told);
  tcase_add_test(tests, longer_must_be_zero);
  tcase_add_test(tests, a_shorter_error_is_not_overrun);
  tcase_add_test(tests, the_version_is_this_one);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
