/*
 * The answer to a problem: yes with what it promises, or no with the field
 * that stands in the way.
 */
#include <stdio.h>
#include <string.h>

#include "cpu_entry.h"
#include "cpu_gemm.h"
#include "error.h"

static const mla_cpu_op *const ops[] = {
    &mla_cpu_op_kv_write, &mla_cpu_op_kv_read,  &mla_cpu_op_kv_copy,
    &mla_cpu_op_absorb,   &mla_cpu_op_q_absorb, &mla_cpu_op_v_expand,
    &mla_cpu_op_decode,   &mla_cpu_op_prefill,  &mla_cpu_op_merge,
    &mla_cpu_op_matmul,   &mla_cpu_op_index,    &mla_cpu_op_map_indices,
};

const mla_cpu_op *mla_cpu_op_of(int32_t op) {
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
    if (ops[i]->op == op) return ops[i];
  return NULL;
}

/* ---------------------------------------------------------------- reasons */

const char *mla_cpu_refuse_types(const mla_problem *p, int weights) {
  if (mla_cpu_type_of(p->q_dtype) < 0)
    return "q_dtype: only f32, f16 and bf16 are served";
  if (mla_cpu_type_of(p->out_dtype) < 0)
    return "out_dtype: only f32, f16 and bf16 are served";
  if (weights && mla_cpu_type_of(p->weight_dtype) < 0)
    return "weight_dtype: only f32, f16 and bf16 are served";
  return NULL;
}

const char *mla_cpu_refuse_cache(const mla_problem *p) {
  int q = mla_cpu_type_of(p->q_dtype);
  int cache = mla_cpu_type_of_format(p->cache_format);
  if (p->cache_format == MLA_CACHE_F64)
    return "cache_format: f64 is not served";
  if (cache < 0) return mla_cpu_refuse_entries(p);
  if (q != MLA_CPU_F32 && cache != q)
    return "cache_format: with 16-bit q_dtype it must be of the same type";
  return NULL;
}

const char *mla_cpu_refuse_attention(const mla_problem *p) {
  if (p->window) return "window: sliding windows are not served";
  if (p->flags & MLA_ALIBI) return "flags: ALiBi is not served";
  if (p->flags & MLA_OUTPUT_SCALE)
    return "flags: scaled outputs are not served";
  if ((p->flags & MLA_SPARSE) && (p->flags & MLA_SEPARATE_V))
    return "flags: MLA_SPARSE is not served with MLA_SEPARATE_V";
  if (p->num_kv_heads > 1 && !(p->flags & MLA_SEPARATE_V))
    return "num_kv_heads: more than one needs V in a cache of its own";
  return NULL;
}

/* ---------------------------------------------------------------- context */

mla_cpu_context mla_cpu_context_make(const mla_handle *handle,
                                     const mla_problem *problem,
                                     const mla_limits *limits) {
  mla_cpu_context c;
  memset(&c, 0, sizeof c);
  memcpy(&c.problem, problem,
         problem->size < sizeof c.problem ? problem->size : sizeof c.problem);
  memcpy(&c.limits, limits,
         limits->size < sizeof c.limits ? limits->size : sizeof c.limits);
  c.limits.seq_lens = c.limits.query_start_loc = NULL;
  c.problem.head_dim = mla_problem_head_dim(&c.problem);
  c.problem.v_dim = mla_problem_v_dim(&c.problem);
  c.problem.num_kv_heads = mla_problem_kv_heads(&c.problem);
  c.table = handle->table;
  c.threads = handle->threads;
  c.onednn = handle->onednn;
  return c;
}

/* What names the code path: a cache's format, a weight's type, the query's. */
static const char *path_name(const mla_problem *p) {
  switch (p->op) {
    case MLA_OP_KV_WRITE:
    case MLA_OP_KV_READ:
    case MLA_OP_KV_COPY:
    case MLA_OP_DECODE: return mla_format_name(p->cache_format);
    case MLA_OP_ABSORB:
    case MLA_OP_Q_ABSORB:
    case MLA_OP_V_EXPAND:
    case MLA_OP_MATMUL: return mla_dtype_name(p->weight_dtype);
    case MLA_OP_MAP_INDICES: return mla_dtype_name(MLA_I32);
    default: return mla_dtype_name(p->q_dtype);
  }
}

static void say_no(mla_answer *answer, const char *why) {
  answer->supported = 0;
  snprintf(answer->reason, sizeof answer->reason, "%s", why);
}

static void say_yes(mla_answer *answer, const mla_cpu_context *c,
                    const mla_cpu_op *op) {
  answer->supported = 1;
  answer->workspace_alignment = MLA_CPU_ALIGNMENT;
  answer->determinism = MLA_DETERMINISM_BATCH_INVARIANT;
  answer->numerics.u_acc = 0x1p-24;
  answer->numerics.u_p = 0x1p-24;
  answer->numerics.u_mid = 0x1p-24;
  if (mla_cpu_decode_by_tiles(c) || mla_cpu_prefill_by_tiles(c)) {
    answer->numerics.u_p = 0x1p-8;
    answer->numerics.flushes_subnormals = 1;
  }
  if (mla_cpu_prefill_by_tiles(c)) answer->numerics.u_mid = 0x1p-8;
  if (mla_cpu_decode_by_codes(c)) {
    answer->numerics.q_round = MLA_Q_ROUND_INT8_ROW;
    answer->numerics.dequant = MLA_DEQUANT_SCALE_AFTER;
  }
  if (c->problem.op == MLA_OP_INDEX) answer->numerics.dequant = MLA_DEQUANT_F32;
  if (mla_cpu_products_flush(c)) answer->numerics.flushes_subnormals = 1;
  snprintf(answer->kernel, sizeof answer->kernel, "mla_%s_%s_%s", op->name,
           path_name(&c->problem),
           mla_cpu_by_onednn(c) ? "onednn" : mla_cpu_isa_name(c->table.isa));
}

/* The caller's struct may be of another minor: only what both know. */
static void hand_over(mla_answer *to, const mla_answer *from) {
  uint32_t size = to->size;
  memcpy(to, from, size < sizeof *from ? size : sizeof *from);
  to->size = size;
}

mla_status mla_cpu_query(mla_handle *handle, const mla_problem *problem,
                         const mla_limits *limits, mla_answer *answer,
                         mla_error *err) {
  mla_cpu_context c = mla_cpu_context_make(handle, problem, limits);
  const mla_cpu_op *op = mla_cpu_op_of(c.problem.op);
  mla_answer full;
  (void)err;
  memset(&full, 0, sizeof full);
  const char *why =
      op ? op->refuse(&c.problem) : "op: not an operation of this backend";
  if (!why) full.workspace_bytes = op->workspace(&c);
  if (!why && full.workspace_bytes == UINT64_MAX) {
    full.workspace_bytes = 0;
    why = "limits: the workspace would exceed 2^60 bytes";
  }
  if (why)
    say_no(&full, why);
  else
    say_yes(&full, &c, op);
  hand_over(answer, &full);
  return MLA_OK;
}
