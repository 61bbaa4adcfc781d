/*
 * gpu_vtable.h - run(), and the table that a device backend returns.
 */
#ifndef MLA_GPU_VTABLE_H
#define MLA_GPU_VTABLE_H

#include "gpu_device.h"
#include "gpu_fast.h"
#include "gpu_query.h"
#include "gpu_run_blocks.h"
#include "gpu_run_kv.h"

static mla_status mla_gpu_dispatch(const mla_gpu_call *c) {
  switch (c->p->op) {
    case MLA_OP_KV_WRITE: return mla_gpu_kv_write(c);
    case MLA_OP_KV_READ: return mla_gpu_kv_read(c);
    case MLA_OP_KV_COPY: return mla_gpu_kv_copy(c);
    case MLA_OP_ABSORB:
      return c->p->flags & MLA_BLOCK_SCALED ? mla_gpu_absorb_scaled(c)
                                            : mla_gpu_absorb(c);
    case MLA_OP_Q_ABSORB: return mla_gpu_q_absorb(c);
    case MLA_OP_V_EXPAND: return mla_gpu_v_expand(c);
    case MLA_OP_DECODE:
      return c->p->flags & MLA_SPARSE ? mla_gpu_sparse(c) : mla_gpu_decode(c);
    case MLA_OP_PREFILL: return mla_gpu_prefill(c);
    case MLA_OP_MERGE: return mla_gpu_merge_op(c);
    case MLA_OP_MATMUL: return mla_gpu_matmul(c);
    case MLA_OP_INDEX: return mla_gpu_index(c);
    case MLA_OP_MAP_INDICES: return mla_gpu_map_indices(c);
    default: break;
  }
  return mla_fail(c->err, MLA_UNSUPPORTED, "op", "op %d is unknown", c->p->op);
}

/* The first of a list (NULL behind the last) that serves the problem. */
static const mla_gpu_fast *mla_gpu_fast_for(const mla_gpu_fast *const *list,
                                            const mla_handle *h,
                                            const mla_problem *p,
                                            const mla_limits *l) {
  while (*list && !(*list)->serves(h, p, l)) list++;
  return *list;
}

static inline mla_status mla_gpu_query_with(const mla_gpu_fast *const *list,
                                            mla_handle *handle,
                                            const mla_problem *problem,
                                            const mla_limits *limits,
                                            mla_answer *answer,
                                            mla_error *err) {
  mla_status st = mla_gpu_query(handle, problem, limits, answer, err);
  if (st != MLA_OK || !answer->supported) return st;
  const mla_gpu_fast *f = mla_gpu_fast_for(list, handle, problem, limits);
  if (!f) return MLA_OK;
  const uint64_t bytes = f->workspace(handle, problem, limits);
  if (bytes > answer->workspace_bytes) answer->workspace_bytes = bytes;
  f->describe(problem, answer);
  return MLA_OK;
}

static inline mla_status mla_gpu_run_with(const mla_gpu_fast *const *list,
                                          const mla_backend_plan *plan,
                                          const mla_args *args, void *workspace,
                                          mla_stream stream, mla_error *err) {
  mla_gpu_call c = {plan,
                    &plan->problem,
                    args,
                    (unsigned char *)workspace,
                    mla_gpu_stream_of(stream),
                    err};
  const mla_gpu_bound on(plan->handle->device);
  if (on.code != MLA_RT(Success))
    return mla_gpu_fail(err, on.code, "SetDevice");
  const mla_gpu_fast *f =
      mla_gpu_fast_for(list, plan->handle, &plan->problem, &plan->limits);
  return f && f->takes(&c) ? f->run(&c) : mla_gpu_dispatch(&c);
}

static mla_status mla_gpu_run(const mla_backend_plan *plan,
                              const mla_args *args, void *workspace,
                              uint64_t workspace_bytes, mla_stream stream,
                              mla_error *err) {
  static const mla_gpu_fast *const none[] = {NULL};
  (void)workspace_bytes;
  return mla_gpu_run_with(none, plan, args, workspace, stream, err);
}

static void mla_gpu_fill_vtable(mla_backend *b) {
  b->size = sizeof *b;
  b->major = MLA_ABI_MAJOR;
  b->minor = MLA_ABI_MINOR;
  b->device_count = mla_gpu_device_count;
  b->device_info = mla_gpu_device_info;
  b->open = mla_gpu_open;
  b->close = mla_gpu_close;
  b->query = mla_gpu_query;
  b->plan = mla_gpu_plan;
  b->run = mla_gpu_run;
  b->plan_free = mla_gpu_plan_free;
  b->mem_alloc = mla_gpu_mem_alloc;
  b->mem_free = mla_gpu_mem_free;
  b->mem_to_device = mla_gpu_to_device;
  b->mem_to_host = mla_gpu_to_host;
  b->stream_create = mla_gpu_stream_create;
  b->stream_destroy = mla_gpu_stream_destroy;
  b->stream_sync = mla_gpu_stream_sync;
  b->capture_begin = mla_gpu_capture_begin;
  b->capture_end = mla_gpu_capture_end;
  b->graph_launch = mla_gpu_graph_launch;
  b->graph_free = mla_gpu_graph_free;
  b->event_create = mla_gpu_event_create;
  b->event_record = mla_gpu_event_record;
  b->event_elapsed = mla_gpu_event_elapsed;
  b->event_free = mla_gpu_event_free;
}

#endif
