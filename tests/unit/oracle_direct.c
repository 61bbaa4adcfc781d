/*
 * oracle_direct.c - attention in straightforward loops over single elements.
 */
#include <math.h>
#include <stdlib.h>

#include "oracle_fixture.h"

/* Element e of position j of request b, in a cache of `entry` elements. */
static double paged(const fixture *f, int slot, int64_t b, int64_t j,
                    int64_t entry, int64_t e) {
  int64_t size = f->problem.block_size;
  int64_t width = f->tensor[MLA_T_BLOCK_TABLE].shape[1];
  double block = fixture_get(f, MLA_T_BLOCK_TABLE, b * width + j / size);
  int64_t row = (int64_t)block * size + j % size;
  return fixture_get(f, slot, row * entry + e);
}

static void decode_keys(const fixture *f, int64_t b, int64_t head, int64_t seq,
                        double *k, double *v) {
  const mla_problem *p = &f->problem;
  int64_t d = mla_problem_head_dim(p), dv = mla_problem_v_dim(p);
  int64_t kv_heads = mla_problem_kv_heads(p);
  int64_t g = head / (p->num_heads / kv_heads);
  int apart = (p->flags & MLA_SEPARATE_V) != 0;
  for (int64_t j = 0; j < seq; j++) {
    for (int64_t e = 0; e < d; e++)
      k[j * d + e] = paged(f, MLA_T_CACHE, b, j, kv_heads * d, g * d + e);
    for (int64_t e = 0; e < dv; e++)
      v[j * dv + e] =
          apart ? paged(f, MLA_T_V_CACHE, b, j, kv_heads * dv, g * dv + e)
                : k[j * d + e];
  }
}

static void up_project(const fixture *f, int64_t head, const double *entry,
                       double *k, double *v) {
  const mla_problem *p = &f->problem;
  int64_t nope = p->qk_nope_head_dim, latent = p->kv_lora_rank;
  int64_t rope = p->qk_rope_head_dim, each = nope + p->v_head_dim;
  for (int64_t i = 0; i < each; i++) {
    double sum = 0;
    for (int64_t l = 0; l < latent; l++)
      sum += fixture_get(f, MLA_T_KV_B_PROJ, (head * each + i) * latent + l) *
             entry[l];
    if (i < nope)
      k[i] = sum;
    else
      v[i - nope] = sum;
  }
  for (int64_t e = 0; e < rope; e++) k[nope + e] = entry[latent + e];
}

static void prefill_keys(const fixture *f, int64_t b, int64_t head, int64_t seq,
                         double *k, double *v) {
  const mla_problem *p = &f->problem;
  int64_t latent = p->kv_lora_rank, rope = p->qk_rope_head_dim;
  int64_t first = (int64_t)fixture_get(f, MLA_T_QUERY_START_LOC, b);
  int64_t end = (int64_t)fixture_get(f, MLA_T_QUERY_START_LOC, b + 1);
  int64_t context = seq - (end - first);
  double *entry = malloc((size_t)(latent + rope) * sizeof *entry);
  for (int64_t j = 0; j < seq; j++) {
    int64_t token = first + j - context;
    for (int64_t e = 0; e < latent + rope; e++)
      if (j < context)
        entry[e] = paged(f, MLA_T_CACHE, b, j, latent + rope, e);
      else if (e < latent)
        entry[e] = fixture_get(f, MLA_T_KV_C, token * latent + e);
      else
        entry[e] = fixture_get(f, MLA_T_K_PE, token * rope + e - latent);
    up_project(f, head, entry, k + j * (p->qk_nope_head_dim + rope),
               v + j * p->v_head_dim);
  }
  free(entry);
}

