/*
 * digest_products.c - matrix products, and reading and writing the cache.
 */
#include <stdio.h>

#include "digest_group.h"
#include "dtype.h"

#define TYPES 4
static const int32_t types[TYPES] = {MLA_F64, MLA_F32, MLA_F16, MLA_BF16};

static mla_problem problem_of(mla_op op, int32_t dtype) {
  mla_problem p = mla_problem_init(op);
  p.q_dtype = p.out_dtype = p.weight_dtype = dtype;
  p.num_heads = 3;
  p.kv_lora_rank = 35;
  p.qk_nope_head_dim = 13;
  p.qk_rope_head_dim = 8;
  p.v_head_dim = 11;
  p.q_lora_rank = 67;
  p.hidden_size = 41;
  return p;
}

/* Runs a case whose inputs are all real numbers. */
static void product(const char *name, const mla_problem *p, int64_t gap) {
  const mla_op_spec *op = mla_op_spec_of(p->op);
  fixed_case c = fixed_case_of(p, 46);
  c.gap = gap;
  c.size[MLA_S_N] = c.limits.tokens = 9;
  fixed_case_alloc(&c);
  for (int32_t i = 0; i < op->slot_count; i++) {
    const mla_slot_spec *slot = &op->slots[i];
    if (slot->role == MLA_ROLE_IN && mla_slot_applies(slot, p))
      fixed_case_fill(&c, slot->slot, 0, 1);
  }
  digest_begin();
  digest_run(&c);
  digest_expect(&c, NULL);
  digest_end(name);
  fixed_case_free(&c);
}

void digest_products(void) {
  static const mla_op ops[] = {MLA_OP_ABSORB, MLA_OP_Q_ABSORB, MLA_OP_V_EXPAND,
                               MLA_OP_MATMUL};
  char name[32];
  for (int o = 0; o < 4; o++)
    for (int i = 0; i < TYPES; i++) {
      mla_problem p = problem_of(ops[o], types[i]);
      snprintf(name, sizeof name, "%s.%s", mla_op_name(ops[o]),
               mla_dtype_name(types[i]));
      product(name, &p, i);
    }
  mla_problem p = problem_of(MLA_OP_ABSORB, MLA_BF16);
  p.flags = MLA_FUSED_Q | MLA_FUSED_O;
  p.out_dtype = MLA_F32;
  product("absorb.fused", &p, 1);
}

/* ------------------------------------------------------------- the cache */

static mla_problem cache_problem(mla_op op, int32_t compute, int32_t format) {
  mla_problem p = problem_of(op, compute);
  p.cache_format = format;
  p.block_size = 5;
  return p;
}

static void write_case(const mla_problem *p) {
  static const int64_t slots[] = {3, -1, 24, 0, -7, 19, 11};
  fixed_case c = fixed_case_of(p, 47);
  c.gap = 2;
  c.size[MLA_S_N] = c.limits.tokens = 9;
  c.size[MLA_S_SLOTS] = 7;
  c.size[MLA_S_NB] = c.limits.num_blocks = 5;
  fixed_case_alloc(&c);
  fixed_case_fill(&c, MLA_T_KV_C, 0, 100);
  fixed_case_fill(&c, MLA_T_K_PE, 0, 0.01);
  for (int64_t i = 0; i < 7; i++)
    fixed_case_put_int(&c, MLA_T_SLOT_MAPPING, i, slots[i]);
  digest_run(&c);
  digest_expect(&c, NULL);
  fixed_case_free(&c);
}

static void read_case(const mla_problem *p) {
  static const int64_t cu[] = {0, 7, 7, 9}, starts[] = {4, 0, 11};
  static const int64_t table[] = {4, 1, 0, 9, 9, 9, 3, 9, 2};
  fixed_case c = fixed_case_of(p, 48);
  c.gap = 1;
  c.size[MLA_S_B] = c.limits.requests = 3;
  c.size[MLA_S_B1] = 4;
  c.size[MLA_S_W] = c.limits.table_width = 3;
  c.size[MLA_S_NB] = c.limits.num_blocks = 5;
  c.size[MLA_S_GATHERED] = c.limits.tokens = 10;
  fixed_case_alloc(&c);
  fixed_case_fill(&c, MLA_T_CACHE, 0, 100);
  for (int64_t i = 0; i < 4; i++)
    fixed_case_put_int(&c, MLA_T_CU_SEQ_LENS, i, cu[i]);
  for (int64_t i = 0; i < 3; i++)
    fixed_case_put_int(&c, MLA_T_SEQ_STARTS, i, starts[i]);
  for (int64_t i = 0; i < 9; i++)
    fixed_case_put_int(&c, MLA_T_BLOCK_TABLE, i, table[i]);
  digest_run(&c);
  digest_expect(&c, NULL);
  fixed_case_free(&c);
}

static void copy_case(const mla_problem *p) {
  static const int64_t pairs[] = {0, 4, 3, 1, 3, 2};
  fixed_case c = fixed_case_of(p, 49);
  c.gap = 3;
  c.size[MLA_S_NB] = c.limits.num_blocks = 5;
  c.size[MLA_S_NBS] = 4;
  c.size[MLA_S_COPIES] = 3;
  fixed_case_alloc(&c);
  fixed_case_fill(&c, MLA_T_CACHE, 0, 1);
  fixed_case_fill(&c, MLA_T_SRC_CACHE, 0, 1);
  for (int64_t i = 0; i < 6; i++)
    fixed_case_put_int(&c, MLA_T_BLOCK_MAPPING, i, pairs[i]);
  digest_run(&c);
  digest_expect(&c, NULL);
  fixed_case_free(&c);
}

/* Every compute type against every plain format. */
void digest_cache(void) {
  static const struct {
    mla_op op;
    void (*run)(const mla_problem *);
  } kinds[] = {{MLA_OP_KV_WRITE, write_case},
               {MLA_OP_KV_READ, read_case},
               {MLA_OP_KV_COPY, copy_case}};
  for (int k = 0; k < 3; k++) {
    digest_begin();
    for (int i = 0; i < TYPES; i++)
      for (int32_t f = MLA_CACHE_F64; f <= MLA_CACHE_BF16; f++) {
        mla_problem p = cache_problem(kinds[k].op, types[i], f);
        kinds[k].run(&p);
      }
    digest_end(mla_op_name(kinds[k].op));
  }
}
