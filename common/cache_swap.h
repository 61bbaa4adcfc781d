/*
 * cache_swap.h - the order of bytes in packed entries.
 */
#ifndef MLA_CACHE_SWAP_H
#define MLA_CACHE_SWAP_H

#include "mla/mla.h"

/*
 * Reverses every scale and bf16 value of a packed cache's entries, in memory
 * that `bytes` holds and the tensor describes: files are little-endian, and
 * memory is as its host is. Gaps stay. Nothing for other tensors.
 */
void mla_cache_swap(const mla_problem *problem, int32_t slot,
                    const mla_tensor *tensor, void *bytes);

#endif
