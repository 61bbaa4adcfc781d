/*
 * digest_layer.c - what the layer adds: rotary tables, scales, RMSNorm.
 */
#include "digest_group.h"
#include "dtype.h"
#include "norm.h"
#include "rng.h"
#include "rope.h"
#include "tensor.h"

#define R 64

static const int64_t positions[] = {0, 1, 2, 100, 4095, 4096, 65537, 1048576};
#define POSITIONS ((int)(sizeof positions / sizeof *positions))

static void table(const mla_rope *rope) {
  double f[R / 2], cosine[R / 2], sine[R / 2], x[R];
  mla_rng rng = mla_rng_named(61, "rotated");
  mla_rope_frequencies(rope, f);
  for (int i = 0; i < R / 2; i++) digest_double(f[i]);
  digest_double(mla_rope_attention_factor(rope));
  digest_double(mla_rope_softmax_factor(rope));
  for (int k = 0; k < POSITIONS; k++) {
    mla_rope_angles(rope, f, positions[k], cosine, sine);
    for (int i = 0; i < R; i++) x[i] = mla_rng_bell(rng, (uint64_t)i);
    mla_rope_rotate(rope, cosine, sine, x, MLA_F64, 0);
    for (int i = 0; i < R; i++) digest_double(x[i]);
    digest_double(mla_rope_query_scale(rope, positions[k]));
  }
}

static mla_rope rope_of(int table_kind, int half_split) {
  mla_rope rope = {0};
  rope.table = table_kind;
  rope.half_split = half_split;
  rope.dim = R;
  rope.theta = 10000;
  return rope;
}

static void yarn_table(int table_kind, double mscale) {
  mla_rope rope = rope_of(table_kind, 0);
  rope.type = MLA_ROPE_YARN;
  rope.factor = 40;
  rope.beta_fast = 32;
  rope.beta_slow = 1;
  rope.mscale = mscale;
  rope.mscale_all_dim = mscale;
  rope.original_max_position = 4096;
  rope.llama_4_beta = 0.1;
  table(&rope);
}

static void norms(int32_t dtype) {
  mla_problem p = mla_problem_init(MLA_OP_MATMUL);
  p.q_dtype = p.out_dtype = p.weight_dtype = dtype;
  p.q_lora_rank = p.hidden_size = 77;
  fixed_case c = fixed_case_of(&p, 62);
  c.size[MLA_S_N] = 6;
  c.gap = 1;
  fixed_case_alloc(&c);
  fixed_case_fill(&c, MLA_T_A, 0, 3);
  fixed_case_fill(&c, MLA_T_B, 1, 0.1);
  mla_tensor weight = c.tensor[MLA_T_B];
  weight.rank = 1;
  weight.shape[0] = 77;
  weight.stride[0] = 1;
  mla_rms_norm(&c.tensor[MLA_T_A], &weight, 1e-6, &c.tensor[MLA_T_OUT]);
  digest_tensor(&c.tensor[MLA_T_OUT]);
  mla_scale_rows(&c.tensor[MLA_T_OUT], 1.7);
  digest_tensor(&c.tensor[MLA_T_OUT]);
  fixed_case_free(&c);
}

void digest_layer(void) {
  for (int kind = MLA_ROPE_TABLE_EXACT; kind <= MLA_ROPE_TABLE_F32; kind++) {
    digest_begin();
    for (int half_split = 0; half_split < 2; half_split++) {
      mla_rope rope = rope_of(kind, half_split);
      table(&rope);
    }
    yarn_table(kind, 0);
    yarn_table(kind, 0.707);
    digest_end(kind == MLA_ROPE_TABLE_EXACT ? "rope.exact" : "rope.f32");
  }
  digest_begin();
  norms(MLA_F64);
  norms(MLA_F32);
  norms(MLA_BF16);
  digest_end("rms_norm");
}
