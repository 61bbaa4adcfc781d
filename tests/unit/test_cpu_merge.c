/* merge on "cpu" against the reference, and its exact corners. */
#include <stdio.h>

#include "check_main.h"
#include "cpu_convert.h"
#include "dmath.h"
#include "dtype.h"
#include "tensor.h"
#include "test_cpu_fixture.h"

static cpu_case case_of(int64_t parts, int64_t tokens, int32_t heads,
                        int32_t width, uint64_t flags) {
  cpu_case c = cpu_case_init(MLA_OP_MERGE);
  c.problem.flags = flags | MLA_RETURN_LSE;
  c.problem.num_heads = heads;
  c.problem.v_head_dim = width;
  c.free_dim[MLA_S_PARTS] = c.limits.parts = parts;
  c.free_dim[MLA_S_N] = c.limits.tokens = tokens;
  return c;
}

static void judge(cpu_case *c, const char *what) {
  char name[96];
  snprintf(name, sizeof name, "parts%d,n%d,h%d,v%d %s",
           (int)c->free_dim[MLA_S_PARTS], (int)c->free_dim[MLA_S_N],
           c->problem.num_heads, c->problem.v_head_dim, what);
  double worst = cpu_case_judge(c, name);
  ck_assert_msg(worst < 1.0, "error / budget %g", worst);
}

START_TEST(every_count_and_type) {
  static const int64_t parts[] = {1, 2, 3, 64, 200};
  static const int32_t types[] = {MLA_F32, MLA_F16, MLA_BF16};
  for (int k = 0; k < 3; k++) {
    cpu_case c = case_of(parts[_i], 5, 7, 40, 0);
    c.problem.q_dtype = c.problem.out_dtype = types[k];
    c.pad = k * 4;
    cpu_case_build(&c);
    judge(&c, mla_dtype_name(types[k]));
    cpu_case_free(&c);
  }
}
END_TEST

START_TEST(base_2_and_sink) {
  cpu_case c = case_of(9, 3, 16, 512, MLA_LSE_BASE2 | MLA_HAS_SINK);
  c.amplitude = 6.0;
  cpu_case_build(&c);
  judge(&c, "base 2, sink");
  cpu_case_free(&c);
}
END_TEST

/* Both infinities mean nothing there, and what lies there is never read; a
   NaN lse or a NaN in a live part gives NaN. */
START_TEST(parts_without_keys) {
  cpu_case c = case_of(4, 6, 2, 8, 0);
  cpu_case_build(&c);
  const mla_tensor *parts = &c.tensor[MLA_T_PARTS];
  const mla_tensor *lses = &c.tensor[MLA_T_PART_LSES];
  float *lse = lses->data, *part = parts->data;
  for (int64_t i = 0; i < 4; i++) {
    float nothing = (float)(i % 2 ? mla_inf() : -mla_inf());
    for (int64_t d = 0; d < 8; d++) {
      if (i != 2) part[mla_at4(parts, i, 0, 0, d)] = (float)mla_nan();
      part[mla_at4(parts, i, 1, 1, d)] = (float)mla_nan();
    }
    if (i != 2) lse[mla_at3(lses, i, 0, 0)] = nothing;
    lse[mla_at3(lses, i, 1, 1)] = nothing; /* all nothing */
  }
  lse[mla_at3(lses, 1, 3, 0)] = (float)mla_nan();
  part[mla_at4(parts, 1, 4, 0, 5)] = (float)mla_nan();
  judge(&c, "nothing, NaN");
  cpu_case_free(&c);
}
END_TEST

/* Outputs beyond what goes through the caches. */
START_TEST(far) {
  cpu_case c = case_of(2, MLA_CPU_FAR / (16 * 512 * 2) + 1, 16, 512, 0);
  c.problem.q_dtype = c.problem.out_dtype = MLA_BF16;
  cpu_case_build(&c);
  judge(&c, "far");
  cpu_case_free(&c);
}
END_TEST

/* Weights far apart, at magnitudes where f32 keeps no fraction. */
START_TEST(large_lse) {
  cpu_case c = case_of(5, 4, 3, 16, 0);
  cpu_case_build(&c);
  const mla_tensor *lses = &c.tensor[MLA_T_PART_LSES];
  for (int64_t i = 0; i < mla_tensor_count(lses); i++)
    ((float *)lses->data)[i] *= 1e30f;
  judge(&c, "lse 1e30");
  cpu_case_free(&c);
}
END_TEST

int main(void) {
  Suite *s = suite_create("cpu merge");
  TCase *t = tcase_create("merge");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, every_count_and_type, 0, 5);
  tcase_add_test(t, base_2_and_sink);
  tcase_add_test(t, parts_without_keys);
  tcase_add_test(t, large_lse);
  tcase_add_test(t, far);
  suite_add_tcase(s, t);
  return check_main(s);
}
