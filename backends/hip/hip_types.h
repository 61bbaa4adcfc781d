/*
 * hip_types.h - which types and tensors the kernels on matrix cores take.
 */
#ifndef MLA_HIP_TYPES_H
#define MLA_HIP_TYPES_H

#include "gpu_host.h"

enum { MLA_MFMA_WAVE = 64 };

/* f16 where its subnormals count: from gfx940 on. */
static int mla_hip_type(const mla_handle *h, int dtype) {
  return dtype == MLA_BF16 ||
         (dtype == MLA_F16 && h->major * 10 + h->minor >= 94);
}

#endif
