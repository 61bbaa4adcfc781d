/* decode on "cpu" against the reference: shapes, types, masks, splits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "dmath.h"
#include "dtype.h"
#include "tensor.h"
#include "test_cpu_fixture.h"

typedef struct shape {
  int32_t heads, latent, rope, page;
  int32_t requests;
  int32_t len[6], query[6];
} shape;

static const shape shapes[] = {
    {1, 64, 16, 16, 1, {1}, {1}},
    {3, 48, 8, 53, 3, {65, 64, 63}, {1, 1, 1}},
    {5, 64, 16, 1, 4, {0, 17, 130, 1}, {1, 2, 3, 1}},
    {16, 512, 64, 64, 2, {400, 100}, {1, 2}},
    {20, 256, 32, 576, 2, {590, 5}, {1, 5}},
    {128, 512, 64, 64, 1, {150}, {1}},
    {8, 64, 16, 2, 6, {1, 17, 100, 1200, 0, 3}, {1, 1, 4, 1, 0, 3}},
    {40, 32, 8, 128, 2, {257, 1030}, {33, 1}},
};
#define SHAPES (int)(sizeof shapes / sizeof shapes[0])

static cpu_case case_of(const shape *s, int32_t q_dtype, int32_t format,
                        uint64_t flags) {
  cpu_case c = cpu_case_init(MLA_OP_DECODE);
  c.problem.flags = flags;
  c.problem.q_dtype = c.problem.out_dtype = q_dtype;
  c.problem.cache_format = format;
  c.problem.num_heads = s->heads;
  c.problem.kv_lora_rank = s->latent;
  c.problem.qk_rope_head_dim = s->rope;
  c.problem.block_size = s->page;
  cpu_case_size_requests(&c, s->requests, s->len, s->query);
  return c;
}

/* In f32 throughout, or bf16 with outputs that hide no error. */
static cpu_case wide_or_narrow(const shape *s, int narrow) {
  cpu_case c = case_of(s, narrow ? MLA_BF16 : MLA_F32,
                       narrow ? MLA_CACHE_BF16 : MLA_CACHE_F32,
                       MLA_CAUSAL | MLA_RETURN_LSE);
  c.problem.out_dtype = MLA_F32;
  return c;
}

static double judge(cpu_case *c, const shape *s, const char *what) {
  char name[96];
  cpu_case_build(c);
  cpu_case_requests(c, s->len, s->query);
  snprintf(name, sizeof name, "h%d,l%d,r%d,page%d,b%d %s", s->heads, s->latent,
           s->rope, s->page, s->requests, what);
  double worst = cpu_case_judge(c, name);
  cpu_case_free(c);
  return worst;
}

START_TEST(every_shape_and_type) {
  static const struct {
    int32_t q, format, out;
  } types[] = {
      {MLA_F32, MLA_CACHE_F32, MLA_F32},   {MLA_F32, MLA_CACHE_BF16, MLA_F32},
      {MLA_F32, MLA_CACHE_F16, MLA_F32},   {MLA_BF16, MLA_CACHE_BF16, MLA_BF16},
      {MLA_BF16, MLA_CACHE_BF16, MLA_F32}, {MLA_F16, MLA_CACHE_F16, MLA_F16}};
  const shape *s = &shapes[_i];
  for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
    cpu_case c =
        case_of(s, types[k].q, types[k].format, MLA_CAUSAL | MLA_RETURN_LSE);
    c.problem.out_dtype = types[k].out;
    c.pad = (int64_t)k % 3 * 4;
    double worst = judge(&c, s, mla_format_name(types[k].format));
    ck_assert_msg(worst < 1.0, "error / budget %g", worst);
  }
}
END_TEST

START_TEST(not_causal) {
  cpu_case c = case_of(&shapes[_i], MLA_F32, MLA_CACHE_F32, MLA_RETURN_LSE);
  double worst = judge(&c, &shapes[_i], "non-causal");
  ck_assert_msg(worst < 1.0, "error / budget %g", worst);
}
END_TEST

START_TEST(soft_cap_sink_and_base_2) {
  cpu_case c =
      case_of(&shapes[_i], MLA_F32, MLA_CACHE_F32,
              MLA_CAUSAL | MLA_RETURN_LSE | MLA_LSE_BASE2 | MLA_HAS_SINK);
  c.problem.logits_soft_cap = 20.0;
  double worst = judge(&c, &shapes[_i], "cap, sink, base 2");
  ck_assert_msg(worst < 1.0, "error / budget %g", worst);
}
END_TEST

