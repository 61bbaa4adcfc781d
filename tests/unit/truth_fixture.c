/*
 * truth_fixture.c - what the tests of truth.h share.
 */
#include "truth_fixture.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "mla/mla.h"

mla_truth_result judge_truth(const char *path, const char *backend) {
  return judge_truth_by(path, backend, NULL);
}

mla_truth_result judge_truth_by(const char *path, const char *backend,
                                const mla_truth_options *options) {
  mla_truth_result result;
  mla_device *dev;
  mla_error err = mla_error_init();
  ck_assert_int_eq(mla_open(backend, 0, NULL, &dev, &err), MLA_OK);
  mla_status status = mla_truth_judge(path, dev, options, &result, &err);
  ck_assert_msg(status == MLA_OK, "%s: %s", path, err.message);
  mla_close(dev);
  return result;
}

const char *truth_line(const mla_truth_result *result) {
  static char line[1024];
  mla_truth_print(result, line, sizeof line);
  return line;
}

void edit_json(char *text, size_t size, const char *from, const char *to) {
  char rest[4096];
  char *at = strstr(text, from);
  ck_assert_msg(at != NULL, "no %s in %s", from, text);
  snprintf(rest, sizeof rest, "%s", at + strlen(from));
  snprintf(at, size - (size_t)(at - text), "%s%s", to, rest);
}
