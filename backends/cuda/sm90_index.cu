/*
 * The selector's logits by mla_index_wgmma. Its products are f16's whatever
 * queries are: it is compiled once, with MLA_SM90_F16.
 */
#include "mla_index_wgmma_sm90.cuh"
#include "sm90_index.h"

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
