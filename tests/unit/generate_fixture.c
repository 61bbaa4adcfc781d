/*
 * generate_fixture.c
 */
#include "generate_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "expect.h"

void make_vector(const char *id, mla_poison poison, mla_vector *v) {
  mla_case c;
  mla_error err = mla_error_init();
  ck_assert_msg(mla_case_parse(id, &c, &err) == MLA_OK, "%s", err.message);
  ck_assert_msg(mla_generate(&c, 42, poison, v, &err) == MLA_OK, "%s",
                err.message);
}

double *expected_of(const mla_vector *v, int32_t slot, int64_t *count) {
  mla_expectation e;
  mla_error err = mla_error_init();
  int32_t index;
  ck_assert_msg(mla_expectation_make(v, NULL, NULL, &e, &err) == MLA_OK, "%s",
                err.message);
  mla_expected_view view = mla_expectation_of(&e, slot, &index);
  ck_assert_int_ge(index, 0);
  *count = view.rows * view.width;
  double *x = malloc((size_t)(*count + 1) * sizeof *x);
  ck_assert_ptr_nonnull(x);
  memcpy(x, view.value, (size_t)*count * sizeof *x);
  mla_expectation_free(&e);
  return x;
}
