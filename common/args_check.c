/*
 * args_check.c - the rules for the tensors of a call: which are there, their
 * types, their shapes and what those say of each other, bounds.
 */
#include "args_check.h"

#include <string.h>

#include "error.h"
#include "problem_check.h"
#include "tensor.h"

/* ------------------------------------------------------------- presence */

static int is_empty(const mla_tensor *t) {
  if (t->rank < 1 || t->rank > MLA_MAX_RANK) return 0;
  for (int axis = 0; axis < t->rank; axis++)
    if (t->shape[axis] == 0) return 1;
  return 0;
}

const mla_tensor *mla_given(const mla_args *args, int slot) {
  if ((uint32_t)slot >= args->count) return NULL;
  const mla_tensor *t = &args->tensor[slot];
  return t->data || (t->dtype != MLA_DTYPE_NONE && is_empty(t)) ? t : NULL;
}

/* The row of the table that stands for this slot in this call. */
static const mla_slot_spec *applicable(const mla_op_spec *spec, int slot,
                                       const mla_problem *p) {
  for (int32_t i = 0; i < spec->slot_count; i++)
    if (spec->slots[i].slot == slot && mla_slot_applies(&spec->slots[i], p))
      return &spec->slots[i];
  return NULL;
}

/* The flags without which a slot of the operation does not apply. */
static uint64_t flags_lacking(const mla_op_spec *spec, int slot,
                              const mla_problem *p) {
  for (int32_t i = 0; i < spec->slot_count; i++)
    if (spec->slots[i].slot == slot) return spec->slots[i].need & ~p->flags;
  return 0;
}

static mla_status check_surplus(const mla_op_spec *spec, const mla_problem *p,
                                int slot, mla_error *err) {
  const char *name = mla_slot_name(slot);
  uint64_t lacking = flags_lacking(spec, slot, p);
  if (!name)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "args",
                    "args.tensor[%d] is given, slots known are 0 to %d", slot,
                    MLA_T_COUNT - 1);
  if (lacking)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s is given, but flags 0x%llx lack %s", name,
                    (unsigned long long)p->flags, mla_flag_name(lacking));
  return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                  "%s is given, but %s takes none", name, mla_op_name(p->op));
}

static mla_status check_presence(const mla_op_spec *spec, const mla_problem *p,
                                 const mla_args *args, mla_error *err) {
  if (args->count && !args->tensor)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "args",
                    "args.tensor is NULL, args.count is %u", args->count);
  for (uint32_t slot = 0; slot < args->count; slot++)
    if (mla_given(args, (int)slot) && !applicable(spec, (int)slot, p))
      return check_surplus(spec, p, (int)slot, err);
  for (int32_t i = 0; i < spec->slot_count; i++) {
    const mla_slot_spec *s = &spec->slots[i];
    const char *name = mla_slot_name(s->slot);
    if (mla_slot_applies(s, p) && !s->optional && !mla_given(args, s->slot))
      return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                      "%s is absent (data is NULL), but %s needs it", name,
                      mla_op_name(p->op));
  }
  return MLA_OK;
}

/* ------------------------------------------------------ types and shapes */

static mla_status check_type(const mla_slot_spec *s, const mla_problem *p,
                             const mla_tensor *t, mla_error *err) {
  const char *name = mla_slot_name(s->slot);
  int32_t want = mla_slot_dtype(s, p);
  const char *got = mla_dtype_name(t->dtype);
  if (!got)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s has dtype %d, which is unknown; %s is needed", name,
                    t->dtype, mla_dtype_name(want));
  if (t->dtype != want)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s is %s, but %s is needed", name, got,
                    mla_dtype_name(want));
  if (t->rank != s->rank)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s has rank %d, but %d is needed", name, t->rank, s->rank);
  return MLA_OK;
}

static int may_be_zero(int sym) {
  return sym == MLA_S_N || sym == MLA_S_SLOTS || sym == MLA_S_COPIES ||
         sym == MLA_S_GATHERED;
}

/* A free symbol is what the first tensor that has it says. */
static mla_status unify(const mla_slot_spec *s, int axis, int64_t length,
                        mla_dims *dims, mla_error *err) {
  const char *name = mla_slot_name(s->slot);
  int sym = s->dim[axis];
  int64_t more = sym == MLA_S_B1; /* B + 1 says what B is */
  if (sym == MLA_S_B1) sym = MLA_S_B;
  int64_t least = may_be_zero(sym) ? 0 : 1 + more;
  if (length < least)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s.shape[%d] is %lld, at least %lld", name, axis,
                    (long long)length, (long long)least);
  if (dims->value[sym] < 0) {
    dims->value[sym] = length - more;
    dims->slot[sym] = s->slot;
  }
  if (dims->value[sym] != length - more)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s.shape[%d] is %lld, but %s has %lld %s, so it must be "
                    "%lld",
                    name, axis, (long long)length,
                    mla_slot_name(dims->slot[sym]), (long long)dims->value[sym],
                    mla_sym_name(sym), (long long)(dims->value[sym] + more));
  return MLA_OK;
}

