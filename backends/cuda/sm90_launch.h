/*
 * sm90_launch.h - launches that need more than the usual.
 */
#ifndef MLA_SM90_LAUNCH_H
#define MLA_SM90_LAUNCH_H

#include "gpu_host.h"

/* A launch that may begin while the kernel before it still runs. */
static inline cudaLaunchConfig_t mla_sm90_early(
    const mla_gpu_call *c, dim3 grid, unsigned threads, size_t shared,
    cudaLaunchAttribute *attribute) {
  *attribute = {};
  attribute->id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute->val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = c->stream;
  config.attrs = attribute;
  config.numAttrs = 1;
  return config;
}

#endif
