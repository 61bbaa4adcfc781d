/* The CPU backend's door: options, levels, refusals, workspaces. */
#include <string.h>

#include "check_main.h"
#include "test_cpu_fixture.h"

static mla_status open_with(const char *options, mla_error *err) {
  mla_device *device;
  *err = mla_error_init();
  mla_status st = mla_open("cpu", 0, options, &device, err);
  if (st == MLA_OK) mla_close(device);
  return st;
}

START_TEST(options_known) {
  static const char *const good[] = {NULL,           "",
                                     "threads=1",    "isa=portable",
                                     "threads=3;",   ";threads=2;isa=portable",
                                     "threads=1024", "isa=portable;threads=1"};
  mla_error err;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    ck_assert_msg(open_with(good[i], &err) == MLA_OK, "%s: %s", good[i],
                  err.message);
}
END_TEST

START_TEST(options_refused) {
  static const char *const bad[] = {"threads=0",
                                    "threads=",
                                    "threads=-1",
                                    "threads=1025",
                                    "threads=2x",
                                    "threads",
                                    "isa=",
                                    "isa=avx",
                                    "isa=portable1",
                                    "isa=PORTABLE",
                                    "speed=9",
                                    "threads=1 ;",
                                    "=",
                                    "threads=999999999999"};
  mla_error err;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    ck_assert_msg(open_with(bad[i], &err) == MLA_INVALID_ARGUMENT, "%s",
                  bad[i]);
    ck_assert_str_eq(err.field, "options");
    ck_assert(err.message[0]);
  }
}
END_TEST

/* A level is there or is refused; it is never quietly another. */
START_TEST(levels_of_the_other_family) {
  mla_error err;
#if defined(__aarch64__)
  ck_assert(open_with("isa=avx2", &err) == MLA_NOT_AVAILABLE);
  ck_assert(open_with("isa=neon", &err) == MLA_OK);
#else
  ck_assert(open_with("isa=neon", &err) == MLA_NOT_AVAILABLE);
#endif
  ck_assert(open_with("isa=portable", &err) == MLA_OK);
}
END_TEST

static mla_problem decode_problem(void) {
  mla_problem p = mla_problem_init(MLA_OP_DECODE);
  p.q_dtype = p.out_dtype = MLA_BF16;
  p.cache_format = MLA_CACHE_BF16;
  p.num_heads = 16;
  p.kv_lora_rank = 512;
  p.qk_rope_head_dim = 64;
  p.block_size = 64;
  p.scale = 0.1;
  p.flags = MLA_CAUSAL;
  return p;
}

static mla_limits decode_limits(void) {
  mla_limits l = mla_limits_init();
  l.requests = 4;
  l.tokens = 8;
  l.max_query_len = 2;
  l.max_seq_len = 5000;
  l.num_blocks = 400;
  l.table_width = 79;
  return l;
}

static mla_answer ask_of(const char *options, const mla_problem *p,
                         const mla_limits *l) {
  mla_answer answer = mla_answer_init();
  mla_device *device;
  ck_assert(mla_open("cpu", 0, options, &device, NULL) == MLA_OK);
  ck_assert(mla_query(device, p, l, &answer, NULL) == MLA_OK);
  mla_close(device);
  return answer;
}

static mla_answer ask(const mla_problem *p, const mla_limits *l) {
  return ask_of("isa=portable;threads=2", p, l);
}

START_TEST(a_yes_says_what_it_is) {
  mla_problem p = decode_problem();
  mla_limits l = decode_limits();
  mla_answer a = ask(&p, &l);
  ck_assert_int_eq(a.supported, 1);
  ck_assert_str_eq(a.kernel, "mla_decode_bf16_portable");
  ck_assert_uint_eq(a.workspace_alignment, 64);
  ck_assert_int_eq(a.determinism, MLA_DETERMINISM_BATCH_INVARIANT);
  ck_assert(a.workspace_bytes > 0);
  ck_assert(a.numerics.u_p == 0x1p-24);
}
END_TEST

/* Products of codes are another arithmetic, and admitted. */
START_TEST(int8_scores_are_declared) {
  mla_problem p = decode_problem();
  mla_limits l = decode_limits();
  p.cache_format = MLA_CACHE_INT8_TOKEN;
  mla_answer plain = ask(&p, &l);
  ck_assert_int_eq(plain.numerics.q_round, MLA_Q_ROUND_NONE);
  ck_assert_int_eq(plain.numerics.dequant, MLA_DEQUANT_ROUND_PRODUCT);
  mla_device *device;
  if (mla_open("cpu", 0, "isa=avx2", &device, NULL) != MLA_OK) return;
  mla_close(device);
  mla_answer codes = ask_of("isa=avx2", &p, &l);
  ck_assert_int_eq(codes.numerics.q_round, MLA_Q_ROUND_INT8_ROW);
  ck_assert_int_eq(codes.numerics.dequant, MLA_DEQUANT_SCALE_AFTER);
  p.cache_format = MLA_CACHE_FP8_TOKEN;
  ck_assert_int_eq(ask_of("isa=avx2", &p, &l).numerics.q_round,
                   MLA_Q_ROUND_NONE);
}
END_TEST

