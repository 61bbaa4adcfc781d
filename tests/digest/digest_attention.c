/*
 * digest_attention.c - decode, prefill and merge.
 */
#include <stdio.h>

#include "digest_group.h"
#include "dmath.h"
#include "dtype.h"

static const fixed_data ordinary = {0.7, 1, 0.3, FIXED_BELL};

/* Ragged: no keys, one, a page edge and its neighbours, more queries than
   keys, no query. */
static const fixed_requests ragged = {
    7, {1, 3, 0, 2, 1, 2, 1}, {65, 64, 17, 1, 0, 130, 33}};

static mla_problem decode_problem(int32_t dtype, int32_t block_size) {
  mla_problem p = mla_problem_init(MLA_OP_DECODE);
  p.flags = MLA_CAUSAL | MLA_RETURN_LSE;
  p.q_dtype = p.out_dtype = p.weight_dtype = dtype;
  p.cache_format = dtype == MLA_F64   ? MLA_CACHE_F64
                   : dtype == MLA_F32 ? MLA_CACHE_F32
                   : dtype == MLA_F16 ? MLA_CACHE_F16
                                      : MLA_CACHE_BF16;
  p.num_heads = 3;
  p.kv_lora_rank = 29;
  p.qk_rope_head_dim = 8;
  p.block_size = block_size;
  p.scale = 0.34;
  return p;
}

static uint64_t attend(const char *name, const mla_problem *p,
                       const fixed_requests *r, const fixed_data *data,
                       int64_t gap, const mla_numerics *emulate) {
  fixed_case c = fixed_attention(p, r, data, 42, gap);
  digest_begin();
  digest_run(&c);
  digest_expect(&c, emulate);
  uint64_t digest = digest_end(name);
  fixed_case_free(&c);
  return digest;
}

static void decode_types(void) {
  static const int32_t types[] = {MLA_F64, MLA_F32, MLA_F16, MLA_BF16};
  char name[32];
  for (int i = 0; i < 4; i++) {
    mla_problem p = decode_problem(types[i], 16);
    snprintf(name, sizeof name, "decode.%s", mla_dtype_name(types[i]));
    attend(name, &p, &ragged, &ordinary, 0, NULL);
  }
}

static void decode_pages(void) {
  static const int32_t sizes[] = {1, 3, 16, 64};
  uint64_t first = 0;
  char name[32];
  for (int i = 0; i < 4; i++) {
    mla_problem p = decode_problem(MLA_BF16, sizes[i]);
    snprintf(name, sizeof name, "decode.page%d", (int)sizes[i]);
    uint64_t digest = attend(name, &p, &ragged, &ordinary, 0, NULL);
    if (i == 0) first = digest;
    digest_same(name, first, digest);
  }
}

static void decode_splits(void) {
  static const int32_t splits[] = {1, 2, 7, 64};
  char name[32];
  for (int i = 0; i < 4; i++) {
    mla_problem p = decode_problem(MLA_F64, 16);
    fixed_case c = fixed_attention(&p, &ragged, &ordinary, 43, 0);
    c.limits.num_splits = splits[i];
    digest_begin();
    digest_run(&c);
    snprintf(name, sizeof name, "decode.splits%d", (int)splits[i]);
    digest_end(name);
    fixed_case_free(&c);
  }
}

static void decode_flags(void) {
  mla_problem p = decode_problem(MLA_F32, 16);
  p.flags = MLA_RETURN_LSE;
  attend("decode.full", &p, &ragged, &ordinary, 0, NULL);
  p.flags = MLA_CAUSAL | MLA_RETURN_LSE | MLA_LSE_BASE2;
  attend("decode.base2", &p, &ragged, &ordinary, 0, NULL);
  p.flags = MLA_CAUSAL | MLA_RETURN_LSE | MLA_HAS_SINK;
  attend("decode.sink", &p, &ragged, &ordinary, 0, NULL);
  p.flags = MLA_CAUSAL;
  p.logits_soft_cap = 1.5;
  attend("decode.cap", &p, &ragged, &ordinary, 0, NULL);
  p.logits_soft_cap = 0;
  p.flags = MLA_CAUSAL | MLA_RETURN_LSE;
  attend("decode.gaps", &p, &ragged, &ordinary, 5, NULL);
}

static void decode_heads(void) {
  mla_problem p = decode_problem(MLA_F16, 16);
  p.flags |= MLA_SEPARATE_V | MLA_HAS_SINK;
  p.num_heads = 6;
  p.num_kv_heads = 3;
  p.head_dim = 24;
  p.v_dim = 17;
  attend("decode.gqa", &p, &ragged, &ordinary, 3, NULL);
}

/* The kinds of data under which errors add up, and rounded queries. */
static void decode_data(void) {
  static const fixed_data peaked = {40, 1, 1, FIXED_BELL};
  static const fixed_data repeat = {1, 1, 1, FIXED_REPEAT};
  static const fixed_data cancel = {1, 1, 1, FIXED_CANCEL};
  static const mla_numerics int8_rows = {
      0x1p-24, 0x1p-8, 0, 0, MLA_Q_ROUND_INT8_ROW, 0, 0, 0, 0};
  mla_problem p = decode_problem(MLA_BF16, 64);
  attend("decode.peaked", &p, &ragged, &peaked, 0, NULL);
  attend("decode.repeat", &p, &ragged, &repeat, 0, NULL);
  attend("decode.cancel", &p, &ragged, &cancel, 0, NULL);
  attend("decode.int8", &p, &ragged, &ordinary, 0, &int8_rows);
}

