/*
 * problem.c - the start of every description, and what its zeros mean.
 */
#include <string.h>

#include "cache_layout.h"

mla_problem mla_problem_init(mla_op op) {
  mla_problem problem;
  memset(&problem, 0, sizeof problem);
  problem.size = (uint32_t)sizeof problem;
  problem.op = (int32_t)op;
  return problem;
}

mla_limits mla_limits_init(void) {
  mla_limits limits;
  memset(&limits, 0, sizeof limits);
  limits.size = (uint32_t)sizeof limits;
  return limits;
}

mla_answer mla_answer_init(void) {
  mla_answer answer;
  memset(&answer, 0, sizeof answer);
  answer.size = (uint32_t)sizeof answer;
  return answer;
}

mla_error mla_error_init(void) {
  mla_error error;
  memset(&error, 0, sizeof error);
  error.size = (uint32_t)sizeof error;
  return error;
}

/* Sizes come from callers unchecked: no sum of two may overflow an int. */
static int32_t latent_width(const mla_problem *problem) {
  int64_t width =
      (int64_t)problem->kv_lora_rank + (int64_t)problem->qk_rope_head_dim;
  return width > INT32_MAX || width < INT32_MIN ? 0 : (int32_t)width;
}

int32_t mla_problem_head_dim(const mla_problem *problem) {
  return problem->head_dim ? problem->head_dim : latent_width(problem);
}

int32_t mla_problem_v_dim(const mla_problem *problem) {
  return problem->v_dim ? problem->v_dim : problem->kv_lora_rank;
}

int32_t mla_problem_kv_heads(const mla_problem *problem) {
  return problem->num_kv_heads ? problem->num_kv_heads : 1;
}

int64_t mla_problem_entry(const mla_problem *problem) {
  mla_cache_layout layout = mla_cache_layout_of(problem);
  return mla_cache_entry(&layout);
}
