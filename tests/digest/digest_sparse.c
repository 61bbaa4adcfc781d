/*
 * digest_sparse.c - lists of slots, the selector, positions to slots.
 */
#include <stdio.h>
#include <string.h>

#include "digest_group.h"
#include "dtype.h"
#include "oracle.h"
#include "rng.h"
#include "tensor.h"

enum { TOKENS = 6, BLOCKS = 9, PAGE = 7, TOPK = 21, EXTRA = 5 };

/* ------------------------------------------------------------------ decode */

static mla_problem decode_problem(int32_t dtype, int32_t format,
                                  uint64_t flags) {
  mla_problem p = mla_problem_init(MLA_OP_DECODE);
  p.flags = MLA_SPARSE | MLA_RETURN_LSE | flags;
  p.q_dtype = p.out_dtype = dtype;
  p.cache_format = format;
  p.num_heads = 3;
  p.kv_lora_rank = 29;
  p.qk_rope_head_dim = 8;
  p.block_size = PAGE;
  p.scale = 0.34;
  p.topk = TOPK;
  p.extra_topk = EXTRA;
  p.extra_block_size = 4;
  return p;
}

/* A fifth -1, a tenth beyond the cache, the rest anywhere, some twice; the
   last row names nothing. */
static void put_list(fixed_case *c, int slot, int64_t capacity) {
  mla_tensor *t = &c->tensor[slot];
  mla_rng rng = mla_rng_named(c->seed, mla_slot_name(slot));
  for (int64_t i = 0; i < TOKENS * t->shape[1]; i++) {
    uint32_t kind = mla_rng_below(rng, (uint64_t)(2 * i), 10);
    int64_t value =
        mla_rng_below(rng, (uint64_t)(2 * i + 1), (uint32_t)capacity);
    if (kind < 2 || i >= (TOKENS - 1) * t->shape[1]) value = -1;
    if (kind == 2) value = capacity + i % 3;
    fixed_case_put_int(c, slot, i, value);
  }
}

static void put_lengths(fixed_case *c, int slot, int64_t width) {
  for (int64_t t = 0; t < TOKENS; t++)
    fixed_case_put_int(c, slot, t, t == 2 ? 0 : width - t);
}

static void attend(const char *name, const mla_problem *p, int64_t gap,
                   int32_t splits) {
  fixed_case c = fixed_case_of(p, 71);
  c.gap = gap;
  c.limits.num_splits = splits;
  c.size[MLA_S_N] = c.limits.tokens = TOKENS;
  c.size[MLA_S_NB] = c.limits.num_blocks = BLOCKS;
  c.size[MLA_S_NBX] = 3;
  fixed_case_alloc(&c);
  fixed_case_fill(&c, MLA_T_Q, 0, 0.7);
  fixed_case_fill(&c, MLA_T_CACHE, 0, 1);
  put_list(&c, MLA_T_INDICES, BLOCKS * PAGE);
  put_lengths(&c, MLA_T_TOPK_LEN, TOPK);
  if (p->flags & MLA_HAS_SINK) fixed_case_fill(&c, MLA_T_SINK, 0.5, 1);
  if (p->flags & MLA_EXTRA_CACHE) {
    fixed_case_fill(&c, MLA_T_EXTRA_CACHE, 0, 1);
    put_list(&c, MLA_T_EXTRA_INDICES, 12);
    put_lengths(&c, MLA_T_EXTRA_TOPK_LEN, EXTRA);
  }
  digest_begin();
  digest_run(&c);
  digest_expect(&c, NULL);
  digest_end(name);
  fixed_case_free(&c);
}

static void decode(void) {
  mla_problem p = decode_problem(MLA_F64, MLA_CACHE_F64, 0);
  attend("sparse.f64", &p, 0, 0);
  attend("sparse.splits3", &p, 0, 3);
  p = decode_problem(MLA_BF16, MLA_CACHE_BF16, MLA_HAS_SINK);
  attend("sparse.bf16", &p, 0, 0);
  p = decode_problem(MLA_F32, MLA_CACHE_F16, MLA_EXTRA_CACHE | MLA_LSE_BASE2);
  attend("sparse.extra", &p, 3, 0);
}

