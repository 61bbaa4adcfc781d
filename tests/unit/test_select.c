/* Which backend is chosen, in which order, and why not the others. */
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "registry.h"
#include "select.h"
#include "witness.h"

#define ROOM 16

typedef struct selected {
  mla_status status;
  mla_candidate choice[ROOM];
  size_t count;
  mla_error err;
} selected;

static mla_problem matmul(void) {
  mla_problem p = mla_problem_init(MLA_OP_MATMUL);
  p.q_dtype = p.out_dtype = p.weight_dtype = MLA_F32;
  p.q_lora_rank = 8;
  p.hidden_size = 4;
  return p;
}

static selected choose(const mla_problem *p, const mla_wish *wish,
                       size_t room) {
  selected s;
  mla_limits limits = mla_limits_init();
  memset(&s, 0, sizeof s);
  limits.tokens = 3;
  s.err = mla_error_init();
  for (size_t i = 0; i < ROOM; i++) s.choice[i] = mla_candidate_init();
  s.status = mla_select(p, &limits, wish, s.choice, room, &s.count, &s.err);
  return s;
}

static const mla_candidate *of(const selected *s, const char *backend,
                               int32_t device) {
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->choice[i].backend, backend) == 0 &&
        s->choice[i].device == device)
      return &s->choice[i];
  return NULL;
}

/* The usable first, by rank; each with a reason or none. */
static void is_in_order(const selected *s) {
  for (size_t i = 0; i < s->count; i++) {
    const mla_candidate *c = &s->choice[i];
    ck_assert_uint_eq(c->size, sizeof *c);
    ck_assert_int_eq(c->usable, c->reason[0] == '\0');
    if (i == 0) continue;
    const mla_candidate *before = &s->choice[i - 1];
    ck_assert(before->usable > c->usable ||
              (before->usable == c->usable && before->rank <= c->rank));
  }
}

static void no_witness(void) {
  mla_close(witness_open());
  the_witness.devices = 0;
}

START_TEST(every_backend_is_told_of_and_ref_comes_last) {
  mla_problem p = matmul();
  no_witness();
  selected s = choose(&p, NULL, ROOM);
  ck_assert_int_eq(s.status, MLA_OK);
  is_in_order(&s);
  for (size_t i = 0; i < mla_backend_count(); i++) {
    const char *name = mla_backend_at(i)->name;
    ck_assert_msg(of(&s, name, 0) || of(&s, name, -1), "%s is not told of",
                  name);
  }
  const mla_candidate *ref = of(&s, "ref", 0);
  ck_assert_int_eq(ref->usable, 1);
  for (size_t i = 0; i < s.count; i++) ck_assert(s.choice[i].rank <= ref->rank);
  ck_assert_str_eq(s.choice[0].backend,
                   mla_backend_find("cpu") ? "cpu" : "ref");
  ck_assert_str_ne(s.choice[0].answer.kernel, "");
}
END_TEST

START_TEST(what_only_the_reference_can_goes_to_it) {
  mla_problem p = matmul();
  p.q_dtype = p.out_dtype = p.weight_dtype = MLA_F64;
  no_witness();
  selected s = choose(&p, NULL, ROOM);
  ck_assert_int_eq(s.status, MLA_OK);
  ck_assert_str_eq(s.choice[0].backend, "ref");
  const mla_candidate *cpu = of(&s, "cpu", 0);
  ck_assert(!cpu || (!cpu->usable && cpu->reason[0]));
}
END_TEST

START_TEST(devices_with_memory_of_their_own_come_first) {
  mla_problem p = matmul();
  no_witness();
  the_witness.devices = 2;
  the_witness.memory_space = MLA_MEMORY_CUDA;
  the_witness.answer.supported = 1;
  the_witness.opens = the_witness.closes = 0;
  selected s = choose(&p, NULL, ROOM);
  ck_assert_int_eq(s.status, MLA_OK);
  is_in_order(&s);
  ck_assert_str_eq(s.choice[0].backend, "witness");
  ck_assert_int_eq(s.choice[0].device, 0);
  ck_assert_int_eq(s.choice[1].device, 1);
  ck_assert_int_eq(s.choice[0].memory_space, MLA_MEMORY_CUDA);
  ck_assert_int_eq(the_witness.opens, the_witness.closes);
  ck_assert_int_ge(the_witness.opens, 2);

  mla_wish wish = mla_wish_init();
  wish.memory_space = MLA_MEMORY_HOST;
  s = choose(&p, &wish, ROOM);
  ck_assert_int_eq(s.choice[0].memory_space, MLA_MEMORY_HOST);
  ck_assert_ptr_nonnull(strstr(of(&s, "witness", 0)->reason, "memory_space"));
  wish.memory_space = MLA_MEMORY_ROCM;
  s = choose(&p, &wish, ROOM);
  ck_assert_int_eq(s.status, MLA_UNSUPPORTED);
}
END_TEST

