/*
 * Every rule for problems and limits, broken one at a time: status, field,
 * and a sentence with the value and the limit.
 */
#include <math.h>
#include <string.h>

#include "check_main.h"
#include "fixed_step.h"
#include "problem_check.h"
#include "witness.h"

typedef enum kind { I32, I64, F64, FLAGS } kind;
typedef struct fault {
  int op;
  uint64_t flags;
  int format;
  kind kind;
  size_t offset;
  double value;
  const char *field;
  const char *says[3];
} fault;

#define P(member) offsetof(mla_problem, member)
#define L(member) offsetof(mla_limits, member)
#define WRITE MLA_OP_KV_WRITE, 0, MLA_CACHE_F32
#define READ MLA_OP_KV_READ, 0, MLA_CACHE_F32
#define DECODE MLA_OP_DECODE, 0, MLA_CACHE_BF16
#define APART MLA_OP_DECODE, MLA_SEPARATE_V, MLA_CACHE_F32
#define PREFILL MLA_OP_PREFILL, 0, MLA_CACHE_NONE
#define CONTEXT MLA_OP_PREFILL, MLA_CONTEXT, MLA_CACHE_F32
#define MERGE MLA_OP_MERGE, 0, MLA_CACHE_NONE
#define ABSORB MLA_OP_ABSORB, 0, MLA_CACHE_NONE
#define FUSED MLA_OP_ABSORB, MLA_FUSED_Q | MLA_FUSED_O, MLA_CACHE_NONE
#define MATMUL MLA_OP_MATMUL, 0, MLA_CACHE_NONE
#define PACKED MLA_OP_DECODE, 0, MLA_CACHE_FP8_DS_MLA
#define FP584 MLA_OP_KV_READ, 0, MLA_CACHE_FP8_584
#define FP8 MLA_OP_DECODE, 0, MLA_CACHE_FP8_E4M3
#define FP8_WRITE MLA_OP_KV_WRITE, 0, MLA_CACHE_FP8_E5M2
#define FP8_READ MLA_OP_KV_READ, 0, MLA_CACHE_FP8_E4M3FNUZ
#define FP8_CONTEXT MLA_OP_PREFILL, MLA_CONTEXT, MLA_CACHE_FP8_E4M3
#define FP8_APART MLA_OP_DECODE, MLA_SEPARATE_V, MLA_CACHE_FP8_E4M3
#define DS_APART MLA_OP_DECODE, MLA_SEPARATE_V, MLA_CACHE_FP8_DS_MLA
#define KEYS MLA_OP_KV_WRITE, 0, MLA_CACHE_FP8_INDEX
#define LISTED MLA_OP_DECODE, MLA_SPARSE | MLA_EXTRA_CACHE, MLA_CACHE_BF16
#define INDEX MLA_OP_INDEX, MLA_RETURN_LOGITS, MLA_CACHE_FP8_INDEX
#define MAP MLA_OP_MAP_INDICES, 0, MLA_CACHE_NONE
#define BIT(n) ((double)((uint64_t)1 << (n)))

