#include "fixed_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "rng.h"
#include "tensor.h"

fixed_case fixed_case_of(const mla_problem *problem, uint64_t seed) {
  fixed_case c;
  memset(&c, 0, sizeof c);
  c.problem = *problem;
  c.limits = mla_limits_init();
  c.seed = seed;
  return c;
}

static int64_t length_of(const fixed_case *c, int sym) {
  return sym < MLA_S_FREE ? mla_sym_value(sym, &c->problem) : c->size[sym];
}

static void allocate(fixed_case *c, const mla_slot_spec *spec) {
  int64_t shape[MLA_MAX_RANK];
  for (int i = 0; i < spec->rank; i++) shape[i] = length_of(c, spec->dim[i]);
  mla_tensor *t = &c->tensor[spec->slot];
  *t = mla_tensor_dense(NULL, mla_slot_dtype(spec, &c->problem), spec->rank,
                        shape);
  for (int i = t->rank - 2; i >= 0; i--) {
    t->stride[i] = t->shape[i + 1] * t->stride[i + 1] + c->gap;
  }
  /* The first axis whole: gaps after the last row are in it too. */
  int64_t bytes = t->shape[0] * t->stride[0] * mla_dtype_bits(t->dtype) / 8;
  t->data = malloc((size_t)bytes + 1);
  if (!t->data) {
    fprintf(stderr, "out of memory\n");
    exit(3);
  }
  memset(t->data, 0xff, (size_t)bytes + 1);
}

void fixed_case_alloc(fixed_case *c) {
  const mla_op_spec *op = mla_op_spec_of(c->problem.op);
  for (int32_t i = 0; i < op->slot_count; i++) {
    if (mla_slot_applies(&op->slots[i], &c->problem))
      allocate(c, &op->slots[i]);
  }
}

mla_args fixed_case_args(const fixed_case *c) {
  mla_args args = {(uint32_t)sizeof args, MLA_T_COUNT, c->tensor};
  return args;
}

void fixed_case_free(fixed_case *c) {
  for (int i = 0; i < MLA_T_COUNT; i++) free(c->tensor[i].data);
  memset(c->tensor, 0, sizeof c->tensor);
}

int64_t fixed_case_at(const mla_tensor *t, int64_t i) {
  int64_t offset = 0;
  for (int axis = t->rank - 1; axis >= 0; axis--) {
    offset += i % t->shape[axis] * t->stride[axis];
    i /= t->shape[axis];
  }
  return offset;
}

void fixed_case_fill(fixed_case *c, int slot, double offset, double amplitude) {
  mla_tensor *t = &c->tensor[slot];
  mla_rng rng = mla_rng_named(c->seed, mla_slot_name(slot));
  int64_t count = mla_tensor_count(t);
  for (int64_t i = 0; i < count; i++) {
    double x = offset + amplitude * mla_rng_bell(rng, (uint64_t)i);
    mla_put(t->data, t->dtype, fixed_case_at(t, i), x);
  }
}

void fixed_case_put_int(fixed_case *c, int slot, int64_t i, int64_t value) {
  mla_tensor *t = &c->tensor[slot];
  mla_put_int(t->data, t->dtype, fixed_case_at(t, i), value);
}
