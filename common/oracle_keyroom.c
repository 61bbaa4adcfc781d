/*
 * oracle_keyroom.c - memory for the keys that rows of decode share.
 */
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "error.h"
#include "oracle_attention.h"

mla_status mla_keyroom_take(mla_keyroom *room, const mla_problem *p,
                            int64_t most, mla_keys *keys, mla_error *err) {
  int apart = (p->flags & MLA_SEPARATE_V) != 0;
  memset(room, 0, sizeof *room);
  keys->d = mla_problem_head_dim(p);
  keys->dv = mla_problem_v_dim(p);
  keys->scale = p->scale;
  keys->cap = p->logits_soft_cap;
  keys->tiny = mla_smallest_normal(p->q_dtype);
  room->k = malloc((size_t)(most * keys->d + 1) * sizeof(double));
  if (apart) room->v = malloc((size_t)(most * keys->dv + 1) * sizeof(double));
  room->cut = malloc((size_t)(most + 2) * sizeof *room->cut);
  if (!room->k || !room->cut || (apart && !room->v))
    return mla_fail(err, MLA_OUT_OF_MEMORY, "cache", "no memory for %lld keys",
                    (long long)most);
  keys->k = room->k;
  keys->k_stride = keys->d;
  keys->v = apart ? room->v : room->k;
  keys->v_stride = apart ? keys->dv : keys->d;
  return MLA_OK;
}

void mla_keyroom_free(mla_keyroom *room) {
  free(room->k);
  free(room->v);
  free(room->cut);
}

/* One empty part shows as much as many. */
void mla_keyroom_cut(mla_keyroom *room, int64_t splits, int64_t keys) {
  if (splits < 1) splits = 1;
  if (splits > keys + 1) splits = keys + 1;
  int64_t each = (keys + splits - 1) / splits;
  for (int64_t i = 0; i <= splits; i++)
    room->cut[i] = i * each < keys ? i * each : keys;
  room->parts = splits;
}
