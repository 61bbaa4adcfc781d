/* What a careless port keeps from one call to the next. */
#include "planted_kept.h"

#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "tensor.h"

enum { MOST = 4096 };

/* --------------------------------------------------- plans that are shared */

/* What is left of a problem when only its shapes are looked at. */
static mla_problem shapes_of(const mla_problem *p) {
  mla_problem shapes = *p;
  shapes.flags &= ~(MLA_CAUSAL | MLA_LSE_BASE2);
  shapes.scale = shapes.logits_soft_cap = 0;
  shapes.k_scale = shapes.v_scale = 0;
  return shapes;
}

void planted_share_plan(mla_problem *p) {
  static mla_problem first[MOST];
  static int32_t count;
  mla_problem shapes = shapes_of(p);
  for (int32_t i = 0; i < count; i++) {
    mla_problem other = shapes_of(&first[i]);
    if (memcmp(&other, &shapes, sizeof shapes) != 0) continue;
    *p = first[i];
    return;
  }
  if (count < MOST) first[count++] = *p;
}

/* ------------------------------------------------- contents read once only */

typedef struct kept {
  const void *at;
  int64_t bytes;
  void *copy;
} kept;

/* The tensor's bytes as they were when its address was first seen. */
static void see_first(mla_tensor *t) {
  static kept seen[MOST];
  static int32_t count;
  int64_t bytes = mla_tensor_extent(t);
  for (int32_t i = 0; i < count; i++) {
    if (seen[i].at != t->data || seen[i].bytes != bytes) continue;
    t->data = seen[i].copy;
    return;
  }
  void *copy = count < MOST ? malloc((size_t)bytes + 1) : NULL;
  if (!copy) return;
  seen[count++] = (kept){t->data, bytes, memcpy(copy, t->data, (size_t)bytes)};
}

static void see_weights(mla_tensor *tensor) {
  static const int weights[] = {MLA_T_KV_B_PROJ, MLA_T_W_UK, MLA_T_W_UV,
                                MLA_T_B};
  for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++)
    if (tensor[weights[i]].data) see_first(&tensor[weights[i]]);
}

static void see_table(mla_backend_plan *plan, mla_tensor *tensor) {
  mla_tensor *t = &tensor[MLA_T_BLOCK_TABLE];
  if (!t->data) return;
  size_t bytes = (size_t)mla_tensor_extent(t);
  if (!plan->first_table) {
    plan->first_table = malloc(bytes + 1);
    if (plan->first_table) memcpy(plan->first_table, t->data, bytes);
  }
  if (plan->first_table) t->data = plan->first_table;
}

void planted_keep(mla_backend_plan *plan, mla_tensor *tensor) {
  if (plan->handle.fault == PLANTED_TABLE_KEPT) see_table(plan, tensor);
  if (plan->handle.fault == PLANTED_WEIGHTS_KEPT &&
      plan->problem.op != MLA_OP_ABSORB)
    see_weights(tensor);
}
