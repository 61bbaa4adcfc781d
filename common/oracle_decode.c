/*
 * oracle_decode.c - attention over a paged cache of latents, or of keys and
 * values apart.
 */
#include "oracle_attention.h"
#include "oracle_sparse.h"

/* The keys of one request, gathered for one kv head after another. */
typedef struct decode {
  const mla_attention *call;
  mla_keys keys;
  mla_cache_rows k_rows, v_rows;
  mla_keyroom room;
} decode;

static void gather(decode *x, const mla_group *group, int64_t kv_head) {
  mla_pages pages = {&x->k_rows, mla_arg(x->call->args, MLA_T_BLOCK_TABLE),
                     group->request, kv_head};
  mla_gather(x->room.k, x->keys.d, &pages, 0, group->seq);
  pages.rows = &x->v_rows;
  if (x->room.v) mla_gather(x->room.v, x->keys.dv, &pages, 0, group->seq);
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
  status = mla_keyroom_take(&x.room, call->problem, group.seq, &x.keys, err);
  if (!status) mla_keyroom_cut(&x.room, call->splits, group.seq);
  group.heads /= kv_heads;
  for (int64_t i = 0; i < kv_heads && !status; i++) {
    group.first_head = i * group.heads;
    if (!mla_attention_wanted(call, &group)) continue;
    gather(&x, &group, i);
    if (call->keep) mla_keys_look(&x.keys, group.seq);
    status = mla_attention_group(call, &group, &x.keys, x.room.parts,
                                 x.room.cut, err);
  }
  mla_keyroom_free(&x.room);
  return status;
}

mla_status mla_oracle_decode(const mla_attention *call, mla_error *err) {
  if (call->problem->flags & MLA_SPARSE) return mla_oracle_sparse(call, err);
  int64_t requests = mla_attention_requests(call->args);
  mla_status status = MLA_OK;
  for (int64_t b = 0; b < requests && !status; b++)
    status = decode_request(call, mla_attention_request(call->args, b), err);
  return status;
}