static const fault problem_faults[] = {
    {DECODE, I32, P(op), 0, "op", {"0"}},
    {DECODE, I32, P(op), 13, "op", {"13"}},
    {DECODE, I32, P(op), -1, "op", {"-1"}},

    /* flags: unknown, or without meaning for the operation */
    {DECODE,
     FLAGS,
     P(flags),
     BIT(17),
     "flags",
     {"0x20000", "bit 17", "0x1ffff"}},
    {DECODE, FLAGS, P(flags), BIT(63), "flags", {"bit 63", "0x1ffff"}},
    {DECODE, FLAGS, P(flags), BIT(5), "flags", {"MLA_CONTEXT", "decode"}},
    {PREFILL, FLAGS, P(flags), BIT(4), "flags", {"MLA_SEPARATE_V", "prefill"}},
    {WRITE, FLAGS, P(flags), BIT(0), "flags", {"MLA_CAUSAL", "kv_write"}},
    {MERGE, FLAGS, P(flags), BIT(0), "flags", {"MLA_CAUSAL", "merge"}},
    {MATMUL, FLAGS, P(flags), BIT(1), "flags", {"MLA_RETURN_LSE", "matmul"}},
    {ABSORB, FLAGS, P(flags), BIT(6), "flags", {"MLA_BATCH_INVARIANT"}},
    {READ, FLAGS, P(flags), BIT(10), "flags", {"MLA_OUTPUT_SCALE"}},
    {DECODE, FLAGS, P(flags), BIT(12), "flags", {"MLA_EXTRA_CACHE needs"}},
    {LISTED, FLAGS, P(flags), BIT(0), "flags", {"MLA_CAUSAL", "MLA_SPARSE"}},
    {PREFILL, FLAGS, P(flags), BIT(11), "flags", {"MLA_SPARSE", "prefill"}},
    {INDEX, FLAGS, P(flags), BIT(0), "flags", {"MLA_CAUSAL", "index"}},

    /* types and formats */
    {DECODE, I32, P(q_dtype), 0, "q_dtype", {"0", "1 to 7"}},
    {DECODE, I32, P(q_dtype), 14, "q_dtype", {"14"}},
    {DECODE, I32, P(q_dtype), MLA_I32, "q_dtype", {"12", "real"}},
    {DECODE, I32, P(out_dtype), -1, "out_dtype", {"-1"}},
    {READ, I32, P(out_dtype), MLA_U8, "out_dtype", {"11"}},
    {PREFILL, I32, P(weight_dtype), 0, "weight_dtype", {"0"}},
    {ABSORB, I32, P(weight_dtype), 99, "weight_dtype", {"99"}},
    {DECODE, I32, P(cache_format), 0, "cache_format", {"0", "1 to 13"}},
    {DECODE, I32, P(cache_format), 14, "cache_format", {"14"}},
    {CONTEXT, I32, P(cache_format), -3, "cache_format", {"-3"}},
    {PACKED, I32, P(kv_lora_rank), 64, "kv_lora_rank", {"64", "128"}},
    {FP584, I32, P(kv_lora_rank), 100, "kv_lora_rank", {"100", "of 64"}},
    {KEYS, I32, P(kv_lora_rank), 126, "cache_format", {"of 4", "126"}},
    {KEYS, I32, P(qk_rope_head_dim), 4, "cache_format", {"no rope part", "4"}},
    {INDEX, I32, P(head_dim), 30, "cache_format", {"fp8_index", "of 4", "30"}},
    {INDEX,
     I32,
     P(cache_format),
     MLA_CACHE_FP8_584,
     "cache_format",
     {"fp8_584", "plain or fp8_index"}},
    {PACKED,
     I32,
     P(cache_format),
     MLA_CACHE_FP8_INDEX,
     "cache_format",
     {"fp8_index", "index keys", "decode"}},

    /* sizes in use */
    {DECODE, I32, P(num_heads), 0, "num_heads", {"0", "1", "decode"}},
    {DECODE, I32, P(num_heads), -2, "num_heads", {"-2", "1"}},
    {DECODE, I32, P(block_size), 0, "block_size", {"0", "1"}},
    {DECODE, I32, P(kv_lora_rank), 0, "kv_lora_rank", {"0", "1"}},
    {DECODE, I32, P(qk_rope_head_dim), -4, "qk_rope_head_dim", {"-4", "1"}},
    {DECODE, I32, P(head_dim), -1, "head_dim", {"-1", "0"}},
    {DECODE, I32, P(v_dim), -1, "v_dim", {"-1", "0"}},
    {DECODE, I32, P(v_dim), 13, "v_dim", {"13", "12"}},
    {DECODE, I32, P(head_dim), 7, "v_dim", {"8", "7"}},
    {DECODE, I32, P(num_kv_heads), 2, "num_kv_heads", {"2", "1"}},
    {DECODE, I32, P(num_kv_heads), -1, "num_kv_heads", {"-1", "1"}},
    {PACKED, I32, P(head_dim), 128, "head_dim", {"128", "132", "fp8_ds_mla"}},
    {APART, I32, P(num_kv_heads), 3, "num_kv_heads", {"3", "num_heads 2"}},
    {APART, I32, P(num_kv_heads), -1, "num_kv_heads", {"-1", "0"}},
    {PREFILL, I32, P(qk_nope_head_dim), 0, "qk_nope_head_dim", {"0", "1"}},
    {PREFILL, I32, P(v_head_dim), 0, "v_head_dim", {"0", "1"}},
    {CONTEXT, I32, P(block_size), -1, "block_size", {"-1", "1"}},
    {MERGE, I32, P(v_head_dim), -1, "v_head_dim", {"-1", "1", "merge"}},
    {WRITE, I32, P(qk_rope_head_dim), -1, "qk_rope_head_dim", {"-1", "0"}},
    {PREFILL, I32, P(qk_rope_head_dim), 0, "qk_rope_head_dim", {"0", "1"}},
    {FUSED, I32, P(q_lora_rank), 0, "q_lora_rank", {"0", "1"}},
    {FUSED, I32, P(hidden_size), 0, "hidden_size", {"0", "1"}},
    {MATMUL, I32, P(q_lora_rank), 0, "q_lora_rank", {"0", "1", "matmul"}},
    {MATMUL, I32, P(hidden_size), -8, "hidden_size", {"-8", "1"}},
    {DECODE, I32, P(kv_lora_rank), INT32_MAX, "kv_lora_rank", {"2147483647"}},

    /* scales of caches and weights */
    {FP8, F64, P(k_scale), 0, "k_scale", {"0", "fp8_e4m3"}},
    {FP8, F64, P(k_scale), NAN, "k_scale", {"nan", "fp8_e4m3"}},
    {FP8, F64, P(k_scale), INFINITY, "k_scale", {"inf"}},
    {FP8, F64, P(k_scale), -0.5, "k_scale", {"-0.5", "more than 0"}},
    {FP8, F64, P(k_scale), 1e-50, "k_scale", {"1e-50", "f32"}},
    {FP8, F64, P(k_scale), 1e39, "k_scale", {"1e+39", "f32"}},
    {FP8_WRITE, F64, P(k_scale), 0, "k_scale", {"0", "fp8_e5m2"}},
    {FP8_READ, F64, P(k_scale), NAN, "k_scale", {"nan", "fp8_e4m3fnuz"}},
    {FP8_CONTEXT, F64, P(k_scale), 0, "k_scale", {"0", "fp8_e4m3"}},
    {FP8_APART, F64, P(k_scale), 0, "k_scale", {"0"}},
    {FP8_APART, F64, P(v_scale), 0, "v_scale", {"0", "fp8_e4m3"}},
    {FP8_APART, F64, P(v_scale), NAN, "v_scale", {"nan"}},
    {DS_APART, I32, P(num_kv_heads), 1, "cache_format", {"fp8_ds_mla"}},
    {WRITE, FLAGS, P(flags), BIT(13), "flags", {"MLA_SCALE_POW2", "f32"}},
    {ABSORB, FLAGS, P(flags), BIT(15), "weight_dtype", {"f32", "fp8_e4m3"}},
    {ABSORB,
     I32,
     P(weight_dtype),
     MLA_FP8_E4M3,
     "flags",
     {"fp8_e4m3", "MLA_BLOCK_SCALED"}},

    {LISTED, I32, P(topk), 0, "topk", {"0", "1", "decode"}},
    {LISTED, I32, P(extra_topk), -3, "extra_topk", {"-3", "1"}},
    {LISTED, I32, P(extra_block_size), 0, "extra_block_size", {"0", "1"}},
    {INDEX, I32, P(topk), -1, "topk", {"-1", "1", "index"}},
    {INDEX, I32, P(head_dim), -4, "head_dim", {"-4", "0"}},
    {MAP, I32, P(topk), 0, "topk", {"0", "1", "map_indices"}},
    {MAP, I32, P(block_size), 0, "block_size", {"0", "1"}},

    /* scale, cap, window */
    {DECODE, F64, P(scale), 0, "scale", {"0", "more than 0"}},
    {DECODE, F64, P(scale), -0.5, "scale", {"-0.5"}},
    {DECODE, F64, P(scale), INFINITY, "scale", {"inf"}},
    {DECODE, F64, P(scale), NAN, "scale", {"nan"}},
    {PREFILL, F64, P(scale), 0, "scale", {"0"}},
    {DECODE, F64, P(logits_soft_cap), -1, "logits_soft_cap", {"-1", "0"}},
    {DECODE, F64, P(logits_soft_cap), INFINITY, "logits_soft_cap", {"inf"}},
    {PREFILL, F64, P(logits_soft_cap), NAN, "logits_soft_cap", {"nan"}},
    {DECODE, I32, P(window), -1, "window", {"-1", "0"}},
};

