#define _POSIX_C_SOURCE 200809L
/*
 * test_compose.c - the front of compositions: what is checked before any
 * work, who does the work, and the longest common prefix.
 */
#include "mla/compose.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "registry.h"
#include "tensor.h"

enum { H = 2, L = 8, R = 4, P = 4, V = 4, BS = 4, NB = 6, W = 3, B = 2 };

/* A decode of two requests that have two blocks in common. */
typedef struct bench {
  float q[B * H * (L + R)], cache[NB * BS * (L + R)], out[B * H * L];
  float lse[B * H];
  int32_t table[B * W], lens[B], starts[B + 1];
  mla_tensor tensor[MLA_T_COUNT];
  mla_problem problem;
  mla_limits limits;
  mla_composition what;
  mla_step step;
} bench;

static void set(bench *x, int slot, void *data, int32_t dtype, int32_t rank,
                int64_t a, int64_t b, int64_t c) {
  const int64_t shape[3] = {a, b, c};
  x->tensor[slot] = mla_tensor_dense(data, dtype, rank, shape);
}

static void bench_new(bench *x) {
  static const int32_t table[] = {4, 1, 0, 4, 1, 3}, lens[] = {11, 9};
  memset(x, 0, sizeof *x);
  for (int i = 0; i < B * H * (L + R); i++) x->q[i] = (float)(i % 7 - 3) / 4;
  for (int i = 0; i < NB * BS * (L + R); i++)
    x->cache[i] = (float)(i * 37 % 11 - 5) / 4;
  for (int i = 0; i < B * H * L; i++) x->out[i] = 77;
  memcpy(x->table, table, sizeof table);
  memcpy(x->lens, lens, sizeof lens);
  for (int i = 0; i <= B; i++) x->starts[i] = i;
  set(x, MLA_T_Q, x->q, MLA_F32, 3, B, H, L + R);
  set(x, MLA_T_CACHE, x->cache, MLA_F32, 3, NB, BS, L + R);
  set(x, MLA_T_BLOCK_TABLE, x->table, MLA_I32, 2, B, W, 0);
  set(x, MLA_T_SEQ_LENS, x->lens, MLA_I32, 1, B, 0, 0);
  set(x, MLA_T_QUERY_START_LOC, x->starts, MLA_I32, 1, B + 1, 0, 0);
  set(x, MLA_T_OUT, x->out, MLA_F32, 3, B, H, L);
  set(x, MLA_T_LSE, x->lse, MLA_F32, 2, B, H, 0);
  x->problem = mla_problem_init(MLA_OP_DECODE);
  x->problem.flags = MLA_CAUSAL | MLA_RETURN_LSE;
  x->problem.q_dtype = x->problem.out_dtype = MLA_F32;
  x->problem.cache_format = MLA_CACHE_F32;
  x->problem.num_heads = H;
  x->problem.kv_lora_rank = L;
  x->problem.qk_rope_head_dim = R;
  x->problem.block_size = BS;
  x->problem.scale = 0.5;
  x->limits = mla_limits_init();
  x->limits.requests = x->limits.tokens = B;
  x->limits.max_query_len = 2;
  x->limits.max_seq_len = 12;
  x->limits.num_blocks = NB;
  x->limits.table_width = W;
  x->what = (mla_composition){sizeof x->what, MLA_CASCADE, 0, 2, 2, 0};
  x->step =
      (mla_step){sizeof x->step, 0, B, x->starts, x->lens, x->table, W, 2 * BS};
}

/* What a faulty call is made of; every member is lawful at first. */
typedef struct call {
  bench x;
  mla_device *dev;
  mla_composed *composed;
  mla_step *step;
  unsigned char *workspace;
  uint64_t bytes;
} call;

static void call_new(call *c, int32_t kind) {
  mla_error err = mla_error_init();
  bench_new(&c->x);
  c->x.what.kind = kind;
  ck_assert_int_eq(mla_open("ref", 0, NULL, &c->dev, NULL), MLA_OK);
  mla_status status = mla_compose(c->dev, &c->x.what, &c->x.problem,
                                  &c->x.limits, &c->composed, &err);
  ck_assert_msg(status == MLA_OK, "%s", err.message);
  c->bytes = mla_composed_answer(c->composed)->workspace_bytes;
  c->step = &c->x.step;
  void *memory = NULL;
  ck_assert_int_eq(posix_memalign(&memory, 64, (size_t)c->bytes + 64), 0);
  c->workspace = memory;
}

