/*
 * Prefill of the reference: against direct loops, against decode over absorbed
 * weights, and whole against chunks.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "oracle_fixture.h"
#include "tensor.h"

static const int64_t seqs[] = {3, 11, 4, 9};
static const int64_t queries[] = {3, 2, 0, 9};
static const requests ragged = {4, seqs, queries};
#define TOKENS 14
#define HEADS 3
#define NOPE 7
#define ROPE 4
#define VALUE 6
#define LATENT 10

static void sizes(fixture *f, uint64_t flags) {
  f->problem.flags = flags;
  f->problem.num_heads = HEADS;
  f->problem.qk_nope_head_dim = NOPE;
  f->problem.qk_rope_head_dim = ROPE;
  f->problem.v_head_dim = VALUE;
  f->problem.kv_lora_rank = LATENT;
  f->problem.block_size = 4;
}

static void compare(const fixture *f, const direct *x, double bound) {
  double *out = fixture_values(f, MLA_T_OUT);
  double *lse = fixture_values(f, MLA_T_LSE);
  ck_assert_double_le(largest_difference(out, x->out, x->rows * x->width),
                      bound);
  ck_assert_double_le(largest_difference(lse, x->lse, x->rows), bound);
  for (int64_t i = x->rows * x->width; i < fixture_count(f, MLA_T_OUT); i++)
    ck_assert_msg(isnan(out[i]), "a padding row was written");
  free(out);
  free(lse);
}

static const uint64_t flag_sets[] = {
    MLA_CONTEXT | MLA_CAUSAL,
    MLA_CONTEXT,
    MLA_CONTEXT | MLA_CAUSAL | MLA_HAS_SINK,
    MLA_CONTEXT | MLA_HAS_SINK | MLA_LSE_BASE2,
};

START_TEST(any_chunk_of_context_gives_the_direct_answer) {
  static const int64_t chunks[] = {0, 1, 2, 3, 4, 9, 100};
  fixture f;
  fixture_init(&f, MLA_OP_PREFILL);
  sizes(&f, flag_sets[_i]);
  f.problem.logits_soft_cap = _i == 2 ? 0.75 : 0;
  fixture_prefill(&f, ragged, _i);
  direct x = direct_attention(&f);
  for (int i = 0; i < 7; i++) {
    f.limits.context_chunk = chunks[i];
    fixture_run(&f);
    compare(&f, &x, 8e-15);
  }
  direct_free(&x);
  fixture_free(&f);
}
END_TEST

START_TEST(without_context_there_is_no_cache) {
  fixture f;
  requests r = {4, queries, queries}; /* every key is new */
  fixture_init(&f, MLA_OP_PREFILL);
  sizes(&f, MLA_CAUSAL);
  fixture_prefill(&f, r, 2);
  direct x = direct_attention(&f);
  f.limits.context_chunk = 3;
  fixture_run(&f);
  compare(&f, &x, 8e-15);
  direct_free(&x);
  fixture_free(&f);
}
END_TEST

/* A decode problem over the prefill's latents: all in a cache of one block a
   request, queries with their nope part absorbed. */
static void as_decode(fixture *decode, fixture *prefill) {
  fixture absorb;
  fixture_init(&absorb, MLA_OP_Q_ABSORB);
  absorb.problem = prefill->problem;
  absorb.problem.op = MLA_OP_Q_ABSORB;
  int64_t n = prefill->tensor[MLA_T_Q].shape[0], width = NOPE + ROPE;
  absorb.tensor[MLA_T_Q_NOPE] = prefill->tensor[MLA_T_Q];
  absorb.tensor[MLA_T_Q_NOPE].shape[2] = NOPE;
  absorb.tensor[MLA_T_W_UK] = prefill->tensor[MLA_T_KV_B_PROJ];
  mla_tensor *w = &absorb.tensor[MLA_T_W_UK];
  w->rank = 3;
  w->shape[0] = HEADS;
  w->shape[1] = NOPE;
  w->shape[2] = LATENT;
  w->stride[1] = w->stride[0];
  w->stride[0] *= NOPE + VALUE;
  w->stride[2] = 1;
  fixture_tensor(&absorb, MLA_T_Q_LATENT, MLA_F64, 0, n, HEADS, LATENT, 0);
  fixture_run(&absorb);
  for (int64_t row = 0; row < n * HEADS; row++)
    for (int64_t e = 0; e < LATENT + ROPE; e++)
      fixture_set(
          decode, MLA_T_Q, row * (LATENT + ROPE) + e,
          e < LATENT
              ? fixture_get(&absorb, MLA_T_Q_LATENT, row * LATENT + e)
              : fixture_get(prefill, MLA_T_Q, row * width + NOPE + e - LATENT));
  fixture_free(&absorb);
}

