/*
 * oracle_decode.c - attention over a paged cache of latents, or of keys and
 * values apart.
 */
#include <stdlib.h>

#include "budget.h"
#include "error.h"
#include "oracle_attention.h"

/* The keys of one request, gathered for one kv head after another. */
typedef struct decode {
  const mla_attention *call;
  mla_keys keys;
  mla_cache_rows k_rows, v_rows;
  double *k, *v; /* v: NULL when values are the front of the keys */
  int64_t *cut;
  int64_t parts;
} decode;

static void release(decode *x) {
  free(x->k);
  free(x->v);
  free(x->cut);
}

/* Parts of equal length, the last ones shorter or empty. One empty part shows
   as much as many. */
static void cut_sequence(decode *x, int64_t seq) {
  int64_t splits = x->call->splits > 1 ? x->call->splits : 1;
  if (splits > seq + 1) splits = seq + 1;
  int64_t each = (seq + splits - 1) / splits;
  for (int64_t i = 0; i <= splits; i++)
    x->cut[i] = i * each < seq ? i * each : seq;
  x->parts = splits;
}

static mla_status reserve(decode *x, int64_t seq, mla_error *err) {
  const mla_problem *p = x->call->problem;
  int apart = (p->flags & MLA_SEPARATE_V) != 0;
  x->keys.d = mla_problem_head_dim(p);
  x->keys.dv = mla_problem_v_dim(p);
  x->keys.scale = p->scale;
  x->keys.cap = p->logits_soft_cap;
  x->keys.tiny = mla_smallest_normal(p->q_dtype);
  x->k = malloc((size_t)(seq * x->keys.d + 1) * sizeof(double));
  if (apart) x->v = malloc((size_t)(seq * x->keys.dv + 1) * sizeof(double));
  x->cut = malloc((size_t)(seq + 2) * sizeof *x->cut);
  if (!x->k || !x->cut || (apart && !x->v))
    return mla_fail(err, MLA_OUT_OF_MEMORY, "seq_lens",
                    "no memory for %lld keys", (long long)seq);
  x->keys.k = x->k;
  x->keys.k_stride = x->keys.d;
  x->keys.v = apart ? x->v : x->k;
  x->keys.v_stride = apart ? x->keys.dv : x->keys.d;
  cut_sequence(x, seq);
  return MLA_OK;
}

static void gather(decode *x, const mla_group *group, int64_t kv_head) {
  mla_pages pages = {&x->k_rows, mla_arg(x->call->args, MLA_T_BLOCK_TABLE),
                     group->request, kv_head};
  mla_gather(x->k, x->keys.d, &pages, 0, group->seq);
  pages.rows = &x->v_rows;
  if (x->v) mla_gather(x->v, x->keys.dv, &pages, 0, group->seq);
}

static mla_cache_rows rows_of(const mla_attention *call, int slot) {
  return mla_cache_rows_of(call->problem, call->args, slot,
                           call->problem->q_dtype, call->dequant);
}

static mla_status decode_request(const mla_attention *call, mla_group group,
                                 mla_error *err) {
  decode x = {0};
  mla_status status;
  int64_t kv_heads = mla_problem_kv_heads(call->problem);
  x.call = call;
  x.k_rows = rows_of(call, MLA_T_CACHE);
  if (call->problem->flags & MLA_SEPARATE_V)
    x.v_rows = rows_of(call, MLA_T_V_CACHE);
  group.heads = call->problem->num_heads;
  if (!mla_attention_wanted(call, &group)) return MLA_OK;
  status = reserve(&x, group.seq, err);
  group.heads /= kv_heads;
  for (int64_t i = 0; i < kv_heads && !status; i++) {
    group.first_head = i * group.heads;
    if (!mla_attention_wanted(call, &group)) continue;
    gather(&x, &group, i);
    if (call->keep) mla_keys_look(&x.keys, group.seq);
    status = mla_attention_group(call, &group, &x.keys, x.parts, x.cut, err);
  }
  release(&x);
  return status;
}

mla_status mla_oracle_decode(const mla_attention *call, mla_error *err) {
  int64_t requests = mla_attention_requests(call->args);
  mla_status status = MLA_OK;
  for (int64_t b = 0; b < requests && !status; b++)
    status = decode_request(call, mla_attention_request(call->args, b), err);
  return status;
}
