/*
 * api.c - the caller's side: everything is checked here, once, before a
 * backend is called, so that no backend need repeat it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_over.h"
#include "error.h"
#include "problem_check.h"
#include "registry.h"
#include "sized.h"

struct mla_device {
  const mla_backend *backend;
  mla_handle *handle;
  int32_t index;
  int32_t host_memory; /* contents of tensors can be read here */
};

struct mla_plan {
  const mla_device *device;
  mla_backend_plan *plan;
  mla_problem problem;
  mla_limits limits;
  mla_answer answer;
};

/* What a caller described, in full structs of this minor. */
typedef struct described {
  mla_problem problem;
  mla_limits limits;
} described;

/* --------------------------------------------------- a backend's answers */

/*
 * A backend writes its error into one of ours: it may be of another minor
 * than the caller, or leave a string open.
 */
static void error_clear(mla_error *own) {
  own->size = (uint32_t)sizeof *own;
  own->status = MLA_OK;
  own->backend_code = 0;
  own->field[0] = own->message[0] = 0;
}

static mla_status hand_over(mla_error *err, mla_error *own, mla_status status,
                            const mla_backend *backend, const char *member) {
  own->field[sizeof own->field - 1] = 0;
  own->message[sizeof own->message - 1] = 0;
  if (!own->message[0])
    return mla_fail(err, status, member, "%s of backend %s failed: %s", member,
                    backend->name, mla_status_name(status));
  int64_t code = own->backend_code;
  mla_fail(err, status, own->field, "%s", own->message);
  if (err && err->size >= MLA_SIZE_WITH(mla_error, backend_code))
    err->backend_code = code;
  return status;
}

static mla_status check_answer(mla_answer *answer, const mla_backend *backend,
                               mla_error *err) {
  uint64_t ws = answer->workspace_alignment, ts = answer->tensor_alignment;
  answer->size = (uint32_t)sizeof *answer;
  answer->kernel[sizeof answer->kernel - 1] = 0;
  answer->reason[sizeof answer->reason - 1] = 0;
  if (!answer->supported) return MLA_OK;
  if (answer->supported != 1)
    return mla_fail(err, MLA_DEVICE_ERROR, "supported",
                    "backend %s answers supported %d; it is 0 or 1",
                    backend->name, answer->supported);
  if ((ws & (ws - 1)) || (ts & (ts - 1)))
    return mla_fail(err, MLA_DEVICE_ERROR, "alignment",
                    "backend %s wants alignments %llu and %llu; they are 0 or "
                    "powers of two",
                    backend->name, (unsigned long long)ws,
                    (unsigned long long)ts);
  return MLA_OK;
}

const char *mla_version(void) {
  return MLA_VERSION_STRING;
}

/* ------------------------------------------------------------- a device */

static mla_status unknown_backend(const char *name, mla_error *err) {
  char known[128] = "";
  for (size_t i = 0; i < mla_backend_count(); i++) {
    const mla_backend *backend = mla_backend_at(i);
    size_t used = strlen(known);
    if (!backend || used + strlen(backend->name) + 3 > sizeof known) break;
    if (used) strcat(known, ", ");
    strcat(known, backend->name);
  }
  return mla_fail(err, MLA_NOT_AVAILABLE, "backend",
                  "there is no backend \"%.64s\", only %s", name, known);
}

static mla_status check_index(const mla_backend *backend, int32_t device,
                              mla_error *err) {
  mla_error own;
  error_clear(&own);
  int32_t count = backend->device_count(&own);
  if (count <= 0)
    return own.message[0]
               ? hand_over(err, &own, MLA_NOT_AVAILABLE, backend,
                           "device_count")
               : mla_fail(err, MLA_NOT_AVAILABLE, "device",
                          "backend %s finds no device here", backend->name);
  if (device < 0 || device >= count)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "device",
                    "device is %d, backend %s has %d", device, backend->name,
                    count);
  return MLA_OK;
}

static mla_status ask_info(const mla_backend *backend, int32_t device,
                           mla_device_info *info, mla_error *err) {
  mla_error own;
  error_clear(&own);
  memset(info, 0, sizeof *info);
  info->size = (uint32_t)sizeof *info;
  mla_status st = backend->device_info(device, info, &own);
  if (st != MLA_OK) return hand_over(err, &own, st, backend, "device_info");
  info->name[sizeof info->name - 1] = 0;
  info->arch[sizeof info->arch - 1] = 0;
  if (info->memory_space != MLA_MEMORY_HOST && !backend->mem_alloc)
    return mla_fail(err, MLA_DEVICE_ERROR, "memory_space",
                    "backend %s has memory space %d, but no memory members",
                    backend->name, info->memory_space);
  return MLA_OK;
}

