/*
 * args_check_sparse.c - contents that only sparse attention has.
 *
 * What a list of slots or positions holds breaks no rule: entries that name
 * nothing are ignored.
 */
#include "args_check.h"
#include "error.h"
#include "tensor.h"

static int32_t at_i32(const mla_tensor *t, int64_t i) {
  return ((const int32_t *)t->data)[mla_at1(t, i)];
}

static mla_status check_list_lengths(const mla_args *args, int slot,
                                     int32_t most, const char *limit,
                                     mla_error *err) {
  const mla_tensor *t = mla_given(args, slot);
  const char *name = mla_slot_name(slot);
  for (int64_t i = 0; t && i < t->shape[0]; i++)
    if (at_i32(t, i) < 0 || at_i32(t, i) > most)
      return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                      "%s[%lld] is %d, from 0 to %s, %d", name, (long long)i,
                      at_i32(t, i), limit, most);
  return MLA_OK;
}

mla_status mla_lists_check(const mla_problem *problem, const mla_args *args,
                           mla_error *err) {
  mla_status st =
      check_list_lengths(args, MLA_T_TOPK_LEN, problem->topk, "topk", err);
  if (st != MLA_OK || !(problem->flags & MLA_EXTRA_CACHE)) return st;
  return check_list_lengths(args, MLA_T_EXTRA_TOPK_LEN, problem->extra_topk,
                            "extra_topk", err);
}

mla_status mla_logits_check(const mla_args *args, mla_error *err) {
  const mla_tensor *logits = mla_given(args, MLA_T_LOGITS);
  const mla_tensor *lens = mla_given(args, MLA_T_SEQ_LENS);
  for (int64_t b = 0; logits && b < lens->shape[0]; b++)
    if (at_i32(lens, b) > logits->shape[1])
      return mla_fail(err, MLA_INVALID_ARGUMENT, "logits",
                      "logits.shape[1] is %lld, but seq_lens[%lld] is %d",
                      (long long)logits->shape[1], (long long)b,
                      at_i32(lens, b));
  return MLA_OK;
}
