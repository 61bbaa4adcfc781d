/*
 * spoiled.c - rows that nothing is asked of.
 */
#include "spoiled.h"

#include "case_sparse.h"
#include "dmath.h"
#include "dtype.h"
#include "tensor.h"

int mla_case_is_spoiled(const mla_case *c, int64_t b) {
  int attends = c->op == MLA_OP_DECODE || c->op == MLA_OP_PREFILL;
  return attends && c->num[MLA_K_DIST] == MLA_DIST_NAN && b % 2 == 1;
}

/* A row without keys is defined, whatever the request's keys are. */
static int has_keys(const mla_case *c, int64_t b, int64_t t) {
  if (mla_case_is_sparse(c)) return mla_case_row_keys(c, b, t) > 0;
  int64_t n = mla_case_seq_len(c, b);
  if (!c->num[MLA_K_FULL]) n += t + 1 - mla_case_at(c, MLA_K_Q, b);
  return n > 0;
}

static void settle_row(const mla_tensor *t, int64_t token, void *bytes) {
  int64_t width = t->rank > 2 ? t->shape[2] : 1;
  for (int64_t h = 0; h < t->shape[1]; h++)
    for (int64_t d = 0; d < width; d++)
      mla_put(bytes, t->dtype, mla_at2(t, token, h) + d, mla_nan());
}

void mla_spoiled_settle(const mla_vector *v, int32_t slot,
                        unsigned char *bytes) {
  const mla_case *c = &v->recipe;
  int64_t token = 0;
  int is_row = slot == MLA_T_OUT || slot == MLA_T_LSE;
  if (!is_row || !v->has_recipe || !mla_case_is_spoiled(c, 1)) return;
  for (int64_t b = 0; b < c->num[MLA_K_REQUESTS]; b++) {
    int64_t queries = mla_case_at(c, MLA_K_Q, b);
    for (int64_t t = 0; t < queries; t++, token++)
      if (mla_case_is_spoiled(c, b) && has_keys(c, b, t))
        settle_row(&v->tensor[slot], token, bytes);
  }
}