static void decode_real(void) {
  static const fixed_requests requests = {2, {1, 2}, {300, 77}};
  mla_problem p = decode_problem(MLA_BF16, 64);
  p.num_heads = 2;
  p.kv_lora_rank = 512;
  p.qk_rope_head_dim = 64;
  p.scale = 0.1352;
  attend("decode.real", &p, &requests, &ordinary, 0, NULL);
}

void digest_decode(void) {
  decode_types();
  decode_pages();
  decode_splits();
  decode_flags();
  decode_heads();
  decode_data();
  decode_real();
}

static mla_problem prefill_problem(int32_t dtype) {
  mla_problem p = decode_problem(dtype, 16);
  p.op = MLA_OP_PREFILL;
  p.kv_lora_rank = 32;
  p.qk_nope_head_dim = 13;
  p.v_head_dim = 11;
  return p;
}

/* With context and without, context alone, nothing at all. */
static const fixed_requests chunked = {
    5, {7, 33, 0, 1, 20}, {7, 50, 19, 65, 37}};

static void prefill_chunks(void) {
  static const int32_t chunks[] = {0, 1, 5, 16};
  char name[32];
  for (int i = 0; i < 4; i++) {
    mla_problem p = prefill_problem(MLA_F64);
    p.flags |= MLA_CONTEXT;
    fixed_case c = fixed_attention(&p, &chunked, &ordinary, 44, 0);
    c.limits.context_chunk = chunks[i];
    digest_begin();
    digest_run(&c);
    snprintf(name, sizeof name, "prefill.chunk%d", (int)chunks[i]);
    digest_end(name);
    fixed_case_free(&c);
  }
}

void digest_prefill(void) {
  static const fixed_requests whole = {3, {9, 0, 40}, {9, 0, 40}};
  mla_problem p = prefill_problem(MLA_F64);
  attend("prefill.f64", &p, &whole, &ordinary, 0, NULL);
  p = prefill_problem(MLA_F32);
  attend("prefill.f32", &p, &whole, &ordinary, 2, NULL);
  p.flags = MLA_RETURN_LSE;
  attend("prefill.full", &p, &whole, &ordinary, 0, NULL);
  p = prefill_problem(MLA_BF16);
  p.flags |= MLA_CONTEXT | MLA_HAS_SINK | MLA_LSE_BASE2;
  p.logits_soft_cap = 3;
  attend("prefill.bf16", &p, &chunked, &ordinary, 0, NULL);
  p = prefill_problem(MLA_F16);
  p.flags |= MLA_CONTEXT;
  attend("prefill.f16", &p, &chunked, &ordinary, 1, NULL);
  prefill_chunks();
}

/* Parts of all kinds: some empty, by either infinity, and then unreadable. */
static void make_parts(fixed_case *c) {
  mla_tensor *lses = &c->tensor[MLA_T_PART_LSES];
  mla_tensor *parts = &c->tensor[MLA_T_PARTS];
  int64_t count = lses->shape[0] * lses->shape[1] * lses->shape[2];
  for (int64_t i = 0; i < count; i++) {
    int64_t kind = i % 7;
    double lse = kind == 2 ? -mla_inf() : kind == 5 ? mla_inf() : 0;
    if (i / 3 % 4 == 3) lse = -mla_inf(); /* rows without any part */
    if (lse == 0) continue;
    mla_put(lses->data, lses->dtype, fixed_case_at(lses, i), lse);
    for (int64_t d = 0; d < parts->shape[3]; d++) {
      int64_t at = fixed_case_at(parts, i * parts->shape[3] + d);
      mla_put(parts->data, parts->dtype, at, mla_nan());
    }
  }
  /* A live part whose lse is NaN, and one whose value is. */
  mla_put(lses->data, lses->dtype, 0, mla_nan());
  mla_put(parts->data, parts->dtype, parts->stride[1], mla_nan());
}

static void merge(const char *name, int32_t dtype, uint64_t flags,
                  int64_t gap) {
  mla_problem p = mla_problem_init(MLA_OP_MERGE);
  p.flags = flags;
  p.q_dtype = p.out_dtype = dtype;
  p.num_heads = 3;
  p.v_head_dim = 19;
  fixed_case c = fixed_case_of(&p, 45);
  c.gap = gap;
  c.size[MLA_S_N] = 12;
  c.size[MLA_S_PARTS] = 6;
  c.limits.tokens = 12;
  c.limits.parts = 6;
  fixed_case_alloc(&c);
  fixed_case_fill(&c, MLA_T_PARTS, 0, 1);
  fixed_case_fill(&c, MLA_T_PART_LSES, 20, 4);
  if (flags & MLA_HAS_SINK) fixed_case_fill(&c, MLA_T_SINK, 21, 2);
  make_parts(&c);
  digest_begin();
  digest_run(&c);
  digest_expect(&c, NULL);
  digest_end(name);
  fixed_case_free(&c);
}

void digest_merge(void) {
  merge("merge.f64", MLA_F64, MLA_RETURN_LSE, 0);
  merge("merge.f32", MLA_F32, MLA_RETURN_LSE | MLA_LSE_BASE2, 3);
  merge("merge.f16", MLA_F16, MLA_RETURN_LSE | MLA_HAS_SINK, 0);
  merge("merge.bf16", MLA_BF16, MLA_HAS_SINK | MLA_LSE_BASE2, 0);
}