static void call_free(call *c) {
  free(c->workspace);
  mla_composed_free(c->composed);
  mla_close(c->dev);
}

static mla_status go(call *c, mla_error *err) {
  mla_args args = {(uint32_t)sizeof args, MLA_T_COUNT, c->x.tensor};
  return mla_composed_run(c->composed, &args, c->step, c->workspace, c->bytes,
                          NULL, err);
}

/* ---------------------------------------------------------------- mistakes */

static void long_prefix(call *c) {
  c->x.step.prefix_len = 10;
}
static void negative_prefix(call *c) {
  c->x.step.prefix_len = -1;
}
static void other_blocks(call *c) {
  c->x.table[W + 1] = 5;
}
static void few_requests(call *c) {
  c->x.step.requests = 1;
}
static void no_lens(call *c) {
  c->x.step.seq_lens = NULL;
}
static void no_starts(call *c) {
  c->x.step.query_start_loc = NULL;
}
static void bad_len(call *c) {
  c->x.lens[1] = -2;
}
static void long_len(call *c) {
  c->x.lens[1] = 13;
}
static void bad_id(call *c) {
  c->x.table[2] = NB;
}
static void bad_step(call *c) {
  c->x.step.size = 4;
}
static void no_q(call *c) {
  c->x.tensor[MLA_T_Q].data = NULL;
}
static void narrow_q(call *c) {
  c->x.tensor[MLA_T_Q].shape[2]--;
}
static void no_workspace(call *c) {
  c->workspace = NULL;
}
static void little_workspace(call *c) {
  c->bytes--;
}
static void crooked_workspace(call *c) {
  c->workspace += 4;
}
static void no_table(call *c) {
  c->x.step.block_table = NULL;
}

static const struct {
  int32_t kind;
  void (*break_it)(call *);
  const char *field, *says;
} faults[] = {
    {MLA_CASCADE, long_prefix, "prefix_len", "is 10, but the first row"},
    {MLA_CASCADE, negative_prefix, "prefix_len", "is -1, at least 0"},
    {MLA_CASCADE, other_blocks, "prefix_len", "block_table[1][1] is 5"},
    {MLA_CASCADE, few_requests, "step", "1 requests"},
    {MLA_CASCADE, no_lens, "step", "not all lengths"},
    {MLA_CASCADE, no_starts, "step", "not all lengths"},
    {MLA_CASCADE, bad_len, "seq_lens", "-2"},
    {MLA_CASCADE, long_len, "seq_lens", "13"},
    {MLA_CASCADE, bad_id, "block_table", "is 6"},
    {MLA_CASCADE, bad_step, "step", "step.size is 4"},
    {MLA_CASCADE, no_q, "q", "absent"},
    {MLA_SHARDED, narrow_q, "q", "q.shape[2] is 11"},
    {MLA_SHARDED, no_workspace, "workspace", "NULL"},
    {MLA_SHARDED, little_workspace, "workspace_bytes", "needs"},
    {MLA_SHARDED, crooked_workspace, "workspace", "misaligned"},
    {MLA_SHARDED, no_table, "block_table", "NULL"},
};

START_TEST(bad_calls_write_nothing) {
  call c;
  mla_error err = mla_error_init();
  call_new(&c, faults[_i].kind);
  unsigned char *memory = c.workspace;
  faults[_i].break_it(&c);
  ck_assert_int_ne(go(&c, &err), MLA_OK);
  ck_assert_str_eq(err.field, faults[_i].field);
  ck_assert_msg(strstr(err.message, faults[_i].says) != NULL, "%s",
                err.message);
  for (int i = 0; i < B * H * L; i++) ck_assert(c.x.out[i] == 77);
  for (int i = 0; i < B * H; i++) ck_assert(c.x.lse[i] == 0);
  c.workspace = memory;
  call_free(&c);
}
END_TEST