/* ------------------------------------------------------------------- index */

static const fixed_requests ragged = {
    6, {1, 3, 2, 1, 2, 0}, {65, 64, 1, 0, 130, 33}};
static const fixed_data ordinary = {0.5, 1, 1, FIXED_BELL};

static mla_problem index_problem(int32_t dtype, int32_t format) {
  mla_problem p = mla_problem_init(MLA_OP_INDEX);
  p.flags = MLA_RETURN_LOGITS;
  p.q_dtype = dtype;
  p.cache_format = format;
  p.num_heads = 5;
  p.head_dim = 36;
  p.block_size = 16;
  p.topk = TOPK;
  return p;
}

/* Keys of every slot as a writer leaves them. */
static void write_keys(fixed_case *c) {
  mla_problem p = mla_problem_init(MLA_OP_KV_WRITE);
  p.q_dtype = MLA_BF16;
  p.cache_format = c->problem.cache_format;
  p.kv_lora_rank = c->problem.head_dim;
  p.block_size = c->problem.block_size;
  fixed_case w = fixed_case_of(&p, 73);
  int64_t slots = c->size[MLA_S_NB] * p.block_size;
  w.size[MLA_S_N] = w.size[MLA_S_SLOTS] = w.limits.tokens = slots;
  w.size[MLA_S_NB] = w.limits.num_blocks = c->size[MLA_S_NB];
  fixed_case_alloc(&w);
  fixed_case_fill(&w, MLA_T_KV_C, 0, 1);
  for (int64_t i = 0; i < slots; i++)
    fixed_case_put_int(&w, MLA_T_SLOT_MAPPING, i, i);
  mla_args args = fixed_case_args(&w);
  mla_oracle_run(&w.problem, &w.limits, &args, NULL);
  memcpy(c->tensor[MLA_T_CACHE].data, w.tensor[MLA_T_CACHE].data,
         (size_t)mla_tensor_extent(&w.tensor[MLA_T_CACHE]));
  fixed_case_free(&w);
}

static void choose(const char *name, const mla_problem *p, double queries) {
  fixed_data data = ordinary;
  data.q = queries;
  fixed_case c = fixed_attention(p, &ragged, &data, 72, 0);
  if (p->cache_format == MLA_CACHE_FP8_INDEX) write_keys(&c);
  fixed_case_fill(&c, MLA_T_INDEX_WEIGHTS, 0.1, 1);
  digest_begin();
  digest_run(&c);
  digest_expect(&c, NULL);
  digest_end(name);
  fixed_case_free(&c);
}

static void index_types(void) {
  mla_problem p = index_problem(MLA_F64, MLA_CACHE_F64);
  choose("index.f64", &p, 0.5);
  choose("index.ties", &p, 0); /* every logit is 0 */
  p = index_problem(MLA_BF16, MLA_CACHE_BF16);
  choose("index.bf16", &p, 0.5);
  p = index_problem(MLA_F32, MLA_CACHE_FP8_INDEX);
  choose("index.fp8_index", &p, 0.5);
}

static void map_indices(void) {
  mla_problem p = mla_problem_init(MLA_OP_MAP_INDICES);
  p.block_size = 16;
  p.topk = TOPK;
  fixed_case c = fixed_attention(&p, &ragged, &ordinary, 74, 2);
  mla_rng rng = mla_rng_named(74, "positions");
  for (int64_t i = 0; i < c.size[MLA_S_N] * TOPK; i++) {
    int64_t position = mla_rng_below(rng, (uint64_t)i, 200);
    fixed_case_put_int(&c, MLA_T_POSITIONS, i, position - 20);
  }
  digest_begin();
  digest_run(&c);
  digest_expect(&c, NULL);
  digest_end("map_indices");
  fixed_case_free(&c);
}

void digest_sparse(void) {
  decode();
  index_types();
  map_indices();
}