START_TEST(a_no_a_failure_and_a_wish_are_reasons) {
  mla_problem p = matmul();
  no_witness();
  the_witness.devices = 1;
  the_witness.memory_space = MLA_MEMORY_HOST;
  the_witness.answer.supported = 0;
  snprintf(the_witness.answer.reason, sizeof the_witness.answer.reason,
           "op: not today");
  selected s = choose(&p, NULL, ROOM);
  ck_assert_str_eq(of(&s, "witness", 0)->reason, "op: not today");
  the_witness.answer.supported = 1;
  s = choose(&p, NULL, ROOM);
  ck_assert_str_eq(s.choice[0].backend, "witness"); /* a plugin, then cpu */
  mla_wish wish = mla_wish_init();
  wish.determinism = MLA_DETERMINISM_RUN_TO_RUN;
  s = choose(&p, &wish, ROOM);
  ck_assert_ptr_nonnull(strstr(of(&s, "witness", 0)->reason, "determinism"));
  ck_assert_str_ne(s.choice[0].backend, "witness");
  wish.determinism = 0;
  wish.capture_safe = 1;
  s = choose(&p, &wish, ROOM);
  ck_assert_ptr_nonnull(strstr(of(&s, "witness", 0)->reason, "capture_safe"));
  the_witness.fail_with = MLA_DEVICE_ERROR;
  the_witness.failure = mla_error_init();
  snprintf(the_witness.failure.message, sizeof the_witness.failure.message,
           "it fell over");
  s = choose(&p, NULL, ROOM);
  ck_assert_str_eq(of(&s, "witness", 0)->reason, "it fell over");
  the_witness.devices = 0;
  s = choose(&p, NULL, ROOM);
  ck_assert_str_eq(of(&s, "witness", -1)->reason, "it fell over");
}
END_TEST

START_TEST(calls_that_break_a_rule) {
  mla_problem p = matmul();
  no_witness();
  selected s = choose(&p, NULL, 0);
  ck_assert_int_eq(s.status, MLA_INVALID_ARGUMENT);
  ck_assert_str_eq(s.err.field, "room");
  p.hidden_size = 0;
  s = choose(&p, NULL, ROOM);
  ck_assert_int_eq(s.status, MLA_INVALID_ARGUMENT);
  ck_assert_str_eq(s.err.field, "hidden_size");
  ck_assert_uint_eq(s.count, 0);
  p = matmul();
  mla_wish wish = mla_wish_init();
  wish.determinism = 9;
  s = choose(&p, &wish, ROOM);
  ck_assert_int_eq(s.status, MLA_INVALID_ARGUMENT);
}
END_TEST

/* Less room than candidates: the first of them, and not a byte behind. */
START_TEST(nothing_is_written_behind_the_room) {
  mla_problem p = matmul();
  mla_candidate fresh = mla_candidate_init();
  no_witness();
  the_witness.devices = 3;
  the_witness.memory_space = MLA_MEMORY_CUDA;
  the_witness.answer.supported = 1;
  selected all = choose(&p, NULL, ROOM);
  ck_assert_uint_ge(all.count, 4);
  for (size_t room = 1; room < all.count; room++) {
    selected s = choose(&p, NULL, room);
    ck_assert_uint_eq(s.count, room);
    for (size_t i = 0; i < room; i++) {
      ck_assert_str_eq(s.choice[i].backend, all.choice[i].backend);
      ck_assert_int_eq(s.choice[i].device, all.choice[i].device);
    }
    for (size_t i = room; i < ROOM; i++)
      ck_assert_mem_eq(&s.choice[i], &fresh, sizeof fresh);
  }
}
END_TEST

/* The best is kept when there is room for one; structs may be longer. */
START_TEST(room_and_sizes) {
  struct {
    mla_candidate choice;
    char more[24];
  } longer[ROOM];
  mla_problem p = matmul();
  mla_limits limits = mla_limits_init();
  mla_error err = mla_error_init();
  size_t count = 0;
  no_witness();
  selected all = choose(&p, NULL, ROOM), one = choose(&p, NULL, 1);
  ck_assert_uint_eq(one.count, 1);
  ck_assert_str_eq(one.choice[0].backend, all.choice[0].backend);
  memset(longer, 7, sizeof longer);
  longer[0].choice.size = (uint32_t)sizeof longer[0];
  limits.tokens = 3;
  ck_assert_int_eq(
      mla_select(&p, &limits, NULL, &longer[0].choice, ROOM, &count, &err),
      MLA_OK);
  ck_assert_uint_eq(count, all.count);
  for (size_t i = 0; i < count; i++) {
    ck_assert_str_eq(longer[i].choice.backend, all.choice[i].backend);
    ck_assert_uint_eq(longer[i].choice.size, sizeof longer[0]);
    ck_assert_int_eq(longer[i].more[0], 0);
  }
  ck_assert(count == ROOM || longer[count].more[0] == 7);
}
END_TEST

START_TEST(ranks) {
  ck_assert_int_lt(mla_select_rank(9, 3, "gpu", MLA_MEMORY_CUDA),
                   mla_select_rank(1, 3, "cuda", MLA_MEMORY_CUDA));
  ck_assert_int_lt(mla_select_rank(1, 3, "cuda", MLA_MEMORY_CUDA),
                   mla_select_rank(9, 3, "port", MLA_MEMORY_HOST));
  ck_assert_int_lt(mla_select_rank(9, 3, "port", MLA_MEMORY_HOST),
                   mla_select_rank(1, 3, "cpu", MLA_MEMORY_HOST));
  ck_assert_int_lt(mla_select_rank(2, 3, "cpu", MLA_MEMORY_HOST),
                   mla_select_rank(0, 3, "ref", MLA_MEMORY_HOST));
  ck_assert_int_lt(mla_select_rank(4, 3, "a", MLA_MEMORY_HOST),
                   mla_select_rank(5, 3, "b", MLA_MEMORY_HOST));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("select");
  TCase *tests = tcase_create("select");
  tcase_add_test(tests, every_backend_is_told_of_and_ref_comes_last);
  tcase_add_test(tests, what_only_the_reference_can_goes_to_it);
  tcase_add_test(tests, devices_with_memory_of_their_own_come_first);
  tcase_add_test(tests, a_no_a_failure_and_a_wish_are_reasons);
  tcase_add_test(tests, calls_that_break_a_rule);
  tcase_add_test(tests, nothing_is_written_behind_the_room);
  tcase_add_test(tests, room_and_sizes);
  tcase_add_test(tests, ranks);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
