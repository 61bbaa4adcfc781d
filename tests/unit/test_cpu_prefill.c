/* prefill on "cpu" against the reference: context, chunks, masks, types. */
#include <stdio.h>

#include "check_main.h"
#include "test_cpu_fixture.h"

typedef struct shape {
  int32_t heads, latent, nope, rope, v, page;
  int32_t requests;
  int32_t len[5], query[5];
} shape;

static const shape shapes[] = {
    {1, 64, 16, 8, 16, 16, 1, {1}, {1}},
    {3, 48, 20, 8, 36, 53, 3, {65, 64, 63}, {65, 64, 63}},
    {5, 64, 32, 16, 32, 1, 4, {40, 17, 130, 9}, {1, 17, 70, 3}},
    {2, 512, 128, 64, 128, 64, 2, {150, 66}, {30, 66}},
    {20, 32, 16, 8, 24, 16, 2, {90, 5}, {66, 5}},
    {2, 600, 24, 8, 20, 8, 3, {100, 20, 0}, {5, 20, 0}},
    {3, 80, 48, 16, 64, 16, 4, {300, 1, 33, 90}, {300, 1, 20, 90}},
};
#define SHAPES (int)(sizeof shapes / sizeof shapes[0])

static cpu_case case_of(const shape *s, int32_t q_dtype, int32_t weight_dtype,
                        uint64_t flags) {
  cpu_case c = cpu_case_init(MLA_OP_PREFILL);
  c.problem.flags = flags | MLA_CONTEXT;
  c.problem.q_dtype = c.problem.out_dtype = q_dtype;
  c.problem.weight_dtype = weight_dtype;
  c.problem.cache_format = q_dtype == MLA_BF16  ? MLA_CACHE_BF16
                           : q_dtype == MLA_F16 ? MLA_CACHE_F16
                                                : MLA_CACHE_F32;
  c.problem.num_heads = s->heads;
  c.problem.kv_lora_rank = s->latent;
  c.problem.qk_nope_head_dim = s->nope;
  c.problem.qk_rope_head_dim = s->rope;
  c.problem.v_head_dim = s->v;
  c.problem.block_size = s->page;
  c.amplitude = 0.25;
  cpu_case_size_requests(&c, s->requests, s->len, s->query);
  return c;
}

static void judge(cpu_case *c, const shape *s, const char *what) {
  char name[96];
  cpu_case_build(c);
  cpu_case_requests(c, s->len, s->query);
  snprintf(name, sizeof name, "h%d,l%d,p%d,r%d,v%d,b%d %s", s->heads, s->latent,
           s->nope, s->rope, s->v, s->requests, what);
  double worst = cpu_case_judge(c, name);
  ck_assert_msg(worst < 1.0, "error / budget %g", worst);
  cpu_case_free(c);
}

START_TEST(every_shape_and_type) {
  static const struct {
    int32_t q, weight, out;
    const char *what;
  } types[] = {{MLA_F32, MLA_F32, MLA_F32, "f32"},
               {MLA_F32, MLA_BF16, MLA_F32, "f32, bf16 weights"},
               {MLA_BF16, MLA_BF16, MLA_F32, "bf16, f32 out"},
               {MLA_BF16, MLA_F32, MLA_BF16, "bf16, f32 weights"},
               {MLA_F16, MLA_F16, MLA_F16, "f16"}};
  for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
    cpu_case c = case_of(&shapes[_i], types[k].q, types[k].weight,
                         MLA_CAUSAL | MLA_RETURN_LSE);
    c.problem.out_dtype = types[k].out;
    c.pad = (int64_t)k % 2 * 4;
    judge(&c, &shapes[_i], types[k].what);
  }
}
END_TEST

/* f32, and what a matrix unit takes. */
static int32_t type_of(int turn) {
  return turn ? MLA_BF16 : MLA_F32;
}

START_TEST(context_chunks) {
  static const int64_t chunk[] = {1, 64, 128, 100000};
  char what[32];
  int32_t type = type_of(_i / 4);
  cpu_case c = case_of(&shapes[3], type, type, MLA_CAUSAL | MLA_RETURN_LSE);
  c.limits.context_chunk = chunk[_i % 4];
  snprintf(what, sizeof what, "chunk %d", (int)chunk[_i % 4]);
  judge(&c, &shapes[3], what);
}
END_TEST

/* A long request after short ones, in small chunks: parts are kept from wave
   to wave while its neighbours come and go. */
START_TEST(chunks_of_a_ragged_batch) {
  static const shape s = {
      18, 64, 16, 8, 32, 16, 5, {30, 500, 64, 65, 1}, {30, 70, 1, 65, 1}};
  int32_t type = type_of(_i);
  cpu_case c = case_of(&s, type, type, MLA_CAUSAL | MLA_RETURN_LSE);
  c.limits.context_chunk = 64;
  judge(&c, &s, "ragged, chunk 64");
}
END_TEST

START_TEST(not_causal) {
  int32_t type = type_of(_i);
  cpu_case c = case_of(&shapes[2], type, type, MLA_RETURN_LSE);
  c.limits.context_chunk = 64;
  judge(&c, &shapes[2], "non-causal");
}
END_TEST

START_TEST(soft_cap_sink_and_base_2) {
  int32_t type = type_of(_i);
  cpu_case c =
      case_of(&shapes[2], type, type,
              MLA_CAUSAL | MLA_RETURN_LSE | MLA_HAS_SINK | MLA_LSE_BASE2);
  c.problem.logits_soft_cap = 10.0;
  judge(&c, &shapes[2], "cap, sink, base 2");
}
END_TEST

START_TEST(without_lse) {
  cpu_case c = case_of(&shapes[4], MLA_F32, MLA_F32, MLA_CAUSAL);
  judge(&c, &shapes[4], "no lse");
}
END_TEST

START_TEST(without_context) {
  static const shape tiles = {3,  80, 48,           16,          64,
                              16, 3,  {300, 1, 90}, {300, 1, 90}};
  const shape *s = _i ? &tiles : &shapes[1];
  cpu_case c = case_of(s, type_of(_i), type_of(_i), MLA_CAUSAL);
  c.problem.flags &= ~MLA_CONTEXT;
  judge(&c, s, "no context");
}
END_TEST

int main(void) {
  Suite *s = suite_create("cpu prefill");
  TCase *t = tcase_create("prefill");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, every_shape_and_type, 0, SHAPES);
  tcase_add_loop_test(t, context_chunks, 0, 8);
  tcase_add_loop_test(t, chunks_of_a_ragged_batch, 0, 2);
  tcase_add_loop_test(t, not_causal, 0, 2);
  tcase_add_loop_test(t, soft_cap_sink_and_base_2, 0, 2);
  tcase_add_test(t, without_lse);
  tcase_add_loop_test(t, without_context, 0, 2);
  suite_add_tcase(s, t);
  return check_main(s);
}