static const fault limit_faults[] = {
    {DECODE, I64, L(requests), 0, "requests", {"0", "1", "decode"}},
    {DECODE, I64, L(tokens), -1, "tokens", {"-1", "1"}},
    {DECODE, I64, L(max_query_len), 0, "max_query_len", {"0", "1"}},
    {DECODE, I64, L(max_seq_len), 0, "max_seq_len", {"0", "1"}},
    {DECODE, I64, L(num_blocks), 0, "num_blocks", {"0", "1"}},
    {DECODE, I64, L(table_width), 0, "table_width", {"0", "1"}},
    {DECODE, I32, L(num_splits), -1, "num_splits", {"-1", "0"}},
    {CONTEXT, I64, L(context_chunk), -1, "context_chunk", {"-1", "0"}},
    {CONTEXT, I64, L(table_width), 0, "table_width", {"0", "1"}},
    {WRITE, I64, L(tokens), 0, "tokens", {"0", "1", "kv_write"}},
    {READ, I64, L(max_seq_len), 0, "max_seq_len", {"0", "1"}},
    {READ, I64, L(tokens), 0, "tokens", {"0", "1"}},
    {MERGE, I64, L(parts), 0, "parts", {"0", "1"}},
    {MATMUL, I64, L(tokens), 0, "tokens", {"0", "1"}},
    {LISTED, I64, L(tokens), 0, "tokens", {"0", "1"}},
    {LISTED, I64, L(num_blocks), 0, "num_blocks", {"0", "1"}},
    {INDEX, I64, L(max_seq_len), 0, "max_seq_len", {"0", "1", "index"}},
    {MAP, I64, L(max_query_len), 0, "max_query_len", {"0", "1"}},
    {MAP, I64, L(table_width), 0, "table_width", {"0", "1"}},
    /* products that do not fit */
    {DECODE, I64, L(tokens), BIT(60), "q", {"2^63 - 1"}},
    {DECODE, I64, L(num_blocks), BIT(58), "cache", {"num_blocks"}},
    {DECODE, I64, L(requests), BIT(62), "block_table", {"2^63 - 1"}},
    {DECODE, I64, L(table_width), BIT(61), "block_table", {"table_width"}},
    {MERGE, I64, L(parts), BIT(59), "parts", {"2^63 - 1"}},
    {INDEX, I64, L(max_seq_len), BIT(60), "logits", {"positions"}},
};
#define COUNT(a) ((int)(sizeof(a) / sizeof(a)[0]))