/* A cap far above the scores must not cost their precision. */
START_TEST(loose_soft_cap) {
  cpu_case c =
      case_of(&shapes[2], MLA_F32, MLA_CACHE_F32, MLA_CAUSAL | MLA_RETURN_LSE);
  c.problem.logits_soft_cap = 5000.0;
  c.amplitude = 0.1;
  double worst = judge(&c, &shapes[2], "cap 5000");
  ck_assert_msg(worst < 1.0, "error / budget %g", worst);
}
END_TEST

START_TEST(amplitudes) {
  static const double amplitude[] = {2e-4, 0.1, 3.0, 8.0};
  cpu_case c = wide_or_narrow(&shapes[3], _i / 4);
  char what[32];
  c.amplitude = amplitude[_i % 4];
  snprintf(what, sizeof what, "amplitude %g", c.amplitude);
  double worst = judge(&c, &shapes[3], what);
  ck_assert_msg(worst < 1.0, "error / budget %g", worst);
}
END_TEST

START_TEST(wanted_splits) {
  static const int32_t splits[] = {1, 2, 7, 64};
  const shape *s = &shapes[6];
  char what[32];
  cpu_case c = case_of(s, MLA_F32, MLA_CACHE_F32, MLA_CAUSAL | MLA_RETURN_LSE);
  c.limits.num_splits = splits[_i];
  snprintf(what, sizeof what, "%d splits", splits[_i]);
  double worst = judge(&c, s, what);
  ck_assert_msg(worst < 1.0, "error / budget %g", worst);
}
END_TEST

START_TEST(separate_values) {
  static const struct {
    int32_t heads, kv_heads, d, v;
  } gqa[] = {{8, 8, 128, 128},
             {32, 4, 192, 128},
             {6, 2, 576, 512},
             {3, 1, 64, 80},
             {7, 7, 17, 5}};
  static const shape s = {0, 0, 0, 16, 3, {40, 300, 65}, {1, 3, 20}};
  for (size_t i = 0; i < sizeof gqa / sizeof gqa[0]; i++) {
    cpu_case c = case_of(&s, MLA_BF16, MLA_CACHE_BF16,
                         MLA_CAUSAL | MLA_RETURN_LSE | MLA_SEPARATE_V);
    c.problem.out_dtype = MLA_F32;
    c.problem.num_heads = gqa[i].heads;
    c.problem.num_kv_heads = gqa[i].kv_heads;
    c.problem.head_dim = gqa[i].d;
    c.problem.v_dim = gqa[i].v;
    c.pad = 4;
    double worst = judge(&c, &s, "separate V");
    ck_assert_msg(worst < 1.0, "error / budget %g", worst);
  }
}
END_TEST

/* Scores up to 1e30: nothing may overflow on the way to a finite answer. */
START_TEST(large_scores) {
  const shape *s = &shapes[1];
  cpu_case c = wide_or_narrow(s, _i);
  c.amplitude = 1e14;
  cpu_case_build(&c);
  cpu_case_requests(&c, s->len, s->query);
  cpu_case_run(&c, "threads=2");
  for (int slot = MLA_T_OUT; slot <= MLA_T_LSE; slot++) {
    const mla_tensor *t = &c.tensor[slot];
    for (int64_t i = 0; i < mla_tensor_count(t); i++) {
      double x = mla_get(t->data, t->dtype, i);
      REQUIRE(!mla_isnan(x) && !mla_isinf(x), "%s[%d] is %g",
              mla_slot_name(slot), (int)i, x);
    }
  }
  cpu_case_free(&c);
}
END_TEST

/* The last key of a request is NaN: of its two rows only the second sees it.
   Every other number must be what it is without. */
