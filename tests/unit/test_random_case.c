/* Random cases: the same for the same seed, lawful, small, of every kind. */
#include <string.h>

#include "check_main.h"
#include "problem_check.h"
#include "random_case.h"

#define DRAWS 6000

static int draw(uint64_t seed, uint64_t index, mla_case *c, char *id) {
  uint64_t data_seed;
  if (!mla_random_case(seed, index, c, &data_seed)) return 0;
  ck_assert(data_seed > 0 && data_seed <= (uint64_t)1 << 53);
  int n = mla_case_print(c, id, MLA_CASE_ID_MAX);
  ck_assert(n > 0 && n < MLA_CASE_ID_MAX);
  return 1;
}

START_TEST(a_seed_gives_the_same_cases_in_any_order) {
  static char forth[100][MLA_CASE_ID_MAX], back[MLA_CASE_ID_MAX];
  int differs = 0;
  mla_case c;
  for (uint64_t i = 0; i < 100; i++) ck_assert(draw(7, i, &c, forth[i]));
  for (uint64_t i = 100; i-- > 0;) {
    ck_assert(draw(7, i, &c, back));
    ck_assert_str_eq(back, forth[i]);
    ck_assert(draw(8, i, &c, back));
    differs += strcmp(back, forth[i]) != 0;
  }
  ck_assert_int_gt(differs, 95);
}
END_TEST

START_TEST(every_case_is_lawful_canonical_and_small) {
  char id[MLA_CASE_ID_MAX], again[MLA_CASE_ID_MAX];
  mla_case c, parsed;
  mla_error err = mla_error_init();
  for (uint64_t i = 0; i < DRAWS; i++) {
    ck_assert(draw(1, i, &c, id));
    ck_assert_msg(mla_case_parse(id, &parsed, &err) == MLA_OK, "%s: %s", id,
                  err.message);
    mla_case_print(&parsed, again, sizeof again);
    ck_assert_str_eq(id, again);
    mla_problem p = mla_case_problem(&c);
    mla_limits l = mla_case_limits(&c);
    ck_assert_msg(mla_problem_check(&p, &err) == MLA_OK, "%s: %s", id,
                  err.message);
    ck_assert_msg(mla_limits_check(&p, &l, &err) == MLA_OK, "%s: %s", id,
                  err.message);
    ck_assert_double_le(mla_case_flops(&c), MLA_RANDOM_FLOPS);
    ck_assert_double_le(mla_case_bytes(&c), MLA_RANDOM_BYTES);
  }
}
END_TEST

/* What was seen of an attribute of an operation. */
typedef struct seen {
  int ops;              /* cases of this operation */
  int set[MLA_K_COUNT]; /* those in which the attribute has no default */
} seen;

static int differs(const mla_case *c, const mla_key_use *use) {
  const mla_key_spec *spec = mla_key_spec_of(use->key);
  if (spec->kind == MLA_KIND_LIST) {
    const mla_case_list *list = &c->list[spec->list];
    return list->count > 1 || (list->count && list->value[0] != use->def);
  }
  if (spec->kind == MLA_KIND_REAL) return c->real[use->key] != (double)use->def;
  return c->num[use->key] != use->def;
}

/* A new attribute, operation or format is drawn, or this says that it is
   not. */
START_TEST(everything_that_a_case_can_say_is_said) {
  enum { OPS = 64, FORMATS = 64 };
  static seen of[OPS];
  static int formats[FORMATS];
  char id[MLA_CASE_ID_MAX];
  mla_case c;
  for (uint64_t i = 0; i < DRAWS; i++) {
    int32_t count;
    ck_assert(draw(3, i, &c, id));
    const mla_key_use *uses = mla_key_uses(c.op, &count);
    of[c.op].ops++;
    formats[c.format]++;
    for (int32_t k = 0; k < count; k++)
      of[c.op].set[uses[k].key] += differs(&c, &uses[k]);
  }
  for (int32_t op = 1; op < OPS; op++) {
    int32_t count;
    const mla_key_use *uses = mla_key_uses(op, &count);
    ck_assert_msg(!uses || of[op].ops > 20, "%s is not drawn", mla_op_name(op));
    for (int32_t k = 0; k < count; k++)
      ck_assert_msg(of[op].set[uses[k].key] > 0, "%s: %s is always the default",
                    mla_op_name(op), mla_key_spec_of(uses[k].key)->name);
  }
  for (int32_t f = 1; mla_format_name(f); f++)
    ck_assert_msg(formats[f] > 0, "%s is not drawn", mla_format_name(f));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("random cases");
  TCase *tests = tcase_create("cases");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, a_seed_gives_the_same_cases_in_any_order);
  tcase_add_test(tests, every_case_is_lawful_canonical_and_small);
  tcase_add_test(tests, everything_that_a_case_can_say_is_said);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
