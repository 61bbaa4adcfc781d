/*
 * oracle_prefill.c - up-projected attention over cached context and the new
 * tokens of a step. Keys and values are never rounded on the way.
 */
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "error.h"
#include "oracle_attention.h"
#include "oracle_product.h"
#include "tensor.h"

/* One request's tokens, and one head's keys and values made of them. */
typedef struct prefill {
  const mla_attention *call;
  int64_t seq, context;
  int64_t latent, nope, rope, v;
  double *c;        /* [seq][latent] */
  double *pe;       /* [seq][rope] */
  double *token;    /* [latent + rope] */
  double *k;        /* [seq][nope + rope] */
  double *value;    /* [seq][v] */
  double *kap, *nu; /* as in mla_keys, when budgets are wanted */
  int64_t *cut;
  int64_t parts;
} prefill;

static void release(prefill *x) {
  free(x->c);
  free(x->pe);
  free(x->token);
  free(x->k);
  free(x->value);
  free(x->kap);
  free(x->nu);
  free(x->cut);
}

static double *doubles(int64_t rows, int64_t width) {
  return malloc((size_t)(rows * width + 1) * sizeof(double));
}

/* Context in chunks, then the new tokens; or everything at once. */
static int cut_sequence(prefill *x) {
  int64_t chunk = x->call->chunk;
  int64_t chunks = chunk > 0 ? (x->context + chunk - 1) / chunk : 0;
  x->parts = chunks + 1;
  x->cut = malloc((size_t)(chunks + 2) * sizeof *x->cut);
  if (!x->cut) return 0;
  for (int64_t i = 0; i < chunks; i++) x->cut[i] = i * chunk;
  x->cut[chunks] = chunks ? x->context : 0;
  x->cut[chunks + 1] = x->seq;
  return 1;
}

static mla_status reserve(prefill *x, mla_error *err) {
  int ok = cut_sequence(x);
  x->c = doubles(x->seq, x->latent);
  x->pe = doubles(x->seq, x->rope);
  x->token = doubles(1, x->latent + x->rope);
  x->k = doubles(x->seq, x->nope + x->rope);
  x->value = doubles(x->seq, x->v);
  ok = ok && x->c && x->pe && x->token && x->k && x->value;
  if (x->call->keep) {
    x->kap = doubles(x->seq, x->nope);
    x->nu = doubles(x->seq, x->v);
    ok = ok && x->kap && x->nu;
  }
  if (ok) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, "seq_lens", "no memory for %lld keys",
                  (long long)x->seq);
}

/* What the cache holds of the request, token by token. */
static void load_context(prefill *x, const mla_group *group) {
  const mla_attention *call = x->call;
  mla_cache_rows rows =
      mla_cache_rows_of(call->problem, call->args, MLA_T_CACHE,
                        call->problem->q_dtype, call->dequant);
  mla_pages pages = {&rows, mla_arg(call->args, MLA_T_BLOCK_TABLE),
                     group->request, 0};
  for (int64_t j = 0; j < x->context; j++) {
    mla_gather(x->token, x->latent + x->rope, &pages, j, 1);
    memcpy(x->c + j * x->latent, x->token, (size_t)x->latent * sizeof *x->c);
    memcpy(x->pe + j * x->rope, x->token + x->latent,
           (size_t)x->rope * sizeof *x->pe);
  }
}

/* Latents and rope keys: from the cache, then from the step. */
static void load_tokens(prefill *x, const mla_group *group) {
  const mla_args *args = x->call->args;
  const mla_tensor *kv_c = mla_arg(args, MLA_T_KV_C);
  const mla_tensor *k_pe = mla_arg(args, MLA_T_K_PE);
  if (x->context) load_context(x, group);
  for (int64_t t = 0; t < group->queries; t++) {
    int64_t j = x->context + t, token = group->first_token + t;
    mla_load_row(x->c + j * x->latent, kv_c, mla_at1(kv_c, token), x->latent);
    if (x->rope)
      mla_load_row(x->pe + j * x->rope, k_pe, mla_at1(k_pe, token), x->rope);
  }
}