START_TEST(nan_in_a_key_others_do_not_see) {
  const shape s = {20, 64, 16, 16, 2, {70, 30}, {2, 1}};
  cpu_case c = wide_or_narrow(&s, _i);
  cpu_case_build(&c);
  cpu_case_requests(&c, s.len, s.query);
  cpu_case_run(&c, "threads=2");
  const mla_tensor *out = &c.tensor[MLA_T_OUT];
  int64_t bytes = cpu_tensor_bytes(out), row = out->stride[0] * 4;
  unsigned char *clean = malloc((size_t)bytes);
  memcpy(clean, out->data, (size_t)bytes);
  const mla_tensor *cache = &c.tensor[MLA_T_CACHE];
  int64_t page =
      mla_get_int(c.tensor[MLA_T_BLOCK_TABLE].data, MLA_I32, 69 / 16);
  for (int64_t i = 0; i < 80; i++)
    mla_put(cache->data, cache->dtype, mla_at2(cache, page, 69 % 16) + i,
            mla_nan());
  cpu_case_run(&c, "threads=2");
  ck_assert(memcmp(clean, out->data, (size_t)row) == 0);
  ck_assert(memcmp(clean + 2 * row, (char *)out->data + 2 * row,
                   (size_t)(bytes - 2 * row)) == 0);
  for (int64_t i = 0; i < out->stride[0]; i++)
    REQUIRE(mla_isnan(mla_get(out->data, MLA_F32, out->stride[0] + i)),
            "element %d of the row that sees NaN is not NaN", (int)i);
  free(clean);
  cpu_case_free(&c);
}
END_TEST

/* A request's rows, alone and among others, to the bit. */
START_TEST(batch_mates_do_not_matter) {
  const shape *many = &shapes[6];
  const shape one = {8, 64, 16, 2, 1, {1200}, {1}};
  cpu_case a = wide_or_narrow(many, _i), b = wide_or_narrow(&one, _i);
  int64_t size = _i ? 2 : 4; /* bytes of a number of q and the cache */
  cpu_case_build(&a);
  cpu_case_requests(&a, many->len, many->query);
  cpu_case_build(&b);
  cpu_case_requests(&b, one.len, one.query);
  /* Request 3 of the batch begins at query row 6; give b its query and keys. */
  memcpy(b.tensor[MLA_T_Q].data,
         (char *)a.tensor[MLA_T_Q].data + size * mla_at1(&a.tensor[MLA_T_Q], 6),
         (size_t)(b.tensor[MLA_T_Q].stride[0] * size));
  const mla_tensor *ta = &a.tensor[MLA_T_BLOCK_TABLE];
  const mla_tensor *tb = &b.tensor[MLA_T_BLOCK_TABLE];
  const mla_tensor *ka = &a.tensor[MLA_T_CACHE], *kb = &b.tensor[MLA_T_CACHE];
  for (int64_t w = 0; w < 600; w++) {
    int64_t from = mla_get_int(ta->data, MLA_I32, mla_at2(ta, 3, w));
    int64_t to = mla_get_int(tb->data, MLA_I32, w);
    memcpy((char *)kb->data + size * mla_at1(kb, to),
           (char *)ka->data + size * mla_at1(ka, from),
           (size_t)(kb->stride[0] * size));
  }
  cpu_case_run(&a, "threads=3");
  cpu_case_run(&b, "threads=1");
  const mla_tensor *oa = &a.tensor[MLA_T_OUT], *ob = &b.tensor[MLA_T_OUT];
  ck_assert(memcmp((float *)oa->data + mla_at1(oa, 6), ob->data,
                   (size_t)ob->stride[0] * 4) == 0);
  cpu_case_free(&a);
  cpu_case_free(&b);
}
END_TEST

int main(void) {
  Suite *s = suite_create("cpu decode");
  TCase *t = tcase_create("decode");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, every_shape_and_type, 0, SHAPES);
  tcase_add_loop_test(t, not_causal, 0, SHAPES);
  tcase_add_loop_test(t, soft_cap_sink_and_base_2, 0, SHAPES);
  tcase_add_test(t, loose_soft_cap);
  tcase_add_loop_test(t, amplitudes, 0, 8);
  tcase_add_loop_test(t, wanted_splits, 0, 4);
  tcase_add_test(t, separate_values);
  tcase_add_loop_test(t, large_scores, 0, 2);
  tcase_add_loop_test(t, nan_in_a_key_others_do_not_see, 0, 2);
  tcase_add_loop_test(t, batch_mates_do_not_matter, 0, 2);
  suite_add_tcase(s, t);
  return check_main(s);
}