static void put(void *to, const fault *f) {
  char *place = (char *)to + f->offset;
  int32_t i32 = f->kind == I32 ? (int32_t)f->value : 0;
  int64_t i64 = f->kind == I64 ? (int64_t)f->value : 0;
  switch (f->kind) {
    case I32: memcpy(place, &i32, sizeof i32); break;
    case I64: memcpy(place, &i64, sizeof i64); break;
    case F64: memcpy(place, &f->value, sizeof f->value); break;
    case FLAGS: *(uint64_t *)(void *)place |= (uint64_t)f->value; break;
  }
}

static void expect(const fault *f, mla_status st, const mla_error *err) {
  ck_assert_msg(st == MLA_INVALID_ARGUMENT, "%s: %s %s", f->field,
                mla_status_name(st), err->message);
  ck_assert_msg(!strcmp(err->field, f->field), "%s is said of %s: %s",
                err->field, f->field, err->message);
  ck_assert_ptr_nonnull(strstr(err->message, f->field));
  for (int k = 0; k < 3 && f->says[k]; k++)
    ck_assert_msg(strstr(err->message, f->says[k]) != NULL,
                  "\"%s\" is not in: %s", f->says[k], err->message);
}

/* Both query and plan refuse, before the backend hears of it. */
static void refuse(const fault *f, const fixed_step *step) {
  mla_device *dev = witness_open();
  mla_error err = mla_error_init();
  mla_answer answer = mla_answer_init(), before;
  mla_plan *plan = (mla_plan *)dev;
  memset(&answer.kernel, FIXED_POISON, sizeof answer.kernel);
  before = answer;
  expect(f, mla_query(dev, &step->problem, &step->limits, &answer, &err), &err);
  ck_assert_mem_eq(&answer, &before, sizeof answer);
  expect(f, mla_plan_create(dev, &step->problem, &step->limits, &plan, &err),
         &err);
  ck_assert_ptr_null(plan);
  ck_assert_int_eq(the_witness.problem.op, MLA_OP_NONE);
  mla_close(dev);
}

