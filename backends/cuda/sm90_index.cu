/*
 * The selector's logits by mla_index_wgmma, and the largest by
 * mla_topk_cluster. Its products are f16's whatever queries are: it is compiled
 * once, with MLA_SM90_F16.
 */
#include "mla_index_wgmma_sm90.cuh"
#include "mla_topk_cluster_sm90.cuh"
#include "sm90_index.h"
#include "sm90_launch.h"

enum { SM90_INDEX_BLOCKS = 4 }; /* a unit, of all tokens together */

mla_status mla_cuda_index_logits_sm90(const mla_gpu_call *c,
                                      const mla_index_args &from,
                                      unsigned tokens) {
  const int64_t share =
      (int64_t)SM90_INDEX_BLOCKS * c->plan->handle->units / tokens;
  const int fills = (c->p->flags & MLA_RETURN_LOGITS) != 0;
  const auto kernel = c->p->q_dtype == MLA_BF16 ? mla_index_wgmma<MLA_BF16>
                                                : mla_index_wgmma<MLA_F16>;
  mla_index_args a = from;
  a.blocks = (a.columns + SM90_INDEX_KEYS - 1) / SM90_INDEX_KEYS;
  if (a.blocks > share) a.blocks = share > 0 ? share : 1;
  const mla_status st =
      mla_gpu_shared(c, (const void *)kernel, SM90_INDEX_BYTES, "index_wgmma");
  if (st != MLA_OK) return st;
  MLA_LAUNCH(kernel, dim3(tokens, (unsigned)a.blocks), dim3(SM80_INDEX_THREADS),
             SM90_INDEX_BYTES, c->stream, a, sm80_index_pages_of(a), fills);
  return mla_gpu_launched(c, "index_wgmma");
}

/* Above two only where half of the device is enough: CTAs of a cluster start
   together, and the last logits are still made. */
unsigned mla_cuda_index_cluster_sm90(const mla_gpu_call *c,
                                     const mla_index_args &a, unsigned tokens) {
  const int64_t units = c->plan->handle->units;
  unsigned size = 8;
  while (size > 1 && ((int64_t)tokens * size > (size > 2 ? units / 2 : units) ||
                      a.columns < (int64_t)size * SM90_TOPK_RUN))
    size /= 2;
  return size;
}

template <int Size>
static mla_status choose(const mla_gpu_call *c, const mla_index_args &a,
                         unsigned tokens) {
  const mla_tensor *positions = mla_arg(c->args, MLA_T_POSITIONS);
  const int64_t run = (a.columns + Size - 1) / Size;
  const int room = run < SM80_TOPK_KEPT ? (int)run : SM80_TOPK_KEPT;
  const int bytes = 4 * room;
  const auto kernel = mla_topk_cluster<Size>;
  cudaLaunchAttribute attribute[2];
  cudaLaunchConfig_t config = mla_sm90_early(
      c, dim3(tokens * Size), SM80_TOPK_THREADS, (size_t)bytes, attribute);
  attribute[1].id = cudaLaunchAttributeClusterDimension;
  attribute[1].val.clusterDim.x = Size;
  attribute[1].val.clusterDim.y = attribute[1].val.clusterDim.z = 1;
  config.numAttrs = 2;
  const mla_status st =
      mla_gpu_shared(c, (const void *)kernel, bytes, "topk_cluster");
  if (st != MLA_OK) return st;
  return mla_gpu_check(
      c->err,
      cudaLaunchKernelEx(&config, kernel, a, (int32_t *)positions->data,
                         positions->stride[0], c->p->topk, room),
      "topk_cluster");
}

mla_status mla_cuda_index_choice_sm90(const mla_gpu_call *c,
                                      const mla_index_args &a,
                                      unsigned tokens) {
  const unsigned size = mla_cuda_index_cluster_sm90(c, a, tokens);
  return size == 8   ? choose<8>(c, a, tokens)
         : size == 4 ? choose<4>(c, a, tokens)
                     : choose<2>(c, a, tokens);
}
