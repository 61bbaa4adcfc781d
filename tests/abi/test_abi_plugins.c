/* Plugins that keep or break the rules, loaded as a user would. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "fixed_step.h"
#include "mla/mla.h"

#define PLUGIN(name) ABI_DIR "/abi_" name ".so"

/* All of it, and the sums it is to give. */
static void works(const char *path, const char *name) {
  mla_error err = mla_error_init();
  const mla_backend *backend = NULL;
  mla_device *dev = NULL;
  mla_plan *plan = NULL;
  ck_assert_msg(mla_plugin_load(path, &backend, &err) == MLA_OK, "%s",
                err.message);
  ck_assert_str_eq(backend->name, name);
  ck_assert_uint_eq(backend->size, sizeof *backend);
  ck_assert(backend->mem_alloc == NULL);
  ck_assert(backend->run_prefix == NULL); /* of minor 1: none has it */
  ck_assert_msg(mla_open(name, 0, NULL, &dev, &err) == MLA_OK, "%s",
                err.message);
  fixed_step *step = fixed_step_new(MLA_OP_MATMUL, 0, MLA_CACHE_NONE);
  float *a = step->tensor[MLA_T_A].data, *out = step->tensor[MLA_T_OUT].data;
  for (int i = 0; i < 5 * 6; i++) a[i] = (float)i;
  ck_assert_msg(mla_plan_create(dev, &step->problem, &step->limits, &plan,
                                &err) == MLA_OK,
                "%s", err.message);
  ck_assert_msg(mla_run(plan, &step->args, NULL, 0, NULL, &err) == MLA_OK, "%s",
                err.message);
  for (int i = 0; i < 5; i++)
    ck_assert_float_eq(out[i * 10 + 9], (float)(36 * i + 15));
  mla_plan_free(plan);
  mla_close(dev);
  fixed_step_free(step);
}

START_TEST(a_good_plugin_works) {
  works(PLUGIN("good"), "abi-good");
}
END_TEST

START_TEST(an_older_minor_works) {
  works(PLUGIN("old"), "abi-old");
}
END_TEST

START_TEST(a_newer_minor_works) {
  works(PLUGIN("newer"), "abi-newer");
}
END_TEST

START_TEST(a_second_load_finds_the_first) {
  mla_error err = mla_error_init();
  const mla_backend *first = NULL, *second = NULL;
  ck_assert_int_eq(mla_plugin_load(PLUGIN("good"), &first, &err), MLA_OK);
  size_t count = mla_backend_count();
  ck_assert_int_eq(mla_plugin_load(PLUGIN("good"), &second, &err), MLA_OK);
  ck_assert_ptr_eq(first, second);
  ck_assert_uint_eq(mla_backend_count(), count);
}
END_TEST

static const struct {
  const char *path;
  mla_status status;
  const char *field, *says;
} refused[] = {
    {PLUGIN("wrong_major"), MLA_VERSION_MISMATCH, "major", "2.0"},
    {PLUGIN("null_table"), MLA_VERSION_MISMATCH, "major", "1.1"},
    {PLUGIN("no_symbol"), MLA_NOT_AVAILABLE, "path", "mla_backend_get"},
    {PLUGIN("duplicate"), MLA_INVALID_ARGUMENT, "name", "\"abi-good\""},
    {PLUGIN("ref"), MLA_INVALID_ARGUMENT, "name", "\"ref\""},
    {PLUGIN("half_group"), MLA_INVALID_ARGUMENT, "mem_to_host", "1 of the 4"},
    {PLUGIN("no_run"), MLA_INVALID_ARGUMENT, "run", "required"},
    {ABI_DIR "/abi_absent.so", MLA_NOT_AVAILABLE, "path", "abi_absent"},
};

START_TEST(a_bad_plugin_is_refused) {
  mla_error err = mla_error_init();
  const mla_backend *ref = mla_backend_find("ref");
  const mla_backend *backend = NULL;
  ck_assert_int_eq(mla_plugin_load(PLUGIN("good"), NULL, &err), MLA_OK);
  size_t count = mla_backend_count();
  mla_status st = mla_plugin_load(refused[_i].path, &backend, &err);
  ck_assert_msg(st == refused[_i].status, "%s: %s", mla_status_name(st),
                err.message);
  ck_assert_ptr_null(backend);
  ck_assert_str_eq(err.field, refused[_i].field);
  ck_assert_msg(strstr(err.message, refused[_i].says) != NULL,
                "\"%s\" is not in: %s", refused[_i].says, err.message);
  ck_assert_uint_eq(mla_backend_count(), count);
  ck_assert_ptr_eq(mla_backend_find("ref"), ref);
}
END_TEST

/* All that load are loaded; the first failure is told. */
START_TEST(the_environment_names_plugins) {
  mla_error err = mla_error_init();
  setenv("MLA_PLUGIN_PATH",
         "::" PLUGIN("good") ":" PLUGIN("no_symbol") ":" PLUGIN(
             "ref") ":" PLUGIN("old"),
         1);
  ck_assert_int_eq(mla_plugins_from_env(&err), MLA_NOT_AVAILABLE);
  ck_assert_ptr_nonnull(strstr(err.message, "abi_no_symbol"));
  ck_assert_ptr_nonnull(mla_backend_find("abi-good"));
  ck_assert_ptr_nonnull(mla_backend_find("abi-old"));
  setenv("MLA_PLUGIN_PATH", PLUGIN("good"), 1);
  ck_assert_int_eq(mla_plugins_from_env(&err), MLA_OK);
  setenv("MLA_PLUGIN_PATH", "", 1);
  ck_assert_int_eq(mla_plugins_from_env(&err), MLA_OK);
  unsetenv("MLA_PLUGIN_PATH");
  ck_assert_int_eq(mla_plugins_from_env(NULL), MLA_OK);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("abi_plugins");
  TCase *tests = tcase_create("abi_plugins");
  tcase_add_test(tests, a_good_plugin_works);
  tcase_add_test(tests, an_older_minor_works);
  tcase_add_test(tests, a_newer_minor_works);
  tcase_add_test(tests, a_second_load_finds_the_first);
  tcase_add_loop_test(tests, a_bad_plugin_is_refused, 0,
                      (int)(sizeof refused / sizeof refused[0]));
  tcase_add_test(tests, the_environment_names_plugins);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