/* Puts the step's tokens into the decode's cache, and the context. */
static void fill_cache(fixture *decode, const fixture *prefill, requests r) {
  int64_t size = decode->problem.block_size, entry = LATENT + ROPE;
  int64_t width = decode->tensor[MLA_T_BLOCK_TABLE].shape[1];
  int64_t from = prefill->tensor[MLA_T_BLOCK_TABLE].shape[1], token = 0;
  for (int64_t b = 0; b < r.count; b++)
    for (int64_t j = 0; j < r.seq[b]; j++) {
      int64_t context = r.seq[b] - r.queries[b];
      int64_t block =
          (int64_t)fixture_get(decode, MLA_T_BLOCK_TABLE, b * width + j / size);
      int64_t to = (block * size + j % size) * entry;
      int64_t at = 0;
      if (j < context)
        at =
            (int64_t)fixture_get(prefill, MLA_T_BLOCK_TABLE, b * from + j / 4) *
                4 +
            j % 4;
      for (int64_t e = 0; e < entry; e++) {
        double x =
            j < context ? fixture_get(prefill, MLA_T_CACHE, at * entry + e)
            : e < LATENT
                ? fixture_get(prefill, MLA_T_KV_C, token * LATENT + e)
                : fixture_get(prefill, MLA_T_K_PE, token * ROPE + e - LATENT);
        fixture_set(decode, MLA_T_CACHE, to + e, x);
      }
      if (j >= context) token++;
    }
}

START_TEST(absorbed_decode_agrees) {
  fixture prefill, decode, expand;
  fixture_init(&prefill, MLA_OP_PREFILL);
  sizes(&prefill, MLA_CONTEXT | MLA_CAUSAL);
  fixture_prefill(&prefill, ragged, 0);
  fixture_init(&decode, MLA_OP_DECODE);
  sizes(&decode, MLA_CAUSAL);
  fixture_decode(&decode, ragged, 0);
  as_decode(&decode, &prefill);
  fill_cache(&decode, &prefill, ragged);
  fixture_run(&prefill);
  fixture_run(&decode);
  fixture_init(&expand, MLA_OP_V_EXPAND);
  expand.problem = prefill.problem;
  expand.problem.op = MLA_OP_V_EXPAND;
  expand.tensor[MLA_T_O_LATENT] = decode.tensor[MLA_T_OUT];
  expand.tensor[MLA_T_O_LATENT].shape[0] = TOKENS;
  mla_tensor *w = &expand.tensor[MLA_T_W_UV];
  *w = prefill.tensor[MLA_T_KV_B_PROJ];
  w->data = (double *)w->data + NOPE * w->stride[0];
  w->rank = 3;
  w->shape[0] = HEADS;
  w->shape[1] = VALUE;
  w->shape[2] = LATENT;
  w->stride[1] = w->stride[0];
  w->stride[0] *= NOPE + VALUE;
  w->stride[2] = 1;
  fixture_tensor(&expand, MLA_T_OUT, MLA_F64, 0, TOKENS, HEADS, VALUE, 0);
  fixture_run(&expand);
  double *a = fixture_values(&prefill, MLA_T_OUT);
  double *b = fixture_values(&expand, MLA_T_OUT);
  ck_assert_double_le(largest_difference(a, b, TOKENS * HEADS * VALUE), 1e-12);
  free(a);
  free(b);
  a = fixture_values(&prefill, MLA_T_LSE);
  b = fixture_values(&decode, MLA_T_LSE);
  ck_assert_double_le(largest_difference(a, b, TOKENS * HEADS), 1e-12);
  free(a);
  free(b);
  fixture_free(&prefill);
  fixture_free(&decode);
  fixture_free(&expand);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("oracle_prefill");
  TCase *tests = tcase_create("prefill");
  tcase_add_loop_test(tests, any_chunk_of_context_gives_the_direct_answer, 0,
                      4);
  tcase_add_test(tests, without_context_there_is_no_cache);
  tcase_add_test(tests, absorbed_decode_agrees);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
