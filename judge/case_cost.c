/*
 * case_cost.c - how much work a case is: profiles are sized by it.
 */
#include "case_sparse.h"
#include "dtype.h"
#include "op_table.h"

/* Query-key pairs under the mask, heads not counted. */
static double visible_pairs(const mla_case *c) {
  double pairs = 0;
  for (int64_t b = 0; b < c->num[MLA_K_REQUESTS]; b++) {
    double q = mla_case_at(c, MLA_K_Q, b);
    double n = (double)mla_case_seq_len(c, b);
    double hidden = c->num[MLA_K_FULL] ? 0 : q * (q - 1) / 2;
    double seen = q * n - hidden;
    if (!c->num[MLA_K_FULL] && q > n) seen = n * (n + 1) / 2;
    pairs += seen;
  }
  return pairs;
}

static double listed_pairs(const mla_case *c) {
  double pairs = 0;
  for (int64_t b = 0; b < c->num[MLA_K_REQUESTS]; b++)
    for (int64_t t = 0; t < mla_case_at(c, MLA_K_Q, b); t++)
      pairs += (double)mla_case_row_keys(c, b, t);
  return pairs;
}

static double decode_flops(const mla_case *c) {
  mla_problem p = mla_case_problem(c);
  double width = (double)mla_problem_head_dim(&p) + mla_problem_v_dim(&p);
  double pairs = mla_case_is_sparse(c) ? listed_pairs(c) : visible_pairs(c);
  return 2 * pairs * (double)p.num_heads * width;
}

static double index_flops(const mla_case *c) {
  mla_problem p = mla_case_problem(c);
  double width = mla_problem_head_dim(&p);
  return 2 * visible_pairs(c) * (double)p.num_heads * (width + 1);
}

static double prefill_flops(const mla_case *c) {
  mla_problem p = mla_case_problem(c);
  double h = p.num_heads, keys = 0;
  double pv = (double)p.qk_nope_head_dim + p.v_head_dim;
  for (int64_t b = 0; b < c->num[MLA_K_REQUESTS]; b++)
    keys += (double)mla_case_seq_len(c, b);
  return 2 * h *
         (visible_pairs(c) * (pv + p.qk_rope_head_dim) +
          keys * p.kv_lora_rank * pv);
}

static double absorb_flops(const mla_case *c) {
  mla_problem p = mla_case_problem(c);
  double h = p.num_heads, l = p.kv_lora_rank, flops = 0;
  if (p.flags & MLA_FUSED_Q)
    flops += 2 * h * l * p.qk_nope_head_dim * p.q_lora_rank;
  if (p.flags & MLA_FUSED_O) flops += 2 * h * l * p.v_head_dim * p.hidden_size;
  return flops;
}

double mla_case_flops(const mla_case *c) {
  mla_problem p = mla_case_problem(c);
  double rows = (double)mla_case_tokens(c) * p.num_heads;
  switch (c->op) {
    case MLA_OP_DECODE: return decode_flops(c);
    case MLA_OP_PREFILL: return prefill_flops(c);
    case MLA_OP_INDEX: return index_flops(c);
    case MLA_OP_ABSORB: return absorb_flops(c);
    case MLA_OP_Q_ABSORB: return 2 * rows * p.qk_nope_head_dim * p.kv_lora_rank;
    case MLA_OP_V_EXPAND: return 2 * rows * p.v_head_dim * p.kv_lora_rank;
    case MLA_OP_MERGE:
      return 2 * rows * (double)c->num[MLA_K_PARTS] * p.v_head_dim;
    case MLA_OP_MATMUL:
      return 2 * (double)c->num[MLA_K_M] * (double)c->num[MLA_K_N] *
             (double)c->num[MLA_K_K];
    default: return 0; /* copies and conversions */
  }
}

double mla_case_bytes(const mla_case *c) {
  mla_problem p = mla_case_problem(c);
  const mla_op_spec *op = mla_op_spec_of(c->op);
  double bytes = 0;
  for (int32_t i = 0; i < op->slot_count; i++) {
    const mla_slot_spec *slot = &op->slots[i];
    if (!mla_slot_applies(slot, &p)) continue;
    double elements = 1;
    for (int32_t a = 0; a < slot->rank; a++) {
      int64_t bound = mla_sym_value(slot->dim[a], &p);
      elements *= (double)(bound >= 0 ? bound : mla_case_sym(c, slot->dim[a]));
    }
    bytes += elements * mla_dtype_bits(mla_slot_dtype(slot, &p)) / 8;
  }
  return bytes;
}
