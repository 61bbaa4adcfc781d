/*
 * problem.c - the start of every description, and what its zeros mean.
 */
#include <string.h>

#include "mla/mla.h"

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

/* Codes, one f32 scale, and padding to 16 bytes. */
static int64_t token_scaled(int64_t code_bytes) {
  return (code_bytes + 4 + 15) / 16 * 16;
}

/* e4m3 latents, an f32 scale for every 128 of them, bf16 rope. */
static int64_t ds_mla_entry(int64_t latent, int64_t rope) {
  if (latent % 128 != 0) return 0;
  return latent + latent / 128 * 4 + 2 * rope;
}

/* e4m3 values, bf16 rope, and a row of e8m0 scales (one for every 64 values)
   padded to 8 bytes. */
static int64_t fp8_584_entry(int64_t latent, int64_t rope) {
  if (latent % 64 != 0) return 0;
  return latent + 2 * rope + (latent / 64 + 7) / 8 * 8;
}

int64_t mla_problem_entry(const mla_problem *problem) {
  /* head_dim is decode's; elsewhere it is ignored, whatever it holds. */
  int64_t width = problem->op == MLA_OP_DECODE ? mla_problem_head_dim(problem)
                                               : latent_width(problem);
  int64_t latent = problem->kv_lora_rank;
  int64_t rope = problem->qk_rope_head_dim;
  switch (problem->cache_format) {
    case MLA_CACHE_F64:
    case MLA_CACHE_F32:
    case MLA_CACHE_F16:
    case MLA_CACHE_BF16:
    case MLA_CACHE_FP8_E4M3:
    case MLA_CACHE_FP8_E4M3FNUZ:
    case MLA_CACHE_FP8_E5M2: return width;
    case MLA_CACHE_FP8_DS_MLA: return ds_mla_entry(latent, rope);
    case MLA_CACHE_FP8_584: return fp8_584_entry(latent, rope);
    case MLA_CACHE_FP8_TOKEN:
    case MLA_CACHE_INT8_TOKEN: return token_scaled(width);
    case MLA_CACHE_INT4_TOKEN: return token_scaled((width + 1) / 2);
    default: return 0;
  }
}