START_TEST(bad_compositions) {
  mla_error err = mla_error_init();
  mla_answer answer = mla_answer_init();
  mla_device *dev;
  bench x;
  ck_assert_int_eq(mla_open("ref", 0, NULL, &dev, NULL), MLA_OK);
  const struct {
    mla_composition what;
    int32_t op;
    const char *field;
  } bad[] = {
      {{sizeof x.what, 0, 0, 1, 1, 0}, MLA_OP_DECODE, "kind"},
      {{sizeof x.what, 4, 0, 1, 1, 0}, MLA_OP_DECODE, "kind"},
      {{sizeof x.what, MLA_SHARDED, 0, 0, 1, 0}, MLA_OP_DECODE, "ranks"},
      {{sizeof x.what, MLA_SHARDED, 0, 1, 0, 0}, MLA_OP_DECODE, "interleave"},
      {{sizeof x.what, MLA_CHUNKED_PREFILL, 0, 1, 1, 0}, MLA_OP_DECODE, "op"},
      {{4, MLA_CASCADE, 0, 1, 1, 0}, MLA_OP_DECODE, "composition"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    bench_new(&x);
    mla_composed *composed = (mla_composed *)&x;
    ck_assert_int_ne(mla_compose_query(dev, &bad[i].what, &x.problem, &x.limits,
                                       &answer, &err),
                     MLA_OK);
    ck_assert_str_eq(err.field, bad[i].field);
    ck_assert_int_ne(
        mla_compose(dev, &bad[i].what, &x.problem, &x.limits, &composed, NULL),
        MLA_OK);
    ck_assert_ptr_null(composed);
  }
  bench_new(&x);
  x.limits.requests = 0;
  ck_assert_int_eq(
      mla_compose_query(dev, &x.what, &x.problem, &x.limits, &answer, &err),
      MLA_INVALID_ARGUMENT);
  mla_composed_free(NULL);
  ck_assert_ptr_null(mla_composed_answer(NULL));
  mla_close(dev);
}
END_TEST

/* --------------------------------------------------------------- lawful */

/* Without a step the tensors speak for themselves; with one, its prefix. */
START_TEST(with_and_without_a_step) {
  float first[B * H * L];
  call c;
  call_new(&c, MLA_CASCADE);
  ck_assert_int_eq(go(&c, NULL), MLA_OK);
  memcpy(first, c.x.out, sizeof first);
  ck_assert(first[0] != 77);
  c.step = NULL;
  ck_assert_int_eq(go(&c, NULL), MLA_OK);
  for (int i = 0; i < B * H * L; i++) {
    float error = first[i] - c.x.out[i];
    ck_assert(error < 1e-5f && error > -1e-5f);
  }
  call_free(&c);
}
END_TEST

/* Nobody has a row: nothing happens. */
START_TEST(empty_steps) {
  call c;
  call_new(&c, MLA_CASCADE);
  c.x.starts[1] = c.x.starts[2] = 0;
  ck_assert_int_eq(go(&c, NULL), MLA_OK);
  for (int i = 0; i < B * H * L; i++) ck_assert(c.x.out[i] == 77);
  call_free(&c);
}
END_TEST

static mla_problem prefill_problem(const bench *x) {
  mla_problem p = x->problem;
  p.op = MLA_OP_PREFILL;
  p.flags |= MLA_CONTEXT;
  p.weight_dtype = MLA_F32;
  p.qk_nope_head_dim = P;
  p.v_head_dim = V;
  return p;
}

/* The backend's own prefill overrides; parts_only insists. */
START_TEST(own_operation_overrides) {
  mla_device *dev;
  bench x;
  mla_answer answer = mla_answer_init();
  ck_assert_int_eq(mla_open("ref", 0, NULL, &dev, NULL), MLA_OK);
  bench_new(&x);
  mla_problem p = prefill_problem(&x);
  x.what.kind = MLA_CHUNKED_PREFILL;
  ck_assert_int_eq(
      mla_compose_query(dev, &x.what, &p, &x.limits, &answer, NULL), MLA_OK);
  ck_assert_str_eq(answer.kernel, "ref");
  ck_assert_uint_eq(answer.workspace_bytes, 0);
  x.what.parts_only = 1;
  ck_assert_int_eq(
      mla_compose_query(dev, &x.what, &p, &x.limits, &answer, NULL), MLA_OK);
  ck_assert_str_eq(answer.kernel, "chunked prefill:ref");
  ck_assert(answer.workspace_bytes > 0);
  p.flags &= ~MLA_CONTEXT;
  ck_assert_int_eq(
      mla_compose_query(dev, &x.what, &p, &x.limits, &answer, NULL),
      MLA_INVALID_ARGUMENT);
  mla_close(dev);
}
END_TEST

/* ------------------------------------------------- a backend's own cascade */

static int64_t told; /* what run_prefix was told last; -1: it was not called */

static mla_status own_cascade(const mla_backend_plan *plan,
                              const mla_args *args, int64_t prefix_len,
                              void *workspace, uint64_t workspace_bytes,
                              mla_stream stream, mla_error *err) {
  told = prefix_len;
  return mla_backend_find("ref")->run(plan, args, workspace, workspace_bytes,
                                      stream, err);
}

/* The reference under another name, with a cascade of its own; `size` bytes
   of its table are shown, as those of an older minor would be. */
static void open_own(call *c, const char *name, size_t size) {
  static mla_backend tables[2];
  mla_backend *table = &tables[size < sizeof *table];
  mla_error err = mla_error_init();
  *table = *mla_backend_find("ref");
  table->name = name;
  table->size = (uint32_t)size;
  table->minor = size < sizeof *table ? 0 : MLA_ABI_MINOR;
  table->run_prefix = own_cascade;
  const mla_backend *found;
  ck_assert_int_eq(mla_registry_add(table, "test", &found, NULL), MLA_OK);
  call_new(c, MLA_CASCADE);
  mla_composed_free(c->composed);
  mla_close(c->dev);
  ck_assert_int_eq(mla_open(name, 0, NULL, &c->dev, NULL), MLA_OK);
  ck_assert_msg(mla_compose(c->dev, &c->x.what, &c->x.problem, &c->x.limits,
                            &c->composed, &err) == MLA_OK,
                "%s", err.message);
  told = -1;
}

/* It is told of whole blocks that all rows see, and gives what decode does. */
START_TEST(own_cascade_overrides) {
  float first[B * H * L];
  mla_answer answer = mla_answer_init();
  call c;
  open_own(&c, "own", sizeof(mla_backend));
  ck_assert_str_eq(mla_composed_answer(c.composed)->kernel, "ref");
  ck_assert_int_eq(mla_composed_answer(c.composed)->determinism,
                   MLA_DETERMINISM_RUN_TO_RUN);
  c.x.step.prefix_len = 2 * BS + 1; /* of which one key is no block */
  ck_assert_int_eq(go(&c, NULL), MLA_OK);
  ck_assert_int_eq(told, 2 * BS);
  memcpy(first, c.x.out, sizeof first);
  c.step = NULL;
  ck_assert_int_eq(go(&c, NULL), MLA_OK);
  ck_assert_int_eq(told, 0);
  ck_assert_int_eq(memcmp(first, c.x.out, sizeof first), 0);
  told = -1;
  c.x.starts[1] = c.x.starts[2] = 0;
  ck_assert_int_eq(go(&c, NULL), MLA_OK);
  ck_assert_int_eq(told, -1);
  c.x.what.parts_only = 1;
  ck_assert_int_eq(mla_compose_query(c.dev, &c.x.what, &c.x.problem,
                                     &c.x.limits, &answer, NULL),
                   MLA_OK);
  ck_assert_str_eq(answer.kernel, "cascade:ref");
  c.x.what.parts_only = 0;
  c.x.problem.flags |= MLA_BATCH_INVARIANT;
  ck_assert_int_eq(mla_compose_query(c.dev, &c.x.what, &c.x.problem,
                                     &c.x.limits, &answer, NULL),
                   MLA_OK);
  ck_assert_int_eq(answer.supported, 0);
  call_free(&c);
}
END_TEST

/* What is checked of a step holds for a backend's own cascade too. */
START_TEST(own_cascade_is_checked) {
  mla_error err = mla_error_init();
  call c;
  open_own(&c, "own", sizeof(mla_backend));
  c.x.step.prefix_len = 10;
  ck_assert_int_eq(go(&c, &err), MLA_INVALID_ARGUMENT);
  ck_assert_str_eq(err.field, "prefix_len");
  c.x.step.prefix_len = 2 * BS;
  c.x.table[W + 1] = 5;
  ck_assert_int_eq(go(&c, &err), MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(told, -1);
  ck_assert(c.x.out[0] == 77);
  call_free(&c);
}
END_TEST

/* A table that ends before run_prefix: the cascade is made of parts. */
START_TEST(an_older_minor_is_composed) {
  mla_answer answer = mla_answer_init();
  call c;
  open_own(&c, "older", offsetof(mla_backend, run_prefix));
  ck_assert_str_eq(mla_composed_answer(c.composed)->kernel, "cascade:ref");
  ck_assert_int_eq(go(&c, NULL), MLA_OK);
  ck_assert_int_eq(told, -1);
  ck_assert(c.x.out[0] != 77);
  c.x.problem.flags |= MLA_COMMON_PREFIX;
  ck_assert_int_eq(mla_query(c.dev, &c.x.problem, &c.x.limits, &answer, NULL),
                   MLA_OK);
  ck_assert_int_eq(answer.supported, 0);
  ck_assert_ptr_nonnull(strstr(answer.reason, "older has no run_prefix"));
  call_free(&c);
}
END_TEST

/* The chunk bounds the workspace, whatever the context. */
START_TEST(workspace_is_bounded) {
  mla_device *dev;
  bench x;
  uint64_t bytes[2];
  ck_assert_int_eq(mla_open("ref", 0, NULL, &dev, NULL), MLA_OK);
  for (int i = 0; i < 2; i++) {
    mla_answer answer = mla_answer_init();
    bench_new(&x);
    mla_problem p = prefill_problem(&x);
    x.what.kind = MLA_CHUNKED_PREFILL;
    x.what.parts_only = 1;
    x.limits.context_chunk = 256;
    x.limits.max_seq_len = i ? 262144 : 1024;
    x.limits.table_width = x.limits.max_seq_len / BS;
    ck_assert_int_eq(
        mla_compose_query(dev, &x.what, &p, &x.limits, &answer, NULL), MLA_OK);
    bytes[i] = answer.workspace_bytes;
  }
  /* Index arrays alone grow: 64 bytes each, four a chunk and request. */
  ck_assert(bytes[1] - bytes[0] <= (uint64_t)(1024 - 4) * B * 4 * 64);
  mla_close(dev);
}
END_TEST

/* ---------------------------------------------------------------- prefixes */

START_TEST(common_prefixes) {
  const struct {
    int32_t table[2][4], lens[2], starts[3];
    int causal;
    int64_t prefix;
  } cases[] = {{{{3, 1, 2, 9}, {3, 1, 5, 9}}, {16, 16}, {0, 1, 2}, 1, 8},
               {{{3, 1, 2, 9}, {4, 1, 2, 9}}, {16, 16}, {0, 1, 2}, 1, 0},
               {{{3, 1, 2, 9}, {3, 1, 2, 9}}, {16, 13}, {0, 1, 2}, 1, 12},
               {{{3, 1, 2, 9}, {3, 1, 2, 9}}, {16, 12}, {0, 1, 3}, 1, 8},
               {{{3, 1, 2, 9}, {3, 1, 2, 9}}, {16, 12}, {0, 1, 3}, 0, 12},
               {{{3, 1, 2, 9}, {3, 1, 2, 9}}, {16, 12}, {0, 1, 1}, 1, 0},
               {{{3, 1, 2, 9}, {3, 1, 2, 9}}, {16, 0}, {0, 1, 2}, 1, 0},
               {{{3, 1, 2, 9}, {3, 1, 2, 9}}, {16, 2}, {0, 1, 5}, 1, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    mla_step step = {sizeof step,       0, 2, cases[i].starts, cases[i].lens,
                     cases[i].table[0], 4, 0};
    ck_assert_int_eq(mla_common_prefix(&step, 4, BS, cases[i].causal),
                     cases[i].prefix);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("compose");
  TCase *tcase = tcase_create("front");
  tcase_add_loop_test(tcase, bad_calls_write_nothing, 0,
                      (int)(sizeof faults / sizeof faults[0]));
  tcase_add_test(tcase, bad_compositions);
  tcase_add_test(tcase, with_and_without_a_step);
  tcase_add_test(tcase, empty_steps);
  tcase_add_test(tcase, own_operation_overrides);
  tcase_add_test(tcase, own_cascade_overrides);
  tcase_add_test(tcase, own_cascade_is_checked);
  tcase_add_test(tcase, an_older_minor_is_composed);
  tcase_add_test(tcase, workspace_is_bounded);
  tcase_add_test(tcase, common_prefixes);
  suite_add_tcase(suite, tcase);
  return check_main(suite);
}