static mla_status check_shape(const mla_slot_spec *s, const mla_problem *p,
                              const mla_tensor *t, mla_dims *dims,
                              mla_error *err) {
  const char *name = mla_slot_name(s->slot);
  for (int axis = 0; axis < s->rank; axis++) {
    int64_t want = mla_sym_value(s->dim[axis], p);
    if (s->dim[axis] >= MLA_S_FREE) {
      mla_status st = unify(s, axis, t->shape[axis], dims, err);
      if (st != MLA_OK) return st;
    } else if (t->shape[axis] != want) {
      return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                      "%s.shape[%d] is %lld, but %s is %lld", name, axis,
                      (long long)t->shape[axis], mla_sym_name(s->dim[axis]),
                      (long long)want);
    }
  }
  return MLA_OK;
}

static mla_status check_shapes(const mla_op_spec *spec, const mla_problem *p,
                               const mla_args *args, mla_dims *dims,
                               mla_error *err) {
  for (int sym = 0; sym < MLA_S_COUNT; sym++) dims->value[sym] = -1;
  for (int32_t i = 0; i < spec->slot_count; i++) {
    const mla_slot_spec *s = &spec->slots[i];
    const mla_tensor *t =
        mla_slot_applies(s, p) ? mla_given(args, s->slot) : NULL;
    if (!t) continue;
    mla_status st = check_type(s, p, t, err);
    if (st == MLA_OK) st = check_shape(s, p, t, dims, err);
    if (st != MLA_OK) return st;
  }
  if (dims->value[MLA_S_SLOTS] > dims->value[MLA_S_N])
    return mla_fail(err, MLA_INVALID_ARGUMENT, "slot_mapping",
                    "slot_mapping.shape[0] is %lld, but kv_c has %lld tokens",
                    (long long)dims->value[MLA_S_SLOTS],
                    (long long)dims->value[MLA_S_N]);
  return MLA_OK;
}

/* --------------------------------------------------------------- bounds */

static mla_status check_bounds(const mla_limits *l, const mla_dims *dims,
                               mla_error *err) {
  const struct {
    int sym;
    const char *name;
    int64_t most;
  } bounds[] = {
      {MLA_S_N, "tokens", l->tokens},
      {MLA_S_SLOTS, "tokens", l->tokens},
      {MLA_S_COPIES, "tokens", l->tokens},
      {MLA_S_GATHERED, "tokens", l->tokens},
      {MLA_S_B, "requests", l->requests},
      {MLA_S_W, "table_width", l->table_width},
      {MLA_S_NB, "num_blocks", l->num_blocks},
      {MLA_S_NBS, "num_blocks", l->num_blocks},
      {MLA_S_NBX, "num_blocks", l->num_blocks},
      {MLA_S_PARTS, "parts", l->parts},
  };
  for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
    int sym = bounds[i].sym;
    if (dims->value[sym] < 0 || dims->value[sym] <= bounds[i].most) continue;
    const char *who = mla_slot_name(dims->slot[sym]);
    return mla_fail(err, MLA_INVALID_ARGUMENT, who,
                    "%s has %lld %s, but the plan's limits.%s is %lld", who,
                    (long long)dims->value[sym], mla_sym_name(sym),
                    bounds[i].name, (long long)bounds[i].most);
  }
  return MLA_OK;
}

static mla_status check_layouts(const mla_op_spec *spec, const mla_problem *p,
                                const mla_answer *answer, const mla_args *args,
                                mla_error *err) {
  for (int32_t i = 0; i < spec->slot_count; i++) {
    const mla_slot_spec *s = &spec->slots[i];
    const mla_tensor *t =
        mla_slot_applies(s, p) ? mla_given(args, s->slot) : NULL;
    mla_status st = t ? mla_layout_check(s, p, answer, t, err) : MLA_OK;
    if (st != MLA_OK) return st;
  }
  return MLA_OK;
}

mla_status mla_args_check(const mla_problem *problem, const mla_limits *limits,
                          const mla_answer *answer, const mla_args *args,
                          int host_contents, mla_error *err) {
  const mla_op_spec *spec = mla_op_spec_of(problem->op);
  mla_dims dims;
  memset(&dims, 0, sizeof dims);
  mla_status st = check_presence(spec, problem, args, err);
  if (st == MLA_OK) st = check_shapes(spec, problem, args, &dims, err);
  if (st == MLA_OK) st = check_bounds(limits, &dims, err);
  if (st == MLA_OK) st = check_layouts(spec, problem, answer, args, err);
  if (st == MLA_OK && host_contents)
    st = mla_contents_check(problem, limits, args, &dims, err);
  return st;
}

int mla_args_empty(const mla_problem *problem, const mla_args *args) {
  const mla_op_spec *spec = mla_op_spec_of(problem->op);
  for (int32_t i = 0; i < spec->slot_count; i++) {
    const mla_tensor *t = mla_given(args, spec->slots[i].slot);
    if (t && is_empty(t)) return 1;
  }
  return 0;
}