/* to[j][0..columns) = rows `first` and on of kv_b_proj times c_j. */
static mla_status up_project(prefill *x, int64_t first, int64_t columns,
                             mla_product_kind kind, double *to, int64_t stride,
                             mla_error *err) {
  const mla_tensor *w = mla_arg(x->call->args, MLA_T_KV_B_PROJ);
  mla_operand b = {w->data, w->dtype, mla_at1(w, first), w->stride[0], 1};
  mla_product product = {x->seq, columns, x->latent, x->c, b, 0};
  mla_result result = {to, MLA_F64, stride, NULL};
  return mla_multiply(&product, kind, result, err);
}

static mla_status make_keys(prefill *x, int64_t head, mla_error *err) {
  int64_t key_row = head * (x->nope + x->v), value_row = key_row + x->nope;
  int64_t d = x->nope + x->rope;
  mla_status status =
      up_project(x, key_row, x->nope, MLA_PRODUCT_SUM, x->k, d, err);
  if (!status)
    status =
        up_project(x, value_row, x->v, MLA_PRODUCT_SUM, x->value, x->v, err);
  if (!status && x->kap)
    status = up_project(x, key_row, x->nope, MLA_PRODUCT_SQUARES, x->kap,
                        x->nope, err);
  if (!status && x->nu)
    status =
        up_project(x, value_row, x->v, MLA_PRODUCT_SQUARES, x->nu, x->v, err);
  for (int64_t j = 0; j < x->seq; j++)
    memcpy(x->k + j * d + x->nope, x->pe + j * x->rope,
           (size_t)x->rope * sizeof(double));
  return status;
}

static mla_keys keys_of(const prefill *x) {
  const mla_problem *p = x->call->problem;
  mla_keys keys = {0};
  keys.k = x->k;
  keys.v = x->value;
  keys.d = keys.k_stride = x->nope + x->rope;
  keys.dv = keys.v_stride = x->v;
  keys.scale = p->scale;
  keys.cap = p->logits_soft_cap;
  keys.tiny = mla_smallest_normal(p->q_dtype);
  keys.nope = x->nope;
  keys.latent = x->latent;
  keys.kap = x->kap;
  keys.nu = x->nu;
  return keys;
}

static mla_status prefill_request(const mla_attention *call, mla_group group,
                                  mla_error *err) {
  const mla_problem *p = call->problem;
  prefill x = {0};
  mla_status status;
  x.call = call;
  x.context = p->flags & MLA_CONTEXT ? group.seq - group.queries : 0;
  x.seq = group.seq = x.context + group.queries;
  x.latent = p->kv_lora_rank;
  x.nope = p->qk_nope_head_dim;
  x.rope = p->qk_rope_head_dim;
  x.v = p->v_head_dim;
  group.heads = p->num_heads;
  if (!mla_attention_wanted(call, &group)) return MLA_OK;
  status = reserve(&x, err);
  if (!status) load_tokens(&x, &group);
  group.heads = 1;
  for (int64_t head = 0; head < p->num_heads && !status; head++) {
    group.first_head = head;
    if (!mla_attention_wanted(call, &group)) continue;
    mla_keys keys = keys_of(&x);
    status = make_keys(&x, head, err);
    if (!status && call->keep) mla_keys_look(&keys, x.seq);
    if (!status)
      status = mla_attention_group(call, &group, &keys, x.parts, x.cut, err);
  }
  release(&x);
  return status;
}

mla_status mla_oracle_prefill(const mla_attention *call, mla_error *err) {
  int64_t requests = mla_attention_requests(call->args);
  mla_status status = MLA_OK;
  for (int64_t b = 0; b < requests && !status; b++)
    status = prefill_request(call, mla_attention_request(call->args, b), err);
  return status;
}
