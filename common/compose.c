/*
 * compose.c - the front of compositions: asking, creating, checking, freeing.
 */
#include "mla/compose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args_check.h"
#include "compose_internal.h"
#include "device_over.h"
#include "error.h"
#include "problem_check.h"
#include "sized.h"
#include "tensor.h"

/* ------------------------------------------------------------ description */

static const mla_composer *composer_of(int32_t kind) {
  switch (kind) {
    case MLA_CASCADE: return &mla_composer_cascade;
    case MLA_CHUNKED_PREFILL: return &mla_composer_chunked;
    case MLA_SHARDED: return &mla_composer_sharded;
    default: return NULL;
  }
}

static mla_status check_composition(mla_composed *c, mla_error *err) {
  const mla_composition *w = &c->what;
  c->composer = composer_of(w->kind);
  if (!c->composer)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "kind",
                    "composition.kind is %d, known are %d to %d", w->kind,
                    MLA_CASCADE, MLA_SHARDED);
  if (c->problem.op != c->composer->op)
    return mla_fail(
        err, MLA_INVALID_ARGUMENT, "op", "problem.op is %s, but a %s is of %s",
        mla_op_name(c->problem.op) ? mla_op_name(c->problem.op) : "unknown",
        c->composer->name, mla_op_name(c->composer->op));
  if (w->kind == MLA_SHARDED && (w->ranks < 1 || w->interleave < 1))
    return mla_fail(err, MLA_INVALID_ARGUMENT,
                    w->ranks < 1 ? "ranks" : "interleave",
                    "composition.%s is %d, at least 1",
                    w->ranks < 1 ? "ranks" : "interleave",
                    w->ranks < 1 ? w->ranks : w->interleave);
  return MLA_OK;
}

/* Index tensors count in 32 bits: a higher bound allows no more. */
static void clip(int64_t *bound) {
  if (*bound > INT32_MAX) *bound = INT32_MAX;
}

static mla_status read_all(mla_composed *c, mla_device *dev,
                           const mla_composition *what,
                           const mla_problem *problem, const mla_limits *limits,
                           mla_error *err) {
  mla_device_info info;
  memset(c, 0, sizeof *c);
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  c->dev = dev;
  mla_status st =
      mla_sized_read(&c->what, (uint32_t)sizeof c->what, what,
                     MLA_SIZE_WITH(mla_composition, kind), "composition", err);
  if (st == MLA_OK)
    st = mla_sized_read(&c->problem, (uint32_t)sizeof c->problem, problem,
                        MLA_SIZE_WITH(mla_problem, flags), "problem", err);
  if (st == MLA_OK)
    st = mla_sized_read(&c->limits, (uint32_t)sizeof c->limits, limits,
                        MLA_SIZE_WITH(mla_limits, num_splits), "limits", err);
  if (st == MLA_OK) st = mla_problem_check(&c->problem, err);
  if (st == MLA_OK) st = mla_limits_check(&c->problem, &c->limits, err);
  if (st == MLA_OK) st = check_composition(c, err);
  if (st == MLA_OK) st = mla_device_describe(dev, &info, err);
  c->limits.seq_lens = c->limits.query_start_loc = NULL;
  clip(&c->limits.requests);
  clip(&c->limits.tokens);
  clip(&c->limits.max_query_len);
  clip(&c->limits.max_seq_len);
  c->host = info.memory_space == MLA_MEMORY_HOST;
  return st;
}

/* ---------------------------------------------------------------- answers */

/* The one operation that a backend may do by itself: prefill with context, or
   decode that is told of a prefix. A row's bits depend on what is in common. */
static int may_override(const mla_composed *c) {
  uint64_t never = MLA_BATCH_INVARIANT | MLA_SPARSE;
  if (c->what.parts_only) return 0;
  if (c->what.kind == MLA_CASCADE) return !(c->problem.flags & never);
  return c->what.kind == MLA_CHUNKED_PREFILL;
}

