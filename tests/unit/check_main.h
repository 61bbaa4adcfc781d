/*
 * check_main.h - running one suite: the whole of a test program's main.
 */
#ifndef MLA_CHECK_MAIN_H
#define MLA_CHECK_MAIN_H

#include <check.h>

/* For loops of millions: ck_assert_msg keeps a record of every call. */
#define REQUIRE(condition, ...)                  \
  do {                                           \
    if (!(condition)) ck_abort_msg(__VA_ARGS__); \
  } while (0)

/* 0 if every test of the suite passed and there was one. */
static inline int check_main(Suite *suite) {
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int bad = srunner_ntests_failed(runner) || !srunner_ntests_run(runner);
  srunner_free(runner);
  return bad;
}

#endif
