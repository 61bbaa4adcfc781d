/*
 * gpu_host.h - what the host files of a device backend share.
 */
#ifndef MLA_GPU_HOST_H
#define MLA_GPU_HOST_H

#include "gpu_rt.h"
#include "mla/mla.h"

extern "C" {
#include "cache_layout.h"
#include "dtype.h"
#include "error.h"
}

struct mla_handle {
  int32_t device;
  int32_t units;        /* SMs, CUs */
  int32_t wave;         /* lanes that run in step */
  int32_t shared_bytes; /* a block may have, opted in */
  int32_t major, minor; /* compute capability, or gfx */
};

struct mla_backend_plan {
  mla_handle *handle;
  mla_problem problem;
  mla_limits limits;
  uint64_t workspace_bytes;
};

/* One run: the plan, the tensors and where to enqueue. */
struct mla_gpu_call {
  const mla_backend_plan *plan;
  const mla_problem *p;
  const mla_args *args;
  unsigned char *workspace;
  mla_rt_stream stream;
  mla_error *err;
};

/* Whole chunks of 16 bytes, at multiples of 16. */
static inline int mla_gpu_is_chunked(const mla_tensor *t, int axes) {
  if ((uintptr_t)t->data % 16 != 0) return 0;
  for (int i = 0; i < axes; i++)
    if (t->stride[i] % 8 != 0) return 0;
  return 1;
}

/* A failed call as status: the platform's code, its name, what was done. */
static inline mla_status mla_gpu_fail(mla_error *err, mla_rt_error code,
                                      const char *what) {
  mla_status st = code == MLA_RT(ErrorMemoryAllocation) ? MLA_OUT_OF_MEMORY
                                                        : MLA_DEVICE_ERROR;
  mla_fail(err, st, what, "%s failed: %s (%s)", what,
           MLA_RT(GetErrorName)(code), MLA_RT(GetErrorString)(code));
  if (err) err->backend_code = (int64_t)code;
  return st;
}

static inline mla_status mla_gpu_check(mla_error *err, mla_rt_error code,
                                       const char *what) {
  return code == MLA_RT(Success) ? MLA_OK : mla_gpu_fail(err, code, what);
}

static inline mla_status mla_gpu_launched(const mla_gpu_call *c,
                                          const char *kernel) {
  return mla_gpu_check(c->err, MLA_RT(GetLastError)(), kernel);
}

/* A device is the calling thread's while this lives; what it had comes back. A
   thread may have had none: a driver's call would find no context then, and
   the default stream would be another device's. */
struct mla_gpu_bound {
  int before, here;
  mla_rt_error code;
  explicit mla_gpu_bound(int device) : before(device), here(device) {
    (void)MLA_RT(GetDevice)(&before);
    code = MLA_RT(SetDevice)(device);
  }
  ~mla_gpu_bound() {
    if (before != here) (void)MLA_RT(SetDevice)(before);
  }
  mla_gpu_bound(const mla_gpu_bound &) = delete;
  mla_gpu_bound &operator=(const mla_gpu_bound &) = delete;
};

/* One call to the platform on a device. */
template <class Call>
static inline mla_status mla_gpu_on(int device, mla_error *err,
                                    const char *what, const Call &call) {
  const mla_gpu_bound on(device);
  if (on.code != MLA_RT(Success))
    return mla_gpu_fail(err, on.code, "SetDevice");
  return mla_gpu_check(err, call(), what);
}

/* More shared memory than a kernel has by default. */
static inline mla_status mla_gpu_shared(const mla_gpu_call *c,
                                        const void *kernel, int bytes,
                                        const char *name) {
  return mla_gpu_check(
      c->err,
      MLA_RT(FuncSetAttribute)(
          kernel, MLA_RT(FuncAttributeMaxDynamicSharedMemorySize), bytes),
      name);
}

#endif