static mla_status open_on(const mla_backend *backend, int32_t device,
                          const char *options, mla_device *dev,
                          mla_error *err) {
  mla_device_info info;
  mla_error own;
  mla_status st = check_index(backend, device, err);
  if (st == MLA_OK) st = ask_info(backend, device, &info, err);
  if (st != MLA_OK) return st;
  error_clear(&own);
  st = backend->open(device, options, &dev->handle, &own);
  if (st != MLA_OK) return hand_over(err, &own, st, backend, "open");
  dev->backend = backend;
  dev->index = device;
  dev->host_memory = info.memory_space == MLA_MEMORY_HOST;
  return MLA_OK;
}

mla_status mla_open(const char *name, int32_t device, const char *options,
                    mla_device **dev, mla_error *err) {
  if (!dev) return mla_fail(err, MLA_INVALID_ARGUMENT, "dev", "dev is NULL");
  *dev = NULL;
  if (!name)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "backend", "backend is NULL");
  const mla_backend *backend = mla_backend_find(name);
  if (!backend) return unknown_backend(name, err);
  mla_device *opened = calloc(1, sizeof *opened);
  if (!opened)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "dev", "no memory for a device");
  mla_status st = open_on(backend, device, options, opened, err);
  if (st != MLA_OK) {
    free(opened);
    return st;
  }
  *dev = opened;
  return MLA_OK;
}

mla_status mla_device_over(const mla_backend *backend, mla_handle *handle,
                           int host_memory, mla_device **dev, mla_error *err) {
  *dev = calloc(1, sizeof **dev);
  if (!*dev)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "dev", "no memory for a device");
  (*dev)->backend = backend;
  (*dev)->handle = handle;
  (*dev)->host_memory = host_memory;
  return MLA_OK;
}

void mla_close(mla_device *dev) {
  if (!dev) return;
  dev->backend->close(dev->handle);
  free(dev);
}

const mla_backend *mla_device_backend(const mla_device *dev) {
  return dev ? dev->backend : NULL;
}

mla_handle *mla_device_handle(const mla_device *dev) {
  return dev ? dev->handle : NULL;
}

mla_status mla_device_describe(const mla_device *dev, mla_device_info *info,
                               mla_error *err) {
  mla_device_info own;
  if (!dev) return mla_fail(err, MLA_INVALID_ARGUMENT, "dev", "dev is NULL");
  mla_status st = mla_sized_room(
      info, MLA_SIZE_WITH(mla_device_info, memory_space), "device_info", err);
  if (st == MLA_OK) st = ask_info(dev->backend, dev->index, &own, err);
  if (st == MLA_OK) mla_sized_write(info, &own, (uint32_t)sizeof own);
  return st;
}

/* ------------------------------------------------------- query and plan */

static mla_status describe(const mla_device *dev, const mla_problem *problem,
                           const mla_limits *limits, described *d,
                           mla_error *err) {
  if (!dev) return mla_fail(err, MLA_INVALID_ARGUMENT, "dev", "dev is NULL");
  mla_status st =
      mla_sized_read(&d->problem, (uint32_t)sizeof d->problem, problem,
                     MLA_SIZE_WITH(mla_problem, flags), "problem", err);
  if (st == MLA_OK)
    st = mla_sized_read(&d->limits, (uint32_t)sizeof d->limits, limits,
                        MLA_SIZE_WITH(mla_limits, num_splits), "limits", err);
  if (st == MLA_OK) st = mla_problem_check(&d->problem, err);
  if (st == MLA_OK) st = mla_limits_check(&d->problem, &d->limits, err);
  return st;
}

static mla_status ask(const mla_device *dev, const described *d,
                      mla_answer *answer, mla_error *err) {
  mla_error own;
  error_clear(&own);
  *answer = mla_answer_init();
  if ((d->problem.flags & MLA_COMMON_PREFIX) && !dev->backend->run_prefix) {
    snprintf(answer->reason, sizeof answer->reason,
             "flags: %.64s has no run_prefix for MLA_COMMON_PREFIX",
             dev->backend->name);
    return MLA_OK;
  }
  mla_status st =
      dev->backend->query(dev->handle, &d->problem, &d->limits, answer, &own);
  if (st != MLA_OK) return hand_over(err, &own, st, dev->backend, "query");
  return check_answer(answer, dev->backend, err);
}

mla_status mla_query(mla_device *dev, const mla_problem *problem,
                     const mla_limits *limits, mla_answer *answer,
                     mla_error *err) {
  described d;
  mla_answer own;
  mla_status st = mla_sized_room(answer, MLA_SIZE_WITH(mla_answer, supported),
                                 "answer", err);
  if (st == MLA_OK) st = describe(dev, problem, limits, &d, err);
  if (st == MLA_OK) st = ask(dev, &d, &own, err);
  if (st == MLA_OK) mla_sized_write(answer, &own, (uint32_t)sizeof own);
  return st;
}

