#include <stdlib.h>

#include "measured.h"

/* Every way in which a row can be long, short or empty. */
static const fixed_requests ragged = {
    6, {1, 3, 2, 1, 2, 1}, {65, 64, 1, 0, 130, 33}};
static const fixed_requests one_long = {1, {1}, {8192}};
static const fixed_requests thousand = {2, {1, 2}, {1000, 701}};

/* Ordinary, nearly flat, large scores, very large, and the nasty kinds. */
static const fixed_data datas[] = {
    {0.7, 0.9, 0.3, FIXED_BELL},    {1e-3, 0.9, 0.3, FIXED_BELL},
    {40, 0.9, 0.3, FIXED_BELL},     {3000, 0.9, 0.3, FIXED_BELL},
    {1, 100, 3, FIXED_BELL},        {1, 0.9, 0.3, FIXED_REPEAT},
    {1, 0.9, 0.3, FIXED_CANCEL},    {0.1, 0.9, 0.3, FIXED_CANCEL},
    {1, 0.9, 0.3, FIXED_SAME_SCORE}};
#define DATAS ((int)(sizeof datas / sizeof *datas))

typedef struct pair {
  error_stats out, lse;
} pair;

static mla_problem problem_of(mla_op op, int32_t dtype, int32_t format) {
  mla_problem p = mla_problem_init(op);
  p.flags = MLA_CAUSAL | MLA_RETURN_LSE;
  p.q_dtype = p.out_dtype = p.weight_dtype = dtype;
  p.cache_format = format;
  p.num_heads = 2;
  p.kv_lora_rank = 29;
  p.qk_rope_head_dim = 8;
  p.block_size = 16;
  p.scale = 0.34;
  if (op == MLA_OP_PREFILL) {
    p.qk_nope_head_dim = 13;
    p.v_head_dim = 11;
  }
  return p;
}

static void expected(pair *to, const mla_problem *p, const fixed_requests *r,
                     const fixed_data *data, uint64_t seed) {
  fixed_case c = fixed_attention(p, r, data, seed, 0);
  answers got = answers_expected(&c);
  measure_attention(&c, &got, 1, &to->out, &to->lse);
  answers_free(&got);
  fixed_case_free(&c);
}

static void in_parts(pair *to, const mla_problem *p, const fixed_requests *r,
                     const fixed_data *data, int32_t splits, int32_t chunk,
                     int64_t parts) {
  fixed_case c = fixed_attention(p, r, data, 11, 0);
  c.limits.num_splits = splits;
  c.limits.context_chunk = chunk;
  answers got = answers_run(&c);
  measure_attention(&c, &got, parts, &to->out, &to->lse);
  answers_free(&got);
  fixed_case_free(&c);
}

static int64_t report(pair *x, const char *name) {
  int64_t refused = error_stats_print(&x->out, name, "out") +
                    error_stats_print(&x->lse, name, "lse");
  error_stats_free(&x->out);
  error_stats_free(&x->lse);
  return refused;
}

static void variants(pair *to, mla_problem p, const fixed_requests *r) {
  p.flags |= MLA_LSE_BASE2;
  expected(to, &p, r, &datas[0], 21);
  p.flags |= MLA_HAS_SINK;
  expected(to, &p, r, &datas[0], 22);
  expected(to, &p, r, &datas[2], 23);
  p.flags &= ~MLA_LSE_BASE2 & ~MLA_CAUSAL;
  expected(to, &p, r, &datas[0], 24);
  p.logits_soft_cap = 2.5;
  expected(to, &p, r, &datas[0], 25);
  expected(to, &p, r, &datas[2], 26);
}

static void decode_shapes(pair *to) {
  mla_problem p = problem_of(MLA_OP_DECODE, MLA_F32, MLA_CACHE_F32);
  p.num_heads = 1;
  for (int i = 0; i < 3; i++) expected(to, &p, &one_long, &datas[i], 12);
  expected(to, &p, &one_long, &datas[6], 13);
  p = problem_of(MLA_OP_DECODE, MLA_BF16, MLA_CACHE_BF16);
  p.kv_lora_rank = 512;
  p.qk_rope_head_dim = 64;
  p.scale = 0.1352;
  expected(to, &p, &thousand, &datas[0], 14);
  p = problem_of(MLA_OP_DECODE, MLA_F16, MLA_CACHE_F16);
  p.flags |= MLA_SEPARATE_V;
  p.num_heads = 4;
  p.num_kv_heads = 2;
  p.head_dim = 24;
  p.v_dim = 17;
  expected(to, &p, &ragged, &datas[0], 15);
}

int64_t measure_decode(void) {
  static const int32_t splits[] = {1, 2, 7, 64, 200};
  pair whole = {0}, split = {0};
  for (int i = 0; i < DATAS; i++) {
    mla_problem p = problem_of(MLA_OP_DECODE, MLA_F64, MLA_CACHE_F64);
    expected(&whole, &p, &ragged, &datas[i], 11);
    expected(&whole, &p, &thousand, &datas[i], 16);
    p = problem_of(MLA_OP_DECODE, MLA_BF16, MLA_CACHE_BF16);
    expected(&whole, &p, &ragged, &datas[i], 17);
  }
  variants(&whole, problem_of(MLA_OP_DECODE, MLA_F64, MLA_CACHE_F64), &ragged);
  decode_shapes(&whole);
  mla_problem p = problem_of(MLA_OP_DECODE, MLA_F64, MLA_CACHE_F64);
  for (int s = 0; s < 5; s++)
    for (int i = 0; i < DATAS; i++)
      in_parts(&split, &p, s == 2 ? &thousand : &ragged, &datas[i], splits[s],
               0, splits[s]);
  int64_t refused = report(&whole, "decode");
  return refused + report(&split, "splits");
}

int64_t measure_prefill(void) {
  static const fixed_requests fresh = {3, {9, 1, 60}, {9, 1, 60}};
  static const fixed_requests cached = {4, {7, 33, 1, 20}, {7, 50, 65, 37}};
  static const int32_t chunks[] = {0, 1, 5, 16};
  pair whole = {0}, chunked = {0};
  for (int i = 0; i < 5; i++) {
    mla_problem p = problem_of(MLA_OP_PREFILL, MLA_F64, MLA_CACHE_F64);
    expected(&whole, &p, &fresh, &datas[i], 11);
    p.flags |= MLA_CONTEXT;
    expected(&whole, &p, &cached, &datas[i], 12);
    p = problem_of(MLA_OP_PREFILL, MLA_BF16, MLA_CACHE_BF16);
    expected(&whole, &p, &fresh, &datas[i], 13);
  }
  mla_problem p = problem_of(MLA_OP_PREFILL, MLA_F64, MLA_CACHE_F64);
  variants(&whole, p, &fresh);
  p.flags |= MLA_CONTEXT;
  for (int k = 0; k < 4; k++)
    for (int i = 0; i < 5; i++)
      in_parts(&chunked, &p, &cached, &datas[i], 0, chunks[k],
               chunks[k] ? 65 / chunks[k] + 2 : 2);
  int64_t refused = report(&whole, "prefill");
  return refused + report(&chunked, "chunks");
}
