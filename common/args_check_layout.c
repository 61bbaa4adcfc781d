/*
 * args_check_layout.c - where a tensor's elements lie.
 */
#include "args_check.h"
#include "cache_layout.h"
#include "dtype.h"
#include "error.h"
#include "tensor.h"

/* Bytes that the scales or rope values inside a packed entry need. */
static uint64_t packed_alignment(const mla_slot_spec *slot,
                                 const mla_problem *p) {
  if (slot->type_rule != MLA_TYPE_CACHE ||
      mla_format_dtype(p->cache_format) != MLA_DTYPE_NONE)
    return 1;
  return p->cache_format == MLA_CACHE_FP8_584 ? 2 : 4;
}

static uint64_t larger(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

uint64_t mla_slot_alignment(const mla_slot_spec *slot,
                            const mla_problem *problem,
                            const mla_answer *answer) {
  uint64_t element =
      (uint64_t)mla_dtype_bits(mla_slot_dtype(slot, problem)) / 8;
  uint64_t need = larger(packed_alignment(slot, problem), element);
  return answer ? larger(need, answer->tensor_alignment) : need;
}

static mla_status check_signs(const mla_tensor *t, const char *name,
                              mla_error *err) {
  int last = t->rank - 1;
  for (int axis = 0; axis <= last; axis++)
    if (t->stride[axis] < 0)
      return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                      "%s.stride[%d] is %lld, at least 0", name, axis,
                      (long long)t->stride[axis]);
  if (t->shape[last] > 1 && t->stride[last] != 1)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s.stride[%d] is %lld, the last axis has stride 1", name,
                    last, (long long)t->stride[last]);
  return MLA_OK;
}

static mla_status check_extent(const mla_tensor *t, const char *name,
                               mla_error *err) {
  int64_t bytes = mla_tensor_extent(t);
  if (bytes < 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s spans more than 2^63 - 1 bytes: shape[0] is %lld, "
                    "stride[0] is %lld",
                    name, (long long)t->shape[0], (long long)t->stride[0]);
  uint64_t room = UINTPTR_MAX - (uintptr_t)t->data;
  if ((uint64_t)bytes > room)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s spans %lld bytes, past the end of memory, %llu bytes "
                    "from its data",
                    name, (long long)bytes, (unsigned long long)room);
  return MLA_OK;
}

static mla_status check_address(const mla_slot_spec *slot, const mla_problem *p,
                                const mla_answer *answer, const mla_tensor *t,
                                const char *name, mla_error *err) {
  uint64_t packed = packed_alignment(slot, p);
  uint64_t need = mla_slot_alignment(slot, p, answer);
  if ((uintptr_t)t->data % need)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s's data is %llu bytes past a multiple of %llu, the "
                    "alignment it needs",
                    name, (unsigned long long)((uintptr_t)t->data % need),
                    (unsigned long long)need);
  for (int axis = 0; packed > 1 && axis < t->rank - 1; axis++)
    if (t->shape[axis] > 1 && (uint64_t)t->stride[axis] % packed)
      return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                      "%s.stride[%d] is %lld bytes, entries of %s need a "
                      "multiple of %llu",
                      name, axis, (long long)t->stride[axis],
                      mla_format_name(p->cache_format),
                      (unsigned long long)packed);
  return MLA_OK;
}

/* The axis of the next larger stride; -1 when all are done. */
static int next_axis(const mla_tensor *t, unsigned done) {
  int next = -1;
  for (int axis = t->rank - 1; axis >= 0; axis--)
    if (!(done >> axis & 1u) && t->shape[axis] > 1 &&
        (next < 0 || t->stride[axis] < t->stride[next]))
      next = axis;
  return next;
}

/* Each axis must step over all that the axes of smaller strides span. */
static mla_status check_overlap(const mla_tensor *t, const char *name,
                                mla_error *err) {
  int64_t span = 1;
  unsigned done = 0;
  for (int axis; (axis = next_axis(t, done)) >= 0; done |= 1u << axis) {
    if (t->stride[axis] < span)
      return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                      "%s.stride[%d] is %lld, less than the %lld elements it "
                      "steps over; elements overlap",
                      name, axis, (long long)t->stride[axis], (long long)span);
    span += (t->shape[axis] - 1) * t->stride[axis];
  }
  return MLA_OK;
}

/* Formats that keep scales behind all keys of a block have no gaps in it. */
static mla_status check_inside_block(const mla_problem *p, const mla_tensor *t,
                                     const char *name, mla_error *err) {
  mla_cache_layout layout = mla_cache_layout_of(p);
  if (layout.side_bytes && t->shape[1] > 1 && t->stride[1] != t->shape[2])
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s.stride[1] is %lld, but blocks of %s are dense: it is "
                    "%lld",
                    name, (long long)t->stride[1],
                    mla_format_name(p->cache_format), (long long)t->shape[2]);
  return MLA_OK;
}

/* Elements from the first of a block to its last, and bytes of padding. */
static int64_t span_of_block(const mla_problem *p, const mla_tensor *t) {
  mla_cache_layout layout = mla_cache_layout_of(p);
  int64_t block = 1;
  if (layout.side_bytes) return mla_cache_block_bytes(&layout, t->shape[1]);
  for (int axis = 1; axis < t->rank; axis++)
    block += (t->shape[axis] - 1) * t->stride[axis];
  return block;
}

static mla_status check_block_stride(const mla_problem *p, const mla_tensor *t,
                                     const char *name, mla_error *err) {
  int64_t block = span_of_block(p, t);
  if (t->shape[0] > 1 && t->stride[0] < block)
    return mla_fail(err, MLA_INVALID_ARGUMENT, name,
                    "%s.stride[0] is %lld, but a block spans %lld elements",
                    name, (long long)t->stride[0], (long long)block);
  return MLA_OK;
}

mla_status mla_layout_check(const mla_slot_spec *slot,
                            const mla_problem *problem,
                            const mla_answer *answer, const mla_tensor *t,
                            mla_error *err) {
  const char *name = mla_slot_name(slot->slot);
  int cache = slot->type_rule == MLA_TYPE_CACHE;
  if (mla_tensor_count(t) == 0) return MLA_OK; /* it lies nowhere */
  mla_status st = check_signs(t, name, err);
  if (st == MLA_OK) st = check_extent(t, name, err);
  if (st == MLA_OK) st = check_address(slot, problem, answer, t, name, err);
  if (st == MLA_OK && cache) st = check_inside_block(problem, t, name, err);
  if (st == MLA_OK && (cache || slot->role != MLA_ROLE_IN))
    st = check_overlap(t, name, err);
  if (st == MLA_OK && cache) st = check_block_stride(problem, t, name, err);
  return st;
}
