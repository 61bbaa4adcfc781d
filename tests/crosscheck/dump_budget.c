/*
 * dump_budget - the reference's answers and error budgets of fixed cases, as
 * text for crosscheck_budget.py, which draws the same inputs by itself:
 *
 *   case OP key=value ...
 *   numerics u_acc u_p u_mid rounded_denominator   (as %a)
 *   OUTPUT number number ...                        (budgets, as %a)
 *   values OUTPUT number number ...
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fixed_case.h"
#include "oracle.h"

static const fixed_requests requests = {3, {2, 1, 1}, {65, 0, 130}};
static const fixed_requests fresh = {2, {3, 40}, {3, 40}};

static const mla_numerics arithmetics[] = {
    {0x1p-24, 0x1p-8, 0x1p-8, 0, 0, 0, 0, 0, 0},
    {0x1p-24, 0x1p-11, 0x1p-11, 0, 0, 0, 0, 0, 0},
    {0x1p-24, 0x1p-24, 0x1p-24, 0, 0, 0, 1, 0, 0},
    {0x1p-30, 0x1p-9, 0x1p-8, 0, 0, 0, 0, 0, 0},
};

static void numbers(const double *x, int64_t count) {
  for (int64_t i = 0; i < count; i++) printf(" %a", x[i]);
  printf("\n");
}

static void print_output(const mla_expected *expected, int32_t i) {
  mla_expected_view view = mla_expected_at(expected, i);
  int64_t count = view.rows * view.width;
  double *budget = malloc((size_t)count * sizeof *budget + 1);
  if (!budget) exit(3);
  printf("values %s", mla_slot_name(view.slot));
  numbers(view.value, count);
  for (size_t k = 0; k < sizeof arithmetics / sizeof *arithmetics; k++) {
    const mla_numerics *a = &arithmetics[k];
    mla_expected_budget(expected, i, a, budget);
    printf("numerics %a %a %a %d\n", a->u_acc, a->u_p, a->u_mid,
           a->rounded_denominator);
    printf("%s", mla_slot_name(view.slot));
    numbers(budget, count);
  }
  free(budget);
}

static void print_case(fixed_case *c) {
  mla_args args = fixed_case_args(c);
  mla_error err = mla_error_init();
  mla_expected *expected = NULL;
  if (mla_expect(&c->problem, &args, NULL, NULL, &expected, &err) != MLA_OK) {
    fprintf(stderr, "dump_budget: %s\n", err.message);
    exit(1);
  }
  for (int32_t i = 0; i < mla_expected_count(expected); i++)
    print_output(expected, i);
  mla_expected_free(expected);
  fixed_case_free(c);
}

static mla_problem attention_problem(mla_op op, int32_t dtype, uint64_t flags) {
  mla_problem p = mla_problem_init(op);
  p.flags = flags | MLA_CAUSAL | MLA_RETURN_LSE;
  p.q_dtype = p.out_dtype = p.weight_dtype = dtype;
  p.cache_format = dtype == MLA_F32   ? MLA_CACHE_F32
                   : dtype == MLA_F16 ? MLA_CACHE_F16
                                      : MLA_CACHE_BF16;
  p.num_heads = 2;
  p.kv_lora_rank = 29;
  p.qk_nope_head_dim = 13;
  p.qk_rope_head_dim = 8;
  p.v_head_dim = 11;
  p.block_size = 16;
  p.scale = 0.34;
  return p;
}

static void attention(const mla_problem *p, const fixed_data *data) {
  const fixed_requests *r = p->op == MLA_OP_DECODE ? &requests : &fresh;
  fixed_case c = fixed_attention(p, r, data, 71, 0);
  printf("case %s dtype=%s base2=%d sink=%d cap=%a scale=%a heads=%" PRId32
         " latent=%" PRId32 " nope=%" PRId32 " rope=%" PRId32 " value=%" PRId32
         " q=%a kv=%a w=%a repeat=%d seed=%" PRIu64 " queries=",
         mla_op_name(p->op), mla_dtype_name(p->q_dtype),
         (p->flags & MLA_LSE_BASE2) != 0, (p->flags & MLA_HAS_SINK) != 0,
         p->logits_soft_cap, p->scale, p->num_heads, p->kv_lora_rank,
         p->qk_nope_head_dim, p->qk_rope_head_dim, p->v_head_dim, data->q,
         data->kv, data->w, data->keys == FIXED_REPEAT, c.seed);
  for (int b = 0; b < r->count; b++)
    printf(b ? ",%" PRId32 : "%" PRId32, r->query_len[b]);
  printf(" lengths=");
  for (int b = 0; b < r->count; b++)
    printf(b ? ",%" PRId32 : "%" PRId32, r->seq_len[b]);
  printf("\n");
  print_case(&c);
}

static void attentions(mla_op op, int32_t dtype) {
  static const fixed_data kinds[] = {{0.7, 1, 0.3, FIXED_BELL},
                                     {12, 1, 0.3, FIXED_BELL},
                                     {0.7, 1, 0.3, FIXED_REPEAT}};
  for (int i = 0; i < (op == MLA_OP_DECODE ? 3 : 2); i++) {
    mla_problem p = attention_problem(op, dtype, 0);
    attention(&p, &kinds[i]);
  }
  mla_problem p = attention_problem(op, dtype, MLA_LSE_BASE2 | MLA_HAS_SINK);
  attention(&p, &kinds[0]);
  p = attention_problem(op, dtype, 0);
  p.logits_soft_cap = 2.5;
  attention(&p, &kinds[0]);
}

static void merge(int32_t dtype, uint64_t flags) {
  mla_problem p = mla_problem_init(MLA_OP_MERGE);
  p.flags = flags | MLA_RETURN_LSE;
  p.q_dtype = p.out_dtype = dtype;
  p.num_heads = 2;
  p.v_head_dim = 7;
  fixed_case c = fixed_case_of(&p, 72);
  c.size[MLA_S_N] = c.limits.tokens = 5;
  c.size[MLA_S_PARTS] = c.limits.parts = 6;
  fixed_case_alloc(&c);
  fixed_case_fill(&c, MLA_T_PARTS, 0, 1);
  fixed_case_fill(&c, MLA_T_PART_LSES, 9, 1.25);
  printf("case merge dtype=%s base2=%d seed=%" PRIu64 "\n",
         mla_dtype_name(dtype), (flags & MLA_LSE_BASE2) != 0, c.seed);
  print_case(&c);
}

static void matmul(int32_t dtype) {
  mla_problem p = mla_problem_init(MLA_OP_MATMUL);
  p.q_dtype = p.out_dtype = p.weight_dtype = dtype;
  p.q_lora_rank = 67;
  p.hidden_size = 9;
  fixed_case c = fixed_case_of(&p, 73);
  c.size[MLA_S_N] = c.limits.tokens = 5;
  fixed_case_alloc(&c);
  fixed_case_fill(&c, MLA_T_A, 0, 1);
  fixed_case_fill(&c, MLA_T_B, 0.25, 1);
  printf("case matmul dtype=%s seed=%" PRIu64 "\n", mla_dtype_name(dtype),
         c.seed);
  print_case(&c);
}

static void chooser(int32_t dtype) {
  static const fixed_data data = {0.5, 1, 1, FIXED_BELL};
  mla_problem p = mla_problem_init(MLA_OP_INDEX);
  p.flags = MLA_RETURN_LOGITS;
  p.q_dtype = dtype;
  p.cache_format = dtype == MLA_F32   ? MLA_CACHE_F32
                   : dtype == MLA_F16 ? MLA_CACHE_F16
                                      : MLA_CACHE_BF16;
  p.num_heads = 5;
  p.head_dim = 36;
  p.block_size = 16;
  p.topk = 21;
  fixed_case c = fixed_attention(&p, &requests, &data, 74, 0);
  fixed_case_fill(&c, MLA_T_INDEX_WEIGHTS, 0.1, 1);
  printf("case index dtype=%s heads=%" PRId32 " width=%" PRId32 " topk=%" PRId32
         " q=%a kv=%a seed=%" PRIu64 " queries=2,1,1 lengths=65,0,130\n",
         mla_dtype_name(dtype), p.num_heads, p.head_dim, p.topk, data.q,
         data.kv, c.seed);
  print_case(&c);
}

int main(void) {
  static const int32_t types[] = {MLA_F32, MLA_F16, MLA_BF16};
  for (int i = 0; i < 3; i++) {
    attentions(MLA_OP_DECODE, types[i]);
    attentions(MLA_OP_PREFILL, types[i]);
    merge(types[i], 0);
    merge(types[i], MLA_LSE_BASE2);
    matmul(types[i]);
    chooser(types[i]);
  }
  return 0;
}
