#include "oracle_sparse.h"

#include <stdlib.h>

#include "cache_rows.h"
#include "error.h"
#include "tensor.h"

/* Where a key lies: one of the caches, a block of it, an entry of that. */
typedef struct place {
  const mla_cache_rows *rows;
  int64_t block, offset;
} place;

/* The keys of one token, and room for those of any. */
typedef struct listed {
  const mla_attention *call;
  mla_cache_rows main, extra;
  mla_keys keys;
  mla_keyroom room;
  place *at;
  int64_t count;
} listed;

static const mla_tensor *arg(const listed *x, int slot) {
  return mla_arg(x->call->args, slot);
}

static int64_t between(int64_t low, int64_t value, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

/* Appends the entries of the token's list that name an entry of the cache. */
static void add_list(listed *x, int64_t token, const mla_cache_rows *rows,
                     int list_slot, int length_slot) {
  const mla_tensor *list = arg(x, list_slot), *length = arg(x, length_slot);
  int64_t size = rows->cache->shape[1];
  int64_t capacity = rows->cache->shape[0] * size, count = list->shape[1];
  if (length) count = between(0, mla_index1(length, token), count);
  for (int64_t i = 0; i < count; i++) {
    int64_t slot = mla_index2(list, token, i);
    if (slot < 0 || slot >= capacity) continue;
    place at = {rows, slot / size, slot % size};
    x->at[x->count++] = at;
  }
}

static void gather(listed *x, int64_t token) {
  x->count = 0;
  add_list(x, token, &x->main, MLA_T_INDICES, MLA_T_TOPK_LEN);
  if (x->call->problem->flags & MLA_EXTRA_CACHE)
    add_list(x, token, &x->extra, MLA_T_EXTRA_INDICES, MLA_T_EXTRA_TOPK_LEN);
  for (int64_t i = 0; i < x->count; i++)
    mla_cache_load(x->at[i].rows, x->at[i].block, x->at[i].offset, 0,
                   x->room.k + i * x->keys.d);
}

static mla_status attend_token(listed *x, int64_t token, mla_error *err) {
  mla_group group = {token, token, 1, 0, 0, x->call->problem->num_heads};
  if (!mla_attention_wanted(x->call, &group)) return MLA_OK;
  gather(x, token);
  group.seq = x->count;
  if (x->call->keep) mla_keys_look(&x->keys, x->count);
  mla_keyroom_cut(&x->room, x->call->splits, x->count);
  return mla_attention_group(x->call, &group, &x->keys, x->room.parts,
                             x->room.cut, err);
}

/* Opens the caches; returns how many keys a token may have. */
static int64_t start(listed *x) {
  const mla_problem *p = x->call->problem;
  const mla_args *args = x->call->args;
  x->main =
      mla_cache_rows_of(p, args, MLA_T_CACHE, p->q_dtype, x->call->dequant);
  if (!(p->flags & MLA_EXTRA_CACHE)) return p->topk;
  x->extra = mla_cache_rows_of(p, args, MLA_T_EXTRA_CACHE, p->q_dtype,
                               x->call->dequant);
  return (int64_t)p->topk + p->extra_topk;
}

mla_status mla_oracle_sparse(const mla_attention *call, mla_error *err) {
  listed x = {0};
  x.call = call;
  int64_t tokens = mla_attention_tokens(call->args), most = start(&x);
  mla_status status =
      mla_keyroom_take(&x.room, call->problem, most, &x.keys, err);
  x.at = malloc((size_t)(most + 1) * sizeof *x.at);
  if (!status && !x.at)
    status = mla_fail(err, MLA_OUT_OF_MEMORY, "topk",
                      "no memory for a list of %lld slots", (long long)most);
  for (int64_t t = 0; t < tokens && !status; t++)
    status = attend_token(&x, t, err);
  free(x.at);
  mla_keyroom_free(&x.room);
  return status;
}