/* What the backend does itself overrides the composition. */
static mla_status ask_backend(mla_composed *c, mla_error *err) {
  if (!may_override(c)) return MLA_OK;
  mla_compose_part *whole = &c->part[0];
  whole->problem = c->problem;
  if (c->what.kind == MLA_CASCADE) whole->problem.flags |= MLA_COMMON_PREFIX;
  whole->limits = c->limits;
  whole->answer = mla_answer_init();
  mla_status st =
      mla_query(c->dev, &whole->problem, &whole->limits, &whole->answer, err);
  if (st != MLA_OK || !whole->answer.supported) return st;
  c->itself = 1;
  c->part_count = 1;
  c->answer = whole->answer;
  if (c->what.kind == MLA_CASCADE &&
      c->answer.determinism > MLA_DETERMINISM_RUN_TO_RUN)
    c->answer.determinism = MLA_DETERMINISM_RUN_TO_RUN;
  return MLA_OK;
}

static double coarser(double a, double b) {
  return a > b ? a : b;
}

static void join_numerics(mla_numerics *to, const mla_numerics *from) {
  to->u_acc = coarser(to->u_acc, from->u_acc ? from->u_acc : 0x1p-24);
  to->u_p = coarser(to->u_p, from->u_p);
  to->u_mid = coarser(to->u_mid, from->u_mid);
  if (!to->dequant) to->dequant = from->dequant;
  if (!to->q_round) to->q_round = from->q_round;
  to->flushes_subnormals |= from->flushes_subnormals;
  to->rounded_denominator |= from->rounded_denominator;
}

/* The last part writes the outputs: what it says of empty rows holds. */
static void join(mla_answer *to, const mla_answer *from) {
  join_numerics(&to->numerics, &from->numerics);
  to->numerics.lse_empty_positive = from->numerics.lse_empty_positive;
  if (from->determinism < to->determinism) to->determinism = from->determinism;
  if (from->workspace_alignment > to->workspace_alignment)
    to->workspace_alignment = from->workspace_alignment;
  if (from->tensor_alignment > to->tensor_alignment)
    to->tensor_alignment = from->tensor_alignment;
}

static mla_status ask_parts(mla_composed *c, mla_error *err) {
  for (int32_t i = 0; i < c->part_count && c->answer.supported; i++) {
    mla_compose_part *part = &c->part[i];
    part->answer = mla_answer_init();
    mla_status st =
        mla_query(c->dev, &part->problem, &part->limits, &part->answer, err);
    if (st != MLA_OK) return st;
    if (!part->answer.supported)
      mla_compose_refuse(c, "%s: %s", part->name, part->answer.reason);
    else
      join(&c->answer, &part->answer);
  }
  return MLA_OK;
}

static uint64_t widest_workspace(const mla_composed *c) {
  uint64_t most = 0;
  for (int32_t i = 0; i < c->part_count; i++)
    if (c->part[i].answer.workspace_bytes > most)
      most = c->part[i].answer.workspace_bytes;
  return most;
}

static mla_status answer(mla_composed *c, mla_error *err) {
  c->answer = mla_answer_init();
  mla_status st = ask_backend(c, err);
  if (st != MLA_OK || c->itself) return st;
  c->answer.supported = 1;
  c->answer.determinism = MLA_DETERMINISM_BATCH_INVARIANT;
  c->answer.workspace_alignment = 64;
  /* Partial results pass through this type. */
  c->answer.numerics.u_acc = c->answer.numerics.u_p =
      mla_compose_wide(c) == MLA_F64 ? 0x1p-53 : 0x1p-24;
  st = c->composer->describe(c, err);
  if (st == MLA_OK) st = ask_parts(c, err);
  if (st != MLA_OK || !c->answer.supported) return st;
  /* Tensors between parts lie in the workspace. */
  if (c->answer.tensor_alignment > c->answer.workspace_alignment)
    c->answer.workspace_alignment = c->answer.tensor_alignment;
  mla_compose_reserve(c, widest_workspace(c), 1);
  c->index_at = c->bytes;
  c->composer->lay_out(c);
  if (c->bytes > UINT64_MAX / 4)
    mla_compose_refuse(c, "limits: the workspace would exceed 2^62 bytes");
  c->answer.workspace_bytes = c->answer.supported ? c->bytes : 0;
  return MLA_OK;
}

