/*
 * digest_formats.c - scaled caches and weights. What was written is digested
 * by what readers make of it, so that the order of a host's bytes is nothing.
 */
#include <string.h>

#include "digest_group.h"
#include "dtype.h"
#include "oracle.h"
#include "tensor.h"

#define BLOCKS 5
#define PAGE 5

static mla_problem problem_of(mla_op op, int32_t format, uint64_t flags) {
  mla_problem p = mla_problem_init(op);
  p.flags = flags;
  p.q_dtype = p.weight_dtype = MLA_BF16;
  p.out_dtype = MLA_F32;
  p.cache_format = format;
  p.num_heads = 3;
  p.kv_lora_rank = 128;
  p.qk_rope_head_dim = 8;
  p.qk_nope_head_dim = 80;
  p.v_head_dim = 72;
  p.q_lora_rank = 130;
  p.hidden_size = 33;
  p.block_size = PAGE;
  p.scale = 0.11;
  p.k_scale = 0.0371;
  return p;
}

/* Half of a tile much smaller than the other. */
static void shrink(const mla_tensor *t, int64_t token) {
  for (int64_t i = 0; i < 64; i++) {
    int64_t at = mla_at2(t, token, i);
    mla_put(t->data, t->dtype, at, mla_get(t->data, t->dtype, at) / 50);
  }
}

/* Every slot of the cache; one token in seven is all zeros. */
static fixed_case written(int32_t format, uint64_t flags) {
  mla_problem p = problem_of(MLA_OP_KV_WRITE, format, flags);
  fixed_case c = fixed_case_of(&p, 61);
  c.size[MLA_S_N] = c.size[MLA_S_SLOTS] = c.limits.tokens = BLOCKS * PAGE;
  c.size[MLA_S_NB] = c.limits.num_blocks = BLOCKS;
  fixed_case_alloc(&c);
  fixed_case_fill(&c, MLA_T_KV_C, 0, 3);
  fixed_case_fill(&c, MLA_T_K_PE, 0, 0.5);
  for (int64_t i = 0; i < BLOCKS * PAGE; i++) {
    const mla_tensor *t = &c.tensor[MLA_T_KV_C];
    fixed_case_put_int(&c, MLA_T_SLOT_MAPPING, i, i);
    if (i % 7 == 5) shrink(t, i);
    if (i % 7 == 3)
      memset((char *)t->data + mla_at1(t, i) * 2, 0, (size_t)t->shape[1] * 2);
  }
  return c;
}

static void take_cache(fixed_case *to, const fixed_case *from) {
  const mla_tensor *cache = &from->tensor[MLA_T_CACHE];
  memcpy(to->tensor[MLA_T_CACHE].data, cache->data,
         (size_t)mla_tensor_extent(cache));
}

static void set_table(fixed_case *c) {
  static const int64_t table[] = {4, 1, 0, 3};
  c->size[MLA_S_B] = c->limits.requests = 2;
  c->size[MLA_S_B1] = 3;
  c->size[MLA_S_W] = c->limits.table_width = 2;
  c->size[MLA_S_NB] = c->limits.num_blocks = BLOCKS;
  fixed_case_alloc(c);
  for (int64_t i = 0; i < 4; i++)
    fixed_case_put_int(c, MLA_T_BLOCK_TABLE, i, table[i]);
}

static void read_back(const fixed_case *from) {
  static const int64_t ends[] = {0, 9, 13};
  mla_problem p = from->problem;
  p.op = MLA_OP_KV_READ;
  p.flags = 0;
  fixed_case c = fixed_case_of(&p, 62);
  c.size[MLA_S_GATHERED] = c.limits.tokens = 13;
  set_table(&c);
  take_cache(&c, from);
  for (int64_t i = 0; i < 3; i++) {
    fixed_case_put_int(&c, MLA_T_CU_SEQ_LENS, i, ends[i]);
    if (i < 2) fixed_case_put_int(&c, MLA_T_SEQ_STARTS, i, i);
  }
  digest_run(&c);
  fixed_case_free(&c);
}

static void attend(const fixed_case *from) {
  static const int64_t lens[] = {9, 4}, starts[] = {0, 1, 3};
  mla_problem p = from->problem;
  p.op = MLA_OP_DECODE;
  p.flags = MLA_CAUSAL | MLA_RETURN_LSE;
  fixed_case c = fixed_case_of(&p, 63);
  c.size[MLA_S_N] = c.limits.tokens = 3;
  set_table(&c);
  take_cache(&c, from);
  fixed_case_fill(&c, MLA_T_Q, 0, 1);
  for (int64_t i = 0; i < 3; i++) {
    fixed_case_put_int(&c, MLA_T_QUERY_START_LOC, i, starts[i]);
    if (i < 2) fixed_case_put_int(&c, MLA_T_SEQ_LENS, i, lens[i]);
  }
  digest_run(&c);
  for (int32_t mode = 0; mode <= MLA_DEQUANT_SCALE_AFTER; mode++) {
    mla_numerics numerics = {0};
    numerics.dequant = mode;
    digest_expect(&c, &numerics);
  }
  fixed_case_free(&c);
}

static void weights(void) {
  static const struct {
    int32_t codes, scale;
  } pairs[] = {{MLA_T_KV_B_PROJ, MLA_T_KV_B_SCALE},
               {MLA_T_Q_B_PROJ, MLA_T_Q_B_SCALE},
               {MLA_T_O_PROJ, MLA_T_O_SCALE}};
  mla_problem p = problem_of(MLA_OP_ABSORB, MLA_CACHE_NONE,
                             MLA_BLOCK_SCALED | MLA_FUSED_Q | MLA_FUSED_O);
  p.weight_dtype = MLA_FP8_E4M3;
  fixed_case c = fixed_case_of(&p, 64);
  fixed_case_alloc(&c);
  for (int i = 0; i < 3; i++) {
    fixed_case_fill(&c, pairs[i].codes, 0, 64);
    fixed_case_fill(&c, pairs[i].scale, 1, 0.125);
  }
  digest_begin();
  digest_run(&c);
  digest_expect(&c, NULL);
  digest_end("absorb.scaled");
  fixed_case_free(&c);
}

void digest_formats(void) {
  for (int32_t f = MLA_CACHE_FP8_E4M3; f <= MLA_CACHE_INT4_TOKEN; f++)
    for (int pow2 = 0; pow2 <= (f == MLA_CACHE_FP8_DS_MLA); pow2++) {
      fixed_case c = written(f, pow2 ? MLA_SCALE_POW2 : 0);
      mla_args args = fixed_case_args(&c);
      mla_error err = mla_error_init();
      digest_begin();
      mla_oracle_run(&c.problem, &c.limits, &args, &err);
      read_back(&c);
      attend(&c);
      digest_end(pow2 ? "fp8_ds_mla.pow2" : mla_format_name(f));
      fixed_case_free(&c);
    }
  weights();
}