START_TEST(bad_problems_are_told) {
  const fault *f = &problem_faults[_i];
  fixed_step *step = fixed_step_new(f->op, f->flags, f->format);
  put(&step->problem, f);
  refuse(f, step);
  fixed_step_free(step);
}
END_TEST

START_TEST(bad_limits_are_told) {
  const fault *f = &limit_faults[_i];
  fixed_step *step = fixed_step_new(f->op, f->flags, f->format);
  put(&step->limits, f);
  refuse(f, step);
  fixed_step_free(step);
}
END_TEST

/* What an operation does not use may hold anything. */
START_TEST(unused_members_are_ignored) {
  mla_error err = mla_error_init();
  fixed_step *step = fixed_step_new(MLA_OP_KV_WRITE, 0, MLA_CACHE_F32);
  mla_problem *p = &step->problem;
  p->num_heads = p->qk_nope_head_dim = p->v_head_dim = p->v_dim = -1;
  p->q_lora_rank = p->hidden_size = p->num_kv_heads = p->head_dim = -1;
  p->out_dtype = p->weight_dtype = 99;
  p->scale = p->logits_soft_cap = NAN;
  p->window = -1;
  step->limits.requests = step->limits.table_width = step->limits.parts = -1;
  step->limits.max_query_len = step->limits.max_seq_len = -1;
  ck_assert_msg(mla_problem_check(p, &err) == MLA_OK, "%s", err.message);
  ck_assert_int_eq(mla_limits_check(p, &step->limits, &err), MLA_OK);
  fixed_step_free(step);
}
END_TEST

/* General heads need neither L nor R when the widths are given. */
START_TEST(widths_replace_ranks) {
  mla_error err = mla_error_init();
  fixed_step *step =
      fixed_step_new(MLA_OP_DECODE, MLA_SEPARATE_V, MLA_CACHE_F32);
  mla_problem *p = &step->problem;
  p->kv_lora_rank = p->qk_rope_head_dim = 0;
  p->head_dim = 7;
  p->v_dim = 9;
  p->num_kv_heads = 2;
  ck_assert_msg(mla_problem_check(p, &err) == MLA_OK, "%s", err.message);
  p->v_dim = 0;
  ck_assert_int_eq(mla_problem_check(p, &err), MLA_INVALID_ARGUMENT);
  ck_assert_str_eq(err.field, "kv_lora_rank");
  fixed_step_free(step);
}
END_TEST

/* Index keys have no rope part; a table's lengths are none of a list's. */
START_TEST(sparse_attention_asks_for_no_more) {
  static const struct {
    int32_t op, format;
    uint64_t flags;
  } lawful[] = {
      {MLA_OP_KV_WRITE, MLA_CACHE_FP8_INDEX, 0},
      {MLA_OP_KV_READ, MLA_CACHE_FP8_INDEX, 0},
      {MLA_OP_KV_COPY, MLA_CACHE_FP8_INDEX, 0},
      {MLA_OP_INDEX, MLA_CACHE_FP8_INDEX, 0},
      {MLA_OP_INDEX, MLA_CACHE_BF16, MLA_RETURN_LOGITS},
      {MLA_OP_MAP_INDICES, MLA_CACHE_NONE, 0},
      {MLA_OP_DECODE, MLA_CACHE_BF16, MLA_SPARSE},
  };
  for (int i = 0; i < COUNT(lawful); i++) {
    mla_error err = mla_error_init();
    fixed_step *step =
        fixed_step_new(lawful[i].op, lawful[i].flags, lawful[i].format);
    mla_problem *p = &step->problem;
    p->extra_topk = p->extra_block_size = -1;
    if (p->op != MLA_OP_DECODE) p->qk_rope_head_dim = 0;
    if (p->op == MLA_OP_INDEX) p->head_dim = 16;
    if (p->op == MLA_OP_DECODE)
      step->limits.requests = step->limits.max_query_len =
          step->limits.max_seq_len = step->limits.table_width = 0;
    if (p->op == MLA_OP_MAP_INDICES)
      step->limits.max_seq_len = step->limits.num_blocks = 0;
    ck_assert_msg(mla_problem_check(p, &err) == MLA_OK, "%s", err.message);
    ck_assert_msg(mla_limits_check(p, &step->limits, &err) == MLA_OK, "%s",
                  err.message);
    fixed_step_free(step);
  }
}
END_TEST

