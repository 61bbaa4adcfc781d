/*
 * sample.c - a spread of rows: the first, the last, one of each stratum.
 */
#include "sample.h"

#include <stdlib.h>

#include "error.h"
#include "rng.h"

/* Rows that a spread sample never goes below; tokens, and columns of each, of
   one that is to be quick. */
#define FEWEST 64
#define FEW 4

/* Rows are [tokens][columns]; which slot says so, by operation. */
static int32_t row_slot(int32_t op) {
  switch (op) {
    case MLA_OP_DECODE:
    case MLA_OP_PREFILL:
    case MLA_OP_MERGE:
    case MLA_OP_V_EXPAND:
    case MLA_OP_MATMUL: return MLA_T_OUT;
    case MLA_OP_Q_ABSORB: return MLA_T_Q_LATENT;
    case MLA_OP_INDEX: return MLA_T_POSITIONS;
    case MLA_OP_MAP_INDICES: return MLA_T_INDICES;
    default: return -1;
  }
}

static double flops_of(const mla_vector *v) {
  return v->has_recipe ? mla_case_flops(&v->recipe) : 0;
}

/* `n` of 0 .. total - 1: both ends, and a random one of each stratum. */
static void spread(mla_rng rng, int64_t total, int64_t n, int64_t *at) {
  for (int64_t i = 0; i < n; i++) {
    int64_t first = i * total / n, end = (i + 1) * total / n;
    at[i] = first + mla_rng_below(rng, (uint64_t)i, (uint32_t)(end - first));
  }
  at[0] = 0;
  if (n > 1) at[n - 1] = total - 1;
}

/* prefill: keys are made anew for each head, so that heads are few. */
static int64_t sampled_columns(const mla_vector *v, int64_t columns) {
  if (v->problem.op != MLA_OP_PREFILL || columns <= 4) return columns;
  return 4;
}

/* All pairs of t of the tokens and c of the columns. */
static mla_status cross(const mla_vector *v, const int64_t shape[2], int64_t t,
                        int64_t c, mla_sample *sample, mla_error *err) {
  mla_rng rng = mla_rng_named(v->seed, "sample");
  int64_t *row = malloc((size_t)(t * c + t + c) * sizeof *row);
  if (!row)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "rows", "no memory for a sample");
  int64_t *token = row + t * c, *column = token + t;
  spread(rng, shape[0], t, token);
  spread(rng, shape[1], c, column);
  for (int64_t i = 0; i < t; i++)
    for (int64_t k = 0; k < c; k++)
      row[i * c + k] = token[i] * shape[1] + column[k];
  sample->row = row;
  sample->count = t * c;
  return MLA_OK;
}

static int64_t at_most(int64_t n, int64_t limit) {
  return n < limit ? n : limit;
}

/* Tokens and columns of what is answered, and how many rows that is; all of
   them are the sample so far. */
static int64_t all_rows(const mla_vector *v, int64_t shape[2],
                        mla_sample *sample) {
  int32_t slot = row_slot(v->problem.op);
  shape[0] = 0, shape[1] = 1;
  *sample = (mla_sample){NULL, 0, 0};
  if (slot < 0 || !v->tensor[slot].data) return 0;
  const mla_tensor *t = &v->tensor[slot];
  int64_t live = mla_vector_live(v, slot);
  shape[0] = live >= 0 ? live : t->shape[0];
  for (int32_t a = 1; a + 1 < t->rank; a++) shape[1] *= t->shape[a];
  return sample->count = sample->total = shape[0] * shape[1];
}

/* Rows that are padding are no part of the sample. */
static mla_status take_all(const mla_vector *v, const int64_t shape[2],
                           mla_sample *sample, mla_error *err) {
  if (shape[0] == v->tensor[row_slot(v->problem.op)].shape[0]) return MLA_OK;
  return cross(v, shape, shape[0], shape[1], sample, err);
}

mla_status mla_sample_few(const mla_vector *v, double most_flops,
                          mla_sample *sample, mla_error *err) {
  int64_t shape[2];
  if (all_rows(v, shape, sample) == 0) return MLA_OK;
  if (flops_of(v) <= most_flops) return take_all(v, shape, sample, err);
  return cross(v, shape, at_most(FEW, shape[0]), at_most(FEW, shape[1]), sample,
               err);
}

mla_status mla_sample_rows(const mla_vector *v, double most_flops,
                           mla_sample *sample, mla_error *err) {
  int64_t shape[2];
  int64_t rows = all_rows(v, shape, sample);
  double flops = flops_of(v);
  if (rows == 0) return MLA_OK;
  if (flops <= most_flops || rows <= FEWEST)
    return take_all(v, shape, sample, err);
  int64_t want = (int64_t)((double)rows * (most_flops / flops));
  if (want < FEWEST) want = FEWEST;
  int64_t c = sampled_columns(v, shape[1]);
  if (c < shape[1])
    return cross(v, shape, at_most((want + c - 1) / c, shape[0]), c, sample,
                 err);
  int64_t flat[2] = {rows, 1};
  return cross(v, flat, want, 1, sample, err);
}
