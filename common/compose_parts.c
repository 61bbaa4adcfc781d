/*
 * compose_parts.c - the tools of compositions: parts, workspace, views.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "compose_internal.h"
#include "dtype.h"
#include "error.h"
#include "tensor.h"

/* ------------------------------------------------------------- describing */

void mla_compose_refuse(mla_composed *c, const char *format, ...) {
  va_list args;
  if (!c->answer.supported) return;
  c->answer.supported = 0;
  va_start(args, format);
  vsnprintf(c->answer.reason, sizeof c->answer.reason, format, args);
  va_end(args);
}

mla_compose_part *mla_compose_add(mla_composed *c, const char *name,
                                  const mla_problem *problem) {
  mla_compose_part *part = &c->part[c->part_count++];
  part->name = name;
  part->problem = *problem;
  part->limits = c->limits;
  return part;
}

int32_t mla_compose_wide(const mla_composed *c) {
  return c->problem.q_dtype == MLA_F64 ? MLA_F64 : MLA_F32;
}

mla_problem mla_compose_partial(const mla_composed *c) {
  mla_problem p = c->problem;
  p.flags = (p.flags | MLA_RETURN_LSE) & ~MLA_HAS_SINK;
  p.out_dtype = mla_compose_wide(c);
  return p;
}

mla_problem mla_compose_merging(const mla_composed *c, int32_t width,
                                int final) {
  const uint64_t base = MLA_LSE_BASE2 | MLA_BATCH_INVARIANT;
  mla_problem p = mla_problem_init(MLA_OP_MERGE);
  p.flags =
      c->problem.flags & (final ? base | MLA_RETURN_LSE | MLA_HAS_SINK : base);
  if (!final) p.flags |= MLA_RETURN_LSE;
  p.q_dtype = mla_compose_wide(c);
  p.out_dtype = final ? c->problem.out_dtype : mla_compose_wide(c);
  p.num_heads = c->problem.num_heads;
  p.v_head_dim = width;
  return p;
}

int mla_compose_strict(const mla_compose_part *part, int32_t dtype) {
  return part->answer.tensor_alignment > (uint64_t)mla_dtype_bits(dtype) / 8;
}

/* -------------------------------------------------------------- workspace */

static uint64_t alignment_of(const mla_composed *c) {
  uint64_t align = c->answer.workspace_alignment;
  return align > c->answer.tensor_alignment ? align
                                            : c->answer.tensor_alignment;
}

static uint64_t aligned(const mla_composed *c, uint64_t n) {
  uint64_t align = alignment_of(c);
  return n > UINT64_MAX / 2 ? UINT64_MAX : (n + align - 1) / align * align;
}

uint64_t mla_compose_reserve(mla_composed *c, uint64_t count, uint64_t each) {
  uint64_t at = c->bytes;
  if (at > UINT64_MAX / 2 || (each && count > (UINT64_MAX / 2 - at) / each))
    c->bytes = UINT64_MAX;
  else
    c->bytes = aligned(c, at + count * each);
  return at;
}

uint64_t mla_compose_reserve_index(mla_composed *c, uint64_t count,
                                   uint64_t each) {
  uint64_t at = mla_compose_reserve(c, count, each);
  c->index_bytes = c->bytes - c->index_at;
  return at;
}

int64_t mla_compose_padded(const mla_composed *c, int64_t n, int32_t dtype) {
  int64_t unit = (int64_t)alignment_of(c) * 8 / mla_dtype_bits(dtype);
  if (unit < 1) unit = 1;
  return n > INT64_MAX / 4 ? n : (n + unit - 1) / unit * unit;
}

/* ---------------------------------------------------------------- running */

void *mla_compose_host(const mla_composed *c, uint64_t at) {
  return c->staging + (at - c->index_at);
}

mla_status mla_compose_upload(mla_composed *c, const mla_compose_call *call,
                              mla_error *err) {
  void *to = call->workspace + c->index_at;
  if (c->host) {
    memcpy(to, c->staging, (size_t)c->index_bytes);
    return MLA_OK;
  }
  return mla_device_backend(c->dev)->mem_to_device(
      mla_device_handle(c->dev), to, c->staging, c->index_bytes, call->stream,
      err);
}

mla_tensor mla_compose_tensor(const mla_compose_call *call, uint64_t at,
                              int32_t dtype, int32_t rank,
                              const int64_t *shape) {
  return mla_tensor_dense(call->workspace + at, dtype, rank, shape);
}

mla_tensor mla_compose_vector(const mla_compose_call *call, uint64_t at,
                              int32_t dtype, int64_t length) {
  return mla_compose_tensor(call, at, dtype, 1, &length);
}

mla_tensor mla_compose_rows(const mla_tensor *t, int64_t first, int64_t count) {
  mla_tensor part = *t;
  int64_t bytes = first * t->stride[0] * (mla_dtype_bits(t->dtype) / 8);
  if (t->data) part.data = (unsigned char *)t->data + bytes;
  part.shape[0] = count;
  return part;
}

mla_status mla_compose_run(const mla_composed *c, const mla_compose_call *call,
                           int32_t part, const mla_tensor *tensor,
                           mla_error *err) {
  mla_args args = {(uint32_t)sizeof args, MLA_T_COUNT, tensor};
  return mla_run(c->part[part].plan, &args, call->workspace,
                 c->part[part].answer.workspace_bytes, call->stream, err);
}

mla_status mla_compose_join(const mla_composed *c, const mla_compose_call *call,
                            int32_t part, mla_tensor parts, mla_tensor lses,
                            int64_t first, int64_t rows, mla_error *err) {
  mla_tensor tensor[MLA_T_COUNT] = {{0}};
  tensor[MLA_T_PARTS] = parts;
  tensor[MLA_T_PART_LSES] = lses;
  tensor[MLA_T_SINK] = call->tensor[MLA_T_SINK];
  tensor[MLA_T_OUT] = mla_compose_rows(&call->tensor[MLA_T_OUT], first, rows);
  if (c->problem.flags & MLA_RETURN_LSE)
    tensor[MLA_T_LSE] = mla_compose_rows(&call->tensor[MLA_T_LSE], first, rows);
  return mla_compose_run(c, call, part, tensor, err);
}
