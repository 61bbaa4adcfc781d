/*
 * oracle.c - which operations the oracle serves, and the way to each.
 */
#include "oracle.h"

#include "cache_layout.h"
#include "dmath.h"
#include "dtype.h"
#include "error.h"
#include "op_table.h"
#include "oracle_attention.h"
#include "oracle_index.h"
#include "oracle_kv.h"
#include "oracle_merge_op.h"
#include "oracle_output.h"

typedef mla_status (*run_function)(const mla_problem *problem,
                                   const mla_limits *limits,
                                   const mla_args *args, mla_error *err);

static mla_attention attention(const mla_problem *problem,
                               const mla_limits *limits, const mla_args *args) {
  mla_attention call = {0};
  call.problem = problem;
  call.args = args;
  call.rows = mla_attention_tokens(args) * problem->num_heads;
  call.splits = limits ? limits->num_splits : 0;
  call.chunk = limits ? limits->context_chunk : 0;
  return call;
}

static mla_status run_decode(const mla_problem *problem,
                             const mla_limits *limits, const mla_args *args,
                             mla_error *err) {
  mla_attention call = attention(problem, limits, args);
  return mla_oracle_decode(&call, err);
}

static mla_status run_prefill(const mla_problem *problem,
                              const mla_limits *limits, const mla_args *args,
                              mla_error *err) {
  mla_attention call = attention(problem, limits, args);
  return mla_oracle_prefill(&call, err);
}

static mla_status run_merge(const mla_problem *problem,
                            const mla_limits *limits, const mla_args *args,
                            mla_error *err) {
  mla_merge_call call = {problem, args, 0, NULL, NULL};
  (void)limits;
  call.rows = mla_merge_rows(args);
  return mla_oracle_merge(&call, err);
}

static mla_status run_product(const mla_problem *problem,
                              const mla_limits *limits, const mla_args *args,
                              mla_error *err) {
  (void)limits;
  return mla_oracle_product(problem, args, err);
}

static mla_status run_kv(const mla_problem *problem, const mla_limits *limits,
                         const mla_args *args, mla_error *err) {
  (void)limits;
  return mla_oracle_kv(problem, args, MLA_DEQUANT_ROUND_PRODUCT, err);
}

static mla_status run_index(const mla_problem *problem,
                            const mla_limits *limits, const mla_args *args,
                            mla_error *err) {
  mla_index_call call = {0};
  (void)limits;
  call.problem = problem;
  call.args = args;
  call.rows = mla_attention_tokens(args);
  return mla_oracle_index(&call, err);
}

static mla_status run_map_indices(const mla_problem *problem,
                                  const mla_limits *limits,
                                  const mla_args *args, mla_error *err) {
  (void)limits;
  (void)err;
  mla_oracle_map_indices(problem, args, mla_map_tokens(args), NULL, NULL);
  return MLA_OK;
}

static const struct {
  int32_t op;
  run_function run;
} operations[] = {
    {MLA_OP_KV_WRITE, run_kv},      {MLA_OP_KV_READ, run_kv},
    {MLA_OP_KV_COPY, run_kv},       {MLA_OP_ABSORB, run_product},
    {MLA_OP_Q_ABSORB, run_product}, {MLA_OP_V_EXPAND, run_product},
    {MLA_OP_DECODE, run_decode},    {MLA_OP_PREFILL, run_prefill},
    {MLA_OP_MERGE, run_merge},      {MLA_OP_MATMUL, run_product},
    {MLA_OP_INDEX, run_index},      {MLA_OP_MAP_INDICES, run_map_indices},
};
#define OPERATIONS (sizeof operations / sizeof operations[0])

static run_function function_of(int32_t op) {
  for (size_t i = 0; i < OPERATIONS; i++)
    if (operations[i].op == op) return operations[i].run;
  return NULL;
}

static int is_plain(int32_t dtype) {
  return dtype == MLA_F64 || dtype == MLA_F32 || dtype == MLA_F16 ||
         dtype == MLA_BF16;
}

static const char *type_refusal(const mla_problem *p, int rule,
                                const char **field) {
  switch (rule) {
    case MLA_TYPE_Q:
      *field = "q_dtype";
      return is_plain(p->q_dtype) ? NULL
                                  : "q_dtype is not f64, f32, f16 or bf16";
    case MLA_TYPE_OUT:
      *field = "out_dtype";
      return is_plain(p->out_dtype) ? NULL
                                    : "out_dtype is not f64, f32, f16 or bf16";
    case MLA_TYPE_WEIGHT:
      *field = "weight_dtype";
      return is_plain(p->weight_dtype) || (p->flags & MLA_BLOCK_SCALED)
                 ? NULL
                 : "weight_dtype is not f64, f32, f16 or bf16";
    default: return NULL;
  }
}

static const char *flag_refusal(const mla_problem *p, const char **field) {
  if (p->window) {
    *field = "window";
    return "window: no backend serves a sliding window";
  }
  *field = "flags";
  if (p->flags & MLA_ALIBI) return "flags: MLA_ALIBI is not served";
  if (p->flags & MLA_OUTPUT_SCALE)
    return "flags: MLA_OUTPUT_SCALE is not served";
  if ((p->flags & MLA_SPARSE) && (p->flags & MLA_SEPARATE_V))
    return "flags: MLA_SPARSE is not served with MLA_SEPARATE_V";
  return NULL;
}

/* Products of 16-bit queries are with keys of their own type, or with what
   codes are rounded to; the bf16 values beside codes are not rounded. */
static const char *mixed_refusal(const mla_problem *p, const char **field) {
  int reads_cache = p->op == MLA_OP_DECODE || p->op == MLA_OP_INDEX ||
                    (p->op == MLA_OP_PREFILL && (p->flags & MLA_CONTEXT));
  if (!reads_cache || p->q_dtype == MLA_F64 || p->q_dtype == MLA_F32)
    return NULL;
  *field = "cache_format";
  if (mla_cache_mixed(p->cache_format) && p->q_dtype != MLA_BF16)
    return "cache_format holds bf16 values, which q_dtype does not";
  if (!is_plain(mla_format_dtype(p->cache_format)) ||
      mla_format_dtype(p->cache_format) == p->q_dtype)
    return NULL;
  return "cache_format differs from q_dtype, which has 16 bits";
}

const char *mla_oracle_refusal(const mla_problem *problem, const char **field) {
  const char *unused, *reason;
  const mla_op_spec *spec = mla_op_spec_of(problem->op);
  if (!field) field = &unused;
  *field = "op";
  if (!spec || !function_of(problem->op)) return "op is unknown to ref";
  reason = flag_refusal(problem, field);
  for (int32_t i = 0; i < spec->slot_count && !reason; i++)
    if (mla_slot_applies(&spec->slots[i], problem))
      reason = type_refusal(problem, spec->slots[i].type_rule, field);
  return reason ? reason : mixed_refusal(problem, field);
}

mla_status mla_oracle_run(const mla_problem *problem, const mla_limits *limits,
                          const mla_args *args, mla_error *err) {
  const char *field, *reason = mla_oracle_refusal(problem, &field);
  if (reason) return mla_fail(err, MLA_UNSUPPORTED, field, "%s", reason);
  return function_of(problem->op)(problem, limits, args, err);
}