static void name_kernel(mla_composed *c) {
  char of[sizeof c->answer.kernel];
  if (c->itself || !c->answer.supported) return;
  memcpy(of, c->part[0].answer.kernel, sizeof of);
  snprintf(c->answer.kernel, sizeof c->answer.kernel, "%.15s:%.47s",
           c->composer->name, of);
}

static mla_status prepare(mla_composed *c, mla_device *dev,
                          const mla_composition *what,
                          const mla_problem *problem, const mla_limits *limits,
                          mla_error *err) {
  mla_status st = read_all(c, dev, what, problem, limits, err);
  if (st == MLA_OK) st = answer(c, err);
  if (st == MLA_OK) name_kernel(c);
  return st;
}

mla_status mla_compose_query(mla_device *dev, const mla_composition *what,
                             const mla_problem *problem,
                             const mla_limits *limits, mla_answer *to,
                             mla_error *err) {
  mla_composed c;
  mla_status st =
      mla_sized_room(to, MLA_SIZE_WITH(mla_answer, supported), "answer", err);
  if (st == MLA_OK) st = prepare(&c, dev, what, problem, limits, err);
  if (st == MLA_OK) mla_sized_write(to, &c.answer, (uint32_t)sizeof c.answer);
  return st;
}

/* --------------------------------------------------------------- creating */

static mla_status plan_parts(mla_composed *c, mla_error *err) {
  for (int32_t i = 0; i < c->part_count; i++) {
    mla_compose_part *part = &c->part[i];
    mla_status st = mla_plan_create(c->dev, &part->problem, &part->limits,
                                    &part->plan, err);
    if (st != MLA_OK) return st;
  }
  return MLA_OK;
}

static mla_status create(mla_composed *c, mla_error *err) {
  if (!c->answer.supported)
    return mla_fail(err, MLA_UNSUPPORTED, "problem", "%s: %s",
                    mla_device_backend(c->dev)->name, c->answer.reason);
  c->staging = calloc(1, (size_t)c->index_bytes + 1);
  if (!c->staging)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "composed",
                    "no memory for %llu bytes of index arrays",
                    (unsigned long long)c->index_bytes);
  return plan_parts(c, err);
}

mla_status mla_compose(mla_device *dev, const mla_composition *what,
                       const mla_problem *problem, const mla_limits *limits,
                       mla_composed **composed, mla_error *err) {
  if (!composed)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "composed", "composed is NULL");
  *composed = NULL;
  mla_composed *made = malloc(sizeof *made);
  if (!made)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "composed",
                    "no memory for a composition");
  mla_status st = prepare(made, dev, what, problem, limits, err);
  if (st == MLA_OK) st = create(made, err);
  if (st == MLA_OK)
    *composed = made;
  else
    mla_composed_free(made);
  return st;
}

const mla_answer *mla_composed_answer(const mla_composed *composed) {
  return composed ? &composed->answer : NULL;
}

void mla_composed_free(mla_composed *composed) {
  if (!composed) return;
  for (int32_t i = 0; i < composed->part_count; i++)
    mla_plan_free(composed->part[i].plan);
  free(composed->staging);
  free(composed);
}

/* ---------------------------------------------------------------- running */