static void expect_no(const mla_problem *p, const char *field) {
  mla_limits l = decode_limits();
  mla_answer a = ask(p, &l);
  ck_assert_int_eq(a.supported, 0);
  ck_assert_msg(strstr(a.reason, field) == a.reason, "%s", a.reason);
}

START_TEST(a_no_names_the_field) {
  mla_problem p = decode_problem();
  p.q_dtype = p.out_dtype = MLA_F64;
  p.cache_format = MLA_CACHE_F64;
  expect_no(&p, "q_dtype");
  p = decode_problem();
  p.cache_format = MLA_CACHE_F64;
  expect_no(&p, "cache_format");
  p = decode_problem();
  p.q_dtype = p.out_dtype = MLA_F16;
  p.cache_format = MLA_CACHE_FP8_DS_MLA;
  expect_no(&p, "cache_format");
  p = decode_problem();
  p.cache_format = MLA_CACHE_F32;
  expect_no(&p, "cache_format");
  p = decode_problem();
  p.window = 128;
  expect_no(&p, "window");
  p = decode_problem();
  p.flags |= MLA_ALIBI;
  expect_no(&p, "flags");
  p = decode_problem();
  p.flags |= MLA_OUTPUT_SCALE;
  expect_no(&p, "flags");
}
END_TEST

/* The workspace may not grow with the batch without end: parts are folded on
   the way where they do not fit. */
START_TEST(workspace_is_bounded) {
  mla_problem p = decode_problem();
  mla_limits l = decode_limits();
  l.requests = l.tokens = 1024;
  l.max_query_len = 1;
  l.max_seq_len = 131072;
  l.table_width = 2048;
  p.num_heads = 128;
  mla_answer a = ask(&p, &l);
  ck_assert_int_eq(a.supported, 1);
  ck_assert_msg(a.workspace_bytes < (uint64_t)64 << 20, "%llu bytes",
                (unsigned long long)a.workspace_bytes);
}
END_TEST

START_TEST(workspace_too_small) {
  mla_problem p = decode_problem();
  mla_limits l = decode_limits();
  mla_answer a = ask(&p, &l);
  const mla_backend *b = mla_backend_find("cpu");
  mla_handle *handle;
  mla_backend_plan *plan;
  mla_error err = mla_error_init();
  mla_args none = {(uint32_t)sizeof none, 0, NULL};
  ck_assert(b->open(0, "isa=portable;threads=2", &handle, NULL) == MLA_OK);
  ck_assert(b->plan(handle, &p, &l, &plan, NULL) == MLA_OK);
  ck_assert(b->run(plan, &none, NULL, a.workspace_bytes - 1, NULL, &err) ==
            MLA_WORKSPACE_TOO_SMALL);
  ck_assert_str_eq(err.field, "workspace_bytes");
  ck_assert(b->run(plan, &none, (void *)(uintptr_t)32, a.workspace_bytes, NULL,
                   &err) == MLA_INVALID_ARGUMENT);
  ck_assert_str_eq(err.field, "workspace");
  b->plan_free(plan);
  b->close(handle);
}
END_TEST

START_TEST(device_is_described) {
  const mla_backend *b = mla_backend_find("cpu");
  mla_device_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  ck_assert_int_eq(b->device_count(NULL), 1);
  ck_assert(b->device_info(0, &info, NULL) == MLA_OK);
  ck_assert_int_eq(info.memory_space, MLA_MEMORY_HOST);
  ck_assert_int_ge(info.compute_units, 1);
  ck_assert(info.arch[0] && info.name[0]);
  ck_assert(b->device_info(1, &info, NULL) == MLA_INVALID_ARGUMENT);
}
END_TEST

int main(void) {
  Suite *s = suite_create("cpu backend");
  TCase *t = tcase_create("backend");
  tcase_add_test(t, options_known);
  tcase_add_test(t, options_refused);
  tcase_add_test(t, levels_of_the_other_family);
  tcase_add_test(t, a_yes_says_what_it_is);
  tcase_add_test(t, int8_scores_are_declared);
  tcase_add_test(t, a_no_names_the_field);
  tcase_add_test(t, workspace_is_bounded);
  tcase_add_test(t, workspace_too_small);
  tcase_add_test(t, device_is_described);
  suite_add_tcase(s, t);
  return check_main(s);
}
