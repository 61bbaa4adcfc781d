/*
 * gpu_run_copy.h - copies of tensors on the host side.
 */
#ifndef MLA_GPU_RUN_COPY_H
#define MLA_GPU_RUN_COPY_H

#include "gpu_copy.h"
#include "gpu_host.h"

static mla_status mla_gpu_copy(const mla_gpu_call *c, const mla_copy_args &x,
                               int64_t i, int64_t j) {
  if (!i || !j) return MLA_OK;
  MLA_LAUNCH(mla_copy_rows, dim3((unsigned)i, (unsigned)j),
             dim3(MLA_COPY_ROW_THREADS), 0, c->stream, x);
  return mla_gpu_launched(c, "copy_rows");
}

#endif