void direct_keys(const fixture *f, int64_t b, int64_t head, double **k,
                 int64_t *d, double **v, int64_t *dv) {
  const mla_problem *p = &f->problem;
  int64_t seq = (int64_t)fixture_get(f, MLA_T_SEQ_LENS, b);
  int decode = p->op == MLA_OP_DECODE;
  *d = decode ? mla_problem_head_dim(p)
              : p->qk_nope_head_dim + p->qk_rope_head_dim;
  *dv = decode ? mla_problem_v_dim(p) : p->v_head_dim;
  *k = malloc((size_t)(seq * *d + 1) * sizeof **k);
  *v = malloc((size_t)(seq * *dv + 1) * sizeof **v);
  if (decode)
    decode_keys(f, b, head, seq, *k, *v);
  else
    prefill_keys(f, b, head, seq, *k, *v);
}

/* One row that sees n keys: two passes over plain exponentials. */
static void direct_row(const fixture *f, int64_t token, int64_t head, int64_t n,
                       const double *k, int64_t d, const double *v, int64_t dv,
                       double *out, double *lse) {
  const mla_problem *p = &f->problem;
  double *s = malloc((size_t)(n + 1) * sizeof *s), m = -INFINITY, sum = 0;
  for (int64_t j = 0; j < n; j++) {
    double dot = 0;
    for (int64_t e = 0; e < d; e++)
      dot += fixture_get(f, MLA_T_Q, (token * p->num_heads + head) * d + e) *
             k[j * d + e];
    s[j] = p->scale * dot;
    if (p->logits_soft_cap > 0)
      s[j] = p->logits_soft_cap * tanh(s[j] / p->logits_soft_cap);
    m = fmax(m, s[j]);
  }
  for (int64_t e = 0; e < dv; e++) out[e] = 0;
  for (int64_t j = 0; j < n; j++) {
    sum += exp(s[j] - m);
    for (int64_t e = 0; e < dv; e++) out[e] += exp(s[j] - m) * v[j * dv + e];
  }
  *lse = n ? m + log(sum) : -INFINITY;
  if (p->flags & MLA_HAS_SINK)
    sum += n ? exp(fixture_get(f, MLA_T_SINK, head) - m) : 1;
  for (int64_t e = 0; e < dv && n; e++) out[e] /= sum;
  if (p->flags & MLA_LSE_BASE2) *lse /= log(2);
  free(s);
}

static void direct_head(const fixture *f, int64_t b, int64_t head, direct *x) {
  double *k, *v;
  int64_t d, dv, first, end, seq;
  first = (int64_t)fixture_get(f, MLA_T_QUERY_START_LOC, b);
  end = (int64_t)fixture_get(f, MLA_T_QUERY_START_LOC, b + 1);
  seq = (int64_t)fixture_get(f, MLA_T_SEQ_LENS, b);
  direct_keys(f, b, head, &k, &d, &v, &dv);
  for (int64_t t = first; t < end; t++) {
    int64_t n = f->problem.flags & MLA_CAUSAL ? seq - (end - t) + 1 : seq;
    int64_t row = t * f->problem.num_heads + head;
    direct_row(f, t, head, n < 0 ? 0 : n, k, d, v, dv, x->out + row * dv,
               x->lse + row);
  }
  free(k);
  free(v);
}

direct direct_attention(const fixture *f) {
  direct x;
  int64_t count = f->tensor[MLA_T_SEQ_LENS].shape[0];
  x.rows = (int64_t)fixture_get(f, MLA_T_QUERY_START_LOC, count) *
           f->problem.num_heads;
  x.width = f->tensor[MLA_T_OUT].shape[2];
  x.out = malloc((size_t)(x.rows * x.width + 1) * sizeof *x.out);
  x.lse = malloc((size_t)(x.rows + 1) * sizeof *x.lse);
  for (int64_t b = 0; b < count; b++)
    for (int64_t head = 0; head < f->problem.num_heads; head++)
      direct_head(f, b, head, &x);
  return x;
}

void direct_free(direct *d) {
  free(d->out);
  free(d->lse);
}
