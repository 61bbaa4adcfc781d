/*
 * sm90_launch.h - launches that need more than the usual, and what decode and
 * prefill alike write.
 */
#ifndef MLA_SM90_LAUNCH_H
#define MLA_SM90_LAUNCH_H

#include "gpu_host_list.h"

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

/* Where results go, and the sink: NULL where the call has none. */
template <class Args>
static inline void mla_sm90_outputs(const mla_gpu_call *c, Args *a) {
  a->out = mla_arg(c->args, MLA_T_OUT)->data;
  a->o_token = mla_gpu_stride(c, MLA_T_OUT, 0);
  a->o_head = mla_gpu_stride(c, MLA_T_OUT, 1);
  a->out_dtype = mla_arg(c->args, MLA_T_OUT)->dtype;
  a->lse = (float *)mla_gpu_data(c, MLA_T_LSE);
  a->lse_token = mla_gpu_stride(c, MLA_T_LSE, 0);
  a->lse_head = mla_gpu_stride(c, MLA_T_LSE, 1);
  a->lse_base2 = (c->p->flags & MLA_LSE_BASE2) != 0;
  a->sink = (const float *)mla_gpu_data(c, MLA_T_SINK);
  a->sink_step = mla_gpu_stride(c, MLA_T_SINK, 0);
}

#endif
