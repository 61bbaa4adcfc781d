/* absorb, q_absorb, v_expand, matmul on "cpu" against the reference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "test_cpu_fixture.h"

static const int32_t types[] = {MLA_F32, MLA_F16, MLA_BF16};
static const char *const type_names[] = {"f32", "f16", "bf16"};

static void judge(cpu_case *c, const char *what) {
  cpu_case_build(c);
  double worst = cpu_case_judge(c, what);
  ck_assert_msg(worst < 1.0, "error / budget %g", worst);
  cpu_case_free(c);
}

/* Loop index: activations' type, weights' type. */
static cpu_case case_of(mla_op op, int index) {
  cpu_case c = cpu_case_init(op);
  c.problem.q_dtype = c.problem.out_dtype = types[index / 3];
  c.problem.weight_dtype = types[index % 3];
  c.pad = index % 4;
  return c;
}

typedef struct shape {
  int32_t tokens, heads, nope, v, latent, rope, q_latent, hidden;
} shape;

static const shape shapes[] = {
    {1, 1, 8, 8, 16, 8, 1, 3},
    {17, 3, 20, 36, 48, 8, 33, 18},
    {70, 2, 40, 32, 300, 16, 20, 17},
    {3, 2, 128, 128, 512, 64, 6, 5},
};
#define SHAPES 4

static void set_shape(cpu_case *c, const shape *s) {
  c->free_dim[MLA_S_N] = c->limits.tokens = s->tokens;
  c->problem.num_heads = s->heads;
  c->problem.qk_nope_head_dim = s->nope;
  c->problem.v_head_dim = s->v;
  c->problem.kv_lora_rank = s->latent;
  c->problem.qk_rope_head_dim = s->rope;
  c->problem.q_lora_rank = s->q_latent;
  c->problem.hidden_size = s->hidden;
}

static void judge_shapes(mla_op op, int index, uint64_t flags) {
  for (int i = 0; i < SHAPES; i++) {
    char name[96];
    cpu_case c = case_of(op, index);
    set_shape(&c, &shapes[i]);
    c.problem.flags = flags;
    snprintf(name, sizeof name, "%s n%d,h%d,p%d,v%d,l%d %s x %s",
             mla_op_name(op), shapes[i].tokens, shapes[i].heads, shapes[i].nope,
             shapes[i].v, shapes[i].latent, type_names[index / 3],
             type_names[index % 3]);
    judge(&c, name);
  }
}

START_TEST(q_absorb) {
  judge_shapes(MLA_OP_Q_ABSORB, _i, 0);
}
END_TEST

START_TEST(v_expand) {
  judge_shapes(MLA_OP_V_EXPAND, _i, 0);
}
END_TEST

START_TEST(absorb) {
  judge_shapes(MLA_OP_ABSORB, _i, 0);
  judge_shapes(MLA_OP_ABSORB, _i, MLA_FUSED_Q | MLA_FUSED_O);
}
END_TEST

START_TEST(matmul) {
  static const int32_t size[][3] = {
      {1, 1, 1}, {1, 300, 70}, {65, 257, 9}, {70, 20, 513}, {3, 5, 5000}};
  for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
    char name[96];
    cpu_case c = case_of(MLA_OP_MATMUL, _i);
    c.free_dim[MLA_S_N] = c.limits.tokens = size[i][0];
    c.problem.hidden_size = size[i][1];
    c.problem.q_lora_rank = size[i][2];
    snprintf(name, sizeof name, "matmul %dx%dx%d %s x %s", size[i][0],
             size[i][1], size[i][2], type_names[_i / 3], type_names[_i % 3]);
    judge(&c, name);
  }
}
END_TEST

/* Would oneDNN do it here? On one thread: a fork would lose others. */
static int by_onednn(void) {
  cpu_case c = case_of(MLA_OP_Q_ABSORB, 0);
  mla_device *device;
  mla_answer answer = {0};
  answer.size = (uint32_t)sizeof answer;
  set_shape(&c, &shapes[0]);
  if (mla_open("cpu", 0, "threads=1", &device, NULL) != MLA_OK) return 0;
  mla_query(device, &c.problem, &c.limits, &answer, NULL);
  mla_close(device);
  return strstr(answer.kernel, "onednn") != NULL;
}

int main(void) {
  if (getenv("CPU_TEST_ONEDNN") && !by_onednn()) return 77;
  Suite *s = suite_create("cpu products");
  TCase *t = tcase_create("products");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, q_absorb, 0, 9);
  tcase_add_loop_test(t, v_expand, 0, 9);
  tcase_add_loop_test(t, absorb, 0, 9);
  tcase_add_loop_test(t, matmul, 0, 9);
  suite_add_tcase(s, t);
  return check_main(s);
}