/* What the step says, from the host's arrays or the tensors themselves. */
static mla_status read_step(const mla_composed *c, const mla_step *step,
                            mla_compose_call *call, mla_error *err) {
  const mla_tensor *lens = &call->tensor[MLA_T_SEQ_LENS];
  const mla_tensor *table = &call->tensor[MLA_T_BLOCK_TABLE];
  if (step) {
    mla_status st =
        mla_sized_read(&call->step, (uint32_t)sizeof call->step, step,
                       MLA_SIZE_WITH(mla_step, seq_lens), "step", err);
    if (st != MLA_OK) return st;
    if (call->step.requests == lens->shape[0] && call->step.seq_lens &&
        call->step.query_start_loc)
      return MLA_OK;
    return mla_fail(err, MLA_INVALID_ARGUMENT, "step",
                    "step has %lld requests and %s, seq_lens has %lld",
                    (long long)call->step.requests,
                    call->step.seq_lens && call->step.query_start_loc
                        ? "their lengths"
                        : "not all lengths",
                    (long long)lens->shape[0]);
  }
  if (!c->host)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "step",
                    "step is NULL, but the tensors are in the device's "
                    "memory");
  call->step.requests = lens->shape[0];
  call->step.seq_lens = lens->data;
  call->step.query_start_loc = call->tensor[MLA_T_QUERY_START_LOC].data;
  call->step.block_table = table->data;
  call->step.table_stride = table->stride[0];
  return MLA_OK;
}

static mla_status check_lengths(const mla_composed *c, mla_compose_call *call,
                                mla_error *err) {
  const mla_step *s = &call->step;
  int64_t tokens = call->tensor[MLA_T_Q].shape[0];
  mla_status st = mla_lengths_check(&c->problem, &c->limits, s->query_start_loc,
                                    s->seq_lens, s->requests, tokens, err);
  if (st != MLA_OK) return st;
  call->rows = s->query_start_loc[s->requests];
  return c->composer->check ? c->composer->check(c, call, err) : MLA_OK;
}

static mla_status check_workspace(const mla_composed *c, const void *workspace,
                                  uint64_t bytes, mla_error *err) {
  uint64_t need = c->answer.workspace_bytes;
  uint64_t align = c->answer.workspace_alignment;
  if (bytes < need)
    return mla_fail(err, MLA_WORKSPACE_TOO_SMALL, "workspace_bytes",
                    "workspace_bytes is %llu, the composition needs %llu",
                    (unsigned long long)bytes, (unsigned long long)need);
  if (!workspace || (uintptr_t)workspace % align)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "workspace",
                    "workspace is %s, a multiple of %llu is needed",
                    workspace ? "misaligned" : "NULL",
                    (unsigned long long)align);
  return MLA_OK;
}

mla_status mla_composed_run(mla_composed *c, const mla_args *args,
                            const mla_step *step, void *workspace,
                            uint64_t workspace_bytes, mla_stream stream,
                            mla_error *err) {
  mla_tensor tensor[MLA_T_COUNT];
  mla_compose_call call;
  mla_args full;
  if (!c)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "composed", "composed is NULL");
  if (c->itself && c->what.kind != MLA_CASCADE)
    return mla_run(c->part[0].plan, args, workspace, workspace_bytes, stream,
                   err);
  mla_status st = mla_sized_read(&full, (uint32_t)sizeof full, args,
                                 MLA_SIZE_WITH(mla_args, tensor), "args", err);
  if (st == MLA_OK)
    st = mla_args_check(&c->problem, &c->limits, &c->answer, &full, c->host,
                        err);
  if (st != MLA_OK) return st;
  memset(tensor, 0, sizeof tensor);
  memset(&call, 0, sizeof call);
  for (uint32_t i = 0; i < full.count && i < MLA_T_COUNT; i++)
    tensor[i] = full.tensor[i];
  call.tensor = tensor;
  call.workspace = workspace;
  call.workspace_bytes = workspace_bytes;
  call.stream = stream;
  st = read_step(c, step, &call, err);
  if (st == MLA_OK) st = check_lengths(c, &call, err);
  if (st == MLA_OK && !c->itself)
    st = check_workspace(c, workspace, workspace_bytes, err);
  if (st != MLA_OK || call.rows == 0) return st;
  if (c->itself)
    return mla_run_prefix(c->part[0].plan, &full, mla_cascade_prefix(c, &call),
                          workspace, workspace_bytes, stream, err);
  return c->composer->run(c, &call, err);
}