/* Known, and refused by backends, not by the rules. */
START_TEST(refused_features_are_lawful) {
  mla_error err = mla_error_init();
  fixed_step *step = fixed_step_new(MLA_OP_DECODE, MLA_ALIBI, MLA_CACHE_F32);
  step->problem.window = 128;
  step->problem.flags |= MLA_OUTPUT_SCALE;
  ck_assert_int_eq(mla_problem_check(&step->problem, &err), MLA_OK);
  fixed_step_free(step);
}
END_TEST

START_TEST(hints_are_checked) {
  static const int32_t starts[] = {0, 2, 2, 5}, lens[] = {10, 0, 16};
  static const int32_t back[] = {0, 2, 1, 5}, late[] = {1, 2, 2, 5};
  static const int32_t many[] = {0, 2, 2, 10}, negative[] = {10, -1, 16};
  static const int32_t long_lens[] = {10, 0, 65};
  static const struct {
    const int32_t *starts, *lens;
    const char *field;
  } hints[] = {
      {starts, lens, NULL},
      {NULL, lens, "query_start_loc"},
      {starts, NULL, "seq_lens"},
      {back, lens, "query_start_loc"},
      {late, lens, "query_start_loc"},
      {many, lens, "query_start_loc"},
      {starts, negative, "seq_lens"},
      {starts, long_lens, "seq_lens"},
  };
  mla_error err = mla_error_init();
  fixed_step *step = fixed_step_new(MLA_OP_DECODE, 0, MLA_CACHE_F32);
  for (int i = 0; i < COUNT(hints); i++) {
    step->limits.query_start_loc = hints[i].starts;
    step->limits.seq_lens = hints[i].lens;
    mla_status st = mla_limits_check(&step->problem, &step->limits, &err);
    ck_assert_int_eq(st, hints[i].field ? MLA_INVALID_ARGUMENT : MLA_OK);
    if (hints[i].field) ck_assert_str_eq(err.field, hints[i].field);
  }
  fixed_step_free(step);
}
END_TEST

/* A weight too large for any memory is found before a tensor is. */
START_TEST(huge_weights_overflow) {
  mla_error err = mla_error_init();
  fixed_step *step = fixed_step_new(MLA_OP_ABSORB, 0, MLA_CACHE_NONE);
  mla_problem *p = &step->problem;
  p->num_heads = p->qk_nope_head_dim = p->v_head_dim = INT32_MAX;
  ck_assert_int_eq(mla_problem_check(p, &err), MLA_INVALID_ARGUMENT);
  ck_assert_str_eq(err.field, "kv_b_proj");
  ck_assert_ptr_nonnull(strstr(err.message, "2^63 - 1"));
  fixed_step_free(step);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("problem_check");
  TCase *tests = tcase_create("problem_check");
  tcase_add_loop_test(tests, bad_problems_are_told, 0, COUNT(problem_faults));
  tcase_add_loop_test(tests, bad_limits_are_told, 0, COUNT(limit_faults));
  tcase_add_test(tests, unused_members_are_ignored);
  tcase_add_test(tests, widths_replace_ranks);
  tcase_add_test(tests, sparse_attention_asks_for_no_more);
  tcase_add_test(tests, refused_features_are_lawful);
  tcase_add_test(tests, hints_are_checked);
  tcase_add_test(tests, huge_weights_overflow);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