/* Fills `made`, all but its device; the hints are the caller's, not kept. */
static mla_status plan_on(const mla_device *dev, described *d, mla_plan *made,
                          mla_error *err) {
  mla_error own;
  mla_status st = ask(dev, d, &made->answer, err);
  if (st != MLA_OK) return st;
  if (!made->answer.supported)
    return mla_fail(
        err, MLA_UNSUPPORTED, "problem", "backend %s: %s", dev->backend->name,
        made->answer.reason[0] ? made->answer.reason : "no reason given");
  error_clear(&own);
  st = dev->backend->plan(dev->handle, &d->problem, &d->limits, &made->plan,
                          &own);
  if (st != MLA_OK) return hand_over(err, &own, st, dev->backend, "plan");
  d->limits.seq_lens = d->limits.query_start_loc = NULL;
  made->problem = d->problem;
  made->limits = d->limits;
  return MLA_OK;
}

mla_status mla_plan_create(mla_device *dev, const mla_problem *problem,
                           const mla_limits *limits, mla_plan **plan,
                           mla_error *err) {
  described d;
  if (!plan) return mla_fail(err, MLA_INVALID_ARGUMENT, "plan", "plan is NULL");
  *plan = NULL;
  mla_status st = describe(dev, problem, limits, &d, err);
  if (st != MLA_OK) return st;
  mla_plan *made = calloc(1, sizeof *made);
  if (!made)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "plan", "no memory for a plan");
  made->device = dev;
  st = plan_on(dev, &d, made, err);
  if (st != MLA_OK) {
    free(made);
    return st;
  }
  *plan = made;
  return MLA_OK;
}

const mla_answer *mla_plan_answer(const mla_plan *plan) {
  return plan ? &plan->answer : NULL;
}

void mla_plan_free(mla_plan *plan) {
  if (!plan) return;
  plan->device->backend->plan_free(plan->plan);
  free(plan);
}

/* ------------------------------------------------------------------ run */

static mla_status check_workspace(const mla_answer *answer,
                                  const void *workspace, uint64_t bytes,
                                  mla_error *err) {
  uint64_t need = answer->workspace_bytes;
  uint64_t align = answer->workspace_alignment;
  if (bytes < need)
    return mla_fail(err, MLA_WORKSPACE_TOO_SMALL, "workspace_bytes",
                    "workspace_bytes is %llu, the plan needs %llu",
                    (unsigned long long)bytes, (unsigned long long)need);
  if (need && !workspace)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "workspace",
                    "workspace is NULL, the plan needs %llu bytes",
                    (unsigned long long)need);
  if (need && align && (uintptr_t)workspace % align)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "workspace",
                    "workspace is %llu bytes past a multiple of %llu, the "
                    "alignment the plan needs",
                    (unsigned long long)((uintptr_t)workspace % align),
                    (unsigned long long)align);
  return MLA_OK;
}

/* The member that the plan was made for. */
static mla_status call(const mla_plan *plan, const mla_args *args,
                       int64_t prefix_len, void *workspace,
                       uint64_t workspace_bytes, mla_stream stream,
                       mla_error *err) {
  const mla_backend *backend = plan->device->backend;
  int common = (plan->problem.flags & MLA_COMMON_PREFIX) != 0;
  mla_error own;
  error_clear(&own);
  mla_status st =
      common ? backend->run_prefix(plan->plan, args, prefix_len, workspace,
                                   workspace_bytes, stream, &own)
             : backend->run(plan->plan, args, workspace, workspace_bytes,
                            stream, &own);
  if (st == MLA_OK) return st;
  return hand_over(err, &own, st, backend, common ? "run_prefix" : "run");
}

mla_status mla_run(const mla_plan *plan, const mla_args *args, void *workspace,
                   uint64_t workspace_bytes, mla_stream stream,
                   mla_error *err) {
  return mla_run_prefix(plan, args, 0, workspace, workspace_bytes, stream, err);
}

mla_status mla_run_prefix(const mla_plan *plan, const mla_args *args,
                          int64_t prefix_len, void *workspace,
                          uint64_t workspace_bytes, mla_stream stream,
                          mla_error *err) {
  mla_args full;
  if (!plan) return mla_fail(err, MLA_INVALID_ARGUMENT, "plan", "plan is NULL");
  mla_status st = mla_sized_read(&full, (uint32_t)sizeof full, args,
                                 MLA_SIZE_WITH(mla_args, tensor), "args", err);
  if (st != MLA_OK) return st;
  const mla_device *dev = plan->device;
  st = mla_args_check(&plan->problem, &plan->limits, &plan->answer, &full,
                      dev->host_memory, err);
  if (st == MLA_OK)
    st = check_workspace(&plan->answer, workspace, workspace_bytes, err);
  if (st != MLA_OK) return st;
  if (mla_args_empty(&plan->problem, &full)) return MLA_OK;
  return call(plan, &full, prefix_len, workspace, workspace_bytes, stream, err);
}
