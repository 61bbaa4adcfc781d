#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "dtype.h"
#include "exact_row.h"
#include "tensor.h"

mpfr_t *exact_new(int64_t count, int bits) {
  mpfr_t *x = malloc((size_t)(count + 1) * sizeof *x);
  if (!x) exit(3);
  for (int64_t i = 0; i < count; i++) {
    mpfr_init2(x[i], bits);
    mpfr_set_zero(x[i], 1);
  }
  return x;
}

void exact_free(mpfr_t *x, int64_t count) {
  for (int64_t i = 0; i < count; i++) mpfr_clear(x[i]);
  free(x);
}

static double element(const mla_tensor *t, int64_t offset) {
  return mla_get(t->data, t->dtype, offset);
}

static int64_t index_at(const mla_tensor *t, int64_t i) {
  return mla_get_int(t->data, t->dtype, i);
}

/* Element offset of key j in a cache, of one kv head. */
static int64_t slot_offset(const fixed_case *c, const mla_tensor *cache,
                           int64_t request, int64_t j, int64_t kv_head) {
  const mla_tensor *table = &c->tensor[MLA_T_BLOCK_TABLE];
  int64_t size = c->problem.block_size;
  int64_t page = index_at(table, mla_at2(table, request, j / size));
  int64_t offset = mla_at2(cache, page, j % size);
  return cache->rank == 4 ? offset + kv_head * cache->stride[2] : offset;
}

static void decode_keys(const fixed_case *c, exact_keys *keys, int64_t request,
                        int64_t head) {
  const mla_problem *p = &c->problem;
  int apart = (p->flags & MLA_SEPARATE_V) != 0;
  const mla_tensor *cache = &c->tensor[MLA_T_CACHE];
  const mla_tensor *values = apart ? &c->tensor[MLA_T_V_CACHE] : cache;
  int64_t kv = head / (p->num_heads / mla_problem_kv_heads(p));
  for (int64_t j = 0; j < keys->n; j++) {
    int64_t k = slot_offset(c, cache, request, j, kv);
    int64_t v = slot_offset(c, values, request, j, kv);
    for (int64_t d = 0; d < keys->d; d++)
      mpfr_set_d(keys->k[j * keys->d + d], element(cache, k + d), MPFR_RNDN);
    for (int64_t d = 0; d < keys->dv; d++)
      mpfr_set_d(keys->v[j * keys->dv + d], element(values, v + d), MPFR_RNDN);
  }
}

/* Where key j's latent and rope elements are. */
typedef struct source {
  const mla_tensor *latent, *rope;
  int64_t latent_at, rope_at;
} source;

static source prefill_source(const fixed_case *c, int64_t request, int64_t j) {
  const mla_tensor *starts = &c->tensor[MLA_T_QUERY_START_LOC];
  int64_t first = index_at(starts, request);
  int64_t queries = index_at(starts, request + 1) - first;
  int64_t context = index_at(&c->tensor[MLA_T_SEQ_LENS], request) - queries;
  const mla_tensor *cache = &c->tensor[MLA_T_CACHE];
  if (j < context) {
    int64_t at = slot_offset(c, cache, request, j, 0);
    source s = {cache, cache, at, at + c->problem.kv_lora_rank};
    return s;
  }
  const mla_tensor *kv_c = &c->tensor[MLA_T_KV_C];
  const mla_tensor *k_pe = &c->tensor[MLA_T_K_PE];
  int64_t token = first + j - context;
  source s = {kv_c, k_pe, mla_at1(kv_c, token), mla_at1(k_pe, token)};
  return s;
}

/* y = sum_l W[row][l] c[l], and the sums that bound its rounding. */
static void project(mpfr_t y, double *sum_abs, double *sum_square,
                    const mla_tensor *w, int64_t row, const source *from,
                    int64_t latent, mpfr_t product) {
  *sum_abs = *sum_square = 0;
  for (int64_t l = 0; l < latent; l++) {
    double a = element(w, mla_at2(w, row, l));
    double b = element(from->latent, from->latent_at + l);
    mpfr_set_d(product, a, MPFR_RNDN);
    mpfr_mul_d(product, product, b, MPFR_RNDN);
    mpfr_add(y, y, product, MPFR_RNDN);
    *sum_abs += fabs(a * b);
    *sum_square += a * b * (a * b);
  }
}

static void prefill_keys(const fixed_case *c, exact_keys *keys, int64_t request,
                         int64_t head) {
  const mla_tensor *w = &c->tensor[MLA_T_KV_B_PROJ];
  int64_t latent = keys->latent, nope = keys->nope, dv = keys->dv;
  int64_t first = head * (nope + dv);
  mpfr_t product;
  mpfr_init2(product, EXACT_BITS);
  for (int64_t j = 0; j < keys->n; j++) {
    source from = prefill_source(c, request, j);
    mpfr_t *k = keys->k + j * keys->d, *v = keys->v + j * dv;
    for (int64_t i = 0; i < nope; i++)
      project(k[i], &keys->k_abs[j * nope + i], &keys->k_square[j * nope + i],
              w, first + i, &from, latent, product);
    for (int64_t i = 0; i < dv; i++)
      project(v[i], &keys->v_abs[j * dv + i], &keys->v_square[j * dv + i], w,
              first + nope + i, &from, latent, product);
    for (int64_t i = nope; i < keys->d; i++)
      mpfr_set_d(k[i], element(from.rope, from.rope_at + i - nope), MPFR_RNDN);
  }
  mpfr_clear(product);
}

static double *doubles(int64_t count) {
  double *x = calloc((size_t)count + 1, sizeof *x);
  if (!x) exit(3);
  return x;
}

static void up_project(const fixed_case *c, exact_keys *keys, int64_t request,
                       int64_t head) {
  keys->latent = c->problem.kv_lora_rank;
  keys->nope = c->problem.qk_nope_head_dim;
  keys->k_abs = doubles(keys->n * keys->nope);
  keys->k_square = doubles(keys->n * keys->nope);
  keys->v_abs = doubles(keys->n * keys->dv);
  keys->v_square = doubles(keys->n * keys->dv);
  prefill_keys(c, keys, request, head);
}

exact_keys exact_keys_of(const fixed_case *c, int64_t request, int64_t head) {
  int decode = c->problem.op == MLA_OP_DECODE;
  exact_keys keys = {0};
  keys.n = index_at(&c->tensor[MLA_T_SEQ_LENS], request);
  keys.d = c->tensor[MLA_T_Q].shape[2];
  keys.dv = c->tensor[MLA_T_OUT].shape[2];
  keys.k = exact_new(keys.n * keys.d, decode ? DOUBLE_BITS : EXACT_BITS);
  keys.v = exact_new(keys.n * keys.dv, decode ? DOUBLE_BITS : EXACT_BITS);
  keys.k_d = doubles(keys.n * keys.d);
  if (decode) {
    decode_keys(c, &keys, request, head);
  } else {
    up_project(c, &keys, request, head);
  }
  for (int64_t i = 0; i < keys.n * keys.d; i++)
    keys.k_d[i] = mpfr_get_d(keys.k[i], MPFR_RNDN);
  return keys;
}

void exact_keys_free(exact_keys *keys) {
  exact_free(keys->k, keys->n * keys->d);
  exact_free(keys->v, keys->n * keys->dv);
  free(keys->k_d);
  free(keys->k_abs);
  free(keys->k_square);
  free(keys->v_abs);
  free(keys->v_square);
}
