#include "fixed_step.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "op_table.h"
#include "tensor.h"

#define SPARE 64 /* bytes before and after, for misaligned views */

static mla_problem fixed_problem(int32_t op, uint64_t flags, int32_t format) {
  mla_problem p = mla_problem_init((mla_op)op);
  int packed = mla_format_dtype(format) == MLA_DTYPE_NONE;
  p.flags = flags;
  p.q_dtype = p.out_dtype = p.weight_dtype = MLA_F32;
  p.cache_format = format;
  p.num_heads = 2;
  p.kv_lora_rank = packed ? 128 : 8;
  p.qk_nope_head_dim = 6;
  p.qk_rope_head_dim = format == MLA_CACHE_FP8_INDEX ? 0 : 4;
  p.v_head_dim = 5;
  p.q_lora_rank = 6;
  p.hidden_size = 10;
  p.block_size = 4;
  p.topk = 3;
  p.extra_topk = 2;
  p.extra_block_size = 5;
  p.scale = 0.25;
  p.k_scale = 0.5;
  p.v_scale = 2;
  return p;
}

static mla_limits fixed_limits(void) {
  mla_limits l = mla_limits_init();
  l.requests = 3;
  l.tokens = 9;
  l.max_query_len = 3;
  l.max_seq_len = 64;
  l.num_blocks = 7;
  l.table_width = 4;
  l.parts = 2;
  return l;
}

static int64_t length_of(int sym, const mla_problem *p) {
  switch (sym) {
    case MLA_S_N: return 5;
    case MLA_S_B: return 3;
    case MLA_S_B1: return 4;
    case MLA_S_W: return 4;
    case MLA_S_NB: return 6;
    case MLA_S_NBS: return 7;
    case MLA_S_SLOTS: return 4;
    case MLA_S_COPIES: return 2;
    case MLA_S_GATHERED: return 9;
    case MLA_S_PARTS: return 2;
    case MLA_S_NBX: return 3;
    case MLA_S_LOGITS: return 16;
    default: return mla_sym_value(sym, p);
  }
}

static void put_all(const mla_tensor *t, const int64_t *values) {
  for (int64_t i = 0; i < mla_tensor_count(t); i++)
    mla_put_int(t->data, t->dtype, i, values[i]);
}

static void fill_index(const mla_problem *p, int slot, const mla_tensor *t) {
  static const int64_t starts[] = {0, 2, 2, 5}, lens[] = {10, 0, 16};
  static const int64_t alone[] = {2, 0, 3}, context[] = {6, 3, 4};
  static const int64_t gathered[] = {0, 4, 4, 9}, first[] = {3, 0, 1};
  static const int64_t slots[] = {0, -1, 23, 7}, copies[] = {0, 5, 6, 1};
  static const int64_t listed[] = {3, 0, 1, 2, 3}, extra[] = {0, 2, 1, 0, 2};
  static const int64_t table[] = {5, 0,  3,  -7, /* 10 positions */
                                  5, -7, -7, -7, /* 3 in prefill's context */
                                  5, 0,  3,  2};
  int prefill = p->op == MLA_OP_PREFILL;
  int cached = (p->flags & MLA_CONTEXT) != 0;
  switch (slot) {
    case MLA_T_QUERY_START_LOC: put_all(t, starts); break;
    case MLA_T_SEQ_LENS:
      put_all(t, !prefill ? lens : cached ? context : alone);
      break;
    case MLA_T_CU_SEQ_LENS: put_all(t, gathered); break;
    case MLA_T_SEQ_STARTS: put_all(t, first); break;
    case MLA_T_SLOT_MAPPING: put_all(t, slots); break;
    case MLA_T_BLOCK_MAPPING: put_all(t, copies); break;
    case MLA_T_BLOCK_TABLE: put_all(t, table); break;
    case MLA_T_TOPK_LEN: put_all(t, listed); break;
    case MLA_T_EXTRA_TOPK_LEN: put_all(t, extra); break;
    default: break;
  }
}

static void add_tensor(fixed_step *step, const mla_slot_spec *s) {
  const mla_problem *p = &step->problem;
  int64_t shape[MLA_MAX_RANK] = {0};
  for (int axis = 0; axis < s->rank; axis++)
    shape[axis] = length_of(s->dim[axis], p);
  mla_tensor t = mla_tensor_dense(NULL, mla_slot_dtype(s, p), s->rank, shape);
  step->bytes[s->slot] = mla_tensor_extent(&t);
  char *memory = malloc((size_t)step->bytes[s->slot] + 2 * SPARE);
  ck_assert_ptr_nonnull(memory);
  memset(memory, FIXED_POISON, (size_t)step->bytes[s->slot] + 2 * SPARE);
  t.data = memory + SPARE;
  step->tensor[s->slot] = t;
  fill_index(p, s->slot, &t);
}

fixed_step *fixed_step_new(int32_t op, uint64_t flags, int32_t cache_format) {
  fixed_step *step = calloc(1, sizeof *step);
  ck_assert_ptr_nonnull(step);
  step->problem = fixed_problem(op, flags, cache_format);
  step->limits = fixed_limits();
  const mla_op_spec *spec = mla_op_spec_of(op);
  for (int32_t i = 0; i < spec->slot_count; i++)
    if (mla_slot_applies(&spec->slots[i], &step->problem))
      add_tensor(step, &spec->slots[i]);
  step->args.size = (uint32_t)sizeof step->args;
  step->args.count = MLA_T_COUNT;
  step->args.tensor = step->tensor;
  return step;
}

/* Tensors may have been changed: memory is found by what was first made. */
void fixed_step_free(fixed_step *step) {
  for (int slot = 0; slot < MLA_T_COUNT; slot++)
    if (step->bytes[slot]) free((char *)step->tensor[slot].data - SPARE);
  free(step);
}

int fixed_step_untouched(const fixed_step *step) {
  const mla_op_spec *spec = mla_op_spec_of(step->problem.op);
  for (int32_t i = 0; i < spec->slot_count; i++) {
    const mla_slot_spec *s = &spec->slots[i];
    const unsigned char *byte = step->tensor[s->slot].data;
    if (s->role == MLA_ROLE_IN || !byte) continue;
    for (int64_t k = -SPARE; k < step->bytes[s->slot] + SPARE; k++)
      if (byte[k] != FIXED_POISON) return 0;
  }
  return 1;
}
